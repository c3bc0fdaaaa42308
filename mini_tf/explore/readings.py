"""Readings: a model with a text to read, so that it has a loss, and the meaning of its arrays' axes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mini_tf import ops
from mini_tf.backend import to_host
from mini_tf.decoding.beam import translations
from mini_tf.errors import UserError, counted
from mini_tf.explore.arrays import Axes
from mini_tf.kernels import reference_only
from mini_tf.layers import Layer, MultiHeadAttention, TransformerLayer
from mini_tf.layers.embedding import ABSENT
from mini_tf.models import Classifier, MaskedWordModel, TextModel, TranslationModel
from mini_tf.models.masked import MASK, MaskedBatch
from mini_tf.models.saved import SavedModel
from mini_tf.ops.op import watching
from mini_tf.text import Vocabulary
from mini_tf.text.sentences import SentenceVocabulary, split_sentence
from mini_tf.text.tokens import join
from mini_tf.trace import trace
from mini_tf.training.pair_batches import sentence_batch
from mini_tf.training.text_batches import TextBatch
from mini_tf.types import Array

import numpy as np

SHOWN_WORDS = 48         # of a vocabulary
BREAKS = {"\n": "⏎"}

Moments = list[tuple[str, dict[str, Array]]]             # of a training: (label, {name of a parameter: its data})


@dataclass
class Reading:
    """A model with a batch that has one text in it.

    words      what it reads, a label for each row;  asked: what it is to predict
    axes       of its arrays;  text: what it reads, as it is written
    notes      sentences about what was left out
    """

    model: Any
    batch: Any
    words: list[str]
    asked: list[str]
    axes: Axes
    notes: list[str] = field(default_factory=list)
    text: str = ""

    def run(self, on_backward: Callable[[], None] = lambda: None) -> float:
        """The loss, after its backward has run; on_backward is called between the two. The formulas run, no twins."""
        self.model.clear_gradients()
        with reference_only():
            loss, backward = self.model.loss(self.batch)
            on_backward()
            backward()
        return float(loss)


def reading(
    model: SavedModel, vocabulary: Vocabulary | tuple[SentenceVocabulary, SentenceVocabulary], text: str
) -> Reading:
    """The Reading of a text by a model. Raises UserError for a text without words that the model knows."""
    if isinstance(model, TranslationModel):
        return _translated(model, vocabulary, text)
    if isinstance(model, Classifier):
        return _classified(model, vocabulary, text)
    words, notes = _known_words(text, vocabulary)
    if isinstance(model, MaskedWordModel):
        return _masked_word(model, vocabulary, words, notes)
    if isinstance(model, TextModel) and hasattr(model, "loss"):
        return _next_word(model, vocabulary, words, notes)
    raise UserError(f"a {type(model).__name__} has no backward to look at; name a run of a model trained by gradients")


@contextmanager
def parameters_set(model: Layer, parameters: dict[str, Array]) -> Iterator[None]:
    """Inside the block, the model has these parameters, {name: data}; it may change them, too."""
    before = {name: p.data for name, p in model.parameters().items()}
    try:
        for name, p in model.parameters().items():
            p.data = parameters[name]
        yield
    finally:
        for name, p in model.parameters().items():
            p.data = before[name]


def of_batch(model: Layer, batch: Any, words: Sequence[str] = ()) -> Reading:
    """The Reading of a batch that the caller made. words: labels for its rows"""
    axes = _axes(model, {"word": list(words)} if words else {})
    return Reading(model, batch, list(words), [], axes)


def _next_word(model, vocabulary, words, notes):
    if len(words) < 2:
        left_out = f" ({notes[0]})" if notes else ""
        raise UserError(
            f"the text has {len(words)} known {vocabulary.unit}, expected 2{left_out}: each is predicted from those "
            "before it"
        )
    if len(words) > model.T + 1:
        notes.append(f"The text has {len(words)} {vocabulary.unit}s and is cut: it reads T = {model.T}, and predicts "
                     "one more.")  # fmt: skip
    words = words[: model.T + 1]
    ids, text = vocabulary.encode(words), vocabulary.join(words).strip("\n")
    missing = model.T + 1 - len(ids)
    after_each = getattr(model, "readout", "shared") == "shared" or not isinstance(model.readout, str)
    if missing and after_each:                           # a model that predicts after each word reads short windows
        model.T = len(ids) - 1                           # it is this reading's own
    elif missing:
        ids = np.concatenate([np.full(missing, ABSENT), ids])
        words = ["·"] * missing + words
        notes.append(f"The text is {counted(missing, 'word')} shorter than T = {model.T}: absent ones, ·, come first.")
    window, shown = ids[None].astype(np.int64), _labels(words)
    labels = {"word": shown[:-1], "vocabulary": _labels(vocabulary.words)}
    axes = _axes(model, labels, _likely(model, window, ids))
    return Reading(model, window, shown[:-1], shown[1:], axes, notes, text)


def _classified(model, vocabulary, text):
    words, ids, notes = _encoded(text, "english", vocabulary, model.T)
    label = int(np.asarray(to_host(model.logits(ids[None]))).argmax())
    notes.append(f"The loss is −ln p of the class that the model finds most probable: {vocabulary.classes[label]}.")
    labels = {"word": _labels(words), "vocabulary": _labels(vocabulary.words), "class": list(vocabulary.classes)}
    batch, asked = TextBatch(ids[None], np.array([label])), [vocabulary.classes[label]]
    return Reading(model, batch, _labels(words), asked, _axes(model, labels, ids), notes, join(words))


def _masked_word(model, vocabulary, words, notes):
    words = [word for word in words if word != "[MASK]"][: model.T - 1] + ["\n"]
    candidates = [i for i, word in enumerate(words) if word.isalpha()]
    if not candidates:
        raise UserError("the text has no word to hide, expected at least one that the model knows")
    hidden = max(candidates, key=lambda i: len(words[i]))
    ids = vocabulary.encode(words)[None]
    targets = np.full_like(ids, ABSENT)
    targets[0, hidden] = ids[0, hidden]
    read = ids.copy()
    read[0, hidden] = MASK
    notes.append(f"The longest word, {words[hidden]!r}, is hidden, and the model is to find it.")
    shown = _labels(words)
    axes = _axes(model, {"word": shown, "vocabulary": _labels(vocabulary.words)}, ids[0])
    return Reading(model, MaskedBatch(read, targets), shown, [shown[hidden]], axes, notes, join(words).strip("\n"))


def _translated(model, vocabularies, text):
    french, english = vocabularies
    source, ids, notes = _encoded(text, "french", french, model.T)
    target = translations(model, [ids], 5, 0.0)[0].words
    target = [i for i in np.asarray(target).tolist() if i > 1][: model.T - 1]        # [SOS] is one of T
    written = [english.words[i] for i in target]
    said = " ".join(written) or "nothing at all, only its end"
    notes.append(f"The loss is that of the model's own translation: “{said}”.")
    batch = sentence_batch([ids], [np.array(target, dtype=np.int64)])
    labels = {"source word": source, "word": ["[SOS]", *written], "vocabulary": _labels(english.words)}
    axes = _axes(model, labels, np.array(target, dtype=np.int64))
    return Reading(model, batch, source, [*written, "[EOS]"], axes, notes, join(source))


def _encoded(text, language, vocabulary, T):
    """(words, their ids, notes) of a text, for a vocabulary that has [UNK]: at most T of them"""
    words, notes = split_sentence(text, language), []
    if not words:
        raise UserError(f"the text {text!r} has no words, expected at least one")
    if unknown := vocabulary.unknown(words):
        notes.append(f"Words that the model does not know, read as [UNK]: {', '.join(unknown[:10])}.")
    if len(words) > T:
        notes.append(f"The text has {len(words)} words; the model reads the first T = {T}.")
    return words[:T], vocabulary.encode(words[:T]), notes


def _known_words(text, vocabulary):
    """(the words of a text that a vocabulary knows, notes)"""
    words, notes = vocabulary.split(text.replace("\\n", "\n")), []
    if not words:
        raise UserError(f"the text {text!r} has no words, expected some, as in --text \"What, is Horatio there?\"")
    if unknown := vocabulary.unknown(words):
        shown = ", ".join(unknown[:10]) + (" …" if unknown[10:] else "")
        notes.append(f"Left out, because the model does not know them: {shown}.")
    words = [word for word in words if word in vocabulary]
    if not words:
        raise UserError(f"the model knows no word of {text[:60]!r}; use words of the text that it learned from")
    return words, notes


def _axes(model, labels, likely=()):
    """The Axes of a model's arrays. Sizes that occur twice stay without a name."""
    attentions = [one for _, one in model.members() if isinstance(one, MultiHeadAttention)]
    sizes, clash = {}, {one.m for one in attentions}     # sizes that say nothing of what an axis is
    for name, p in model.parameters().items():
        first = 1 if name.endswith(("table", "positions.P")) else 0      # their first axis is words, or positions
        clash |= set(p.data.shape[first:])
    clash -= {len(labels.get("vocabulary", ()))}
    for kind, names in labels.items():
        clash |= {len(names)} & sizes.keys()
        sizes[len(names)] = kind
    shown = {}
    vocabulary = labels.get("vocabulary", ())
    if len(vocabulary) > SHOWN_WORDS:
        chosen = list(dict.fromkeys(int(i) for i in likely))[:SHOWN_WORDS]
        chosen += [i for i in range(len(vocabulary)) if i not in set(chosen)][: SHOWN_WORDS - len(chosen)]
        shown["vocabulary"] = np.array(chosen)           # the text's words first, in their order
        labels = labels | {"vocabulary": {int(i): vocabulary[i] for i in shown["vocabulary"]}}
    tables = [p.data for name, p in model.parameters().items() if name.endswith("table")]
    return Axes(
        {size: kind for size, kind in sizes.items() if size not in clash}, labels, shown,
        attentions[0].H if attentions else 0, tables[0].shape[1] if tables else 0, len(labels.get("word", ())),
        attentions[0].m if attentions else 0,
    )  # fmt: skip


