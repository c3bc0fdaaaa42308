"""Another backward compared with the page's own, wrong with right: every line and array that differs."""

import difflib
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mini_tf.errors import UserError
from mini_tf.explore.arrays import Reference
from mini_tf.explore.checked import Sentence, on_the_mistake, sentences
from mini_tf.explore.readings import Reading, parameters_set
from mini_tf.explore.recording import Frame, Recorder
from mini_tf.gradcheck import Report, gradcheck
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.gradcheck.planting.editing import Bug, planted, repaired
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
SHOWN = 6                # of these bugs: the first that make a difference in this model
NAMES = {"relu": "ReLU", "gelu": "GELU", "lstm": "LSTM", "gru": "GRU", "rnn": "RNN", "mse": "MSE"}
STEPS = 40               # of gradient descent with each,
FEWER, LARGE = 12, 300_000                               # or so many, where there are more trainable parameters

Lines = dict[int, list[tuple[str, Reference]] | None]
Arguments = dict[int, list[tuple[str, Reference]]]
Gradients = dict[str, Array | None]


@dataclass
class Alternative:
    """Another backward, and where its run differs from the page's own.

    name, title    of it, as a bug is called and in words;  about: what is wrong
    file, line     of the edit;  edited: that line as it is then
    lines          {number of a line: [(name, reference)] that differ, or None if it did not run}
    arguments      {number of a call: [(name, reference)]} of arguments that differ
    error          what it raised
    words          what the checker says, as Sentences
    cosine         between its gradient and the right one, of all parameters together; None if it has none
    length         of its gradient, relative to that of the right one
    losses         of gradient descent with it
    """

    name: str
    title: str
    about: str
    file: str
    line: int
    edited: str
    lines: Lines
    arguments: Arguments
    error: str = ""
    words: list[Sentence] = field(default_factory=list)
    cosine: float | None = None
    length: float | None = None
    losses: list[float] = field(default_factory=list)


