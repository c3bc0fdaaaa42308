"""From a computation to a page: record it, measure it, put wrong backwards beside it, write it all down."""

import copy
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import mini_tf
from mini_tf.errors import UserError
from mini_tf.explore.arrays import Store
from mini_tf.explore.beside import bugs_beside, differences, put_right
from mini_tf.explore.readings import gradients_between_words
from mini_tf.explore.recording import Recorder
from mini_tf.explore.slopes import measure_function, measure_loss, measure_steps
from mini_tf.files import write_text
from mini_tf.gradcheck.check import gradcheck
from mini_tf.gradcheck.measuring.points import random_dy
from mini_tf.gradcheck.measuring.styles import Pair
from mini_tf.gradcheck.measuring.subject import Subject
from mini_tf.gradcheck.reasons.theirs import is_their_file
from mini_tf.kernels import reference_only
from mini_tf.layers import Layer, Parameter
from mini_tf.pages import highlighted, rendered
from mini_tf.trace import place

import numpy as np

ROOT = Path(mini_tf.__file__).parent
READ = {ROOT / folder for folder in ("ops", "layers", "models", "experiment")}
FEW = 128                # entries measured of an array, at moments before the last
LARGE = 6e6              # letters of a page's arrays beyond which no bug is put beside them, unless it is asked for
NOT_READ = {ROOT / "ops" / "op.py", ROOT / "ops" / "shapes.py", ROOT / "models" / "options.py"}


def follows(code):
    """True for the code of ops, layers and models, and for the user's own"""
    path = Path(code.co_filename)
    return (path.parent in READ and path not in NOT_READ) or (path not in NOT_READ and is_their_file(code.co_filename))


@dataclass
class Exploration:
    """A page about a computation: `write` it, or show it as the value of a notebook's cell.

    title, about     the page's heading, and a line below it;  notes: sentences about what was left out or went wrong
    data             what the page's script reads
    """

    title: str
    about: str
    data: dict = field(repr=False)
    notes: list = field(default_factory=list)

    def html(self):
        """The page, as a string"""
        return rendered("explore.html.jinja", title=self.title, about=self.about, notes=self.notes, data=self.data)

    def write(self, path):
        """Write the page, whole or not at all. Raises UserError if it cannot be written."""
        try:
            write_text(path, self.html())
        except OSError as error:
            raise UserError(f"{path} cannot be written ({error.strerror}); choose another file") from error

    def _repr_html_(self):
        return (f'<iframe srcdoc="{escape(self.html())}" title="{escape(self.title)}" '
                'style="width: 100%; height: 800px; border: 1px solid #8884"></iframe>')  # fmt: skip


class Pages:
    """Gathers the data of a page: sheets, arrays and recordings."""

    def __init__(self, axes=None):
        self.store, self.sheets, self.numbers = Store(axes), [], {}

    def record(self, run, with_parts=True, partners=None):
        """The Recorder that has followed run(on_backward). partners: as for Recorder"""
        recorder = Recorder(self.store, follows, with_parts, partners)
        with reference_only(), np.errstate(all="ignore"):
            try:
                with recorder.on():
                    run(recorder.goes_back)
            except Exception as error:
                recorder.error = error
        return recorder

    def recording(self, recorder, label, names=None, **more):
        """What the page holds of a recording: its calls and lines. names: {id of a layer: its path in the model}"""
        names, kept = names or {}, self._kept(recorder)
        shown = {frame.maker.number for frame in recorder.frames if frame.number in kept and frame.maker} | kept
        frames = [
            {
                "sheet": self._sheet(frame.written) if frame.number in shown else None,
                "parent": frame.parent and frame.parent.number, "line": frame.line,
                "back": frame.is_backward, "maker": frame.maker and frame.maker.number,
                "at": names.get(id(frame.owner), ""), "name": frame.written.name, "arguments": frame.arguments,
                "error": frame.error, "kept": frame.number in kept,
            }
            for frame in recorder.frames
        ]  # fmt: skip
        lines = [
            {"frame": line.frame.number, "first": line.first, "last": line.last, "made": self._made(line)}
            | ({"error": line.error} if line.error else {})
            for line in recorder.lines if line.frame.number in kept
        ]  # fmt: skip
        failed = next((line.error for line in recorder.lines if line.error), "") if hasattr(recorder, "error") else ""
        return {"label": label, "frames": frames, "lines": lines, "stopped": failed} | more

    def _made(self, line):
        """[[name, reference, parts, slopes]] of a line, the last only of a gradient that they disagree with"""
        found = []
        for name, ref, parts in line.made:
            own = [measured for number, n, measured in self.store.disagreeing if (number, n) == (ref, name)]
            found.append([name, ref, parts, own[-1]] if own and line.frame.is_backward else [name, ref, parts])
        return found

    @staticmethod
    def _kept(recorder):
        """Numbers of the calls that made an array, failed, or have such calls inside"""
        kept = set()
        for line in recorder.lines:
            if line.error or any(isinstance(ref, int) for _, ref, _ in line.made):
                frame = line.frame
                while frame is not None and frame.number not in kept:
                    kept.add(frame.number)
                    frame = frame.parent
        return kept

    def _sheet(self, written):
        sheet = written.sheet
        key = sheet.path, sheet.first
        if key not in self.numbers:
            self.numbers[key] = len(self.sheets)
            self.sheets.append({
                "title": sheet.title, "file": sheet.file, "first": sheet.first, "formula": sheet.formula,
                "lines": highlighted("\n".join(sheet.source)), "doc": sheet.docstring,
                "op": Path(sheet.path).parent == ROOT / "ops",
            })  # fmt: skip
        return self.numbers[key]

    def data(self, recordings, **more):
        """All that the page's script reads."""
        axes = self.store.axes
        labels = {kind: names for kind, names in axes.labels.items() if kind != "example"}
        return {"sheets": self.sheets, "arrays": self.store.arrays, "recordings": recordings, "labels": labels} | more