def _likely(model, window, ids):
    """Ids to show of the vocabulary: the words of the text, then those that the model finds most probable."""
    with reference_only():
        scores = np.asarray(to_host(model.logits(window[:, :-1])))[0]
    return [*(i for i in ids if i >= 0), *np.argsort(-scores)[:SHOWN_WORDS]]


def _labels(words):
    return [BREAKS.get(word, word) for word in words]


# Which word's loss sends gradient to which word ---------------------------------------------------------------------


def gradients_between_words(model: Any, batch: Any, words: Sequence[str]) -> list[tuple[str, Array]]:
    """[(label, norms)]: how much gradient each word's loss sends to each word, into each layer and out of the last.

    norms (rows, T): ‖∂loss_t/∂x_s‖, row t for the loss at word t; a single row if the text has one loss, or one that is
    no cross-entropy. The batch is repeated, and each copy has the loss of one word: one backward gives all rows. [] of
    models without layers, and for batches of more than one text.
    """
    T = len(words)
    if T < 2 or not isinstance(batch, np.ndarray) or len(batch) != 1:
        return []
    losses = _rows_of_loss(model, batch)
    copies = np.repeat(batch, T, axis=0) if losses == T else batch

    def one_word_each(op, run, *inputs, **options):
        if op is not ops.cross_entropy or losses != T:
            return run(*inputs, **options)
        logits, targets, *rest = inputs
        own = np.where(np.eye(T, dtype=bool), targets, ABSENT)
        return run(logits, own, ABSENT, *rest[1:], **options)

    with watching(one_word_each), trace() as calls:
        model.clear_gradients()
        _, backward = model.loss(copies)
        backward()
    model.clear_gradients()
    layers = [call for call in calls if isinstance(getattr(call.f, "__self__", None), TransformerLayer)
              and "." not in call.name and call.gradients is not None]               # fmt: skip
    found = [(f"into layer {number}", _norms(call.gradients, T)) for number, call in enumerate(layers, 1)]
    if layers:
        found.append((f"out of layer {len(layers)}", _norms(layers[-1].dy, T)))
    each = T if losses == T else 1                       # the model's loss is the mean of the words' losses
    return [(label, each * norms) for label, norms in found if norms is not None]


def _rows_of_loss(model, batch):
    """How many targets the model's cross-entropy has"""
    seen = []

    def watch(op, run, *inputs, **options):
        if op is ops.cross_entropy:
            seen.append(np.size(inputs[1]))
        return run(*inputs, **options)

    with watching(watch), reference_only():
        model.loss(batch)
    return seen[0] if len(seen) == 1 else 0


def _norms(gradient, T):
    gradient = to_host(gradient[0] if isinstance(gradient, tuple) else gradient)
    if gradient.ndim != 3 or gradient.shape[1] != T:
        return None
    return np.sqrt((gradient.astype(float) ** 2).sum(-1))
