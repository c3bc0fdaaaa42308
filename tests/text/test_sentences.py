"""French and English sentences to words, to ids, and back."""

import json

from mini_tf.errors import UserError
from mini_tf.text import EOS, SOS, UNK, SentenceVocabulary, Vocabulary, join_sentence, split_sentence
from mini_tf.text.sentences import names_in

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

FRENCH = {
    "L'homme qu'il a vu.": "l' homme qu' il a vu .",
    "Avez-vous dit « oui » ?": 'avez -vous dit " oui " ?',
    "Est-ce qu’aujourd’hui y a-t-il": "est -ce qu' aujourd'hui y a -t -il",
    "Quatre-vingt-dix\u202f!": "quatre -vingt -dix !",
    "jusqu'aujourd'hui, d'aujourd'hui": "jusqu' aujourd'hui , d' aujourd'hui",
    "Va-t'en, donne-m'en": "va -t' en , donne -m' en",
    "À 14h30, 3,50\u00a0€ (50\u202f%)…": "à 14h30 , 3,50 € ( 50 % ) …",
    "J‘aime Œuvre soutien‐gorge": "j' aime œuvre soutien -gorge",
    "« Tom pleure. » - « Je sais. »": '" tom pleure . " - " je sais . "',
    "C\u0327a va, E\u0301lan": "ça va , élan",           # letters and accents that compose
    "A\u00adB\u200bc\ufeff": "abc",                      # characters that cannot be seen
    "": "",
    " \n\t\u00a0": "",
}
ENGLISH = {
    "Don't; it's 7 o'clock: Tom’s": "don't ; it's 7 o'clock : tom's",
    "Twenty-one, a 33-year-old.": "twenty -one , a 33 -year -old .",
    "It cost $3,000 or 2.30 at 10:15 in 1980's.": "it cost $ 3,000 or 2.30 at 10:15 in 1980's .",
    '“The boys’ club,” he said...': '" the boys\' club , " he said . . .',
    "99.9% and/or C++ & -3.5": "99.9 % and / or c + + & -3.5",
    "'Tis a 'dog'": "' tis a ' dog '",
    "wait -- no!?": "wait - - no ! ?",
    "I'd've": "i'd've",
}


@pytest.mark.parametrize(("sentence", "words"), FRENCH.items())
def test_french_words(sentence, words):
    assert split_sentence(sentence, "french") == words.split(" ") * bool(words)


@pytest.mark.parametrize(("sentence", "words"), ENGLISH.items())
def test_english_words(sentence, words):
    assert split_sentence(sentence, "english") == words.split(" ")


ODD = "abesilSÉßİΣœ019'’ʼ‘-‐‑.,:;!?…«»“”\"()%$€ \u00a0\u202f\n\u00ad\u200b\u0301\u0307\u0327\u0338_漢\u1100\u1161+"


@given(st.text(st.sampled_from(ODD), max_size=40) | st.text(max_size=40), st.sampled_from(["french", "english"]))
def test_words_joined_by_spaces_are_the_same_words_again(sentence, language):
    words = split_sentence(sentence, language)
    assert split_sentence(" ".join(words), language) == words
    assert "".join(words) == "".join("".join(words).split())             # no word has a space in it


@given(st.lists(st.sampled_from("a aujourd'hui j' est-ce 2.30 3 , ! don't boys' x-y ( ) l'".split()), max_size=8))
def test_words_that_are_spaced_apart_already_stay_apart(parts):
    for language in ("french", "english"):
        apart = [word for part in parts for word in split_sentence(part, language)]
        assert split_sentence(" ".join(parts), language) == apart


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("l' homme , qu' il a vu .", "L'homme, qu'il a vu."),
        ("avez -vous vu ?", "Avez-vous vu?"),
        ("s' il te plaît , va -t' en", "S'il te plaît, va-t'en"),
        ("you know i don't and i'm sure i've i'll i'd in", "You know I don't and I'm sure I've I'll I'd in"),
        ("the boys' club ; twenty -one : no !", "The boys' club; twenty-one: no!"),
        ('" tom\'s crying . " " i know . "', '"Tom\'s crying." "I know."'),
        ('he said : " no " ( 90 % of $ 3,000 ) . . .', 'He said: "no" (90% of $3,000)...'),
        ("yes . you're right ! - 3 men , no ?", "Yes. You're right! - 3 men, no?"),
        ("it is 10:15 . 3 left", "It is 10:15. 3 left"),
        ("état", "État"),
        (". . .", "..."),
        ("", ""),
    ],
)
def test_a_sentence_reads_well(words, sentence):
    assert join_sentence(words.split()) == sentence


