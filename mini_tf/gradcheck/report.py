"""What the checker found: in words, as a table, as JSON and as a page. All of them say the same sentences."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from mini_tf.types import PathLike

import numpy as np

PASS, FAIL, NOT_TESTED = "PASS", "FAIL", "NOT TESTED"
EXIT_CODES = {PASS: 0, FAIL: 1, NOT_TESTED: 2}
WRONG, RIGHT, CONTAINS, AFTER = "WRONG", "right", "contains the wrong one", "after it, not checked"      # of a step
POINTS = {"given": "", "generic": ", at a random point", "far": ", at a far point, where another branch is taken"}
LINES = 12               # shown at most


@dataclass
class Directions:
    """A large tensor's gradient along random directions (`measure.directions`)"""

    judged: int
    wrong: int
    seen: float              # an entry that is off by more than this would have been seen

@dataclass
class Comparison:
    """One tensor's gradient compared with measured slopes, at one point."""

    point: str               # "given", "generic", or "far" if those show nothing wrong
    size: int                # entries of the tensor
    judged: int              # entries compared
    set_aside: int           # entries with a kink within the step: they have no slope
    below_noise: int         # entries whose slope is not known well enough to say anything
    wrong_entries: int       # entries that differ by more than the uncertainty
    error: float             # the worst |yours − measured|, in units of the uncertainty there
    index: tuple             # of the worst entry
    yours: float             # what backward said there
    measured: float          # what finite differences say there
    uncertainty: float
    gradient: np.ndarray = field(repr=False)             # yours, and measured: NaN where not known
    slopes: np.ndarray = field(repr=False)
    directions: Directions | None = None
    sweep: np.ndarray | None = field(default=None, repr=False)       # differences at the worst entry, for all steps

    @property
    def wrong(self) -> bool:
        return bool(self.wrong_entries or (self.directions and self.directions.wrong))

    @property
    def off(self) -> str:
        """How far the worst entry is off, in words: "off by 50 %" """
        if not np.isfinite(self.yours - self.measured):
            return "not a finite number"
        if abs(self.measured) <= 10 * self.uncertainty:
            return "where 0 is right"
        if self.yours == 0:
            return "where it is not 0"
        ratio = self.yours / self.measured
        if abs(ratio + 1) < 0.01:
            return "of the other sign"
        percent = 100 * abs(ratio - 1)
        off = f"off by {percent:.0f} %" if percent >= 1 else f"off by {percent:.1g} %"
        off = f"{abs(ratio):.3g} times as large" if abs(ratio) >= 10 else off
        return off if ratio > 0 else f"{off} and of the other sign"

    @property
    def sentence(self) -> str:
        """What is wrong here, in words"""
        where, worst = POINTS.get(self.point, ""), ""
        if self.size > 1:
            share = f"{self.wrong_entries:,} of {self.judged:,}" if self.wrong_entries < self.judged else "all"
            where, worst = f" in {share} entries{where}", f", worst at {entry(self.index)}"
        return f"wrong{where}{worst}: yours is {number(self.yours)}, measured {number(self.measured)}, {self.off}"


@dataclass
class Precision:
    """Results in float32, or on a GPU, beside the float64 gradient; error in units of what rounding may do"""

    where: str
    error: float
    index: tuple
    yours: float
    right: float

    @property
    def wrong(self) -> bool:
        return self.error > 1

    @property
    def sentence(self) -> str:
        """What is wrong here, in words"""
        times = f"{self.error:.2g} times what" if self.error < 1000 else "far more than"
        return (f"wrong in {self.where}, at {entry(self.index)}: yours is {number(self.yours, 9)}, in float64 "
                f"{number(self.right, 9)}, off by {times} rounding explains")            # fmt: skip


@dataclass
class TensorReport:
    """The verdict on one gradient."""

    name: str
    shape: tuple
    comparisons: list = field(default_factory=list)
    precision: Precision | None = None
    diagnosis: str = ""      # what is wrong, in words that hold at other points and sizes, too

    @property
    def verdict(self) -> str:
        if any(c.wrong for c in self.comparisons) or (self.precision and self.precision.wrong):
            return FAIL
        return PASS if self.judged else NOT_TESTED

    @property
    def judged(self) -> int:
        return sum(c.judged for c in self.comparisons)

    @property
    def set_aside(self) -> int:
        return sum(c.set_aside for c in self.comparisons)

    @property
    def worst(self) -> Comparison | None:
        """The Comparison to show: the first that is wrong, else the one with the largest error, or None"""
        return max(self.comparisons, key=lambda c: (c.wrong, 0 if c.wrong else c.error), default=None)

    @property
    def blind_given(self) -> bool:
        """True if the given point hides what the generic one shows"""
        return self.worst is not None and self.worst.wrong and self.worst.point == "generic"

    @property
    def sentence(self) -> str:
        """The verdict on this gradient, in words: what is wrong first"""
        c, noise = self.worst, sum(c.below_noise for c in self.comparisons)
        points = {2: " at two points", 3: " at three points"}.get(len(self.comparisons), "")
        said = f"right in {self.judged:,} entries{points}" if self.judged else "not tested"
        said = c.sentence if c and c.wrong else said
        said += f", {self.set_aside:,} set aside at a kink" if self.set_aside else ""
        said += f", {noise:,} below the noise" if noise else ""
        if c and (d := c.directions):
            said += f"; {c.judged:,} of {c.size:,} entries, and {d.judged} random directions through all: an entry " \
                    f"off by more than {d.seen:.1g} is missed once in {2**d.judged:,} times"             # fmt: skip
        if not (p := self.precision) or not p.wrong:
            return said
        return f"{said}; {p.sentence}" if c and c.wrong else f"{p.sentence}; in float64 {said}"


