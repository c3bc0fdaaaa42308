"""What the command mini-tf gradcheck does."""

import difflib
import json
import textwrap
from collections.abc import Sequence

from mini_tf import kernels
from mini_tf.errors import UserError
from mini_tf.files import is_stream, write_text
from mini_tf.gradcheck.check import gradcheck
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.learner import given_lines, is_exercise, load, running
from mini_tf.gradcheck.measuring.twins import check_updates, check_writing
from mini_tf.gradcheck.planting.selftest import self_test
from mini_tf.gradcheck.verdicts import STYLES
from mini_tf.kernels import binding
from mini_tf.kernels.writing import WRITTEN
from mini_tf.ops.op import all_ops
from mini_tf.progress import console as out
from mini_tf.progress import progress_bar
from mini_tf.types import PathLike

import numpy as np
from rich.table import Table
from rich.text import Text


def chosen(names: Sequence[str], shapes: Sequence[str], seed: int, args: Sequence[str] = ()) -> dict[str, tuple]:
    """{name: (f, inputs, params)} for each name: all examples whose names start with it, or a function of a file.

    Raises UserError for unknown names, and for files that cannot be loaded.
    """
    files = [name for name in names if "::" in name or name.endswith(".py")]
    for option, values, usual in (("--shape", shapes, "x=2,3"), ("--arg", args, "stride=2")):
        if values and len(files) < max(len(names), 1):
            others = [name for name in names if name not in files]
            came = ", ".join(others) or "no function"
            raise UserError(
                f"{option} with {came}: it is for your functions, as in mini-tf gradcheck my_ops.py::f {option} {usual}"
            )
    subjects = {}
    for name in names or [""]:
        if name in files:
            subjects[name] = (*load(name, shapes, seed, args), None)
            continue
        found = {n: make(np.random.default_rng(seed)) for n, make in EXAMPLES.items() if n.startswith(name)}
        if not found:
            near = difflib.get_close_matches(name.lower(), [*EXAMPLES], 3)
            hint = f"did you mean {' or '.join(near)}? " if near else f"there are: {'; '.join(EXAMPLES)}. "
            raise UserError(f"nothing is named {name}; {hint}Your own function is file.py::function")
        subjects |= found
    return subjects


def check_all(
    subjects: dict[str, tuple], seed: int, html: PathLike | None = None, json_file: PathLike | None = None,
    solution: bool = False,
) -> bool:  # fmt: skip
    """Check, print and write the files asked for; True if all gradients are right and all twins agree.

    Of an exercise, only hints are given, unless the solution is asked for.
    With all examples, also the twins of what has no gradient: Adam, the sum of squares, a layer that writes one word.
    """
    reports = _for_each("checking", subjects, gradcheck, seed)
    for name, report in zip(subjects, reports):
        if ".py" in name and is_exercise(name) and not solution:
            report.give_hints_only(given_lines(name))
    if len(reports) > 1:
        out.print(_table(reports))
    told = {}                                            # first wrong steps explained so far -> whose report did
    for report in reports:
        step = report.wrong_step and (report.wrong_step.name, report.wrong_step.place)
        if step in told:
            same = f"the same first wrong step as in {told[step]}, {step[0]}"
            out.print(Text(f"FAIL: gradients of {report.name}: {same}"))
        elif len(reports) == 1 or not report:
            out.print(Text(_wrapped(report.explain())))
        if step and not report:
            told.setdefault(step, report.name)
    if len(reports) > 1:
        judged = sum(report.judged for report in reports)
        out.print(Text(
            f"{sum(map(bool, reports))} of {len(reports)} right; {judged:,} entries compared with central differences "
            "in float64, at two points. Worst error: |backward − measured| in units of the measurement's uncertainty; "
            f"above 1 is wrong. Twins: faster forms of the formulas, compared in float32; {_twins(reports)}."
        ))  # fmt: skip
    findings = _without_a_report(seed) if set(subjects) >= set(EXAMPLES) else []
    for finding in findings:
        out.print(Text(f"FAIL: {finding}"))
    if html:
        from mini_tf.gradcheck.page import write_page  # here, because it loads matplotlib

        write_page(html, reports)
        _say_written(html)
    if json_file:
        numbers = [report.as_dict() for report in reports]
        write_text(json_file, json.dumps(numbers, indent=2, ensure_ascii=False) + "\n")
        _say_written(json_file)
    return all(reports) and not findings


