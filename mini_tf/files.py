"""Files that are never half-written, and folders to which one process at a time writes."""

import errno
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mini_tf.errors import UserError

PathLike = str | os.PathLike[str]    # as in mini_tf.types, which loads NumPy
STANDARD = "-"                       # as the name of a file: standard output, or standard input
LOCK = ".lock"
MOST = 500_000_000                   # bytes: longer texts are not read
PART = ".part-"                      # begins the name of a file that is being written
_locked: set[Path] = set()           # the folders that this process has locked


class NotWritten(UserError):
    """A file could not be written: the disk is full, read-only, or gone."""


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; if the block succeeds, the file there replaces `path`.

    with replacing("run/curves.png") as temporary:
        figure.savefig(temporary)

    A reader sees the old file or the new one, never part of one, even after a power cut: the file is flushed to the
    disk before it gets its name, and then the folder with the name. If the block raises, or the process is
    interrupted, the temporary file is removed and `path` stays as it was; a process that is killed leaves it behind,
    see `sweep`. The suffix is kept, because many libraries choose the format by it.
    Of a link, the file that it leads to is replaced. A device, a pipe, and standard output, which is "-" or
    /dev/stdout, are not replaced: they get what was written once the block has succeeded.
    Raises NotWritten for an OSError inside the block, and if `path` is a folder.
    """
    path = Path(path)
    if is_stream(path):
        with _passing_on(path) as temporary:
            yield temporary
        return
    try:
        path = Path(os.path.realpath(path))
        if path.is_dir():
            raise NotWritten(f"{path} cannot be written: it is a folder, expected a file or a new name")
        gone = [folder for folder in path.parents if folder in _locked and not folder.exists()]
        if gone:                                         # its disk, perhaps: it is not recreated
            raise NotWritten(f"{path} cannot be written: the folder {gone[0]} has vanished")
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


def write_text(path: PathLike, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all. Raises NotWritten."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read_text(path: PathLike, advice: str = "the run is damaged: train again") -> str:
    """The UTF-8 text of a run's file. Raises UserError if it cannot be read or is too long, and for a pipe.

    advice: how the error's sentence ends
    """
    try:
        check_readable(path)
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"{path} cannot be read ({reason}); {advice}")


def check_readable(path: PathLike) -> None:
    """Raises ValueError, which says why, for a pipe or a folder, and for a file that is too long; and OSError."""
    if (kind := kind_of(path)) != "a file":
        raise ValueError(f"it is {kind}, expected a file")
    if (size := os.stat(path).st_size) > MOST:
        raise ValueError(f"it has {size:,} bytes, expected at most {MOST:,}")


def is_stream(path: PathLike) -> bool:
    """True for what is written to and not replaced: standard output, a device, a pipe"""
    neither = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    return is_standard_output(path) or neither


def is_standard_output(path: PathLike) -> bool:
    """True for "-" and /dev/stdout"""
    return str(path) in (STANDARD, "/dev/stdout")


@contextmanager
def _passing_on(stream):
    """Yield a temporary path; if the block succeeds, what is written there goes to the stream."""
    try:
        with tempfile.TemporaryDirectory(prefix="mini-tf-") as folder:
            temporary = Path(folder) / f"out{stream.suffix}"
            temporary.touch()
            yield temporary
            data = temporary.read_bytes()
        if is_standard_output(stream):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
        else:
            with open(stream, "wb") as file:
                file.write(data)
    except OSError as error:
        name = "standard output" if is_standard_output(stream) else stream
        raise NotWritten(f"{name} cannot be written: {error.strerror or error}") from error


def kind_of(path: PathLike) -> str:
    """What is at the path: "a folder", "a pipe", "a socket", "a device", "a file"."""
    mode = Path(path).stat().st_mode
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket", stat.S_ISREG: "a file"}
    return next((name for is_it, name in kinds.items() if is_it(mode)), "a device")


class FolderLock:
    """A lock on a folder: until .release(), or the end of this process, no other process gets one.

    A killed process holds nothing: the operating system releases its lock, and the file .lock that stays means nothing.
    If the folder vanishes it is not recreated: `replacing` raises NotWritten for a file in it.
    Raises UserError when another process holds the lock, and NotWritten when the folder cannot be written to.
    """

    def __init__(self, folder: PathLike):
        self.folder = Path(os.path.realpath(folder))
        self.path = self.folder / LOCK
        try:
            self.handle = self._open_locked()
            os.truncate(self.handle, 0)
            os.write(self.handle, str(os.getpid()).encode())
        except OSError as error:
            raise NotWritten(f"{folder} cannot be written to: {error.strerror or error}") from error
        _locked.add(self.folder)

    def _open_locked(self):
        while True:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            if not _lock(handle):
                who = os.read(handle, 20).decode(errors="replace") if os.name == "posix" else ""
                os.close(handle)
                which = f" (process {who})" if who.isdecimal() else ""
                raise UserError(f"another process{which} is writing to {self.folder}; wait until it is done, or choose "
                                "another folder")  # fmt: skip
            if self.path.exists() and os.path.samestat(os.fstat(handle), self.path.stat()):
                return handle
            os.close(handle)                             # the file of a lock that has been released, and deleted

    def release(self) -> None:
        """Release the lock."""
        if self.folder not in _locked:
            return
        _locked.remove(self.folder)
        if os.name == "posix":                           # elsewhere an open file cannot be deleted
            self.path.unlink(missing_ok=True)
        os.close(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


def _lock(handle):
    """Lock an open file; False if another process has locked it. Some network drives have no locks: True there."""
    try:
        if os.name == "posix":
            import fcntl  # which Windows lacks

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS):
            raise
    return True


def sweep(folder: PathLike) -> None:
    """Remove the temporary files of processes that were killed while writing; the folder's lock must be held."""
    for path in Path(folder).rglob(f"{PART}*"):
        path.unlink(missing_ok=True)


def is_ours(path: Path) -> bool:
    """True for a lock, a file being written, and what a file browser leaves: not the user's."""
    return path.name in (LOCK, ".DS_Store", "Thumbs.db") or path.name.startswith(PART)


def _flush(path):
    """Wait until the file, or the folder with its names, is on the disk."""
    writable = os.O_RDWR if os.name == "nt" else os.O_RDONLY         # Windows flushes only what may be written to
    handle = os.open(path, writable)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
