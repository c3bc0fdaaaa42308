"""What the machine refuses, memory or a request to the operating system, said in one sentence."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mini_tf.errors import UserError

NUMBERS = "NUMBA_NUM_THREADS", "SOURCE_DATE_EPOCH"       # environment variables, of Numba and of Matplotlib


def check_environment() -> None:
    """Raises UserError for an environment variable that has to be a number and is not."""
    for name in NUMBERS:
        value = os.environ.get(name, "").strip()
        if value and not value.lstrip("-").isdecimal():
            raise UserError(f"the environment variable {name} is {value!r}, expected a whole number: set one, or "
                            f"unset {name}")  # fmt: skip


class OutOfMemory(UserError):
    """The memory of the machine, or of its GPU, is full."""


@contextmanager
def memory_said() -> Iterator[None]:
    """Inside the block, a full memory raises OutOfMemory, which says what to try."""
    try:
        yield
    except MemoryError as error:
        on_gpu = type(error).__module__.partition(".")[0] == "cupy"
        whose, more = ("GPU's memory", ", a higher --gpu-memory if one was given, or --device cpu") if on_gpu else (
            "memory", " or smaller sizes")  # fmt: skip
        raise OutOfMemory(f"the {whose} is full: {str(error).rstrip('.') or 'there is no more'}; expected room for the "
                          "model, its gradients, Adam's two means and a batch. Try a smaller batch "
                          f"(mini-tf train --set batch=…){more}") from error  # fmt: skip


@contextmanager
def refusals_said() -> Iterator[None]:
    """Inside the block, what the operating system refuses raises UserError, such as a name that is too long."""
    try:
        with memory_said():
            yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename is None:
            leave_standard_output()                      # its disk may be the one that is full
            gone = "; go to a working directory that exists" if error.errno == errno.ENOENT else ""
            raise UserError(f"the operating system refuses: {reason}{gone}") from error
        name = str(error.filename)
        shown = name if len(name) < 200 else f"{name[:80]}…{name[-40:]} ({len(name):,} characters)"
        raise UserError(f"{shown} cannot be used: {reason}; give another name") from error


def leave_standard_output() -> None:
    """Discards what is still to be written there, after a failure: the interpreter would fail on it as it exits."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
