"""What the checker found, in words."""

from dataclasses import dataclass, field

PASS, FAIL, NOT_TESTED = "PASS", "FAIL", "NOT TESTED"


@dataclass(frozen=True)
class TensorReport:
    """The verdict on one gradient.

    error is the worst |your backward − measured|, in units of the measurement's own uncertainty there.
    """

    name: str
    shape: tuple
    judged: int              # entries compared
    set_aside: int           # entries where no slope can be measured: a kink lies within the step
    wrong: int               # entries that differ by more than the uncertainty allows
    error: float = 0.0
    worst: tuple = ()        # index of the worst entry
    yours: float = 0.0       # what backward said there
    measured: float = 0.0    # what finite differences say there

    @property
    def verdict(self):
        if self.wrong:
            return FAIL
        return PASS if self.judged else NOT_TESTED


@dataclass(frozen=True)
class Report:
    """The checker's answer for one function: true when every gradient passed and the contract was kept."""

    name: str
    tensors: list = field(default_factory=list)
    findings: list = field(default_factory=list)         # broken promises of the op's contract, a sentence each

    @property
    def ok(self):
        return not self.findings and bool(self.tensors) and all(t.verdict == PASS for t in self.tensors)

    def __bool__(self):
        return self.ok

    @property
    def verdict(self):
        if self.findings or any(t.verdict == FAIL for t in self.tensors):
            return FAIL
        return PASS if self.ok else NOT_TESTED

    @property
    def judged(self):
        return sum(t.judged for t in self.tensors)

    @property
    def set_aside(self):
        return sum(t.set_aside for t in self.tensors)

    @property
    def worst(self):
        """The TensorReport with the largest error, or None."""
        return max(self.tensors, key=lambda t: t.error, default=None)

    def explain(self):
        """A line for each gradient, the worst entry of those that fail, and each broken promise."""
        lines = [f"{self.verdict}: gradients of {self.name}"]
        for t in self.tensors:
            aside = f", {t.set_aside} set aside at a kink" if t.set_aside else ""
            lines.append(f"  {t.verdict:<10} d{t.name} {t.shape}: {t.judged} entries judged{aside}, {t.wrong} wrong")
            if t.wrong:
                index = ", ".join(map(str, t.worst))
                lines.append(
                    f"    worst at [{index}]: your backward {t.yours:.9g}, measured {t.measured:.9g}: "
                    f"{t.error:.3g} times the measurement's uncertainty"
                )
        return "\n".join(lines + [f"  FAIL       {finding}" for finding in self.findings])

    __str__ = __repr__ = explain
