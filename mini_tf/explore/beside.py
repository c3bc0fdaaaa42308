"""A wrong backward beside the right one: every line and array that differs."""

import difflib
import linecache
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FunctionType

from mini_tf.errors import UserError
from mini_tf.explore.readings import Reading
from mini_tf.explore.recording import Recorder
from mini_tf.gradcheck import Report, gradcheck
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import Bug, place_of_edit, planted
from mini_tf.gradcheck.source import Unavailable, source_of
from mini_tf.layers import Layer, Parameter
from mini_tf.places import place
from mini_tf.types import Array

import numpy as np

FAMOUS = [
    "layer_norm: γ forgotten", "attention: scale forgotten in dquery", "masked_softmax: plus for minus",
    "residual_relu: pattern lost", "TransformerLayer: residual path forgotten",
    "MultiHeadAttention: value's gradient not added", "linear: W not transposed", "embedding: repeats overwritten",
    "layer_norm: both means left out", "cross_entropy: one-hot not taken off", "linear: dW is a mean",
]  # fmt: skip
SHOWN = 6                # of them, those that make a difference in this model
STEPS = 40               # of gradient descent with each,
FEWER, LARGE = 12, 300_000                               # or so many, where there are more trainable parameters


@dataclass
class Beside:
    """Another backward, and where its run differs from the page's own.

    name, about    of it;  place: (file, line) of the edit, and that line's text as it is then
    words          what the checker says
    lines          {number of a line: [(name, reference)] that differ, or None if it did not run}
    arguments      {number of a call: [(name, reference)]} of arguments that differ
    cosine         between its gradient and the right one, of all parameters together; None if it has none
    length         of its gradient, relative to that of the right one
    losses         of gradient descent with it
    error          what it raised
    """

    name: str
    about: str
    place: tuple
    edited: str
    words: list
    lines: dict
    arguments: dict
    cosine: float | None = None
    length: float | None = None
    losses: list = ()
    error: str = ""


def bug_named(name: str) -> Bug:
    """The planted bug of that name, or whose name begins so. Raises UserError, which lists those that come near."""
    found = [bug for bug in BUGS if bug.name == name] or [bug for bug in BUGS if bug.name.startswith(name)]
    if len(found) != 1:
        came = "is the beginning of several" if found else "is no planted bug"
        near = [bug.name for bug in found] or difflib.get_close_matches(name, [bug.name for bug in BUGS], 6, 0.45)
        near = near or FAMOUS
        raise UserError(
            f"the bug {name!r} {came}; did you mean one of these? All are in gradcheck/planting/bugs.py:\n  "
            + "\n  ".join(near)
        )
    return found[0]


def bugs_beside(
    read: Reading, base: Recorder, record: Callable[[], Recorder], names: Sequence[str] = (),
    full: Callable[[], bool] = lambda: False,
) -> tuple[list[Beside], list[float]]:  # fmt: skip
    """[Beside] for the bugs of these names, or for the famous ones that make a difference here.

    read      a Reading
    base      the Recorder that followed it
    record    called without arguments, gives the Recorder of another run
    full      called without arguments, True if the page should get no more
    """
    right = _gradients(read)
    chosen = [bug_named(name) for name in names] or [bug_named(name) for name in FAMOUS]
    found, descent = [], Descent(read, right)
    for bug in chosen:
        if not names and (len(found) == SHOWN or full()):
            break
        where = place_of_edit(bug)
        with planted(bug):
            recorder = record()
            edited = linecache.getline(*where).rstrip("\n")
            failed = recorder.error
            wrong, losses = (None, []) if failed else (_gradients(read), descent.losses())
        lines, arguments = differences(base, recorder)
        if names and not lines:
            raise UserError(f"the bug {bug.name!r} makes no difference here: its line does not run, or gives the same")
        if lines and (names or not failed):
            cosine = None if failed else _cosine(right, wrong)
            length = None if cosine is None else float(np.sqrt(_dot(wrong, wrong) / _dot(right, right)))
            error = f"{type(failed).__name__}: {failed}" if failed else ""
            found.append(Beside(
                bug.name, bug.about, where, edited, _words(bug), lines, arguments, cosine, length, losses, error
            ))  # fmt: skip
    return found, descent.right


def put_right(
    report: Report, functions: Sequence[FunctionType], base: Recorder, record: Callable[[], Recorder]
) -> Beside | None:
    """The Beside of a learner's backward with the changes that the Report found, of it or of its first wrong step.

    None if there are none, or if one of them is more than a part of a line. functions: those that ran
    """
    step = report.wrong_step
    changes = (report if step is None else step.report or report).changes
    if not changes:
        return None
    edits = []
    try:
        with ExitStack() as stack:
            for change in changes:                       # each in the text that the one before has left
                edits.append(_edit(change, functions))
                stack.enter_context(planted(edits[-1]))
            recorder, where = record(), (edits[0].target.__code__.co_filename, changes[0].line)
            edited = linecache.getline(*where).rstrip("\n")
    except (ValueError, SyntaxError):
        return None
    about = " ".join(dict.fromkeys(f"{change.kind[0].upper()}{change.kind[1:]}." for change in changes))
    about += f" These {len(changes)} changes together make it right." if len(changes) > 1 else ""
    return Beside("put right", about, where, edited, [], *differences(base, recorder))


