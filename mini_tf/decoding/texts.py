"""Classify a text with a trained classifier; fill its gaps with a trained MaskedWordModel."""

import re
from collections.abc import Callable, Sequence

from mini_tf.checks import check_whole
from mini_tf.errors import UserError, counted
from mini_tf.metrics import confusion
from mini_tf.models.classifier import Classifier
from mini_tf.models.masked import MaskedWordModel
from mini_tf.models.saliency import Saliency, record_attention, saliency
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import split_sentence, unknown_said
from mini_tf.text.tokens import Vocabulary, join, tokenize
from mini_tf.types import Array, PathLike

import numpy as np

GAP = re.compile(r"_{2,}|\[MASK\]")                      # how a gap is written: ____


def classify_text(
    model: Classifier, vocabulary: ClassVocabulary, text: str, note: Callable[[str], None] = lambda line: None
) -> tuple[list[str], Saliency]:
    """(words, found): the words that the classifier reads, and their Saliency, which has the classes' probabilities.

    note: called with a sentence about words that the model does not know, and about a text that is too long
    Raises UserError for a text without words.
    """
    words = split_sentence(text, "english")
    if not words:
        raise UserError(f"the text {text!r} has no words, expected at least one")
    unknown = vocabulary.unknown(words)
    if unknown:
        note(unknown_said(unknown))
    if len(words) > model.T:
        note(f"the text has {len(words)} words; the model reads the first T = {model.T} of them")
    words = words[: model.T]
    return words, saliency(model, vocabulary.encode(words))


def classify_table(
    model: Classifier, vocabulary: ClassVocabulary, examples: Sequence[Sequence[str]],
    note: Callable[[str], None] = lambda line: None,
) -> Array:  # fmt: skip
    """The confusion matrix (classes, classes) of a classifier on (text, label) strings: rows are the true classes.

    Raises UserError for a text without words, and for a label that does not occur in training.
    """
    from mini_tf.training.classification import log_probabilities  # here, because it imports this module

    texts, labels = vocabulary.read_all(examples)
    long = sum(len(ids) > model.T for ids in texts)
    if long:
        note(f"{long:,} texts have more than T = {model.T} words; the model reads the first {model.T} of each")
    log_p = log_probabilities(model, [ids[: model.T] for ids in texts])
    return confusion(log_p.argmax(1), labels, model.classes)


def save_words(
    path: PathLike, model: Classifier, vocabulary: ClassVocabulary, words: list[str], found: Saliency
) -> None:
    """A picture of the attention that each word of a text receives, and of its saliency."""
    from mini_tf.training.figures import draw_words, save_figure  # here, because it loads Matplotlib

    attention = attention_received(model, vocabulary.encode(words))
    save_figure(path, draw_words(words, found, list(vocabulary.classes), attention))


def attention_received(model: Classifier, ids: Array) -> Array | None:
    """(T,) the attention that each word of a text receives, in the mean over layers, heads and words, or from [CLS]
    alone if there is one; None for a bag of words, which has no attention.
    """
    recorded = record_attention(lambda: model.logits(ids[None]))         # L times (1, H, T, T)
    if not recorded:
        return None
    weights = np.mean([A[0] for A in recorded], axis=(0, 1))                 # (T, T)
    return weights.mean(0) if model.cls is None else weights[0, 1:]


def best_words(
    model: MaskedWordModel, vocabulary: Vocabulary, ids: Array, place: int, most: int = 5
) -> list[tuple[str, float]]:
    """[(word, p), …]: the `most` most probable words at a place of a text ids (T,), given all others; `most` ≥ 1"""
    check_whole(most=most)
    log_p = model.log_probabilities(ids, place)
    best = np.argsort(-log_p, kind="stable")[: min(most, len(log_p) - 1)]        # [MASK] is no guess
    return [(vocabulary.words[i], float(np.exp(log_p[i]))) for i in best]


def fill_gaps(
    model: MaskedWordModel, vocabulary: Vocabulary, text: str, most: int = 5
) -> tuple[str, list[list[tuple[str, float]]]]:
    """(filled, gaps): the text with the most probable word in each gap, ____ or [MASK]; and `best_words` of each.

    Each gap is filled from the words given, none from a guess for another gap. A line break is added at the end,
    because the model learned from whole lines.
    Raises UserError for a text without a gap, with words that the model does not know, and of more than T words.
    """
    before, *pieces = (tokenize(piece) for piece in GAP.split(text.replace("\\n", "\n")))
    if not pieces:
        raise UserError(f"there is no gap in {text[:60]!r}: write ____ where a word is to be filled in")
    words, places = list(before), []
    for piece in pieces:
        places.append(len(words))
        words += ["[MASK]", *piece]
    if words[-1] != "\n":
        words.append("\n")
    if len(words) > model.T:
        raise UserError(f"the text has {len(words)} words, expected at most T = {model.T}, the most that this "
                        "model can read; give it the lines around the gap only")  # fmt: skip
    unknown = vocabulary.unknown(words)
    if unknown:
        raise UserError(f"the text that the model learned from lacks {counted(len(unknown), 'word')}: "
                        f"{', '.join(map(repr, unknown[:5]))}; choose others, or make gaps of them")  # fmt: skip
    ids = vocabulary.encode(words)
    gaps = [best_words(model, vocabulary, ids, place, most) for place in places]
    for place, guesses in zip(places, gaps):
        words[place] = guesses[0][0]
    return join(words).strip("\n"), gaps
