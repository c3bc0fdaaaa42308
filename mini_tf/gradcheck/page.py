"""Reports as one HTML file that needs nothing else: the report's sentences, its numbers as pictures, the source beside.

The page itself is `report.html.jinja`, its looks are `report.css`; here is what they show.
"""

import ast
import linecache
import re
from pathlib import Path
from textwrap import dedent

from mini_tf import pages
from mini_tf.gradcheck.measure.slopes import SWEEP
from mini_tf.gradcheck.report import FAIL, NOT_TESTED, PASS, Comparison, Report, entry, number
from mini_tf.gradcheck.source import first_line, parsed
from mini_tf.types import Array, PathLike

import numpy as np
from markupsafe import Markup, escape

NEGATIVE, POSITIVE = (31, 95, 168), (194, 86, 12)        # ends of the colour map: --negative, --positive of base.css
ROWS, COLUMNS = 16, 24                                   # shown of an array at most
ROUNDING = 1e-9          # of the scale: a smaller difference is shown as 0
LONG, AROUND = 45, 8     # lines of a function that is shown whole; of a longer one, those so near to a marked line
PLACE = re.compile(r"(\S.*?):(\d+)(?:\s.*)?", re.DOTALL)             # "net.py:12", also with the line's text behind it
BEFORE_CODE = re.compile(r"\s*(now|right|\S.*?:\d+)\s{2,}(.*)", re.DOTALL)
CODE = re.compile(r"`([^`]+)`|\b(gradcheck\(.*\)|\w+=(?:\[.*?\]|\{.*?\}|\(.*?\)|[\w.+-]*\w))")


def write_page(path: PathLike, reports: list[Report]) -> None:
    """Write the reports to `path` as one HTML file, whole or not at all. Failures come first."""
    reports = sorted(reports, key=lambda report: [FAIL, NOT_TESTED, PASS].index(report.verdict))
    functions = {"coded": coded, "parted": parted, "pictures": pictures, "curve": curve, "sources": sources}
    pages.write_page(path, "report.html.jinja", reports=reports, passed=sum(r.ok for r in reports), **functions)


def coded(sentence: str) -> Markup:
    """A sentence in which code looks like code: what stands in backticks, and arguments such as constants=['pe']"""
    return Markup(CODE.sub(lambda found: f"<code>{found[1] or found[2]}</code>", str(escape(sentence))))


def parted(line: str) -> tuple[str, Markup]:
    """A line of a report in two parts: "now", "right" or a place, and the code after it; of a sentence "" and all"""
    if found := BEFORE_CODE.fullmatch(line):
        return found[1], Markup("\n".join(pages.highlighted(found[2])))
    return "", coded(line)


def pictures(c: Comparison) -> dict:
    """Your gradient, the measured one and their difference, on one scale of colours"""
    places, said = _shown(c)
    yours, measured = (np.ravel(numbers)[places] for numbers in (c.gradient, c.slopes))
    with np.errstate(invalid="ignore"):
        difference = yours - measured
    sizes = np.abs(np.nan_to_num([yours, measured, difference], posinf=0, neginf=0))
    most, off = float(sizes[:2].max()) or 1.0, float(sizes[2].max())
    difference[np.abs(difference) <= ROUNDING * most] = 0
    factor = 10 ** int(np.log10(most / off)) if off > ROUNDING * most else 1     # so that it has colours, too
    scaled = f", colours × {factor:,}" if factor > 1 else ""
    maps = {"yours": (yours, 1), "measured": (measured, 1), f"difference{scaled}": (difference, factor)}
    maps = {title: [[_cell(c, place, float(value), float(value * times / most)) for place, value in zip(*row)]
                    for row in zip(places, numbers)] for title, (numbers, times) in maps.items()}        # fmt: skip
    if not np.isfinite(difference).all():
        said.append("grey: not measured, or no finite number")
    return {"maps": maps, "most": f"{most:.3g}", "said": said}


