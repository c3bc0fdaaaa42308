"""Reports as one self-contained HTML file: verdicts, words, heat maps of the errors, curves over the step size."""

import base64
import io
from html import escape

from mini_tf.files import write_text
from mini_tf.gradcheck.measuring.slopes import SWEEP
from mini_tf.gradcheck.verdicts import FAIL, written

import matplotlib
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: .6rem 0; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-bottom: 1px solid #e4e4e4;
  font-variant-numeric: tabular-nums; }
td.n, th.n { text-align: right; }
code, pre, td.m { font-family: ui-monospace, monospace; font-size: .9em; } pre { white-space: pre-wrap; }
td.m { white-space: nowrap; }
.PASS { color: #1a7f37; font-weight: 600; } .FAIL { color: #c62828; font-weight: 600; }
.NOT { color: #8a6d00; font-weight: 600; }
.words { background: #fff4e5; border-left: 4px solid #e69500; padding: .5rem .8rem; margin: .5rem 0; }
.note { color: #555; } figure { margin: .8rem 0; } figcaption { color: #444; max-width: 44rem; }
section { border-top: 2px solid #ddd; margin-top: 2rem; } img { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd; } .words { background: #3a2d12; }
  th, td { border-color: #333; } .note, figcaption { color: #aaa; } img { background: #fff; }
  .PASS { color: #57c26e; } .FAIL { color: #ff7b72; } }
"""


def write_page(path, reports):
    """Write the reports to `path` as one HTML file, whole or not at all. Failures come first."""
    reports = sorted(reports, key=lambda report: report.ok)
    right = sum(map(bool, reports))
    rows = "".join(
        f'<tr><td>{_verdict(r.verdict)}</td><td><a href="#r{i}">{escape(r.name)}</a></td>'
        f"<td class=n>{len(r.tensors)}</td><td class=n>{r.judged}</td><td class=n>{r.set_aside}</td>"
        f"<td class=n>{_worst(r)}</td></tr>"
        for i, r in enumerate(reports)
    )
    body = (
        f"<h1>Gradients held against finite differences</h1><p>{right} of {len(reports)} right.</p>"
        "<table><tr><th></th><th>gradients of</th><th class=n>tensors</th><th class=n>entries judged</th>"
        f"<th class=n>at kinks</th><th class=n>worst error</th></tr>{rows}</table>"
        "<p class=note>Error: |your backward − measured|, in units of the measurement's own uncertainty; above 1 is "
        "wrong. Every gradient is measured at the point given and at a generic one. Kinks: entries set aside, "
        "because a ReLU switches within the smallest step.</p>"
        + "".join(_section(i, report, len(reports) == 1) for i, report in enumerate(reports))
    )
    write_text(
        path,
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Gradient check: {right} of {len(reports)} right</title><style>{STYLE}</style></head>"
        f"<body>{body}</body></html>",
    )


def _section(number, report, alone):
    parts = [f'<section id="r{number}"><h2>{_verdict(report.verdict)} {escape(report.name)}</h2>']
    if report.place:
        parts.append(f"<p class=note>backward at <code>{escape(report.place)}</code></p>")
    if report.repair:
        headline, *lines = (line.strip() for line in report.about_repair())
        parts.append(f"<p class=words>{escape(headline)}</p>")
        parts += [f"<pre>{escape(chr(10).join(lines))}</pre>"] if lines else []
    parts += [f"<p class=words>{escape(finding)}</p>" for finding in report.findings]
    said = {}
    for t in report.tensors:
        if t.diagnosis:
            said.setdefault(t.diagnosis, []).append(f"d{t.name}")
    parts += [f"<p class=words><b>{escape(', '.join(who))}</b>: {escape(words)}</p>" for words, who in said.items()]
    if report.shows_suspects:
        lines = escape("\n".join(report.suspects))
        parts.append(f"<p>{report.about_suspects()}:</p><pre>{lines}</pre>")
    parts.append(_steps(report))
    if report.tensors:
        parts.append(_tensor_table(report))
    parts += [f"<p class=note>{escape(note)}</p>" for note in (*report.notes, *report.blind_notes())]
    if report.wrong_step is None:                        # after a wrong step all gradients are wrong: no pictures
        failed = [t for t in report.tensors if t.verdict == FAIL]
        parts += [_pictures(t) for t in failed or report.tensors[: int(alone)]]
    return "".join(parts) + "</section>"


def _tensor_table(report):
    rows = []
    for t in report.tensors:
        c = t.worst
        numbers = ("", "", "", "", "")
        if c is not None:
            numbers = written(c.index), f"{c.yours:.9g}", f"{c.measured:.9g}", f"{c.uncertainty:.1g}", f"{c.error:.3g}"
        rows.append(
            f"<tr><td>{_verdict(t.verdict)}</td><td class=m>d{escape(t.name)}</td><td class=m>{t.shape}</td>"
            f"<td class=m>{numbers[0]}</td>" + "".join(f"<td class=n>{number}</td>" for number in numbers[1:])
            + f"<td class=n>{t.judged}</td><td class=n>{t.set_aside}</td><td class=n>{t.below_noise}</td></tr>"
        )  # fmt: skip
    heads = "<th>gradient</th><th>shape</th><th>worst at</th>" + "".join(
        f"<th class=n>{head}</th>"
        for head in ("your backward", "measured", "±", "error", "judged", "at kinks", "below noise")
    )
    return f"<table><tr><th></th>{heads}</tr>{''.join(rows)}</table>"


def _steps(report):
    """The first wrong step with its own report's words, and all steps in the order of the backward."""
    steps, wrong = report.steps, report.wrong_step
    if wrong is None:
        return ""
    rows = "".join(
        f"<tr><td class={'FAIL' if s is wrong else 'm'}>{escape(s.status)}</td><td class=m>{escape(s.name)}</td>"
        f"<td class=m>{escape(s.line)}</td><td class=m>{escape(s.place)}</td></tr>"
        for s in steps
    )
    return (
        f"<p class=words>First wrong step: <b>{escape(wrong.name)}</b>, written at <code>{escape(wrong.place)}</code>, "
        f"called at <code>{escape(wrong.line)}</code>.</p><pre>{escape(chr(10).join(wrong.words))}</pre>"
        f"<details><summary>All {len(steps)} steps</summary><table>"
        "<tr><th></th><th>in the order in which their backwards end</th>"
        f"<th>called at</th><th>backward at</th></tr>{rows}</table></details>"
    )


def _pictures(t):
    """A heat map of the error, if it fails, and the curve over the step size at its worst entry."""
    c = t.worst
    if c is None:
        return ""
    pictures = []
    if t.verdict == FAIL and c.errors.size > 1 and np.isfinite(c.errors).any():
        words = (
            f"Error of d{t.name} over the tensor at the {c.point} point, in units of the uncertainty; grey: not judged."
        )
        pictures.append((_heat_map(c), words))
    curve = next((c for c in reversed(t.comparisons) if c.sweep is not None), None)
    if curve is not None:
        pictures.append((_curve(curve), read_curve(curve)))
    return "".join(
        f'<figure><img src="data:image/svg+xml;base64,{svg}" alt="{escape(words)}">'
        f"<figcaption>{escape(words)}</figcaption></figure>"
        for svg, words in pictures
    )


def read_curve(c):
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
    color = "tab:red" if c.wrong else "tab:green"
    axes.loglog(*_distances(c, c.yours), "o-", label="|central difference − your backward|", color=color)
    if c.wrong:
        axes.loglog(*_distances(c, c.measured), "o:", label="|central difference − measured slope|", color="0.5")
    axes.set_xlabel("step h")
    axes.set_ylabel("difference")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9)
    return _svg(figure)


def _heat_map(c):
    errors = c.errors.reshape(-1, c.errors.shape[-1]) if c.errors.ndim > 1 else c.errors.reshape(1, -1)
    rows, columns = errors.shape
    figure = Figure(figsize=(min(8, 1.6 + 0.4 * columns), min(6, 1.2 + 0.3 * rows)), layout="constrained")
    axes = figure.add_subplot()
    color = matplotlib.colormaps["RdYlGn_r"].with_extremes(bad="0.85")
    top = max(np.nanmax(np.where(np.isfinite(errors), errors, np.nan)), 10)
    image = axes.imshow(np.clip(errors, 1e-2, top), cmap=color, norm=LogNorm(1 / top, top), aspect="auto")
    axes.set_xlabel(f"axis {c.errors.ndim - 1}")
    axes.set_ylabel("rows" if c.errors.ndim != 2 else "axis 0")
    axes.set_xticks(range(0, columns, max(1, columns // 8)))
    axes.set_yticks(range(0, rows, max(1, rows // 8)))
    figure.colorbar(image, label="error")
    return _svg(figure)


def _svg(figure):
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mini_tf"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return base64.b64encode(buffer.getvalue()).decode()


def _verdict(verdict):
    return f'<span class="{verdict.split()[0]}">{verdict}</span>'


def _worst(report):
    return f"{report.worst.error:.1e}" if report.worst else "–"
