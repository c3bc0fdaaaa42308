"""The reasons of a failing check, on right code of many kinds (`functions.py`) with planted mistakes."""

import linecache
from itertools import count
from pathlib import Path
from types import SimpleNamespace

from mini_tf.gradcheck import gradcheck, judge
from tests.gradcheck.contracts import edited

NUMBERS = count(1)


def executed(lines, namespace):
    """What a file with these lines defines"""
    path = f"executed_{next(NUMBERS)}.py"
    linecache.cache[path] = len("".join(lines)), None, lines, path
    exec(compile("".join(lines), path, "exec"), namespace)
    return namespace


def edited_file(module, *changes):
    """A copy of a whole file, with places of it changed: old, new, old, new, …"""
    text = Path(module.__file__).read_text(encoding="utf-8")
    for old, new in zip(changes[::2], changes[1::2]):
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        text = text.replace(old, new)
    return SimpleNamespace(**executed(text.splitlines(True), {}))


def source_of(thing):
    """The lines of a thing that `edited` made"""
    code = getattr(thing, "__code__", None) or next(f.__code__ for f in vars(thing).values() if hasattr(f, "__code__"))
    return linecache.getlines(code.co_filename)


def mended(thing, *changes):
    """A copy of a thing that `edited` made, with Changes of its report carried out, as a reader would do it"""
    lines = source_of(thing)
    for change in changes:
        line = lines[change.line - 1]
        assert change.before in line, f"{change.before!r} is not in line {change.line}: {line!r}"
        after = "pass" if change.after == "(without this line)" else change.after
        lines[change.line - 1] = line.replace(change.before, after)
    namespace = dict(next(f for f in (thing, *vars(thing).values()) if hasattr(f, "__globals__")).__globals__)
    return executed(lines, namespace)[thing.__name__]


__all__ = ["edited", "edited_file", "gradcheck", "judge", "mended", "source_of"]
