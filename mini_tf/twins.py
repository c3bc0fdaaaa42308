"""Twins that no check of a gradient compares: of the optimizer, of writing word by word, and those on a GPU."""

from collections.abc import Callable
from itertools import product
from typing import Any

from mini_tf import kernels, ops
from mini_tf.backend import gpu_count, to_device
from mini_tf.gradcheck.measure.precision import budget
from mini_tf.gradcheck.measure.twins import EPS, misses
from mini_tf.layers import KVCache, TransformerLayer
from mini_tf.layers.feed_forward import ACTIVATIONS
from mini_tf.layers.transformer import NORMS
from mini_tf.ops import updates
from mini_tf.types import Array

import numpy as np

WITHOUT_SLOPES = 16      # times the budget of one rounding, since no moved gradient says how rounding grows
Convert = Callable[[Array], Array]       # to a dtype and a device


def _compared(twins: str, run: Callable[[Convert], dict[str, Any]], device: str = "cpu") -> list[str]:
    """A sentence on each result that the twins have wrong. run(given) gives {name: result} of arrays given(x)."""
    with kernels.with_twins():
        found = run(lambda x: to_device(x.astype(np.float32) if x.dtype.kind == "f" else x, device))
    with kernels.reference_only():
        exact = run(lambda x: x.astype(np.float32).astype(np.float64) if x.dtype.kind == "f" else x)
    allowed = {name: WITHOUT_SLOPES * budget(0, x, EPS) for name, x in exact.items()}
    return [said for name, x in exact.items() for said in misses(twins, name, found[name], x, allowed[name])]


def check_updates(rng: np.random.Generator, device: str = "cpu") -> list[str]:
    """A sentence for each twin that disagrees with its formula without a backward (`mini_tf/ops/updates.py`)."""
    p, g, m = rng.standard_normal((3, 7, 5))
    v = rng.uniform(0.1, 2, (7, 5))

    def run(given: Convert) -> dict[str, Any]:
        arrays = dict(zip("pgmv", map(given, (p, g, m, v))))
        total = updates.sum_of_squares(arrays["g"])
        updates.adam(arrays["p"], arrays["g"], arrays["m"], arrays["v"], 3, 0.01, (0.9, 0.99), 1e-8, 0.999)
        return arrays | {"Σ g²": total}

    return _compared("adam and sum_of_squares", run, device)


def check_writing(rng: np.random.Generator) -> list[str]:
    """A sentence for each variant of TransformerLayer whose twin (`kernels/decode_layer.py`) writes another y."""
    n, H, m, words, findings = 6, 2, 4, 5, list[str]()
    branches = [{"f": 0}, *({"f": 7, "activation": activation} for activation in (*ACTIVATIONS, "swiglu"))]
    variants: list[dict[str, Any]] = [
        {}, {"bias": True}, {"plain": True}, {"distances": True}, {"G": 1, "rotary": 90.0, "rms": True},
    ]  # fmt: skip
    for norm, relu, branch, variant in product(NORMS, (True, False), branches, variants):
        options = {"norm": norm, "relu": relu} | branch | variant
        layer = TransformerLayer(n, H, m, rng, scale=0.7, **options)
        numbers = {name: rng.standard_normal(p.data.shape) for name, p in layer.parameters().items()}
        texts = np.split(rng.standard_normal((1, words, n)), range(2, words), axis=1)   # two words, then one by one

        def run(given: Convert, layer: Any = layer, numbers: Any = numbers, texts: Any = texts) -> dict[str, Any]:
            for name, p in layer.parameters().items():
                p.data = given(numbers[name])
            cache = KVCache(words)
            return {"y": np.concatenate([layer.decode(given(x), cache) for x in texts], axis=1)}

        findings += _compared(f"TransformerLayer.decode, {options},", run)
    return findings


def check_gpu(examples: dict[str, Callable[..., Any]], rng: np.random.Generator, device: str = "gpu") -> list[str]:
    """A sentence for each example of an op whose twin on the GPU disagrees with its formula; [] without a GPU."""
    if device == "gpu" and not gpu_count()[0]:
        return []
    findings = check_updates(rng, device)
    for name, make in examples.items():
        if name.partition(",")[0] in ops.__all__:
            f, inputs, _ = make(rng)

            def run(given: Convert, f: Any = f, inputs: Any = inputs) -> dict[str, Any]:
                y, backward = f(*map(given, inputs))
                dy = np.random.default_rng(0).standard_normal(np.shape(y))
                gradients = backward(given(dy) if np.ndim(y) else 0.7)
                gradients = gradients if isinstance(gradients, tuple) else (gradients,)
                return {"y": y} | {f"gradient {k}": d for k, d in enumerate(gradients, 1) if d is not None}

            findings += _compared(f"{name}, on the GPU,", run, device)
    return findings
