"""A learner's functions and objects, called as y, backward = f(…): a class for each style.

The learner's object is copied for each call, so it stays as it is, and a backward can be called twice.
"""

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from types import MappingProxyType, SimpleNamespace
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_ours
from mini_tf.gradcheck.measuring.naming import GIVEN, is_gradient_name, may_be_given
from mini_tf.gradcheck.measuring.returned import (
    by_name,
    by_their_names,
    flat,
    in_order,
    loss_and_gradients,
    parameters_of,
    returned_names,
    scaled,
    together,
    without_a_gradient,
)
from mini_tf.gradcheck.measuring.stored import (
    BACKWARD,
    FORWARD,
    GO_BACK,
    GO_FORWARD,
    VALUE,
    Stored,
    copy_of,
    earlier_gradients,
    forget_gradients,
    gradient_beside,
    gradients_apart,
    is_floating,
    list_of,
    members,
    method_of,
    reached,
    stored_arrays,
    ways_in,
    with_parameters,
)
from mini_tf.gradcheck.measuring.variables import (
    Variable,
    Variables,
    gradients_named_in,
    keeping,
    named_in,
)
from mini_tf.gradcheck.measuring.whose import find_kept_gradients
from mini_tf.trace import keeps_contract
from mini_tf.types import Array, Backward

import numpy as np

CACHE = re.compile(r"cache|^(ctx|context|memor\w*|memo|saved\w*|stash|kept|tape|record|res|resid\w*|stuff|aux|stored?|"
                   r"interm\w*|frame|trace)$", re.I)  # fmt: skip
OUTPUTS = "output", "outputs", "out", "y", "result"      # where an object may keep what its forward gives
OF_OPTIMIZER = re.compile(r"(^|[._])(velocit|moment|vel|mom|exp_avg|rms|[mv]\d?([._]|$))", re.I)       # Adam's m and v
RATES = re.compile(r"(learn(ing)?_?rate|lr|eta|rate|step_?size)$", re.I)


def by_place(f: Callable) -> Callable:
    """f itself, or one that takes by place, too, what f takes by name only"""
    parameters = inspect.signature(f).parameters.values()
    if not any(p.kind == p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        return f
    parameters = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    named = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) for p in parameters]
    named.sort(key=lambda p: p.default is not p.empty)

    @wraps(f)
    def called_by_place(*arguments):
        return f(**{p.name: x for p, x in zip(named, arguments)})

    called_by_place.__signature__ = inspect.Signature(named)
    return called_by_place


