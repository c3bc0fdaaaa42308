"""Adapters: each kind of function or object, called as   y, back = adapter.call(owner, inputs, options).

back(dy) gives whatever the author's backward returned; whose gradient each part is, is decided in `ownership.py`.

    Closure        y, backward = f(x, W)                               as the ops of mini_tf
    Pair           out, cache = forward(x, W);  dx, dW = backward(dout, cache)
    Machine        a Pair whose functions are methods of one object:  net.forward(x), net.backward(dy)
    Loss           loss, grads = f(x, W)
    TorchFunction  y = F.apply(x, W), with PyTorch's own call of F.backward
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.weights import is_float

import numpy as np

RECIPE = ("y, backward = f(…); loss, grads = f(…), which may be a method, net.loss; an object with forward and "
          "backward, or methods=('go', 'come_back'); or a pair: gradcheck((forward, backward), …)")      # fmt: skip


class Adapter:
    """A function or an object, brought to one way of calling it.

    f            what is called: a function, or, with an owner, the name of its method
    owner        the object whose arrays are weights; each call gets a copy of it
    names        of the inputs, in the order in which they are given;  parameters: all that f can be given by place
    strict       every floating input has to get a gradient; otherwise those without one are data
    of_loss      gradients come with a number, and without an upstream gradient;  together: in one tuple, list or dict
    takes_dy     False if the backward takes no upstream gradient
    unfollowed   how many outputs the backward does not go back from
    order        in which order a backward is given dy and a cache, in words for one that raised
    """

    owner, strict, of_loss, together, takes_dy, unfollowed, order = None, True, False, False, True, 0, ""

    def __init__(self, f: Any, inputs: Sequence[Any], owner: Any = None):
        self.f, self.owner = f, owner
        self.parameters = argument_names(self.function(owner))
        more = (f"input_{k}" for k in range(len(self.parameters), len(inputs)))
        self.names = [*self.parameters[: len(inputs)], *more]

    def function(self, owner: Any) -> Callable:
        """What is called, of this copy of the owner"""
        if isinstance(self.f, str):
            return getattr(owner, self.f)
        return self.f if owner is None else MethodType(self.f, owner)

    @property
    def name(self) -> str:
        """What a report calls it"""
        method = "" if self.f in ("forward", "__call__") else f".{self.f}"
        return type(self.owner).__name__ + method if isinstance(self.f, str) else name_of(self.f)

    def returning(self, back: Callable) -> Callable:
        """The author's function whose `return` gives the gradients; back: what `call` gave"""
        return getattr(back, "of", back)

    def words(self, said: str | list) -> str | list:
        """What gradients are called in that function's `return`, given what all its parts are called"""
        return said


class Closure(Adapter):
    """y, backward = f(x, W); of several outputs, those that the backward takes gradients of, else the first"""

    def call(self, owner: Any, inputs: Sequence[Any], options: dict) -> tuple[Any, Callable]:
        """(y, back)"""
        result = self.function(owner)(*inputs, **options)
        if not _is_closure(result):
            raise Refused(f"{self.name} returned {described(result)}, expected y, backward")
        *outputs, backward = result
        wanted = required(backward)
        self.takes_dy = wanted > 0 or bool(arguments_of(backward))
        y, given = followed(outputs, wanted)
        self.unfollowed = unfollowed(outputs, given(y))
        return y, _of(lambda dy: backward(*given(dy)) if self.takes_dy else backward(), backward)


