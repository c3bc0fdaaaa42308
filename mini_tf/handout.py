"""The labs and exercises, as they come with mini_tf: beside it in a checkout, with its wheel where it is installed."""

import shutil
from importlib import metadata
from pathlib import Path, PurePosixPath

from mini_tf.errors import UserError
from mini_tf.files import PathLike, kind_of, replacing

PLACE = PurePosixPath("share/mini_tf/labs")              # in the wheel: see data_files in setup.cfg
LEFT_OUT = ("figures", "pages", "__pycache__", ".ipynb_checkpoints")      # what running them makes


def lab_files() -> dict[str, Path]:
    """{name inside labs/: file} of everything that belongs to the labs. Raises UserError if they are not there."""
    checkout = Path(__file__).parent.parent / "labs"
    if checkout.is_dir():
        found = {path.relative_to(checkout).as_posix(): path for path in checkout.rglob("*") if path.is_file()}
    else:
        found = dict(_installed())
    found = {name: path for name, path in sorted(found.items())
             if not set(PurePosixPath(name).parts) & {*LEFT_OUT} and path.suffix != ".ipynb"}  # fmt: skip
    if not found:
        raise UserError("this installation of mini_tf came without its labs; install it with pip from a wheel, or take "
                        "them from the repository")  # fmt: skip
    return found


def _installed():
    """(name inside labs/, file) of what pip installed beside the package."""
    try:
        files = metadata.files("mini-tf") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        parts = PurePosixPath(file.as_posix()).parts
        for start in range(len(parts) - len(PLACE.parts)):
            if parts[start : start + len(PLACE.parts)] == PLACE.parts:
                yield "/".join(parts[start + len(PLACE.parts) :]), Path(file.locate())


def hand_out(folder: PathLike) -> int:
    """Copy the labs into a new or an empty folder. Returns how many files there are.

    Raises UserError if something is in the folder already, so that nobody's answers are overwritten, and NotWritten.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is {kind_of(folder)}, expected a new or an empty folder")
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty, and what is in it might be your own work: name a new folder")
    files = lab_files()
    for name, path in files.items():
        with replacing(folder / name) as temporary:
            shutil.copyfile(path, temporary)
    return len(files)
