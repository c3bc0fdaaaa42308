"""Arrays and what there is to say of them, in one file that is read back whole or not at all.

The file is a .safetensors file, which other tools read, too: the length of the header (8 bytes), the header (JSON), the
bytes of the arrays. The header's metadata has

    format          "pt": other tools ask for it, although nothing here is PyTorch's
    mini_tf         JSON: {"kind", "version", …}, and what the writer wants to keep
    mini_tf_sha256  of the whole file, with 64 zeros in its own place

No file is unpickled: reading one runs no code of it.
"""

import hashlib
import json
import re
from pathlib import Path

from mini_tf.backend import to_host
from mini_tf.errors import UserError
from mini_tf.files import kind_of, replacing

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load, save

VERSION = 2                          # of the files' format; those of version 1 had no checksum
KINDS = {"model": "a model", "training": "the state of a training"}
NO_DIGEST = "0" * 64
DIGEST = re.compile(rb'"mini_tf_sha256":"([0-9a-f]{64})"')


def write_archive(path, kind, arrays, about):
    """Write {name: array} and `about`, a dict that JSON can hold, to `path`. Equal contents give equal bytes.

    kind: one of KINDS. Raises NotWritten.
    """
    # safetensors 0.8.0 scrambles arrays that are not C-contiguous, without an error.
    arrays = {name: np.asarray(to_host(x), order="C") for name, x in arrays.items()}
    about = json.dumps({"kind": kind, "version": VERSION} | about, default=lambda array: np.asarray(array).tolist())
    content = bytearray(save(arrays, {"format": "pt", "mini_tf": about, "mini_tf_sha256": NO_DIGEST}))
    # safetensors writes the metadata in random order.
    end = _end_of_header(content)
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    content[8:end] = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(end - 8)
    start, stop = DIGEST.search(content, 8, end).span(1)
    content[start:stop] = hashlib.sha256(content).hexdigest().encode()
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def read_archive(path, kind):
    """(arrays, about) as `write_archive` got them. Other tools may have no part in the file.

    Raises UserError if there is no such file, if it is not of mini_tf, not of this kind, or of a newer version, and if
    a single bit of it has changed since it was written.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise UserError(f"{path} is {kind_of(path)}, expected {KINDS[kind]}, a .safetensors file")
        content = bytearray(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"there is no file {path}, expected {KINDS[kind]}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    found = DIGEST.search(content, 8, _end_of_header(content))
    if found is None:
        raise UserError(_foreign(path, bytes(content)))
    digest = found[1].decode()
    content[slice(*found.span(1))] = NO_DIGEST.encode()
    if hashlib.sha256(content).hexdigest() != digest:
        raise UserError(f"{path} is damaged: its content does not match its checksum; restore a copy, or train again")
    arrays = load(bytes(content))
    header = json.loads(content[8 : _end_of_header(content)])
    about = json.loads(header["__metadata__"]["mini_tf"])
    if about["version"] > VERSION:
        raise UserError(f"{path} is of version {about['version']}, expected at most {VERSION}: a newer mini_tf wrote "
                        "it; update this one")  # fmt: skip
    if about["kind"] != kind:
        raise UserError(f"{path} has {KINDS.get(about['kind'], about['kind'])} in it, expected {KINDS[kind]}")
    return arrays, about


def _end_of_header(content):
    return min(8 + int.from_bytes(content[:8], "little"), len(content))


def _foreign(path, content):
    """Why a file without a checksum cannot be read."""
    try:
        deserialize(content)
    except SafetensorError:
        return f"{path} is not a .safetensors file, or damaged"
    if b'"mini_tf"' in content or b'"mini_tf_training"' in content:
        return f"{path} was written by a mini_tf before its files had checksums, or is damaged: train again"
    return f"{path} is a .safetensors file, but not of mini_tf"
