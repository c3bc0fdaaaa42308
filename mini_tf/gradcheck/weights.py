"""Weights in dicts, lists and objects: where they are, and by which names, README.md's, their gradients are found.

A path is a tuple of attributes, keys and indices: ("layers", 0, "W") is owner.layers[0].W. An array under two names is
one array, so its gradient may go by either name.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

from mini_tf.gradcheck.errors import Refused
from mini_tf.types import Array

import numpy as np

DEEPEST = 8              # of objects, dicts and lists inside others
LONGEST = 1000           # of a list that is looked through
HOLDERS: dict[object, tuple[str, ...]] = {"params": ("grads",), "parameters": ("grads", "gradients"), "data": ("grad",)}
OPAQUE = (str, bytes, int, float, complex, ModuleType, np.ndarray, np.generic, np.random.Generator, type)
FILE = "variables of the file"                           # the owner of weights that are such

Path = tuple[str | int, ...]


@dataclass(eq=False)
class Weight:
    """An array in an object, a dict or a list, or a variable of a file."""

    paths: list[Path]        # to it, several if it goes by several names
    array: Array             # the author's; while f runs, the tensor of that name is in its place
    owner: str               # what holds it: "" (the object that is checked), the name of an input, or FILE

    @cached_property
    def gradient_paths(self) -> list[Path]:
        """Where its gradient may be, seen from what holds it"""
        return [one for path in self.paths for one in gradient_paths(path)]

    @cached_property
    def full_paths(self) -> list[Path]:
        """Its paths, beginning with the input that holds it"""
        return self.paths if self.owner in ("", FILE) else [(self.owner, *path) for path in self.paths]


def is_array(x: Any) -> bool:
    """True for an array, NumPy's or one of a GPU; not for a tensor object that only looks like one"""
    return isinstance(x, np.ndarray) or (hasattr(x, "dtype") and hasattr(x, "shape") and hasattr(x, "get"))


def is_float(x: Any) -> bool:
    """True for a floating array"""
    return is_array(x) and x.dtype.kind == "f"


def parts(x: Any) -> dict[str | int, Any]:
    """{step of a path: what is there} of a dict, a list, a tuple or an object; {} of anything else"""
    if isinstance(x, dict):
        return {key: part for key, part in x.items() if isinstance(key, (str, int))}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return dict(zip(x._fields, x))
    if isinstance(x, (list, tuple)):
        return dict(enumerate(x)) if len(x) <= LONGEST else {}
    if isinstance(x, OPAQUE) or inspect.isroutine(x) or is_array(x):
        return {}
    return getattr(x, "__dict__", {})


def everything_in(x: Any, path: Path = (), seen: tuple[int, ...] = ()) -> Iterator[tuple[Path, Any]]:
    """(path, part) of a thing and of all that it holds, itself first"""
    if id(x) in seen or len(path) > DEEPEST:
        return
    yield path, x
    for step, part in parts(x).items():
        yield from everything_in(part, (*path, step), (*seen, id(x)))


def reached(x: Any, path: Path) -> Any:
    """What is at the end of the path; None if there is nothing."""
    for step in path:
        if isinstance(x, dict):
            x = x.get(step)
        elif isinstance(step, str):
            x = None if isinstance(x, OPAQUE) else getattr(x, step, None)
        else:
            x = x[step] if isinstance(x, (list, tuple)) and step < len(x) else None
    return x


def named(path: Path) -> str:
    """The path as a report shows it: "layers.0.W" """
    return ".".join(map(str, path))


def path_of(text: str) -> Path:
    """The path that a text such as "layers.0.W" or "params['W']" means"""
    return tuple(int(step) if step.isdigit() else step for step in re.findall(r"""[^.\[\]'"]+""", text))


def gradient_names(name: str) -> tuple[str, ...]:
    """What the gradient of something with this name may be called: dW, d_W, W_grad or grad_W"""
    return f"d{name}", f"d_{name}", f"{name}_grad", f"grad_{name}"


@cache
def gradient_paths(path: Path) -> tuple[Path, ...]:
    """Where the gradient of what is at the path may be: its own name changed, or that of what holds it"""
    *before, last = path
    lasts, found = [last], []
    if isinstance(last, str):
        lasts += gradient_names(last)
        found += [(*before, one) for one in (*HOLDERS.get(last, ()), *lasts[1:])]
        found += [(*before, "grads", one) for one in lasts]
    for k, step in enumerate(before):
        for name in (*HOLDERS.get(step, ()), *gradient_names(step)) if isinstance(step, str) else ():
            found += [(*path[:k], name, *before[k + 1 :], one) for one in lasts]         # grads["dW"] of params["W"]
    return tuple(found)


def refuse_lists(names: Sequence[str], inputs: Sequence[Any]) -> None:
    """Raises Refused for an input that is a list of numbers with a decimal point: perhaps it should be an array."""
    for name, x in zip(names, inputs):
        if isinstance(x, (list, tuple)) and only_numbers(x) and np.asarray(x).dtype.kind == "f":
            raise Refused(f"{name} is a {type(x).__name__} of numbers, expected an array: np.array({name}, dtype=float)"
                          f"; or give it by name, {name}={name}, if it is a constant")   # fmt: skip


def only_numbers(x: Sequence[Any]) -> bool:
    """True for numbers, which may be in lists inside others"""
    return bool(x) and all(only_numbers(p) if isinstance(p, (list, tuple)) else isinstance(p, (int, float)) for p in x)
