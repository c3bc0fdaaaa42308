"""Other people's ways to write a backward, brought to y, backward = f(…).

    out, cache = affine_forward(x, w, b)                 a pair of functions; the second is found by its name
    dx, dw, db = affine_backward(dout, cache)
    h, c, backward = lstm_step(x, h, c)                  several outputs, and backward(dh, dc)
    net.forward(x); net.backward(dout)                   an object that keeps what it needs, its weights and gradients
    net.loss(x, y); net.backward()                       the same, of a model that begins with its loss
    loss, dW = svm_loss(W, x, y)                         a loss that comes with its gradients

Weights may also be in a dict, a list, a tuple or an object that a function is given, grads in one like it (`in_order`);
or they are variables of its file (`variables.py`).
`in_contract` gives a Brought, which is called as any op is. The learner's object is copied for each call, so it stays
as it is, and a backward can be called twice.
"""

import copy
import inspect
import re
import sysconfig
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType, MappingProxyType, SimpleNamespace
from typing import Any

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.naming import LEARNED, is_gradient_name, is_upstream
from mini_tf.gradcheck.measuring.returned import (
    by_name,
    in_order,
    list_of,
    parameters_of,
    returned_names,
    scaled,
    together,
    without_a_gradient,
)
from mini_tf.gradcheck.measuring.stored import (
    BACKWARD,
    FORWARD,
    Stored,
    earlier_gradients,
    forget_gradients,
    gradient_beside,
    gradient_kept,
    gradients_apart,
    is_floating,
    members,
    reached,
    stored_arrays,
    ways_in,
    with_parameters,
)
from mini_tf.gradcheck.measuring.variables import (
    Variable,
    Variables,
    arrays_named_in,
    gradients_named_in,
    keeping,
    named_in,
)
from mini_tf.trace import keeps_contract
from mini_tf.types import Array, Backward

import numpy as np

CACHES = {"cache", "caches", "ctx", "context", "memory", "saved", "stash", "kept", "tape", "record"}
BACKWARDS = {"forward": ("backward", "back", "backprop", "bwd"), "fwd": ("bwd", "bprop"), "fw": ("bw",)}
BACK = re.compile(r"back|bwd|bprop|bw$")
OUTPUTS = "output", "outputs", "out", "y", "result"      # where an object may keep what its forward gives
RATES = {"learning_rate", "lr", "eta", "rate", "step_size"}
INSTALLED = [Path(sysconfig.get_path(which)) for which in ("stdlib", "purelib", "platlib")]
NOT_THEIRS = [Path(__file__).parents[2], *INSTALLED]


def in_contract(f: Any, inputs: Sequence[Any]) -> Any:
    """f itself if it keeps y, backward = f(…) or is in no style known here, else a Brought of it.

    f may be an object with forward and backward, its method forward, a pair (forward, backward), a class with static
    forward(ctx, …) and backward(ctx, …), or a function whose partner is found by its name: see `partner`.
    """
    return f if isinstance(f, Brought) else _with_variables(_in_style(f, inputs), inputs)


def _in_style(f, inputs):
    if isinstance(f, (tuple, list)) and len(f) == 2 and all(map(callable, f)):
        return Pair(*f)
    owner = getattr(f, "__self__", None)
    if inspect.isclass(f):
        return WithContext(f) if is_static(f) else f
    if is_machine(f):
        return f if keeps_contract_itself(f, inputs) else Machine(f)
    if has_loss(f) and not callable(f):
        return in_contract(f.loss, inputs)
    if is_machine(owner) and getattr(f, "__name__", "") in (*FORWARD, "__call__"):
        return Machine(owner)
    if not callable(f) or is_ours(f):
        return f
    found = partner(f)
    says_forward = any(word in f.__name__.lower() for word in FORWARD) if found else False
    if says_forward:
        return Pair(f, found)
    a_method = owner is not None and not inspect.ismodule(owner) and not inspect.isclass(owner)
    goes_back = a_method and backward_of(owner) is not None
    try:
        trial = getattr(copy.deepcopy(owner), f.__name__) if a_method else f
        given = copy.deepcopy(list(inputs))
        result = trial(*given)
    except FAILURES:                                     # the check itself will say what is wrong
        return Machine(owner, f.__name__) if goes_back else f
    if keeps_contract(result):
        several = isinstance(result[0], (tuple, list)) and all(isinstance(y, np.ndarray) for y in result[0])
        return Several(f) if several or any(map(ways_in, inputs)) else f
    if isinstance(result, tuple) and len(result) > 2 and callable(result[-1]):
        return Several(f)
    if found:
        return Pair(f, found)
    if not isinstance(result, tuple):
        kept = [gradient_kept(x, way) for x in given for way in ways_in(x)]
        if is_single(result) and any(g is not None for g in kept):
            return WithGradients(f)
        return Machine(owner, f.__name__) if goes_back else f
    gradients = result[1] if len(result) == 2 else result[1:]
    shapes = {x.shape for x in inputs if is_floating(x)}
    if is_single(result[0]) and is_gradient(gradients, shapes):
        return WithGradients(f, owner if a_method else None)
    return f


