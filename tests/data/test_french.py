"""The French grammar: exact pairs for each phenomenon, and rules that hold for everything drawn."""

import hashlib
import re

from mini_tf.data import french_pairs
from mini_tf.data.french.choices import Either, Product, Together, draw, each, size
from mini_tf.data.french.inflection import english_forms, feminine, french_forms, french_plural, with_s
from mini_tf.data.french.lexicon import (
    AVOIR,
    COLOURS,
    COUNTRIES,
    NAMES,
    NOT,
    NOTHING,
    NOUNS,
    PRONOUNS,
    SITES,
    SIZES,
    TRAITS,
    VERBS,
    YOUTH,
    Noun,
    Pair,
    Phrase,
)
from mini_tf.data.french.patterns import GRAMMAR, PATTERNS, being, clauses, numbers, past, places, present, questions
from mini_tf.data.french.patterns import pronouns as before_verb
from mini_tf.data.french.patterns import reflexive as reflexives
from mini_tf.data.french.patterns.pattern import written
from mini_tf.data.french.phrases import LE, MINE, SOME, THIS, UN, noun_phrase
from mini_tf.data.french.spelling import before_vowel, english, english_number, french, french_number, possessive
from mini_tf.errors import UserError

import numpy as np
import pytest

COUNT = 200_000
MANY = 20_000                                            # of them, for the rules: these take longer
SUBJECTS = {phrase.fr: phrase for phrase in PRONOUNS + NAMES}
ADJECTIVES = {adjective.m: adjective for adjective in SIZES + COLOURS}
MY, YOUR = MINE[0], MINE[1]


@pytest.fixture(scope="module")
def pairs():
    return french_pairs(COUNT, seed=1)


def words(sentence):
    return re.findall(r"\w+", sentence.lower())


def the(word, determiner=LE, before=(), after=(), plural=False):
    noun = next(noun for nouns in NOUNS.values() for noun in nouns if noun.fr == word)
    return noun_phrase(determiner, plural, noun, [ADJECTIVES[a] for a in before], [ADJECTIVES[a] for a in after])


def some(word, en, gender):
    return noun_phrase(SOME, False, Noun(word, word, gender, en, en))


def verb(infinitive):
    return next(verb for verbs in VERBS.values() for verb in verbs if verb.fr == infinitive)


# The list as a whole


def test_the_same_seed_gives_the_same_pairs_everywhere():
    drawn = french_pairs(1000, seed=7)
    assert drawn == french_pairs(1000, seed=7)
    assert drawn != french_pairs(1000, seed=8)
    digest = hashlib.sha256("\n".join("\t".join(pair) for pair in drawn).encode()).hexdigest()
    assert digest == "3726750d83c0d3ce5148330054d933fcaba535b7ff7a74f301658ee0983c7dcc"


def test_many_different_pairs(pairs):
    assert len(pairs) == COUNT
    assert len({fr for fr, _ in pairs}) == COUNT         # so no French sentence has two translations, either
    assert size(GRAMMAR) == 9_089_470_766                # "9.1 billion" in README and labs/translation.md


def test_no_sentence_belongs_to_two_patterns():
    drawn = [fr for ways in PATTERNS.values() for fr, _ in draw(ways, min(size(ways), 500), np.random.default_rng(0))]
    assert len(drawn) == len(set(drawn))


@pytest.mark.parametrize("name", ["clock", "how_old", "used_to", "degrees"])
def test_a_small_pattern_written_out_never_repeats_itself(name):
    drawn = draw(PATTERNS[name], size(PATTERNS[name]), np.random.default_rng(0))
    assert len({fr for fr, _ in drawn}) == size(PATTERNS[name])


def test_enough_words_and_sentences_of_fair_length(pairs):
    for side in zip(*pairs):
        split = [words(sentence) for sentence in side[:MANY]]
        assert len({word for sentence in split for word in sentence}) >= 800
        lengths = [len(sentence) for sentence in split]
        assert min(lengths) == 3
        assert max(lengths) <= 15
        assert sum(lengths) / len(lengths) > 6.5


def test_every_pattern_has_its_share(pairs):
    few = french_pairs(len(PATTERNS) * 10, seed=2)
    times = [fr for fr, _ in few if re.match(r"(Il|Maintenant, il) est (midi|minuit|.* heure)", fr)]
    assert len(times) == 10


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count):
    with pytest.raises(UserError, match=f"count is {count}, expected a whole number of at least 1"):
        french_pairs(count)


def test_a_count_above_the_grammar_is_refused():
    with pytest.raises(UserError, match=f"expected at most {size(GRAMMAR):,}"):
        french_pairs(size(GRAMMAR) + 1)


