"""Whose code it is: mini_tf's, the learner's, or that of Python and installed packages."""

import inspect
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

INSTALLED = [Path(sysconfig.get_path(which)) for which in ("stdlib", "purelib", "platlib")]
NOT_THEIRS = [Path(__file__).parents[2], *INSTALLED]


def is_ours(x: Any) -> bool:
    """True for what mini_tf defines: its ops and layers keep the contract."""
    module = getattr(x, "__module__", None) or type(x).__module__
    ours = any(cls.__module__.startswith("mini_tf.") for cls in type(x).__mro__)
    return ours or str(module).startswith("mini_tf.")


def is_theirs(x: Any) -> bool:
    """True for a function or class that is neither Python's, nor of an installed package, nor mini_tf's."""
    if inspect.isclass(x):
        methods = [g for g in (getattr(g, "__func__", g) for g in vars(x).values()) if inspect.isfunction(g)]
        return bool(methods) and is_theirs(methods[0])
    return is_their_file(inspect.unwrap(x).__code__.co_filename)


@cache
def is_their_file(path: str | None) -> bool:
    return path is not None and not any(Path(path).is_relative_to(folder) for folder in NOT_THEIRS)