def _with_variables(f, inputs):
    """f, or a Brought whose parameters are variables of f's file: those whose gradients come back"""
    if isinstance(f, Brought):
        candidates = [f]
    else:
        candidates = [Several(f), WithGradients(f)] if inspect.isfunction(f) and not is_ours(f) else []
    for brought in candidates:
        brought.is_given(inputs)
        found = {} if brought.parameters else arrays_named_in(brought.written_forward)
        given = {id(x) for x in inputs}
        found = {name: p for name, p in found.items() if id(p.variables[p.ways[0][0]]) not in given}
        if found and _take_up(brought, found, inputs):
            return brought
    return f


def _take_up(brought, found, inputs):
    """Whether some of the variables found have gradients; they, and what else is learned, become parameters."""
    brought.keeps(found)
    try:
        y, backward = brought(*copy.deepcopy(list(inputs)))
        backward(np.ones_like(y) if np.ndim(y) else 1.0)
    except FAILURES:                                     # the check itself will say what is wrong
        brought.keeps({})
        return False
    have_one = [name for name, p in found.items() if p.grad is not None]
    for p in found.values():
        p.grad = None
    learned = {name: p for name, p in found.items() if name in have_one or LEARNED.match(str(p.ways[0][-1]))}
    brought.keeps(learned if have_one else {})
    return bool(have_one)


def is_static(cls: type) -> bool:
    """True for a class with static forward(ctx, …) and backward(ctx, …)."""
    return all(isinstance(inspect.getattr_static(cls, name, None), staticmethod) for name in ("forward", "backward"))


def is_machine(x: Any) -> bool:
    """True for an object with forward (or a call) and backward, which is no layer of mini_tf and no class."""
    if inspect.isclass(x) or inspect.ismodule(x) or inspect.isroutine(x) or x is None or is_ours(x):
        return False
    return backward_of(x) is not None and forward_of(x) is not None


def has_loss(x: Any) -> bool:
    """True for an object whose method loss gives a loss and its gradients."""
    return not (inspect.isclass(x) or inspect.ismodule(x) or is_ours(x)) and callable(getattr(x, "loss", None))


def keeps_contract_itself(machine: Any, inputs: Sequence[Any]) -> bool:
    """True for an object whose call gives y, backward."""
    if not callable(machine):
        return False
    try:
        result = copy.deepcopy(machine)(*copy.deepcopy(list(inputs)))
    except FAILURES:
        return False
    return keeps_contract(result)


def forward_of(machine: Any) -> str | None:
    """The name of the method that runs the machine forward, or None."""
    names = [*FORWARD, *["__call__"] * callable(machine)]        # every class itself can be called
    return next((name for name in names if callable(getattr(type(machine), name, None))), None)


def backward_of(machine: Any) -> str | None:
    """The name of the method of an object that goes back, or None."""
    return next((name for name in BACKWARD if callable(getattr(machine, name, None))), None)


def is_ours(x: Any) -> bool:
    """True for what mini_tf defines: its ops and layers keep the contract."""
    module = getattr(x, "__module__", None) or type(x).__module__
    ours = any(cls.__module__.startswith("mini_tf.") for cls in type(x).__mro__)
    return ours or str(module).startswith("mini_tf.")


