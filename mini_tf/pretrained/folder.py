"""A model's folder in Hugging Face's format: its sizes, and its arrays in one file or several.

    config.json                      sizes and options; "model_type" names the architecture
    model.safetensors                all arrays; if they are in several files (shards), instead
    model.safetensors.index.json     {"weight_map": {an array's name: the file that has it}}

A .safetensors file begins with the length of its header (8 bytes) and the header, JSON with each array's type, shape
and place. Arrays are float32, float16 or bfloat16, which is the upper half of float32's bits.
Source: github.com/huggingface/safetensors, "Format"
"""

import json
from collections.abc import Collection, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from mini_tf.checks import check_whole, shown
from mini_tf.errors import UserError
from mini_tf.files import kind_of, read_text, write_text
from mini_tf.models.saved import SavedModel
from mini_tf.training.archive import write_archive
from mini_tf.types import Array, PathLike

import numpy as np
from safetensors import SafetensorError, safe_open

PREFIXES = {"gpt2": "transformer.", "llama": "model."}   # of arrays' names; a model saved without its readout has none
DTYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}     # NumPy's type with the same bits
ADVICE = "expected a model's folder as Hugging Face has it, with config.json and model.safetensors"


class Place(NamedTuple):
    """Where an array is: its file, its first byte there; its type, such as "BF16", and its shape"""

    path: Path
    start: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.shape)


def read_config(folder: PathLike, *architectures: str) -> dict[str, Any]:
    """What config.json says. Its "model_type" has to be one of these architectures, by default of those in PREFIXES.

    Raises UserError if there is no such file, and for another architecture.
    """
    config = _json_of(Path(folder) / "config.json")
    if (found := config.get("model_type")) not in (known := architectures or tuple(PREFIXES)):
        raise UserError(f"{folder} has a model of the architecture {shown(found)}, expected {' or '.join(known)}")
    return config


class Arrays(Mapping[str, Array]):
    """{name: array} of a folder, without the prefix of the names; each array is read when asked for, as float32

    places    {name: Place}, known without reading an array
    Raises UserError, which names the file, if one is missing, cut off, or not a .safetensors file; and if an array that
    is asked for is of another type or has numbers that are not finite.
    """

    def __init__(self, folder: PathLike, prefix: str = ""):
        self.folder = Path(folder)
        self.places: dict[str, Place] = {
            name.removeprefix(prefix): place
            for path in self._files()
            for name, place in _places_in(path).items()
        }

    def _files(self) -> list[Path]:
        whole, index = self.folder / "model.safetensors", self.folder / "model.safetensors.index.json"
        if whole.exists() or not index.exists():
            return [whole]
        files = _json_of(index).get("weight_map")
        if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
            raise UserError(f'{index} has no "weight_map" {{array: file}}; {ADVICE}')
        return [self.folder / name for name in sorted(set(files.values()))]

    def __getitem__(self, name: str) -> Array:
        path, start, dtype, shape = self.places[name]
        if dtype not in DTYPES:
            raise UserError(f"{path}: the array {name} is of type {dtype}, expected {', '.join(DTYPES)}")
        x = np.fromfile(path, DTYPES[dtype], prod(shape), offset=start).reshape(shape)
        x = (x.astype("<u4") << 16).view("<f4") if dtype == "BF16" else x.astype(np.float32, copy=False)
        if not np.isfinite(x).all():
            raise UserError(f"{path}: the array {name} has numbers that are not finite; get another copy")
        return x

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def of_shape(self, name: str, shape: tuple[int, ...], padded: bool = False) -> Array:
        """The array of that name. Raises UserError unless it is there and has this shape; if `padded`, it may have more
        rows, which are left out.
        """
        if name not in self.places:
            raise UserError(f"{self.folder} has no array {name}, which its config.json asks for; copy all its files")
        found = self.places[name].shape
        if found != shape and not (padded and found[1:] == shape[1:] and found[:1] > shape[:1]):
            raise UserError(f"{self.folder}: the array {name} has shape {found}, by its config.json it has {shape}")
        return self[name][: shape[0]]

    def check_fits(self, model_type: type[SavedModel], options: dict[str, Any], c: int, n: int) -> None:
        """Raises UserError if a model with these options is too large for the arrays."""
        try:
            model_type.check_fits(options, self.places, c=c, n=n)  # type: ignore[arg-type]  # a Place has a size, too
        except UserError as error:
            raise UserError(f"{self.folder}: {error}") from None

    def check_no_others(self, names: Collection[str]) -> None:
        """Raises UserError for an array that is not among these."""
        if (odd := next((name for name in self if name not in names), None)) is not None:
            raise UserError(f"{self.folder} has an array {odd}, which a model of its config.json does not have")


def write_folder(folder: PathLike, config: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write config.json and model.safetensors. Raises NotWritten."""
    write_archive(Path(folder) / "model.safetensors", "export", arrays, {"model": config["model_type"]})
    write_text(Path(folder) / "config.json", json.dumps(config, indent=2) + "\n")


def check_sizes(folder: PathLike, **sizes: Any) -> None:
    """Raises UserError for the first size of a config.json that is not a whole number of at least 1."""
    try:
        check_whole(**sizes)
    except UserError as error:
        raise UserError(f"{folder}: by its config.json {error}") from None


def _json_of(path: Path) -> dict[str, Any]:
    text = read_text(path, ADVICE)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({error}); {ADVICE}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} has {shown(found)} in it, expected a JSON object; {ADVICE}")
    return found


def _places_in(path: Path) -> dict[str, Place]:
    """{name: Place} of the arrays in a .safetensors file."""
    try:
        if (kind := kind_of(path)) != "a file":
            raise UserError(f"{path} is {kind}, expected a .safetensors file")
        with safe_open(path, framework="numpy"):         # compares the header with the file
            pass
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}); {ADVICE}") from None
    except SafetensorError as error:
        raise UserError(f"{path} is cut off, or not a .safetensors file ({error}); copy it again") from None
    return {
        name: Place(path, 8 + length + entry["data_offsets"][0], entry["dtype"], tuple(entry["shape"]))
        for name, entry in header.items()
        if name != "__metadata__"
    }