class Brought:
    """A learner's function or object, called as y, backward = f(*inputs)

    written_forward, written_backward   the learner's functions
    parameters                          {name: Stored} of an object's own arrays, or of variables of a function's file
    inputs_are_data                     in this style the backward need not return gradients of the inputs
    goes_back_once                      the backward of one call is not called again, so it may change what was kept
    """

    parameters, inputs_are_data, goes_back_once = {}, False, False
    inside, bound = None, ()                             # ways to arrays in each input; other names of objects there
    kept_in = ()                                         # names of variables that keep gradients
    by_key = MappingProxyType({})                        # arrays in dicts that the backward has returned
    may_have_one = ()                                    # inputs: a gradient came back that may be theirs
    its_object, now = None, None                         # that of the learner, and the copy of it that ran last
    came = ()                                            # what came back last
    kept_differently = ()                                # parameters of which another gradient is kept than returned
    claimed = ()                                         # the gradients of parameters

    def __init__(self, forward: Callable, backward: Callable):
        self.written_forward, self.written_backward = forward, backward
        self.__name__ = self.named()
        self.__signature__ = inspect.signature(forward)
        self.returned = returned_names(backward)

    def named(self) -> str:
        forward = getattr(self.written_forward, "func", self.written_forward)            # of a partial
        name = getattr(forward, "__name__", type(forward).__name__)
        return type(self.written_forward.__self__).__name__ if name == "__call__" else name

    def with_other_backward(self, change: Callable[[Backward], Backward]) -> "Changed":
        """The same, but with change(backward) in place of each backward."""
        other = Changed.__new__(Changed)
        vars(other).update(vars(self), brought=self, change=change, inputs_are_data=self.inputs_are_data)
        return other

    def is_given(self, inputs: Sequence[Any]) -> None:
        """Note what is known of the inputs: arrays inside them, and the names of objects among them."""
        self.inside = [ways_in(x) for x in inputs]
        objects = {id(x): k for k, x in enumerate(inputs) if self.inside[k] and not isinstance(x, (dict, list, tuple))}
        self.inputs_are_data, self.bound = self.inputs_are_data or bool(objects), ()
        for function in {self.written_forward, self.written_backward} if objects else ():
            variables = Variables(function)
            self.bound += tuple((variables, name, objects[id(x)])
                                for name, x in named_in([function], variables).items() if id(x) in objects)  # fmt: skip

    @contextmanager
    def pointing_to(self, inputs: Sequence[Any]) -> Iterator[None]:
        """Inside the block, names of an object that is also an input stand for this input, which is a copy of it."""
        before = [variables[name] for variables, name, _ in self.bound]
        try:
            for variables, name, k in self.bound:
                variables[name] = inputs[k]
            yield
        finally:
            for (variables, name, _), x in zip(self.bound, before):
                variables[name] = x

    @contextmanager
    def apart(self, inputs: Sequence[Any]) -> Iterator[None]:
        """`gradients_apart` of all inputs."""
        with ExitStack() as stack:
            for x, ways in zip(inputs, self.inside or ()):
                stack.enter_context(gradients_apart(x, ways))
            yield

    def keeps(self, weights: dict[str, Variable]) -> None:
        """From now on, these variables of the file are the parameters."""
        self.parameters, self.inputs_are_data = weights, bool(weights) or self.inputs_are_data
        functions = self.written_forward, self.written_backward
        self.kept_in = gradients_named_in(functions, weights) if weights else ()

    def gone_back(
        self, backward: Callable[[], Any], inputs: Sequence[Any], called: Sequence[str],
        factor: Array | float | None = None,
    ) -> tuple:  # fmt: skip
        """The gradients of the floating inputs, in their order; those of the file's variables are noted.

        backward   called without arguments; called: what its `return` calls the gradients; factor: see `scaled`
        """
        with self.pointing_to(inputs), self.apart(inputs), keeping(self.parameters, self.kept_in) as kept:
            came = self.came = by_their_names(backward(), self.names_inside(inputs))
            called = self.by_place(came, inputs, called) or called if self.parameters else called
            self.collect(self.found_in(kept(), by_name(came, called)), factor)
            return self.in_order(came, called, inputs, factor)

    def in_order(
        self, gradients: Any, called: Sequence[str], inputs: Sequence[Any], factor: Array | float | None
    ) -> tuple:
        """The gradients of the floating inputs, in their order, times the factor: see the function `in_order`.

        gradients: as `by_their_names` gives them
        """
        dicts = [part for part in list_of(gradients) if isinstance(part, dict)]
        self.by_key = {said: g for part in dicts for said, g in part.items() if is_floating(g)}
        lists = self._shapes_of_lists()
        if lists and any(_shapes(part) in lists for part in list_of(gradients)):         # nabla_w, of self.weights
            gradients = tuple(part for part in list_of(gradients) if _shapes(part) not in lists)
        if places := {p.kept_at[1] for p in self.parameters.values() if p.is_returned}:
            gradients = tuple(g for k, g in enumerate(flat(gradients)) if k not in places)
            called = [name for k, name in enumerate(called) if k not in places]
        if isinstance(gradients, (list, tuple)) and {*map(id, flat(gradients))} <= {*map(id, self.claimed)}:
            gradients, called = (), []                   # [p.grad for p in self.parameters()]
        found = in_order(gradients, called, inputs, self.written_forward, self.parameters, self.inside)
        without = [name for name, p in self.parameters.items() if p.grad is None and not GIVEN.match(name)]
        if self.its_object is not None and without:
            named = zip([p.name for p in parameters_of(self.written_forward)], inputs)
            floats = [(name, x.shape) for name, x in named if is_floating(x)]
            if len(floats) == len(found) and not any(self.inside or ()):             # it may be that of a weight
                found = tuple(g if np.shape(g) == shape and self.may_be_of(name, called) else None
                              for g, (name, shape) in zip(found, floats))            # fmt: skip
        if not any(self.inside or ()):
            known = self.written_forward, self.parameters
            self.may_have_one = without_a_gradient(found, gradients, called, inputs, *known)
        return tuple(scaled(g, factor) for g in found)

    def may_be_of(self, name: str, called: Sequence[str]) -> bool:
        """Whether a gradient that came back may be that of an input, although weights have none"""
        return not isinstance(self, WithGradients) or any(is_gradient_name(said, name) for said in called)

    def names_inside(self, inputs: Sequence[Any]) -> list[str | int]:
        """The names of what has a gradient: of inputs, of arrays inside them, of parameters"""
        inside = map(ways_in, inputs) if self.inside is None else self.inside
        ways = [way for ways in inside for way in ways]
        names = [p.name for p in parameters_of(self.written_forward)]
        return [*names, *(step for way in ways for step in way), *(p.ways[0][-1] for p in self.parameters.values())]

    def has_arrays_of(self, owner: Any) -> None:
        """From now on, the arrays in somebody's object are the parameters; there may be no object, None."""
        self.its_object = owner
        self.parameters = {} if owner is None else stored_arrays(owner)
        self.earlier = [] if owner is None else earlier_gradients(owner, self.parameters)    # once, not in every call

    def copy_of_its_object(self, may_change_them: bool = False) -> Any:
        """`with_parameters` of the object, or None if there is none."""
        own = self.its_object
        return own and with_parameters(own, self.parameters, self.earlier, may_change_them)

    def build(self, inputs: Sequence[Any]) -> None:
        """Weights that an object makes in its first forward are parameters, too: from now on, a copy that has made them
        is its object. They stay as they are in later forwards, unlike states and what is kept for the backward.
        """
        owner, own, given = self.its_object, self.parameters, copy.deepcopy(list(inputs))
        others = [1.1 * x + 0.01 if is_floating(x) else x for x in given]
        with self._on_copies(), suppress(*FAILURES):     # the check itself will say what is wrong
            self(*given)
            built = copy_of(self.now)
            made = {name: p for name, p in stored_arrays(built).items() if name not in own}
            if made:
                self.has_arrays_of(built)
                self(*copy.deepcopy(others))
                made = {name: p for name, p in made.items() if np.array_equal(reached(self.now, p.ways[0]), p.data)}
                self.parameters = {name: p for name, p in self.parameters.items() if name in own or name in made}
                y = np.copy(self(*copy.deepcopy(given))[0])
                made = [name for name in made if self._reads(self.parameters[name], y, inputs)]
                self.parameters = {name: p for name, p in self.parameters.items() if name in own or name in made}
                if made:
                    return
        if self.its_object is not owner:
            self.has_arrays_of(owner)

    def leave_out_buffers(self, inputs: Sequence[Any]) -> None:
        """Arrays that the forward writes into before it reads them are no parameters: self.out, with out=self.out."""
        def run():
            y = np.copy(self(*copy.deepcopy(list(inputs)))[0])
            return y, [name for name, p in self.parameters.items() if not np.array_equal(p.data, before[name])]

        with self._on_copies() as before, suppress(*FAILURES):           # the check itself will say what is wrong
            y, written = run()
            for name in written:
                self.parameters[name].data[...] = before[name] + 1
            if written and np.array_equal(run()[0], y):
                self.parameters = {name: p for name, p in self.parameters.items() if name not in written}
            moments = [name for name in self.parameters if OF_OPTIMIZER.search(name)]
            self.parameters = {name: p for name, p in self.parameters.items()
                               if name not in moments or self._reads(p, y, inputs)}         # fmt: skip
            self._take_up_private(y, inputs)

    @contextmanager
    def _on_copies(self) -> Iterator[dict[str, Array]]:
        """Inside the block, the parameters' data are copies: the learner's may be read-only. Gives {name: theirs}"""
        parameters, given = self.parameters, {name: p.data for name, p in self.parameters.items()}
        for p in parameters.values():
            p.data = p.data.copy()
        try:
            yield given
        finally:
            for name, p in parameters.items():
                p.data, p.grad = given[name], None

    def _take_up_private(self, y: Array, inputs: Sequence[Any]) -> None:
        """Arrays in self._store["W"] and the like are parameters if y depends on them; a cache is not read."""
        public, known = self.parameters, {id(p.data) for p in self.parameters.values()}
        for name, p in stored_arrays(self.its_object, private=True).items():
            if name not in public and id(p.data) not in known:
                self.parameters = public | {name: p}
                public = self.parameters if self._reads(p, y, inputs) else public
        self.parameters = public

    def _reads(self, p, y, inputs):
        """Whether another array in the place of a parameter gives another y"""
        given, p.data = p.data, p.data * 1.5 + 0.1
        try:
            return not np.array_equal(y, self(*copy.deepcopy(list(inputs)))[0])
        except FAILURES:
            return False
        finally:
            p.data = given

    def find_gradients(self, inputs: Sequence[Any]) -> None:
        """Where names do not tell whose gradients an object keeps, or what comes back, they are measured."""
        given = copy.deepcopy(list(inputs))
        with self._on_copies(), suppress(*FAILURES):     # the check itself will say what is wrong
            y, backward = self(*given)
            before, dy = copy.deepcopy(self.now), np.random.default_rng(0).standard_normal(np.shape(y))
            dy = dy if np.ndim(y) else 1.0               # of a loss, what is kept are the gradients for 1
            backward(dy)
            if any(p.grad is None for p in self.parameters.values()):
                find_kept_gradients(self.parameters, self.now, before, (), lambda: self(*given)[0], dy)
        self.earlier = earlier_gradients(self.its_object, self.parameters)

    def _shapes_of_lists(self):
        """[shapes] of the parameters that are in lists, list by list"""
        lists = {}
        for p in self.parameters.values():
            *holder, last = p.ways[0]
            if isinstance(last, int):
                lists.setdefault(tuple(holder), []).append(p.data.shape)
        return list(lists.values())

    def by_place(self, gradients: Any, inputs: Sequence[Any], called: Sequence[str]) -> list[str]:
        """["dx", "dW"] if there is a gradient for each floating input, then for each of the file's variables.

        [] if the backward's own names say to which of them each belongs: the variables have no order.
        """
        names = [p.name for p in parameters_of(self.written_forward)]
        wanted = {name: x for name, x in zip(names, inputs) if is_floating(x)}
        wanted |= {name: p.data for name, p in self.parameters.items()}
        if all(any(is_gradient_name(said, name.rpartition(".")[2]) for said in called) for name in wanted):
            return []
        shapes = [x.shape for x in wanted.values()]
        return [f"d{name}" for name in wanted] if shapes == [np.shape(g) for g in list_of(gradients)] else []

    def found_in(self, machine: Any, returned: dict[str, Any]) -> list[tuple[Stored, Array]]:
        """[(parameter, its gradient)], which the object keeps, or has returned by name"""
        came = flat(self.came)
        found = [(p, came[p.kept_at[1]] if p.is_returned else p.gradient_in(machine, returned))
                 for p in self.parameters.values()]      # fmt: skip
        self.kept_differently = [name for name, p in self.parameters.items() if p.is_kept_differently]
        self.claimed = [g for _, g in found if g is not None]
        return [(p, np.copy(g)) for p, g in found if g is not None]      # a backward may write into its array again

    @staticmethod
    def collect(found: Sequence[tuple[Stored, Any]], factor: Array | float | None) -> None:
        """Add to the parameters their gradients, times the factor: see `scaled`."""
        for p, g in found:
            p.grad = scaled(g, factor) if p.grad is None else p.grad + scaled(g, factor)

    def about_arguments(self) -> str:
        """That it cannot be told what the backward is to be given"""
        taken = ", ".join(p.name for p in parameters_of(self.written_backward))
        return (
            f"it cannot be told what to give {self.written_backward.__name__}({taken}): dy comes first, or is called "
            "dout, grad or the like; then the cache, and the forward's arguments by their names. If it begins with the "
            "loss, check a function that returns the loss and its gradients"
        )

    def overwrites(self, p: "Stored", inputs: Sequence[Any]) -> bool:
        """True if the forward puts another array, or other numbers, in the place of an object's array."""
        given, before = p.data, np.copy(p.data)
        try:
            if isinstance(p, Variable):
                self.written_forward(*inputs)
                return p.data is not given or not np.array_equal(given, before)
            own = with_parameters(self.written_forward.__self__, self.parameters)
            getattr(own, self.written_forward.__name__)(*inputs)
            return reached(own, p.ways[0]) is not given or not np.array_equal(given, before)
        finally:
            given[...] = before
            p.data = given

    def closed(self, backward: Backward, takes_dy: bool = True) -> Backward:
        """The backward of one call. Tools that look for its source find the learner's function.

        takes_dy: False if the learner's backward takes no upstream gradient, as that of a loss may
        """
        backward.takes_dy = takes_dy
        backward.__wrapped__ = inspect.unwrap(getattr(self.written_backward, "__func__", self.written_backward))
        return backward