def _twins(reports):
    if why := binding.why_uncompiled():
        return f"none was compared, because {why}"
    names = sorted({name for report in reports for name in report.twins})
    return f"{len(names)} of them: {', '.join(names)}" if names else "there are none here"


def bind_twins(seed: int) -> None:
    """Compare every twin with its formula as it is now, on all examples, and bind it to that formula.

    Raises UserError, and binds none, if a gradient is wrong or a twin disagrees.
    """
    if why := binding.why_uncompiled():
        raise UserError(f"{why}, so the twins cannot run, and nothing was compared or bound")
    subjects = chosen([], [], seed)
    with kernels.with_twins(even_if_edited=True):
        reports = _for_each("comparing", subjects, gradcheck, seed)
    wrong = [report for report in reports if not report]
    if wrong:
        out.print(Text(_wrapped("\n".join(report.explain() for report in wrong))))
        raise UserError(f"{len(wrong)} of {len(reports)} are wrong, see above; nothing was bound")
    if findings := _without_a_report(seed):
        raise UserError(f"{'; '.join(findings)}; nothing was bound")
    compared = {name for report in reports for name in report.twins} | {"adam", "sum_of_squares"}
    bound = [op for op in all_ops() if op.name in compared and binding.twin(op)] + [WRITTEN]
    binding.bind(bound)
    out.print(Text(f"bound to their formulas: the twins of {', '.join(sorted(op.name for op in bound))}"))


def _without_a_report(seed):
    """A sentence for each twin that disagrees with a formula without a gradient: Adam's, a layer's that writes, …"""
    rng = np.random.default_rng(seed)
    return check_updates(rng) + check_writing(rng)


def _for_each(what, subjects, do, seed):
    """[do(…) for each subject], with a progress bar; do is called like gradcheck."""
    results = []
    with progress_bar(what, len(subjects)) as update:
        for done, (name, (f, inputs, params)) in enumerate(subjects.items(), 1):
            with running(name):
                results.append(do(f, *inputs, params=params, name=name, seed=seed))
            update(done, name)
    return results


def _counts(*headers):
    """An empty Table, whose columns from the third on are numbers."""
    table = Table(*headers, box=None, header_style="bold")
    for column in table.columns[2:]:
        column.justify = "right"
    return table


def _wrapped(text):
    """The text, wrapped to the terminal's width; unchanged if the output is not a terminal."""
    if not out.is_terminal:
        return text
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(line, out.width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def _say_written(path):
    if not is_stream(path):
        out.print(Text(f"written: {path}"))


def _table(reports):
    table = _counts("", "gradients of", "tensors", "entries", "set aside", "worst error", "twins")
    for report in reports:
        error = f"{report.worst.error:.1e}" if report.worst else "–"
        table.add_row(
            Text(report.verdict, STYLES[report.verdict]), report.name, str(len(report.tensors)), str(report.judged),
            str(report.set_aside), error, f"{len(report.twins)} agree" if report.twins and report else "",
        )  # fmt: skip
    return table


def plant_in_all(subjects: dict[str, tuple], seed: int) -> bool:
    """Plant bugs in each backward and print which were caught; True if some were and none was missed."""
    results = _for_each("planting", subjects, self_test, seed)
    table = _counts("", "bugs planted in the backward of", "caught", "missed", "no bug")
    for result in results:
        word, style = (
            ("missed", "bold red") if result.missed else ("found", "green") if result.caught else ("none", "yellow")
        )
        counts = (str(len(mutants)) for mutants in (result.caught, result.missed, result.equivalent))
        table.add_row(Text(word, style), result.name, *counts)
    out.print(table)
    for result in results:
        if len(results) == 1 or result.missed:
            out.print(Text(result.explain()))
    caught, missed = (sum(len(getattr(result, what)) for result in results) for what in ("caught", "missed"))
    out.print(Text(
        f"{caught} of {caught + missed} planted bugs caught. A bug is one small change of the source that changes a "
        "result; changes that leave all results as they are do not count."
    ))  # fmt: skip
    return caught > 0 and not missed
