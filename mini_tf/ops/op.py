"""An op: a formula that knows its name, checks its arguments, may have a faster twin, and can be watched.

    @op("x (…, n), gamma (n), beta (n)")
    def layer_norm(x, gamma, beta, eps=1e-5):
        …                                                # the formula, and its backward
        return y, backward

`ops.layer_norm` is then an Op. Calling it checks x, gamma and beta against their shapes and runs the formula or,
if there is one for these arrays, its twin in `mini_tf/kernels`. The caller does not see which.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from mini_tf import kernels
from mini_tf.ops.shapes import Arguments

P = ParamSpec("P")                                       # so that an editor knows an op's arguments
R = TypeVar("R")                                         # and its result
Watcher = Callable[..., Any]
_registry: dict[str, Any] = {}                           # "mini_tf.ops.softmax.softmax" -> the Op
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())          # each thread has its own


def op(signature: str) -> Callable[[Callable[P, R]], "Op[P, R]"]:
    """The decorator that makes a function an Op. The signature names its array arguments and their shapes.

    A letter that occurs twice must have the same size both times; "…" stands for any number of leading axes, the same
    ones wherever it occurs; (*) is any shape. Arrays are floating unless `int` or `bool` follows the shape. An optional
    array that was left out, None, is not checked.

    When a module is reloaded, its ops stay the same objects and take over the new formulas: every layer that holds an
    op runs what the file now says.
    """

    def decorate(formula: Callable[P, R]) -> Op[P, R]:
        name = f"{formula.__module__}.{formula.__qualname__}"
        op: Op[P, R] = _registry.setdefault(name, Op())
        op.define(formula, signature)
        return op

    return decorate


class Op(Generic[P, R]):
    """A formula y, backward = f(…) that checks its arguments, may have a twin, and can be watched.

    name        of the op, "layer_norm"
    formula     the plain function, as it stands in its file
    arrays      names of the array arguments: the backward gives one gradient for each
    """

    def define(self, formula: Callable[P, R], signature: str) -> None:
        update_wrapper(self, formula)                    # name, docstring, and where the source is
        self.name: str = formula.__name__
        self.formula = formula
        self.arguments: Arguments = Arguments(formula, signature)
        self.arrays: list[str] = self.arguments.names
        kernels.forget(self)

    def __call__(self, *inputs: P.args, **options: P.kwargs) -> R:
        run: Callable[..., R] = self.unwatched
        for watcher in _watchers.get():
            run = partial(watcher, self, run)
        return run(*inputs, **options)

    def unwatched(self, *inputs: P.args, **options: P.kwargs) -> R:
        """The call itself. A twin returns NotImplemented for unsupported arguments: then the formula runs."""
        if options:
            options = {name: self.arguments.option(name, value) for name, value in options.items()}  # type: ignore[assignment]
        if len(inputs) > self.arguments.leading:         # options given by position
            inputs = self.arguments.by_position(inputs)  # type: ignore[assignment]
        result = self.implementation(inputs, options)(*inputs, **options)
        return self.formula(*inputs, **options) if result is NotImplemented else result

    def implementation(self, inputs: tuple[Any, ...], options: dict[str, Any]) -> Callable[P, R]:
        """Check the arguments, and return the function that runs for them: the formula or its twin.

        Raises ValueError for wrong shapes and dtypes, TypeError for what is no array and for mixed devices.
        """
        library = self.arguments.check(inputs, options)
        return (kernels.twin_of(self, library) if library else None) or self.formula

    __qualname__: str

    def __reduce__(self) -> str:
        return self.__qualname__                         # copies and pickles are the op itself, found by its name

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.arguments.signature}>"


def all_ops() -> list[Op[..., Any]]:
    """Every op defined so far, in mini_tf and elsewhere."""
    return list(_registry.values())


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Inside the block, in this thread, watcher(op, run, *inputs, **options) is called in place of every op.

    Its result is the result of the call. run(*inputs, **options) runs the op itself, so a watcher that only counts is

        def count(op, run, *inputs, **options):
            calls[op.name] += 1
            return run(*inputs, **options)

    Blocks may be nested: the inner watcher is called first, and its `run` calls the outer one.
    """
    before = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(before)


def watched() -> bool:
    """True inside a block of `watching` or `replaced`."""
    return bool(_watchers.get())


@contextmanager
def replaced(replacements: dict[Op[..., Any], Callable[..., Any]]) -> Iterator[None]:
    """Inside the block, other functions run in place of ops: {ops.softmax: my_softmax}.

    my_softmax may call ops.softmax itself: then the op runs.
    """
    open_calls: list[Op[..., Any]] = []

    def replace(op: Op[..., Any], run: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
        if op not in replacements or op in open_calls:
            return run(*inputs, **options)
        open_calls.append(op)
        try:
            return replacements[op](*inputs, **options)
        finally:
            open_calls.remove(op)

    with watching(replace), kernels.reference_only():    # attention's twin would not call ops.softmax
        yield
