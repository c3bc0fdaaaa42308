"""The process in which a student's file runs: it answers calls of its functions, and can do little else.

    python -I worker.py SETTINGS                         SETTINGS: a Settings as JSON; requests come by standard input

What is right stays in the process that asks: here arrive arguments, and from here go results, as JSON, in which nothing
can hide. This file imports nothing of mini_tf, which the exercises forbid. An audit hook, which Python never takes back,
refuses other files, other processes and the network, and forbidden modules; see `guard`.
"""

import ast
import base64
import json
import os
import pickle
import struct
import sys
import traceback
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np

LARGEST = 1 << 26        # bytes of a message
KEPT = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef
REFUSED = (              # audit events, https://docs.python.org/3/library/audit_events.html, that begin so
    "subprocess.", "socket.", "ctypes.", "shutil.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
    "os.startfile", "os.kill", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod",
    "os.chown", "os.chdir", "os.fchdir", "os.truncate", "os.listdir", "os.scandir", "gc.", "sys._current_frames",
    "mmap.", "signal.", "winreg.", "msvcrt.", "_winapi.", "syslog.", "webbrowser.", "urllib.", "ftplib.", "http.",
)  # fmt: skip

Settings = dict[str, Any]                                # file, whole (run all of it), path, readable, hidden, modules


# Messages -------------------------------------------------------------------------------------------------------------


def send(stream: BinaryIO, message: Any) -> None:
    """Write a message: its length, and JSON."""
    text = json.dumps(message).encode()
    stream.write(struct.pack("<I", len(text)) + text)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read a message. Raises EOFError at the end, and ValueError for what is no message."""
    head = stream.read(4)
    if len(head) < 4:
        raise EOFError
    (length,) = struct.unpack("<I", head)
    if length > LARGEST:
        raise ValueError(f"an answer of {length:,} bytes, expected at most {LARGEST:,}")
    return json.loads(stream.read(length))


def encoded(value: Any, functions: dict[int, Any] | None = None, trusted: bool = False) -> Any:
    """A value as JSON. functions: {number: function} of those that are sent; trusted: other objects are pickled"""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "biufcSU":
        array = np.ascontiguousarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": [array.dtype.str, list(np.shape(value)), data, isinstance(value, np.generic)]}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [encoded(one, functions, trusted) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[encoded(k, functions, trusted), encoded(v, functions, trusted)] for k, v in value.items()]}
    if value is ...:
        return {"ellipsis": True}
    if functions is not None and callable(value) and not trusted:
        functions[len(functions)] = value
        return {"function": len(functions) - 1}
    if trusted:
        return {"pickle": base64.b64encode(pickle.dumps(value)).decode()}
    return {"other": f"{type(value).__name__}"}


def decoded(message: Any, of_function: Any = None, trusted: bool = False) -> Any:
    """The value of a message. of_function(number) stands for a function; trusted: pickles are read"""
    if not isinstance(message, dict):
        return message
    ((kind, inside),) = message.items()
    if kind == "array":
        dtype, shape, data, is_scalar = inside
        if np.dtype(dtype).kind not in "biufcSU":
            raise ValueError(f"an array of {dtype}")
        array = np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()
        return array[()] if is_scalar else array
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(decoded(one, of_function, trusted) for one in inside)
    if kind == "dict":
        return {decoded(k, of_function, trusted): decoded(v, of_function, trusted) for k, v in inside}
    if kind == "function" and of_function is not None:
        return of_function(inside)
    if kind == "pickle" and trusted:
        return pickle.loads(base64.b64decode(inside))
    return ... if kind == "ellipsis" else Other(inside)


class Other:
    """In place of an object that is neither a number, a text, an array nor a list of these."""

    def __init__(self, kind: str):
        self.kind = kind

    def __repr__(self):
        return f"<an object of the class {self.kind}>"


# What the student's code may do ---------------------------------------------------------------------------------------


def guard(readable: list[str], hidden: list[str], scratch: str, modules: list[str] | None) -> None:
    """From now on, refuse everything that is not needed to compute. It cannot be undone.

    readable   folders and files that may be read, but for what is in `hidden`;  scratch: the folder that may be written
    modules    top-level names that may be imported; None for any
    """
    write, refused, here = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, REFUSED, os.getcwd()
    deny, kinds = PermissionError, (str, bytes)

    def normal(path):                                    # with methods of str alone, which nobody can replace
        path = path.decode("utf-8", "surrogateescape") if type(path) is bytes else path
        parts: list[str] = []
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
            if not inside(path, scratch_of) and ((flags or 0) & write or not inside(path, readable) or inside(path, hidden)):
                raise deny(f"{path.rpartition('/')[2]} may not be opened here")
        elif event == "import" and modules is not None:
            name = arguments[0].partition(".")[0]
            if name not in modules:
                raise ImportError(f"{name} may not be imported here, expected only {', '.join(modules[:2])} and the like")
        elif event.startswith(refused):
            raise deny(f"{event} is not allowed here")

    sys.addaudithook(hook)


def limit(memory: int, seconds: int) -> None:
    """Bound this process, where the system can: bytes of memory, seconds of computing, and the size of files"""
    try:
        import resource
    except ImportError:                                  # on Windows only the clock of the other process does
        return
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_FSIZE, 1 << 20)):
        resource.setrlimit(what, (most, most))


# Answering ------------------------------------------------------------------------------------------------------------


def loaded(text: str, settings: Settings) -> ModuleType:
    """The student's text as a module: all of it, or of a lab the imports and definitions only."""
    tree = ast.parse(text, settings["file"])
    if not settings["whole"]:
        tree.body = [node for node in tree.body if isinstance(node, KEPT)]
    module = ModuleType(settings["name"])
    module.__file__ = settings["file"]
    sys.modules[module.__name__] = module
    exec(compile(tree, settings["file"], "exec", dont_inherit=True), module.__dict__)
    return module


