"""Where code is written: the place of a line, and the functions inside a function. It needs nothing but Python."""

import inspect
import os
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType

MINI_TF = Path(__file__).parent
INSTALLED = [Path(sysconfig.get_path(which)) for which in ("stdlib", "purelib", "platlib")]


def place(path: str | os.PathLike[str], line: int) -> str:
    """file:line, the file relative to the folder that has mini_tf, or to the current one, if it is in one of them."""
    path = Path(path)
    for folder in (MINI_TF.parent, Path.cwd()):
        if path.is_relative_to(folder):
            path = path.relative_to(folder)
    return f"{path}:{line}"


@cache
def is_theirs(path: str) -> bool:
    """True for a file of the user's: neither Python's, nor of an installed package, nor mini_tf's"""
    return path[:1] != "<" and not any(Path(path).is_relative_to(folder) for folder in (MINI_TF, *INSTALLED))


def codes_inside(code: CodeType) -> list[CodeType]:
    """This code object, and those of all functions defined inside it"""
    inner = (constant for constant in code.co_consts if inspect.iscode(constant))
    return [code, *(deeper for c in inner for deeper in codes_inside(c))]
