"""What the checker found: in words, as a table, as JSON and as a page."""

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mini_tf.gradcheck.verdicts import FAIL, NOT_TESTED, PASS, STYLES, WRONG, listed, written
from mini_tf.types import PathLike

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

IS_MISSING = re.compile(r"(that is|both are) missing\.$")
POINTS = {"given": "", "generic": ", at the generic point", "far": ", at a far point"}


@dataclass
class Directions:
    """A large tensor's gradient along random directions (`measuring.directions`)."""

    judged: int
    wrong: int
    seen: float              # an entry that is off by more than this would have been seen

    @property
    def confidence(self) -> float:
        return 1 - 0.5**self.judged


@dataclass
class Comparison:
    """One tensor's gradient compared with measured slopes, at one point.

    error is the worst |your backward − measured|, in units of the measurement's own uncertainty there; above 1 is
    wrong.
    """

    point: str               # "given", "generic", or "far" if those show nothing wrong
    size: int                # entries of the tensor
    judged: int              # entries compared
    set_aside: int           # entries with a kink within the step: they have no slope
    below_noise: int         # entries whose slope is not known well enough to say anything
    wrong_entries: int       # entries that differ by more than the uncertainty
    error: float
    index: tuple             # of the worst entry
    yours: float             # what backward said there
    measured: float          # what finite differences say there
    uncertainty: float
    errors: np.ndarray = field(repr=False)               # of all entries, NaN where not judged
    directions: Directions | None = None
    sweep: np.ndarray | None = field(default=None, repr=False)       # D(h) at the worst entry, for the steps of SWEEP

    @property
    def wrong(self) -> bool:
        return bool(self.wrong_entries or (self.directions and self.directions.wrong))

    @property
    def off(self) -> str:
        """How far the worst entry is off, relative to the measured one: ", off by 50 %"."""
        error = abs(self.yours - self.measured)
        if not np.isfinite(error):
            return ""
        if abs(self.measured) <= 10 * self.uncertainty:
            return ", where 0 is right"
        relative = error / abs(self.measured)
        if relative >= 10:
            sign = " and of the other sign" if self.yours * self.measured < 0 else ""
            return f", {abs(self.yours / self.measured):.3g} times as large{sign}"
        percent = f"{100 * relative:.0f}" if relative >= 0.01 else f"{100 * relative:.1g}"
        return f", off by {percent} %"


@dataclass
class Precision:
    """Results in float32, or on a GPU, beside the float64 gradient.

    error is in units of the error budget; above 1 is wrong.
    """

    where: str
    error: float
    index: tuple
    yours: float
    right: float

    @property
    def wrong(self) -> bool:
        return self.error > 1


@dataclass
class TensorReport:
    """The verdict on one gradient."""

    name: str
    shape: tuple
    comparisons: list = field(default_factory=list)
    precision: Precision | None = None
    diagnosis: str = ""      # what is wrong, in words, where a pattern fits: only what was measured
    perhaps: str = ""        # what may be the reason

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
    def below_noise(self) -> int:
        return sum(c.below_noise for c in self.comparisons)

    @property
    def wrong(self) -> int:
        return sum(c.wrong_entries for c in self.comparisons)

    @property
    def error(self) -> float:
        return max((c.error for c in self.comparisons), default=0.0)

    @property
    def worst(self) -> Comparison | None:
        """The Comparison with the largest error, or None."""
        return max(self.comparisons, key=lambda c: c.error, default=None)

    @property
    def blind_given(self) -> bool:
        """True if the point given hides what the generic one shows."""
        return [c.point for c in self.comparisons if c.wrong] == ["generic"]


