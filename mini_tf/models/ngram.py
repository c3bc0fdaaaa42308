"""Language models that count: the Markov chain, and n-gram models of orders 1 to 7.

An n-gram of order K is K words in a row. Let h be the K − 1 words before a word w, and h′ be h without its first word.
Every smoothing in this file can then be written as

    p_K(w | h) = share(hw) + rest(h)·p_{K−1}(w | h′),     p_0(w) = 1/c unless given,     Σ_w share(hw) + rest(h) = 1

where share(hw) is 0 for an n-gram that never occurs in the training text, and rest(h) is 1 for a history that never
occurs: the model backs off to h′. In this file, `count_grams` counts, the functions of SMOOTHINGS turn counts into
share and rest, and NGramModel looks them up.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from mini_tf.checks import check_whole, is_number
from mini_tf.errors import UserError
from mini_tf.metrics import checked_ids
from mini_tf.models.options import check_choice, check_sizes
from mini_tf.models.text_model import TextModel, checked_text
from mini_tf.types import Array, Progress

import numpy as np
from numpy.typing import ArrayLike

ORDERS = range(1, 8)
LEAST = 1e-6                     # the least discount, k and α: with smaller ones, probabilities might underflow to 0
UNSEEN = -1                      # the number of a gram that never occurs; as an index, it picks the last entry
SharesAndRests = Iterator[tuple[Array, Array]]           # (share, rest) of orders 1, 2, …


def markov_chain(sequences: Iterable[ArrayLike], size: int) -> tuple[Array, Array]:
    """(π, A), the maximum likelihood estimates of a Markov chain over the states 0 … size − 1

    π_s = sequences that start in s / sequences,      A_ss′ = transitions from s to s′ / transitions from s

    sequences: an iterable of integer arrays  →  π (size,), A (size, size). The row of a state that is never left, for
    which maximum likelihood gives 0/0, is uniform.
    Raises UserError when there is no sequence, an empty one, or a state outside 0 … size − 1.
    Source: CSCI 567 lecture 8; CS685, n-gram models. In the last line of the lecture's log-likelihood a bare π is
    superfluous: the term with ln π is there already. Lab 01 shows what it would do.
    """
    check_sizes(size=size)
    starts, transitions = np.zeros(size), np.zeros((size, size))
    for sequence in sequences:
        sequence = checked_ids(sequence, size, "markov_chain")
        if len(sequence) == 0:
            raise UserError("markov_chain: a sequence is empty, expected at least one state in each")
        starts[sequence[0]] += 1
        np.add.at(transitions, (sequence[:-1], sequence[1:]), 1)
    if not starts.any():
        raise UserError("markov_chain: there is no sequence, expected at least one")
    left = transitions.sum(1, keepdims=True)
    return starts / starts.sum(), np.divide(transitions, left, out=np.full((size, size), 1 / size), where=left > 0)


@dataclass
class Grams:
    """All distinct n-grams of order K of a text, sorted by their first K − 1 words, then by their last.

    A gram's number is its place among them. With key = c · number of the history, which has order K − 1, + last word,
    the grams that continue one history stand next to each other.
    """

    key: np.ndarray              # (G,) ascending
    count: np.ndarray            # (G,) how often each occurs
    shorter: np.ndarray          # (G,) the number, at order K − 1, of the gram without its first word
    history: np.ndarray          # (G,) the number, at order K − 1, of the gram without its last word
    histories: int               # the number of different grams of order K − 1

    def sums(self, values: Array) -> Array:
        """For each history, the sum of the values of the grams that continue it: (G,) → (histories,)"""
        return np.bincount(self.history, weights=values, minlength=self.histories)


def count_grams(ids: Array, order: int, size: int) -> list[Grams]:
    """The Grams of order 1, 2, … `order`, by sorting: a gram is the number of its history, one order lower, and a word.
    """
    grams, histories = [], 1
    before = np.zeros(len(ids) + 1, dtype=np.int64)      # before[t]: the number of the k − 1 words before word t
    for k in range(1, order + 1):
        key_at = before[k - 1 : -1] * size + ids[k - 1 :]            # of the gram that ends at each word
        key, first, count = np.unique(key_at, return_index=True, return_counts=True)
        grams.append(Grams(key, count, before[k:][first], key // size, histories))
        before = np.concatenate([np.full(k, UNSEEN), np.searchsorted(key, key_at)])
        histories = len(key)
    return grams


def maximum_likelihood(model: "NGramModel", grams: list[Grams]) -> SharesAndRests:
    """share = count(hw)/count(h),  rest = 0: what never followed h is impossible.  count(h) = Σ_w count(hw)

    Source: CSCI 567 lecture 8; CS685, n-gram models
    """
    for here in grams:
        yield discounted(here, here.count, discounts=np.zeros(len(here.key)))


def add_k(model: "NGramModel", grams: list[Grams]) -> SharesAndRests:
    """share = count(hw)/(count(h) + k·c),  rest = k·c/(count(h) + k·c):  (count(hw) + k)/(count(h) + k·c)

    The rest goes straight to p_0, which is 1/c unless given: the orders between are skipped. After an unseen history,
    p = p_0. k is δ in lab 01b.
    Source: CS685 (smoothing); Lidstone 1920
    """
    for here in grams[:-1]:
        yield np.zeros(len(here.key)), np.ones(here.histories)
    top = grams[-1]
    total = top.sums(top.count) + model.k * model.size
    yield top.count / total[top.history], model.k * model.size / total


def stupid_backoff(model: "NGramModel", grams: list[Grams]) -> SharesAndRests:
    """S(w | h) = count(hw)/count(h) if hw occurs, else α·S(w | h′);  p = S/Z with Z(h) = Σ_w S(w | h)

    The scores S are not probabilities; here they are divided by their sum Z, so that models can be compared:
    Z(h) = 1 + α·Z(h′)·(1 − Σ p_{K−1} of the words that follow h). Then rest = α·Z(h′)/Z(h). A word that does follow h
    should not get rest·p_{K−1} as well, so its share is smaller by that much.
    Source: Brants et al. 2007, aclanthology.org/D07-1090, α = 0.4
    """
    Z, shorter_history, lower = np.ones(1), np.zeros(1, dtype=np.int64), model.p_0[grams[0].key]
    for here, longer in zip(grams, [*grams[1:], None]):
        likelihood, at_end = discounted(here, here.count, np.zeros(len(here.key)))       # at_end: 1 if h is last
        left = model.backoff * Z[shorter_history] * (1 - here.sums(lower))
        Z_here = 1 + np.maximum(left, 0)                 # rounding takes it below 0 where all words follow h
        rest = np.where(at_end, 1, model.backoff * Z[shorter_history] / Z_here)
        p = likelihood / Z_here[here.history]
        yield p - rest[here.history] * lower, rest
        if longer is not None:
            Z, shorter_history, lower = Z_here, here.shorter, p[longer.shorter]      # lower (G,) p_{K−1}(w | h′)


def kneser_ney(model: "NGramModel", grams: list[Grams]) -> SharesAndRests:
    """share = (n(hw) − D)/n(h),  rest = D·(distinct words after h)/n(h):  D comes off each count and is passed down

    n is the count at the highest order; below it, the number of distinct words that precede the gram,
    |{v: vhw occurs}|: "Francisco" is frequent, but only after "San", and so unlikely elsewhere. n(h) = Σ_w n(hw).
    Source: Kneser, Ney 1995; interpolated by Chen, Goodman 1998, one D for all orders
    """
    yield from _discounted(grams, lambda n: np.array([0, 1, 1, 1]) * model.discount)


def modified_kneser_ney(model: "NGramModel", grams: list[Grams]) -> SharesAndRests:
    """Kneser-Ney with three discounts, for n = 1, 2, and 3 or more, estimated separately at each order

    With N_i the number of grams with n = i, and Y = N_1/(N_1 + 2·N_2):  D_i = i − (i + 1)·Y·N_{i+1}/N_i.
    Where that is not between 0 and i, because the text is too short, D_i is the model's `discount`.
    Source: Chen, Goodman 1998, Harvard TR-10-98
    """

    def discounts(n: Array) -> Array:
        N = np.bincount(np.minimum(n, 5), minlength=6)
        D = [0.0]
        for i in (1, 2, 3):
            estimate = i - (i + 1) * N[1] / (N[1] + 2 * N[2]) * N[i + 1] / N[i] if N[1] and N[i] else 0
            D.append(estimate if 0 < estimate <= i else model.discount)
        return np.array(D)

    yield from _discounted(grams, discounts)


def _discounted(grams: list[Grams], discounts: Callable[[Array], Array]) -> SharesAndRests:
    for here, longer in zip(grams, [*grams[1:], None]):
        n = here.count if longer is None else np.bincount(longer.shorter, minlength=len(here.key))
        yield discounted(here, n, discounts(n)[np.minimum(n, 3)])


def discounted(grams: Grams, n: Array, discounts: Array) -> tuple[Array, Array]:
    """share = (n − D)/n(h),   rest = Σ D/n(h),   n(h) = Σ n over the words after h;   if n(h) = 0: 0 and 1"""
    total = grams.sums(n)                                # (histories,)
    share = (n - discounts) / np.maximum(total, 1)[grams.history]
    return share, np.where(total > 0, grams.sums(discounts) / np.maximum(total, 1), 1)


SMOOTHINGS = {
    "maximum-likelihood": maximum_likelihood,
    "add-k": add_k,
    "stupid-backoff": stupid_backoff,
    "kneser-ney": kneser_ney,
    "modified-kneser-ney": modified_kneser_ney,
}


@dataclass
class Level:
    """share and rest of one order, each with an extra last entry for UNSEEN: share[−1] = 0 and rest[−1] = 1.

    key has an extra entry, too, which no gram has.
    """

    key: np.ndarray
    share: np.ndarray
    rest: np.ndarray

    def find(self, history: Array, word: Array, size: int) -> Array:
        """The numbers of the grams (history, word), UNSEEN for those that never occur."""
        key = history * size + word
        number = np.searchsorted(self.key[:-1], key)
        return np.where((history != UNSEEN) & (self.key[number] == key), number, UNSEEN)

    def following(self, history: int, size: int) -> tuple[Array, Array]:
        """(words, shares) of the grams that continue one history."""
        first, stop = np.searchsorted(self.key[:-1], [history * size, (history + 1) * size])
        return self.key[first:stop] - history * size, self.share[first:stop]


class NGramModel(TextModel):
    """p(w | the order − 1 words before it), from counts

    order      K, the words in a gram, the predicted one included: 1 (unigram) to 7
    size       c, the number of words in the vocabulary
    smoothing  "maximum-likelihood", "add-k", "stupid-backoff", "kneser-ney" or "modified-kneser-ney": see SMOOTHINGS
    discount   of Kneser-Ney, the same at every order, 0 < D ≤ 1
    k          of add-k
    backoff    α of stupid back-off
    p_0        (c,) the probability of each word before anything is counted, above 0; 1/c unless given

    Nothing stands before the first word: it is predicted by p_1, the second by p_2, and so on. After a history that
    never occurs, p is that of its longest ending that does (with add-k: p_0).
    Raises UserError for sizes that do not fit, an empty training text, and ids outside the vocabulary.
    Source: CS685 and CSCI 567 lecture 8, n-gram models
    """

    def __init__(
        self, order: int, size: int, smoothing: str = "kneser-ney", discount: float = 0.75, k: float = 1.0,
        backoff: float = 0.4, p_0: ArrayLike | None = None,
    ):  # fmt: skip
        check_whole(ORDERS[0], ORDERS[-1], order=order)
        check_choice("smoothing", smoothing, SMOOTHINGS)
        check_sizes(size=size)
        for name, value, most in (("discount", discount, 1), ("k", k, 1e6), ("backoff", backoff, 1)):
            if not is_number(value) or not LEAST <= value <= most:
                raise UserError(f"{name} is {value!r}, expected a number from {LEAST} to {most:g}: at 0, words that "
                                "were not seen would be impossible")  # fmt: skip
        self.order: int = int(order)
        self.size: int = int(size)
        self.T: int = self.order - 1                     # words of a history that count
        self.c: int = self.size                          # words of the vocabulary
        self.smoothing = smoothing
        self.discount = discount
        self.k = k
        self.backoff = backoff
        self.p_0: Array = np.full(self.size, 1 / size) if p_0 is None else np.asarray(p_0, dtype=np.float64)
        if self.p_0.shape != (size,) or not (self.p_0 > 0).all() or not np.isclose(self.p_0.sum(), 1):
            raise UserError(f"p_0 has shape {self.p_0.shape}, least entry {self.p_0.min()} and sum {self.p_0.sum()}; "
                            f"expected {size} probabilities above 0 that sum to 1")  # fmt: skip
        self.levels: list[Level] = []                    # filled by fit

    def __repr__(self) -> str:
        counted = f", {sum(self.grams):,} grams counted" if self.levels else ", nothing counted yet"
        return f"NGramModel(order={self.order}, size={self.size:,}, smoothing={self.smoothing!r}){counted}"

    @property
    def grams(self) -> list[int]:
        """The number of distinct grams of each order, 1 to `order`, in the training text."""
        return [len(level.key) - 1 for level in self._fitted()]

    def fit(self, ids: ArrayLike) -> Self:
        """Count the training text (words,) of ids; returns the model itself."""
        ids = checked_ids(ids, self.size, "fit")
        if not len(ids):
            raise UserError("fit: the training text is empty, expected at least one word")
        grams = count_grams(ids, self.order, self.size)
        self.levels = [
            Level(np.append(here.key, UNSEEN), np.append(share, 0), np.append(rest, 1))
            for here, (share, rest) in zip(grams, SMOOTHINGS[self.smoothing](self, grams))
        ]
        return self

    def log_probabilities(self, ids: ArrayLike, start: int = 0, on_batch: Progress = None) -> Array:
        """ln p of each word from `start` on, given the words before it:  ids (words,) → (words − start,)

        Raises UserError when a probability is 0, which maximum likelihood alone can give.
        """
        ids, start = checked_text(ids, self.size, start)
        first = max(start - self.T, 0)
        p = self.p_0[ids[first:]]
        for level, history, number in self._look_up(ids[first:]):
            p = level.share[number] + level.rest[history] * p
        p = p[start - first :]
        impossible = np.flatnonzero(p == 0)
        if impossible.size:
            raise UserError(
                f"log_probabilities: {impossible.size:,} of {p.size:,} words have probability 0, the first is word "
                f"{start + impossible[0]}; they did not follow their history in training. Try smoothing='kneser-ney'"
            )
        return np.log(p)

    def matched(self, ids: ArrayLike, start: int = 0) -> Array:
        """The length in words of the longest known gram that ends at each word: 0 (the word is new) to `order`."""
        ids, start = checked_text(ids, self.size, start, "matched")
        return np.sum([number != UNSEEN for _, _, number in self._look_up(ids)], axis=0)[start:]

    def logits(self, ids: Iterable[ArrayLike]) -> Array:
        """ln p of all c words after histories (B, words) of any length, of which the last order − 1 matter:  (B, c)"""
        with np.errstate(divide="ignore"):               # ln 0 = −∞, by maximum likelihood
            return np.log([self._distribution(history) for history in ids])

    def _distribution(self, history: ArrayLike) -> Array:
        history = checked_ids(history, self.size, "logits")
        p = self.p_0
        recent = history[max(len(history) - self.T, 0) :]
        numbers = [number for _, _, number in self._look_up(recent)][: len(recent)]
        known = [0, *(int(number[-1]) for number in numbers)]        # the numbers of the last 0, 1, … words
        for level, last in zip(self.levels, known):
            if last == UNSEEN:
                break
            words, shares = level.following(last, self.size)
            p = level.rest[last] * p
            p[words] += shares
        return p

    def _look_up(self, ids: Array) -> Iterator[tuple["Level", Array, Array]]:
        """For k = 1, …, order: (level, the number of the k − 1 words before each word, of the k words up to it)."""
        before = np.zeros(len(ids), dtype=np.int64)
        for level in self._fitted():
            number = level.find(before, ids, self.size)
            yield level, before, number
            before = np.concatenate([[UNSEEN], number])[: len(ids)]

    def _fitted(self) -> "list[Level]":
        if not self.levels:
            raise UserError("this NGramModel has counted nothing yet; call fit(ids) with a training text first")
        return self.levels
