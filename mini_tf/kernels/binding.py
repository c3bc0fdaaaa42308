"""Which twin belongs to which formula, by the formula's text.

`fingerprints.py` has those of every formula that has a twin, as it was when `mini-tf gradcheck --bind-twins` compared
the two: of the formula itself and of each function of mini_tf that it uses. A fingerprint is a hash of a syntax tree:
comments, docstrings, type hints, layout and the words of error messages do not count, all else does.
"""

import ast
import dis
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from mini_tf.files import write_text
from mini_tf.kernels.compiling import why_uncompiled
from mini_tf.kernels.fingerprints import FINGERPRINTS

if TYPE_CHECKING:
    from mini_tf.ops.op import Op

TWINS = {"numpy": "mini_tf.kernels.cpu", "cupy": "mini_tf.kernels.gpu"}
_hashed: dict[int, tuple[CodeType, str]] = {}        # id of a code object -> (the code object, its fingerprint)
NOT_HASHED = {"array_module", "to_device_of", "check_rng", "_library"}   # they say where it is computed, not what


def name_of(op: "Op") -> str:
    """The key of an op in FINGERPRINTS: "ops.softmax.softmax"."""
    return f"{op.__module__}.{op.name}".removeprefix("mini_tf.")


def bound(op: "Op") -> bool:
    """True if a twin was compared with the op's formula, in its present form or an earlier one."""
    return name_of(op) in FINGERPRINTS


def twin(op: "Op", library: str = "numpy") -> Callable | None:
    """The function of the op's name among the twins for that library's arrays; None if there is none.

    Ops from outside mini_tf have none. Without Numba, and with NUMBA_DISABLE_JIT, there is none for NumPy's arrays: its
    loops would run as Python.
    """
    if library not in TWINS or library == "numpy" and why_uncompiled():
        return None
    if hasattr(op, "twin"):                              # a layer's: see `decode_layer.py`
        return op.twin if library == "numpy" else None
    if not op.__module__.startswith("mini_tf.ops."):
        return None
    return getattr(import_module(TWINS[library]), op.name, None)         # imported here, because cpu loads Numba


def edited(op: "Op") -> str | None:
    """The name of a function edited since the twin was compared: the op's own, or one that it uses.

    None if there is none, or if the source is not available: what cannot be read cannot have been edited.
    """
    compared = FINGERPRINTS[name_of(op)]
    return next((name for name, now in fingerprints(op).items() if now and compared.get(name) != now), None)


def fingerprints(op: "Op") -> dict[str, str]:
    """{name: fingerprint} of the formula and of all functions of mini_tf that it uses."""
    used = _used_by(op.formula)
    for function in op.uses() if hasattr(op, "uses") else ():
        _used_by(function, used)
    return {name: _fingerprint(function.__code__) for name, function in used.items()}


def bind(ops: "Iterable[Op]") -> None:
    """Write the present fingerprints of these ops: their twins agree with the formulas as they are."""
    every = FINGERPRINTS | {name_of(op): fingerprints(op) for op in ops}
    lines = ['"""Fingerprints of the formulas that have twins, written by `mini-tf gradcheck --bind-twins`."""', ""]
    lines.append("FINGERPRINTS = {")
    for op, of_functions in sorted(every.items()):
        lines.append(f'    "{op}": {{')
        lines += [f'        "{name}": "{value}",' for name, value in of_functions.items()]
        lines.append("    },")
    write_text(Path(__file__).with_name("fingerprints.py"), "\n".join([*lines, "}", ""]))
    FINGERPRINTS.update(every)


def _used_by(function, found=None):
    """{name: function} of the function and of all functions of mini_tf that it uses, directly or not."""
    found = {} if found is None else found
    found[function.__qualname__] = function
    for name in sorted(_names(function)):
        used = inspect.unwrap(function.__globals__.get(name))
        ours = inspect.isfunction(used) and used.__module__.startswith("mini_tf.")
        if ours and name not in NOT_HASHED and used.__qualname__ not in found:
            _used_by(used, found)
    return found


def _names(function):
    """The names of the globals that a function, or a function inside it, uses."""
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= {instruction.argval for instruction in dis.get_instructions(code) if "GLOBAL" in instruction.opname}
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
    return names


def _fingerprint(code):
    """A short hash of the syntax tree that a function was compiled from; "" if its source is not available."""
    if id(code) not in _hashed:
        try:
            tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0]))).body[0]
            fingerprint = hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()[:16]
        except (OSError, SyntaxError, TypeError, IndexError):
            fingerprint = ""
        _hashed[id(code)] = code, fingerprint             # by id: code objects are equal even if defaults differ
    return _hashed[id(code)][1]


def _plain(node):
    """The syntax tree as nested tuples, the same in all versions of Python, without what does not affect results."""
    if isinstance(node, list):
        return tuple(map(_plain, node))
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Raise):
        return "raise"
    fields = {name: value for name, value in ast.iter_fields(node) if value is not None and value != []}
    for name in ("ctx", "kind", "type_comment", "decorator_list", "annotation", "returns"):
        fields.pop(name, None)
    if isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = fields["body"][1:]
    return type(node).__name__, *((name, _plain(value)) for name, value in fields.items())
