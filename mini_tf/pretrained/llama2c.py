"""Llama in llama2.c's format: one .bin file, read into a Llama, and written.

    7 × int32     n, f, L, H, G, c, T;   c < 0: the readout has weights of its own
    float32       the word vectors (c, n); then one kind of array after another, each for all layers: γ of attention's
                  norm, queries, keys, values, output, γ of feed-forward's norm, gate, W₂, W₁; the last norm's γ; cos
                  and sin of the rotary positions, (T, m/2) each, which are not learned; the readout, if it has its own

Its weights are (out, in), the transpose of ours.
Source: github.com/karpathy/llama2.c, run.c and export.py, version 0
"""

import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from mini_tf.backend import to_host
from mini_tf.checks import check_whole
from mini_tf.errors import UserError
from mini_tf.files import kind_of, replacing
from mini_tf.layers import Linear, Parameter
from mini_tf.models import Llama
from mini_tf.types import PathLike

import numpy as np

HEAD = struct.Struct("<7i")
BASE, EPS = 10000.0, 1e-5            # which are not in the file
ADVICE = "expected a model in llama2.c's format, such as stories260K.bin"


def load_llama2c(path: PathLike) -> Llama:
    """The Llama in a .bin file, in float32.

    Raises UserError for a file of another format, and for one that is cut off.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"there is no file {path}; {ADVICE}")
    if (kind := kind_of(path)) != "a file":
        raise UserError(f"{path} is {kind}, {ADVICE}")
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            raise UserError(f"{path} has {len(head)} bytes, {ADVICE}")
        n, f, L, H, G, c, T = HEAD.unpack(head)
        options = _checked(path, n, f, L, H, G, abs(c), T) | {"tied": c > 0}
        count = _numbers(n, f, L, H, G, abs(c), T, c > 0)
        if (size := path.stat().st_size) != HEAD.size + 4 * count:
            raise UserError(f"{path} has {size:,} bytes, by its first numbers it has {HEAD.size + 4 * count:,}: it is "
                            f"cut off, or another format; {ADVICE}")  # fmt: skip
        numbers = np.fromfile(path, "<f4", count, offset=HEAD.size)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); {ADVICE}") from None
    if not np.isfinite(numbers).all():
        raise UserError(f"{path} has numbers that are not finite; get another copy")
    model = Llama(np.zeros((abs(c), n), np.float32), **options)
    place, gamma = 0, model.parameters()["trunk.norm.gamma"]
    for parameter, turned in _in_order(model):
        shape = parameter.data.shape[::-1] if turned else parameter.data.shape
        x = numbers[place : (place := place + prod(shape))].reshape(shape)
        parameter.data = np.ascontiguousarray(x.T if turned else x)
        if parameter is gamma:
            place += T * options["m"]                    # the tables of rotary positions
    return model


def export_llama2c(model: Llama, path: PathLike) -> None:
    """Write the model as a file that llama2.c's run.c can read.

    Raises UserError for what the format cannot express, another base or eps, or H·m ≠ n; and NotWritten.
    """
    options, (c, n) = model.config, model.trunk.embedding.table.data.shape
    T, L, H, m, f = (options[name] for name in "TLHmf")
    if options["base"] != BASE or options["eps"] != EPS or H * m != n:
        raise UserError(f"llama2.c's format expects base = {BASE:g}, eps = {EPS:g} and H·m = n; this model has "
                        f"{options['base']:g}, {options['eps']:g} and {H * m}, with n = {n}")  # fmt: skip
    gamma = model.parameters()["trunk.norm.gamma"]
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(HEAD.pack(n, f, L, H, options["G"] or H, c if options["tied"] else -c, T))
        for parameter, turned in _in_order(model):
            x = to_host(parameter.data)
            file.write(np.ascontiguousarray(x.T if turned else x, "<f4").tobytes())
            if parameter is gamma:
                angle = np.arange(T)[:, None] * BASE ** (-2 * np.arange(m // 2) / m)
                for table in (np.cos(angle), np.sin(angle)):
                    file.write(table.astype("<f4").tobytes())


def _checked(path: Path, n: int, f: int, L: int, H: int, G: int, c: int, T: int) -> dict[str, Any]:
    """Llama's options. Raises UserError for numbers that no model has."""
    try:
        check_whole(n=n, f=f, L=L, H=H, G=G, c=c, T=T)
    except UserError as error:
        raise UserError(f"{path}: by its first numbers, {error}; {ADVICE}") from None
    if n % H or H % G or n // H % 2:
        raise UserError(f"{path}: by its first numbers, H = {H} heads share n = {n}, and G = {G} of keys serve them, "
                        f"which does not fit; {ADVICE}")  # fmt: skip
    return {"T": T, "L": L, "H": H, "G": G, "m": n // H, "f": f, "base": BASE, "eps": EPS}


def _numbers(n: int, f: int, L: int, H: int, G: int, c: int, T: int, tied: bool) -> int:
    """How many float32 numbers the file of such a model has"""
    m = n // H
    of_a_layer = 2 * n + 2 * n * n + 2 * n * G * m + 3 * n * f
    return c * n * (1 if tied else 2) + L * of_a_layer + n + T * m


def _in_order(model: Llama) -> Iterator[tuple[Parameter, bool]]:
    """(parameter, whether the file has its transpose), in the order of the file"""
    layers: Any = model.trunk.layers
    yield model.trunk.embedding.table, False
    yield from ((layer.attention_norm.gamma, False) for layer in layers)
    for name in ("query", "key", "value", "output"):
        yield from ((getattr(layer.attention, name).W, True) for layer in layers)
    yield from ((layer.feed_forward_norm.gamma, False) for layer in layers)
    for name in ("gate", "outer", "inner"):
        yield from ((getattr(layer.feed_forward, name).W, True) for layer in layers)
    yield model.parameters()["trunk.norm.gamma"], False
    if isinstance(model.A, Linear):
        yield model.A.W, True
