"""Arguments for a learner's function: arrays of the shapes that an option or the docstring says, and given values.

    --shape x=3,4   'ids=2,3 int<7'   'mask=3,3 bool'   'p=3 positive'   s=   y=onehot(4,5)
    --arg stride=2   how=mean   W=randn(3,2)   "params={'W': randn(4,3)}"

A shape is drawn at random, and its gradient is checked; s= is a single number, one-hot rows are constants. Values are
constants, but for arrays in a dict, a list or an object: Python's, with np and randn, and what is no Python is a
string. A docstring has the same shapes:

    Example: x (3, 4), ids (2, 3) int < 7, mask (3, 3) bool, p (3,) positive, s (), y onehot(4, 5)
"""

import inspect
import math
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

from mini_tf.errors import UserError
from mini_tf.gradcheck.adapters import takes_ctx
from mini_tf.gradcheck.weights import is_float
from mini_tf.types import Array

import numpy as np

LARGEST = 100_000        # entries of one argument, and ids: the checker runs the function thousands of times
KIND = r"(?: ?(positive|bool|int)(?: ?< ?(\d+))?)?"
EXAMPLE = re.compile(rf"(\w+) ?(onehot)? ?\(([\d, ]*)\){KIND}")     # in the docstring's Example
OPTION = re.compile(rf"(\w+) ?= ?(onehot)? ?\(?([\d, ]*)\)?{KIND}")


def values_of(args: Sequence[str], rng: np.random.Generator) -> dict[str, Any]:
    """{name: value} of ["stride=2", "how=mean", "W=randn(3,2)"]; what is no Python is a string"""
    known, values = {"np": np, "randn": lambda *shape: rng.standard_normal(shape), "__builtins__": {}}, {}
    for option in args:
        name, equals, text = (part.strip() for part in option.partition("="))
        if not equals or not name.isidentifier():
            raise UserError(f"--arg {option!r} is not an argument, expected a name and a value, as in stride=2")
        try:
            values[name] = eval(text, known)
        except (NameError, SyntaxError):
            values[name] = text
        except Exception as error:
            raise UserError(f"--arg {option!r}: {error}") from error
    return values


def constructed(cls: type, values: dict[str, Any], seed: int) -> tuple[Any, dict[str, Any]]:
    """(an object of the class, with weights drawn from the seed; the values that its constructor did not take)"""
    parameters = _named_parameters(cls)
    own = {p.name: values[p.name] for p in parameters if p.name in values}
    if missing := [p.name for p in parameters if p.default is p.empty and p.name not in own]:
        options = " ".join(f"--arg {name}={number}" for name, number in zip(missing, count(3)))
        raise UserError(f"{cls.__name__}: its constructor needs {', '.join(missing)}: add {options}, with your values "
                        "(an array is randn(3,2), or np.ones((3,2)))")           # fmt: skip
    np.random.seed(seed)  # noqa: NPY002, a learner's constructor draws from it
    return cls(**own), {name: value for name, value in values.items() if name not in own}


def _named_parameters(f: Any) -> list[inspect.Parameter]:
    """The parameters of a function or a class that have names: not *args, not **options"""
    parameters = inspect.signature(f).parameters.values()
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def inputs_for(
    f: Any, shapes: Sequence[str], values: dict[str, Any], rng: np.random.Generator, forward: str = "forward"
) -> tuple[list[Any], dict[str, Any]]:
    """(inputs, options): what f is given by position, and what gradcheck is told by name, with the constants' names.

    By position come all arguments up to the last that has a shape or a value; others keep their defaults. forward: what
    an object calls its method. Raises UserError for a shape that is not known, with the option to add.
    """
    called, title = getattr(f, forward, f), getattr(f, "__name__", type(f).__name__)
    parameters = _named_parameters(called)[inspect.isclass(f) and takes_ctx(f) :]           # without it
    names, matches = [p.name for p in parameters], [OPTION.fullmatch(one.strip()) for one in shapes]
    if odd := [one for one, match in zip(shapes, matches) if not match]:
        raise UserError(f"--shape {odd[0]!r} is not a shape, expected x=3,4 or 'ids=2,3 int<7', 'mask=3,3 bool', "
                        "y=onehot(4,5), or s= for a single number")              # fmt: skip
    told = [match.groups("") for match in matches if match]
    if unknown := [name for name in (*values, *(name for name, *_ in told)) if name not in names]:
        raise UserError(f"{title} has no argument {unknown[0]!r}; it has {', '.join(names) or 'none'}")
    example = re.search(r"^ *Example:(.*?)(?:\n *\n|\Z)", inspect.getdoc(called) or "", re.S | re.M)
    every = [*(EXAMPLE.findall(example[1]) if example else ()), *told]                   # an option overrides
    drawn = {one[0]: one for one in every if one[0] in names and one[0] not in values}
    given = {name: _drawn(one, rng) for name, one in drawn.items()} | values
    if missing := [p.name for p in parameters if p.default is p.empty and p.name not in given]:
        raise UserError(_ask(title, missing))
    by_place = [p for p in parameters if p.kind != p.KEYWORD_ONLY]
    last = max((k for k, p in enumerate(by_place, 1) if p.name in given), default=0)
    options = {p.name: given[p.name] for p in parameters if p.kind == p.KEYWORD_ONLY and p.name in given}
    constants = [name for name, (_, onehot, *_) in drawn.items() if onehot and name not in options]
    constants += [name for name, x in values.items() if is_float(x) and name not in options]
    return [given.get(p.name, p.default) for p in by_place[:last]], options | {"constants": constants}


def _ask(title: str, missing: list[str]) -> str:
    """How to give the missing shapes, as options and in the docstring"""
    options = " ".join(f"--shape {name}=3,4" for name in missing)
    return (
        f"{title}: what is the shape of {', '.join(missing)}? Add {options}, with your sizes ('ids=2,3 int<7', "
        f"'mask=3,3 bool', y=onehot(4,5), s= for a number; what is no array is --arg {missing[-1]}=2, or "
        f"\"{missing[0]}={{'W': randn(3,4)}}\"), or write into the docstring: Example: "
        + ", ".join(f"{name} (3, 4)" for name in missing)
    )


def _drawn(described: tuple[str, ...], rng: np.random.Generator) -> Array:
    """Standard normal; or positive, not near 0; ids; one-hot rows; booleans of both values"""
    name, onehot, sizes, kind, bound = described
    shape, ids_below = tuple(map(int, re.findall(r"\d+", sizes))), int(bound or 0)
    if not 0 < math.prod(shape) <= LARGEST:
        raise UserError(f"{name} has the shape {shape}, expected sizes from 1 and at most {LARGEST:,} entries in all")
    if kind == "int" and not 0 < ids_below <= LARGEST:
        raise UserError(f"{name} is int, below which number? Write int<7 for 0 to 6; at most {LARGEST:,}")
    if onehot and shape:
        return np.eye(shape[-1])[_ids(shape[:-1], shape[-1], rng)]
    if kind == "int":
        return _ids(shape, ids_below, rng)
    if kind == "bool":
        mask = np.asarray(rng.random(shape) < 0.5)
        mask.flat[-1], mask.flat[0] = False, True
        return mask
    return np.asarray(rng.uniform(0.2, 2, shape) if kind == "positive" else rng.standard_normal(shape))


def _ids(shape: tuple[int, ...], bound: int, rng: np.random.Generator) -> Array:
    """Ids below the bound, the last the same as the first: a backward has to add up what repeated ids get"""
    ids = np.asarray(rng.integers(0, bound, shape))
    ids.flat[-1] = ids.flat[0]
    return ids