def is_theirs(x: Any) -> bool:
    """True for a function or class that is neither Python's, nor of an installed package, nor mini_tf's."""
    if inspect.isclass(x):
        methods = [g for g in (getattr(g, "__func__", g) for g in vars(x).values()) if inspect.isfunction(g)]
        return bool(methods) and is_theirs(methods[0])
    return is_their_file(inspect.unwrap(x).__code__.co_filename)


@cache
def is_their_file(path: str | None) -> bool:
    return path is not None and not any(Path(path).is_relative_to(folder) for folder in NOT_THEIRS)


def is_gradient(x: Any, shapes: Collection[tuple[int, ...]] = ()) -> bool:
    """True for what may be gradients: floating arrays, or a tuple, list or dict of them.

    shapes: those of what has a gradient. Other numbers are wrong gradients if they have such a shape; a single number,
    () is the shape of which, may be a right one
    """
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, (tuple, list)):
        return any(map(is_gradient, x)) and all(is_gradient(g) or np.shape(g) in shapes for g in x)
    return is_floating(x) and x.ndim > 0


def is_single(x: Any) -> bool:
    """True for a number, or an array without axes, as a loss is"""
    return isinstance(x, (int, float, np.generic)) or (isinstance(x, np.ndarray) and x.ndim == 0)


def partner(forward: Any) -> FunctionType | None:
    """The function that goes back, found by its name beside `forward`: affine_backward for affine_forward or affine.

    dsigmoid(dy, a) is one, dsigmoid(a) is not: it gives the derivative.
    """
    name, beside = getattr(forward, "__name__", ""), getattr(inspect.unwrap(forward), "__globals__", {})
    names = []
    for word, others in BACKWARDS.items():
        if word in name.lower():
            names += [re.sub(word, other, name, flags=re.I) for other in others]
            names += [re.sub(word, other.capitalize(), name, flags=re.I) for other in others]
    names += [f"{name}_{word}" for word in ("backward", "back", "backprop", "bwd", "grad", "gradient")]
    names += [f"{word}_{name}" for word in ("backward", "back", "grad", "d")] + [f"d{name}"]
    names += [f"{name}{word}" for word in ("Backward", "Back", "Bwd", "Grad")]
    found = (beside.get(other) for other in names if other != name)
    return next((g for g in found if inspect.isfunction(g) and not _is_derivative(g)), None)


def _is_derivative(g):
    """True for dsigmoid(a) and relu_grad(z), which are given nothing that is called dy, dout, g or the like"""
    return not BACK.search(g.__name__.lower()) and not any(is_upstream(p.name) for p in parameters_of(g))


def partner_wanted(name: str) -> str:
    """The name by which the backward of a function of that name would be found: "affine_backward"."""
    return name.replace("forward", "backward") if "forward" in name else f"{name}_backward"


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

    def __init__(self, forward: Callable, backward: Callable):
        self.written_forward, self.written_backward = forward, backward
        self.__name__ = self.named()
        self.__signature__ = inspect.signature(forward)
        self.returned = returned_names(backward)

    def named(self) -> str:
        return self.written_forward.__name__

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
            came = backward()
            called = self.by_place(came, inputs, called) or called if self.parameters else called
            self.collect(self.found_in(kept(), by_name(came, called)), factor)
            return self.in_order(came, called, inputs, factor)

    def in_order(
        self, gradients: Any, called: Sequence[str], inputs: Sequence[Any], factor: Array | float | None
    ) -> tuple:
        """The gradients of the floating inputs, in their order, times the factor: see the function `in_order`."""
        dicts = [part for part in list_of(gradients) if isinstance(part, dict)]
        self.by_key = {said: g for part in dicts for said, g in part.items() if is_floating(g)}
        lists = self._shapes_of_lists()
        if lists and any(_shapes(part) in lists for part in list_of(gradients)):         # nabla_w, of self.weights
            gradients = tuple(part for part in list_of(gradients) if _shapes(part) not in lists)
        found = in_order(gradients, called, inputs, self.written_forward, self.parameters, self.inside)
        if not any(self.inside or ()):
            known = self.written_forward, self.parameters
            self.may_have_one = without_a_gradient(found, gradients, called, inputs, *known)
        return tuple(scaled(g, factor) for g in found)

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
        found = [(p, p.gradient_in(machine, returned)) for p in self.parameters.values()]
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


