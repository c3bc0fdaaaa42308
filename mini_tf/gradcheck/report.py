"""What the checker found: in words, as a table, as JSON and as a page. All of them say the same sentences."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

from mini_tf.gradcheck.wording import entry, listed, number
from mini_tf.types import Array, PathLike

import numpy as np

PASS, FAIL, NOT_TESTED = "PASS", "FAIL", "NOT TESTED"
EXIT_CODES = {PASS: 0, FAIL: 1, NOT_TESTED: 2}
WRONG, RIGHT, AFTER = "WRONG", "right", "after it, not checked"          # of a step
POINTS = {"given": "", "generic": ", at a random point", "far": ", at a far point, where another branch is taken"}
BEFORE = {"now": "  now    ", "right": "  right  ", "words": "  → ", "note": "note: ", "place": "  "}      # of a Line
LINES = 12               # suspects shown at most


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
    error: float             # |yours − measured| at the worst entry, in units of the uncertainty there
    index: tuple[int, ...]   # of the worst entry: of those that are wrong, the one farthest off
    yours: float             # what backward said there
    measured: float          # what finite differences say there
    uncertainty: float
    gradient: Array = field(repr=False)                  # yours, and measured: NaN where not known
    slopes: Array = field(repr=False)
    directions: Directions | None = None
    sweep: Array | None = field(default=None, repr=False)            # differences at the worst entry, for all steps

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
        ratio = self.yours / self.measured
        if abs(ratio + 1) < 0.01:
            return "of the other sign"
        if abs(ratio) >= 10:
            return f"{abs(ratio):,.0f} times as large" + " and of the other sign" * (ratio < 0)
        percent = 100 * abs(ratio - 1)
        return f"off by {percent:,.0f} %" if percent >= 1 else f"off by {percent:.1g} %"

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
    index: tuple[int, ...]
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
    shape: tuple[int, ...]
    comparisons: list[Comparison] = field(default_factory=list)
    precision: Precision | None = None
    diagnosis: str = ""      # what is wrong, in words that hold at other points and sizes, too
    of_path: bool = False    # the words are on a path through the forward

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
    def sentence(self) -> str:
        """The verdict on this gradient, in words: what is wrong first"""
        c = self.worst
        noise = sum(c.below_noise for c in self.comparisons)
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
    """One change of the source that makes gradients right."""

    place: str               # "net.py:12"
    line: int                # 12
    before: str              # the statement now,
    after: str               # and as it would be right; "" where an exercise should not tell
    kind: str                # what kind of change it is (`explain.edits.Kind`), in words
    makes_right: list[str] = field(default_factory=list)     # names of tensors: all, unless two changes are needed


@dataclass
class Step:
    """One call inside a model, and what the check says of its backward by itself."""

    name: str
    line: str                # where it was called,
    place: str               # and where its backward is written
    status: str              # RIGHT, WRONG or AFTER
    report: "Report | None" = None                       # of the wrong one, by itself


class Line(NamedTuple):
    """A line of a report. Its kind says how it looks: finding, now, right, tensor, words, note and so on."""

    kind: str
    text: str
    about: Any = None        # the TensorReport of a tensor, the Report of a wrong step

    def __str__(self) -> str:
        return BEFORE.get(self.kind, "") + self.text


@dataclass
class Report:
    """The checker's answer for one function or object: true if every gradient passed, and every promise was kept."""

    name: str
    tensors: list[TensorReport] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)        # broken promises, a sentence each: FAIL
    refusals: list[str] = field(default_factory=list)        # what could not be judged, and what helps: NOT TESTED
    notes: list[str] = field(default_factory=list)           # what else to know
    blind: dict[str, float] = field(default_factory=dict)    # {tensor: 0 or 1} where the given point hides mistakes
    place: str = ""                                          # where the backward is written
    changes: list[Change] = field(default_factory=list)      # one that makes all right, or two that each make some
    equal: list[Change] = field(default_factory=list)        # changes in other lines that do the same
    suspects: list[str] = field(default_factory=list)        # lines on which the wrong gradients depend, at most LINES
    tried: str = ""                                          # if there is no change
    steps: list[Step] = field(default_factory=list)          # of a model: see `explain.steps`
    twins: list[str] = field(default_factory=list)           # ops whose twins ran in float32, and were compared
    doubted: ClassVar["Report | None"] = None                # the last one false in an `assert`, for pytest

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

    def __bool__(self) -> bool:
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

    def explain(self) -> str:
        """The verdict, what is wrong and how to mend it, each gradient, each broken promise, the notes"""
        at = f", backward at {self.place}" if self.place and not self.ok else ""
        return "\n  ".join([f"{self.verdict}: gradients of {self.name}{at}", *map(str, self.lines())])

    __repr__ = explain

    def lines(self) -> list[Line]:
        """All lines below the verdict; the page shows the same"""
        lines = [Line("refusal", one) for one in self.refusals] + [Line("finding", one) for one in self.findings]
        lines += [*self._of_steps(), *self._of_changes(), *self._of_tensors()]
        agree = [f"compiled twins agree, in float32: {listed(self.twins)}"] if self.twins and self.ok else []
        lines += [Line("note", note) for note in (*self.notes, *agree, *self._of_points())]
        lines += [Line("tried", self.tried)] * bool(self.tried)
        if self.suspects:
            these = "this line" if len(self.suspects) == 1 else "these lines"
            lines += [Line("tried", f"The mistake can be in {these}:"), *(Line("place", one) for one in self.suspects)]
        return lines

    def _of_steps(self) -> Iterator[Line]:
        steps, wrong = self.steps, self.wrong_step
        if wrong is None:
            if len(steps) > 1:
                yield Line("step", f"Its {len(steps)} steps are each right: the mistake is in its own lines")
            return
        yield Line("step", f"First wrong step, number {steps.index(wrong) + 1} of {len(steps)} on the way back: "
                           f"{wrong.name}, called at {wrong.line}, written at {wrong.place}")          # fmt: skip
        if wrong.report is not None:
            yield Line("report", "\n  ".join(wrong.report.explain().splitlines()[1:]), wrong.report)

    def _of_changes(self) -> Iterator[Line]:
        """The change that makes it right; of an exercise, only what kind of change, and where"""
        several = len(self.changes) > 1
        if several:
            yield Line("change", f"{len(self.changes)} changes together make it right:")
        for one in self.changes:
            names = listed([f"d{name}" for name in one.makes_right]) if several else "it"
            yield Line("change", f"One change makes {names} right, at {one.place}: {one.kind}")
            if one.after:
                yield from (Line("now", one.before), Line("right", one.after))
            else:
                yield Line("change", "(--solution shows it)")
        for one in self.equal:
            yield from (Line("change", f"The same is done by this one, at {one.place}:"), Line("right", one.after))

    def _of_tensors(self) -> Iterator[Line]:
        """Each gradient, but none behind a wrong step, where all are wrong; and words, unless one change says it all"""
        width = max((len(t.name) for t in self.tensors), default=0) + 1
        said: dict[str, TensorReport] = {}               # words: the tensor of which they were said first
        for t in [t for t in self.tensors if self.wrong_step is None or t.verdict != FAIL]:
            yield Line("tensor", f"{t.verdict:<10} d{t.name:<{width}}{t.shape}: {t.sentence}", t)
            if t.diagnosis and (t.of_path or not (self.repair and self.repair.after)):
                first = said.setdefault(t.diagnosis, t)
                yield Line("words", t.diagnosis if first is t else f"The same as for d{first.name}.", t)

    def _of_points(self) -> Iterator[str]:
        """What the given point hides, or would hide"""
        if self.blind:
            words = [f"{name} is {value:g}" for name, value in self.blind.items()]
            words = words if len(words) < 5 else [*words[:3], f"{len(words) - 3} more are 0 or 1"]
            worst = [t.worst.point for t in self.tensors if t.worst and t.worst.wrong]
            tried = any(c.point == "generic" for t in self.tensors for c in t.comparisons)
            passes = f"with these numbers, a backward that forgets {'it' if len(self.blind) == 1 else 'them'} passes"
            yield (f"your numbers hide it: {listed(words)} everywhere" if "generic" in worst else
                   f"{listed(words)} everywhere: {passes}" + "; random ones were tried, too" * tried)    # fmt: skip

    def give_hints_only(self) -> None:
        """Of an exercise: leave the solution out."""
        self.equal = []
        self.changes = [replace(change, before="", after="") for change in self.changes]
        if self.wrong_step is not None and self.wrong_step.report is not None:
            self.wrong_step.report.give_hints_only()

    def to_json(self) -> str:
        """The report as JSON: everything but the numbers of the pictures"""
        return json.dumps(self, default=in_json, indent=2, ensure_ascii=False)

    def html(self, path: PathLike) -> None:
        """Write the report as one self-contained HTML file, with its pictures."""
        from mini_tf.gradcheck.page import write_page  # here, as it needs jinja2, and a check NumPy alone

        write_page(path, [self])


def in_json(x: Any) -> dict[str, Any]:
    """What JSON has of a report and its parts: the fields, without arrays; "inf" and "nan" as strings"""
    found = {name: getattr(x, name) for name in ("verdict", "sentence") if hasattr(x, name)}
    for one in [one for one in fields(x) if one.repr]:
        value = getattr(x, one.name)
        strange = isinstance(value, float) and not np.isfinite(value)
        found["points" if one.name == "comparisons" else one.name] = str(value) if strange else value
    return found