# Rules that hold everywhere

@pytest.mark.parametrize(
    "wrong",
    [
        r"\b(le|la|je|de|ne|que|me|te|se) (?!onze)[aeiouâéêîôœ]",
        r"\b(le|la|je|de|ne|que|me|te|se) h(omm|ôt|ôpital|uître|orlo|éroïne|élico|irond|abi|éri\b)",
        r"\b(d|j|l|m|n|s|t|qu)'(hibou|hérisson|hamster|hache|harpe|hamac|haricot|huit|onze|Hongrie)",
        r"\b(d|j|l|m|n|s|t|qu)'[^aeiouyhâéêîôœ]",
        r"\b(de|à) les? ",
        r"\b(ce|ma|ta|beau|nouveau) (a|e|â|é|î|i|o|œ|u|homme|hôtel|huître|horloge|héroïne|hélico|hirondelle)(?!st\b)",
        r"\bvieux (âne|hôtel|homme|avocat|architecte|uniforme|avion|éléphant|hélicoptère|écureuil)\b",
        r"\b(cet|bel|nouvel|vieil|mon (belle|vieille|jolie|petite)) [^aeiouhâéêîôœ]",
        r"\b(cet|bel|nouvel|vieil) (hibou|hérisson|hamster|hamac)",
        r"\b(vois|voit|achète|achètent|vend|acheté|vendu|lu|vu|avez|il y a) des (petit|grand|beau|belle|vieux|vieille|nouve|joli|bon|jeune|long|court)",
        r"\b(?!vien|ven)\w+ pas (un|une|des|du|de la|de l') ",
        r"[ae]-(il|elle)\b",
        r"\b(son|sa|ses) ",
        r"  |^ | $|’|None|\{|\bde de\b|[^ ][?!]| [.,]",
    ],
)
def test_no_french_sentence_has(pairs, wrong):
    found = [fr for fr, _ in pairs[:MANY] if re.search(wrong, fr, re.I)]
    assert found[:5] == []


@pytest.mark.parametrize(
    "wrong",
    [
        r"\ba [aeio]",
        r"\ba (umbrella|hour)",
        r"\ban ([^aeiou]|uni|use)",
        r"^(He|She|It) (are|have|do|am|were)\b",
        r"\b(we|they) (is|has|does|was|am)\b",
        r"^I (is|are|has|does|were)\b",
        r"\b(did|does|do|cannot|must not) (not )?(ate|eaten|saw|bought|sold|was|is|has)\b",
        r"\b(some|any|the|my|your|our|their|this|these|a|an) (a|an|the|some|any|my|this|these)\b",
        r"\b(these|two|three|some|any) (child|man|woman|cat|dog|owl|horse|knife)\b",
        r"childs|mans\b|sheeps|wolfs|knifes|gooses|'s's|[^s]s's",
        r"  |^ | $|’|None|\{| [?.!,]",
    ],
)
def test_no_english_sentence_has(pairs, wrong):
    found = [en for _, en in pairs[:MANY] if re.search(wrong, en)]
    assert found[:5] == []


def test_every_sentence_starts_with_a_capital_and_ends_with_its_mark(pairs):
    for fr, en in pairs[:MANY]:
        assert fr[0].isupper()
        assert en[0].isupper()
        assert (fr[-1], fr[-2] == " ") in ((".", False), ("?", True), ("!", True))
        assert en[-1] == fr[-1]


# Exact pairs, phenomenon by phenomenon


@pytest.mark.parametrize(
    ("raw", "spelled"),
    [
        ("je aime le ami de le roi", "J'aime l'ami du roi."),
        ("je ne ai pas vu la île", "Je n'ai pas vu l'île."),
        ("il se habille parce que il a froid", "Il s'habille parce qu'il a froid."),
        ("le hibou voit la hache de le hérisson", "Le hibou voit la hache du hérisson."),
        ("la héroïne va à les États-Unis", "L'héroïne va aux États-Unis."),
        ("elle parle à le homme et à le hamster", "Elle parle à l'homme et au hamster."),
        ("les clés de les voisins", "Les clés des voisins."),
        ("il vient de Oslo, de Hongrie et de les Pays-Bas", "Il vient d'Oslo, de Hongrie et des Pays-Bas."),
        ("plus grand que elle", "Plus grand qu'elle."),
        ("il a besoin de onze pommes", "Il a besoin de onze pommes."),
        ("il n'y a pas de œuf", "Il n'y a pas d'œuf."),
    ],
)
def test_elision_and_contraction(raw, spelled):
    assert french(raw) == spelled