class Changed(Brought):
    """A Brought with another backward: see `with_other_backward`."""

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        y, backward = self.brought(*inputs)
        return y, self.change(backward)


class Kept(dict):
    """{name: value} of what a forward returns beside its outputs, for its backward"""


class Pair(Brought):
    """out, cache = f_forward(x, w) and dx, dw = f_backward(dout, cache)

    Several outputs, out1, out2, cache or (out1, out2), cache, become one, all entries in a row. A forward that keeps
    nothing is one whose backward takes the inputs again: dx = tanh_backward(dout, x).
    """

    takes_dy = None          # whether the backward takes the gradients of the outputs: known after the first call
    together = False         # the outputs come in a tuple of their own, and their gradients go back in one
    cache_comes_first = None                             # backward(kept, error): known after the first call
    filled = None            # {name: gradient} in arrays that the backward was given to fill

    def __init__(self, forward: Callable, backward: Callable):
        super().__init__(forward, by_place(backward))
        self.given_back = returned_names(forward)        # read once: not while f is watched
        self.kept = self.kept_by_name()

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        with self.pointing_to(inputs):
            result = self.written_forward(*inputs)
        outputs, cache = self.split(result)
        y, pieces = together(outputs)

        if self.takes_dy is None:                        # the same in every call, of which there are thousands
            self.takes_dy = self.arguments([y] * (1 if self.together else len(outputs)), cache, inputs) is not None
            self.inputs_are_data |= not self.takes_dy and cache is None  # loss(w, X, y) and gradient(w, X, y)

        def backward(dy):
            dys = [tuple(pieces(dy))] if self.together else pieces(dy)
            arguments = self.arguments(dys if self.takes_dy else [], cache, inputs)
            needed = [p for p in parameters_of(self.written_backward) if p.default is p.empty]
            if arguments is None or len(arguments) < len(needed):
                raise TypeError(self.about_arguments())
            factor = None if self.takes_dy else dy       # that of a loss may take no dloss: it is 1

            def go_back():
                try:
                    came = self.written_backward(*arguments)
                except FAILURES:
                    if len(arguments) != 2 or cache is None or self.cache_comes_first is not None:
                        raise
                    self.cache_comes_first = True        # backward(kept, error)
                    came = self.written_backward(*arguments[::-1])
                if self.cache_comes_first is None:
                    self.cache_comes_first = False
                return self.filled if came is None and self.filled else came

            return self.gone_back(go_back, inputs, self.returned, factor)

        return y, self.closed(backward, self.takes_dy)

    def split(self, result: Any) -> tuple[list[Any], Any]:
        """(outputs, cache): the cache is the last of what the forward returned, if its backward takes one"""
        if not isinstance(result, tuple):
            return [result], None
        if self.kept and len(result) == len(self.given_back):
            kept = Kept({self.given_back[k]: result[k] for k in self.kept})
            return [x for k, x in enumerate(result) if k not in self.kept], kept
        wanted = [p for p in parameters_of(self.written_backward) if p.default is p.empty]
        if len(result) == 2 and isinstance(result[0], (tuple, list)):
            self.together = len(wanted) <= len(result[0])
            return list(result[0]), result[1]
        if len(result) == 2 or len(wanted) <= len(result) or isinstance(result[-1], (tuple, list, dict)):
            return list(result[:-1]), result[-1]
        return list(result), None

    def kept_by_name(self) -> set[int]:
        """The places of what the forward gives back beside its outputs under names that the backward has for it: of
        `return y, n, inv`, with backward(dy, n, inv), the second and the third
        """
        known = [p.name for p in parameters_of(self.written_forward)]
        wanted = [p.name for p in parameters_of(self.written_backward) if p.default is p.empty and p.name not in known]
        kept = {k for k, name in enumerate(self.given_back) if k and name in wanted and not may_be_given(name)}
        upstream = [name for name in wanted if name not in {self.given_back[k] for k in kept}]
        return kept if len(upstream) == len(self.given_back) - len(kept) and all(map(may_be_given, upstream)) else set()

    def arguments(self, dys: list[Any], cache: Any, inputs: Sequence[Any]) -> list[Any] | None:
        """The arguments of the backward; None if it takes no dy: that of a loss, which is 1."""
        parameters = parameters_of(self.written_backward)
        given = dict(zip((p.name for p in parameters_of(self.written_forward)), inputs))
        needed = [p.name for p in parameters if p.default is p.empty]
        if isinstance(cache, Kept):
            given, cache = given | cache, None
        caches = [name for p in parameters if CACHE.search(name := p.name) and name not in given]
        others = [name for name in needed if name not in given]
        if len(others) < len(dys):
            others = [name for name in needed if name not in given or name.lower().startswith("d")]
        if cache is None and not caches and len(others) == len(dys) < len(needed):
            dys = iter(dys)                              # backward(x, w, dout)
            return [next(dys) if name in others else given[name] for name in needed]
        if cache is None and (buffers := self.buffers_among(others, inputs, len(dys))):
            self.filled, dys = {name: np.zeros(given[name].shape) for name in buffers.values()}, iter(dys)
            return [given[name] if name not in others else self.filled[buffers[name]] if name in buffers else next(dys)
                    for name in needed]  # fmt: skip
        if not caches and cache is not None:             # by its place
            upstream = [name for name in needed if name not in given and may_be_given(name)][: len(dys)]
            first = upstream if len(upstream) == len(dys) else needed[: len(dys)]    # backward(net, dout, cache), too
            if len(needed) == 2 and self.cache_comes_first:
                first = needed[1:]
            rest = [name for name in needed if name not in first]
            left = [name for name in rest if name not in given]          # backward(da, db, w, kept)
            if isinstance(cache, tuple) and len(rest) == len(cache) > 1 and rest == needed[len(dys) :]:
                others = [name for name, x in zip(rest, cache) if name in given and given[name] is not x]
                if len(left) != 1 or not others:
                    return [*dys, *cache]
            caches = rest[-1:] if len(rest) == 1 or not dys else left if len(left) == 1 else []
        elif not caches and len(needed) == len(dys) + len(inputs) and not set(needed[len(dys) :]) <= given.keys():
            return [*dys, *inputs]
        if not parameters and cache is None and _takes_any(self.written_backward):           # gradients(*inputs)
            return None if dys else list(inputs)
        dys, arguments, used = list(dys), [], 0
        for p in parameters:
            if p.name in caches:
                arguments.append(cache)
            elif p.name in given and not p.name.lower().startswith("d"):
                arguments.append(given[p.name])
            elif dys:
                arguments.append(dys.pop(0))
                used += 1
            elif p.default is p.empty:
                return None if used == 0 else arguments
            else:
                break
        return arguments if not dys else None

    def buffers_among(self, names: Sequence[str], inputs: Sequence[Any], many: int) -> dict[str, str]:
        """{name of a buffer: the input whose gradient is to be written into it}, and `many` names are left; {} if there
        are none: backward(dout, x, dx, w, dw)
        """
        named = zip([p.name for p in parameters_of(self.written_forward)], inputs)
        floats = [name for name, x in named if is_floating(x)]
        if len(names) != many + len(floats):
            return {}
        for like in (is_gradient_name, lambda said, name: said.lower() == f"{name}b".lower()):           # XB, of X
            found = {said: name for name in floats for said in names if said != name and like(said, name)}
            if len({*found.values()}) == len(found) == len(floats):
                return found
        return {}

    def goes_with(self, inputs: Sequence[Any], given: Sequence[Any]) -> bool:
        """True if the backward, called after a forward of these inputs, gets what is `given` to it by the learner."""
        outputs, cache = self.split(self.written_forward(*inputs))
        dys = given[: 1 if self.together else len(outputs)]
        if any(isinstance(x, np.ndarray) and _alike(x, y) for x, y in zip(dys[1:], outputs[1:])):
            return False                                 # backward(dy, n, …), after y, n, …: n is kept
        arguments = self.arguments(list(dys), cache, inputs)
        if arguments is None and not np.ndim(outputs[0]):                # of a loss, whose dloss is 1
            arguments = self.arguments([], cache, inputs)
        return arguments is not None and len(arguments) == len(given) and all(map(_alike, arguments, given))


