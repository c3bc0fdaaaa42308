"""Inputs in float32, or on a GPU: their gradients, compared with the float64 ones.

Finite differences cannot judge them: in float32 even the best step leaves too large an error. So they are compared
with the float64 backward, which has been checked. The error budget is what rounding to float32 costs, times ALLOWANCE:

- of the inputs: how far the float64 gradient moves when they are perturbed by float32's rounding;
- of the steps inside f: how far it moves when they are perturbed by float64's rounding, which lets every step round
  anew, scaled up to float32's. Where large terms cancel, as in the gradient of a key's bias, which is 0, this is more.
"""

from contextlib import AbstractContextManager
from typing import Any

from mini_tf.gradcheck.adapters import Closure
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.measure.promises import told
from mini_tf.gradcheck.report import Precision, Report
from mini_tf.gradcheck.subject import Gradients
from mini_tf.types import Array

import numpy as np

ALLOWANCE = 128
SMALLEST = 4 * np.finfo(np.float64).eps      # a perturbation that changes nearly every entry
WIDENED = "the dtype must follow the inputs; a NumPy scalar such as np.sqrt(2), or a dtype named in the op, changes it"


def check_precision(evidence: Evidence, report: Report, rng: np.random.Generator) -> None:
    """Run f with the original inputs, and add to the report how far its gradients are from the float64 ones.

    Does nothing if they are float64 arrays on the host, or if their dtypes or devices are mixed.
    """
    subject, dy = evidence.subject, evidence.dy
    with subject.as_given():
        given = [*subject.tensors.values()]
    if all(type(x) is np.ndarray and x.dtype == np.float64 for x in given):
        return
    from mini_tf.backend import device_of, to_device_of, to_host  # here, as most inputs are float64 arrays on the host

    kinds = {(x.dtype, device_of(x)) for x in given}
    if len(kinds) != 1:
        return
    dtype, device = kinds.pop()
    where = f"{dtype}" if device == "cpu" else f"{dtype} on {device}"
    # Ops promise that the dtype follows the inputs; other styles do not.
    widened, why = (report.findings, f": {WIDENED}") if isinstance(subject.adapter, Closure) else (report.notes, "")
    try:
        own_dy = to_device_of(np.asarray(dy, dtype), given[0]) if np.ndim(dy) else dy
        y, came, switched = rerun(evidence, subject.as_given(), own_dy)
    except FAILURES as error:
        report.findings.append(f"in {where}, as given, it raised {told(error)}")
        return
    if getattr(y, "dtype", dtype) != dtype:
        widened.append(f"the forward gave {y.dtype} for {where}{why}")
    if switched:
        report.notes.append(f"results in {where} were not judged: there, rounding switches a ReLU")
        return
    eps = np.finfo(dtype).eps
    moved = moves(evidence, eps, rng)
    for name, right in evidence.gradients.items():
        gradient = came[name]
        if getattr(gradient, "shape", ()) != right.shape or not right.size:
            continue                                     # reported already, or missing
        if getattr(gradient, "dtype", dtype) != dtype:
            widened.append(f"d{name} is {gradient.dtype} for {where}{why}")
        gradient = np.asarray(to_host(gradient), np.float64)
        off = np.nan_to_num(np.abs(gradient - right) / budget(moved[name], right, eps), nan=np.inf)
        worst = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
        one = Precision(where, float(off[worst]), worst, float(gradient[worst]), float(right[worst]))
        report.tensor(name).precision = one


def rerun(evidence: Evidence, block: AbstractContextManager[None], dy: Array | float) -> tuple[Any, Gradients, bool]:
    """(y, gradients, whether rounding switches a ReLU) of one more run inside the block, with a dy of its own"""
    subject, patterns = evidence.subject, evidence.patterns
    patterns.clear()
    subject.forward()
    before = [*patterns]
    with block:
        patterns.clear()
        y, _ = subject.forward()
        switched = patterns != before
        return y, subject.run(dy), switched


def moves(evidence: Evidence, eps: float, rng: np.random.Generator) -> dict[str, float]:
    """{name: the most that rounding at eps moves the gradient}, found in float64, in two tries of each kind

    The inputs are perturbed by eps, and by float64's own rounding, for which the move is scaled up to eps. The entry
    "y" says how far y itself moves.
    """
    subject, dy, right = evidence.subject, evidence.dy, evidence.gradients | {"y": evidence.y}
    found = dict.fromkeys(right, 0.0)
    for size in (eps, eps, SMALLEST, SMALLEST):
        near = {name: x * (1 + size * rng.uniform(-1, 1, x.shape)) for name, x in subject.tensors.items()}
        with subject.at(subject.arrays | near):
            moved = subject.run(dy * (1 + size * rng.uniform(-1, 1, np.shape(dy)))) | {"y": subject.forward()[0]}
        for name in right:
            found[name] = max(found[name], np.abs(moved[name] - right[name]).max(initial=0) * eps / size)
    return found


def budget(move: float, right: Array | float, eps: float) -> float:
    """How far a result in a dtype with that eps may be from the right one."""
    return float(max(ALLOWANCE * (move + eps * np.abs(right).max(initial=0)), 1e-300))