def bug_named(name: str) -> Bug:
    """The planted bug of that name, or whose name begins so. Raises UserError, which lists similar names."""
    found = [bug for bug in BUGS if bug.name == name] or [bug for bug in BUGS if bug.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    what = "is the beginning of several" if found else "is no planted bug"
    near = [bug.name for bug in found] or difflib.get_close_matches(name, [bug.name for bug in BUGS], 6, 0.45) or FAMOUS
    raise UserError(f"the bug {name!r} {what}; did you mean one of these? "
                    "All are in gradcheck/planting/bugs.py:\n  " + "\n  ".join(near))                # fmt: skip


def compare_bugs(
    read: Reading, base: Recorder, record: Callable[[], Recorder], names: Sequence[str] = (),
    full: Callable[[], bool] = lambda: False,
) -> tuple[list[Alternative], list[float]]:  # fmt: skip
    """([Alternative] for the bugs of these names, or for famous ones that make a difference here; the right losses)

    base      the Recorder of the right backward;  record() gives that of another run
    full()    True when the page should get no more
    """
    right, found = _gradients(read), list[Alternative]()
    descent = Descent(read, right)
    for bug in map(bug_named, names or FAMOUS):
        if not names and (len(found) == SHOWN or full()):
            break
        with planted(bug) as where:
            other = _alternative(bug.name, bug.about, where, base, record(), title_of(bug))
            wrong, other.losses = ({}, []) if other.error else (_gradients(read), descent.losses())
        if names and not other.lines:
            raise UserError(f"the bug {bug.name!r} makes no difference here: its line does not run, or gives the same")
        if other.lines and (names or not other.error):
            other.words, other.cosine = _words(bug), _cosine(right, wrong)
            other.length = None if other.cosine is None else float(np.sqrt(_dot(wrong, wrong) / _dot(right, right)))
            found.append(other)
    return found, descent.right


def compare_repair(
    report: Report, run: Callable[[], Any], base: Recorder, record: Callable[[], Recorder]
) -> Alternative | None:
    """The backward that run() calls with the changes that the Report found, in it or in its first wrong step.

    None if it found none, or if one of them cannot be made within a line.
    """
    changes = on_the_mistake(report).changes
    if not changes:
        return None
    about = " ".join(dict.fromkeys(f"{change.kind[0].upper()}{change.kind[1:]}." for change in changes))
    about += f" These {len(changes)} changes together make it right." if len(changes) > 1 else ""
    try:
        with repaired(changes, run) as where:
            return _alternative("corrected", about, where, base, record(), "Put right")
    except (ValueError, SyntaxError):
        return None


def title_of(bug: Bug) -> str:
    """ "Layer norm: dx leaves out γ": where it is, and the first clause of what it is about, or what its name says"""
    where, _, what = bug.name.partition(": ")
    about = re.split(r"[.;:](?:\s|$)", bug.about)[0] or what
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", where).replace("Multi Head", "Multi-Head").replace("_", " ").split()
    where = " ".join(NAMES.get(word, word.lower() if word.istitle() else word) for word in words)
    about = about[0].lower() + about[1:] if about[1:2].islower() else about
    return f"{where[0].upper()}{where[1:]}: {about}"


def _alternative(
    name: str, about: str, where: tuple[str, int], base: Recorder, other: Recorder, title: str
) -> Alternative:  # fmt: skip
    file, _, line = place(*where).rpartition(":")
    error = "" if other.error is None else f"{type(other.error).__name__}: {other.error}"
    edited = linecache.getline(*where).rstrip("\n")
    return Alternative(name, title, about, file, int(line), edited, *differences(base, other), error)


def differences(base: Recorder, other: Recorder) -> tuple[Lines, Arguments]:
    """(lines, arguments) of an Alternative: where two recordings of the same computation differ, by call and line."""
    other_lines, other_frames = dict(_keyed_lines(other)), dict(_keyed_frames(other))
    lines: Lines = {}
    for number, (key, made) in enumerate(_keyed_lines(base)):
        changed = _changed(made, other_lines[key]) if key in other_lines else None
        if changed != []:
            lines[number] = changed
    arguments = {
        frame.number: changed for key, frame in _keyed_frames(base)
        if key in other_frames and (changed := _changed(frame.arguments, other_frames[key].arguments))
    }  # fmt: skip
    return lines, arguments


def _changed(base: list[tuple[str, Reference]], other: list[tuple[str, Reference]]) -> list[tuple[str, Reference]]:
    """[(the base's name, the other's reference)] of what differs; paired by position, or by name if one has more"""
    if len(other) == len(base):
        return [(name, ref) for (name, right), (_, ref) in zip(base, other) if ref != right]
    by_name = dict(other)
    return [(name, by_name[name]) for name, right in base if name in by_name and by_name[name] != right]


def _keyed_frames(recorder: Recorder) -> Iterator[tuple[Any, Frame]]:
    """(key, Frame): the function, whose method it was, and how many times it had been called before"""
    seen: dict[Any, int] = {}
    for frame in recorder.frames:
        lasting = isinstance(frame.owner, (Layer, Parameter))           # a learner's object is a copy in each run
        owner = id(frame.owner) if lasting else type(frame.owner).__name__
        key = frame.written.key, owner, frame.maker and frame.maker.number
        seen[key] = seen.get(key, -1) + 1
        yield (*key, seen[key]), frame


def _keyed_lines(recorder: Recorder) -> Iterator[tuple[Any, list[tuple[str, Reference]]]]:
    keys, seen = {frame: key for key, frame in _keyed_frames(recorder)}, dict[Any, int]()
    for line in recorder.lines:
        key = keys[line.frame], line.first
        seen[key] = seen.get(key, -1) + 1
        yield (key, seen[key]), [(name, ref) for name, ref, _ in line.made]


def _words(bug: Bug) -> list[Sentence]:
    """What the checker says of the bug, on its example"""
    f, inputs, params = EXAMPLES[bug.example](np.random.default_rng(0))
    with planted(bug):
        report = gradcheck(f, *inputs, params=params, name=bug.example)
    wanted = "finding", "change", "now", "right", "words"
    return [one for one in sentences(on_the_mistake(report)) if one["kind"] in wanted]


def _gradients(read: Reading) -> Gradients:
    read.run()
    found = {name: None if p.grad is None else np.copy(p.grad) for name, p in read.model.parameters().items()}
    read.model.clear_gradients()
    return found


def _cosine(right: Gradients, wrong: Gradients) -> float | None:
    """cos of the angle between two gradients, all parameters in a row; None if one of them is not finite or 0"""
    with np.errstate(all="ignore"):
        cosine = _dot(right, wrong) / np.sqrt(_dot(right, right) * _dot(wrong, wrong))
    return float(cosine) if np.isfinite(cosine) else None


def _dot(a: Gradients, b: Gradients) -> np.float64:
    """The sum of the products of two gradients' entries, {name: array}; one that is missing is 0"""
    pairs = ((x, b.get(name)) for name, x in a.items())
    products = (x.ravel().astype(float) @ y.ravel().astype(float) for x, y in pairs if x is not None and y is not None)
    return np.float64(sum(products))


class Descent:
    """Plain gradient descent on one text, always from the same parameters and at the same learning rate.

    right: the losses with the right gradient
    """

    def __init__(self, read: Reading, gradients: Gradients):
        self.read = read
        self.start = {name: p.data for name, p in read.model.parameters().items()}
        self.steps = FEWER if read.model.parameter_count() > LARGE else STEPS
        self.rate = self._rate(gradients)
        self.right = self.losses()

    def losses(self, steps: int | None = None) -> list[float]:
        """The loss before each step, and after the last, as long as it is finite"""
        model, losses = self.read.model, []
        with parameters_set(model, self.start), np.errstate(all="ignore"):
            for _ in range(1 + (steps or self.steps)):
                if not np.isfinite(loss := self.read.run()):
                    break
                losses.append(loss)
                for p in model.parameters().values():
                    if p.trainable and p.grad is not None:
                        p.data = p.data - np.asarray(self.rate, p.data.dtype) * p.grad
        model.clear_gradients()
        return losses

    def _rate(self, gradients: Gradients) -> float:
        """A quarter of the first learning rate at which each of three steps lowers the loss.

        Tried are loss/‖gradient‖², which would bring a linear loss to 0, half of it, a quarter, and so on.
        """
        self.rate = self.read.run() / max(float(_dot(gradients, gradients)), 1e-30)
        for _ in range(20):
            losses = self.losses(3)
            if len(losses) == 4 and all(after < before for before, after in zip(losses, losses[1:])):
                break
            self.rate /= 2
        return self.rate / 4
