"""Sentences by number: a pattern with its slots is a list that is never written out.

    Product(make, a, b)     has len(a)·len(b) entries; entry n is make(a[i], b[j]), where i and j are digits of n
    Either(a, b)            the one list or the other, each equally likely however long it is
    Together(a, b)          one entry of a slot that is two arguments of make: what fits together

So the size of the grammar is known exactly, and different numbers are different sentences.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Either(tuple):
    """Lists to choose from; each may itself be an Either."""

    def __new__(cls, *ways):
        return super().__new__(cls, ways)


class Together(tuple):
    """Several arguments chosen as one: a verb with an object that makes sense."""

    def __new__(cls, *parts):
        return super().__new__(cls, parts)


class Product:
    """All the ways to fill the slots of `make`."""

    def __init__(self, make: Callable, *slots):
        self.make = make
        self.slots = [(slot, len(slot)) for slot in slots]

    def __len__(self):
        return math.prod(length for _, length in self.slots)

    def __getitem__(self, n):
        chosen = []
        for slot, length in self.slots:
            n, i = divmod(n, length)
            entry = slot[i]
            chosen += entry if isinstance(entry, Together) else [entry]
        return self.make(*chosen)


def each(make: Callable, *slots) -> Product | Either:
    """The Product of the slots. Where a slot is an Either, so is the result: (a or b)·c = a·c or b·c."""
    for i, slot in enumerate(slots):
        if isinstance(slot, Either):
            return Either(*(each(make, *slots[:i], way, *slots[i + 1 :]) for way in slot))
    return Product(make, *slots)


def size(choice: Product | Sequence) -> int:
    """How many entries there are in all."""
    return sum(map(size, choice)) if isinstance(choice, Either) else len(choice)


def draw(choice: Product | Sequence, count: int, rng: "np.random.Generator") -> list[Any]:
    """A list of `count` different entries; of an Either as evenly from its lists as their sizes allow."""
    if isinstance(choice, Either):
        shares = _shares([size(way) for way in choice], count, rng)
        return [entry for way, share in zip(choice, shares) if share for entry in draw(way, share, rng)]
    return [choice[n] for n in _numbers(len(choice), count, rng)]


def _shares(sizes, count, rng):
    """`count` as a sum of shares, one for each size, as equal as the sizes allow; the smallest are served first."""
    shares = [0] * len(sizes)
    order = rng.permutation(len(sizes)).tolist()         # so that no list always gets the remainder
    order.sort(key=lambda i: min(sizes[i], count))
    for rank, i in enumerate(order):
        left = len(order) - rank
        shares[i] = min(sizes[i], -(-count // left))     # rounded up
        count -= shares[i]
    return shares


def _numbers(size, count, rng):
    """`count` different integers below `size`, in random order."""
    if 2 * count > size:
        return rng.permutation(size)[:count].tolist()
    found = {}                                           # a dict keeps the order
    while len(found) < count:
        found.update(dict.fromkeys(rng.integers(size, size=count).tolist()))
    return list(found)[:count]
