"""The twins of the ops that a function calls, compared with the formulas: values and gradients, in float32.

The reference is the formula in float64, whose gradients are themselves checked against measured slopes. A twin's error
may be as large as float32's budget (see `precision.py`), or AS_THE_FORMULA times the formula's own error in float32.
"""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from itertools import product

from mini_tf import kernels, ops
from mini_tf.backend import gpu_count, to_device, to_host
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.precision import budget, moves, rerun
from mini_tf.gradcheck.report import Report
from mini_tf.kernels import binding
from mini_tf.layers import KeysAndValues, TransformerLayer
from mini_tf.layers.feed_forward import ACTIVATIONS
from mini_tf.layers.transformer import NORMS
from mini_tf.ops import updates
from mini_tf.ops.op import watching

import numpy as np

AS_THE_FORMULA = 16      # a twin's error may be so many times the formula's own in float32
IN_A_LAYER = 16          # the error of a whole layer may be so many times that of one op
EPS, TINY = float(np.finfo(np.float32).eps), float(np.finfo(np.float32).tiny)


def check_twins(evidence: Evidence, report: Report, rng: np.random.Generator) -> None:
    """Run the function once more in float32, with twins, and add to the report which twins ran, and which disagree."""
    subject, gradients, dy = evidence.subject, evidence.gradients, evidence.dy
    ran, edited = set(), set()

    def watch(op, run, *inputs, **options):
        if op.chosen(inputs, options) is not op.formula:
            ran.add(op.name)
        elif binding.bound(op) and binding.edited(op):
            edited.add(op.name)
        return run(*inputs, **options)

    @contextmanager
    def with_twins():
        with subject.in_dtype(np.float32), watching(watch), _twins():
            yield

    dy_single = np.asarray(dy, np.float32) if np.ndim(dy) else dy
    with np.errstate(all="ignore"):
        try:
            y, came, switched = rerun(evidence, with_twins(), dy_single)
        except FAILURES as error:
            if ran:
                report.findings.append(f"with the twins of {_list(ran)}, in float32, it raised {error!r}")
            return
        if edited:
            report.notes.append(f"{_list(edited)}: edited, so the formula runs and its twin is off")
        if not ran or switched:
            return
        y_formula, formula, _ = rerun(evidence, subject.in_dtype(np.float32), dy_single)
    moved = moves(evidence, EPS, rng)
    results = [("y", y, y_formula, evidence.y, moved["y"])]
    results += [(f"d{n}", came.get(n), formula.get(n), right, moved[n]) for n, right in gradients.items()]
    for name, found, by_formula, right, move in results:
        what = f"with the twins of {_list(ran)} in mini_tf/kernels, {name}"
        if np.shape(found) != np.shape(right):
            report.findings.append(f"{what} has shape {np.shape(found)}, expected the formula's {np.shape(right)}")
            continue
        found, by_formula = (np.asarray(to_host(one), np.float64) for one in (found, by_formula))
        allowed = max(budget(move, right, EPS), AS_THE_FORMULA * np.abs(by_formula - right).max(initial=0), TINY)
        error = np.nan_to_num(np.abs(found - right) / allowed, nan=np.inf)
        if error.max(initial=0) > 1:
            worst = np.unravel_index(int(error.argmax()), error.shape)
            report.findings.append(
                f"{what} at {[int(i) for i in worst]} is {found[worst]:.9g}, by the formula {right[worst]:.9g}: "
                f"{error[worst]:.3g} times what float32 may be off by"
            )
    report.twins = sorted(ran)


@contextmanager
def _twins():
    """Twins run, also inside `reference_only()`. Edited formulas are noted in the report, so no warning is given."""
    with warnings.catch_warnings(), kernels.with_twins(kernels.twins_of_edited_formulas()):
        warnings.simplefilter("ignore", kernels.FormulaEdited)
        yield


