"""Your own op, in a file of your own: load it, choose its arguments, check its gradients.

    mini-tf gradcheck my_ops.py::softmax                         shapes from the docstring
    mini-tf gradcheck my_ops.py::softmax --shape z=2,5           or from you

A docstring says the shapes in numbers,   Example: z (2, 5), ids (2, 3) int < 7, mask (2, 5) bool, p (3,) positive
or in letters, as those of `mini_tf.ops`: z (…, k), gamma (k,).
"""

import importlib
import inspect
import math
import re
import sys
import traceback
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from mini_tf.errors import UserError
from mini_tf.gradcheck.check import gradcheck
from mini_tf.ops.op import Op

import numpy as np

LARGEST = 100_000        # entries of one argument, and ids: the checker runs the function thousands of times
KIND = r"positive|bool|int(?: ?< ?\w+)?"
ARGUMENT = re.compile(rf"(?<![\w.])(\w+) \(([^()]*)\)(?: ({KIND})\b)?")
USUAL = dict.fromkeys(("ids", "targets", "labels"), " int<7") | dict.fromkeys(("mask", "keep"), " bool")


class Argument(NamedTuple):
    """What an argument has to be: axes are sizes, letters or …; kind is float, int or bool; ints are below bound."""

    axes: tuple
    kind: str
    bound: str


def check(target, shapes=(), seed=0):
    """The Report on "file.py::function". A file that cannot be loaded raises a UserError that says where and why."""
    f, inputs = load(target, shapes, seed)
    with running(target):
        return gradcheck(f, *inputs, seed=seed)


def load(target, shapes=(), seed=0):
    """(f, inputs) of "file.py::function", the inputs drawn at random.

    shapes    as the options have them: ["x=3,4", "ids=2,3 int<7", "mask=3,3 bool"]; without them, the docstring's
    """
    file, _, name = target.rpartition("::") if "::" in target else (target, "", "")
    f = _function(Path(file), name)
    return f, _inputs(f, shapes, np.random.default_rng(seed))


@contextmanager
def running(target):
    """While a function of "file.py::function" runs, imports inside it find what lies beside its file."""
    if "::" not in target:
        yield
        return
    with _imports_from(Path(target.rpartition("::")[0]).resolve().parent):
        yield


# The file ---------------------------------------------------------------------------------------------------------


def _function(path, name):
    if not path.is_file() or path.suffix != ".py":
        came = "is not a .py file" if path.exists() else "is not there"
        raise UserError(f"{path} {came}, expected a Python file and a function of it, as in my_ops.py::softmax")
    path = path.resolve()
    module = ModuleType(f"learner_{path.stem}")
    module.__file__ = str(path)
    with _imports_from(path.parent), _in_words(path):
        sys.modules[module.__name__] = module            # dataclasses look for their module there
        try:
            # Compiled anew each time: Python's own cache misses a change within the same second.
            exec(_compiled(path), module.__dict__)
        finally:
            del sys.modules[module.__name__]
    f = getattr(module, name, None)
    if inspect.isfunction(f) or isinstance(f, Op):
        return f
    functions = {n: g for n, g in vars(module).items() if inspect.isfunction(g) or isinstance(g, Op)}
    there = [n for n, g in functions.items() if g.__module__ == module.__name__]
    came = "which function" if not name else f"it has no function {name!r}" if f is None else f"{name} is no function"
    raise UserError(f"{_shown(path)}: {came}; " + (f"there are: {', '.join(there)}" if there else "it defines none"))


def _compiled(path):
    try:
        return compile(path.read_bytes(), path, "exec", dont_inherit=True)
    except ValueError as error:                          # a null byte, in Python 3.11
        raise UserError(f"{_shown(path)} is no Python file: {error}") from error


@contextmanager
def _imports_from(folder):
    """Let imports find what lies in this folder, and forget it afterwards: other folders may use the same names."""
    modules, path, bytecode = set(sys.modules), sys.path[:], sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, bytecode
        for name in set(sys.modules) - modules:
            top = name.partition(".")[0]
            origin = Path(getattr(sys.modules[name], "__file__", None) or "")
            if top not in modules and (origin.parent == folder or origin.is_relative_to(folder / top)):
                del sys.modules[name]


@contextmanager
def _in_words(path):
    """An error in the learner's file, or in one beside it, becomes a UserError that says where and what."""
    try:
        yield
    except UserError:
        raise
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise UserError(f"{_shown(error.filename or path)}{line}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = [
            (frame, line) for frame, line in traceback.walk_tb(error.__traceback__)
            if Path(frame.f_code.co_filename).parent == path.parent
        ]  # fmt: skip
        if not frames:
            raise                                        # not the learner's error
        frame, line = frames[-1]
        code = frame.f_code
        where = f"{_shown(code.co_filename)}, line {line}" + (f", in {code.co_name}" * (code.co_name[0] != "<"))
        raise UserError(f"{where}: {type(error).__name__}: {error}") from error


def _shown(path):
    path = Path(path)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


# Its arguments ----------------------------------------------------------------------------------------------------