@dataclass
class Report:
    """The checker's answer for one function: true when every gradient passed and every promise was kept."""

    name: str
    tensors: list = field(default_factory=list)
    findings: list = field(default_factory=list)         # broken promises of the contract, a sentence each
    notes: list = field(default_factory=list)            # what else to know, a sentence each
    blind: dict = field(default_factory=dict)            # {tensor: 0 or 1} where the point given hides mistakes
    place: str = ""                                      # where the backward is written
    inside: str = ""                                     # which of the backward's own variables are right
    suspects: list = field(default_factory=list)         # the lines of the backward that may be wrong
    suspects_are_sharp: bool = False                     # no right gradient comes from them
    repair: list = field(default_factory=list)           # [place, what is wrong, the line, the line put right]
    other_repair: list = field(default_factory=list)     # another one that does the same, in another line
    repair_in_part: list = field(default_factory=list)   # the same, of a change that makes only some gradients right:
    made_right: list = field(default_factory=list)       # those of these tensors
    repairs_together: list = field(default_factory=list)                 # several changes that make all right together
    steps: list = field(default_factory=list)            # of a failing model: see `reasons.steps`
    twins: list = field(default_factory=list)            # ops whose twins ran in float32, and were compared
    repair_of_a_step: bool = False                       # the change is in a step that is right by itself
    has_helpers: bool = False                            # the backward calls functions that are no steps
    other_order: str = ""                                # of right gradients, that they come back in another order
    hints_only: bool = False                             # an exercise: the text does not give the solution away

    def tensor(self, name: str, shape: tuple[int, ...] = ()) -> TensorReport:
        """The TensorReport of that name; a new one, if there is none yet."""
        found = next((t for t in self.tensors if t.name == name), None)
        if found is None:
            found = TensorReport(name, shape)
            self.tensors.append(found)
        return found

    @property
    def wrong_step(self) -> Any:
        """The first wrong Step inside the function, or None."""
        return next((step for step in self.steps if step.status == WRONG), None)

    @property
    def ok(self) -> bool:
        return not self.findings and bool(self.tensors) and all(t.verdict == PASS for t in self.tensors)

    def __bool__(self):
        if not self.ok:
            _doubted[:] = [self]                         # for pytest: the report of the failing assertion
        return self.ok

    @property
    def verdict(self) -> str:
        if self.findings or any(t.verdict == FAIL for t in self.tensors):
            return FAIL
        return PASS if self.ok else NOT_TESTED

    @property
    def judged(self) -> int:
        return sum(t.judged for t in self.tensors)

    @property
    def set_aside(self) -> int:
        return sum(t.set_aside for t in self.tensors)

    @property
    def worst(self) -> TensorReport | None:
        """The TensorReport with the largest error, or None."""
        return max(self.tensors, key=lambda t: t.error, default=None)

    def explain(self) -> str:
        """Each gradient's verdict, the worst entry and the diagnosis of those that fail, each broken promise."""
        written_at = f", whose backward is at {self.place}" if self.place and not self.ok else ""
        lines = [f"{self.verdict}: gradients of {self.name}{written_at}"]
        lines += [f"  {self.other_order}"] if self.other_order else []
        lines += self.about_repair()
        lines += self._explain_steps()
        said = {}
        for t in self.tensors:
            # After a wrong step all gradients are wrong: by how much says nothing.
            words = self.words_of(t)
            briefly = self.wrong_step or self.other_order
            lines += [_counts(t)] if briefly else _explain_tensor(t, words, self.blind, said)
            said.setdefault(words, t.name)
        lines += [f"  FAIL       {finding}" for finding in self.findings]
        if self.twins and self.ok:
            agree = "the twin of {} in mini_tf/kernels agrees" if len(self.twins) == 1 else "the twins of {} agree"
            lines.append(f"  {agree.format(', '.join(self.twins))}, in float32")
        lines += [f"  note: {note}" for note in (*self.notes, *self.blind_notes())]
        if self.inside and not self.is_put_right:
            lines.append(f"  {self.inside}")
        if self.shows_suspects:
            lines.append(f"  {self.about_suspects()}:")
            lines += [f"    {line}" for line in self.suspects]
        return "\n".join(lines)

    __str__ = __repr__ = explain

    @property
    def is_put_right(self) -> bool:
        """True if a change, or several together, are known that make all gradients right."""
        return bool(self.repair or self.repairs_together)

    def words_of(self, t: TensorReport) -> str:
        """What was measured of t, and what may be the reason, unless the one change is shown that makes it right."""
        guess = t.perhaps and (self.hints_only or not self.is_put_right)
        return f"{t.diagnosis} Perhaps {t.perhaps}" if guess else t.diagnosis

    def about_repair(self) -> list[str]:
        """The one change that makes it right, in lines; of an exercise, only what kind of change, and where."""
        if not self.repair:
            return [] if self.hints_only else self._about_repairs_together() or self._about_repair_in_part()
        where, words, before, after = self.repair
        if self.hints_only:
            kind = words.partition(",")[0] if " belongs where " not in words else "something is in the wrong place"
            return [f"  One change at {where} makes it right: {kind}. (--solution shows it)"]
        lines = [f"  One change makes it right, at {where}: {words}", f"    now    {before}", f"    right  {after}"]
        if self.other_repair:
            where, words, before, after = self.other_repair
            lines += [f"  Or this one, at {where}: {words}", f"    now    {before}", f"    right  {after}"]
        return lines

    def _explain_steps(self):
        """What to say about the steps"""
        steps, wrong = self.steps, self.wrong_step
        if wrong is None:
            right = f"Its {len(steps)} steps are right by themselves"
            if self.repair_of_a_step and steps:          # which sets a gradient that its two uses should add to
                return [f"  {right}, each run once."]
            beside = ", in a function that is no step" if self.has_helpers else ""
            where = f"the mistake is in the function's own lines{beside}, or in how it joins the steps"
            return [f"  {right}: {where}."] if len(steps) > 1 else []
        number = 1 + next(number for number, s in enumerate(steps) if s is wrong)
        after = steps[number:]
        lines = [
            f"  First wrong step, number {number} of {len(steps)} on the way back:",
            f"    {wrong.name}, {wrong.called} at {wrong.line}, written at {wrong.place}",
            *(f"    {line}" for line in wrong.words),
        ]
        for status in dict.fromkeys(s.status for s in after):
            names = ", ".join(dict.fromkeys(s.name for s in after if s.status == status))
            count = sum(s.status == status for s in after)
            lines.append(f"  later steps, {status.replace('contains', 'containing')} ({count}): {names}")
        return [*lines, "  The gradients of the whole:"]

    def _about_repairs_together(self):
        count = len(self.repairs_together)
        which = f"{count} changes together" if count > 1 else "Changes in one line"
        lines = [f"  {which} make it right:"] if count else []
        for where, words, before, after in self.repairs_together:
            lines += [f"    at {where}: {words}", f"      now    {before}", f"      right  {after}"]
        return lines

    def _about_repair_in_part(self):
        if not self.repair_in_part:
            return []
        where, words, before, after = self.repair_in_part
        some = ", ".join(f"d{name}" for name in self.made_right)
        return [
            f"  No single change that was tried makes all gradients right. One makes {some} right, at {where}: {words}",
            f"    now    {before}", f"    right  {after}",
        ]  # fmt: skip

    @property
    def shows_suspects(self) -> bool:
        """Lines are shown where no change is: there is none, or it would be the solution of an exercise."""
        return bool(self.suspects) and (self.hints_only or not self.is_put_right)

    def about_suspects(self) -> str:
        """What is said above the suspects."""
        words = [t.diagnosis for t in self.tensors if t.diagnosis]
        if words and all(map(IS_MISSING.search, words)):
            which = "this line" if len(self.suspects) == 1 else "one of these lines"
            return f"What is missing belongs in {which}, or is a line of its own"
        if not self.suspects_are_sharp:
            return "Wrong gradients come from these lines, and from some of them right ones, too"
        these = "this line" if len(self.suspects) == 1 else "these lines"
        return f"Look here first: the wrong gradients come from {these}"

    def give_hints_only(self, given: set[str]) -> None:
        """For an exercise: leave the solution out of the text, and lines that the exercise gave out of the suspects.

        given: the latter, stripped
        """
        self.hints_only = True
        for t in self.tensors:
            t.diagnosis, t.perhaps = _as_hint(t.diagnosis), _as_hint(t.perhaps)
        if self.wrong_step is not None:
            self.wrong_step.words = [_as_hint(line) for line in self.wrong_step.words]
            self.wrong_step.repair = []

        def written(line):
            return line.partition("  ")[2].strip()

        self.suspects = [s for s in self.suspects if written(s) not in given and not written(s).endswith("= ...")]

    def blind_notes(self) -> list[str]:
        """A warning that the given point hides mistakes, unless the report shows one that it hid."""
        if not self.blind or any(t.blind_given for t in self.tensors) or not self.tensors:
            return []
        it = "it" if len(self.blind) == 1 else "them"
        generic = any(c.point == "generic" for t in self.tensors for c in t.comparisons)
        then = "passes there, but not at the generic point" if generic else f"passes: give {it} other numbers"
        return [f"at the point given, {everywhere(self.blind)}: a backward that forgets {it} {then}"]

    def table(self) -> "Table":
        """A rich Table with a row for each gradient: verdict, worst entry, your backward beside measured, counts."""
        from rich.table import Table
        from rich.text import Text

        title = f"gradients of {self.name}" + (f", whose backward is at {self.place}" if self.place else "")
        table = Table(box=None, header_style="bold", title=title, title_justify="left")
        for column in ("", "gradient", "shape", "worst at"):
            table.add_column(column, no_wrap=True)
        for column in ("your backward", "measured", "error", "judged", "kinks", "noise"):
            table.add_column(column, justify="right", no_wrap=True)
        for t in self.tensors:
            c, numbers = t.worst, [""] * 4
            if c is not None:
                numbers = [written(c.index), f"{c.yours:.6g}", f"{c.measured:.6g}", f"{c.error:.1e}"]
            counts = map(str, (t.judged, t.set_aside, t.below_noise))
            table.add_row(Text(t.verdict, STYLES[t.verdict]), f"d{t.name}", str(t.shape), *map(Text, numbers), *counts)
        return table

    def to_json(self) -> str:
        """The report as JSON: everything but the numbers of the pictures."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def as_dict(self) -> dict[str, Any]:
        """What `to_json` writes: JSON's types only, "inf" and "nan" as strings."""
        tensors = [
            {
                "name": t.name, "shape": t.shape, "verdict": t.verdict, "diagnosis": t.diagnosis,
                "perhaps": t.perhaps,
                "points": [_comparison_as_dict(c) for c in t.comparisons],
                "precision": t.precision and vars(t.precision),
            }
            for t in self.tensors
        ]  # fmt: skip
        return _plain({
            "name": self.name, "verdict": self.verdict, "place": self.place, "findings": self.findings,
            "other_order": self.other_order,
            "notes": self.notes, "blind": self.blind, "tensors": tensors, "inside": self.inside,
            "suspects": self.suspects, "twins": self.twins,
            "repair": self.repair[:1] if self.hints_only else self.repair,
            "other_repair": self.other_repair[:1] if self.hints_only else self.other_repair,
            "repair_in_part": self.repair_in_part[:1] if self.hints_only else self.repair_in_part,
            "made_right": self.made_right,
            "repairs_together": [one[:1] if self.hints_only else one for one in self.repairs_together],
            "steps": [vars(step) for step in self.steps],
        })  # fmt: skip

    def html(self, path: PathLike) -> None:
        """Write the report as one self-contained HTML file, with its pictures."""
        from mini_tf.gradcheck.page import write_page

        write_page(path, [self])