def check_updates(rng: np.random.Generator, device: str = "cpu") -> list[str]:
    """A sentence for each twin that disagrees with its formula without a backward (`mini_tf/ops/updates.py`)."""
    where = "" if device == "cpu" else " on the GPU"
    p, g, m = rng.standard_normal((3, 7, 5))
    v = rng.uniform(0.1, 2, (7, 5))
    exact, single = [x.copy() for x in (p, g, m, v)], [to_device(x.astype(np.float32), device) for x in (p, g, m, v)]
    settings = 3, 0.01, (0.9, 0.99), 1e-8, 0.999
    with _twins():
        updates.adam(*single, *settings)
        total = updates.sum_of_squares(single[1])
    with kernels.reference_only():
        updates.adam(*exact, *settings)
    pairs = [(right, found, f"adam{where} gives another {name}") for name, right, found in zip("pgmv", exact, single)]
    pairs.append(((g * g).sum(), total, f"sum_of_squares{where} gives another sum"))
    return [f"the twin of {words} than the formula" for right, found, words in pairs if not _near(found, right)]


def check_writing(rng: np.random.Generator) -> list[str]:
    """A sentence for each variant of TransformerLayer whose twin for writing (`kernels/writing.py`) gives another y.

    Five words are written with the twin, in float32, and by the formula, in float64: two at once, then one by one.
    """
    n, H, m, words, findings = 6, 2, 4, 5, []
    branches = [{"f": 0}, *({"f": 7, "activation": activation} for activation in ACTIVATIONS)]
    attentions = {}, {"bias": True}, {"distances": True}
    for norm, relu, branch, attention in product(NORMS, (True, False), branches, attentions):
        options = {"norm": norm, "relu": relu} | branch | attention
        layer = TransformerLayer(n, H, m, rng, scale=0.7, **options)
        for p in layer.parameters().values():
            p.data = rng.standard_normal(p.data.shape).astype(np.float32)
        x = rng.standard_normal((1, words, n)).astype(np.float32)
        with _twins():
            found = _written(layer, x)
        for p in layer.parameters().values():
            p.data = p.data.astype(np.float64)
        with kernels.reference_only():
            right = _written(layer, x.astype(np.float64))
        if not _near(found, right, IN_A_LAYER):
            findings.append(f"the twin of TransformerLayer.write gives another y than the formula, with {options}")
    return findings


def check_gpu(examples: dict[str, Callable], rng: np.random.Generator, device: str = "gpu") -> list[str]:
    """A sentence for each example of an op whose twin on the GPU gives other values or gradients than the formula.

    None where there is no GPU. As for the CPU's twins, the reference is the formula in float64.
    """
    if device == "gpu" and not gpu_count()[0]:
        return []
    findings = check_updates(rng, device)
    for name, make in examples.items():
        if name.partition(",")[0] in ops.__all__:
            f, inputs, _ = make(rng)
            findings += [f"the twin of {name} on the GPU gives another {what}" for what in _off(f, inputs, rng, device)]
    return findings


def _off(f, inputs, rng, device):
    """What the twin that f calls there has wrong: "y than the formula: off by 0.1", …"""
    single = [x.astype(np.float32) if x.dtype.kind == "f" else x for x in inputs]
    with kernels.reference_only():
        y, backward = f(*[x.astype(np.float64) if x.dtype.kind == "f" else x for x in single])
        dy = rng.standard_normal(np.shape(y)).astype(np.float32) if np.ndim(y) else 0.7
        right = {"y": y, **_named(backward(np.float64(dy)))}
    with _twins():
        y, backward = f(*[to_device(x, device) for x in single])
        found = {"y": y, **_named(backward(to_device(dy, device) if np.ndim(dy) else dy))}
    errors = {what: np.abs(to_host(found[what]) - x).max(initial=0) for what, x in right.items()}
    allowed = {what: IN_A_LAYER * budget(0, x, EPS) for what, x in right.items()}
    return [f"{what} than the formula: off by {x:.3g}" for what, x in errors.items() if not x <= allowed[what]]


def _named(gradients):
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return {f"gradient of input {k}": d for k, d in enumerate(gradients, 1) if d is not None}


def _written(layer, x):
    """y of the words of one text: of the first two, then of one after another"""
    memory = KeysAndValues(x.shape[1])
    return np.concatenate([layer.write(some, memory) for some in np.split(x, range(2, x.shape[1]), axis=1)], axis=1)


def _near(found, right, times=1):
    return np.abs(to_host(found) - right).max() <= times * budget(0, right, EPS)


def _list(names):
    return ", ".join(sorted(names))