class Pair(Brought):
    """out, cache = f_forward(x, w) and dx, dw = f_backward(dout, cache)

    Several outputs, out1, out2, cache or (out1, out2), cache, become one, all entries in a row. A forward that keeps
    nothing is one whose backward takes the inputs again: dx = tanh_backward(dout, x).
    """

    takes_dy = None          # whether the backward takes the gradients of the outputs: known after the first call
    together = False         # the outputs come in a tuple of their own, and their gradients go back in one

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        with self.pointing_to(inputs):
            result = self.written_forward(*inputs)
        outputs, cache = self.split(result)
        y, pieces = together(outputs)

        if self.takes_dy is None:                        # the same in every call, of which there are thousands
            self.takes_dy = self.arguments([y] * (1 if self.together else len(outputs)), cache, inputs) is not None

        def backward(dy):
            dys = [tuple(pieces(dy))] if self.together else pieces(dy)
            arguments = self.arguments(dys if self.takes_dy else [], cache, inputs)
            needed = [p for p in parameters_of(self.written_backward) if p.default is p.empty]
            if arguments is None or len(arguments) < len(needed):
                raise TypeError(self.about_arguments())
            factor = None if self.takes_dy else dy       # that of a loss may take no dloss: it is 1
            return self.gone_back(lambda: self.written_backward(*arguments), inputs, self.returned, factor)

        return y, self.closed(backward, self.takes_dy)

    def split(self, result: Any) -> tuple[list[Any], Any]:
        """(outputs, cache): the cache is the last of what the forward returned, if its backward takes one"""
        if not isinstance(result, tuple):
            return [result], None
        wanted = [p for p in parameters_of(self.written_backward) if p.default is p.empty]
        if len(result) == 2 and isinstance(result[0], (tuple, list)):
            self.together = len(wanted) <= len(result[0])
            return list(result[0]), result[1]
        if len(result) == 2 or len(wanted) <= len(result) or isinstance(result[-1], (tuple, list, dict)):
            return list(result[:-1]), result[-1]
        return list(result), None

    def arguments(self, dys: list[Any], cache: Any, inputs: Sequence[Any]) -> list[Any] | None:
        """The arguments of the backward; None if it takes no dy: that of a loss, which is 1."""
        parameters = parameters_of(self.written_backward)
        given = dict(zip((p.name for p in parameters_of(self.written_forward)), inputs))
        needed = [p.name for p in parameters if p.default is p.empty]
        caches = [p.name for p in parameters if p.name.lower() in CACHES or "cache" in p.name.lower()]
        if not caches and cache is not None:             # by its place
            upstream = [name for name in needed if name not in given and is_upstream(name)][: len(dys)]
            first = upstream if len(upstream) == len(dys) else needed[: len(dys)]    # backward(net, dout, cache), too
            rest = [name for name in needed if name not in first]
            left = [name for name in rest if name not in given]          # backward(da, db, w, kept)
            if isinstance(cache, tuple) and len(rest) == len(cache) > 1 and rest == needed[len(dys) :]:
                others = [name for name, x in zip(rest, cache) if name in given and given[name] is not x]
                if len(left) != 1 or not others:
                    return [*dys, *cache]
            caches = rest[-1:] if len(rest) == 1 or not dys else left if len(left) == 1 else []
        elif not caches and len(needed) == len(dys) + len(inputs) and not set(needed[len(dys) :]) <= given.keys():
            return [*dys, *inputs]
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

    def goes_with(self, inputs: Sequence[Any], given: Sequence[Any]) -> bool:
        """True if the backward, called after a forward of these inputs, gets what is `given` to it by the learner."""
        outputs, cache = self.split(self.written_forward(*inputs))
        dys = given[: 1 if self.together else len(outputs)]
        arguments = self.arguments(list(dys), cache, inputs)
        if arguments is None and not np.ndim(outputs[0]):                # of a loss, whose dloss is 1
            arguments = self.arguments([], cache, inputs)
        return arguments is not None and len(arguments) == len(given) and all(map(_alike, arguments, given))


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
    """What PyTorch calls ctx"""

    saved_tensors = ()

    def save_for_backward(self, *arrays) -> None:
        self.saved_tensors = arrays


