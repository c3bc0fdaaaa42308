"""Lines of French into lines of English, with a trained translator."""

from mini_tf.decoding.beam import translations
from mini_tf.errors import UserError
from mini_tf.files import replacing
from mini_tf.models.translator import attention_weights
from mini_tf.text.sentences import SOS, join_sentence, split_sentence

import numpy as np


def translate_lines(model, vocabularies, lines, beam=5, length_penalty=0.0, note=lambda line: None, first=1):
    """The English sentence for each French one: a list of strings. An empty line stays empty.

    vocabularies  the model's, of French and of English
    note          called with a sentence about words that the model does not know, and about empty lines
    first         the number of the first line, for messages
    Raises UserError for a sentence of more than the model's T words, by its line's number, and as `beam_search` does.
    """
    french, english = vocabularies
    sentences = [split_sentence(line, "french") for line in lines]
    unknown = list(dict.fromkeys(word for words in sentences for word in french.unknown(words)))
    if unknown:
        note(f"{len(unknown)} unknown word(s), read as [UNK]: {', '.join(unknown[:10])}{' …' if unknown[10:] else ''}")
    for number, words in enumerate(sentences, first):
        if not words:
            note(f"line {number} is empty: there is nothing to translate")
        elif len(words) > model.T:
            raise UserError(f"line {number} has {len(words)} words, expected at most T = {model.T}, the most that this "
                            "model can read; split it into shorter sentences")  # fmt: skip
    found = translations(model, [french.encode(words) for words in sentences], beam, length_penalty)
    return [join_sentence(english.decode(hypothesis.words), english.names) for hypothesis in found]


def save_attention(path, model, vocabularies, french_line, english_line):
    """A picture of what each word attends to, while the model reads a French sentence and writes an English one.

    Raises UserError for a sentence without words.
    """
    from mini_tf.training.figures import draw_attention

    french, english = vocabularies
    source, target = split_sentence(french_line, "french"), split_sentence(english_line, "english")
    if not source:
        raise UserError("there is no attention to draw in a sentence without words")
    ids = np.array([SOS, *english.encode(target)])
    weights = attention_weights(model, french.encode(source), ids)
    with replacing(path) as temporary:
        draw_attention(weights, source, [english.words[i] for i in ids]).savefig(temporary, dpi=120)
