"""What is checked: a function or an object with its inputs and weights, in float64, called as y, backward = forward().

    subject = Subject(f, inputs)
    with subject.in_float64():
        y, backward = subject.forward()
        gradients = backward(dy)             # {name: gradient}

What needs a gradient: the floating inputs, and each floating array of an object, a dict or a list on which y depends.
Whose gradient is what: see `ownership.py`.
"""

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

from mini_tf.gradcheck.adapters import adapted, argument_names, name_of
from mini_tf.gradcheck.errors import FAILURES, Refused
from mini_tf.gradcheck.needs import chosen, settle, weights_in, without
from mini_tf.gradcheck.ownership import Ownership, return_names
from mini_tf.gradcheck.parameters import is_layer, parameters_of
from mini_tf.gradcheck.weights import FILE, everything_in, is_array, is_float, no_lists_of_numbers, reached
from mini_tf.types import Array

import numpy as np
from numpy.typing import DTypeLike

Gradients = dict[str, Any]


class Subject:
    """A function with its inputs and weights.

    names       of the inputs; inputs: copies, floating ones in float64; given: as they came
    options     what was given by name: constants, whatever they are
    weights     {name: Weight};  params: {name: Parameter} of mini_tf's layers
    tensors     {name: array} of all that has or needs a gradient: floating inputs, weights, Parameters
    data        names of floating inputs that get no gradient in this style; noted in the report
    refusals    sentences on arrays that get no gradient, and are left out
    came_back   what the backward returned last;  last: {owner of weights: the copy in that run}
    """

    def __init__(
        self, f: Any, inputs: Sequence[Any], options: dict[str, Any] | None = None, params: Any = None,
        grads: Any = None, constants: Sequence[str] = (), methods: Sequence[str] | None = None,
    ):  # fmt: skip
        self.f, self.given, self.options = f, [*map(_native, inputs)], options or {}
        self.data, self.notes, self.refusals = [], [], []
        self.came_back = self.last = self.ownership = None
        self.params, self.all_params = parameters_of(f, self.given, params)
        self.adapter = self._adapted(methods)
        self.names, self.inputs = self.adapter.names, [_float64(x) for x in self.given]
        self.holders = {"": self.adapter.owner, **dict(zip(self.names, self.given))}
        self._find_weights(params, constants)
        self._find_tensors(constants)
        self.kept, self.order = self._said_by_caller(grads)

    def _adapted(self, methods):
        def result():
            return self.f(*(_copied(x, {}) for x in self.given), **{n: _copied(x, {}) for n, x in self.options.items()})

        try:
            adapter = adapted(self.f, self.given, methods, result)
        except (TypeError, AttributeError):
            no_lists_of_numbers(argument_names(self.f), self.given)
            raise
        if self.all_params and is_layer(adapter.owner):
            adapter.f, adapter.owner = adapter.function(adapter.owner), None             # it stays as it is
        return adapter

    def _find_weights(self, params, constants):
        found = weights_in(self.holders, self.names)
        if unknown := {*constants} - {*found, *self.names}:
            there = ", ".join([*self.names, *found])
            raise Refused(f"constants: there is no array {min(unknown)!r}; there are: {there}")
        every = [x for holder in self.holders.values() if not is_layer(holder) for _, x in everything_in(holder)]
        self._modules = {id(x): x for x in every if isinstance(x, ModuleType)}           # xp = numpy cannot be copied
        space = getattr(inspect.unwrap(self.adapter.function(self.adapter.owner)), "__globals__", {})
        self.holders[FILE] = space
        wanted = params.items() if isinstance(params, dict) else [("", path) for path in params or ()]
        self.chosen = [(name, path) for name, path in wanted if isinstance(path, str) and path not in self.params]
        self.weights = chosen(self.chosen, found, space) if self.chosen else without(found, constants)
        self.variables = {path[0] for w in self.weights.values() if w.owner == FILE
                          for path in (*w.paths, *w.gradient_paths) if path[0] in space}             # fmt: skip
        beside = [reached(self.holders[w.owner], path) for w in self.weights.values() for path in w.gradient_paths]
        self._kept_gradients = [g for g in beside if is_float(g)]

    def _find_tensors(self, constants):
        given = [(n, x) for n, x in zip(self.names, self.inputs) if n not in constants]
        self.floats = [n for n, x in given if is_float(x)]
        self.numbers = [n for n, x in given if isinstance(x, float)]
        if not self.floats and not self.weights and not self.params:
            self.floats, self.numbers = self.numbers, []
        self.inputs = [np.array(x) if n in self.floats else x for n, x in zip(self.names, self.inputs)]
        self.tensors = {n: x for n, x in zip(self.names, self.inputs) if n in self.floats}
        self.tensors |= {name: _float64(w.array) for name, w in self.weights.items()}
        self.tensors |= {name: p.data for name, p in self.params.items()}
        if not self.tensors:
            came = ", ".join(f"{n} is {getattr(x, 'dtype', repr(x)[:40])}" for n, x in zip(self.names, self.inputs))
            raise Refused("there is no floating array to check" + (f" ({came}): try .astype(float)" if came else ""))

    def _said_by_caller(self, grads):
        """({name: path}, names in whose order gradients come), from grads={"W": "path"} or ["W", "x"]"""
        known = [*self.names, *self.weights]
        if unknown := [name for name in grads or () if name not in known]:
            raise Refused(f"grads: there is no {unknown[0]!r}; there are: {', '.join(known)}")
        return (grads, None) if isinstance(grads, dict) else ({}, [*grads] if grads else None)

    @property
    def name(self) -> str:
        return self.adapter.name

    # --- running

    def forward(self) -> tuple[Any, Callable[[Any], Gradients]]:
        """(y, backward); backward(dy) gives {name: gradient} of all tensors, None for those without one.

        backward(dy, add=True) leaves the gradients of Parameters that an earlier call has put there, to add to them.
        """
        memo = self._modules | self._stand_ins()
        given = {name: self.tensors.get(name, x) for name, x in zip(self.names, self.inputs)}
        for (name, x), original in zip(given.items(), self.given):
            given[name] = float(x) if isinstance(original, float) else x if is_array(x) else _copied(x, memo)
        holders = self.last = {"": _copied(self.adapter.owner, memo), **given, FILE: self.holders[FILE]}
        options = {name: _copied(x, memo) for name, x in self.options.items()}
        variables = {name: _copied(holders[FILE][name], memo) for name in self.variables}
        for name, p in self.params.items():
            p.data = self.tensors[name]
        with _in_their_file(variables, holders[FILE]):
            y, back = self.adapter.call(holders[""], [*given.values()], options)

        def backward(dy, add=False):
            for p in self.params.values():
                p.grad = p.grad if add else None
            with _in_their_file(variables, holders[FILE]):
                self.came_back = back(dy)
                found = self._owners(back).gradients(self.came_back, holders, self.tensors)
            return {name: self.params[name].grad if name in self.params else found.get(name)
                    for name in dict.fromkeys([*self.tensors, *found])}  # fmt: skip

        backward.takes_dy, backward.of = self.adapter.takes_dy, back.of
        return y, backward

    def _owners(self, back):
        if self.ownership is None:
            said = self.adapter.words(return_names(back.of))
            self.ownership = Ownership(self, self.kept, self.order, said)
        return self.ownership

    def _stand_ins(self):
        """{id of an author's array: what stands in its place}: tensors for weights, zeros for gradients they keep"""
        dtype = next((x.dtype for x in self.tensors.values()), None)
        zeros = {id(g): np.zeros(g.shape, dtype) for g in self._kept_gradients}
        here = [(w, self.tensors[name]) for name, w in self.weights.items() if name in self.tensors]
        return zeros | {id(w.array): np.copy(x) if w.changed else x for w, x in here}

    def prepare(self, dy_of: Callable[[Any, Any], Any]) -> None:
        """Settle what is a tensor: what gets a gradient, and what has to get one. dy_of(y, backward) draws dy."""
        with self.restored():
            settle(self, dy_of)

    def depends_on(self, name: str) -> bool:
        """True if y depends on the tensor."""
        x, y, rng = self.tensors[name], np.copy(self.forward()[0]), np.random.default_rng(0)
        try:                                             # each entry by another number: softmax does not see b + 0.1
            self.tensors[name] = np.asarray(x * rng.uniform(0.5, 1.5, x.shape) + rng.uniform(0.1, 0.5, x.shape))
            with np.errstate(all="ignore"):
                return not np.array_equal(y, self.forward()[0])
        except FAILURES:
            return True
        finally:
            self.tensors[name] = x

    # --- float64, and back

    @contextmanager
    def in_float64(self) -> Iterator[None]:
        """Inside the block, Parameters hold float64 copies of their data, and no gradients."""
        self.before = [(p, p.data, p.grad) for p in self.all_params]
        try:
            for p in self.all_params:
                p.data, p.grad = _float64(p.data), None
            self.tensors |= {name: p.data for name, p in self.params.items()}
            yield
        finally:
            for p, data, grad in self.before:
                p.data, p.grad = data, grad

    def as_given(self) -> AbstractContextManager:
        """For use inside `in_float64`: in this block, inputs, weights and Parameters are the original ones."""
        return self._with(dict(zip(self.tensors, self.originals)), [*self.given], [data for _, data, _ in self.before])

    def in_dtype(self, dtype: DTypeLike) -> AbstractContextManager:
        """For use inside `in_float64`: in this block, all tensors and constants have that dtype."""
        inputs = [x.astype(dtype) if is_float(x) else x for x in self.inputs]
        tensors = {name: x.astype(dtype) for name, x in self.tensors.items()}
        return self._with(tensors, inputs, [p.data.astype(dtype) for p in self.all_params])

    @contextmanager
    def _with(self, tensors, inputs, data):
        before = self.tensors, self.inputs, [p.data for p in self.all_params]

        def put(tensors, inputs, data):
            self.tensors, self.inputs = tensors, inputs
            for p, array in zip(self.all_params, data):  # fixed ones, too
                p.data = array

        try:
            put(tensors, inputs, data)
            yield
        finally:
            put(*before)

    @property
    def originals(self) -> list[Array]:
        """The tensors as they were given, before they became float64"""
        data = {id(p): data for p, data, _ in self.before}
        given = {name: np.array(x) if isinstance(x, float) else x for name, x in zip(self.names, self.given)}
        given |= {name: w.array for name, w in self.weights.items()} | {n: data[id(p)] for n, p in self.params.items()}
        return [_native(given[name]) for name in self.tensors]

    # --- other arrays

    def replace(self, name: str, array: Array) -> None:
        """Put another array in the place of a tensor or another input."""
        if name in self.tensors:
            self.tensors[name] = array
        if name in self.names:
            self.inputs[self.names.index(name)] = array

    @contextmanager
    def restored(self) -> Iterator[None]:
        """After the block, arrays into which f has written are what they were; so `promises` can see it."""
        before = {name: np.copy(x) for name, x in self.everything.items()}
        try:
            yield
        finally:
            for name, x in self.everything.items():
                x[...] = before.get(name, x)

    def is_defined(self) -> bool:
        """True if the forward runs here, and y is finite"""
        try:
            with np.errstate(all="ignore"), self.restored():
                return bool(np.isfinite(self.forward()[0]).all())
        except FAILURES:
            return False

    def run(self, dy: Array | float) -> Gradients:
        """{name: gradient} of all tensors, from a new forward; dy stays as it is."""
        _, backward = self.forward()
        return backward(dy.copy() if isinstance(dy, np.ndarray) else dy)

    @property
    def everything(self) -> dict[str, Any]:
        """{name: array} of the tensors and all other inputs that are arrays of numbers"""
        every = {n: x for n, x in zip(self.names, self.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "biufc"}
        return every | self.tensors


@contextmanager
def _in_their_file(variables, space):
    """Inside the block, variables of a file have these values; then those that they had. What they become is kept."""
    before = {name: space[name] for name in variables}
    try:
        space.update(variables)
        yield
    finally:
        variables.update({name: space[name] for name in variables})
        space.update(before)


def _copied(x, memo):
    """A copy of an object or a container, with other things in the places of some: {id: what is there}"""
    if inspect.isroutine(x) or is_layer(x):
        return x
    try:
        return copy.deepcopy(x, dict(memo))
    except TypeError as error:
        raise Refused(f"{name_of(x)} cannot be copied ({error}). Give its methods, and weights as inputs: "
                      "gradcheck((lambda x: net.forward(x), lambda dy: net.backward(dy)), x)") from None


def _native(x):
    """An array with its numbers' bytes in the processor's own order, as all results have it; others as they are."""
    return x.astype(x.dtype.newbyteorder("=")) if isinstance(x, np.ndarray) and not x.dtype.isnative else x


def _float64(x):
    if not is_array(x):
        return x
    host = x.get() if hasattr(x, "get") else np.asarray(x)
    return np.array(host, dtype=np.float64, order="C") if is_float(x) else np.array(host)
