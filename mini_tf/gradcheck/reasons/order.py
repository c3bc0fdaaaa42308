"""Right gradients in another order than that of the inputs."""

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.verdicts import listed

LEAST = 3                # of two that are exchanged, `resemblances.exchanged` tells


def other_order(e: Evidence) -> str:
    """A sentence, if what comes back are the right gradients of all inputs, in another order."""
    names = e.subject.floats
    try:
        came = e.subject.run(e.another_dy)
        right = {name: e.slopes[name] if name in e.slopes else e.measured(name) for name in names}
    except FAILURES:
        return ""
    if len(names) < 2 or any(g is None for g in right.values()):
        return ""
    before, e.slopes = e.slopes, right
    try:
        theirs = [next((other for other in names if e.agrees(other, came.get(name))), None) for name in names]
    finally:
        e.slopes = before
    moved = [name for name, other in zip(names, theirs) if name != other]
    shapes_fit = all(right[name].shape == right[other].shape for name, other in zip(names, theirs) if other)
    if {*theirs} != {*names} or not moved or (len(moved) < LEAST and shapes_fit):
        return ""
    return (
        f"The gradients are right, but come back in the order of {listed(theirs)}: expected that of the inputs, "
        f"{listed(names)}. If yours is meant, return them by name, as in {{{theirs[0]!r}: …}}."
    )