def answer(request: dict[str, Any], module: ModuleType, functions: dict[int, Any]) -> dict[str, Any]:
    """The result of a call, and the arguments that it has changed: {"result": …, "changed": [[place, array], …]}"""
    arguments = decoded(request["arguments"], functions.get, trusted=True)
    options = decoded(request["options"], functions.get, trusted=True)
    f = functions[request["number"]] if "number" in request else getattr(module, request["name"])
    before = [one.copy() if isinstance(one, np.ndarray) else None for one in arguments]
    result = f(*arguments, **options)
    changed = [[place, encoded(one)] for place, one in enumerate(arguments)
               if before[place] is not None and not np.array_equal(one, before[place], equal_nan=one.dtype.kind in "fc")]
    return {"result": encoded(result, functions), "changed": changed}      # fmt: skip


def where(error: BaseException, file: str) -> dict[str, str]:
    """{"error": what was raised, and in which line of the student's file}"""
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == file]
    line = f"line {lines[-1]}: " if lines else f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
    return {"error": f"{line}{type(error).__name__}: {error}"[:500]}


def main() -> None:
    settings: Settings = json.loads(sys.argv[1])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):                             # what the student's code reads and prints
        os.dup2(nowhere, stream)
    sys.path[:0] = settings["path"]
    exec(settings["before"], {})                         # imports that need more than the student's code may do
    with open(settings["file"], encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    limit(settings["memory"], settings["seconds"])
    guard(settings["readable"], settings["hidden"], settings["scratch"], settings["modules"])
    functions: dict[int, Any] = {}
    try:
        module = loaded(text, settings)
        send(answers, {"ready": True})
    except BaseException as error:
        send(answers, where(error, settings["file"]))
        return
    while True:
        try:
            request = receive(requests)
        except EOFError:
            return
        try:
            send(answers, answer(request, module, functions))
        except BaseException as error:                   # sys.exit, too
            send(answers, where(error, settings["file"]))


if __name__ == "__main__":
    main()
