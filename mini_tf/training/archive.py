"""Named arrays and facts about them in one file, which is read back whole or not at all.

The file is a .safetensors file, which other tools read, too:

    8 bytes     the length of the header
    header      JSON: each array's type, shape and place; and "__metadata__", which has
                    format          "pt": other tools ask for it, although nothing here is PyTorch's
                    mini_tf         JSON: {"kind", "version", …}, and the writer's facts
                    mini_tf_sha256  of the whole file, with 64 zeros in its own place
    arrays      one after the other, in C order

It is written here, because the library copies all arrays first, and orders the metadata at random; the library reads
it. No file is unpickled: reading one runs no code of it.
Source: github.com/huggingface/safetensors, "Format"
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mini_tf.backend import to_host
from mini_tf.errors import UserError
from mini_tf.files import kind_of, replacing
from mini_tf.types import Array, PathLike

import numpy as np
from safetensors import SafetensorError, safe_open

VERSION = 2                          # of the files' format
KINDS = {"model": "a model", "training": "the state of a training", "export": "a model exported for other programs"}
TYPES = {"f": "F", "i": "I", "u": "U"}                   # NumPy's kind -> safetensors' letter, before the bits
NO_DIGEST = "0" * 64
DIGEST = re.compile(rb'"mini_tf_sha256":"([0-9a-f]{64})"')
CHUNK = 1 << 20


def write_archive(path: PathLike, kind: str, arrays: Mapping[str, Any], about: dict[str, Any]) -> None:
    """Write {name: array} and `about`, a dict that JSON can hold, to `path`. Equal contents give equal bytes.

    kind: one of KINDS. An array may also be a function with .shape, .size and .dtype that fetches it when its turn has
    come. Raises NotWritten.
    """
    facts = json.dumps({"kind": kind, "version": VERSION} | about, default=_as_list)
    entries: dict[str, Any] = {"__metadata__": {"format": "pt", "mini_tf": facts, "mini_tf_sha256": NO_DIGEST}}
    end = 0
    for name, x in arrays.items():
        start, end = end, end + x.size * x.dtype.itemsize
        letters = "BOOL" if x.dtype.kind == "b" else f"{TYPES[x.dtype.kind]}{8 * x.dtype.itemsize}"
        entries[name] = {"dtype": letters, "shape": list(x.shape), "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    digest = hashlib.sha256()
    with replacing(path) as temporary, open(temporary, "wb") as file:
        for part in (len(header).to_bytes(8, "little"), header, *map(_bytes_of, arrays.values())):
            digest.update(part)
            file.write(part)
        file.seek(8 + header.index(NO_DIGEST.encode(), header.index(b'"mini_tf_sha256":"')))
        file.write(digest.hexdigest().encode())


def plain(value: Any) -> Any:
    """The value as JSON gives it back: lists for tuples and arrays"""
    return json.loads(json.dumps(value, default=_as_list))


def _as_list(array):
    return np.asarray(array).tolist()


def _bytes_of(x):
    """The bytes of an array on any device, little-endian, in C order; no copy if they lie in memory like that."""
    x = to_host(x() if callable(x) else x)
    return np.asarray(x, x.dtype.newbyteorder("<"), order="C").reshape(-1).view(np.uint8).data


def read_archive(path: PathLike, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """(arrays, about) as `write_archive` got them.

    Raises UserError if there is no such file, if it is not of mini_tf, not of this kind, or of a newer version, and if
    a single bit of it has changed since it was written.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is {kind_of(path)}, expected {KINDS[kind]}, a .safetensors file")
        about = _checked(path)
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    except FileNotFoundError:
        raise UserError(f"there is no file {path}, expected {KINDS[kind]}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except (SafetensorError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not a file of mini_tf: {error}") from None
    if about["version"] > VERSION:
        raise UserError(f"{path} is of version {about['version']}, expected at most {VERSION}: a newer mini_tf wrote "
                        "it; update this one")  # fmt: skip
    if about["kind"] != kind:
        raise UserError(f"{path} has {KINDS.get(about['kind'], about['kind'])} in it, expected {KINDS[kind]}")
    return arrays, about


def not_finite(arrays: Mapping[str, Array]) -> str | None:
    """The name of the first array with a number that is not finite, or None"""
    return next((name for name, x in arrays.items() if x.dtype.kind == "f" and not np.isfinite(x).all()), None)


def _checked(path):
    """The file's own metadata. Raises UserError unless all of the file is as it was written."""
    with open(path, "rb") as file:
        start = file.read(8)
        header = file.read(min(int.from_bytes(start, "little"), path.stat().st_size))
        found = DIGEST.search(header)
        if found is None:
            raise UserError(f"{path} is damaged, or not a file of mini_tf: it has no checksum; restore a copy, or "
                            "train again")  # fmt: skip
        digest = hashlib.sha256(start + header[: found.start(1)] + NO_DIGEST.encode() + header[found.end(1) :])
        while part := file.read(CHUNK):
            digest.update(part)
    if digest.hexdigest().encode() != found[1]:
        raise UserError(f"{path} is damaged: its content does not match its checksum; restore a copy, or train again")
    try:
        about = json.loads(json.loads(header)["__metadata__"]["mini_tf"])
        if not isinstance(about["kind"], str) or not isinstance(about["version"], int):
            raise TypeError("the kind or the version")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is not a file of mini_tf: its header is wrong ({error})") from None
    return about
