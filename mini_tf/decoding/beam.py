"""Beam search: from scores of the next word to the most probable sentence that can be found."""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass

from mini_tf import ops
from mini_tf.backend import device_of
from mini_tf.checks import check_whole, is_number, shown
from mini_tf.cores import side_by_side
from mini_tf.errors import UserError
from mini_tf.metrics import no_nan
from mini_tf.models.translation_model import TranslationModel, Writer
from mini_tf.text.sentences import EOS, SOS, UNK, padded
from mini_tf.types import Array, Progress

import numpy as np


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that beam search found.

    words            their ids, without [SOS] and [EOS]
    log_probability  the sum of ln p of the words and of [EOS]
    ended            False if it had no [EOS] when the search ended
    score            what the search maximizes: log_probability / penalty(length)
    """

    words: np.ndarray
    log_probability: float
    ended: bool
    score: float


def beam_search(
    writer: Writer, beam: int, longest: int, length_penalty: float = 0.0, never: Collection[int] = (SOS, UNK)
) -> list[Hypothesis]:
    """The best sentence found for each source: a list of Hypotheses

    At each step, every live hypothesis is continued by every word, and the `beam` most probable continuations live on.
    One that ends with [EOS] becomes a final candidate, and the beam of its sentence shrinks by one. The best of all
    final and live hypotheses wins. With beam = 1 this is greedy decoding: always the most probable word.

    writer           model.writer(source). It has `sentences`, their number; read(words (B, k)) → logits (B, k, c), the
                     scores of what follows one more word of each hypothesis; choose(sentences (B′,), hypotheses
                     (B′, k′)), to continue with these only
    longest          the most words of a hypothesis, [EOS] included
    length_penalty   α ≥ 0: score = ln p / ((5 + length)/6)^α; with α = 0, the sum of logarithms favours short sentences
    never            words that are excluded: their probability counts as 0

    A sentence's search stops as soon as no live hypothesis can overtake the best final one: ln p only falls, so the
    best score that it can reach is the one it would have at `longest` without losing any more probability.
    Raises UserError unless 1 ≤ beam ≤ c, longest ≥ 1 and 0 ≤ length_penalty ≤ 10.
    Source: CMU 10-417 HW3a (the shrinking beam); Wu et al. 2016, arXiv:1609.08144, equation (14) (length penalty)
    """
    check_whole(beam=beam, longest=longest)
    if not is_number(length_penalty) or not 0 <= length_penalty <= 10:
        raise UserError(f"length_penalty is {shown(length_penalty)}, expected 0 to 10; 0.6 to 1 is usual")

    def penalty(length: int) -> float:
        return ((5 + length) / 6) ** length_penalty

    best = [Hypothesis(np.zeros(0, np.int64), -np.inf, False, -np.inf)] * writer.sentences
    sentence = np.arange(writer.sentences)               # (B,) those whose search goes on
    width = np.full(len(sentence), beam)                 # (B,) the beam of each, which shrinks
    log_p = np.zeros((len(sentence), 1))                 # (B, k) of its live hypotheses, k ≤ beam; −∞: there is none
    written = np.full((len(sentence), 1, 1), SOS)        # their words (B, k, length)

    for length in range(1, longest + 1):
        rows = np.arange(len(sentence))[:, None]
        parent, word, log_p = _continued(log_p, writer.read(written[:, :, -1]), beam, never)     # (B, up to beam)
        log_p[np.arange(log_p.shape[1]) >= width[:, None]] = -np.inf             # the best come first
        written = np.concatenate([written[rows, parent], word[:, :, None]], axis=2)

        ended = (word == EOS) & (log_p > -np.inf)
        candidates = ended if length < longest else log_p > -np.inf
        for b, i in np.argwhere(candidates):
            score = log_p[b, i] / penalty(length)
            if score > best[sentence[b]].score:
                words = written[b, i, 1 : length + 1 - ended[b, i]]
                best[sentence[b]] = Hypothesis(words, float(log_p[b, i]), bool(ended[b, i]), float(score))
        width = width - ended.sum(1)
        log_p[ended] = -np.inf

        reach = log_p.max(1) / penalty(longest)          # an upper bound on the scores of live hypotheses
        open_rows = np.flatnonzero(reach > [best[s].score for s in sentence])
        if not len(open_rows):
            break
        live = np.argsort(-log_p[open_rows], axis=1, kind="stable")[:, : width[open_rows].max()]
        open_live = open_rows[:, None], live
        writer.choose(open_rows, parent[open_live])
        log_p, written, sentence, width = log_p[open_live], written[open_live], sentence[open_rows], width[open_rows]
    return best


def _continued(log_p: Array, logits: Array, most: int, never: Collection[int]) -> tuple[Array, Array, Array]:
    """The `most` most probable continuations, by one word, of hypotheses with log_p (B, k) and logits (B, k, c).

    (parent, word, log_p), each (B, at most `most`), the best first: word follows the parent-th hypothesis.
    Raises UserError if there are fewer words than `most`.
    """
    B, k, c = logits.shape
    if most > c:
        raise UserError(f"beam search: beam = {most}, expected at most the size of the vocabulary, {c}")
    p, _ = ops.softmax(logits)
    p = no_nan(p)
    p[:, :, list(never)] = 0
    words = np.empty((B, k, most), np.int64)
    shares = np.empty((B, k, most))                      # their probabilities
    b, i = np.ogrid[:B, :k]
    for rank in range(most):                             # argmax, several times, is faster than sorting all c words
        words[:, :, rank] = p.argmax(-1)
        shares[:, :, rank] = p[b, i, words[:, :, rank]]
        p[b, i, words[:, :, rank]] = -1                  # not again
    with np.errstate(divide="ignore"):                   # ln 0 = −∞
        total = (log_p[:, :, None] + np.log(np.maximum(shares, 0))).reshape(B, k * most)
    order = np.argsort(-total, axis=1, kind="stable")[:, :most]
    word = np.take_along_axis(words.reshape(B, k * most), order, 1)
    return order // most, word, np.take_along_axis(total, order, 1)


def translations(
    model: TranslationModel, sources: Sequence[Array], beam: int = 1, length_penalty: float = 0.0, batch: int = 128,
    on_batch: Progress = None,
) -> list[Hypothesis]:  # fmt: skip
    """The Hypotheses that beam search finds for source sentences, a list of arrays of ids, in their order.

    Sentences of similar lengths are searched together, at most `batch` at a time, each batch on a core of its own; a
    sentence's translation does not depend on the others. An empty sentence has an empty translation.
    on_batch(done, of) is called after each batch.
    Raises UserError for a sentence longer than the model's T, a batch below 1, and as `beam_search` does.
    """
    check_whole(batch=batch)
    long = next((ids for ids in sources if len(ids) > model.T), None)
    if long is not None:
        raise UserError(f"a sentence has {len(long)} words, expected at most T = {model.T}, the most that this model "
                        "can read; split it into shorter sentences")  # fmt: skip

    def search(batch: list[int]) -> list[Hypothesis]:
        writer = model.writer(padded([sources[k] for k in batch]))
        return beam_search(writer, beam, model.T, length_penalty)

    found = [Hypothesis(np.zeros(0, np.int64), 0.0, True, 0.0)] * len(sources)
    order = sorted((k for k in range(len(sources)) if len(sources[k])), key=lambda k: len(sources[k]))
    batches = [order[first : first + batch] for first in range(0, len(order), batch)]
    done = 0
    device = device_of(next(iter(model.parameters().values())).data)
    with closing(side_by_side(search, batches, device)) as results:
        for indices, hypotheses in zip(batches, results, strict=True):
            for k, hypothesis in zip(indices, hypotheses):
                found[k] = hypothesis
            done += len(indices)
            if on_batch:
                on_batch(done, len(order))
    return found