def explore_model(read, title, about, moments=(), bugs=(), with_bugs=True, update=lambda done, what: None):
    """The Exploration of a Reading. moments: [(label, {name: data})] of a training, the last of which the model is at

    bugs: names of planted bugs to be put beside it; by default some that matter.
    """
    pages, names, recordings = Pages(read.axes), paths(read.model), []
    for label, parameters in moments[:-1]:
        with at_moment(read.model, parameters):
            recorder = pages.record(read.run)
            measure_steps(pages.store, read.run, recorder, FEW)
            recordings.append(_model_recording(pages, recorder, label, names, read))
        update(1, label)
    recorder = pages.record(read.run)
    error = getattr(recorder, "error", None)
    notes, beside, descent = list(read.notes), [], []
    if error is not None:
        notes.insert(0, f"It stopped with {type(error).__name__}: {error}. The last line that ran is marked.")
    else:
        update(1, "measuring slopes")
        measure_steps(pages.store, read.run, recorder)
        read.run()
        measure_loss(pages.store, read.model.loss, [read.batch], read.model.parameters())
        read.model.clear_gradients()
        if with_bugs or bugs:
            update(1, "planting bugs")
            another, full = lambda: _coarsely(pages, read), lambda: pages.store.letters > LARGE
            found, descent = bugs_beside(read, recorder, another, bugs, full)
            beside = [as_data(one, recorder) for one in found]
    recordings.append(_model_recording(pages, recorder, moments[-1][0] if moments else "", names, read))
    data = pages.data(
        recordings, beside=beside, descent=descent, words=read.words, asked=read.asked, kind="model"
    )  # fmt: skip
    return Exploration(title, about, data, notes + bad_numbers(pages, recorder))


