"""The twins of the ops that a function calls, compared with the formulas: values and gradients, in float32.

The reference is the formula in float64, whose gradients are themselves checked against measured slopes. A twin's error
may be as large as float32's budget (see `precision.py`), or AS_THE_FORMULA times the formula's own error in float32.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mini_tf import kernels
from mini_tf.backend import to_host
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.precision import budget, moves, rerun
from mini_tf.gradcheck.report import Report
from mini_tf.gradcheck.wording import entry
from mini_tf.ops.op import watching
from mini_tf.types import Array

import numpy as np

AS_THE_FORMULA = 16      # a twin's error may be so many times the formula's own in float32
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
        report.findings += misses(", ".join(report.twins), title, found, right, allowed)


def misses(twins: str, name: str, found: Any, right: Array | float, allowed: float) -> list[str]:
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
