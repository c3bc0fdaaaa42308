"""From a computation to a page: record it, measure it, put wrong backwards beside it, write it all down."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mini_tf.checks import check_whole
from mini_tf.cores import on_one_core
from mini_tf.errors import UserError
from mini_tf.explore.beside import bugs_beside, differences, put_right
from mini_tf.explore.gathering import Pages, as_data, bad_numbers, paths
from mini_tf.explore.readings import Reading, gradients_between_words
from mini_tf.explore.running import Run
from mini_tf.explore.slopes import measure_function, measure_loss, measure_steps
from mini_tf.files import write_text
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.program import functions_that_run
from mini_tf.layers import Layer
from mini_tf.pages import rendered
from mini_tf.types import Array, PathLike

FEW = 128                # entries measured of an array, at moments before the last
LARGE = 6e6              # letters of a page's arrays beyond which no bug is put beside them, unless it is asked for


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

    def html(self) -> str:
        """The page, as a string"""
        return rendered("explore.html.jinja", title=self.title, about=self.about, notes=self.notes, data=self.data)

    def write(self, path: PathLike) -> None:
        """Write the page, whole or not at all. Raises UserError if it cannot be written."""
        write_text(path, self.html())

    def _repr_html_(self):
        return (f'<iframe srcdoc="{escape(self.html())}" title="{escape(self.title)}" '
                'style="width: 100%; height: 800px; border: 1px solid #8884"></iframe>')  # fmt: skip


@on_one_core
def explore_model(
    read: Reading, title: str, about: str, moments: Sequence[tuple[str, dict[str, Array]]] = (),
    bugs: Sequence[str] = (), say: Callable[[str], None] = lambda what: None,
) -> Exploration:  # fmt: skip
    """The Exploration of a Reading. moments: [(label, {name: data})] of a training, the last of which the model is at

    bugs: names of planted bugs to be put beside it; by default some that matter.
    """
    pages, names, recordings = Pages(read.axes), paths(read.model), []
    for label, parameters in moments[:-1]:
        with at_moment(read.model, parameters):
            recorder = pages.record(read.run)
            measure_steps(pages.store, read.run, recorder, FEW)
            recordings.append(_model_recording(pages, recorder, label, names, read))
        say(label)
    recorder = pages.record(read.run)
    error = recorder.error
    notes, beside, descent = list(read.notes), [], []
    if error is not None:
        notes.insert(0, f"It stopped with {type(error).__name__}: {error}. The last line that ran is marked.")
    else:
        say("measuring slopes")
        measure_steps(pages.store, read.run, recorder)
        read.run()
        measure_loss(pages.store, read.model.loss, [read.batch], read.model.parameters())
        read.model.clear_gradients()
        say("planting bugs")
        another, full = lambda: _coarsely(pages, read), lambda: pages.store.letters > LARGE
        found, descent = bugs_beside(read, recorder, another, bugs, full)
        beside = [as_data(one, recorder) for one in found]
    recordings.append(_model_recording(pages, recorder, moments[-1][0] if moments else "", names, read))
    data = pages.data(
        recordings, beside=beside, descent=descent, words=read.words, asked=read.asked, kind="model"
    )  # fmt: skip
    return Exploration(title, about, data, notes + bad_numbers(pages, recorder))


@on_one_core
def explore_function(
    f: Any, inputs: Sequence[Any], name: str | None = None, options: dict[str, Any] | None = None,
    hints_only: bool = False, seed: int = 0,
) -> Exploration:  # fmt: skip
    """The Exploration of an op, a layer, or a learner's own code, with a random dy.

    options: of gradcheck, and of f by name;  hints_only: of an exercise, no line is put right
    """
    check_whole(0, seed=seed)
    options, pages = options or {}, Pages()
    run = Run(f, inputs, options, seed)

    def again():
        return pages.record(run, False, run.partners)

    recorder = pages.record(run, partners=run.partners)
    report = gradcheck(f, *inputs, name=name, seed=seed, **options)
    if hints_only:
        report.give_hints_only()
    notes, beside, targets = _notes(report, run, recorder), [], []
    if recorder.error is None:
        notes += _not_repeatable(recorder, again())
    if run.dy is not None:
        with suppress(Exception):                        # what cannot be measured, the checker has said
            found = measure_function(pages.store, run.subject, run.dy, run.gradients)
            targets = [[name, pages.store.refer(slopes)] for name, slopes in found.items()]
        with suppress(Exception):
            measure_steps(pages.store, run, recorder)
        right = None if hints_only else put_right(report, functions_that_run(run), recorder, again)
        beside = [as_data(right, recorder)] if right else []
    data = pages.data(
        [pages.recording(recorder, "", flow=[])], beside=beside, descent=[], words=[], asked=[], kind="function",
        verdict=report.verdict, checker=report.explain(), targets=targets,
    )  # fmt: skip
    about = "A function by itself has no loss: dy is random, and the gradients are the slopes of φ = Σ dy·y."
    return Exploration(report.name, about, data, notes + bad_numbers(pages, recorder))


def _notes(report, run, recorder):
    """What the checker found, and where the run stopped, in sentences. Raises UserError if there is nothing to show."""
    said = [f"The checker: {words}" + "." * (words[-1] not in ".?") for words in (*report.refusals, *report.findings)]
    error = recorder.error
    if not recorder.lines:
        reason = " ".join(said) or error or "Is its source in a file, with a line for each lambda?"
        raise UserError(f"{report.name}: no line of it could be followed. {reason}")
    if blanks := [f"d{name}" for name, gradient in run.gradients.items() if gradient is ...]:
        return [f"Still blank: {', '.join(blanks)}. The page shows how far the backward comes without."]
    if error is None or not any(line.error for line in recorder.lines):
        return said
    blanks = [words for words in said if "a blank to fill" in words]
    return [*blanks, f"It stopped with {type(error).__name__}: {error}. The last line that ran is marked."]


def _not_repeatable(recorder, again):
    """[a sentence about the first line that gave other numbers when it ran again], or []"""
    lines, _ = differences(recorder, again)
    if not lines:
        return []
    line = recorder.lines[min(lines)]
    return [f"A second run gave other numbers, from {line.frame.sheet.file}:{line.first} on. Something is drawn anew "
            "in each call: slopes and comparisons mean nothing until it is not."]  # fmt: skip


@contextmanager
def at_moment(model: Layer, parameters: dict[str, Array]) -> Iterator[None]:
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
    if recorder.error is None:
        for name, norms in gradients_between_words(read.model, read.batch, read.words):
            flow.append([name, pages.store.refer(norms)])
    return pages.recording(recorder, label, names, flow=flow)
