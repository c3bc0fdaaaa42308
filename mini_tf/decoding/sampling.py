"""Choosing the next word, and writing word by word.

Source: ESE-2000 Lab 6, Model Sampling (Task 6.8) and Language Generation (Task 6.9)
"""

import sys
from collections.abc import Callable, Iterator

from mini_tf import ops
from mini_tf.checks import check_rng, check_whole, is_number, shown
from mini_tf.errors import UserError
from mini_tf.metrics import checked_ids, no_nan, shifted_logits
from mini_tf.models.text_model import TextModel
from mini_tf.types import Array

import numpy as np
from numpy.typing import ArrayLike


def greedy(logits: Array) -> Array:
    """ê = argmax_i π(e_i | X), the most probable word;  logits (…, c) → ids (…)

    Best for predicting one word; a text written this way soon repeats itself.
    """
    return no_nan(logits).argmax(-1)


def sample(
    logits: Array, rng: np.random.Generator, temperature: float = 1.0, top_k: int | None = None,
    top_p: float | None = None,
) -> Array:  # fmt: skip
    """ê = e_i with probability π_i,   π = softmax(logits/temperature);  logits (…, c) → ids (…)

    temperature   below 1 probable words become more probable, above 1 improbable ones do
    top_k         choose among the k most probable words only
    top_p         choose among the most probable words only, the fewest whose probabilities, at this temperature, add up
                  to top_p or more
    rng           a NumPy Generator
    Raises UserError unless temperature is a finite number above 0, top_k ≥ 1 and 0 < top_p ≤ 1, and for logits that are
    NaN or have no finite maximum.
    Source for top_p: Holtzman et al. 2019, arXiv:1904.09751 ("nucleus")
    """
    if not is_number(temperature) or not 0 < temperature <= sys.float_info.max:
        raise UserError(f"temperature is {shown(temperature)}, expected a number above 0; argmax takes the most "
                        "probable word")  # fmt: skip
    check_rng(rng)
    if top_k is not None:
        check_whole(top_k=top_k)
    if top_p is not None and (not is_number(top_p) or not 0 < top_p <= 1):
        raise UserError(f"top_p is {shown(top_p)}, expected more than 0 and at most 1: a share of the probability")
    logits = shifted_logits(logits)                      # the largest is 0: so it stays, however small the temperature
    if top_k is not None and top_k < logits.shape[-1]:
        others = np.argpartition(-logits, top_k - 1, axis=-1)[..., top_k:]
        np.put_along_axis(logits, others, -np.inf, axis=-1)
    with np.errstate(over="ignore"):                     # to −∞: probability 0
        probabilities, _ = ops.softmax(logits / float(temperature))
    if top_p is not None:
        order = np.argsort(-probabilities, axis=-1, kind="stable")
        likely = np.take_along_axis(probabilities, order, axis=-1)
        likely[likely.cumsum(-1) - likely >= top_p] = 0          # where those before it suffice
        np.put_along_axis(probabilities, order, likely, axis=-1)
    cumulative = probabilities.cumsum(-1)
    u = rng.random(logits.shape[:-1])[..., None] * cumulative[..., -1:]      # in [0, 1), up to rounding
    return (cumulative > u).argmax(-1)                                       # the first word whose share reaches u


def generate(model: TextModel, prompt: ArrayLike, words: int, choose: Callable[[Array], Array]) -> Iterator[int]:
    """Write `words` more words after the prompt, one at a time: an iterator over their ids.

    X_u = [x_u, …, x_{T−1+u}],   x_{T+u} = choose(logits(X_u)):  each word written joins the history, which moves along.

    model     a TextModel; its reader decides how many words it sees, and what it keeps of them
    prompt    any number of ids; if there are more than the reader sees, the last ones are used
    choose    a function from logits (1, c) to ids (1,): `greedy`, or functools.partial(sample, rng=rng, …)
    Raises UserError for a prompt that is not ids of the vocabulary in one row, and for a number of words below 0.
    """
    check_whole(0, words=words)
    reader = model.reader()
    new = checked_ids(prompt, model.c, "the prompt")
    for _ in range(words):
        word = int(choose(reader.read(new))[0])
        yield word
        new = np.array([word])


def continuations(model: TextModel, prompt: ArrayLike, most: int = 10) -> tuple[Array, Array]:
    """(ids, probabilities) of the `most` most probable words after the prompt, the best first; `most` is at least 1."""
    check_whole(most=most)
    p, _ = ops.softmax(shifted_logits(model.reader().read(checked_ids(prompt, model.c, "the prompt")))[0])
    best = np.argsort(-p, kind="stable")[:most]
    return best, p[best]
