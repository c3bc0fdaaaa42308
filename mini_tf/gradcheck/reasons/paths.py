"""Patterns of wrong gradients: the gradient through one expression of the forward is missing, or there too often.

Gradients add up over all paths from an input to y. Hold an expression of the forward at what it was while x moves, and
the slope of φ lacks exactly the paths through it. If that explains the whole error, these are the paths that the
backward has wrong: the std of a layer norm that it takes for a constant, the step before in a recurrent network.
"""

import time

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.elsewhere import other_draws
from mini_tf.gradcheck.measuring.evidence import CLOSE, FEW, Evidence
from mini_tf.gradcheck.measuring.slopes import slopes_along
from mini_tf.gradcheck.reasons.held import READ, Held
from mini_tf.gradcheck.reasons.words import Words
from mini_tf.gradcheck.verdicts import listed

import numpy as np

DIRECTIONS = 3           # in which the tensor is moved: the first gives how often the path is there, the others confirm
PLAIN = 0, -1, 2         # times: a path that is missing, has the wrong sign, is there twice
LEAST = 1e-4             # of a path, relative to the whole gradient
SECONDS = 1.0            # of processor time, for all expressions
COUNTED = "first", "second", "third", "fourth"
NAMED = 3                # variables of one path at most


def one_path(e: Evidence, name: str) -> Words | None:
    """The error is a multiple of the gradient through one expression of the forward."""
    if np.isnan(e.slopes[name]).any() or len(e.subject.tensors) > 2 * FEW:
        return None
    yours, right, _ = (np.reshape(a, -1) for a in e.pair(name))
    rng, until = np.random.default_rng(0), time.process_time() + SECONDS
    directions = rng.choice([-1, 1], (DIRECTIONS, right.size)) * rng.uniform(0.5, 1.5, (DIRECTIONS, right.size))
    e.back_to_the_point()
    try:
        held, found = Held(e), {}
        with held.running(), np.errstate(all="ignore"):
            for several, candidates in enumerate((held.candidates, held.pairs)):
                for which in candidates if not found else ():
                    times = _times(held, which, e.subject.tensors[name], yours, right, directions)
                    if times is not None and not (several and abs(times) > CLOSE):
                        found[which] = times
                    if time.process_time() > until:
                        return None
    except FAILURES:                                     # there is no source, or f cannot be run like this
        return None
    finally:
        e.back_to_the_point()
    found = {which: times for which, times in found.items() if _is_plain(times) or _is_steady(e, name, which, times)}
    return _words(held, found) if found else None


def _is_steady(e, name, which, times):
    """True if the paths count as often with other numbers: through a single number, any error is a multiple of them."""
    other = next(iter(other_draws(e)), None)
    try:
        if other is None or np.isnan(other.slopes[name]).any():
            return False
        yours, right, _ = (np.reshape(a, -1) for a in other.pair(name))
        directions = np.random.default_rng(1).choice([-1, 1], (DIRECTIONS, right.size))
        other.back_to_the_point()
        held = Held(other)
        with held.running(), np.errstate(all="ignore"):
            there = _times(held, which, other.subject.tensors[name], yours, right, directions)
        return there is not None and abs(there - times) < CLOSE * (1 + abs(times))
    except FAILURES:
        return False
    finally:
        e.back_to_the_point()


def _times(held, which, x, yours, right, directions):
    """How often your gradient has these paths, if that explains all of its error; right is 1. None if it does not."""
    times = None
    held.which = which
    for v in directions:
        try:
            slopes = slopes_along(held, x, v[None])
        except FAILURES:                                 # it cannot be held: an array that the lines below fill
            return None
        error, path, size = (yours - right) @ v, right @ v - slopes.slope[0], np.linalg.norm(right) * np.linalg.norm(v)
        if slopes.kink[0] or abs(path) < LEAST * size or abs(slopes.slope[0]) < LEAST * size:
            return None                                  # none of the gradient, or all of it: then a factor says more
        times = 1 + error / path if times is None else times
        unsure = slopes.uncertainty[0] * abs(times - 1) + CLOSE * size
        if not abs(error - (times - 1) * path) < unsure < 0.1 * abs(error):
            return None
    off = np.abs(yours - right)
    several = np.count_nonzero(off > CLOSE * off.max()) > 1              # one number is a multiple of any other
    return times if _is_plain(times) or several else None


def _is_plain(times):
    return min(abs(times - k) for k in PLAIN) < CLOSE


def _words(held, found):
    """Variables first; of a chain, a = f(x), b = g(a), all, and of others all that it may be. Then what is read."""
    times = min(found.items(), key=lambda one: (not _is_plain(one[1]), not held.expressions[one[0][0]].variable))[1]
    hits = [which for which, other in found.items() if abs(other - times) < CLOSE * (1 + abs(times))]
    alone = {which[0]: held.expressions[which[0]] for which in hits if len(which) == 1}
    variables = {one.variable: one for one in alone.values() if one.variable}
    if variables:
        said = [f"{name} (line {one.node.lineno})" for name, one in [*variables.items()][:NAMED]]
        gradient = f"through {listed(said) if held.is_chain(list(variables)) else ' or, the same, '.join(said)}"
    elif alone:
        kept = [one for one in alone.values() if isinstance(one.node, READ) and one.text not in held.arguments]
        one = (kept or [one for one in alone.values() if not one.inside & alone.keys()])[0]
        same = [other for other in held.expressions if (other.text, other.line) == (one.text, one.line)]
        like_it = sorted(other.node.col_offset for other in same if other.node.lineno == one.node.lineno)
        which = f"the {COUNTED[like_it.index(one.node.col_offset)]} " if 1 < len(like_it) <= len(COUNTED) else ""
        where = f"{'in' if which else 'from'} line {one.node.lineno} ({one.line})"
        gradient = f"{'of' if isinstance(one.node, READ) else 'through'} {which}{one.text} {where}"
    else:
        both = [held.expressions[k] for k in hits[0]]    # or all places of one variable
        said = [f"through {one.variable or one.text} (line {one.node.lineno})" for one in both]
        gradient = f"through {both[0].text}" if both[0].text == both[1].text else f"{said[0]} and {said[1]}"
    if abs(times) < CLOSE:
        fault = "both are missing" if " and through " in gradient else "that is missing"
    elif abs(times + 1) < CLOSE:
        fault = "that has the wrong sign"
    else:
        fault = f"that counts {times:.4g} times"
    return Words(f"It is right but for the gradient {gradient}: {fault}.")