def _inputs(f, shapes, rng):
    """Arrays for the arguments of f, up to the last that has a shape; one without a shape keeps its default."""
    signature = inspect.signature(f).parameters.values()
    parameters = [p for p in signature if p.kind <= p.POSITIONAL_OR_KEYWORD]
    names = [p.name for p in parameters]
    if not names:
        raise UserError(f"{f.__name__} takes no arguments, expected arrays to differentiate with respect to")
    if by_name := [p.name for p in signature if p.kind == p.KEYWORD_ONLY and p.default is p.empty]:
        raise UserError(f"{f.__name__} takes {', '.join(by_name)} by name only; give it a default value")
    doc = inspect.getdoc(f) or ""
    found = _from_example(doc, names) | _from_options(f, shapes, names)
    if not shapes:
        found = found or _from_letters(doc, names)
    sizes = _sizes(found.values())
    found = {name: (_shape(name, a, sizes), a.kind, _bound(name, a, sizes)) for name, a in found.items()}

    missing = [p.name for p in parameters if p.name not in found and p.default is p.empty]
    if missing:
        said = " (what stands after Example: was not understood)" if not found and "Example:" in doc else ""
        raise UserError(_ask(f, missing, {n: found.get(n) for n in names if n in found or n in missing}) + said)
    used = parameters[: max(names.index(name) for name in found) + 1] if found else []
    return [_draw(*found[p.name], rng) if p.name in found else p.default for p in used]


def _from_options(f, shapes, names):
    found = {}
    for option in shapes:
        name, equals, text = (part.strip() for part in option.partition("="))
        match = re.fullmatch(rf"\(?([\d, ]*)\)? ?({KIND})?", text)
        if not equals or not text or not match or not (argument := _argument(*match.groups())):
            raise UserError(f"--shape {option!r} is not a shape, expected x=3,4 or 'ids=2,3 int<7' or 'mask=3,3 bool'")
        if name not in names:
            raise UserError(f"--shape {option!r}: {f.__name__} has no argument {name!r}; it has {', '.join(names)}")
        found[name] = argument
    return found


def _from_example(doc, names):
    """The arguments after "Example:" in a docstring, to the next empty line."""
    example = re.search(r"^ *Example:(.*?)(?:\n *\n|\Z)", doc, re.S | re.M)
    return _from_letters(example[1], names) if example else {}


def _from_letters(text, names):
    """The arguments of a text, each where it is first followed by a shape."""
    found = {}
    for name, axes, kind in ARGUMENT.findall(text):
        if name in names and name not in found and (argument := _argument(axes, kind)):
            found[name] = argument
    return found


def _argument(axes, kind):
    """The Argument that ("2, T", "int < 7") means, or None: "(see below)" is not a shape."""
    axes = tuple(axis.strip().replace("...", "…") for axis in axes.strip().removesuffix(",").split(",") if axes.strip())
    if not all(axis == "…" or axis.isdecimal() or (axis.isidentifier() and len(axis) <= 3) for axis in axes):
        return None
    kind, _, bound = (kind or "float").replace(" ", "").partition("<")
    return Argument(axes, kind, bound)


def _sizes(arguments):
    """{letter: its size}; … is two axes. All sizes differ, so that exchanged axes are noticed."""
    size = count(2)
    letters = dict.fromkeys(axis for a in arguments for axis in a.axes if not axis.isdecimal())
    return {axis: (next(size), next(size)) if axis == "…" else (next(size),) for axis in letters}


def _shape(name, argument, sizes):
    shape = tuple(n for axis in argument.axes for n in sizes.get(axis, None) or (int(axis),))
    if not 0 < math.prod(shape) <= LARGEST:
        raise UserError(f"{name} has the shape {shape}, expected sizes from 1 and at most {LARGEST:,} entries in all")
    return shape


def _bound(name, argument, sizes):
    """Ids are below this: a number, or the size of a letter, which is c, the vocabulary's, unless said otherwise."""
    if argument.kind != "int":
        return None
    bound = argument.bound or "c"
    bound = int(bound) if bound.isdecimal() else sizes.get(bound, (0,))[0]
    if not 0 < bound <= LARGEST:
        raise UserError(f"{name} is int, below which number? Write int<7 for ids from 0 to 6; at most {LARGEST:,}")
    return bound


def _draw(shape, kind, bound, rng):
    """Standard normal; or positive, not near 0; ids, the last the same as the first; booleans of both values."""
    if kind == "float":
        return rng.standard_normal(shape)
    if kind == "positive":
        return rng.uniform(0.2, 2, shape)
    drawn = rng.integers(0, bound, shape) if kind == "int" else rng.random(shape) < 0.5
    flat = drawn.reshape(-1)
    if kind == "int":
        flat[-1] = flat[0]
    else:
        flat[-1], flat[0] = False, True
    return drawn


def _ask(f, missing, arguments):
    """How to give the missing shapes, both ways, with this function's own names."""
    options, example = [], []
    usual = next((shape[-2:] for shape, _, _ in filter(None, arguments.values())), (2, 3))
    for name, known in arguments.items():
        shape, kind, bound = known or (usual, "float", None)
        kind = {"float": "", "int": f" int<{bound}", "bool": " bool"}[kind] if known else USUAL.get(name, "")
        spec = f"{name}={','.join(map(str, shape))}{kind}"
        options.append(f'--shape "{spec}"' if kind else f"--shape {spec}")
        example.append(f"{name} {shape}{kind}")
    return (
        f"{f.__name__}: what is the shape of {', '.join(missing)}? Give those of all arguments: {' '.join(options)} "
        f"(word ids are 2,3 int<7, a mask is 2,3 bool), or write into the docstring: Example: {', '.join(example)}"
    )