_doubted = []


def doubted() -> Report | None:
    """The last Report that turned out false in an `if` or an `assert`, or None."""
    return _doubted[0] if _doubted else None


def _counts(t):
    points = {2: " at two points", 3: " at three points"}.get(len(t.comparisons), "")
    counts = f"{t.judged} entries judged{points}"
    counts += f", {t.set_aside} set aside at a kink" if t.set_aside else ""
    counts += f", {t.below_noise} below noise" if t.below_noise else ""
    return f"  {t.verdict:<10} d{t.name} {t.shape}: {counts}, {t.wrong} wrong"


def _explain_tensor(t, words, blind, said):
    lines = [_counts(t)]
    c = t.worst
    if c is not None and c.directions is not None:
        lines += _explain_sampling(c)
    if words:
        lines.append(f"    → {f'The same as for d{said[words]}.' if words in said else words}")
    if c is not None and c.wrong:
        where = f"worst at {written(c.index)}" + POINTS[c.point]
        measured = f"measured {c.measured:.9g} ± {c.uncertainty:.1g}{c.off}"
        lines.append(f"    {where}: your backward {c.yours:.9g}, {measured}")
        if c.point == "far":
            lines.append(
                "    Nothing shows at the point given and at the generic one; wrong for numbers of other signs and "
                "sizes, perhaps in a branch that those two do not take (a whole row that ReLU sets to 0, an error "
                "beyond a bound)."
            )
    if t.precision and t.precision.wrong:
        p = t.precision
        lines.append(
            f"    in {p.where}, at {written(p.index)}: {p.yours:.9g}, in float64 {p.right:.9g}: {p.error:.3g} times "
            f"the error that rounding in {p.where} explains"
        )
    if t.blind_given and blind:
        lines.append(f"    This cannot be seen at the point given, where {everywhere(blind)}.")
    return lines


