"""Reports as one self-contained HTML file: verdicts, words, heat maps of the errors, curves over the step size.

The page itself is `report.html.jinja`, its looks are `report.css`; here is what they show.
"""

import io
import re

from mini_tf import pages
from mini_tf.gradcheck.measuring.slopes import SWEEP
from mini_tf.gradcheck.report import Comparison, Report
from mini_tf.gradcheck.verdicts import FAIL, written
from mini_tf.types import PathLike

import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure

# Matplotlib's colours are fixed; these stand in the pictures for those of the page, which are others in the dark.
INK, BAD, GOOD = "#010101", "#020202", "#030303"
ON_THE_PAGE = {INK: "currentColor", BAD: "var(--bad)", GOOD: "var(--good)"}
STYLE = {
    "figure.facecolor": "none", "axes.facecolor": "none", "legend.frameon": False,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none", "svg.hashsalt": "mini_tf",
}  # fmt: skip
# Blue and orange, which everyone can tell apart: --negative and --positive of base.css. What was not judged has none.
ERRORS = LinearSegmentedColormap.from_list("errors", ["#1f5fa8", "#ffffff", "#c2560c"]).with_extremes(bad="none")
CODE_LINE = re.compile(r"(\s*(?:now|right|.+?:\d+)\s{2,})(.*)")      # what stands before the code, the code


def write_page(path: PathLike, reports: list[Report]) -> None:
    """Write the reports to `path` as one HTML file, whole or not at all. Failures come first."""
    reports = sorted(reports, key=lambda report: report.ok)
    functions = {"written": written, "diagnoses": diagnoses, "parted": parted, "pictures": pictures}
    pages.write_page(path, "report.html.jinja", reports=reports, right=sum(r.ok for r in reports), **functions)


def diagnoses(report: Report) -> dict[str, list[str]]:
    """{words: ["dx", "dW"]}, because several gradients may be wrong in the same way"""
    found = {}
    for t in report.tensors:
        if words := report.words_of(t):
            found.setdefault(words, []).append(f"d{t.name}")
    return found


def parted(line: str) -> tuple[str, str]:
    """A line of a report in two parts: its indent and its words; or "now", "right", a place and the code, as HTML."""
    if found := CODE_LINE.fullmatch(line):
        return found[1], Markup("".join(pages.highlighted(found[2])))
    words = line.lstrip()
    return line.removesuffix(words), words


# Pictures -------------------------------------------------------------------------------------------------------------


@matplotlib.rc_context(STYLE)
def pictures(report: Report, alone: bool) -> list[tuple[Markup, str]]:
    """[(SVG, words)] of the wrong gradients; of the first, if none is wrong and the report stands alone.

    After a wrong step all gradients are wrong, and there are no pictures.
    """
    if report.wrong_step is not None:
        return []
    wrong = [t for t in report.tensors if t.verdict == FAIL]
    return [picture for t in wrong or report.tensors[: int(alone)] for picture in _pictures_of(t)]


def _pictures_of(t):
    """A heat map of the error, if it fails, and the curve over the step size at its worst entry."""
    c, found = t.worst, []
    if t.verdict == FAIL and c is not None and c.errors.size > 1 and np.isfinite(c.errors).any():
        words = (
            f"Error of d{t.name} over the tensor at the {c.point} point, in units of the uncertainty. Blue: agrees; "
            "orange: wrong; hatched: not judged."
        )
        found.append((_heat_map(c), words))
    curve = next((c for c in reversed(t.comparisons) if c.sweep is not None), None)
    if curve is not None:
        found.append((_curve(curve), read_curve(curve)))
    return found


def read_curve(c: Comparison) -> str:
    """The curve over the step size in a sentence."""
    steps, off = _distances(c, c.yours)
    if c.wrong:
        level = abs(c.yours - c.measured)
        return (
            f"At entry {written(c.index)} the central difference comes no nearer to your {c.yours:.6g} than "
            f"about {level:.1g}, whatever the step: it is not the step, it is the gradient."
        )
    best = int(np.nanargmin(off))
    return (
        f"At entry {written(c.index)}: with large steps the central difference is off by the function's curvature "
        f"(∝ h²), with small ones by rounding (∝ 1/h). In between, at h = {steps[best]:.0e}, it agrees with your "
        f"backward to {off[best]:.0e}."
    )


def _distances(c, value):
    """(steps, |D(h) − value|), with a tiny number for 0, because the axis is logarithmic"""
    return SWEEP, np.maximum(np.abs(c.sweep - value), 1e-17)


def _curve(c):
    figure = Figure(figsize=(6, 3.2), layout="constrained")
    axes = figure.add_subplot()
    color = BAD if c.wrong else GOOD
    axes.loglog(*_distances(c, c.yours), "o-", label="|central difference − your backward|", color=color)
    if c.wrong:
        axes.loglog(*_distances(c, c.measured), "s:", label="|central difference − measured slope|", color=INK)
    axes.set_xlabel("step h")
    axes.set_ylabel("difference")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
    return _svg(figure)


def _heat_map(c):
    errors = c.errors.reshape(-1, c.errors.shape[-1]) if c.errors.ndim > 1 else c.errors.reshape(1, -1)
    rows, columns = errors.shape
    figure = Figure(figsize=(min(8, 1.8 + 0.4 * columns), min(6, 1.2 + 0.3 * rows)), layout="constrained")
    axes = figure.add_subplot()
    axes.patch.set(hatch="///////", edgecolor=INK, alpha=0.6)          # seen where there is no colour
    top = max(np.nanmax(np.where(np.isfinite(errors), errors, np.nan)), 10)
    image = axes.imshow(np.clip(errors, 1e-2, top), cmap=ERRORS, norm=LogNorm(1 / top, top), aspect="auto")
    axes.set_xlabel(f"axis {c.errors.ndim - 1}")
    axes.set_ylabel("rows" if c.errors.ndim != 2 else "axis 0")
    axes.set_xticks(range(0, columns, max(1, columns // 8)))
    axes.set_yticks(range(0, rows, max(1, rows // 8)))
    figure.colorbar(image, label="error")
    return _svg(figure)


def _svg(figure):
    """The figure as an SVG element for the page: its text and lines take the colours of the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", dpi=144, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]                       # after the XML's declarations
    # HTML knows the namespaces; and matplotlib numbers the groups of every figure from 1.
    svg = re.sub(r' (xmlns(:\w+)?="[^"]*"|id="[\w.]+_\d+")', "", svg)
    for color, on_the_page in ON_THE_PAGE.items():
        svg = svg.replace(color, on_the_page)
    return Markup(svg)
