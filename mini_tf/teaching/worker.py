"""The process in which a student's file runs: it answers calls of its functions, and can do little else.

    python -I worker.py SETTINGS                         SETTINGS: `Remote`'s, as JSON; requests come by standard input

What is right stays in the process that asks: here arrive arguments, and from here go results, as JSON. An audit hook,
which Python never takes back, refuses other files and processes, the network, and other modules; see `guard`.
"""

import ast
import base64
import json
import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

LARGEST = 1 << 24        # bytes of a message
KINDS = "biufcSU"        # of dtypes that are sent
KEPT = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef
REFUSED = (              # audit events, https://docs.python.org/3/library/audit_events.html, that begin so,
    "os.", "subprocess.", "socket.", "ctypes.", "shutil.", "gc.", "sys._", "mmap.", "signal.", "resource.", "winreg.",
)  # fmt: skip
ALLOWED = "os.listdir", "os.scandir", "os.putenv", "os.unsetenv", "sys._getframe"        # but for these
DANGEROUS = "ctypes", "subprocess", "posixsubprocess", "socket", "multiprocessing", "resource", "imp", "readline"
UNHEARD = "pidfd_open", "pidfd_send_signal", "setpriority", "mknod", "mkfifo", "memfd_create"


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
    """A value as JSON. What is no number, text, array, or list of these is kept, or `pickled` if it can be."""
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
    """The value of a message. stand_in(number): for what the other process has kept; pickled: only the worker may"""
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


def guard(settings: dict[str, Any], channel: int) -> None:
    """From now on, whoever does what is not needed to compute ends this process, and the reason is sent. For good.

    readable: what may be read, but for `hidden`; scratch: what may be written; closed: nothing new may be imported
    """
    write, here = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, os.getcwd()
    refused, allowed, is_closed = REFUSED, ALLOWED, settings["closed"]
    kind_of, fspath, say, end, json_of, pack = type, os.fsdecode, os.write, os._exit, json.dumps, struct.pack

    def refuse(words):                                   # an exception would hand over its frames
        text = json_of({"error": f"{words} here"}).encode()
        say(channel, pack("<I", len(text)) + text)
        end(1)

    def normal(path):                                    # with methods of str alone, which nobody can replace
        parts = []
        for part in (path if path[:1] == "/" or path[1:2] == ":" else f"{here}/{path}").replace("\\", "/").split("/"):
            if part == "..":
                parts[-1:] = []
            elif part not in ("", "."):
                parts.append(part)
        return "/".join(parts) + "/"

    readable, hidden = (tuple(map(normal, settings[name])) for name in ("readable", "hidden"))
    scratch = normal(settings["scratch"])

    def hook(event, arguments):
        if event == "open":
            path, mode, flags = arguments
            if kind_of(path) is int:                     # a stream that is open already
                return
            path = fspath(path)
            place, name = normal(path), path[-60:]
            is_beside = mode is None and path[:1] != "/" and path[1:2] != ":"            # of another folder: dir_fd
            may_be_read = place.startswith(readable) and not place.startswith(hidden) and not (flags or 0) & write
            if is_beside or not (place.startswith(scratch) or may_be_read):
                refuse(f"{name} may not be opened")
        elif event == "import" and is_closed:            # of what has not been imported beforehand
            refuse(f"{arguments[0]} may not be imported, only NumPy and some of Python's own modules")
        elif event.startswith(refused) and event not in allowed:
            refuse(f"{event} is not allowed")

    for module in (os, signal, sys.modules["posix" if os.name == "posix" else "nt"]):    # what no audit event tells of
        for name in UNHEARD:
            if hasattr(module, name):
                delattr(module, name)
    for name in [name for name in sys.modules if settings["closed"] and name.lstrip("_").startswith(DANGEROUS)]:
        del sys.modules[name]
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
        with suppress(EOFError):
            while True:
                self.answer(self.messages.receive())

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
        try:
            return self._worker.ask(self.number, name, (), {})
        except RuntimeError as error:
            raise AttributeError(str(error)) from None


def where(error: BaseException, file: str) -> dict[str, str]:
    """{"error": what was raised, and in which line of the student's file}"""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
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
    guard(settings, messages.writing.fileno())
    try:
        module = loaded(text, settings)
    except BaseException as error:
        messages.send(where(error, settings["file"]))
        return
    messages.send({"ready": True})
    Worker(messages, module, settings["file"]).serve()


if __name__ == "__main__":
    main()
