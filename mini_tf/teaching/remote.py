"""A student's functions in a process of their own, to be called like functions of this one.

    with Remote(path, exercise=True) as student:
        y, backward = student["softmax"](z)              # z goes there, y comes back; backward is a function there
        dz = backward(dy)
"""

import ast
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partialmethod
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

from mini_tf.handout import labs_folder
from mini_tf.teaching import worker

import numpy as np

SECONDS, IN_ALL, MEMORY = 20.0, 120, 3 << 30             # of an answer; of the processor; bytes
PACKAGE = Path(__file__).parent.parent
SHARED = "_common.py", "_expect.py", "_drawing"          # of the labs' folder: what all labs use
FOR_EXERCISES = (
    "import array, bisect, cmath, collections, contextlib, copy, dataclasses, datetime, decimal, enum, fractions, "
    "functools, heapq, itertools, json, math, numbers, operator, pathlib, pprint, random, re, statistics, string, "
    "tempfile, textwrap, time, typing, numpy.fft, numpy.linalg, numpy.polynomial, numpy.random, numpy.testing"
)
LARGEST = 1 << 20        # bytes of a file


class Failed(Exception):
    """What the student's code did instead of answering, in words for the student."""


class Remote:
    """The functions of a student's file, an exercise or a lab; of a lab the definitions run. Calls may raise Failed."""

    def __init__(self, path: Path, exercise: bool, seconds: float = SECONDS):
        self.path, self.exercise, self.seconds = path.absolute(), exercise, seconds
        self.until = time.monotonic() + 15 * seconds     # for all answers together

    def __enter__(self) -> Self:
        if self.path.is_symlink() or not self.path.is_file() or self.path.stat().st_size > LARGEST:
            raise Failed(f"{self.path.name} is no plain file of at most {LARGEST:,} bytes")
        self.scratch = tempfile.TemporaryDirectory()
        labs = labs_folder()
        readable = [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"),
                    str(Path(np.__file__).parents[1]), str(self.path), "/dev/null", "/dev/urandom"]      # fmt: skip
        hidden = [str(PACKAGE), str(labs)]
        if not self.exercise:
            readable += [str(PACKAGE), *(str(labs / name) for name in SHARED)]
            hidden = [str(path) for path in (*labs.glob("[01]*.py"), labs / "exercises", labs / "_blanks")]
        settings = {
            "file": str(self.path), "name": f"handed_in_{self.path.stem}", "whole": self.exercise,
            "path": [] if self.exercise else [str(labs), str(PACKAGE.parent)], "readable": readable, "hidden": hidden,
            "scratch": self.scratch.name, "closed": self.exercise, "memory": MEMORY, "seconds": IN_ALL,
            "before": FOR_EXERCISES if self.exercise else _imports(labs / self.path.name),
        }  # fmt: skip
        self.command = [sys.executable, "-I", worker.__file__, json.dumps(settings)]
        self.environment = {"TMPDIR": self.scratch.name, "HOME": self.scratch.name, "MPLBACKEND": "agg",
                            **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_DISABLE_JIT"), "1")}
        self.processes: list[_Process] = []
        self.free_process().lock.release()               # so that it is known at once whether the file can be loaded
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self.processes:
            process.end()
        self.scratch.cleanup()

    def __getitem__(self, name: str) -> "There":
        return There(self, None, {"name": name, "attributes": []}, name)

    def free_process(self) -> "_Process":
        """A process that is not at work, for this thread: a new one if all are"""
        for process in self.processes:
            if process.lock.acquire(blocking=False):
                return process
        process = _Process(self)
        self.processes.append(process)
        return process


class _Process:
    """One process with the student's file, held by its lock (which a thread may take again) while it works."""

    def __init__(self, remote: Remote):
        self.seconds, self.lock, self.kept = remote.seconds, threading.RLock(), list[Any]()
        self.remote = remote
        self.lock.acquire()
        self.process = subprocess.Popen(
            remote.command, cwd=remote.scratch.name, env=remote.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.messages = worker.Messages(cast(BinaryIO, self.process.stdout), cast(BinaryIO, self.process.stdin))
        try:
            self.in_time(self.answer)
        except Failed:
            self.end()
            raise

    def end(self) -> None:
        """End it, and what it has started."""
        with suppress(OSError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        for stream in (self.messages.reading, self.messages.writing):
            with suppress(OSError):
                stream.close()
        self.process.wait()

    def in_time(self, work: Callable[[], Any]) -> Any:
        """What work() returns, all that is said in between included, or Failed after so many seconds"""
        seconds = min(self.seconds, self.remote.until - time.monotonic())
        timer = threading.Timer(max(seconds, 0), self.process.kill)
        timer.start()
        try:
            return work()
        except Failed:
            raise
        except Exception as error:                       # whatever it has written
            if not timer.is_alive():
                raise Failed(f"it took more than {self.seconds:g} seconds, or {15 * self.seconds:g} in all") from None
            ended = isinstance(error, (EOFError, OSError)) and "its process ended: an exit, out of memory, or a crash"
            raise Failed(ended or f"its answer cannot be read: {type(error).__name__}") from None
        finally:
            timer.cancel()

    def request(
        self, what: dict[str, Any], arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:  # fmt: skip
        """What it answers to a call, or without options about an attribute; arrays changed there are changed here."""
        if options is not None:
            what = what | {"arguments": worker.encoded(arguments, self.kept, pickled=True),
                           "options": worker.encoded(options, self.kept, pickled=True)}      # fmt: skip

        def exchange() -> Any:
            self.messages.send(what)
            answer = self.answer()
            for name, array in answer.get("changed", ()):
                (arguments[name] if isinstance(name, int) else (options or {})[name])[...] = self.read(array)
            return self.read(answer["result"])

        return self.in_time(exchange)

    def read(self, message: Any) -> Any:
        """The value of a message from there, in which no pickle is read"""
        return worker.decoded(message, self.kept, self.stand_in)

    def stand_in(self, number: int) -> "There":
        return There(self.remote, self, {"kept": int(number), "attributes": []}, "backward")

    def answer(self) -> dict[str, Any]:
        """Its next answer, once what it asks in between is answered"""
        while "ask" in (message := self.messages.receive()):
            self.messages.send(self._asked(message))
        if "error" in message:
            raise Failed(str(message["error"])[:500])
        return message

    def _asked(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a call of a function that it was given, or about an attribute of an object"""
        try:
            f, name = self.kept[message["ask"]], message["attribute"]
            if name.startswith("_") or (name and type(f).__module__.partition(".")[0] not in ("_blanks", "types")):
                raise AttributeError(f"{name} is not for students")
            arguments, options = self.read(message["arguments"]), self.read(message["options"])
            before = worker.copies(arguments, options)
            result = getattr(f, name) if name else f(*arguments, **options)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {"result": worker.encoded(result, self.kept, pickled=True), "changed": worker.changed(before)}


class There(worker.StandIn):
    """A function, a class or an object of the student's: calls, attributes and arithmetic happen in its process.

    process: the one that has it; None for a name of the file, which every process has;  right: the lab's own
    """

    right: Any = None

    def __init__(self, remote: Remote, process: _Process | None, what: dict[str, Any], name: str):
        self._remote, self._of, self._what, self.__name__ = remote, process, what, name
        self.number = what.get("kept", -1)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._request(self._what, arguments, options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or self._of is None:
            raise AttributeError(name)
        try:
            return self._request(self._what | {"attributes": [name]})
        except Failed as error:
            raise AttributeError(str(error)) from None

    def _request(self, *what: Any) -> Any:
        if self._of is not None:
            with self._of.lock:
                return self._of.request(*what)
        process = self._remote.free_process()            # which has taken its lock
        try:
            return process.request(*what)
        finally:
            process.lock.release()

    def _operation(self, name: str, *others: Any) -> Any:
        return There(self._remote, self._of, self._what | {"attributes": [name]}, name)(*others)

    @property
    def __globals__(self) -> "_Names":
        return _Names(self._remote)                      # as of a function: what else its file defines


class _Names(dict[str, There]):
    def __init__(self, remote: Remote):
        super().__init__()
        self.remote = remote

    def __missing__(self, name: str) -> There:
        return self.remote[name]


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow", "matmul", "neg"):
    setattr(There, f"__{_name}__", partialmethod(There._operation, f"__{_name}__"))


def _imports(lab: Path) -> str:
    """The import lines of the lab itself, which run before the student's file does"""
    tree = ast.parse(lab.read_text(encoding="utf-8"))
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
