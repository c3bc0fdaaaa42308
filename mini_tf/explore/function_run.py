"""Running the function that a page is about as gradcheck runs it: forward, and backward with a random dy."""

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mini_tf.gradcheck import Subject, settle

import numpy as np

OF_GRADCHECK = "params", "grads", "constants", "methods"         # arguments of gradcheck; all others are f's


class FunctionRun:
    """One forward and one backward of f, each time with the same dy, in the dtypes that its arrays have.

    subject    f as gradcheck sees it; None if gradcheck refuses it, or f raised: then f alone runs
    dy         the upstream gradient, once it has run;  gradients: {name: array} that it returned
    partners   {name of the backward: (name of its forward,)}, whatever they are called
    """

    def __init__(self, f: Any, inputs: Sequence[Any], options: dict[str, Any], seed: int):
        self.f, self.inputs = f, inputs
        self.options = {name: x for name, x in options.items() if name not in OF_GRADCHECK}
        self.subject: Subject | None = None
        self.dy: Any = None
        self.gradients: dict[str, Any] = {}
        self.partners: dict[str, tuple[str, ...]] = {}
        self.rng = np.random.default_rng((seed, 1))      # gradcheck's, so that the page has the numbers of its report
        with suppress(Exception):                        # the page shows the line that raised, the report why
            own = {name: x for name, x in options.items() if name in OF_GRADCHECK}
            self.subject = subject = Subject(f, inputs, self.options, **own)
            with suppress(Exception):
                settle(subject, np.random.default_rng(0))
            self.partners = {_name(subject.backward): (_name(subject.adapter.f),)}

    def __call__(self, on_backward: Callable[[], None] = lambda: None) -> None:
        """Run it. on_backward: called between forward and backward"""
        self.gradients = {}
        if self.subject is None:
            self.f(*copy.deepcopy([*self.inputs]), **copy.deepcopy(self.options))
            return
        with self.subject.as_given():
            for name, x in [*self.subject.tensors.items()]:
                self.subject.arrays[name] = x.copy()     # f may write into it
            y, backward = self.subject.forward()
            on_backward()
            if self.dy is None:
                self.dy = self.rng.standard_normal(np.shape(y)).astype(y.dtype) if np.ndim(y) else 1.0
            self.gradients = backward(np.copy(self.dy) if np.ndim(self.dy) else self.dy)


def _name(f):
    return f if isinstance(f, str) else getattr(f, "__name__", "")       # a method may be given by its name