def test_h_aspire():
    assert [w for w in "homme hibou hôtel hache héroïne hérisson haricot huître onze œuf yaourt".split() if before_vowel(w)] == [
        "homme", "hôtel", "héroïne", "huître", "œuf",
    ]  # fmt: skip


def test_a_and_an():
    assert english("a owl has a old uniform, a umbrella and a useful egg") == (
        "An owl has an old uniform, an umbrella and a useful egg."
    )


@pytest.mark.parametrize(
    ("phrase", "fr", "en"),
    [
        (the("chat", before=["petit"], after=["noir"], plural=True), "les petits chats noirs", "the small black cats"),
        (the("voiture", UN, before=["vieux"], after=["vert"]), "une vieille voiture verte", "a old green car"),
        (the("oiseau", THIS, before=["beau"]), "ce bel oiseau", "this beautiful bird"),
        (the("oiseau", THIS), "cet oiseau", "this bird"),
        (the("hibou", THIS), "ce hibou", "this owl"),
        (the("homme", UN, before=["vieux"]), "un vieil homme", "a old man"),
        (the("uniforme", LE, before=["nouveau"], after=["gris"]), "le nouvel uniforme gris", "the new grey uniform"),
        (the("hôtel", UN, before=["vieux"], plural=True), "de vieux hôtels", "some old hotels"),
        (the("amie", MY), "mon amie", "my friend"),
        (the("échelle", YOUR, before=["joli"]), "ta jolie échelle", "your pretty ladder"),
        (the("hache", MY), "ma hache", "my axe"),
        (the("cheval", UN, plural=True), "des chevaux", "some horses"),
        (the("oie", LE, after=["blanc"], plural=True), "les oies blanches", "the white geese"),
        (the("robe", THIS, after=["orange"], plural=True), "ces robes orange", "these orange dresses"),
    ],
)
def test_agreement_and_order_in_a_noun_phrase(phrase, fr, en):
    assert (phrase.fr, phrase.en) == (fr, en)


JE, TU, IL, ELLE, NOUS, ILS, ELLES = (SUBJECTS[word] for word in "je tu il elle nous ils elles".split())
MARIE, PAUL = SUBJECTS["Marie"], SUBJECTS["Paul"]
HIER, NEVER = Pair("hier", "yesterday"), Pair("jamais", "never")
CHAT = the("chat")