def _takes_any(f):
    """True for f(*args)"""
    return any(p.kind == p.VAR_POSITIONAL for p in inspect.signature(f).parameters.values())


def _shapes(x):
    """The shapes of the arrays in a list; None of what is no list"""
    return [np.shape(one) for one in x] if isinstance(x, list) else None


def _alike(x, y):
    """True for equal arrays; of others, for the same type."""
    return np.array_equal(x, y, equal_nan=True) if isinstance(x, np.ndarray) else type(x) is type(y)


class Several(Brought):
    """y1, y2, backward = f(…), or (y1, y2), backward = f(…), and backward(dy1, dy2), or backward((dy1, dy2))"""

    def __init__(self, f: Callable):
        super().__init__(f, f)

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        with self.pointing_to(inputs):
            *outputs, written = self.written_forward(*inputs)
        outputs = list_of(outputs[0]) if len(outputs) == 1 else outputs
        y, pieces = together(outputs)
        one_by_one = len(parameters_of(written)) >= len(outputs)

        def backward(dy):
            dys = pieces(dy) if one_by_one else [tuple(pieces(dy))]
            return self.gone_back(lambda: written(*dys), inputs, returned_names(written))

        backward.__wrapped__ = written
        return y, backward


class WithContext(Brought):
    """A class with static forward(ctx, x, …) and backward(ctx, dout), where ctx keeps what the backward needs"""

    def __init__(self, cls: type):
        super().__init__(cls.forward, cls.backward)
        self.__name__ = cls.__name__
        first, *others = self.__signature__.parameters.values()
        self.__signature__ = self.__signature__.replace(parameters=others)

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        ctx = Context()
        y, pieces = together(list_of(self.written_forward(ctx, *inputs)))

        def backward(dy):
            return self.gone_back(lambda: self.written_backward(ctx, *pieces(dy)), inputs, self.returned)

        return y, self.closed(backward)


