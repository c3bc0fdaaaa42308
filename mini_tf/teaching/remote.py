"""A student's functions in a process of their own, to be called like functions of this one.

    with Remote(path, exercise=True) as student:
        y, backward = student["softmax"](z)              # z goes there, y comes back; backward is a function there
        dz = backward(dy)

What comes back are numbers, texts, arrays and lists of these, whatever the other process does. It is given SECONDS for
each answer and MEMORY bytes; where the system has no limits of memory (Windows), only the seconds.
"""

import ast
import json
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mini_tf.handout import labs_folder
from mini_tf.teaching import worker

import numpy as np

SECONDS, IN_ALL, MEMORY = 20.0, 120, 3 << 30             # of an answer; of the processor; bytes
PACKAGE = Path(__file__).parent.parent
SHARED = "_common.py", "_expect.py", "_drawing"          # of the labs' folder: what all labs use
FORBIDDEN = {"ctypes", "_ctypes", "subprocess", "_posixsubprocess", "socket", "multiprocessing", "importlib", "inspect"}
EXERCISE_MODULES = ["numpy", "math", *sorted(sys.stdlib_module_names - FORBIDDEN)]


class Failed(Exception):
    """What the student's code did instead of answering, in words for the student."""


class Remote:
    """The functions of a student's file. exercise: it may import NumPy and Python's library only, and all of it runs;
    else it is a lab, of which the imports and definitions run. Raises Failed, also from each call.
    """

    def __init__(self, path: Path, exercise: bool, seconds: float = SECONDS):
        self.path, self.exercise, self.seconds = path.resolve(), exercise, seconds

    def __enter__(self) -> Self:
        self.scratch = tempfile.TemporaryDirectory()
        labs = labs_folder()
        readable = [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"),
                    str(Path(np.__file__).parents[1]), str(self.path), "/dev/null", "/dev/urandom"]      # fmt: skip
        helpers = [str(labs / name) for name in SHARED]
        hidden = [str(PACKAGE / "labs"), str(labs), str(PACKAGE / "teaching"), str(PACKAGE / "gradcheck")]
        if self.exercise:
            hidden.append(str(PACKAGE))
        else:
            readable += [str(PACKAGE), *helpers]
            hidden = [str(path) for path in (*labs.glob("[01]*.py"), labs / "exercises", labs / "_blanks", labs / "pages")]
        settings = {
            "file": str(self.path), "name": f"handed_in_{self.path.stem}", "whole": self.exercise,
            "path": [] if self.exercise else [str(labs), str(PACKAGE.parent)], "readable": readable, "hidden": hidden,
            "scratch": self.scratch.name, "modules": EXERCISE_MODULES if self.exercise else None,
            "memory": MEMORY, "seconds": IN_ALL, "before": "" if self.exercise else _imports(labs / self.path.name),
        }  # fmt: skip
        environment = {"TMPDIR": self.scratch.name, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
                       "NUMBA_DISABLE_JIT": "1", "MPLBACKEND": "agg", "HOME": self.scratch.name}         # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-I", worker.__file__, json.dumps(settings)], cwd=self.scratch.name, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self._answer()
        except Failed:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()
        self.scratch.cleanup()

    def __getitem__(self, name: str) -> "RemoteFunction":
        return RemoteFunction(self, name, {"name": name})

    def call(self, function: dict[str, Any], arguments: tuple, options: dict[str, Any]) -> Any:
        """The result of a call there; arrays that it has changed in place are changed here, too."""
        request = function | {"arguments": worker.encoded(arguments, trusted=True), "options": worker.encoded(options, trusted=True)}
        try:
            worker.send(self.process.stdin, request)
        except OSError:
            raise Failed("its process has ended") from None
        answer = self._answer()
        try:
            for place, array in answer["changed"]:
                arguments[place][...] = worker.decoded(array)
            return worker.decoded(answer["result"], lambda number: RemoteFunction(self, "backward", {"number": number}))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise Failed(f"its answer cannot be read: {error}") from None

    def _answer(self) -> dict[str, Any]:
        timer = threading.Timer(self.seconds, self.process.kill)
        timer.start()
        try:
            answer = worker.receive(self.process.stdout)
        except EOFError:
            too_long = not timer.is_alive()
            raise Failed(f"it took more than {self.seconds:g} seconds" if too_long else
                         "its process ended: by exit, out of memory, or by a crash") from None           # fmt: skip
        except ValueError as error:
            raise Failed(f"its answer cannot be read: {error}") from None
        finally:
            timer.cancel()
        if not isinstance(answer, dict) or "error" in answer:
            raise Failed(str(answer.get("error")) if isinstance(answer, dict) else "its answer cannot be read")
        return answer


class RemoteFunction:
    """A function of the other process."""

    def __init__(self, remote: Remote, name: str, function: dict[str, Any]):
        self.remote, self.__name__, self.function = remote, name, function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.remote.call(self.function, arguments, options)


def _imports(lab: Path) -> str:
    """The import lines of the lab itself, which run before the student's file does"""
    tree = ast.parse(lab.read_text(encoding="utf-8"))
    return "\n".join(ast.unparse(node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
