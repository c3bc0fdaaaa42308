"""What is checked: a function or an object with its inputs and weights, in float64, called as y, backward = forward().

What needs a gradient: see `needs.py`; whose gradient is what: see `ownership.py`.
"""

import copy
import inspect
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from mini_tf.gradcheck.adapters import Adapter, Closure, adapted, bound, name_of, signature_of
from mini_tf.gradcheck.errors import FAILURES, Refused
from mini_tf.gradcheck.needs import chosen, is_layer, parameters_of, weights_in
from mini_tf.gradcheck.ownership import Ownership
from mini_tf.gradcheck.weights import FILE, Weight, everything_in, is_array, is_float, path_of, reached, refuse_lists
from mini_tf.types import Array

import numpy as np
from numpy.typing import DTypeLike

Gradients = dict[str, Any]


class Subject:
    """A function with its inputs and weights."""

    params: dict[str, Any]               # {name: Parameter} of mini_tf's layers
    parameters: dict[str, Any]           # the same, and the fixed ones
    chosen: list[tuple[str, str]]        # (name or "", path) of what the caller's `params` name
    weights: dict[str, Weight]
    variables: set[str | int]            # of the author's file, those that are weights or their gradients
    originals: dict[str, Array]          # {name: array} of inputs, weights and Parameters,
    arrays: dict[str, Array]             # and copies, floating ones in float64
    floats: list[str]                    # names of inputs that are floating arrays,
    numbers: list[str]                   # or Python's numbers, which are checked if a gradient comes back
    wanted: list[str]                    # names of those whose gradients are checked, the tensors

    def __init__(
        self, f: Any, inputs: Sequence[Any], options: dict[str, Any] | None = None, params: Any = None,
        grads: Any = None, constants: Sequence[str] = (), methods: Sequence[str] | None = None,
    ):  # fmt: skip
        self.f = f
        self.given: list[Any] = [*inputs]                # as they came
        self.options: dict[str, Any] = options or {}     # by name: constants, whatever they are
        self.notes: list[str] = []
        self.refusals: list[str] = []                    # sentences on arrays that get no gradient, and are left out
        self.backward: Any = None                        # the author's, in the last run,
        self.came_back: Any = None                       # and what it returned
        self.last: dict[str, Any] = {}                   # {owner of weights: the copy of it in the last run}
        self.params, fixed = parameters_of(f, inputs, params)
        self.parameters = self.params | fixed
        self.adapter: Adapter = self._adapted(methods)
        self.names: list[str] = self.adapter.names
        self.holders: dict[str, Any] = {"": self.adapter.owner, **dict(zip(self.names, self.given))}
        self._find_weights(params, constants)
        self._find_arrays(constants)
        _all_known("grads", grads or (), [*self.names, *self.weights])
        self.ownership: Ownership | None = None
        self.grads: Any = {n: path_of(text) for n, text in grads.items()} if isinstance(grads, dict) else grads

    def _adapted(self, methods: Sequence[str] | None) -> Adapter:
        def result() -> Any:
            return self.f(*(_copied(x, {}) for x in self.given), **{n: _copied(x, {}) for n, x in self.options.items()})

        try:
            adapter = adapted(self.f, self.given, methods, result)
        except (TypeError, AttributeError):
            refuse_lists(signature_of(self.f).names, self.given)
            raise
        if isinstance(adapter, Closure):                 # in other styles, they are data
            refuse_lists(adapter.names, self.given)
        return adapter

    def _find_weights(self, params: Any, constants: Sequence[str]) -> None:
        found = weights_in(self.holders, self.names)
        _all_known("constants", constants, [*self.names, *found])
        every = [x for holder in self.holders.values() if not is_layer(holder) for _, x in everything_in(holder)]
        self._modules = {id(x): x for x in every if inspect.ismodule(x)}                 # xp = numpy cannot be copied
        space = getattr(inspect.unwrap(bound(self.adapter.f, self.adapter.owner)), "__globals__", {})
        self.holders[FILE] = space
        wanted = params.items() if isinstance(params, dict) else [("", path) for path in params or ()]
        self.chosen = [(name, path) for name, path in wanted if isinstance(path, str) and path not in self.params]
        self.weights = chosen(self.chosen, found, space) if self.chosen else {
            name: w for name, w in found.items() if not any(f"{name}.".startswith(f"{one}.") for one in constants)
        }                                                # `batch` stands for all arrays in it, such as batch.0
        self.variables = {path[0] for w in self.weights.values() if w.owner == FILE
                          for path in (*w.paths, *w.gradient_paths) if path[0] in space}             # fmt: skip
        beside = [reached(self.holders[w.owner], path) for w in self.weights.values() for path in w.gradient_paths]
        self._kept_gradients = [g for g in beside if is_float(g)]

    def _find_arrays(self, constants: Sequence[str]) -> None:
        given = dict(zip(self.names, self.given))
        self.floats = [n for n, x in given.items() if is_float(x) and n not in constants]
        self.numbers = [n for n, x in given.items() if isinstance(x, float) and n not in constants]
        if not self.floats and not self.weights and not self.params:
            self.floats, self.numbers = self.numbers, []
        self.wanted = [*self.floats, *self.weights, *self.params]
        if not self.wanted:
            came = ", ".join(f"{n} is {getattr(x, 'dtype', repr(x)[:40])}" for n, x in given.items())
            raise Refused("there is no floating array to check" + (f" ({came}): try .astype(float)" if came else ""))
        self.originals = {n: np.array(x) if isinstance(x, float) else x for n, x in given.items()
                          if n in self.floats or (is_array(x) and x.dtype.kind in "biufc")}         # fmt: skip
        self.originals |= {name: w.array for name, w in self.weights.items()}
        self.originals |= {name: p.data for name, p in self.parameters.items()}
        self.arrays = {name: _float64(x) for name, x in self.originals.items()}

    def forward(self) -> tuple[Any, Any]:
        """(y, backward); backward(dy) gives {name: gradient} of all tensors, None for those without one.

        backward.of: the author's;  takes_dy: whether it takes a dy. What is called again adds to the gradients of
        Parameters that are there from the call before.
        """
        memo = self._modules | self._stand_ins()
        given = {}
        for name, x in zip(self.names, self.given):
            here = self.arrays.get(name)
            given[name] = _copied(x, memo) if here is None else float(here) if isinstance(x, float) else here
        space = self.holders[FILE]
        holders = self.last = {"": _copied(self.adapter.owner, memo), **given, FILE: space}
        options = {name: _copied(x, memo) for name, x in self.options.items()}
        places = [[space, name, _copied(space[name], memo)] for name in self.variables]
        for name, p in self.parameters.items():
            places += [[vars(p), "data", self.arrays[name]], [vars(p), "grad", None]]
        with _swapped(places):
            y, back = self.adapter.call(holders[""], [*given.values()], options)

        def gradients(dy: Any) -> Gradients:
            with _swapped(places):
                self.came_back = back(dy)
                self.ownership = self.ownership or Ownership(self, back.of)
                found = self.ownership.gradients(self.came_back, holders)
                found |= {name: p.grad for name, p in self.params.items()}
            return {name: found.get(name) for name in dict.fromkeys([*self.wanted, *found])}

        backward: Any = gradients
        backward.takes_dy, backward.of = self.adapter.takes_dy, back.of
        self.backward = back.of
        return y, backward

    def _stand_ins(self) -> dict[int, Array]:
        """{id of an author's array: what stands in its place}: tensors for weights, zeros for gradients they keep

        The object that is checked gets copies: it may change its weights, as in a step of training.
        """
        dtype = next((x.dtype for x in self.tensors.values()), None)
        zeros = {id(g): np.zeros(g.shape, dtype) for g in self._kept_gradients}
        here = [(w, self.arrays[name]) for name, w in self.weights.items()]
        return zeros | {id(w.array): x if w.owner else x.copy() for w, x in here}

    def depends_on(self, name: str) -> bool:
        """True if y depends on the tensor."""
        with self.on_copies():
            x, y, rng = self.arrays[name], np.copy(self.forward()[0]), np.random.default_rng(0)
        # Each entry moves by another number: softmax does not see b + 0.1.
        other = np.asarray(x * rng.uniform(0.5, 1.5, x.shape) + rng.uniform(0.1, 0.5, x.shape))
        try:
            with np.errstate(all="ignore"), self.at(self.arrays | {name: other}), self.on_copies():
                return not np.array_equal(y, self.forward()[0])
        except FAILURES:
            return True

    @property
    def tensors(self) -> dict[str, Array]:
        """{name: array} of all that has or needs a gradient: floating inputs, weights, Parameters"""
        return {name: self.arrays[name] for name in self.wanted}

    @contextmanager
    def at(self, arrays: dict[str, Array]) -> Iterator[None]:
        """In this block, these are the arrays."""
        before, self.arrays = self.arrays, arrays
        try:
            yield
        finally:
            self.arrays = before

    def on_copies(self) -> AbstractContextManager[None]:
        """In this block, f may write into arrays: they are copies."""
        return self.at({name: np.copy(x) for name, x in self.arrays.items()})

    def as_given(self) -> AbstractContextManager[None]:
        """In this block, all arrays are the original ones."""
        native = {n: x.dtype.newbyteorder("=") for n, x in self.originals.items()}       # results have that order, too
        return self.at({n: x.astype(native[n]) if x.dtype != native[n] else x for n, x in self.originals.items()})

    def in_dtype(self, dtype: DTypeLike) -> AbstractContextManager[None]:
        """In this block, all floating arrays have that dtype."""
        return self.at({name: x.astype(dtype) if is_float(x) else x for name, x in self.arrays.items()})

    def run(self, dy: Array | float) -> Gradients:
        """{name: gradient} of all tensors, from a new forward; dy stays as it is."""
        gradients: Gradients = self.forward()[1](dy.copy() if isinstance(dy, np.ndarray) else dy)
        return gradients