def explore_function(f, inputs, name=None, params=None, hints_only=None, seed=0):
    """The Exploration of y, backward = f(*inputs), with a random dy: an op, a layer, or a learner's own code.

    hints_only: of an exercise, the lines that its learner was given: no line is put right
    """
    subject, pages = Subject(f, inputs, params), Pages()
    rng, seen = np.random.default_rng((seed, 1)), {}

    def run(on_backward):
        seen.pop("gradients", None)
        for p in subject.params.values():
            p.grad = None
        y, backward = subject.f(*copy.deepcopy(list(inputs)))
        on_backward()
        dy = seen.setdefault("dy", random_dy(y, rng).astype(y.dtype) if np.ndim(y) else 1.0)
        seen["gradients"] = subject.named(backward(np.copy(dy) if np.ndim(dy) else dy))

    partners = {}
    if isinstance(subject.f, Pair):
        forward, backward = subject.f.written_forward, subject.f.written_backward
        partners = {backward.__name__: (forward.__name__,)}
    recorder = pages.record(run, partners=partners)
    error, beside, targets = getattr(recorder, "error", None), [], []
    report = gradcheck(f, *inputs, params=params, name=name, seed=seed)
    if hints_only is not None:
        report.give_hints_only(hints_only)
    stopped = error is not None and any(line.error for line in recorder.lines)
    notes = [] if stopped else [f"{finding[0].upper()}{finding[1:]}." for finding in report.findings]
    if error is not None and not recorder.lines:
        raise UserError(f"{report.name}: no line of it could be followed. {' '.join(notes) or error}")
    if stopped:
        notes.append(f"It stopped with {type(error).__name__}: {error}. The last line that ran is marked.")
    elif error is None:
        notes += _not_repeatable(recorder, pages.record(run, False, partners))
    if "dy" in seen:
        with suppress(Exception):                        # what cannot be measured, the checker has said
            found = measure_function(pages.store, f, inputs, seen["dy"], seen.get("gradients", {}))
            targets = [[name, pages.store.refer(slopes)] for name, slopes in found.items()]
        with suppress(Exception):
            measure_steps(pages.store, lambda: run(lambda: None), recorder)
        if report.repair and hints_only is None:
            right = put_right(report, subject, recorder, lambda: pages.record(run, False, partners))
            beside = [right] if right else []
    name = report.name
    data = pages.data(
        [pages.recording(recorder, "", flow=[])], beside=[as_data(one, recorder) for one in beside], descent=[],
        words=[], asked=[], kind="function", verdict=report.verdict, checker=report.explain(), targets=targets,
    )  # fmt: skip
    about = "A function by itself has no loss: dy is random, and the gradients are the slopes of φ = Σ dy·y."
    return Exploration(name, about, data, notes + bad_numbers(pages, recorder))


def _not_repeatable(recorder, again):
    """[a sentence about the first line that gave other numbers when it ran again], or []"""
    lines, _ = differences(recorder, again)
    if not lines:
        return []
    line = recorder.lines[min(lines)]
    return [f"A second run gave other numbers, from {line.frame.sheet.file}:{line.first} on. Something is drawn anew "
            "in each call: slopes and comparisons mean nothing until it is not."]  # fmt: skip


def bad_numbers(pages, recorder):
    """[a sentence about the first line that made a NaN or an infinity], or []"""
    for line in recorder.lines:
        for name, ref, _ in line.made:
            if isinstance(ref, int) and pages.store.arrays[ref]["bad"]:
                where = f"{line.frame.sheet.file}:{line.first}"
                bad = pages.store.arrays[ref]["bad"]
                return [f"The first array that is not finite is {name}, at {where}: {bad} of its entries are NaN or ∞."]
    return []


@contextmanager
def at_moment(model, parameters):
    """Inside the block, the model has these parameters, {name: data}."""
    before = {name: p.data for name, p in model.parameters().items()}
    try:
        for name, p in model.parameters().items():
            p.data = parameters[name]
        yield
    finally:
        for name, p in model.parameters().items():
            p.data = before[name]


def _coarsely(pages, read):
    pages.store.coarse = True
    try:
        return pages.record(read.run, with_parts=False)
    finally:
        pages.store.coarse = False


def _model_recording(pages, recorder, label, names, read):
    flow = []
    if getattr(recorder, "error", None) is None:
        for name, norms in gradients_between_words(read.model, read.batch, read.words):
            flow.append([name, pages.store.refer(norms)])
    return pages.recording(recorder, label, names, flow=flow)


def as_data(beside, recorder):
    """What the page holds of a Beside; its lines are numbered as the recording's, in which some are left out."""
    kept = Pages._kept(recorder)
    numbers, count = {}, 0
    for number, line in enumerate(recorder.lines):
        if line.frame.number in kept:
            numbers[number], count = count, count + 1
    file, _, line = place(*beside.place).rpartition(":")
    return {
        "name": beside.name, "about": beside.about, "file": file, "line": int(line),
        "edited": highlighted(beside.edited)[0] if beside.edited else "", "words": beside.words,
        "lines": {numbers[n]: made for n, made in beside.lines.items() if n in numbers},
        "arguments": beside.arguments, "cosine": beside.cosine, "losses": beside.losses, "error": beside.error,
    }  # fmt: skip


def paths(layer, path=""):
    """{id: path} of a layer and of all layers and parameters inside it: "trunk.layers.0.attention.query" """
    found = {id(layer): path}
    for name, value in vars(layer).items():
        members = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
        for number, member in members:
            if isinstance(member, (Layer, Parameter)):
                own = name if number is None else f"{name}.{number}"
                found = paths(member, f"{path}.{own}" if path else own) | found      # the first path of several stays
    return found
