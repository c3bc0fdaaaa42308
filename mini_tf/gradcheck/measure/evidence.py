"""What a check found at one point: y, dy, the gradients that came back, and the measured slopes."""

from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from mini_tf.gradcheck.measure.slopes import EXACT, Phi, Slopes, slopes_of_entries
from mini_tf.gradcheck.report import Comparison
from mini_tf.gradcheck.subject import Subject
from mini_tf.types import Array

import numpy as np

CERTAIN, NOISE, FAINT = 1e-4, 1e-9, 1e-4     # when a slope is known: see `Evidence.measure`
OF_FLOAT32 = 1e-4, 1e-2                          # EXACT and CERTAIN with float32 inside


@dataclass
class Evidence:
    """A subject at one point."""

    subject: Subject
    y: Array
    backward: Any                                        # the function that gave the gradients
    dy: Array | float
    gradients: dict[str, Array]                          # those that can be compared
    patterns: list[bytes]                                # see `slopes.watched_relus`
    slopes: dict[str, Array] = field(default_factory=dict)           # measured, NaN where not known
    tolerances: dict[str, Array] = field(default_factory=dict)       # how well each slope is known
    comparisons: dict[str, Comparison] = field(default_factory=dict)
    single: bool = False                                 # float32 inside
    misfits: list[str] = field(default_factory=list)     # tensors whose gradients are missing, or of another form
    allowed: list[str] = field(default_factory=list)     # broken promises that are no mistake here
    sound: set[FunctionType] = field(default_factory=set)            # functions inside that are known to be right

    def __post_init__(self) -> None:
        self.everything: dict[str, Array] = {name: np.array(x) for name, x in self.subject.arrays.items()}

    @property
    def wrong(self) -> list[str]:
        return [name for name, c in self.comparisons.items() if c.wrong]

    @property
    def right(self) -> list[str]:
        return [name for name, c in self.comparisons.items() if not c.wrong]

    def back_to_the_point(self) -> None:
        """Give the subject its arrays of this point again: copies, because a wrong backward may write into them."""
        self.subject.arrays |= {name: np.array(x) for name, x in self.everything.items()}

    def dy_again(self) -> Array | float:
        """A copy of dy, for a backward that may write into it"""
        return np.copy(self.dy) if np.ndim(self.dy) else self.dy

    def measure(self, name: str, phi: Phi, entries: Array, gradient: Array | None = None) -> tuple[Slopes, Array]:
        """Measure these entries of a tensor's slopes, flat indices, at this point; the others are not known.

        Returns (their slopes, which of them are known). One is known if its uncertainty is at most CERTAIN, a part of
        the tensor's largest (1e-2 with float32 inside); beside a gradient also if it is at most NOISE, a part of φ,
        and the gradient is zero, as far as one can tell (below FAINT of the uncertainty: right), or off by more.
        It is not known if it is so much smaller than the largest that an error of a tenth would go unseen.
        """
        x = self.subject.tensors[name]
        found = slopes_of_entries(phi, x, entries)
        size, tiny = np.abs(found.slope).max(initial=0), np.finfo(float).tiny
        self.single = phi.single
        exact, certain = OF_FLOAT32 if self.single else (EXACT, CERTAIN)
        unsure = found.uncertainty = np.maximum(found.uncertainty, max(exact * size, tiny))
        known = unsure <= certain * size
        if gradient is not None:
            yours = gradient.reshape(-1)[entries]
            with np.errstate(invalid="ignore", over="ignore"):
                clear = (np.abs(yours) <= FAINT * unsure) | (np.abs(yours - found.slope) > unsure)
            known |= clear & (unsure <= max(NOISE * phi.size, tiny))
            known &= clear | (np.abs(yours) >= 10 * unsure)
        slopes, tolerances = np.full(x.size, np.nan), np.zeros(x.size)
        slopes[entries], tolerances[entries] = np.where(known, found.slope, np.nan), unsure
        self.slopes[name], self.tolerances[name] = slopes.reshape(x.shape), tolerances.reshape(x.shape)
        return found, known

    def fits(self, name: str, gradient: Any) -> bool:
        """True if the gradient agrees with the measured slopes, wherever they are known: the judge's own verdict"""
        slopes = self.slopes[name]
        if np.shape(gradient) != slopes.shape or getattr(gradient, "dtype", None) != np.float64:
            return False
        close = np.nan_to_num(np.abs(gradient - slopes)) <= self.tolerances[name]
        return bool(np.isfinite(gradient).all() and close.all())

    def off(self, name: str) -> float:
        """The largest deviation of the gradient that came back, relative to the largest measured slope"""
        slopes = self.slopes[name]
        return float(np.nanmax(np.abs(self.gradients[name] - slopes), initial=0) / max(self.size(name), 1e-300))

    def size(self, name: str) -> float:
        """The largest measured slope"""
        return float(np.nanmax(np.abs(self.slopes[name]), initial=0))
