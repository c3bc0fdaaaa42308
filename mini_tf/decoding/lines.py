"""Translate lines of French into lines of English, with a trained translator."""

from collections.abc import Callable, Iterable

from mini_tf.decoding.beam import translations
from mini_tf.errors import UserError
from mini_tf.models.translation_model import TranslationModel
from mini_tf.text.sentences import SOS, SentenceVocabulary, join_sentence, split_sentence, unknown_said
from mini_tf.types import PathLike

import numpy as np

Vocabularies = tuple[SentenceVocabulary, SentenceVocabulary]             # of French, of English


def translate_lines(
    model: TranslationModel, vocabularies: Vocabularies, lines: Iterable[str], beam: int = 5,
    length_penalty: float = 0.0, note: Callable[[str], None] = lambda line: None, first: int = 1,
) -> list[str]:  # fmt: skip
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
        note(unknown_said(unknown))
    for number, words in enumerate(sentences, first):
        if not words:
            note(f"line {number} is empty: there is nothing to translate")
        elif len(words) > model.T:
            raise UserError(f"line {number} has {len(words)} words, expected at most T = {model.T}, the most that this "
                            "model can read; split it into shorter sentences")  # fmt: skip
    found = translations(model, [french.encode(words) for words in sentences], beam, length_penalty)
    return [join_sentence(english.decode(hypothesis.words), english.names) for hypothesis in found]


def save_attention(
    path: PathLike, model: TranslationModel, vocabularies: Vocabularies, french_line: str, english_line: str
) -> None:
    """A picture of what each word attends to, while the model reads a French sentence and writes an English one.

    Raises UserError for a sentence without words, and for a model without attention.
    """
    from mini_tf.training.figures import draw_attention, save_figure  # here, because it loads Matplotlib

    french, english = vocabularies
    source, target = split_sentence(french_line, "french"), split_sentence(english_line, "english")
    if not source:
        raise UserError("there is no attention to draw in a sentence without words")
    ids = np.array([SOS, *english.encode(target)])[: model.T]            # a translation that did not end has T words
    weights = model.attention_weights(french.encode(source), ids)
    if not weights:
        raise UserError("there is no attention to draw: this model was trained with attention=none; train one with "
                        "--set attention=additive")  # fmt: skip
    save_figure(path, draw_attention(weights, source, [english.words[i] for i in ids]))
