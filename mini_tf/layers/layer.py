"""Parameter and Layer: what is learned, and who owns it."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

from mini_tf.backend import to_device
from mini_tf.checks import shown
from mini_tf.errors import UserError
from mini_tf.layers.tree import tree
from mini_tf.types import Array, Backward

import numpy as np

_lock = threading.Lock()                                 # for all parameters: one that held a lock could not be copied
_separate: ContextVar["dict[Parameter, Array] | None"] = ContextVar("separate", default=None)    # one per thread


class MemoryFreed(RuntimeError):
    """A model's backward was called a second time. It runs once, because it frees the forward's arrays on its way.

    A call that ended in an error, such as a MemoryError, counts as well: some gradients have been added by then.
    """


class Parameter:
    """An array that is learned: `.data`, and `.grad`, the gradient of the loss with respect to it, at first None.

    With trainable=False it is a constant of the model, such as fixed word embeddings: saved and moved with the model,
    but without a gradient.
    Raises UserError for anything but an array.
    """

    def __init__(self, data: Array, trainable: bool = True):
        if not hasattr(data, "shape") or isinstance(data, np.generic):           # a scalar cannot be updated in place
            raise UserError(f"a Parameter's data are {shown(data)}, expected an array: np.array(…)")
        self.data = data
        self.grad: Array | None = None
        self.trainable = trainable

    def accumulate(self, gradient: Array) -> None:
        """grad += gradient, unless it is fixed. A parameter may be used more than once: its gradient is the sum over
        its uses.

        Threads may do this at the same time: none of their gradients is lost.
        """
        if gradient.shape != self.data.shape:
            raise ValueError(f"the gradient has shape {gradient.shape}, expected the parameter's {self.data.shape}")
        if not self.trainable:
            return
        if (separate := _separate.get()) is not None:
            separate[self] = separate[self] + gradient if self in separate else gradient
            return
        with _lock:
            # A new array, not an update in place: other code may hold a reference to the first gradient.
            self.grad = gradient if self.grad is None else self.grad + gradient

    def __repr__(self) -> str:
        return f"Parameter({self.data.shape}, {self.data.dtype}{'' if self.trainable else ', fixed'})"


@contextmanager
def separate_gradients() -> Iterator[dict[Parameter, Array]]:
    """Inside the block, in this thread, gradients are added up in the dict that is yielded, not in the parameters."""
    gradients: dict[Parameter, Array] = {}
    token = _separate.set(gradients)
    try:
        yield gradients
    finally:
        _separate.reset(token)


class Layer:
    """Base of layers and models: finds the parameters among its attributes.

    Attributes may be Parameters, Layers, or lists, tuples and dicts of them, one inside another; a set of them raises
    UserError.
    """

    def parameters(self) -> dict[str, Parameter]:
        """{dotted name: Parameter} in the order of definition; a parameter that is shared appears once."""
        found: dict[str, Parameter] = {}
        seen: set[int] = set()
        for name, member in self.members():
            if isinstance(member, Parameter) and id(member) not in seen:
                if name in found:
                    raise UserError(f"two parameters of this {type(self).__name__} are named {name!r}: give the keys "
                                    "of its dicts other names")  # fmt: skip
                seen.add(id(member))
                found[name] = member
        return found

    def parameter_count(self) -> int:
        """The number of trainable parameters: of all entries of their arrays."""
        return sum(parameter.data.size for parameter in self.parameters().values() if parameter.trainable)

    def clear_gradients(self) -> None:
        """Forget all gradients, before the next batch."""
        clear_gradients(self.parameters())

    def state(self) -> dict[str, Array]:
        """{name: array} of what it carries from batch to batch besides its parameters; empty for most layers."""
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        """Restore what `state` returned."""

    def to(self, device: str) -> Self:
        """Move every parameter to the device ("cpu", "gpu", "gpu:1", "auto"); returns the layer itself."""
        for parameter in self.parameters().values():
            parameter.data = to_device(parameter.data, device)
            parameter.grad = None
        return self

    def members(self, prefix: str = "") -> Iterator[tuple[str, "Layer | Parameter"]]:
        """(dotted path, member) of every Layer and Parameter inside, each before what is inside it"""
        for name, member in self.own_members():
            yield f"{prefix}{name}", member
            if isinstance(member, Layer):
                yield from member.members(f"{prefix}{name}.")

    def own_members(self) -> Iterator[tuple[str, "Layer | Parameter"]]:
        """(name, member) of every Layer and Parameter among its attributes, without what is inside them"""
        for name, value in vars(self).items():
            yield from _members_of(value, name)

    def __repr__(self) -> str:
        try:
            return tree(self)
        except Exception:                                # half built, or with itself inside
            return object.__repr__(self)


def _members_of(value: Any, path: str) -> Iterator[tuple[str, Layer | Parameter]]:
    """(name, member) of the Layers and Parameters in an attribute's value; in a list they have numbers: layers.0"""
    if isinstance(value, (Layer, Parameter)):
        yield path, value
    elif isinstance(value, (list, tuple, dict)):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _members_of(member, f"{path}.{key}")
    elif isinstance(value, (set, frozenset)) and any(isinstance(member, (Layer, Parameter)) for member in value):
        raise UserError(f"{path} is a set: its members have no order, and so no names; put them into a list or a dict")


def clear_gradients(parameters: dict[str, Parameter]) -> None:
    """Forget the gradients of {name: Parameter}."""
    for parameter in parameters.values():
        parameter.grad = None


def chain_rule(backwards: list[Backward]) -> Backward:
    """The backward of a chain of steps: calls their backwards in reverse order.

    backwards: list, in forward order, of functions from dy to dx. Each is deleted as soon as it has run, and with it
    the arrays that it kept. So memory is freed on the way back, and this backward runs only once; the second call
    raises MemoryFreed. If the last step is a loss, dloss is 1 by default, as its own backward has it.
    """

    def backward(*dy: Any) -> Any:
        steps = take_all(backwards)
        dx = steps.pop()(*dy)
        while steps:
            dx = steps.pop()(dx)
        return dx

    return backward


def take_all(backwards: list[Backward]) -> list[Backward]:
    """Move the backwards out of this list into a new one; raises MemoryFreed if that was done before."""
    if not backwards:
        raise MemoryFreed(
            "this backward has run already, or ended in an error, and its memory is freed; clear the gradients and "
            "call the forward again"
        )
    steps = backwards.copy()
    backwards.clear()
    return steps


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)        # another thread may hold it, and is not in the child