class Pair(Adapter):
    """out, cache = forward(x, W);  dx, dW = backward(dout, cache); see `_arguments`"""

    def __init__(self, forward: Any, backward: Any, inputs: Sequence[Any], owner: Any = None):
        super().__init__(forward, inputs, owner)
        self.backward = backward

    def call(self, owner: Any, inputs: Sequence[Any], options: dict) -> tuple[Any, Callable]:
        """(y, back)"""
        backward = getattr(owner, self.backward) if isinstance(self.backward, str) else self.backward
        out = self.function(owner)(*inputs, **options)
        y, arguments = self._arguments(backward, out, dict(zip(self.names, inputs)) | options)
        if owner is None:
            self.strict, self.of_loss = np.ndim(y) > 0, np.ndim(y) == 0
        return y, _of(lambda dy: backward(**arguments(dy)), backward)

    def _arguments(self, backward, out, given):
        """(y, a function of dy that gives backward's arguments by name)

        Those named as inputs of the forward are these inputs. Of the others the first takes dy, and the last the cache,
        what the forward returned last; between them are the gradients of more outputs, if there are so many. One alone
        takes dy; but the cache, if y is a number and the forward is no method.
        """
        parameters = arguments_of(backward) or []
        free = [p for p in parameters if p.name not in given]
        takes = [p for p in free if p.needed] or free[:1]
        outputs = out if isinstance(out, tuple) and not hasattr(out, "_fields") else (out,)
        kept = len(outputs) > 1 and bool(takes) and self._has_cache(outputs, len(takes))
        outputs, cache = (outputs[:-1], outputs[-1:]) if kept else (outputs, ())
        wanted = len(takes) - len(cache)
        if wanted > max(len(outputs), _width(outputs)) or others_needed(backward):
            raise Refused(
                f"it cannot be told what to give {name_of(backward)}{inspect.signature(backward)}: dy comes first, "
                f"then the cache, and inputs by their names, {', '.join(given) or 'none'}. Write it out: "
                "gradcheck((forward, lambda dout, cache: …), …)"
            )
        self.takes_dy = wanted > 0
        if cache and self.takes_dy:
            name = name_of(backward)
            self.order = (f"; {name} was given dout, then the cache: if it takes them in another order, write "
                          f"gradcheck((forward, lambda dout, cache: {name}(cache, dout)), …)")           # fmt: skip
        y, pieces = followed(outputs, max(wanted, 1))
        self.unfollowed = unfollowed(outputs, pieces(y))
        inputs = {p.name: given[p.name] for p in parameters if p.name in given}

        def arguments(dy):
            dys = pieces(dy) if self.takes_dy else []
            return {**dict(zip([p.name for p in takes], [*dys, *cache])), **inputs}

        return y, arguments

    def _has_cache(self, outputs, takes):
        return takes > 1 or np.ndim(outputs[0]) == 0


class Machine(Pair):
    """net.forward(x) and net.backward(dy), methods of one object; what it keeps in between is its own affair

    What the forward returns last is a cache only if it is no floating array: an LSTM's h, c are two outputs.
    """

    strict = False

    def _has_cache(self, outputs, takes):
        return super()._has_cache(outputs, takes) and not is_float(outputs[-1])


class Loss(Adapter):
    """loss, grads = f(x, W): a number, and gradients in a tuple, a list, a dict, or one after another"""

    strict, of_loss, takes_dy = False, True, False

    def call(self, owner: Any, inputs: Sequence[Any], options: dict) -> tuple[Any, Callable]:
        """(loss, back)"""
        function = self.function(owner)
        result = function(*inputs, **options)
        if not is_loss_with_gradients(result):
            raise Refused(f"{self.name} returned {described(result)}, expected loss, grads")
        loss, *grads = result
        self.together = len(grads) == 1
        return loss, _of(lambda dy: grads[0] if self.together else tuple(grads), function)

    def words(self, said: str | list) -> str | list:
        """Those behind the loss"""
        said = said[1:] if isinstance(said, list) else [""]
        return said[0] if len(said) == 1 else said


