"""One change found by value: carried out, it makes the gradients right, and it is what an author would write."""

from tests.gradcheck.contracts import normal
from tests.gradcheck.explain import edited, gradcheck, judge, mended
from tests.gradcheck.explain import functions as right

import numpy as np
import pytest

IDS = np.array([1, 4, 1, 0])
IN = {
    "dense": lambda: ([*normal((5, 3), (3, 4), (4,))], {}),
    "product": lambda: ([*normal((3, 4), (3, 4))], {}),
    "attention": lambda: ([*normal((2, 3, 4), (2, 5, 4), (2, 5, 6))], {}),
    "layer_norm": lambda: ([*normal((3, 5), (5,))], {}),
    "joined": lambda: ([*normal((3, 2), (3, 4))], {}),
    "lookup": lambda: ([normal((6, 3))], {"ids": IDS}),
    "relu": lambda: ([normal((3, 4))], {}),
    "recurrent": lambda: ([*normal((4, 2, 3), (3, 3), (2, 3))], {}),
    "weighted": lambda: ([*normal((2, 3), (4,))], {}),
    "shifted": lambda: ([*normal((4, 3), (3,))], {}),
    "averaged": lambda: ([normal((3, 4))], {}),
    "softmax_loss": lambda: ([*normal((4, 3), (3, 5))], {"t": IDS}),
    "dict_loss": lambda: ([{"W1": normal((3, 4)), "W2": normal((4, 2))}, *normal((5, 3), (5, 2), seed=3)], {}),
    "affine_forward": lambda: ([*normal((5, 3), (3, 4), (4,))], {}),
    "Scale": lambda: ([normal((4, 3))], {}),
    "Gated": lambda: ([normal((4, 3))], {}),
    "Dropped": lambda: ([normal((4, 3))], {}),
}


def run(check, name, thing):
    """A check of a thing with its inputs"""
    inputs, options = IN[name]()
    if isinstance(thing, type):
        thing = thing(normal((3,), seed=1))
    return check(thing, *inputs, **options)