def _edit(change, functions):
    """The change as it can be planted. Raises ValueError if it is not in one line of one of these functions"""
    for function in functions:
        with suppress(Unavailable):
            source = source_of(function)
            inside = source.node.lineno <= change.line <= source.node.end_lineno
            if not inside or place(source.path, change.line) != change.place:
                continue
            *above, now = source.file.lines[source.node.lineno - 1 : change.line]    # so that it is found once
            right = now.replace(change.before, "pass" if change.after.startswith("(without") else change.after)
            if right != now:
                return Bug(function, "put right", "\n".join([*above, now]), "\n".join([*above, right]))
    raise ValueError(f"{change.place} is no line that can be changed")


def differences(base: Recorder, other: Recorder) -> tuple[dict[int, list | None], dict[int, list]]:
    """(lines, arguments) of a Beside: where two recordings of the same computation differ, by call and line."""
    there = dict(_keyed_lines(other))
    lines = {}
    for number, (key, made) in enumerate(_keyed_lines(base)):
        if key not in there:
            lines[number] = None
            continue
        if other_values := _other_values(there[key], made):
            lines[number] = other_values
    frames = dict(_keyed_frames(other))
    arguments = {}
    for key, frame in _keyed_frames(base):
        if key in frames and (other_values := _other_values(frames[key].arguments, frame.arguments)):
            arguments[frame.number] = other_values
    return lines, arguments


def _other_values(other, base):
    """[(the base's name, the other's reference)] of what differs: by its place, or by name if there are not as many"""
    if len(other) == len(base):
        return [(name, ref) for (_, ref), (name, right) in zip(other, base) if ref != right]
    there = dict(other)
    return [(name, there[name]) for name, right in base if name in there and there[name] != right]


def _keyed_frames(recorder):
    """[(key, Frame)]: the function, whose method it was, and how many times it had been called before"""
    seen = {}
    for frame in recorder.frames:
        lasting = isinstance(frame.owner, (Layer, Parameter))           # a learner's object is a copy in each run
        owner = id(frame.owner) if lasting else type(frame.owner).__name__
        key = frame.written.key, owner, frame.maker and frame.maker.number
        seen[key] = seen.get(key, -1) + 1
        yield (*key, seen[key]), frame


def _keyed_lines(recorder):
    frames, seen = {frame: key for key, frame in _keyed_frames(recorder)}, {}
    for line in recorder.lines:
        key = frames[line.frame], line.first
        seen[key] = seen.get(key, -1) + 1
        yield (key, seen[key]), [(name, ref) for name, ref, _ in line.made]


def _words(bug):
    """What the checker says of the bug, on its example"""
    f, inputs, params = EXAMPLES[bug.example](np.random.default_rng(0))
    with planted(bug):
        report = gradcheck(f, *inputs, params=params, name=bug.example)
    step = report.wrong_step
    told = report if step is None else step.report or report
    first = [line.text for line in report.lines() if line.kind == "step"][:1]
    changes = [str(line) for line in told.lines() if line.kind in ("change", "now", "right")]
    words = [f"d{line.about.name}: {line.text}" for line in told.lines() if line.kind == "words"]
    return [*first, *changes, *words] or list(report.findings)


def _gradients(read):
    read.run()
    found = {name: None if p.grad is None else np.copy(p.grad) for name, p in read.model.parameters().items()}
    read.model.clear_gradients()
    return found


def _cosine(right, wrong):
    """cos of the angle between two gradients, all parameters in a row; None if one of them is not finite or 0"""
    with np.errstate(all="ignore"):
        cosine = _dot(right, wrong) / np.sqrt(_dot(right, right) * _dot(wrong, wrong))
    return float(cosine) if np.isfinite(cosine) else None


def _dot(a, b):
    """The sum of the products of two gradients' entries, {name: array}; one that is missing is 0"""
    pairs = ((a[name], b[name]) for name in a if a[name] is not None and b[name] is not None)
    return np.float64(sum(float(x.ravel().astype(float) @ y.ravel().astype(float)) for x, y in pairs))


class Descent:
    """Plain gradient descent on one text, always from the same parameters and with the same length of the first step.

    right: the losses with the right gradient
    """

    def __init__(self, read: Reading, gradients: dict[str, Array | None]):
        self.read = read
        self.start = {name: p.data for name, p in read.model.parameters().items()}
        self.steps = FEWER if read.model.parameter_count() > LARGE else STEPS
        self.rate = self._rate(gradients)
        self.right = self.losses()

    def losses(self, steps: int | None = None) -> list[float]:
        """The loss before each step, and after the last; it ends where the loss is no longer finite"""
        parameters, losses = self.read.model.parameters(), []
        try:
            for _ in range(1 + (steps or self.steps)):
                with np.errstate(all="ignore"):
                    losses.append(self.read.run())
                if not np.isfinite(losses[-1]):
                    break
                for p in parameters.values():
                    if p.trainable and p.grad is not None:
                        p.data = p.data - np.asarray(self.rate, p.data.dtype) * p.grad
        finally:
            for name, p in parameters.items():
                p.data = self.start[name]
            self.read.model.clear_gradients()
        return [loss for loss in losses if np.isfinite(loss)]

    def _rate(self, gradients):
        """A quarter of the first rate with which each of three steps brings the loss down.

        The rates that are tried begin with loss/‖gradient‖², which would bring a linear loss to 0, and are halved.
        """
        self.rate = self.read.run() / max(float(_dot(gradients, gradients)), 1e-30)
        for _ in range(20):
            losses = self.losses(3)
            if len(losses) == 4 and all(after < before for before, after in zip(losses, losses[1:])):
                break
            self.rate /= 2
        return self.rate / 4