class Context(SimpleNamespace):
    """What PyTorch calls ctx; saved and saved_values are other people's names for what it has saved"""

    saved_tensors = saved = saved_values = ()

    def save_for_backward(self, *arrays) -> None:
        self.saved_tensors = self.saved = self.saved_values = arrays


class Machine(Brought):
    """An object with forward and backward, which keeps its weights and their gradients as attributes.

    It may also keep what others return, self.output and self.dinputs; and where its backward takes a learning rate and
    changes the weights at once, the gradients are what a step of rate 1 takes away.
    """

    inputs_are_data = True
    takes_tuple = None                                   # backward((dy,)): known after the first call

    def __init__(self, machine: Any, way: str | None = None, way_back: str | None = None):
        self.its_object = machine
        self.way = way or forward_of(machine)
        self.way_back = way_back or backward_of(machine)
        super().__init__(getattr(machine, self.way), getattr(machine, self.way_back))
        self.has_arrays_of(machine)
        self.rate = {p.name: 1.0 for p in parameters_of(self.written_backward) if RATES.match(p.name)}
        self.taken = [p for p in parameters_of(self.written_backward) if p.name not in self.rate]    # none: dloss is 1
        self.takes_any = not self.taken and _takes_any(self.written_backward)        # backward(*dys)
        names = [p.name for p in parameters_of(self.written_forward)]
        needed = [p.name for p in self.taken if p.default is p.empty]
        self.takes_inputs = bool(needed) and needed == names             # loss(x, t) and gradient(x, t)
        self.again = {name: names.index(name) for name in needed if name in names and not may_be_given(name)}

    def named(self) -> str:
        return type(self.its_object).__name__

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        own = self.now = with_parameters(self.its_object, self.parameters, self.earlier)
        result = getattr(own, self.way)(*inputs)
        if result is None:
            result = next((x for name in OUTPUTS if is_floating(x := members(own).get(name))), None)
        needed = [p for p in self.taken if p.default is p.empty]
        keeps = not self.again and isinstance(result, tuple) and len(needed) >= 2 and len(result) == len(needed)
        keeps = keeps and not may_be_given(needed[-1].name)               # backward(dout, cache), not backward(dh, dc)
        cache = [result[-1]] if keeps else []
        y, pieces = together(list_of(result)[: -1 if keeps else None])
        of_a_loss = self.takes_inputs and not np.ndim(y)
        takes_dy = bool(self.taken or self.takes_any) and not of_a_loss

        def backward(dy):
            with self.apart(inputs):
                once = own if self.goes_back_once and not self.rate else copy_of(own)  # a backward may change it
                self.now = once
                arguments = [*pieces(dy), *cache] if self.taken or self.takes_any else []
                if of_a_loss:
                    arguments = inputs
                elif [p.name for p in needed] == ["inputs", "grad_outputs"]:
                    arguments = inputs, tuple(pieces(dy))
                elif self.again and len(arguments) + len(self.again) == len(needed):         # backward(x, dy)
                    left = iter(arguments)
                    arguments = [inputs[self.again[p.name]] if p.name in self.again else next(left) for p in needed]
                if len(arguments) < len(needed):
                    raise TypeError(self.about_arguments())
                came, once = self.came_back(once, arguments, own)
                came = self.came = by_their_names(came, self.names_inside(inputs))
                factor = None if takes_dy else dy
                found = self.found_in(once, by_name(came, self.returned)) or self.taken_away(once)
                self.collect(found, factor)
                came = self.kept_for(inputs, once) if came is None else came
                return self.in_order(came, self.returned, inputs, factor)

        return y, self.closed(backward, takes_dy)

    def came_back(self, machine: Any, arguments: Sequence[Any], unused: Any) -> tuple[Any, Any]:
        """(what its backward returns, the machine that ran it). If it fails with dy, it may take a tuple: gy, = dys

        unused: the machine as its forward left it, of which another copy may be tried
        """
        def go_back(machine, *arguments):
            return getattr(machine, self.way_back)(*arguments, **self.rate), machine

        if self.takes_tuple:
            return go_back(machine, tuple(arguments))
        try:
            result = go_back(machine, *arguments)
        except (TypeError, ValueError) as error:
            if len(arguments) != 1 or self.takes_tuple is not None or unused is machine:
                raise
            self.now = copy_of(unused)
            try:
                result = go_back(self.now, tuple(arguments))
            except FAILURES:
                raise error from None
            self.takes_tuple = True
        else:
            self.takes_tuple = False
        return result

    def run_again(self, inputs: Sequence[Any], others: Sequence[Any], dy: Array | float) -> dict[str, str]:
        """{parameter: what becomes of its gradient if the object runs with `inputs`, and then with others}

        "new" as it should be, "adds up" to what was there, or "old"; {} if y is another, too: an RNN may keep its state
        """
        ys = []

        def gradients(given, dy):
            for p in self.parameters.values():
                p.grad = None
            y, backward = self(*given)
            ys.append(np.copy(y))
            backward(dy)
            return {name: p.grad for name, p in self.parameters.items()}

        machine, earlier, found = self.its_object, self.earlier, {}
        try:
            new, first = gradients(others, dy), gradients(inputs, -0.6 * dy)
            self.its_object, self.earlier = self.now, []
            second = gradients(others, dy)
        finally:
            self.its_object, self.earlier = machine, earlier
        for name in new if np.array_equal(ys[0], ys[-1]) else ():
            parts = new[name], first[name], second[name]
            if all(is_floating(g) and g.any() for g in parts) and not np.allclose(*parts[:2], rtol=1e-3, atol=0):
                likely = {"new": new[name], "adds up": new[name] + first[name]}
                fitting = (what for what, g in likely.items() if np.allclose(second[name], g, rtol=1e-9, atol=1e-12))
                found[name] = next(fitting, "old")
        return found

    def taken_away(self, machine: Any) -> list[tuple[Stored, Array]]:
        """[(parameter, gradient)] of a backward that has made a step of rate 1; [] of another"""
        return [(p, p.data - reached(machine, p.ways[0])) for p in self.parameters.values() if self.rate]

    def kept_for(self, inputs: Sequence[Any], machine: Any) -> dict[str, Any]:
        """{name: gradient} of the floating inputs that the object has kept: of `inputs`, self.dinputs"""
        names = [p.name for p, x in zip(parameters_of(self.written_forward), inputs) if is_floating(x)]
        return {name: gradient_beside(members(machine), name) for name in names}


