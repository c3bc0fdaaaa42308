"""The process in which a student's file runs: it answers calls of its functions, and can do little else.

    python -I worker.py SETTINGS                         SETTINGS: `Remote`'s, as JSON; requests come by standard input

What is right stays in the process that asks: here arrive arguments, and from here go results, as JSON, in which
nothing can hide. This file imports nothing of mini_tf, which the exercises forbid. An audit hook, which Python never
takes back, refuses other files, other processes, the network and forbidden modules; see `guard`.
"""

import ast
import base64
import json
import os
import pickle
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

LARGEST = 1 << 26        # bytes of a message
KINDS = "biufcSU"        # of dtypes that are sent
KEPT = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef
REFUSED = (              # audit events, https://docs.python.org/3/library/audit_events.html, that begin so,
    "os.", "subprocess.", "socket.", "ctypes.", "shutil.", "gc.", "sys._", "mmap.", "signal.", "winreg.", "_winapi.",
)  # fmt: skip
ALLOWED = "os.listdir", "os.scandir", "os.putenv"        # but for these, of which imports need two


class Messages:
    """What one process says to the other: its length, and JSON. Raises EOFError when the other has ended."""

    def __init__(self, reading: BinaryIO, writing: BinaryIO):
        self.reading, self.writing = reading, writing

    def send(self, message: Any) -> None:
        text = json.dumps(message).encode()
        self.writing.write(struct.pack("<I", len(text)) + text)
        self.writing.flush()

    def receive(self) -> dict[str, Any]:
        """The next message. Raises ValueError for what is none."""
        head = self.reading.read(4)
        if len(head) < 4:
            raise EOFError
        (length,) = struct.unpack("<I", head)
        if length > LARGEST:
            raise ValueError(f"an answer of {length:,} bytes, expected at most {LARGEST:,}")
        message = json.loads(self.reading.read(length))
        if not isinstance(message, dict):
            raise ValueError("it is no message")
        return message


class StandIn:
    number: int              # of a function or object of the other process, in whose place it stands


def encoded(value: Any, kept: list[Any], pickled: bool = False) -> Any:
    """A value as JSON. What is no number, text, array, or list of these is kept here, and goes as its number in `kept`.

    pickled: functions aside, it goes as a pickle if it can
    """
    if isinstance(value, StandIn):
        return {"yours": value.number}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in KINDS:
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": [array.dtype.str, list(np.shape(value)), data, isinstance(value, np.generic)]}
    is_plain = type(value) in (list, tuple, dict) or not pickled         # a Counter is sent as a dict
    if isinstance(value, (list, tuple)) and is_plain:
        return {"tuple" if isinstance(value, tuple) else "list": [encoded(one, kept, pickled) for one in value]}
    if isinstance(value, dict) and is_plain:
        return {"dict": [[encoded(k, kept, pickled), encoded(v, kept, pickled)] for k, v in value.items()]}
    if value is ...:
        return {"ellipsis": True}
    if pickled and not callable(value):
        with suppress(Exception):
            return {"pickle": base64.b64encode(pickle.dumps(value)).decode()}
    kept.append(value)
    return {"kept": len(kept) - 1}


def decoded(message: Any, kept: list[Any], stand_in: Callable[[int], Any], pickled: bool = False) -> Any:
    """The value of a message. kept: what this process has; stand_in(number): for what the other one has kept

    pickled: pickles are read, which only the worker may do
    """
    if not isinstance(message, dict):
        return message
    ((kind, inside),) = message.items()
    if kind == "array":
        dtype, shape, data, is_scalar = inside
        if np.dtype(dtype).kind not in KINDS:
            raise ValueError(f"an array of {dtype}")
        array = np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
        return array[()] if is_scalar else array
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(decoded(one, kept, stand_in, pickled) for one in inside)
    if kind == "dict":
        return {decoded(k, kept, stand_in, pickled): decoded(v, kept, stand_in, pickled) for k, v in inside}
    if kind == "pickle" and pickled:
        return pickle.loads(base64.b64decode(inside))
    if kind == "yours":
        return kept[inside]
    return stand_in(inside) if kind == "kept" else ...


def copies(arguments: Sequence[Any], options: dict[str, Any]) -> dict[int | str, tuple[Any, Any]]:
    """{place or name: (array, copy of it)} of the arrays among the arguments of a call"""
    named: dict[int | str, Any] = dict(enumerate(arguments))
    named.update(options)
    return {name: (one, one.copy()) for name, one in named.items() if isinstance(one, np.ndarray)}


def changed(before: dict[int | str, tuple[Any, Any]]) -> list[list[Any]]:
    """[[place or name, array]] of those that the call has changed in place"""
    return [[name, encoded(one, [])] for name, (one, old) in before.items() if one.tobytes() != old.tobytes()]


# What the student's code may do ---------------------------------------------------------------------------------------


