"""gradcheck: the hand-written backward against central differences in float64, and what is wrong if they differ.

The question about y, backward = f(x): with a random dy, does backward(dy) equal the slopes of the one number

    φ(x) = Σ dy·y(x) ?

dy is random because dy = 1 would hide bugs: with it, the true dx of softmax and of layer norm is zero, and a wrong one
often is too.
"""

from typing import Any

from mini_tf.gradcheck.arguments import placed, takes_seed
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.judge import judged
from mini_tf.gradcheck.measuring.subject import told
from mini_tf.gradcheck.planting.editing import is_current
from mini_tf.gradcheck.reasons.order import other_order
from mini_tf.gradcheck.reasons.steps import add_reasons, first_wrong_step
from mini_tf.gradcheck.report import Report
from mini_tf.gradcheck.verdicts import FAIL
from mini_tf.layers import Parameter

EXCHANGED = 2            # gradients that have changed places, which a change may put right


def gradcheck(
    f: Any, *inputs, params: dict[str, Parameter] | list[Parameter] | list[str] | None = None, name: str | None = None,
    seed: int = 0, budget: int | None = None, **options: Any,
) -> Report:  # fmt: skip
    """Check y, backward = f(*inputs, **options) against finite differences, and the op's contract. Returns a Report.

    f         an op, a layer, model.loss, or any function that keeps the contract of `mini_tf.ops`
    inputs    its arguments; floating arrays are checked (in float64 copies), also those in the dicts, lists and tuples
              that a function of your own takes; integers, booleans, others are passed on
    params    Parameters that f uses: {name: Parameter}, as layer.parameters() gives, or a list. By default they are
              found: those of f if it is a layer or a layer's method, or of the layers that a function's text names
    seed      of dy, of the generic point and of the sampled entries; f gets it, too, if it takes one
    budget    how many entries of a large tensor are measured: so many at random, and ten random directions through all;
              of one with up to ten entries more, all, which takes no longer (by default 2,000; fewer if the
              tensors have over 25,000 entries in all, 50 of each if it is a million)
    options   other arguments of f, by name: stride=2; of an array among them the backward may return no gradient, and
              then it is NOT TESTED

    Slopes are measured at the given point and at a generic one (`measuring.points`), by central differences with
    Richardson's extrapolation (`measuring.slopes`); a gradient is wrong where it misses the measured slope by more than
    the measurement's uncertainty. If both points are right, one random direction is tried at each of eight far points,
    for other branches; where it contradicts the gradient, all is measured there, too. Entries within a step of a kink
    are set aside and counted. Inputs in float32, or on a GPU, are also run as they are (`measuring.precision`).
    Whatever breaks the contract (`measuring.promises`) is a finding, even an exception: gradcheck itself raises nothing
    but UserError, for a seed below 0, a budget below 1, and options that f does not have.
    Threads take turns; while one checks a layer, others must not use it.
    """
    if seed and takes_seed(f, inputs):
        options["seed"] = seed
    by_name = tuple(options)
    with judged(f, placed(f, inputs, options), params, name, seed, budget, by_name) as (report, subject, evidence):
        if evidence is not None and is_current(evidence.backward) is False:
            report.notes.append(
                "its file has changed since it was imported, and what was checked is the old code: start a new Python, "
                "or importlib.reload the module"
            )
        if report.verdict == FAIL:
            try:
                if evidence is not None:                 # the generic point may not show what is wrong
                    evidence.back_to_the_point()
                report.other_order, moved = other_order(evidence) if evidence is not None else ("", 0)
                report.steps = [] if report.other_order else first_wrong_step(subject, seed)
                if report.wrong_step is None and moved <= EXCHANGED:     # the step's own report explains it
                    add_reasons(report, evidence)
            except FAILURES as error:                   # whatever fails in an explanation, the verdict stands
                report.notes.append(f"the reason could not be looked for: {told(error, f)}")
    return report
