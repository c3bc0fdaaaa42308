"""Reports as one HTML file that needs nothing else: the report's sentences, its numbers as pictures, the source beside.

The page itself is `report.html.jinja`, its looks are `report.css`; here is what they show.
"""

import linecache
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mini_tf import pages
from mini_tf.gradcheck.measure.slopes import SWEEP
from mini_tf.gradcheck.source import statement_at
from mini_tf.gradcheck.wording import entry, number
from mini_tf.types import Array, PathLike

import numpy as np
from markupsafe import Markup

if TYPE_CHECKING:
    from mini_tf.gradcheck.report import Comparison, Report  # which writes its page

NEGATIVE, POSITIVE = (31, 95, 168), (194, 86, 12)        # ends of the colour map: --negative, --positive of base.css
ROWS, COLUMNS = 16, 24                                   # shown of an array at most
ROUNDING = 1e-9          # of the scale: a smaller difference is shown as 0
AROUND = 12              # lines shown above and below a marked one
PLACE = re.compile(r"(\S.*?):(\d+)(?:\s.*)?", re.DOTALL)             # "net.py:12", also with the line's text behind it


def write_page(path: PathLike, reports: "list[Report]") -> None:
    """Write the reports to `path` as one HTML file, whole or not at all. Failures come first."""
    reports = sorted(reports, key=lambda report: (report.ok, report.exit_code))
    functions = {one.__name__: one for one in (pages.highlighted, pictures, curve, sources)}
    template = Path(__file__).with_name("report.html.jinja")
    pages.write_page(path, template, reports=reports, passed=sum(r.ok for r in reports), **functions)


def pictures(c: "Comparison") -> dict[str, Any]:
    """Your gradient, the measured one and their difference, on one scale of colours"""
    places, captions = _shown(c)
    yours, measured = (np.ravel(numbers)[places] for numbers in (c.gradient, c.slopes))
    with np.errstate(invalid="ignore"):
        difference = yours - measured
    most = float(np.abs(np.nan_to_num([yours, measured], posinf=0, neginf=0)).max()) or 1.0
    difference[np.abs(difference) <= ROUNDING * most] = 0
    maps = {"yours": yours, "measured": measured, "difference": difference}
    maps = {title: [[_cell(c, place, float(value), most) for place, value in zip(*row)] for row in zip(places, numbers)]
            for title, numbers in maps.items()}          # fmt: skip
    if not np.isfinite(difference).all():
        captions.append("grey: not measured, or no finite number")
    return {"maps": maps, "most": f"{most:.3g}", "captions": captions}


def _shown(c: "Comparison") -> tuple[Array, list[str]]:
    """(the entries to show, as a matrix of their places in the flat array; captions)"""
    shape = c.slopes.shape
    matrix = np.arange(c.slopes.size).reshape(-1, shape[-1] if shape else 1)
    captions = [f"{shape} shown as {matrix.shape}"] if len(shape) > 2 else []
    at = np.argwhere(matrix == (np.ravel_multi_index(c.index, shape) if shape else 0))[0]
    for axis, name, most in ((0, "rows", ROWS), (1, "columns", COLUMNS)):
        if (count := matrix.shape[axis]) > most:
            start = min(max(int(at[axis]) - most // 2, 0), count - most)
            matrix = np.take(matrix, range(start, start + most), axis)
            captions.append(f"{name} {start} to {start + most - 1} of {count:,}")
    return matrix, captions


def _cell(c: "Comparison", place: int, value: float, most: float) -> dict[str, Any]:
    """What is shown of an entry. Blue is below zero, white zero, orange above, as in the explorer"""
    index, known = tuple(map(int, np.unravel_index(place, c.slopes.shape))), np.isfinite(value)
    mixed = min(1, abs(value) / most) ** 0.7             # small entries stay visible
    ends = NEGATIVE if value < 0 else POSITIVE
    colour = "#" + "".join(f"{round(255 + (end - 255) * mixed):02x}" for end in ends) if known else "none"
    short = f"{value:.0f}" if 100 <= abs(value) < 1e5 else number(value, 2) if known else ""
    return {"at": entry(index), "value": number(value), "short": short, "colour": colour, "worst": index == c.index}


def curve(c: "Comparison") -> dict[str, Any]:
    """The central difference's distance from two values, {label: [(step, distance)]}, all as powers of ten"""
    lines = {}
    for label, value in {"yours": c.yours, "measured": c.measured}.items():
        points = np.log10(np.transpose([SWEEP, np.maximum(np.abs(np.asarray(c.sweep) - value), 1e-17)]))
        lines[label] = points[np.isfinite(points).all(1)].tolist()
    levels = [level for points in lines.values() for _, level in points] or [0]
    return {"lines": lines, "low": int(np.floor(min(levels))), "high": int(np.floor(max(levels))) + 1}


def sources(report: "Report") -> list[dict[str, Any]]:
    """Of their functions, the lines near the report's changes or suspects, which are marked; else near the backward"""
    said = [change.place for change in (*report.changes, *report.equal)] + report.suspects
    marked = defaultdict[str, set[int]](set)
    for found in filter(None, map(PLACE.fullmatch, said or [report.place])):
        marked[found[1]].add(int(found[2]))
    shown = []
    for path, lines in marked.items():
        text = "".join(linecache.getlines(path) or linecache.getlines(str(Path(__file__).parents[2] / path)))
        code = enumerate(pages.highlighted(text) if text else (), 1)     # not all files can be read
        wanted = {n for one in lines for n in _lines_around(text, one) if abs(n - one) <= AROUND}
        near = [(n, Markup(line), n in lines) for n, line in code if n in wanted]
        shown += [{"place": f"{path}:{near[0][0]}", "lines": near}] if near else []
    return shown


def _lines_around(text: str, line: int) -> range:
    """The numbers of the lines of the file's function or class that this line is in"""
    first, _, below = statement_at(text, line)
    return range(first, len(text[: len(text) - below].splitlines()) + 1)
