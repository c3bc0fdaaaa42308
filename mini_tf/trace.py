"""Watch a model at work: every op and every layer it calls, what went in, what came out, and on which line.

    with trace() as calls:
        loss, backward = model.loss(windows)
        backward()
    for call in calls:
        print("  " * call.depth, call.name, call.line, call.ended)

Ops are replaced in all modules of mini_tf for the time of the block, layers in their classes; nothing in ops and layers
knows that it can be watched. The plain formulas run, not their twins in mini_tf.kernels.
"""

import inspect
import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import count
from pathlib import Path

from mini_tf import kernels, ops
from mini_tf.layers import Layer


@dataclass(eq=False)
class Call:
    """One call of an op, a layer, or a layer's method that keeps the contract y, backward = f(…)."""

    name: str                # "layer_norm", "TransformerLayer", "LanguageTransformer.read_out"
    f: object                # what was called: the op, or the layer's bound method
    inputs: tuple
    options: dict            # keyword arguments
    line: str                # the line that called it: "layers/normalization.py:24"
    depth: int               # how many traced calls it is inside of
    parents: tuple = ()      # those calls, the outermost first
    output: object = None
    backward: object = None  # the function that gives the gradients, as the op made it
    dy: object = None        # what came to the backward, if it ran, and what it gave
    gradients: object = None
    ended: int | None = None                             # its place in the order in which backwards ended
    error: Exception | None = None                       # what its backward raised itself, not a call inside it


@contextmanager
def trace(f=None):
    """Give a list that fills with a Call for each call, in the order in which they began.

    f: a function whose module is watched too, for the ops that it has imported by name.
    """
    calls, open_calls, ends = [], [], count()

    def watch(name, f, *inputs, **options):
        call = Call(name, f, inputs, options, _calling_line(), len(open_calls), tuple(open_calls))
        open_calls.append(call)
        calls.append(call)
        try:
            result = f(*inputs, **options)
        finally:
            open_calls.pop()
        if not _keeps_contract(result):
            calls.remove(call)
            return result
        call.output, call.backward = result

        def backward(*dy):
            call.dy = dy[0] if dy else None
            try:
                call.gradients = call.backward(*dy)
            except Exception as error:
                if not any(other.error is error for other in calls):
                    call.error = error
                raise
            call.ended = next(ends)
            return call.gradients

        return call.output, backward

    watched = replaced_ops(lambda name, op: wraps(op)(lambda *a, **k: watch(name, op, *a, **k)), f)
    with watched, _layers(watch):
        yield calls


@contextmanager
def replaced_ops(replacement, f=None):
    """For the time of the block, replacement(name, op) stands wherever mini_tf holds an op.

    Gives the function that f is then: its own replacement, if f is an op. The module of f is looked through too.
    The twins of ops in mini_tf.kernels are switched off meanwhile.
    """
    made, undo = {}, []

    def replace(name, op):
        if id(op) not in made:
            made[id(op)] = replacement(name, op)
        return made[id(op)]

    originals = {getattr(ops, name): name for name in ops.__all__}
    try:
        watched = [module for name, module in sys.modules.items() if re.match(r"mini_tf(?!\.kernels)(\.|$)", name)]
        for module in watched:                           # not the twins, which ask mini_tf.ops for the op
            for name in ops.__all__:
                if inspect.isfunction(vars(module).get(name)):
                    undo.append((vars(module), name, vars(module)[name]))
        own = getattr(inspect.unwrap(f), "__globals__", {}) if callable(f) else {}
        undo += [(own, n, value) for n, value in own.items() if inspect.isfunction(value) and value in originals]
        for namespace, name, op in undo:
            namespace[name] = replace(originals.get(op, name), op)
        with kernels.reference_only():
            yield made.get(id(f), f)
    finally:
        for namespace, name, op in reversed(undo):
            namespace[name] = op


@contextmanager
def _layers(watch):
    """For the time of the block, calls of layers and of their public methods go through `watch`."""
    undo = []

    def watched(name, method):
        @wraps(method)
        def call(self, *inputs, **options):
            label = type(self).__name__ + ("" if name == "__call__" else f".{name}")
            return watch(label, method.__get__(self), *inputs, **options)

        return call

    try:
        for cls in _subclasses(Layer):
            for name, method in list(vars(cls).items()):
                if inspect.isfunction(method) and (name == "__call__" or not name.startswith("_")):
                    undo.append((cls, name, method))
                    setattr(cls, name, watched(name, method))
        yield
    finally:
        for cls, name, method in undo:
            setattr(cls, name, method)


def source_line(backward, f=None):
    """Where a backward is written: "mini_tf/ops/normalization.py:21"; "" where no source is known.

    One that f did not write itself, but was given by another function, is not where one looks: then f's own line.
    """
    code = getattr(inspect.unwrap(backward), "__code__", None)
    own = getattr(inspect.unwrap(getattr(f, "__func__", f)), "__code__", None) if f is not None else None
    if own is not None and (code is None or code not in _inside(own)):
        code = own
    return "" if code is None else place(code.co_filename, code.co_firstlineno)


def _inside(code):
    """The code objects of the functions that are written inside another."""
    inner = [constant for constant in code.co_consts if inspect.iscode(constant)]
    return inner + [deeper for c in inner for deeper in _inside(c)]


def place(path, number):
    """The file as one would open it from here, or, for mini_tf's own, from its folder."""
    path = Path(path)
    for folder in (Path(__file__).parent.parent, Path.cwd()):
        if path.is_relative_to(folder):
            path = path.relative_to(folder)
    return f"{path}:{number}"


def _calling_line():
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return place(frame.f_code.co_filename, frame.f_lineno)


def _keeps_contract(result):
    return isinstance(result, tuple) and len(result) == 2 and callable(result[1])


def _subclasses(cls):
    return [cls, *(below for child in cls.__subclasses__() for below in _subclasses(child))]
