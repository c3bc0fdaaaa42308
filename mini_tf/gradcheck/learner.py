"""Your own op, in a file of your own: load it, choose its arguments, check its gradients.

    mini-tf gradcheck my_ops.py::softmax                         shapes from the docstring
    mini-tf gradcheck my_ops.py::softmax --shape z=2,5           or from you
    mini-tf gradcheck my_ops.py::affine                          affine_forward and affine_backward
    mini-tf gradcheck my_ops.py::MLP --arg hidden=6 --shape x=4,3        an object of the class MLP(hidden=6)

How a docstring says the shapes is told in `arguments.py`.
"""

import ast
import importlib
import inspect
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_tf.errors import UserError
from mini_tf.gradcheck.arguments import inputs_for, made, parsed
from mini_tf.gradcheck.check import gradcheck
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_theirs
from mini_tf.gradcheck.measuring.stored import BACKWARD, GO_BACK, method_of
from mini_tf.gradcheck.measuring.styles import has_value_and_gradient, is_static, partner
from mini_tf.gradcheck.report import Report
from mini_tf.gradcheck.turns import turn
from mini_tf.ops.op import Op

import numpy as np


def check(target: str, shapes: Sequence[str] = (), seed: int = 0, args: Sequence[str] = ()) -> Report:
    """The Report on "file.py::function". A file that cannot be loaded raises a UserError that says where and why."""
    f, inputs = load(target, shapes, seed, args)
    with running(target):
        return gradcheck(f, *inputs, seed=seed)


def load(target: str, shapes: Sequence[str] = (), seed: int = 0, args: Sequence[str] = ()) -> tuple[Any, list[Any]]:
    """(f, inputs) of "file.py::function", the inputs drawn at random. Of a class, f is an object of it.

    shapes    as the options have them: ["x=3,4", "ids=2,3 int<7", "mask=3,3 bool"]; without them, the docstring's
    args      values of arguments, for which no array is drawn: ["stride=2", "hidden=6"]
    """
    path, name = _file_and_name(target)
    f, values = _chosen(path, name), parsed(args)
    with running(target), _in_words(path.resolve()):
        if inspect.isclass(f) and not is_static(f):
            f, values = made(f, values, shapes, seed)
        return f, inputs_for(f, shapes, values, np.random.default_rng(seed))


def _file_and_name(target):
    """(the path, "softmax") of "my_ops.py::softmax"; the name is "" without "::" """
    file, _, name = target.rpartition("::") if "::" in target else (target, "", "")
    return Path(file), name


def is_exercise(target: str) -> bool:
    """True for a file whose docstring begins with "Exercise", and that has not its solution."""
    path, _ = _file_and_name(target)
    with suppress(OSError, SyntaxError, ValueError):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return doc.startswith("Exercise ") and path.resolve().parent.name != "solutions"
    return False


def given_lines(target: str) -> set[str]:
    """The lines of an exercise that its learner has not written: those of solutions/FILE beside it, if it is there."""
    path, _ = _file_and_name(target)
    solution = path.parent / "solutions" / path.name
    if not solution.is_file():
        return set()
    tree = ast.parse(solution.read_text(encoding="utf-8"))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    returned = [node.value for node in statements if isinstance(node, ast.Return) and node.value is not None]
    parts = [part for value in returned for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return {" ".join(ast.unparse(node).split()) for node in [*statements, *parts]}


@contextmanager
def running(target: str) -> Iterator[None]:
    """While a function of "file.py::function" runs, imports inside it find what lies beside its file."""
    if "::" not in target:
        yield
        return
    with _imports_from(_file_and_name(target)[0].resolve().parent):
        yield


# The file ---------------------------------------------------------------------------------------------------------


def _chosen(path, name):
    """The function, Op or class of that name in a file; without a name, the only one that can be checked."""
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
    there = {n: x for n, x in vars(module).items() if _can_be_checked(x)}
    found = next((there[n] for n in (name, f"{name}_forward", f"forward_{name}", f"{name}_fwd") if n in there), None)
    if found is not None:
        return found
    own = [n for n, x in there.items() if x.__module__ == module.__name__]
    backwards = {back.__name__ for n in own if (back := partner(there[n])) is not None}
    own = [n for n in own if n not in backwards]
    if not name and len(own) == 1:
        return there[own[0]]
    came = "which function or class" if not name else f"it has no function or class {name!r} with a backward"
    if name and hasattr(module, name):
        came = f"{name} is neither a function nor a class with forward and backward, or with a loss"
    raise UserError(f"{_shown(path)}: {came}; " + (f"there are: {', '.join(own)}" if own else "it defines none"))


def _can_be_checked(x):
    """True for a function, an op, and a class with forward (or a call) and backward, or with a loss or its gradient."""
    if inspect.isclass(x):
        usual = any(callable(getattr(x, name, None)) for name in (*BACKWARD, "loss"))
        return usual or (is_theirs(x) and bool(method_of(x, BACKWARD, GO_BACK) or has_value_and_gradient(x)))
    return inspect.isfunction(x) or isinstance(x, Op)


def _compiled(path):
    try:
        return compile(path.read_bytes(), path, "exec", dont_inherit=True)
    except ValueError as error:                          # a null byte, in Python 3.11
        raise UserError(f"{_shown(path)} is no Python file: {error}") from error


@contextmanager
def _imports_from(folder):
    """Let imports find what lies in this folder, and forget it afterwards: other folders may use the same names."""
    with turn:
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
    except FAILURES as error:
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
