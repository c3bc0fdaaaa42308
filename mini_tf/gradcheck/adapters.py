"""Adapters: each kind of function or object, called as   y, back = adapter.call(owner, inputs, options).

back(dy) gives whatever the author's backward returned; whose gradient each part is, is decided in `ownership.py`.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, NamedTuple

from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.weights import is_float
from mini_tf.types import Array

import numpy as np

Result = tuple[Any, Any]   # y, back
RECIPE = ("y, backward = f(…); loss, grads = f(…), which may be a method, net.loss; an object with forward and "
          "backward, or methods=('go', 'come_back'); or a pair: gradcheck((forward, backward), …)")      # fmt: skip


class Adapter:
    """A function or an object, brought to one way of calling it."""

    f: Any                           # a function; or a method, or its name,
    owner: Any                       # and the object that it is of, of which each call gets a copy; else None
    parameters: list[str]            # names of all arguments that go by position,
    names: list[str]                 # and of the inputs, in the order in which they are given
    takes: "Signature | None" = None     # the backward's, once there is one
    takes_dy: bool = True            # False if that is no upstream gradient
    strict: bool = True              # every floating input has to get a gradient; otherwise those without one are data
    of_loss: bool = False            # gradients come with a number, and without an upstream gradient
    together: bool = False           # they do so in one tuple, list or dict
    unfollowed: int = 0              # how many outputs the backward does not go back from
    may_be_single: bool = False      # may compute in float32 inside, where nobody sees it
    order: str = ""                  # in which order a backward was given dy and a cache, in words for one that raised

    def __init__(self, f: Any, inputs: Sequence[Any], owner: Any = None):
        self.f, self.owner = f, owner
        self.parameters = signature_of(bound(f, owner)).names
        more = (f"input_{k}" for k in range(len(self.parameters), len(inputs)))
        self.names = [*self.parameters[: len(inputs)], *more]

    def call(self, owner: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Result:
        """(y, back); back.of: the author's function whose `return` gives the gradients"""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """What a report calls it"""
        name = name_of(self.f)
        if self.owner is None:
            return name
        return type(self.owner).__name__ + ("" if name in ("forward", "__call__") else f".{name}")