class TorchFunction(Adapter):
    """A torch.autograd.Function: tensors at the border, PyTorch calls its backward; what comes back are arrays"""

    def __init__(self, f: Any, inputs: Sequence[Any]):
        self.f, self.torch = f, sys.modules["torch"]
        self.parameters = argument_names(f.forward)[1:]
        self.names = self.parameters[: len(inputs)]

    def call(self, owner: Any, inputs: Sequence[Any], options: dict) -> tuple[Any, Callable]:
        """(y, back)"""
        torch = self.torch
        tensors = [torch.tensor(x, requires_grad=is_float(x)) if isinstance(x, np.ndarray) else x for x in inputs]
        outputs = self.f.apply(*tensors, *options.values())
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        self.unfollowed = len(outputs) - 1
        leaves = [t for t, x in zip(tensors, inputs) if is_float(x)]

        def back(dy):
            grads = torch.autograd.grad(outputs[0], leaves, torch.as_tensor(dy), retain_graph=True, allow_unused=True)
            return tuple(None if g is None else g.numpy().copy() for g in grads)

        return outputs[0].detach().numpy().copy(), _of(back, self.f.backward)


# What a function takes and gives ------------------------------------------------------------------------------------


def followed(outputs: Sequence[Any], wanted: int) -> tuple[Any, Callable]:
    """(y, pieces): the first output, or as many as are wanted, all entries in a row; pieces(dy) is a list of theirs

    Outputs may come in a tuple of their own, (y, z), backward: then a backward that takes one gets a tuple, too.
    """
    inner = len(outputs) == 1 and isinstance(outputs[0], tuple) and len(outputs[0]) > 1
    one = inner and wanted < 2
    outputs, wanted = (outputs[0], len(outputs[0]) if one else wanted) if inner else (outputs, wanted)
    if wanted < 2 or len(outputs) < 2:
        return outputs[0], lambda dy: [dy]
    shapes = [np.shape(y) for y in outputs[:wanted]]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def pieces(dy):
        parts = [part.reshape(shape) for part, shape in zip(np.split(dy, ends), shapes)]
        return [tuple(parts)] if one else parts

    return np.concatenate([np.ravel(y) for y in outputs[:wanted]]), pieces


def unfollowed(outputs: Sequence[Any], pieces: list) -> int:
    """How many of the outputs that are arrays have no piece"""
    return sum(is_float(y) for y in outputs[len(pieces) :])


def is_loss_with_gradients(result: Any) -> bool:
    """True for a number, and something behind it that is no function"""
    return isinstance(result, tuple) and len(result) > 1 and not callable(result[-1]) \
        and isinstance(result[0], (float, np.floating, np.ndarray)) and np.ndim(result[0]) == 0      # fmt: skip


def _is_closure(result):
    return isinstance(result, tuple) and len(result) > 1 and callable(result[-1])


def _width(outputs):
    return len(outputs[0]) if len(outputs) == 1 and isinstance(outputs[0], tuple) else 0


def described(result: Any) -> str:
    """What a function returned, in words"""
    if isinstance(result, tuple):
        return f"{len(result)} things ({', '.join(type(part).__name__ for part in result)})"
    return f"one {type(result).__name__}"


class Argument(NamedTuple):
    """One that a function can be given by place; needed: it has no default"""

    name: str
    needed: bool


def arguments_of(f: Callable) -> list[Argument] | None:
    """What f can be given by place; None where that cannot be known"""
    plain = _plain(f)
    if plain is not None:                                # the same as below, but quick: it is asked in each call
        names = plain.__code__.co_varnames[: plain.__code__.co_argcount]
        needed = len(names) - len(plain.__defaults__ or ())
        return [Argument(name, k < needed) for k, name in enumerate(names)][plain is not f :]
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [Argument(p.name, p.default is p.empty) for p in by_place]


def argument_names(f: Callable) -> list[str]:
    """The names of what f can be given by place"""
    return [one.name for one in arguments_of(f) or ()]


def required(f: Callable) -> int:
    """How many arguments f needs; 1 where that cannot be known, or where it takes any number"""
    arguments = arguments_of(f)
    if arguments is None or (not arguments and others_needed(f)):
        return 1
    return sum(one.needed for one in arguments)


