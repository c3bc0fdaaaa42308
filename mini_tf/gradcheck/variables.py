"""Weights that are variables of a file: other arrays stand in their places while the author's functions run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mini_tf.gradcheck.weights import Weight

Variable = list[Any]                                     # [namespace, name, value]


def variables_of(weights: dict[str, Weight], copied: Callable[[Any], Any]) -> list[Variable]:
    """The variables that have such weights in them, or their gradients, with copies as their values"""
    found = {}
    for w in weights.values():
        for name in {path[0] for path in (*w.paths, *w.gradient_paths)} if w.space is not None else ():
            if name in w.space and name not in found:
                found[name] = [w.space, name, copied(w.space[name])]
    return [*found.values()]


@contextmanager
def in_their_file(variables: list[Variable]) -> Iterator[None]:
    """Inside the block, variables have these values; then those that they had before. What they become is kept here."""
    before = [space[name] for space, name, _ in variables]
    try:
        for space, name, value in variables:
            space[name] = value
        yield
    finally:
        for variable, was in zip(variables, before):
            space, name, _ = variable
            variable[2], space[name] = space[name], was
