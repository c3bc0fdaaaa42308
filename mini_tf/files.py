"""Files that are never half-written, and folders to which one process at a time writes."""

import os
import secrets
import stat
from contextlib import contextmanager
from pathlib import Path

from mini_tf.errors import UserError

from filelock import FileLock, Timeout

LOCK = ".lock"
PART = ".part-"                      # begins the name of a file that is being written


class NotWritten(UserError):
    """A file could not be written: the disk is full, read-only, or gone."""


@contextmanager
def replacing(path):
    """Yield a temporary path beside `path`; if the block succeeds, the file there replaces `path`.

    with replacing("run/curves.png") as temporary:
        figure.savefig(temporary)

    A reader sees the old file or the new one, never part of one, even after a power cut: the file is flushed to the
    disk before it gets its name, and then the folder with the name. If the block raises, or the process is
    interrupted, the temporary file is removed and `path` stays as it was; a process that is killed leaves it behind,
    see `sweep`. The suffix is kept, because many libraries choose the format by it.
    Raises NotWritten for an OSError inside the block, and if `path` is a folder, a device or a pipe.
    """
    path = Path(path)
    try:
        path = Path(os.path.realpath(path))              # of a link, replace the file it leads to
        if path.exists() and not path.is_file():
            raise NotWritten(f"{path} cannot be written: it is {kind_of(path)}, expected a file or a new name")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{PART}{secrets.token_hex(6)}{path.suffix}")
        try:
            temporary.touch(exist_ok=False)
            yield temporary
            _flush(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if os.name == "posix":                           # elsewhere folders cannot be flushed
            _flush(path.parent)
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror or error}") from error


def write_text(path, text):
    """Write `text` to `path` as UTF-8, whole or not at all. Raises NotWritten."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def kind_of(path):
    """What is at the path: "a folder", "a pipe", "a socket", "a device", "a file"."""
    mode = Path(path).stat().st_mode
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket", stat.S_ISREG: "a file"}
    return next((name for is_it, name in kinds.items() if is_it(mode)), "a device")


def own(folder):
    """A lock on the folder: until .release(), or the end of this process, nobody else gets one.

    A killed process holds nothing: the operating system releases its lock, and the file .lock that stays means nothing.
    Raises UserError when somebody else holds the lock, and NotWritten when the folder cannot be written to.
    """
    lock = FileLock(Path(folder) / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise UserError(f"another process is writing to {folder}; wait until it is done, or choose another folder"
                        ) from None  # fmt: skip
    except NotImplementedError:                          # some network drives have no locks
        return lock
    except OSError as error:
        raise NotWritten(f"{folder} cannot be written to: {error.strerror or error}") from error
    return lock


def sweep(folder):
    """Remove what processes that were killed while they wrote left in the folder; its lock must be held."""
    for path in Path(folder).rglob(f"{PART}*"):
        path.unlink(missing_ok=True)


def is_ours(path):
    """True for what is not the user's: a lock, a file being written, or what a file browser leaves."""
    return path.name in (LOCK, ".DS_Store", "Thumbs.db") or path.name.startswith(PART)


def _flush(path):
    """Wait until the disk has it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