def others_needed(f: Callable) -> bool:
    """Whether f takes *dys, or needs arguments that go by name only"""
    plain = _plain(f)
    if plain is not None:
        code = plain.__code__
        return bool(code.co_flags & inspect.CO_VARARGS) or code.co_kwonlyargcount > len(plain.__kwdefaults__ or ())
    every = inspect.signature(f).parameters.values()
    return any(p.kind == p.VAR_POSITIONAL or (p.kind == p.KEYWORD_ONLY and p.default is p.empty) for p in every)


def _plain(f):
    """The function that f is, or whose method; None for what is decorated, or not written in Python"""
    function = f.__func__ if isinstance(f, MethodType) else f
    return function if isinstance(function, FunctionType) and not vars(function) else None


def name_of(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def partner_of(f: Callable) -> Callable | None:
    """The f_backward of f_forward, or the backward_f of forward_f, in the same file; None if there is none."""
    name = name_of(f)
    for forward, backward in (("forward", "backward"), ("fwd", "bwd")):
        if forward in name:
            other = getattr(f, "__globals__", {}).get(name.replace(forward, backward))
            if callable(other):
                return other
    return None


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
        owners = [_owner_of(one) for one in f]
        if owners[0] is not None and owners[0] is owners[1]:
            return Machine(*(one.__name__ if inspect.isroutine(one) else "__call__" for one in f), inputs, owners[0])
        return Pair(*f, inputs)
    if is_torch_function(f):
        return TorchFunction(f, inputs)
    if inspect.isclass(f):
        name = name_of(f)
        raise Refused(f"{name} is a class: give an object of it, gradcheck({name}(…), x); or its static methods, "
                      f"gradcheck(({name}.forward, {name}.backward), x)")        # fmt: skip
    if methods:
        if absent := [name for name in methods if not callable(getattr(f, name, None))]:
            raise Refused(f"{name_of(f)} has no method {absent[0]!r}")
        return Machine(*methods, inputs, f)
    if not inspect.isroutine(f) and callable(getattr(f, "backward", None)):
        forward = "forward" if callable(getattr(f, "forward", None)) else "__call__"
        if callable(getattr(f, forward, None)):
            return Machine(forward, "backward", inputs, f)
    if not callable(f):
        raise Refused(f"{name_of(f)} can neither be called, nor has it forward and backward; expected one of these: "
                      f"{RECIPE}")  # fmt: skip
    owner = _owner_of(f)
    if owner is None and (partner := partner_of(f)) is not None:
        return Pair(f, partner, inputs)
    kind = _kind_of(f, result_of())
    if owner is None or not (inspect.isroutine(f) or getattr(f, "__dict__", None)):
        return kind(f, inputs)
    method = f.__name__ if inspect.isroutine(f) else "__call__"
    return kind(method if hasattr(owner, method) else f.__func__, inputs, owner)         # or it goes by another name


def _owner_of(f):
    """The object whose method f is, or which is called; None for a function, and an op, which has a name like one"""
    if not inspect.isroutine(f):
        return None if hasattr(f, "__name__") else f
    owner = getattr(f, "__self__", None)
    return None if inspect.ismodule(owner) or inspect.isclass(owner) else owner


def _kind_of(f, result):
    """The class of Adapter for a function that gives this result"""
    if is_loss_with_gradients(result):
        return Loss
    if _is_closure(result):
        return Closure
    if result is Ellipsis:
        raise Refused(f"{name_of(f)} returned `...`: a blank to fill first")
    many = isinstance(result, tuple) and len(result) > 1 and is_float(result[0]) and np.ndim(result[0])
    losses = "; if the first are losses, one for each sample, return their .mean() or .sum()" if many else ""
    raise Refused(f"{name_of(f)} returned {described(result)}, expected one of these: {RECIPE}{losses}")


def _of(back, function):
    """back, which remembers the author's function that it calls"""
    back.of = getattr(function, "__func__", function)
    return back
