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
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from mini_tf.gradcheck.adapters import adapted, argument_names, name_of
from mini_tf.gradcheck.errors import FAILURES, Refused
from mini_tf.gradcheck.needs import chosen, kept_gradients, settle, weights_in, without
from mini_tf.gradcheck.ownership import Ownership, return_names
from mini_tf.gradcheck.parameters import is_layer, parameters_of
from mini_tf.gradcheck.variables import in_their_file, variables_of
from mini_tf.gradcheck.weights import is_array, is_float, no_lists_of_numbers, objects_in, parts, path_of, put, reached
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
    """

    def __init__(
        self, f: Any, inputs: Sequence[Any], options: dict[str, Any] | None = None, params: Any = None,
        grads: Any = None, constants: Sequence[str] = (), methods: Sequence[str] | None = None,
    ):  # fmt: skip
        self.given, self.options = [native(x) for x in inputs], options or {}
        self.f, self.constants, self.data, self.notes, self.refusals = f, {*constants}, [], [], []
        self.came_back, self.last = None, None           # what the backward returned last, and of which copies
        self._modules, self._words = (), None
        every = parameters_of(f, self.given, params)
        self.params = {name: p for name, p in every.items() if getattr(p, "trainable", True)}
        self.all_params = list({id(p): p for p in parameters_of(f, self.given, params, every=True).values()}.values())
        own = {name: _own(x) for name, x in self.options.items()}
        try:
            self.adapter = adapted(f, self.given, methods, lambda: f(*map(_own, self.given), **own))
        except (TypeError, AttributeError):
            no_lists_of_numbers(argument_names(f), self.given)
            raise
        if self.all_params and is_layer(self.adapter.owner):
            self.adapter.f, self.adapter.owner = self.adapter.function(self.adapter.owner), None     # it stays as it is
        self.names, self.inputs = self.adapter.names, [_float64(x) for x in self.given]
        found = weights_in([("", self.adapter.owner), *zip(self.names, self.given)], self.names)
        if unknown := self.constants - {*found, *self.names}:
            there = ", ".join([*self.names, *found])
            raise Refused(f"constants: there is no array {sorted(unknown)[0]!r}; there are: {there}")
        wanted = params.items() if isinstance(params, dict) else [("", path) for path in params or ()]
        self.chosen = [(name, path) for name, path in wanted if isinstance(path, str) and path not in self.params]
        space = getattr(inspect.unwrap(self.adapter.function(self.adapter.owner)), "__globals__", {})
        self.weights = chosen(self.chosen, found, space) if self.chosen else without(found, self.constants)
        self.gradients_kept = kept_gradients(self.weights)
        kept, order = self._said_by_caller(grads)
        given = [(n, x) for n, x in zip(self.names, self.inputs) if n not in self.constants]
        self.floats, self.numbers = ([n for n, x in given if is_it(x)] for is_it in (is_float, is_number))
        if not self.floats and not self.weights and not self.params:
            self.floats, self.numbers = self.numbers, []
        self.inputs = [np.array(x) if n in self.floats else x for n, x in zip(self.names, self.inputs)]
        self.scalars = {n for n, x in zip(self.names, self.given) if is_number(x)}
        self.tensors = {n: x for n, x in zip(self.names, self.inputs) if n in self.floats}
        self.tensors |= {name: _float64(w.array) for name, w in self.weights.items() if not w.number}
        self.tensors |= {name: p.data for name, p in self.params.items()}
        if not self.tensors:
            came = ", ".join(f"{n} is {getattr(x, 'dtype', repr(x)[:40])}" for n, x in zip(self.names, self.inputs))
            raise Refused("there is no floating array to check" + (f" ({came}): try .astype(float)" if came else ""))
        self.ownership = Ownership(self, kept, order)

    @property
    def name(self) -> str:
        return self.adapter.name

    def _said_by_caller(self, grads):
        """({name of an input: path}, names in whose order gradients come), from grads={"W": "path"} or ["W", "x"]"""
        known = [*self.names, *self.weights]
        if unknown := [name for name in grads or () if name not in known]:
            raise Refused(f"grads: there is no {unknown[0]!r}; there are: {', '.join(known)}")
        if not isinstance(grads, dict):
            return {}, [*grads] if grads else None
        for name in {*grads} & {*self.weights}:
            self.weights[name].kept_at = path_of(grads[name])
        return {name: path_of(path) for name, path in grads.items() if name in self.names}, None

    # --- running

    def forward(self) -> tuple[Any, Callable[[Any], Gradients]]:
        """(y, backward); backward(dy) gives {name: gradient} of all tensors, None for those without one.

        backward(dy, add=True) leaves the gradients of Parameters that an earlier call has put there, to add to them.
        """
        memo = {id(m): m for m in self._modules} | self._stand_ins()
        given = {name: self.tensors.get(name, x) for name, x in zip(self.names, self.inputs)}
        for name, x in given.items():
            given[name] = float(x) if name in self.scalars else x if is_array(x) else self._copied(x, memo)
        owner = self._copied(self.adapter.owner, memo)
        holders = given | {"": owner}
        for name, w in self.weights.items():
            if w.number and name in self.tensors:
                put(holders[w.owner], w.paths[0], float(self.tensors[name]))
        options = {name: self._copied(x, memo) for name, x in self.options.items()}
        variables = variables_of(self.weights, lambda x: self._copied(x, memo))
        for name, p in self.params.items():
            p.data = self.tensors[name]
        with in_their_file(variables):
            y, back = self.adapter.call(owner, [*given.values()], options)
        self.last = holders
        if self._words is None:
            self._words = self.adapter.words(return_names(self.adapter.returning(back)))

        def backward(dy, add=False):
            for p in self.params.values():
                p.grad = p.grad if add else None
            with in_their_file(variables):
                self.came_back = back(dy)
                found = self.ownership.gradients(self.came_back, self._words, holders, self.tensors)
            return {name: self.params[name].grad if name in self.params else found.get(name)
                    for name in (*self.tensors, *(n for n in found if n not in self.tensors))}       # fmt: skip

        backward.takes_dy, backward.of = self.adapter.takes_dy, self.adapter.returning(back)
        return y, backward

    def _stand_ins(self):
        """{id of an author's array: what stands in its place}: tensors for weights, zeros for gradients they keep"""
        arrays = {name: w for name, w in self.weights.items() if not w.number}
        stand_ins = {}
        for name, w in arrays.items():
            if name in self.tensors:
                stand_ins[id(w.array)] = np.copy(self.tensors[name]) if w.changed else self.tensors[name]
        dtype = next((x.dtype for x in self.tensors.values()), None)
        kept = [w.array for w in self.gradients_kept if not w.number and id(w.array) not in stand_ins]
        kept += [reached(w.space, path) for w in arrays.values() if w.space is not None for path in w.gradient_paths]
        return stand_ins | {id(g): np.zeros(g.shape, dtype) for g in kept if is_float(g)}

    def _copied(self, x, memo):
        """A copy of an object or a container, with the tensors in the places of its weights"""
        if x is None or isinstance(x, (bool, int, float, str)) or inspect.isroutine(x) or is_layer(x):
            return x
        try:
            return copy.deepcopy(x, dict(memo))
        except TypeError as error:
            if not self._modules:                        # a module among its attributes, xp = numpy, is no reason
                inside = (part for _, one in objects_in(x) for part in parts(one).values())
                self._modules = [part for part in inside if isinstance(part, ModuleType)]
                if self._modules:
                    return self._copied(x, memo | {id(m): m for m in self._modules})
            raise Refused(f"{name_of(x)} cannot be copied ({error}). Give its methods, and weights as inputs: "
                          "gradcheck((lambda x: net.forward(x), lambda dy: net.backward(dy)), x)") from None

    def prepare(self, dy_of: Callable[[Any, Any], Any]) -> None:
        """Settle what is a tensor: what gets a gradient, and what has to get one. dy_of(y, backward) draws dy."""
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

    @contextmanager
    def as_given(self) -> Iterator[None]:
        """For use inside `in_float64`: in this block, inputs, weights and Parameters are the original ones."""
        with self._others(dict(zip(self.tensors, map(native, self.originals))), [*self.given]):
            yield

    @contextmanager
    def in_dtype(self, dtype: DTypeLike) -> Iterator[None]:
        """For use inside `in_float64`: in this block, all tensors and constants have that dtype."""
        inputs = [x.astype(dtype) if is_float(x) else x for x in self.inputs]
        with self._others({name: x.astype(dtype) for name, x in self.tensors.items()}, inputs):
            yield

    @contextmanager
    def _others(self, tensors, inputs):
        before, data = (self.tensors, self.inputs), [(p, p.data) for p in self.all_params]
        originals = {id(p): array for p, array, _ in self.before}
        dtype = next((x.dtype for x in tensors.values()), None)
        try:
            self.tensors, self.inputs = tensors, inputs
            for p, _ in data:                            # fixed ones, too
                p.data = originals[id(p)] if dtype == originals[id(p)].dtype else p.data.astype(dtype)
            yield
        finally:
            self.tensors, self.inputs = before
            for p, array in data:
                p.data = array

    @property
    def originals(self) -> list[Array]:
        """The tensors as they were given, before they became float64"""
        data = {id(p): data for p, data, _ in self.before}
        every = dict(zip(self.names, self.given)) | {name: w.array for name, w in self.weights.items()}
        every |= {name: data[id(p)] for name, p in self.params.items()}
        return [np.array(every[n]) if isinstance(every[n], float) else every[n] for n in self.tensors]

    # --- other arrays

    def replace(self, name: str, array: Array) -> None:
        """Put another array in the place of a tensor or another input."""
        if name in self.tensors:
            self.tensors[name] = array
        if name in self.names:
            self.inputs[self.names.index(name)] = array

    def is_defined(self) -> bool:
        """True if the forward runs here, and y is finite"""
        try:
            with np.errstate(all="ignore"):
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


def is_number(x: Any) -> bool:
    """True for one of Python's numbers with a decimal point, and NumPy's like it"""
    return isinstance(x, float)


def native(x: Any) -> Any:
    """An array with its numbers' bytes in the processor's own order, as all results have it; others as they are."""
    return x.astype(x.dtype.newbyteorder("=")) if isinstance(x, np.ndarray) and not x.dtype.isnative else x


def _own(x):
    return copy.deepcopy(x) if not is_layer(x) else x


def _float64(x):
    if not is_array(x):
        return x
    host = x.get() if hasattr(x, "get") else np.asarray(x)
    return np.array(host, dtype=np.float64, order="C") if is_float(x) else np.array(host)