def guard(readable: list[str], hidden: list[str], scratch: str, modules: list[str] | None) -> None:
    """From now on, refuse everything that is not needed to compute. It cannot be undone.

    readable   folders and files that may be read, but for what is in `hidden`;  scratch: the folder that may be written
    modules    top-level names that may be imported; None for any
    """
    write, here = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, os.getcwd()
    deny, kinds, refused, allowed = PermissionError, (str, bytes), REFUSED, ALLOWED

    def normal(path):                                    # with methods of str alone, which nobody can replace
        path = path.decode("utf-8", "surrogateescape") if type(path) is bytes else path
        parts = []
        for part in (path if path[:1] == "/" or path[1:2] == ":" else f"{here}/{path}").replace("\\", "/").split("/"):
            if part == "..":
                parts[-1:] = []
            elif part not in ("", "."):
                parts.append(part)
        return "/".join(parts)

    def inside(path, folders):
        return any((path + "/").startswith(folder + "/") for folder in folders)

    readable, hidden, scratch_of = [*map(normal, readable)], [*map(normal, hidden)], [normal(scratch)]

    def hook(event, arguments):
        if event == "open":
            path, _, flags = arguments
            if type(path) is int:                        # a stream that is open already
                return
            if type(path) not in kinds:
                raise deny("this file may not be opened here")
            path = normal(path)
            may_be_read = inside(path, readable) and not inside(path, hidden)
            if not inside(path, scratch_of) and ((flags or 0) & write or not may_be_read):
                raise deny(f"{path.rpartition('/')[2]} may not be opened here")
        elif event == "import" and modules is not None:
            name = arguments[0].partition(".")[0]
            if name not in modules:
                raise ImportError(f"{name} may not be imported here, only NumPy and Python's own modules")
        elif event.startswith(refused) and event not in allowed:
            raise deny(f"{event} is not allowed here")

    sys.addaudithook(hook)


def limit(memory: int, seconds: int) -> None:
    """Bound this process, but on Windows: bytes of memory, seconds of computing, and the size of files"""
    with suppress(ImportError):
        import resource

        for what, most in (("AS", memory), ("CPU", seconds), ("FSIZE", 1 << 20)):
            resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (most, most))


# Answering ------------------------------------------------------------------------------------------------------------


def loaded(text: str, settings: dict[str, Any]) -> ModuleType:
    """The student's text as a module: all of it, or of a lab the imports and definitions only."""
    tree = ast.parse(text, settings["file"])
    if not settings["whole"]:
        tree.body = [node for node in tree.body if isinstance(node, KEPT)]
    module = ModuleType(settings["name"])
    module.__file__ = settings["file"]
    sys.modules[module.__name__] = module
    exec(compile(tree, settings["file"], "exec", dont_inherit=True), module.__dict__)
    return module


class Worker:
    """Answers requests: the student's names, calls, attributes, and operators of what they have given."""

    def __init__(self, messages: Messages, module: ModuleType, file: str):
        self.messages, self.module, self.file, self.kept = messages, module, file, list[Any]()

    def serve(self) -> None:
        while True:
            try:
                request = self.messages.receive()
            except EOFError:
                return
            self.answer(request)

    def answer(self, request: dict[str, Any]) -> None:
        try:
            message = self.called(request)
        except BaseException as error:                   # sys.exit, too
            message = where(error, self.file)
        self.messages.send(message)

    def called(self, request: dict[str, Any]) -> dict[str, Any]:
        """{"result": …, "changed": the arguments that it has changed}"""
        f = self.kept[request["kept"]] if "kept" in request else getattr(self.module, request["name"])
        for attribute in request["attributes"]:
            f = getattr(f, attribute)
        if "arguments" not in request:
            return {"result": encoded(f, self.kept)}
        arguments, options = self.read(request["arguments"]), self.read(request["options"])
        before = copies(arguments, options)
        result = f(*arguments, **options)
        return {"result": encoded(result, self.kept), "changed": changed(before)}

    def read(self, message: Any) -> Any:
        return decoded(message, self.kept, partial(Asked, self), pickled=True)

    def ask(self, number: int, attribute: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """What the other process answers to a call, or about an attribute. It may call here before it answers."""
        said = {"arguments": encoded(arguments, self.kept), "options": encoded(options, self.kept)}
        self.messages.send({"ask": number, "attribute": attribute, **said})
        while True:
            message = self.messages.receive()
            if "result" not in message and "error" not in message:
                self.answer(message)
                continue
            if "error" in message:
                raise RuntimeError(message["error"])
            for name, array in message["changed"]:
                (arguments[name] if isinstance(name, int) else options[name])[...] = self.read(array)
            return self.read(message["result"])


class Asked(StandIn):
    """In place of a function or object of the other process: each call and attribute is asked for there."""

    def __init__(self, worker: Worker, number: int):
        self._worker, self.number = worker, number

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._worker.ask(self.number, "", arguments, options)

    def __getattr__(self, name: str) -> Any:
        return self._worker.ask(self.number, name, (), {})


def where(error: BaseException, file: str) -> dict[str, str]:
    """{"error": what was raised, and in which line of the student's file}"""
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == file]
    line = f"line {lines[-1]}: " if lines else f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
    return {"error": f"{line}{type(error).__name__}: {error}"[:500]}


def main() -> None:
    settings = json.loads(sys.argv[1])
    messages = Messages(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):                             # what the student's code reads and prints
        os.dup2(nowhere, stream)
    sys.path[:0] = settings["path"]
    exec(settings["before"], {})                         # imports that need more than the student's code may do
    with open(settings["file"], encoding="utf-8", errors="replace") as file:
        text = file.read()
    limit(settings["memory"], settings["seconds"])
    guard(settings["readable"], settings["hidden"], settings["scratch"], settings["modules"])
    try:
        module = loaded(text, settings)
    except BaseException as error:
        messages.send(where(error, settings["file"]))
        return
    messages.send({"ready": True})
    Worker(messages, module, settings["file"]).serve()


if __name__ == "__main__":
    main()