@dataclass
class Change:
    """One change of the source that makes gradients right.

    place, line   where: "net.py:12", 12;  before, after: the statement now, and as it would be right
    kind          what kind of change it is (`explain.edits.Kind`), in words
    makes_right   the names of the tensors that it makes right; all of them, unless two changes are needed
    """

    place: str
    line: int
    before: str
    after: str
    kind: str
    makes_right: list = field(default_factory=list)


@dataclass
class Step:
    """One call inside a model, and what the check says of its backward by itself.

    name, line, place   what was called, where, and where its backward is written
    status              RIGHT, WRONG, CONTAINS or AFTER;  report: of the wrong one, by itself
    """

    name: str
    line: str
    place: str
    status: str
    report: "Report | None" = None


@dataclass
class Report:
    """The checker's answer for one function or object: true if every gradient passed, and every promise was kept.

    findings   broken promises, a sentence each: FAIL
    refusals   what could not be judged, and the argument that helps, a sentence each: NOT TESTED
    notes      what else to know;  blind: {tensor: 0 or 1} where the given point hides mistakes
    place      where the backward is written
    changes    one Change that makes all right; or several, each of which makes some right
    equal      Changes in other lines that do the same;  tried: what was tried where there is none
    suspects   lines on which the wrong gradients depend, at most LINES;  need: what one of them would have to be
    steps      of a model: see `explain.steps`;  twins: ops whose twins ran in float32, and were compared
    """

    name: str
    tensors: list = field(default_factory=list)
    findings: list = field(default_factory=list)
    refusals: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    blind: dict = field(default_factory=dict)
    place: str = ""
    changes: list = field(default_factory=list)
    equal: list = field(default_factory=list)
    suspects: list = field(default_factory=list)
    need: str = ""
    tried: str = ""
    steps: list = field(default_factory=list)
    twins: list = field(default_factory=list)
    hints_only: bool = False                             # an exercise: the text does not give the solution away

    def tensor(self, name: str, shape: tuple[int, ...] = ()) -> TensorReport:
        """The TensorReport of that name; a new one, if there is none yet"""
        if not any(t.name == name for t in self.tensors):
            self.tensors.append(TensorReport(name, shape))
        return next(t for t in self.tensors if t.name == name)

    @property
    def verdict(self) -> str:
        verdicts = {t.verdict for t in self.tensors}
        if self.findings or FAIL in verdicts:
            return FAIL
        return NOT_TESTED if self.refusals or NOT_TESTED in verdicts or not self.tensors else PASS

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    @property
    def ok(self) -> bool:
        return self.verdict == PASS

    def __bool__(self):
        if not self.ok:
            Report.doubted = self
        return self.ok

    @property
    def repair(self) -> Change | None:
        """The one change that makes everything right, or None"""
        return self.changes[0] if len(self.changes) == 1 else None

    @property
    def wrong_step(self) -> Step | None:
        """The first wrong Step inside the function, or None"""
        return next((step for step in self.steps if step.status == WRONG), None)

    @property
    def judged(self) -> int:
        return sum(t.judged for t in self.tensors)

    @property
    def worst(self) -> TensorReport | None:
        """The TensorReport with the largest error, or None"""
        return max(self.tensors, key=lambda t: t.worst.error if t.worst else 0, default=None)

    def explain(self) -> str:
        """The verdict, what is wrong and how to mend it, each gradient, each broken promise, the notes"""
        at = f", backward at {self.place}" if self.place and not self.ok else ""
        lines = [f"{self.verdict}: gradients of {self.name}{at}"]
        lines += [*self.refusals, *self.findings, *self.about_steps(), *self.about_changes()]
        width = max((len(t.name) for t in self.tensors), default=0) + 1
        for t in [t for t in self.tensors if self.wrong_step is None or t.verdict != FAIL]:    # after it, all are wrong
            lines.append(f"{t.verdict:<10} d{t.name:<{width}}{t.shape}: {t.sentence}")
            lines += [f"  → {words}"] if (words := self.about_diagnosis(t)) else []
        lines += [f"note: {note}" for note in self.about_notes()]
        return "\n  ".join([*lines, *self.about_suspects()])

    __str__ = __repr__ = explain

    def about_changes(self) -> list[str]:
        """The change that makes it right, in lines; of an exercise, only what kind of change, and where"""
        several = len(self.changes) > 1
        lines = [f"{len(self.changes)} changes together make it right:"] if several else []
        for one in self.changes:
            names = listed([f"d{name}" for name in one.makes_right]) if several else "it"
            edit = [f"  now    {one.before}", f"  right  {one.after}"]
            lines.append(f"One change makes {names} right, at {one.place}: {one.kind}")
            lines += ["  (--solution shows it)"] if self.hints_only else edit
        for one in self.equal:
            lines += [f"The same is done by this one, at {one.place}:", f"  right  {one.after}"]
        return lines

    def about_steps(self, with_report: bool = True) -> list[str]:
        """What there is to say of the steps of a model; with the wrong step's own report, or without"""
        steps, wrong = self.steps, self.wrong_step
        if wrong is None:
            return [f"Its {len(steps)} steps are each right: the mistake is in its own lines"] if len(steps) > 1 else []
        number = steps.index(wrong) + 1
        lines = [f"First wrong step, number {number} of {len(steps)} on the way back: {wrong.name}, called at "
                 f"{wrong.line}, written at {wrong.place}"]              # fmt: skip
        if with_report and wrong.report is not None:
            lines += wrong.report.explain().splitlines()[1:]
        around = dict.fromkeys(s.name for s in steps if s.status == CONTAINS)
        after = sum(s.status == AFTER for s in steps)
        later = [f"around it {', '.join(around)}"] * bool(around) + [f"{after} after it, not checked"] * bool(after)
        return [*lines, f"later steps: {'; '.join(later)}"] if later else lines

    def about_diagnosis(self, t: TensorReport) -> str:
        """What is wrong with one gradient; where it is the same as for another, only that; "" beside the one change"""
        if not t.diagnosis or (self.repair is not None and not self.hints_only):
            return ""
        first = next(other for other in self.tensors if other.diagnosis == t.diagnosis)
        return t.diagnosis if first is t else f"The same as for d{first.name}."

    def about_notes(self) -> list[str]:
        """The notes; that twins agree; what the given point hides, or would hide"""
        notes, blind = [*self.notes], self.blind
        if self.twins and self.ok:
            twins, agree = ("twin", "agrees") if len(self.twins) == 1 else ("twins", "agree")
            notes.append(f"the {twins} of {listed(self.twins)} {agree}, in float32")
        if blind and any(t.blind_given for t in self.tensors):
            notes.append(f"your numbers hide it: {everywhere(blind)}")
        elif blind:
            them = "it" if len(blind) == 1 else "them"
            tried = any(c.point == "generic" for t in self.tensors for c in t.comparisons)
            notes.append(f"{everywhere(blind)}: with these numbers, a backward that forgets {them} passes; "
                         + ("random ones were tried, too" if tried else f"give {them} others"))
        return notes

    def about_suspects(self) -> list[str]:
        """The lines on which the wrong gradients depend, and what was tried there"""
        these = "this line" if len(self.suspects) == 1 else "these lines"
        lines = [f"The mistake can be in {these}:", *(f"  {line}" for line in self.suspects)] if self.suspects else []
        return [line for line in (self.tried, *lines, self.need) if line]

    def give_hints_only(self) -> None:
        """Of an exercise: leave the solution out."""
        self.hints_only, self.equal, self.need = True, [], ""
        self.changes = [replace(change, before="", after="") for change in self.changes]
        if self.wrong_step is not None and self.wrong_step.report is not None:
            self.wrong_step.report.give_hints_only()

    def as_dict(self) -> dict[str, Any]:
        """What `to_json` writes: JSON's types only, "inf" and "nan" as strings"""
        tensors = [{"name": t.name, "shape": t.shape, "verdict": t.verdict, "sentence": t.sentence,
                    "diagnosis": t.diagnosis, "points": t.comparisons, "precision": t.precision} for t in self.tensors]
        return _plain({"name": self.name, "verdict": self.verdict} | vars(self) | {"tensors": tensors})

    def to_json(self) -> str:
        """The report as JSON: everything but the numbers of the pictures"""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def html(self, path: PathLike) -> None:
        """Write the report as one self-contained HTML file, with its pictures."""
        from mini_tf.gradcheck.page import write_page  # here, as a check needs NumPy alone

        write_page(path, [self])


Report.doubted = None    # the last one that was false in an `if` or an `assert`: pytest shows it


def entry(index: tuple[int, ...]) -> str:
    """The index of an entry as the report shows it: [0, 3]"""
    return f"[{', '.join(map(str, index))}]"


def number(x: float, digits: int = 6) -> str:
    """A number as the report shows it, and never -0"""
    return f"{x + 0.0:.{digits}g}"


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def everywhere(blind: dict[str, float]) -> str:
    """{"gamma": 1.0, "beta": 0.0} in words"""
    words = [f"{name} is {value:g}" for name, value in blind.items()]
    few = words if len(words) < 5 else [*words[:3], f"{len(words) - 3} more are 0 or 1"]
    return listed(few) + " everywhere"


def _plain(value):
    """In JSON's types: of a Comparison, say, its numbers without the arrays"""
    if isinstance(value, Report):
        return value.as_dict()
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value) if one.repr}
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
