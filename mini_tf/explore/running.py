"""Run what a page is about, as gradcheck runs it: forward, and backward with a random dy."""

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mini_tf.errors import UserError
from mini_tf.gradcheck import Subject
from mini_tf.gradcheck.adapters import Pair, name_of
from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.measure.points import random_dy
from mini_tf.gradcheck.needs import settle

import numpy as np

OF_CHECKER = "params", "grads", "constants", "methods"   # gradcheck's own arguments; others are f's


class Run:
    """One forward and one backward of f, each time with the same dy, in the dtypes that its arrays have.

    subject    f as gradcheck sees it; None if f raised, or is of no kind that gradcheck knows: then f alone runs
    dy         what the backward is given, once it has run;  gradients: {name: array} that came back
    partners   {name of a backward: (name of its forward,)} of a pair, whatever it is called
    """

    def __init__(self, f: Any, inputs: Sequence[Any], options: dict[str, Any], seed: int):
        self.f, self.inputs, self.own = f, inputs, {n: x for n, x in options.items() if n not in OF_CHECKER}
        self.subject, self.partners, self.dy, self.gradients = None, {}, None, {}
        self.rng = np.random.default_rng((seed, 1))      # of the checker's first dy: its numbers are those of the page
        try:
            self.subject = Subject(f, inputs, self.own, **{n: x for n, x in options.items() if n in OF_CHECKER})
        except Refused as refused:
            if not callable(f) or isinstance(f, type):
                raise UserError(f"{name_of(f)}: {refused}") from None
        except Exception:                                # the learner's own error: the page shows its line
            return
        if self.subject is not None:
            self._prepare(self.subject)

    def _prepare(self, subject):
        with suppress(Exception):                        # settles what has a gradient; why not, the checker says
            settle(subject, np.random.default_rng(0))
        if isinstance(subject.adapter, Pair):
            both = subject.adapter.f, subject.adapter.backward
            forward, backward = (one if isinstance(one, str) else name_of(one) for one in both)
            self.partners = {backward: (forward,)}

    def __call__(self, on_backward: Callable[[], None] = lambda: None) -> None:
        """Run it. on_backward: called between forward and backward"""
        self.gradients = {}
        if self.subject is None:
            self.f(*copy.deepcopy([*self.inputs]), **copy.deepcopy(self.own))
            return
        with self.subject.as_given():
            for name, x in [*self.subject.tensors.items()]:
                self.subject.arrays[name] = x.copy()     # which it may write into
            y, backward = self.subject.forward()
            on_backward()
            if self.dy is None:
                self.dy = random_dy(y, self.rng).astype(y.dtype) if np.ndim(y) else 1.0
            self.gradients = backward(np.copy(self.dy) if np.ndim(self.dy) else self.dy)
