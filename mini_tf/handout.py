"""The labs and exercises that come with mini_tf: next to it in a checkout, inside it where pip installed a wheel."""

import importlib
import re
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from posixpath import dirname, join, normpath
from types import ModuleType

from mini_tf.errors import UserError
from mini_tf.files import PathLike, kind_of, replacing
from mini_tf.terminal import quoted

LEFT_OUT = {"figures", "pages", "__pycache__", ".ipynb_checkpoints"}      # made by running them
LINK = re.compile(r"(?<![\w)\]])\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")                # in Markdown, to a file
COMMAND = re.compile(r"^([# ]*(?:mini-tf \w+|(?:mpiexec -n 2 )?python) )labs/([\w/]+\.py)", re.M)      # on its own line


def labs_folder() -> Path:
    """Where the labs are. Raises UserError if they are not there."""
    package = Path(__file__).parent
    labs = next((folder for folder in (package / "labs", package.parent / "labs") if folder.is_dir()), None)
    if labs is None:
        raise UserError("this installation of mini_tf came without its labs; install it with pip from a wheel, or take "
                        "them from the repository")  # fmt: skip
    return labs


@contextmanager
def student_module() -> Iterator[ModuleType]:
    """The module labs/student.py, which knows the blanks; beside it are the checks of what is filled in"""
    folder = str(labs_folder())
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("student")
    finally:
        sys.path.remove(folder)


def lab_files() -> dict[str, Path]:
    """{name inside labs/: file} of everything that belongs to the labs. Raises UserError if they are not there."""
    labs = labs_folder()
    files = {path.relative_to(labs): path for path in sorted(labs.rglob("*")) if path.is_file()}
    return {name.as_posix(): path for name, path in files.items()
            if not LEFT_OUT & {*name.parts} and path.suffix != ".ipynb"}  # fmt: skip


def hand_out(folder: PathLike, place: PathLike | None = None) -> int:
    """Copy the labs into a new or an empty folder. Returns how many files there are.

    place: the folder as the commands in its files name it, "" for commands that are typed inside; None: as given here

    Raises UserError if something is in the folder already, so that nobody's answers are overwritten, and NotWritten.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is {kind_of(folder)}, expected a new or an empty folder")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty, and what is in it might be your own work: name a new folder")
    files = lab_files()
    for name, path in files.items():
        data = path.read_bytes()
        if path.suffix in (".md", ".py"):
            text = with_commands_for(folder if place is None else Path(place), path.read_text(encoding="utf-8"))
            data = (with_working_links(text, name, files) if path.suffix == ".md" else text).encode("utf-8")
        with replacing(folder / name) as temporary:
            temporary.write_bytes(data)
    return len(files)


def with_commands_for(place: Path, text: str) -> str:
    """The text of a lab, an exercise or a page, with the commands in it for the files in another folder than labs/"""
    return COMMAND.sub(lambda command: command[1] + quoted((place / command[2]).as_posix()), text)


def with_working_links(text: str, name: str, files: Container[str]) -> str:
    """The Markdown of labs/NAME, for a folder that has only these files of labs/.

    A link to a lab's rendered page leads to the lab itself; one to any other file that is missing becomes plain text.
    """

    def working(link):
        target = normpath(join(dirname(name), link[2]))
        lab = re.sub(r"^pages/(.*)\.md$", r"\1.py", target)
        return link[0] if target in files else f"[{link[1]}]({lab})" if lab in files else link[1]

    return LINK.sub(working, text)
