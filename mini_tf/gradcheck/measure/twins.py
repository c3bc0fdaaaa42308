"""The twins of the ops that a function calls, compared with the formulas: values and gradients, in float32.

The reference is the formula in float64, whose gradients are themselves checked against measured slopes. A twin's error
may be as large as float32's budget (see `precision.py`), or AS_THE_FORMULA times the formula's own error in float32.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

from mini_tf import kernels, ops
from mini_tf.backend import gpu_count, to_device, to_host
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.precision import budget, moves, rerun
from mini_tf.gradcheck.report import Report
from mini_tf.gradcheck.wording import entry
from mini_tf.layers import KVCache, TransformerLayer
from mini_tf.layers.feed_forward import ACTIVATIONS
from mini_tf.layers.transformer import NORMS
from mini_tf.ops import updates
from mini_tf.ops.op import watching
from mini_tf.types import Array

import numpy as np

AS_THE_FORMULA = 16      # a twin's error may be so many times the formula's own in float32
WITHOUT_SLOPES = 16      # or so many times the budget of one rounding, where no moved gradient says how rounding grows
Convert = Callable[[Array], Array]       # to a dtype and a device
EPS, TINY = float(np.finfo(np.float32).eps), float(np.finfo(np.float32).tiny)


def check_twins(evidence: Evidence, report: Report, rng: np.random.Generator) -> None:
    """Run the function once more in float32, with twins, and add to the report which twins ran, and which disagree."""
    subject, gradients, dy = evidence.subject, evidence.gradients, evidence.dy
    ran = set[str]()

    def watch(op: Any, run: Callable[..., Any], /, *inputs: Any, **options: Any) -> Any:
        if op.implementation(inputs, options) is not op.formula:
            ran.add(op.name)
        return run(*inputs, **options)

    @contextmanager
    def with_twins() -> Iterator[None]:
        with subject.in_dtype(np.float32), watching(watch), kernels.with_twins():
            yield

    dy_single = np.asarray(dy, np.float32) if np.ndim(dy) else dy
    with np.errstate(all="ignore"):
        try:
            y, came, switched = rerun(evidence, with_twins(), dy_single)
        except FAILURES as error:
            if ran:
                report.findings.append(f"with the twins of {', '.join(sorted(ran))}, in float32, it raised {error!r}")
            return
        if not ran or switched:
            return
        y_formula, formula, _ = rerun(evidence, subject.in_dtype(np.float32), dy_single)
    report.twins = sorted(ran)
    moved = moves(evidence, EPS, rng)
    for name, right in {"y": evidence.y, **gradients}.items():
        found, formulas = (y, y_formula) if name == "y" else (came[name], formula[name])
        by_formula = np.abs(np.asarray(to_host(formulas), np.float64) - right).max(initial=0)
        allowed = max(budget(moved[name], right, EPS), AS_THE_FORMULA * by_formula)
        title = name if name == "y" else f"d{name}"
        report.findings += _misses(", ".join(report.twins), title, found, right, allowed)


def _misses(twins: str, name: str, found: Any, right: Array | float, allowed: float) -> list[str]:
    """[a sentence on what the twins gave], if it is not right, else []"""
    what = f"with the twins of {twins} in mini_tf/kernels, {name}"
    if np.shape(found) != np.shape(right):
        return [f"{what} has shape {np.shape(found)}, expected the formula's {np.shape(right)}"]
    found = np.asarray(to_host(found), np.float64)
    error = np.nan_to_num(np.abs(found - right) / max(allowed, TINY), nan=np.inf)
    if error.max(initial=0) <= 1:
        return []
    worst = tuple(int(i) for i in np.unravel_index(int(error.argmax()), error.shape))
    return [f"{what} at {entry(worst)} is {found[worst]:.9g}, by the formula {np.asarray(right)[worst]:.9g}: "
            f"{error[worst]:.3g} times what float32 may be off by"]              # fmt: skip


# Twins that no check of a gradient compares ---------------------------------------------------------------------------


def _compared(twins: str, run: Callable[[Convert], dict[str, Any]], device: str = "cpu") -> list[str]:
    """A sentence on each result that the twins have wrong. run(given) gives {name: result} of arrays given(x)."""
    with kernels.with_twins():
        found = run(lambda x: to_device(x.astype(np.float32) if x.dtype.kind == "f" else x, device))
    with kernels.reference_only():
        exact = run(lambda x: x.astype(np.float32).astype(np.float64) if x.dtype.kind == "f" else x)
    allowed = {name: WITHOUT_SLOPES * budget(0, x, EPS) for name, x in exact.items()}
    return [said for name, x in exact.items() for said in _misses(twins, name, found[name], x, allowed[name])]


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