def forward_of(machine: Any) -> str | None:
    """The name of the method that runs the machine forward, or None."""
    names = [*FORWARD, *["__call__"] * callable(machine)]        # every class itself can be called
    return method_of(type(machine), names, GO_FORWARD)


def backward_of(machine: Any) -> str | None:
    """The name of the method of an object that goes back, or None."""
    own = next((name for name in BACKWARD if callable(getattr(machine, name, None))), None)
    return own or method_of(type(machine), BACKWARD, GO_BACK)


class WithGradients(Brought):
    """loss, dW = f(W, …): a loss that comes with its gradients; a method's may be in a dict, named as its weights

    Gradients that f keeps, in objects that it is given or in variables of its file, need not come with the loss.
    """

    inputs_are_data = True

    def __init__(self, f: Callable, owner: Any = None):
        super().__init__(f, f)
        self.has_arrays_of(owner)
        self.returned = self.returned[1:]

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        own = self.now = self.copy_of_its_object(may_change_them=True)
        f = self.written_forward if own is None else getattr(own, self.written_forward.__name__)
        variables = self.parameters if own is None else {}
        forget_gradients(inputs, self.inside)
        with self.pointing_to(inputs), keeping(variables, self.kept_in) as kept:
            result = f(*inputs)
            loss, *gradients = loss_and_gradients(result) or [result]
            gradients = gradients[0] if len(gradients) == 1 else tuple(gradients)
            gradients = self.came = by_their_names(gradients, self.names_inside(inputs))
            found = self.found_in(kept() if own is None else own, by_name(gradients, self.returned))
            claimed = self.claimed

        def backward(dy):
            self.claimed = claimed                       # not of another call
            self.collect(found, dy)
            return self.in_order(gradients, self.returned, inputs, dy)

        return loss, self.closed(backward, takes_dy=False)