@pytest.mark.parametrize(
    ("parts", "mark", "fr", "en"),
    [
        (present.not_present(JE, verb("voir"), the("chat", after=["noir"], plural=True)), ".", "Je ne vois pas les chats noirs.", "I do not see the black cats."),
        (present.present(MARIE, verb("lire"), the("journal")), ".", "Marie lit le journal.", "Marie is reading the newspaper."),
        (present.not_present(NOUS, verb("manger"), some("pain", "bread", "m")), ".", "Nous ne mangeons pas de pain.", "We are not eating any bread."),
        (present.present(ILS, verb("boire"), some("eau", "water", "f")), ".", "Ils boivent de l'eau.", "They are drinking some water."),
        (present.no_longer_or_never(IL, verb("acheter"), the("orange", UN, plural=True), Pair("plus", "no longer")), ".", "Il n'achète plus d'oranges.", "He no longer buys oranges."),
        (present.no_longer_or_never(ELLE, verb("porter"), the("veste", UN), NEVER), ".", "Elle ne porte jamais de veste.", "She never wears a jacket."),
        (present.nothing(JE, verb("voir"), Pair("rien", "nothing"), SITES[0]), ".", "Je ne vois rien au marché.", "I see nothing at the market."),
        (present.often(JE, verb("manger"), the("pomme", UN, plural=True), Pair("souvent", "often")), ".", "Je mange souvent des pommes.", "I often eat apples."),
        (questions.question(TU, verb("voir"), CHAT), "?", "Vois-tu le chat ?", "Do you see the cat?"),
        (questions.question_have(IL, the("chien", UN)), "?", "A-t-il un chien ?", "Does he have a dog?"),
        (questions.question(ELLE, verb("manger"), the("pomme", UN)), "?", "Mange-t-elle une pomme ?", "Is she eating an apple?"),
        (questions.question(PAUL, verb("prendre"), the("sac")), "?", "Paul prend-il le sac ?", "Is Paul taking the bag?"),
        (questions.question_est_ce_que(ILS, verb("vouloir"), the("hache")), "?", "Est-ce qu'ils veulent la hache ?", "Do they want the axe?"),
        (questions.where_are_those(verb("acheter"), the("pomme", plural=True), TU, NOTHING), "?", "Où sont les pommes que tu as achetées ?", "Where are the apples that you bought?"),
        (past.past(JE, verb("écrire"), the("lettre", UN), HIER), ".", "J'ai écrit une lettre hier.", "I wrote a letter yesterday."),
        (past.not_past(IL, verb("acheter"), some("pain", "bread", "m"), NOTHING), ".", "Il n'a pas acheté de pain.", "He did not buy any bread."),
        (past.never_or_already(ELLE, verb("lire"), the("livre", THIS), NEVER), ".", "Elle n'a jamais lu ce livre.", "She has never read this book."),
        (past.arrived(ELLE, verb("arriver"), HIER, NOTHING), ".", "Elle est arrivée hier.", "She arrived yesterday."),
        (past.went(ELLES, VERBS["move"][0], COUNTRIES[13], HIER), ".", "Elles sont allées aux États-Unis hier.", "They went to the United States yesterday."),
        (past.did_they_arrive(MARIE, verb("partir"), HIER), "?", "Marie est-elle partie hier ?", "Did Marie leave yesterday?"),
        (past.used_to(ELLES, verb("habiter"), COUNTRIES[0], YOUTH[1]), ".", "Quand elles étaient jeunes, elles habitaient en France.", "When they were young, they used to live in France."),
        (past.used_to(JE, verb("habiter"), COUNTRIES[0], YOUTH[0]), ".", "Quand j'étais petit, j'habitais en France.", "When I was little, I used to live in France."),
        (clauses.has_just(PAUL, verb("ouvrir"), the("livre")), ".", "Paul vient d'ouvrir le livre.", "Paul has just opened the book."),
        (clauses.wants_can_must(verb("pouvoir"), TU, verb("lire"), the("livre", THIS), NOT), ".", "Tu ne peux pas lire ce livre.", "You cannot read this book."),
        (clauses.wants_can_must(verb("devoir"), ELLE, verb("lire"), the("livre"), NOTHING), ".", "Elle doit lire le livre.", "She has to read the book."),
        (before_verb.helps_them(IL, verb("écouter"), Pair("les", "them"), NEVER), ".", "Il ne les écoute jamais.", "He never listens to them."),
        (before_verb.helped_them(IL, verb("attendre"), Pair("nous", "us"), HIER, NOTHING), ".", "Il nous a attendus hier.", "He waited for us yesterday."),
        (before_verb.looks_for_but_does_not_see(MARIE, the("sœur", MY), ("him", "her")), ".", "Marie cherche ma sœur, mais elle ne la voit pas.", "Marie is looking for my sister, but she does not see her."),
        (before_verb.looks_for_but_does_not_see(JE, the("clé", MY), ("it", "it")), ".", "Je cherche ma clé, mais je ne la vois pas.", "I am looking for my key, but I do not see it."),
        (reflexives.got_up(ELLE, VERBS["reflexive"][0], Pair("six heures", "six o'clock"), HIER), ".", "Elle s'est levée à six heures hier.", "She got up at six o'clock yesterday."),
        (being.person_compared(MARIE, Phrase("elle", "her", 2, "f"), TRAITS[0], Pair("plus", "more")), ".", "Marie est plus grande qu'elle.", "Marie is taller than her."),
        (being.better(the("poire", THIS), the("pomme", YOUR)), ".", "Cette poire est meilleure que ta pomme.", "This pear is better than your apple."),
        (being.needs(JE, the("marteau")), ".", "J'ai besoin du marteau.", "I need the hammer."),
        (numbers.age(ELLE, 21), ".", "Elle a vingt et un ans.", "She is twenty-one years old."),
        (numbers.counts(ELLE, AVOIR, 21, NOUNS["pet"][7]), ".", "Elle a vingt et une poules.", "She has twenty-one hens."),
        (places.comes_from(ELLE, COUNTRIES[8], NOTHING), ".", "Elle vient du Japon.", "She comes from Japan."),
        (places.comes_from(ELLE, COUNTRIES[1], NOT), ".", "Elle ne vient pas d'Italie.", "She does not come from Italy."),
    ],
)  # fmt: skip
def test_exact_pairs(parts, mark, fr, en):
    assert written(parts, mark) == (fr, en)


@pytest.mark.parametrize(
    ("n", "fr", "en"),
    [
        (0, "zéro", "zero"), (1, "un", "one"), (16, "seize", "sixteen"), (17, "dix-sept", "seventeen"), (21, "vingt et un", "twenty-one"),
        (22, "vingt-deux", "twenty-two"), (60, "soixante", "sixty"), (70, "soixante-dix", "seventy"), (71, "soixante et onze", "seventy-one"),
        (79, "soixante-dix-neuf", "seventy-nine"), (80, "quatre-vingts", "eighty"), (81, "quatre-vingt-un", "eighty-one"),
        (91, "quatre-vingt-onze", "ninety-one"), (99, "quatre-vingt-dix-neuf", "ninety-nine"),
    ],
)  # fmt: skip
def test_numbers(n, fr, en):
    assert (french_number(n), english_number(n)) == (fr, en)


