"""From a computation to a page: record it, measure slopes, compare other backwards, and write the page."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from mini_tf.checks import check_whole
from mini_tf.cores import on_one_core
from mini_tf.errors import UserError
from mini_tf.explore.arrays import MOST
from mini_tf.explore.checked import checked
from mini_tf.explore.comparison import Alternative, compare_bugs, compare_repair, differences
from mini_tf.explore.function_run import FunctionRun
from mini_tf.explore.page_data import PageData, alternative_data, bad_numbers, paths, with_shared_bytes, zeros_below
from mini_tf.explore.readings import Moments, Reading, gradients_between_words, parameters_set
from mini_tf.explore.recording import Recorder
from mini_tf.explore.slopes import measure_function, measure_loss, measure_steps
from mini_tf.files import write_text
from mini_tf.gradcheck import Report, Slopes, gradcheck
from mini_tf.pages import rendered
from mini_tf.types import PathLike

PAGE = Path(__file__).parent / "web" / "explore.html.jinja"
FEW = 128                # entries measured of an array, at moments before the last
ROOM = 3.3e6             # characters of the arrays that a page records: of larger models, less is shown of each array
LEAST = 256              # entries, but so many of each
LARGE = 4.5e6            # with slopes and bugs; beyond it a page gets no bug, unless it is asked for


@dataclass
class Exploration:
    """A page about a computation: `write` it, or show it as the value of a notebook's cell.

    title, about     the page's heading, and a line below it;  notes: sentences about what was left out or went wrong
    data             what the page's script reads
    """

    title: str
    about: str
    data: dict[str, Any] = field(repr=False)
    notes: list[str] = field(default_factory=list)

    def html(self) -> str:
        """The page, as a string"""
        data = with_shared_bytes(self.data)
        return rendered(PAGE, title=self.title, about=self.about, notes=self.notes, data=data)

    def write(self, path: PathLike) -> None:
        """Write the page, whole or not at all. Raises UserError if it cannot be written."""
        write_text(path, self.html())

    def _repr_html_(self):
        return (f'<iframe srcdoc="{escape(self.html())}" title="{escape(self.title)}" '
                'style="width: 100%; height: 800px; border: 1px solid #8884"></iframe>')  # fmt: skip


@on_one_core
def explore_model(
    read: Reading, title: str, about: str, moments: Moments | None = None, bugs: Sequence[str] = (),
    say: Callable[[str], None] = lambda what: None,
) -> Exploration:  # fmt: skip
    """The Exploration of a Reading. moments: of a training; the model is at the last of them

    bugs: names of the planted bugs to compare it with; by default some that matter
    say: gets the name of each step before it begins
    """
    recordings, found, descent = [], list[Alternative](), list[float]()
    *earlier, (now, _) = moments or [("", {})]
    say(f"recording: {now}" if now else "recording")
    pages, last = _recorded(read, 1 + len(earlier))
    for label, parameters in earlier:
        say(f"recording: {label}")
        with parameters_set(read.model, parameters):
            recorder = pages.record(read.run)
            measure_steps(pages.store, read.run, recorder, FEW)
            recordings.append(_model_recording(pages, recorder, label, read))
    notes = list(read.notes)
    if last.error is not None:
        notes.insert(0, _where_it_stopped(last))
    else:
        say("measuring slopes")
        measure_steps(pages.store, read.run, last)
        read.run()
        measure_loss(pages.store, read.model.loss, [read.batch], read.model.parameters())
        read.model.clear_gradients()
        say("planting bugs")
        found, descent = compare_bugs(
            read, last, lambda: _record_coarsely(pages, read), bugs, lambda: pages.store.characters > LARGE
        )
    recordings.append(_model_recording(pages, last, now, read))
    data = pages.data(
        recordings, alternatives=[alternative_data(one, last) for one in found], descent=descent, words=read.words,
        asked=read.asked, kind="model",
    )  # fmt: skip
    return Exploration(title, about, data, notes + bad_numbers(pages, last))


@on_one_core
def explore_function(
    f: Any, inputs: Sequence[Any], name: str | None = None, options: dict[str, Any] | None = None,
    hints_only: bool = False, seed: int = 0, say: Callable[[str], None] = lambda what: None,
) -> Exploration:  # fmt: skip
    """The Exploration of an op, a layer, or a learner's own code, with a random dy.

    options: of gradcheck, and of f by name;  hints_only: of an exercise, no line is corrected
    say: gets the name of each step before it begins
    """
    check_whole(0, seed=seed)
    options, pages = options or {}, PageData()
    say("checking the gradients")
    run, report = FunctionRun(f, inputs, options, seed), gradcheck(f, *inputs, name=name, seed=seed, **options)
    if run.subject is None and (not callable(f) or isinstance(f, type)):
        raise UserError(f"{report.name}: {' '.join(report.refusals)}")
    say("recording")
    recorder = pages.record(run, partners=run.partners)

    def again():
        return pages.record(run, False, run.partners)

    if hints_only:
        report.give_hints_only()
    notes, corrected, measured = _notes(report, run, recorder), None, dict[str, Slopes]()
    gradients = run.gradients                            # those of the page; each run makes others
    if recorder.error is None:
        notes += _not_repeatable(recorder, again())
    say("measuring slopes")
    if run.subject is not None and run.dy is not None:
        with suppress(Exception):                        # the report says why something cannot be measured
            measured = measure_function(pages.store, run.subject, run.dy, gradients)
        with suppress(Exception):
            measure_steps(pages.store, run, recorder)
        corrected = None if hints_only else compare_repair(report, run, recorder, again)
    sheets = {(sheet.file, sheet.first): sheet for frame in recorder.frames for sheet in [frame.written.sheet]}.values()
    data = pages.data(
        [pages.recording(recorder, "", flow=[])],
        alternatives=[alternative_data(corrected, recorder)] if corrected else [], descent=[], words=[], asked=[],
        kind="function", checker=checked(pages.store, report, gradients, measured, sheets),
    )  # fmt: skip
    about = "A function by itself has no loss: dy is random, and the gradients are the slopes of φ = Σ dy·y."
    return Exploration(report.name, about, data, notes + bad_numbers(pages, recorder))


def _notes(report: Report, run: FunctionRun, recorder: Recorder) -> list[str]:
    """What the checker found, and where the run stopped, in sentences. Raises UserError if there is nothing to show."""
    said = [f"The checker: {words}" + "." * (words[-1] not in ".?") for words in (*report.refusals, *report.findings)]
    if not recorder.lines:
        reason = " ".join(said) or recorder.error or "Is its source in a file, with a line for each lambda?"
        raise UserError(f"{report.name}: no line of it could be followed. {reason}")
    if blanks := [f"d{name}" for name, gradient in run.gradients.items() if gradient is ...]:
        return [f"Still blank: {', '.join(blanks)}. The page shows how far the backward comes without."]
    if not any(line.error for line in recorder.lines):
        return said
    return [*(words for words in said if "a blank to fill" in words), _where_it_stopped(recorder)]


def _where_it_stopped(recorder: Recorder) -> str:
    error = recorder.error
    return f"It stopped with {type(error).__name__}: {error}. The last line that ran is marked."


def _not_repeatable(recorder: Recorder, again: Recorder) -> list[str]:
    """[a sentence about the first line that gave other numbers when it ran again], or []"""
    lines, _ = differences(recorder, again)
    results = {line.frame: number for number, line in enumerate(recorder.lines) if line.frame.parent is None}
    if not lines.keys() & results.values():              # arrays that are not filled yet may differ
        return []
    line = recorder.lines[min(lines)]
    return [f"A second run gave other numbers, from {line.frame.sheet.file}:{line.first} on. If each call draws "
            "random numbers anew, slopes and comparisons mean nothing."]                   # fmt: skip


def _recorded(read: Reading, count: int) -> tuple[PageData, Recorder]:
    """A recording, and the page that it begins, with room for as many such recordings"""
    most = MOST
    while True:
        pages = PageData(read.axes, most)
        recorder = pages.record(read.run)
        size = count * pages.store.characters
        if size <= ROOM or most == LEAST:
            return pages, recorder
        most = max(LEAST, int(most * min(ROOM / size, 0.7)))


def _record_coarsely(pages: PageData, read: Reading) -> Recorder:
    pages.store.coarse = True
    try:
        return pages.record(read.run, with_parts=False)
    finally:
        pages.store.coarse = False


def _model_recording(pages: PageData, recorder: Recorder, label: str, read: Reading) -> dict[str, Any]:
    flow = [] if recorder.error else gradients_between_words(read.model, read.batch, read.words)
    references = [[name, pages.store.refer(norms)] for name, norms in flow]
    return pages.recording(recorder, label, paths(read.model), flow=references, notes=zeros_below(pages, recorder))