@pytest.mark.parametrize("language", ["french", "english"])
def test_a_joined_sentence_has_the_same_words(language):
    for words in (FRENCH if language == "french" else ENGLISH).values():
        if "'" not in words.split() and "/" not in words:                # single quotation marks are not paired
            assert split_sentence(join_sentence(words.split()), language) == words.split()


def test_another_language_is_refused():
    with pytest.raises(UserError, match="language is 'German', expected 'french' or 'english'"):
        split_sentence("Ja", "German")
    with pytest.raises(UserError, match=r"the sentence is \['oui'\], expected a string"):
        split_sentence(["oui"], "french")


# Vocabulary -----------------------------------------------------------------------------------------------------------

SENTENCES = [["il", "dort", "."], ["je", "dors", "."], ["je", "suis", "là", "."]]


def test_the_most_frequent_words_come_first():
    assert (SOS, EOS, UNK) == (0, 1, 2)
    vocabulary = SentenceVocabulary(SENTENCES)
    assert vocabulary.words == ["[SOS]", "[EOS]", "[UNK]", ".", "je", "il", "dort", "dors", "suis", "là"]
    assert SentenceVocabulary(SENTENCES, least=2).words == ["[SOS]", "[EOS]", "[UNK]", ".", "je"]
    assert len(vocabulary) == 10
    assert isinstance(vocabulary, Vocabulary)


def test_unknown_words_become_unk_and_can_be_listed():
    vocabulary = SentenceVocabulary(SENTENCES)
    words = ["je", "vois", "là", "vois", "."]
    ids = vocabulary.encode(words)
    assert ids.dtype == np.int64
    assert ids.tolist() == [4, UNK, 9, UNK, 3]
    assert vocabulary.unknown(words) == ["vois"]
    assert vocabulary.unknown(["je"]) == []
    assert vocabulary.encode([]).shape == (0,)
    assert vocabulary.encode([]).dtype == np.int64


def test_ids_become_words_up_to_the_end_of_the_sentence():
    vocabulary = SentenceVocabulary(SENTENCES)
    assert vocabulary.decode([SOS, 4, UNK, 3, EOS, 5, 6]) == ["je", "[UNK]", "."]
    assert vocabulary.decode(np.array([4, 3, -1, -1])) == ["je", "."]    # a row of a batch
    assert vocabulary.decode([]) == []
    with pytest.raises(UserError, match="id 10 is not in the vocabulary, expected 0 to 9"):
        vocabulary.decode([4, 10])
    for words in SENTENCES:
        assert vocabulary.decode(vocabulary.encode(words)) == words


def test_a_vocabulary_survives_json():
    vocabulary = SentenceVocabulary(SENTENCES)
    again = SentenceVocabulary.of(json.loads(json.dumps(vocabulary.words)))
    assert isinstance(again, SentenceVocabulary)
    assert again.words == vocabulary.words
    assert again.index == vocabulary.index


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SentenceVocabulary(["je suis"]), "the words are the text 'je suis', expected a list of words"),
        (lambda: SentenceVocabulary("je suis"), "the words are the text 'j', expected"),
        (lambda: SentenceVocabulary(SENTENCES, least=0), "least is 0, expected a whole number of at least 1"),
        (lambda: SentenceVocabulary(SENTENCES).encode("je"), "the words are the text 'je', expected a list"),
        (lambda: SentenceVocabulary(SENTENCES).unknown("je"), "the words are the text 'je', expected a list"),
        (lambda: SentenceVocabulary.of(["je", "tu"]), r"the words begin \['je', 'tu'\], expected \['\[SOS\]'"),
        (lambda: SentenceVocabulary.of(["[SOS]", "[EOS]", "[UNK]", "je", "tu", "je"]), "the words have 'je' twice, expected each once"),
    ],
)
def test_bad_words_are_named(make, message):
    with pytest.raises(UserError, match=message):
        make()


def test_names_are_what_has_a_capital_inside_sentences():
    sentences = ["Tom saw Mary.", "The cat saw Tom. Run!", "I saw the Cat", "It is mary", "Is Mary in Paris?", '"Stop", she said.']
    assert names_in(sentences, "english") == {"tom", "mary", "paris"}
    assert join_sentence(["did", "tom", "see", "paris", "?"], {"tom", "paris"}) == "Did Tom see Paris?"
    assert names_in(["Je vais à Lyon avec l'Américain.", "Où est Tom ?"], "french") == {"lyon", "américain", "tom"}


def test_french_has_a_space_before_some_marks():
    words = split_sentence("Qu'avez-vous dit à Tom ? Rien !", "french")
    assert join_sentence(words, {"tom"}, "french") == "Qu'avez-vous dit à Tom ? Rien !"
    assert join_sentence(words, {"tom"}) == "Qu'avez-vous dit à Tom? Rien!"
