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
PART = ".part-"                      # begins the name of a file that is being written
_owned = {}                          # folder -> its identity, of the folders that this process has locked


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
    Of a link, the file that it leads to is replaced. A device, a pipe, an open file such as /dev/stdout, and "-",
    which is standard output, are not replaced: they get what was written once the block has succeeded.
    Raises NotWritten for an OSError inside the block, and if `path` is a folder or a socket.
    """
    path = Path(path)
    if is_stream(path):
        with _passing_on(path) as temporary:
            yield temporary
        return
    try:
        path = Path(os.path.realpath(path))
        if path.is_symlink():                            # still
            raise NotWritten(f"{path} cannot be written: it is a link that leads to itself")
        if path.exists() and not path.is_file():
            raise NotWritten(f"{path} cannot be written: it is {kind_of(path)}, expected a file or a new name")
        _make(path.parent)
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
        gone = [folder for folder in path.parents if not _is_there(folder)]
        why = f"the folder {gone[0]} has vanished" if gone else error.strerror or error
        raise NotWritten(f"{path} cannot be written: {why}") from error


def write_text(path: PathLike, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all. Raises NotWritten."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def is_stream(path: PathLike) -> bool:
    """True for what is written to and not replaced: "-", a device, a pipe, an open file's name such as /dev/stdout."""
    path = Path(path)
    if str(path) == STANDARD or _open_file(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):                        # nothing is there, or its name cannot be a name
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode)


def is_standard_output(path: PathLike) -> bool:
    """True for "-", for /dev/stdout, and for links to it."""
    return str(path) == STANDARD or _open_file(Path(path)) == 1


def _open_file(path):
    """The number of this process's open file that /dev/stdout, /proc/self/fd/1, or a link to it leads to; else None."""
    for _ in range(40):                                  # a link may lead to itself
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(path.name) if path.name.isdecimal() else None
        try:
            path = path.parent / os.readlink(path)
        except (OSError, ValueError):                    # no link
            return None
    return None


@contextmanager
def _passing_on(stream):
    """Yield a temporary path; if the block succeeds, what is written there goes to the stream."""
    try:
        with tempfile.TemporaryDirectory(prefix="mini-tf-") as folder:
            temporary = Path(folder) / f"out{stream.suffix}"
            temporary.touch()
            yield temporary
            data = temporary.read_bytes()
        sys.stdout.flush()
        number = _open_file(stream)
        if str(stream) == STANDARD:
            _print_bytes(data)
        else:
            with open(stream if number is None else os.dup(number), "wb") as file:
                file.write(data)
    except OSError as error:
        name = "standard output" if is_standard_output(stream) else stream
        raise NotWritten(f"{name} cannot be written: {error.strerror or error}") from error


def _print_bytes(data):
    """Write to standard output, whatever stands in for it: a notebook's takes text only."""
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.buffer.write(data)
    else:
        sys.stdout.write(data.decode("utf-8", errors="replace"))
    sys.stdout.flush()


def kind_of(path: PathLike) -> str:
    """What is at the path: "a folder", "a pipe", "a socket", "a device", "a file"."""
    mode = Path(path).stat().st_mode
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket", stat.S_ISREG: "a file"}
    return next((name for is_it, name in kinds.items() if is_it(mode)), "a device")


class own:
    """A lock on a folder: until .release(), or the end of this process, nobody else gets one.

    A killed process holds nothing: the operating system releases its lock, and the file .lock that stays means nothing.
    Nor is the folder made anew if it vanishes: `replacing` raises NotWritten for a file in it.
    Raises UserError when somebody else holds the lock, and NotWritten when the folder cannot be written to.
    """

    def __init__(self, folder: PathLike):
        self.folder = Path(os.path.realpath(folder))
        self.path = self.folder / LOCK
        try:
            self.handle = self._locked()
            os.truncate(self.handle, 0)
            os.write(self.handle, str(os.getpid()).encode())
        except OSError as error:
            raise NotWritten(f"{folder} cannot be written to: {error.strerror or error}") from error
        _owned[self.folder] = _identity(self.folder)

    def _locked(self):
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
            os.close(handle)                             # of a lock that was released, and deleted, meanwhile

    def release(self) -> None:
        """Let others have the folder."""
        if _owned.pop(self.folder, None) is None:
            return
        if os.name == "posix":                           # elsewhere an open file cannot be deleted
            self.path.unlink(missing_ok=True)
        os.close(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


def _lock(handle):
    """Lock an open file, for this process; False if another one has locked it. Some network drives have no locks: there
    nobody is kept out.
    """
    try:
        if os.name == "posix":
            import fcntl

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
    """Remove what processes that were killed while they wrote left in the folder; its lock must be held."""
    for path in Path(folder).rglob(f"{PART}*"):
        path.unlink(missing_ok=True)


def is_ours(path: Path) -> bool:
    """True for what is not the user's: a lock, a file being written, or what a file browser leaves."""
    return path.name in (LOCK, ".DS_Store", "Thumbs.db") or path.name.startswith(PART)


def _make(folder):
    """Make the folder, and those that it is in, but none that is owned: if that is not there, its disk is gone."""
    if folder in _owned:
        if not _is_there(folder):
            raise FileNotFoundError
        return
    if folder.parent != folder:
        _make(folder.parent)
    if folder.exists() and not folder.is_dir():
        raise NotWritten(f"{folder} is {kind_of(folder)}, expected a folder")
    folder.mkdir(exist_ok=True)


def _is_there(folder):
    """False if the folder is owned, and vanished, or if another one is in its place."""
    return folder not in _owned or _identity(folder) == _owned[folder]


def _identity(folder):
    """What tells this folder from another one that is put in its place; None if there is none."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _flush(path):
    """Wait until the disk has it."""
    writable = os.O_RDWR if os.name == "nt" else os.O_RDONLY         # Windows flushes only what may be written to
    handle = os.open(path, writable)
    try:
        os.fsync(handle)
        if sys.platform == "darwin":                     # where fsync stops at the disk's own memory
            _flush_the_disk(handle)
    finally:
        os.close(handle)


def _flush_the_disk(handle):
    import fcntl

    try:
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    except OSError as error:                             # not every file system has it
        if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
            raise