class Closure(Adapter):
    """y, backward = f(x, W); of several outputs, those that the backward takes gradients of, else the first"""

    def call(self, owner: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Result:
        *outputs, backward = bound(self.f, owner)(*inputs, **options)
        takes = self.takes = self.takes or signature_of(backward)
        self.takes_dy = takes.needed > 0 or bool(takes.names)
        y, pieces, self.unfollowed = followed(outputs, takes.needed)
        return y, _of(lambda dy: backward(*pieces(dy)) if self.takes_dy else backward(), backward)


class Pair(Adapter):
    """out, cache = forward(x, W);  dx, dW = backward(dout, cache);  or methods of an object, which keeps its cache

    A backward's arguments that are named as inputs of the forward are these inputs. Of the others the first takes dy,
    and the last the cache, what the forward returned last; between them are the gradients of more outputs, if there are
    so many. One alone takes dy; but the cache, if y is a number. A floating array that a method returns last is no
    cache: an LSTM's h, c are two outputs.
    """

    def __init__(self, forward: Any, backward: Any, inputs: Sequence[Any], owner: Any = None):
        super().__init__(forward, inputs, owner)
        self.backward = backward

    def call(self, owner: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Result:
        backward = bound(self.backward, owner)
        out = bound(self.f, owner)(*inputs, **options)
        given = dict(zip(self.names, inputs)) | options
        takes = self.takes = self.takes or signature_of(backward)
        free = [name for name in takes.names if name not in given]
        asked = [name for name in takes.names[: takes.needed] if name not in given] or free[:1]
        outputs = out if isinstance(out, tuple) and not hasattr(out, "_fields") else (out,)
        kept = len(outputs) > 1 and asked and (len(asked) > 1 or np.ndim(outputs[0]) == 0)
        kept = kept and not (owner is not None and is_float(outputs[-1]))
        outputs, cache = (outputs[:-1], outputs[-1:]) if kept else (outputs, ())
        wanted = len(asked) - len(cache)
        if wanted > len(outputs) or takes.more:
            raise Refused(f"it cannot be told what to give {name_of(backward)}{inspect.signature(backward)}: dy comes "
                          f"first, then the cache, and inputs by their names, {', '.join(given) or 'none'}. Write it "
                          "out: gradcheck((forward, lambda dout, cache: …), …)")         # fmt: skip
        self.takes_dy = wanted > 0
        if cache and self.takes_dy:
            name = name_of(backward)
            self.order = (f"; {name} was given dout, then the cache: if it takes them in another order, write "
                          f"gradcheck((forward, lambda dout, cache: {name}(cache, dout)), …)")           # fmt: skip
        y, pieces, self.unfollowed = followed(outputs, wanted)
        self.strict, self.of_loss = owner is None and np.ndim(y) > 0, owner is None and np.ndim(y) == 0
        own = {name: given[name] for name in takes.names if name in given}
        dys = pieces if self.takes_dy else lambda dy: []
        return y, _of(lambda dy: backward(**dict(zip(asked, [*dys(dy), *cache])), **own), backward)


class Loss(Adapter):
    """loss, grads = f(x, W): a number, and gradients in a tuple, a list, a dict, or one after another"""

    strict: bool = False
    of_loss: bool = True
    takes_dy: bool = False

    def call(self, owner: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Result:
        function = bound(self.f, owner)
        loss, *grads = function(*inputs, **options)
        self.together = len(grads) == 1
        return loss, _of(lambda dy: grads[0] if self.together else tuple(grads), function)


class TorchFunction(Closure):
    """y = F.apply(x, W), of a torch.autograd.Function: tensors inside, arrays outside; PyTorch calls F.backward

    Followed are all outputs that have gradients. What F writes into a tensor, unless it is an output, goes into its
    array: there the checker looks. alone: the only input that needs a gradient; "": all do
    """

    may_be_single: bool = True
    alone: str = ""

    def __init__(self, f: Any, inputs: Sequence[Any]):
        self.f, self.owner = f, None
        self.parameters = signature_of(f.forward).names[takes_ctx(f) :]
        self.names = self.parameters[: len(inputs)]

    def call(self, owner: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Result:
        torch, needed = sys.modules["torch"], [self.alone] if self.alone else self.names
        given = dict(zip(self.names, inputs)) | {n: options[n] for n in self.parameters if n in options}
        arrays = {n: x for n, x in given.items() if isinstance(x, np.ndarray)}
        leaves = {n: torch.tensor(x, requires_grad=n in needed and is_float(x)) for n, x in arrays.items()}
        tensors = {n: leaf.clone() for n, leaf in leaves.items()}        # PyTorch lets nobody write into a leaf
        came = self.f.apply(*(given | tensors).values())
        came = came if isinstance(came, tuple) else (came,)
        outputs = [t for t in came if getattr(t, "requires_grad", False)]
        y, pieces, _ = followed([t.detach().cpu().numpy().copy() for t in outputs or came[:1]], len(outputs))
        kept = [(arrays[n], t) for n, t in tensors.items() if all(t is not one for one in came)]

        def back(dy: Any) -> tuple[Any, ...]:
            dys = [torch.tensor(one, dtype=t.dtype) for one, t in zip(pieces(dy), outputs)]
            wanted = {n: leaf for n, leaf in leaves.items() if leaf.requires_grad}
            grads = torch.autograd.grad(outputs, [*wanted.values()], dys, retain_graph=True, allow_unused=True)
            _write([*kept, *zip(pieces(dy), dys)])
            found = {n: g.cpu().numpy().copy() for n, g in zip(wanted, grads) if g is not None}
            return tuple(map(found.get, self.names))

        _write(kept)
        return y, _of(back, inspect.unwrap(self.f.backward))


def _write(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Write tensors into their arrays, [(array, tensor)], where they differ."""
    for x, t in [(x, t.detach().cpu().numpy()) for x, t in pairs if isinstance(x, np.ndarray)]:
        if not np.array_equal(x, t, equal_nan=True):
            x[...] = t


def takes_ctx(f: Any) -> bool:
    """Whether the forward of a torch.autograd.Function takes ctx: not if it has a setup_context"""
    return bool(f.setup_context is sys.modules["torch"].autograd.Function.setup_context)


def bound(f: Any, owner: Any) -> Any:
    """The function f; or this owner's method, which may have another name in its class"""
    if isinstance(f, str):
        return getattr(owner, f)
    return f if owner is None else MethodType(f, owner)


def _of(back: Any, function: Any) -> Any:
    """back, which remembers the author's function that it calls"""
    back.of = getattr(function, "__func__", function)
    return back


# Signatures and results ---------------------------------------------------------------------------------------------


def followed(outputs: Sequence[Any], wanted: int) -> tuple[Any, Callable[[Any], list[Any]], int]:
    """(y, pieces, others): the first output, or as many as are wanted, all entries in a row; pieces(dy): a list of
    theirs; others: how many arrays are behind them
    """
    first, others = outputs[: max(wanted, 1)], outputs[max(wanted, 1) :]
    if len(first) < 2:
        return first[0], lambda dy: [dy], sum(map(is_float, others))
    shapes = [np.shape(y) for y in first]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def pieces(dy: Array) -> list[Array]:
        return [part.reshape(shape) for part, shape in zip(np.split(dy, ends), shapes)]

    return np.concatenate([np.ravel(y) for y in first]), pieces, sum(map(is_float, others))


def described(result: Any) -> str:
    """What a function returned, in words"""
    if isinstance(result, tuple):
        return f"{len(result)} things ({', '.join(type(part).__name__ for part in result)})"
    return f"one {type(result).__name__}"


class Signature(NamedTuple):
    """A function's arguments: the names of those that go by position, and how many of them have no default

    more: whether it takes *dys, or needs an argument that goes by name only
    """

    names: list[str]
    needed: int
    more: bool


def signature_of(f: Callable[..., Any]) -> Signature:
    """The Signature of f; of one argument, where that cannot be known"""
    try:
        every = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return Signature([], 1, False)
    names = [p.name for p in every if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = any(p.kind == p.VAR_POSITIONAL or (p.kind == p.KEYWORD_ONLY and p.default is p.empty) for p in every)
    needed = sum(p.name in names and p.default is p.empty for p in every)
    return Signature(names, needed if names or not more else 1, more)


def name_of(f: Any) -> str:
    """The name of a function, or of a class; of an object that of its class; of a method's name itself"""
    return f if isinstance(f, str) else str(getattr(f, "__name__", type(f).__name__))


def partner_of(f: Callable[..., Any]) -> Callable[..., Any] | None:
    """The f_backward of f_forward, or the backward_f of forward_f, in the same file; None if there is none."""
    name = name_of(f).replace("forward", "backward")
    other = getattr(f, "__globals__", {}).get(name)
    return other if callable(other) and name != name_of(f) else None


def is_torch_function(f: Any) -> bool:
    """True for a subclass of torch.autograd.Function, without importing PyTorch"""
    return inspect.isclass(f) and any(cls.__module__.startswith("torch.autograd") for cls in f.__mro__)


def adapted(f: Any, inputs: Sequence[Any], methods: Sequence[str] | None, result_of: Callable[[], Any]) -> Adapter:
    """The Adapter for what gradcheck was given. Raises Refused, with what could be given, if there is none.

    result_of: called without arguments, gives what the function returns; it is called only where nothing else tells
    """
    if isinstance(f, (tuple, list)):
        if len(f) != 2 or not all(map(callable, f)):
            raise Refused(f"{described(f)} came, expected two functions: gradcheck((forward, backward), …)")
        (forward, backward), owner = f, _owner_of(f[0])
        if owner is not None and owner is _owner_of(backward):
            return Pair(_method(forward), _method(backward), inputs, owner)
        return Pair(forward, backward, inputs)
    if is_torch_function(f):
        return TorchFunction(f, inputs)
    if inspect.isclass(f):
        name = name_of(f)
        raise Refused(f"{name} is a class: give an object of it, gradcheck({name}(…), x); or its static methods, "
                      f"gradcheck(({name}.forward, {name}.backward), x)")        # fmt: skip
    if methods:
        if absent := [name for name in methods if not callable(getattr(f, name, None))]:
            raise Refused(f"{name_of(f)} has no method {absent[0]!r}")
        return Pair(methods[0], methods[1], inputs, f)
    if not inspect.isroutine(f) and callable(getattr(f, "backward", None)):
        forward = "forward" if callable(getattr(f, "forward", None)) else "__call__"
        if callable(getattr(f, forward, None)):
            return Pair(forward, "backward", inputs, f)
    if not callable(f):
        raise Refused(f"{name_of(f)} can neither be called, nor has it forward and backward; expected one of these: "
                      f"{RECIPE}")  # fmt: skip
    owner = _owner_of(f)
    if owner is None and (partner := partner_of(f)) is not None:
        return Pair(f, partner, inputs)
    kind = _kind_of(f, result_of())
    if owner is None or not (inspect.isroutine(f) or getattr(f, "__dict__", None)):
        return kind(f, inputs)
    return kind(_method(f), inputs, owner)


def _owner_of(f: Any) -> Any:
    """The object whose method f is, or which is called; None for a function, and an op, which has a name like one"""
    if not inspect.isroutine(f):
        return None if hasattr(f, "__name__") else f
    owner = getattr(f, "__self__", None)
    return None if inspect.ismodule(owner) or inspect.isclass(owner) else owner


def _method(f: Any) -> Any:
    """The function of a method; of an object that is called, the name of its method"""
    return getattr(f, "__func__", f.__name__) if inspect.isroutine(f) else "__call__"


def _kind_of(f: Any, result: Any) -> type[Adapter]:
    """The class of Adapter for a function that gives this result"""
    several, losses = isinstance(result, tuple) and len(result) > 1, ""
    if several and callable(result[-1]):
        return Closure
    if several and isinstance(result[0], (float, np.floating, np.ndarray)):
        if np.ndim(result[0]) == 0:
            return Loss
        losses = "; if the first are losses, one for each sample, return their .mean() or .sum()"
    if result is Ellipsis:
        raise Refused(f"{name_of(f)} returned `...`: a blank to fill first")
    raise Refused(f"{name_of(f)} returned {described(result)}, expected one of these: {RECIPE}{losses}")