class WithGraph(Brought):
    """y = f(x) is an object that remembers how it was computed: y.data, y.backward(dy); then W.grad is beside W.data

    Or a method gives y, backward, and the object keeps the gradients of its weights.
    """

    inputs_are_data = True

    def __init__(self, f: Callable, owner: Any = None):
        super().__init__(f, f)
        self.has_arrays_of(owner)
        self.returned = []

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        own = self.now = self.copy_of_its_object()
        f = self.written_forward if own is None else getattr(own, self.written_forward.__name__)
        forget_gradients(inputs, self.inside)
        result = f(*inputs)
        y, back = result if keeps_contract(result) else graph_of(result)
        y, pieces = together(list_of(y))
        takes_dy, called, used = bool(parameters_of(back)), returned_names(back), []

        def backward(dy):
            if used:                                     # which has left gradients, to which another would add its own
                return self(*inputs)[1](dy)
            used.append(True)
            dys = pieces(dy)[: len(parameters_of(back))]
            came = self.came = by_their_names(back(*dys), self.names_inside(inputs))
            factor = None if takes_dy else dy
            self.collect(self.found_in(own, by_name(came, called)), factor)
            return self.in_order(came, called, inputs, factor)

        backward.__wrapped__ = inspect.unwrap(getattr(back, "__func__", back))
        backward.takes_dy = takes_dy
        return y, backward


def graph_of(result: Any) -> tuple[Any, Callable] | None:
    """(y, the method that goes back) of a result that remembers how it was made, as PyTorch's tensors do, or None"""
    if is_ours(result) or inspect.isclass(result) or not callable(back := getattr(result, "backward", None)):
        return None
    if isinstance(result, np.ndarray):
        return np.asarray(result), back
    arrays = {name: x for name, x in members(result).items() if is_floating(x) and VALUE.match(str(name))}
    return (next(iter(arrays.values())), back) if len(arrays) == 1 else None


class WithMode(Brought):
    """y = f(x, w), and dx, dw = f(x, w, dzdy=dy)"""

    def __init__(self, f: Callable, option: str):
        super().__init__(f, f)
        self.option = option

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        y, pieces = together(list_of(self.written_forward(*inputs)))

        def backward(dy):
            dys = pieces(dy)
            option = {self.option: dys[0] if len(dys) == 1 else tuple(dys)}
            return self.gone_back(lambda: self.written_forward(*inputs, **option), inputs, self.returned)

        return y, self.closed(backward)