class Machine(Brought):
    """An object with forward and backward, which keeps its weights and their gradients as attributes.

    It may also keep what others return, self.output and self.dinputs; and where its backward takes a learning rate and
    changes the weights at once, the gradients are what a step of rate 1 takes away.
    """

    inputs_are_data = True

    def __init__(self, machine: Any, way: str | None = None):
        self.machine, self.way, self.way_back = machine, way or forward_of(machine), backward_of(machine)
        super().__init__(getattr(machine, self.way), getattr(machine, self.way_back))
        self.parameters = stored_arrays(machine)
        self.earlier = earlier_gradients(machine, self.parameters)       # once, not in thousands of calls
        self.rate = {p.name: 1.0 for p in parameters_of(self.written_backward) if p.name.lower() in RATES}
        self.taken = [p for p in parameters_of(self.written_backward) if p.name not in self.rate]    # none: dloss is 1

    def named(self) -> str:
        return type(self.machine).__name__

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        own = with_parameters(self.machine, self.parameters, self.earlier)
        result = getattr(own, self.way)(*inputs)
        if result is None:
            result = next((x for name in OUTPUTS if is_floating(x := members(own).get(name))), None)
        taken = self.taken
        needed = [p for p in taken if p.default is p.empty]
        keeps = isinstance(result, tuple) and len(needed) >= 2 and len(result) == len(needed)
        keeps = keeps and not is_upstream(needed[-1].name)               # backward(dout, cache), not backward(dh, dc)
        cache = [result[-1]] if keeps else []
        y, pieces = together(list_of(result)[: -1 if keeps else None])

        def backward(dy):
            with self.apart(inputs):
                once = own if self.goes_back_once and not self.rate else copy.deepcopy(own)  # a backward may change it
                arguments = [*pieces(dy), *cache] if taken else []
                if len(arguments) < len(needed):
                    raise TypeError(self.about_arguments())
                came = getattr(once, self.way_back)(*arguments, **self.rate)
                factor = None if taken else dy
                found = self.found_in(once, by_name(came, self.returned)) or self.taken_away(once)
                self.collect(found, factor)
                came = self.kept_for(inputs, once) if came is None else came
                return self.in_order(came, self.returned, inputs, factor)

        return y, self.closed(backward, bool(taken))

    def taken_away(self, machine: Any) -> list[tuple[Stored, Array]]:
        """[(parameter, gradient)] of a backward that has made a step of rate 1; [] of another"""
        return [(p, p.data - reached(machine, p.ways[0])) for p in self.parameters.values() if self.rate]

    def kept_for(self, inputs: Sequence[Any], machine: Any) -> dict[str, Any]:
        """{name: gradient} of the floating inputs that the object has kept: of `inputs`, self.dinputs"""
        names = [p.name for p, x in zip(parameters_of(self.written_forward), inputs) if is_floating(x)]
        return {name: gradient_beside(members(machine), name) for name in names}


class WithGradients(Brought):
    """loss, dW = f(W, …): a loss that comes with its gradients; a method's may be in a dict, named as its weights

    Gradients that f keeps, in objects that it is given or in variables of its file, need not come with the loss.
    """

    inputs_are_data = True

    def __init__(self, f: Callable, owner: Any = None):
        super().__init__(f, f)
        self.owner, self.parameters = owner, {} if owner is None else stored_arrays(owner)
        self.earlier = [] if owner is None else earlier_gradients(owner, self.parameters)
        self.returned = self.returned[1:]

    def __call__(self, *inputs) -> tuple[Any, Backward]:
        own = self.owner and with_parameters(self.owner, self.parameters, self.earlier)
        f = self.written_forward if own is None else getattr(own, self.written_forward.__name__)
        variables = self.parameters if own is None else {}
        forget_gradients(inputs, self.inside)
        with self.pointing_to(inputs), keeping(variables, self.kept_in) as kept:
            loss, *gradients = list_of(f(*inputs))
            gradients = gradients[0] if len(gradients) == 1 else tuple(gradients)
            found = self.found_in(kept() if own is None else own, by_name(gradients, self.returned))

        def backward(dy):
            self.collect(found, dy)
            return self.in_order(gradients, self.returned, inputs, dy)

        return loss, self.closed(backward, takes_dy=False)
