"""gradcheck: the hand-written backward against central differences in float64, and what is wrong if they differ."""

from collections.abc import Sequence
from typing import Any

from mini_tf.checks import check_whole
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.promises import told
from mini_tf.gradcheck.report import FAIL, Report
from mini_tf.gradcheck.source import is_current
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged


def gradcheck(
    f: Any, *inputs: Any, params: Any = None, grads: Any = None, constants: Sequence[str] = (),
    methods: Sequence[str] | None = None, name: str | None = None, seed: int = 0, budget: int | None = None,
    explain: bool = True, **options: Any,
) -> Report:  # fmt: skip
    """Check hand-written gradients against finite differences. Returns a Report, true if all is right.

    f          y, backward = f(…), as an op, a layer or model.loss; loss, grads = f(…); a pair (forward, backward),
               or f_forward with f_backward in its file; an object with forward and backward; a torch.autograd.Function
    inputs     its arguments; floating arrays are checked, in float64 copies, also those in objects, dicts and lists
    options    more arguments, by name: stride=2, mask=mask. An array that is given by name is a constant
    params     ["W", …] or {"W": "path.to.W"}: these weights only, which may be variables of f's file; or Parameters of
               mini_tf, {name: Parameter}, where f is a function that uses layers
    grads      {"W": "path.to.its.gradient"} where no rule finds it; ["W", "x"]: in this order they come back
    constants  names of arrays of an object that get no gradient
    methods    ("go", "come_back"): what an object calls its forward and backward
    name       what the report calls f
    seed       of dy, of the random point and of the sampled entries
    budget     how many entries of a large tensor are measured: so many at random, and ten random directions through all
               (by default 2,000; fewer if the tensors have over 25,000 entries in all, 50 of each if it is a million)
    explain    False: the verdict only, as `judge` gives it

    The rules by which each gradient finds its tensor are in `mini_tf/gradcheck/README.md`. FAIL means that a gradient
    misses the measured slope by more than the measurement's uncertainty, or that a promise was broken; NOT TESTED that
    something could not be judged, with the argument that helps. gradcheck itself raises nothing but UserError, for a
    seed below 0 and a budget below 1. Threads take turns; while one checks a layer, others must not use it.
    """
    check_whole(0, seed=seed)
    if budget is not None:
        check_whole(budget=budget)

    check = judged(lambda: Subject(f, inputs, options, params, grads, constants, methods), name, seed, budget)
    with check as (report, subject, evidence, other):
        if evidence and is_current(evidence.backward.of) is False:
            report.notes.append("its file has changed since it was imported, and the old code was checked: start a new "
                                "Python, or importlib.reload the module")        # fmt: skip
        if explain and report.verdict == FAIL and subject and evidence:
            from mini_tf.gradcheck.explain.reasons import add_reasons  # here, as a check that passes needs none of it

            try:
                add_reasons(report, subject, evidence, other, seed)
            except FAILURES as error:                    # whatever fails in an explanation, the verdict stands
                report.notes.append(f"the reason could not be looked for: {told(error)}")
    return report


def judge(f: Any, *inputs: Any, **arguments: Any) -> Report:
    """The verdict alone, without reasons: gradcheck(…, explain=False), a hundredth of the time where it fails."""
    return gradcheck(f, *inputs, **arguments, explain=False)