def _shown(c: Comparison) -> tuple[Array, list[str]]:
    """(the entries to show, as a matrix of their places in the flat array; what there is to say of the choice)"""
    shape = c.slopes.shape
    matrix = np.arange(c.slopes.size).reshape(-1, shape[-1] if shape else 1)
    said = [f"{shape} shown as {matrix.shape}"] if len(shape) > 2 else []
    at = np.argwhere(matrix == (np.ravel_multi_index(c.index, shape) if shape else 0))[0]
    for axis, name, most in ((0, "rows", ROWS), (1, "columns", COLUMNS)):
        if (count := matrix.shape[axis]) > most:
            start = min(max(int(at[axis]) - most // 2, 0), count - most)
            matrix = np.take(matrix, range(start, start + most), axis)
            said.append(f"{name} {start} to {start + most - 1} of {count:,}")
    return matrix, said


def _cell(c, place, value, share):
    """What is shown of an entry. Blue is below zero, white zero, orange above, as in the explorer"""
    index, known = tuple(map(int, np.unravel_index(place, c.slopes.shape))), np.isfinite(value)
    mixed = min(1, abs(share)) ** 0.7                                    # small entries stay visible
    ends = NEGATIVE if share < 0 else POSITIVE
    colour = "#" + "".join(f"{round(255 + (end - 255) * mixed):02x}" for end in ends) if known else "none"
    short = f"{value:.0f}" if 100 <= abs(value) < 1e5 else number(value, 2) if known else ""
    return {"at": entry(index), "value": number(value), "short": short, "colour": colour, "worst": index == c.index}


def curve(c: Comparison) -> dict:
    """The central difference's distance from two values, {label: [(step, distance)]}, all as powers of ten"""
    lines = {}
    for label, value in {"yours": c.yours, "measured": c.measured}.items():
        points = np.log10(np.transpose([SWEEP, np.maximum(np.abs(c.sweep - value), 1e-17)]))
        lines[label] = points[np.isfinite(points).all(1)].tolist()
    levels = [level for points in lines.values() for _, level in points] or [0]
    return {"lines": lines, "low": int(np.floor(min(levels))), "high": int(np.floor(max(levels))) + 1}


def sources(report: Report) -> list[dict]:
    """The functions that hold the report's changes or suspects, with their lines marked; else that with the backward"""
    said = [change.place for change in (*report.changes, *report.equal)] + report.suspects
    marked = {}                                          # (path, text, first and last line) of a function: marked lines
    for found in filter(None, map(PLACE.fullmatch, said or [report.place])):
        path, line = found[1], int(found[2])
        text = "".join(linecache.getlines(path) or linecache.getlines(str(Path(__file__).parents[2] / path)))
        if text:                                         # else it cannot be read
            *function, end = _around(text, line)
            marked.setdefault((path, text, *function), set()).update(range(line, end + 1) if said else ())
    return [{"place": f"{path}:{first}", "lines": _code(text, first, last, lines)}
            for (path, text, first, last), lines in marked.items()]      # fmt: skip


def _around(text, line):
    """(first and last line of the outermost function around a line, last line of the statement)"""
    nodes = [node for node in ast.walk(parsed(text)) if isinstance(node, ast.stmt)]          # outer ones first
    spans = [(first_line(node), node.end_lineno) for node in nodes if isinstance(node, ast.FunctionDef)]
    spans = [(first, last) for first, last in spans if first <= line <= last] or [(1, text.count("\n") + 1)]
    ends = [node.end_lineno for node in nodes if node.lineno == line and not hasattr(node, "body")]
    return *spans[0], max(ends, default=line)


def _code(text, first, last, marked):
    """[(number, HTML, whether it is marked)] of the lines to show"""
    lines = pages.highlighted(dedent("\n".join(text.split("\n")[first - 1 : last])))
    near = marked or range(first, first + LONG)
    return [(n, Markup(line), n in marked) for n, line in enumerate(lines, first)
            if last - first < LONG or any(abs(n - one) <= AROUND for one in near)]           # fmt: skip
