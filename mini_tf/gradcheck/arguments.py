"""Arguments for a learner's function: arrays of the shapes that an option or the docstring says, and given values.

    --shape x=3,4   'ids=2,3 int<7'   'mask=3,3 bool'   'p=3 positive'   s=   y=onehot(4,5)   params.W=4,3   layers.0=2
    --arg stride=2   how=mean   W=randn(3,2)

A shape is drawn at random, and its gradient is checked; s= is a single number, one-hot rows are constants. Values are
constants: Python's, with np and randn, and what is no Python is a string. A docstring says the shapes in numbers, in
letters or in words:

    Example: x (3, 4), ids (2, 3) int < 7, mask (3, 3) bool, p (3,) positive, s (), y onehot(4, 5), params.W (4, 3)
    z (…, k), gamma (k,)
    x: array of shape (batch, features)
"""

import inspect
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from mini_tf.errors import UserError
from mini_tf.gradcheck.check import gradcheck
from mini_tf.gradcheck.weights import is_float
from mini_tf.types import Array

import numpy as np

LARGEST = 100_000        # entries of one argument, and ids: the checker runs the function thousands of times
KIND = r"positive|bool|int(?: ?< ?\w+)?"
SAID = r":? ?[^()\n]{0,60}?\bshape:? ?|: ?| "             # between a name and its shape: "x: input of shape (N, D)"
ARGUMENT = re.compile(rf"(?<![\w.])(\w+(?:\.\w+)*)({SAID})(onehot ?)?\(([^()]*)\)(?: ({KIND})\b)?")
OPTION = re.compile(rf"(onehot ?)?\(?([\d, ]*)\)? ?({KIND})?")


class Argument(NamedTuple):
    """What an argument has to be"""

    axes: tuple[str, ...]    # sizes, letters or …
    kind: str                # float, positive, int, bool or onehot
    bound: str               # of ints: a number, or the letter of a size, below which they are


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


def _named_parameters(f):
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
    parameters = _named_parameters(called)[inspect.isclass(f) :]         # of a torch.autograd.Function without ctx
    names, told, doc = [p.name for p in parameters], _from_options(shapes), inspect.getdoc(called) or ""
    if unknown := [name for name in (*values, *map(_owner, told)) if name not in names]:
        raise UserError(f"{title} has no argument {unknown[0]!r}; it has {', '.join(names) or 'none'}")
    example = re.search(r"^ *Example:(.*?)(?:\n *\n|\Z)", doc, re.S | re.M)
    found = _from_text(example[1], names, nested=True) if example else {}
    found = found | told or _from_text(doc, names)
    found = {name: argument for name, argument in found.items() if _owner(name) not in values}
    owners = {*map(_owner, found), *values}
    if missing := [p.name for p in parameters if p.default is p.empty and p.name not in owners]:
        raise UserError(_ask(title, called, missing))
    sizes = _sizes(found.values())
    given = _nested({name: _draw(name, argument, sizes, rng) for name, argument in found.items()}) | values
    by_place = [p for p in parameters if p.kind != p.KEYWORD_ONLY]
    last = max((k for k, p in enumerate(by_place, 1) if p.name in given), default=0)
    options = {p.name: given[p.name] for p in parameters if p.kind == p.KEYWORD_ONLY and p.name in given}
    if taken := [name for name in options if name in inspect.signature(gradcheck).parameters]:
        raise UserError(f"{title} takes {taken[0]} by name only, and so does gradcheck: give it another name")
    constants = [n for n, a in found.items() if a.kind == "onehot"] + [n for n, x in values.items() if is_float(x)]
    constants = [name for name in constants if _owner(name) not in options]
    return [given.get(p.name, p.default) for p in by_place[:last]], options | {"constants": constants}


def _owner(name):
    """params of params.W"""
    return name.partition(".")[0]


def _nested(arrays):
    """{"x": x, "params": {"W": W}} of {"x": x, "params.W": W}; numbers are the places of a list: layers.0"""
    groups = {}
    for name, array in arrays.items():
        first, _, rest = name.partition(".")
        groups.setdefault(first, {})[rest] = array
    found = {name: group[""] if "" in group else _nested(group) for name, group in groups.items()}
    return [found[k] for k in sorted(found, key=int)] if found and all(map(str.isdecimal, found)) else found


