"""Trace a model: every op and layer that it calls, with inputs, outputs, gradients and the line of the call.

    with trace() as calls:
        loss, backward = model.loss(windows)
        backward()
    for call in calls:
        print("  " * call.depth, call.name, call.line, call.ended)

Ops report each call to their watchers (`mini_tf/ops/op.py`); layers are watched by replacing the methods of their
classes while any thread traces. A trace has the calls of its own thread only. The formulas run, not their twins in
mini_tf.kernels.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from threading import Lock
from typing import Any

from mini_tf import kernels
from mini_tf.layers import Layer
from mini_tf.ops.op import Op, watching
from mini_tf.places import codes_inside, place
from mini_tf.types import Array

# A call's line is the nearest one outside these files and folders.
IN_BETWEEN = {__file__, Op.__call__.__code__.co_filename, kernels.__file__}
CHECKER = str(Path(__file__).parent / "gradcheck") + os.sep

_layer_watchers = ContextVar("layer_watchers", default=())       # each thread has its own
_replaced: dict[tuple[type, str], Any] = {}                      # {(class, name): method} while any thread traces
_replacing, _traces = Lock(), 0                                  # and how many traces there are, in all threads


@dataclass(eq=False)
class Call:
    """One call of an op, a layer, or a layer's method that keeps the contract y, backward = f(…)."""

    name: str                # "layer_norm", "TransformerLayer", "LanguageTransformer.read_out"
    f: Any                   # what was called: the op, or the layer's bound method
    inputs: tuple[Any, ...]
    options: dict[str, Any]  # keyword arguments
    line: str                # the line that called it: "layers/normalization.py:24"
    depth: int               # how many traced calls it is nested in
    parents: tuple[Any, ...] = ()                        # those calls, the outermost first
    output: Any = None
    backward: Any = None     # the call's own backward, not the traced one
    dy: Any = None           # the argument of the backward, if it ran
    gradients: Any = None    # what it returned
    number: int = 0                                      # of forwards that began before
    given: tuple[Any, ...] | None = None                 # all arguments of the backward of a pair of functions
    ended: int | None = None                             # its rank in the order in which backwards ended
    error: BaseException | None = None                   # what its backward raised, unless a call inside it did
    owner: Any = None        # a mark of the object whose method it is, for objects that are not layers

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return f"<call of {self.name} at {self.line}>"


class Tracer:
    """Records calls as they happen: forwards as they begin, backwards as they end."""

    def __init__(self):
        self.calls, self.open_calls, self.ends = [], [], 0
        self.begun = 0
        self.moved = {}                                  # {number of a call: what makes other inputs of its own}

    def forward(self, name: str, f: Callable, run: Callable, *inputs, **options) -> tuple[Call, Any]:
        """(Call, result) of run(*inputs, **options)."""
        inputs = self.moved.get(self.begun, tuple)(inputs)
        call = Call(name, f, inputs, options, _calling_line(), len(self.open_calls), tuple(self.open_calls))
        call.number, self.begun = self.begun, self.begun + 1
        self.open_calls.append(call)
        self.calls.append(call)
        try:
            call.output = run(*inputs, **options)
        finally:
            self.open_calls.pop()
        return call, call.output

    def backward(self, call: Call, *dy: Array | float) -> Any:
        """Run the call's backward."""
        call.dy = dy[0] if dy else None
        try:
            call.gradients = call.backward(*dy)
        except (Exception, SystemExit) as error:
            if not any(other.error is error for other in self.calls):
                call.error = error
            raise
        self.end(call)
        return call.gradients

    def end(self, call: Call) -> None:
        """Note that the call's backward has ended."""
        call.ended = self.ends
        self.ends += 1

    def watch(self, name: str, f: Callable, run: Callable, /, *inputs, **options) -> Any:
        """The result of run(*inputs, **options); it is recorded if it is y, backward."""
        call, result = self.forward(name, f, run, *inputs, **options)
        if not (isinstance(result, tuple) and len(result) == 2 and callable(result[1])):
            self.calls.remove(call)
            return result
        call.output, call.backward = result
        return call.output, partial(self.backward, call)

    def watch_op(self, op: Op, run: Callable, /, *inputs, **options) -> Any:
        return self.watch(op.name, op, run, *inputs, **options)


@contextmanager
def trace(also: Callable[[Tracer], AbstractContextManager] = lambda tracer: nullcontext()) -> Iterator[list[Call]]:
    """Yield a list that gets a Call for each call inside the block, in the order in which they began.

    also: tracer → a context in which other functions report to the Tracer
    """
    tracer = Tracer()
    with kernels.reference_only(), watching(tracer.watch_op), _layers(tracer.watch), also(tracer):
        yield tracer.calls


@contextmanager
def _layers(watch):
    """Inside the block, this thread's calls of layers and of their public methods go through `watch`."""
    global _traces
    before = _layer_watchers.set((*_layer_watchers.get(), watch))
    with _replacing:
        _traces += 1
        _replace_methods()
    try:
        yield
    finally:
        _layer_watchers.reset(before)
        with _replacing:
            _traces -= 1
            if not _traces:
                for (cls, name), method in _replaced.items():
                    setattr(cls, name, method)
                _replaced.clear()


def _replace_methods():
    """Replace the methods of all layers by watched ones, unless they are watched already."""
    for cls in _subclasses(Layer):
        for name, method in list(vars(cls).items()):
            public = inspect.isfunction(method) and (name == "__call__" or not name.startswith("_"))
            if public and (cls, name) not in _replaced:
                _replaced[cls, name] = method
                setattr(cls, name, _watched(name, method))


def _watched(name, method):
    @wraps(method)
    def call(self, *inputs, **options):
        label = type(self).__name__ + ("" if name == "__call__" else f".{name}")
        bound = run = method.__get__(self)
        for watch in _layer_watchers.get():
            run = partial(watch, label, bound, run)
        return run(*inputs, **options)

    return call


def source_line(backward: Callable, f: Callable | None = None) -> str:
    """Where a backward is defined: "mini_tf/ops/normalization.py:21"; "" if its source is not known.

    If f did not define the backward, but got it from another function, f's line.
    """
    code = getattr(inspect.unwrap(backward), "__code__", None)
    own = getattr(inspect.unwrap(getattr(f, "__func__", f)), "__code__", None) if f is not None else None
    if own is not None and (code is None or code not in codes_inside(own)):
        code = own
    return "" if code is None else place(code.co_filename, code.co_firstlineno)


def _calling_line():
    frame = sys._getframe(1)
    while frame.f_code.co_filename in IN_BETWEEN or frame.f_code.co_filename.startswith(CHECKER):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return place(frame.f_code.co_filename, frame.f_lineno)


def _subclasses(cls):
    return [cls, *(below for child in cls.__subclasses__() for below in _subclasses(child))]