def _all_known(argument: str, names: Collection[str], known: Sequence[str]) -> None:
    """Raises Refused for the name of no array."""
    if unknown := [name for name in names if name not in known]:
        raise Refused(f"{argument}: there is no array {unknown[0]!r}; there are: {', '.join(known)}")


@contextmanager
def _swapped(places: list[list[Any]]) -> Iterator[None]:
    """Inside the block, variables have the values of [variables, name, value]; then what they become is kept there."""

    def swap() -> None:
        for place in places:
            variables, name, value = place
            place[2], variables[name] = variables[name], value

    swap()
    try:
        yield
    finally:
        swap()


def _copied(x: Any, memo: dict[int, Any]) -> Any:
    """A copy of an object or a container, with other things in the places of some: {id: what is there}"""
    if inspect.isroutine(x) or is_layer(x):
        return x
    try:
        return copy.deepcopy(x, dict(memo))
    except TypeError as error:
        raise Refused(f"{name_of(x)} cannot be copied ({error}). Give its methods, and weights as inputs: "
                      "gradcheck((lambda x: net.forward(x), lambda dy: net.backward(dy)), x)") from None


def _float64(x: Any) -> Array:
    """A copy on the CPU, of a floating array in float64"""
    host = x.get() if hasattr(x, "get") else np.asarray(x)
    return np.array(host, dtype=np.float64, order="C") if is_float(x) else np.array(host)