def _ask(title, f, missing):
    """How to give the missing shapes, both ways, with f's own names; of a dict, with the keys that it reads"""
    source = ""
    with suppress(OSError, TypeError):
        source = inspect.getsource(f)
    keys = {name: dict.fromkeys(re.findall(rf"""\b{name}\[["'](\w+)["']\]""", source)) for name in missing}
    names = [full for name in missing for full in [f"{name}.{key}" for key in keys[name]] or [name]]
    options = " ".join(f"--shape {name}=3,4" for name in names)
    return (
        f"{title}: what is the shape of {', '.join(missing)}? Add {options}, with your sizes ('ids=2,3 int<7', "
        f"'mask=3,3 bool', y=onehot(4,5), s= for a number; what is no array is --arg {missing[-1]}=2), or write into "
        f"the docstring: Example: {', '.join(f'{name} (3, 4)' for name in names)}"
    )


def _from_options(shapes: Sequence[str]) -> dict[str, Argument]:
    found = {}
    for option in shapes:
        name, equals, text = (part.strip() for part in option.partition("="))
        match = OPTION.fullmatch(text)
        if not equals or not match or not (argument := _argument(match[2], match[3], match[1])):
            raise UserError(f"--shape {option!r} is not a shape, expected x=3,4 or 'ids=2,3 int<7', 'mask=3,3 bool', "
                            "y=onehot(4,5), or s= for a single number")          # fmt: skip
        found[name] = argument
    return found


def _from_text(text, names, nested=False):
    """The arguments of a text, each where it is first followed by a shape; with nested also params.W"""
    found = {}
    for name, said, onehot, axes, kind in ARGUMENT.findall(text):
        known = (_owner(name) if nested else name) in names and name not in found
        if known and (argument := _argument(axes, kind, onehot, bool(said.strip()))):
            found[name] = argument
    return found


def _argument(axes, kind, onehot="", told=False):
    """The Argument that ("2, T", "int < 7") means; None for "(see below)", and for "(optional)" unless it is told"""
    longest = 40 if "," in axes or told else 3
    axes = tuple(axis.strip().replace("...", "…") for axis in axes.strip().removesuffix(",").split(",") if axes.strip())
    if not all(a == "…" or a.isdecimal() or (a.isidentifier() and len(a) <= longest) for a in axes):
        return None
    kind, _, bound = (kind or "float").replace(" ", "").partition("<")
    return Argument(axes, "onehot" if onehot and axes else kind, bound)


def _sizes(arguments):
    """{letter: its size}; … is two axes. All sizes differ, so that exchanged axes are noticed."""
    size = count(2)
    letters = dict.fromkeys(axis for a in arguments for axis in a.axes if not axis.isdecimal())
    return {axis: (next(size), next(size)) if axis == "…" else (next(size),) for axis in letters}


def _draw(name: str, argument: Argument, sizes: dict[str, tuple], rng: np.random.Generator) -> Array:
    """Standard normal; or positive, not near 0; ids; one-hot rows; booleans of both values"""
    shape = tuple(n for axis in argument.axes for n in sizes.get(axis) or (int(axis),))
    if not 0 < math.prod(shape) <= LARGEST:
        raise UserError(f"{name} has the shape {shape}, expected sizes from 1 and at most {LARGEST:,} entries in all")
    match argument.kind:
        case "positive":
            return np.asarray(rng.uniform(0.2, 2, shape))
        case "int":                                      # below the vocabulary's size, c, unless another is said
            bound = argument.bound or "c"
            bound = int(bound) if bound.isdecimal() else sizes.get(bound, (0,))[0]
            if not 0 < bound <= LARGEST:
                raise UserError(f"{name} is int, below which number? Write int<7 for 0 to 6; at most {LARGEST:,}")
            return _ids(shape, bound, rng)
        case "onehot":
            return np.eye(shape[-1])[_ids(shape[:-1], shape[-1], rng)]
        case "bool":
            mask = np.asarray(rng.random(shape) < 0.5)
            mask.flat[-1], mask.flat[0] = False, True
            return mask
    return np.asarray(rng.standard_normal(shape))


def _ids(shape, bound, rng):
    """Ids below the bound, the last the same as the first: a backward has to add up what repeated ids get"""
    ids = np.asarray(rng.integers(0, bound, shape))
    ids.flat[-1] = ids.flat[0]
    return ids
