"""Is this loss normal?  What each preset's losses are on its own data, over several seeds.

`bands.json` has the mean and the standard deviation over the seeds, at each measurement and on the test part:
`tests/bench/bands.py` measures them.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.special import stdtrit

FILE = Path(__file__).with_name("bands.json")
INSIDE = 0.99            # of the losses by other seeds


@dataclass(frozen=True)
class Band:
    """Where 99 of 100 further seeds are expected, if losses are normally distributed: mean ± t·s·√(1 + 1/seeds)

    t is the 99.5 % quantile of Student's distribution with seeds − 1 degrees of freedom: for five seeds the band
    reaches 5 standard deviations to each side.

    seeds       how many were measured
    validation  {step: (mean, s)} of the validation loss, s the standard deviation over the seeds
    test        (mean, s) of the loss on the test part
    """

    seeds: int
    validation: dict
    test: tuple

    def limits(self, step: int | None = None) -> tuple[float, float] | None:
        """(lowest, highest) expected validation loss at that step, or test loss; None if it was not measured there."""
        found = self.test if step is None else self.validation.get(step)
        if found is None:
            return None
        mean, s = found
        reach = float(stdtrit(self.seeds - 1, (1 + INSIDE) / 2)) * math.sqrt(1 + 1 / self.seeds) * s
        return mean - reach, mean + reach

    def judge(self, loss: float, step: int | None = None) -> str | None:
        """Say "inside", "above" or "below" the limits; None if there are none for this step."""
        limits = self.limits(step)
        if limits is None:
            return None
        if not math.isfinite(loss):
            return "above"
        return "below" if loss < limits[0] else "above" if loss > limits[1] else "inside"


def band_of(config: dict[str, Any]) -> Band | None:
    """The Band of a run with this config.json; None if none was measured for its settings and data."""
    command, settings = config.get("command", {}), dict(config["settings"])
    own_data = command.get("path", "") is None and command.get("shakespeare", "lab") == "lab"
    for does_not_matter in ("seed", "description"):
        settings.pop(does_not_matter, None)
    found = json.loads(FILE.read_text(encoding="utf-8")).get(settings["name"])
    if not own_data or found is None or found["settings"] != json.loads(json.dumps(settings)):
        return None
    validation = {int(step): tuple(of) for step, of in found["validation"].items()}
    return Band(found["seeds"], validation, tuple(found["test"]))


def as_text(limits: tuple[float, float]) -> str:
    """The limits as in "5.310 to 5.420"."""
    return f"{limits[0]:.3f} to {limits[1]:.3f}"