def test_numbers_agree_with_a_feminine_noun():
    assert [french_number(n, "f") for n in (1, 11, 61, 71, 81, 91)] == [
        "une", "onze", "soixante et une", "soixante et onze", "quatre-vingt-une", "quatre-vingt-onze",
    ]  # fmt: skip


def test_numbers_differ():
    assert len({french_number(n) for n in range(100)}) == len({english_number(n) for n in range(100)}) == 100


def test_possession(pairs):
    assert possessive("my brothers", True) == "my brothers'"
    assert possessive("the children", True) == "the children's"
    owned = [(fr, en) for fr, en in pairs if fr.startswith("C'est ") and fr.endswith(" du professeur.")]
    assert owned
    assert all(en.startswith("This is the teacher's ") for _, en in owned)


# The forms of words


@pytest.mark.parametrize(
    ("infinitive", "present", "participle"),
    [
        ("manger", "mange manges mange mangeons mangez mangent", "mangé"),
        ("acheter", "achète achètes achète achetons achetez achètent", "acheté"),
        ("préférer", "préfère préfères préfère préférons préférez préfèrent", "préféré"),
        ("protéger", "protège protèges protège protégeons protégez protègent", "protégé"),
        ("essayer", "essaie essaies essaie essayons essayez essaient", "essayé"),
        ("appeler", "appelle appelles appelle appelons appelez appellent", "appelé"),
        ("chercher", "cherche cherches cherche cherchons cherchez cherchent", "cherché"),
        ("finir", "finis finis finit finissons finissez finissent", "fini"),
        ("vendre", "vends vends vend vendons vendez vendent", "vendu"),
        ("boire", "bois bois boit buvons buvez boivent", "bu"),
    ],
)
def test_french_verbs(infinitive, present, participle):
    assert french_forms(infinitive) == (tuple(present.split()), participle)


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        ("look", "looks looked looked looking"), ("wash", "washes washed washed washing"), ("share", "shares shared shared sharing"),
        ("try", "tries tried tried trying"), ("play", "plays played played playing"), ("travel", "travels travelled travelled travelling"),
        ("see", "sees saw seen seeing"), ("go", "goes went gone going"), ("have", "has had had having"), ("put", "puts put put putting"),
    ],
)  # fmt: skip
def test_english_verbs(base, forms):
    assert english_forms(base) == tuple(forms.split())


def test_plurals_and_feminines():
    assert [french_plural(word) for word in "chat gris château cheval bijou clou".split()] == (
        "chats gris châteaux chevaux bijoux clous".split()
    )
    assert [with_s(word) for word in "cat church box lady key tomato child sheep".split()] == (
        "cats churches boxes ladies keys tomatoes children sheep".split()
    )
    assert [feminine(word) for word in "noir rouge âgé curieux léger inquiet".split()] == (
        "noire rouge âgée curieuse légère inquiète".split()
    )


# The numbering of sentences


def test_a_product_has_each_combination_once():
    product = Product(lambda *chosen: chosen, "ab", range(3), "xy")
    assert len(product) == 12
    assert len({product[n] for n in range(12)}) == 12


def test_what_fits_together_is_chosen_together():
    product = Product(lambda *chosen: chosen, "ab", [Together(1, 2), Together(3, 4)])
    assert {product[n] for n in range(4)} == {("a", 1, 2), ("b", 1, 2), ("a", 3, 4), ("b", 3, 4)}


def test_an_either_shares_evenly_and_gives_what_it_has():
    small, large = range(3), range(100, 200)
    drawn = draw(Either(small, large), 10, np.random.default_rng(0))
    assert sorted(drawn)[:3] == [0, 1, 2]
    assert len(set(drawn)) == 10
    assert sorted(draw(Either(small, large), 103, np.random.default_rng(0))) == [*small, *large]
    halves = draw(Either(range(1000), range(1000, 10**6)), 1000, np.random.default_rng(0))
    assert sum(n < 1000 for n in halves) == 500


def test_a_slot_of_either_is_multiplied_out():
    both = each(lambda *chosen: chosen, Either("a", "bc"), "xy")
    assert isinstance(both, Either)
    assert (size(both), sorted(draw(both, 6, np.random.default_rng(0)))[0]) == (6, ("a", "x"))