def _as_hint(diagnosis):
    """A diagnosis without the formula that would be right."""
    without = re.sub(r" \(in [^()]*(?:\([^()]*\)[^()]*)*\)", "", diagnosis)
    return re.sub(r"[;,] (right is|the right one (?!\S*\d)).*?\.$", ".", without)


def _explain_sampling(c):
    fraction = 1 - 0.05 ** (1 / c.judged) if c.judged else 1.0
    d = c.directions
    seen = f"an entry off by more than {d.seen:.1g} would be seen with {d.confidence:.2%} certainty"
    wrong = f"{d.wrong} of them wrong" if d.wrong else "none wrong"
    return [
        f"    {c.judged} of {c.size} entries one by one (if {fraction:.2%} of all were wrong, these would show it with "
        f"95% certainty), and {d.judged} random directions through all, {wrong}: {seen}"
    ]


def everywhere(blind: dict[str, float]) -> str:
    """{"gamma": 1.0, "beta": 0.0} in words."""
    parts = [f"{name} is {value:g}" for name, value in blind.items()]
    if len(parts) > 4:
        parts = [*parts[:3], f"{len(parts) - 3} more are 0 or 1"]
    return listed(parts) + " everywhere"


def _comparison_as_dict(c):
    numbers = {name: value for name, value in vars(c).items() if name not in ("errors", "sweep", "directions")}
    directions = c.directions and vars(c.directions) | {"confidence": c.directions.confidence}
    return numbers | {"directions": directions}


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
