"""What the command mini-tf gradcheck does."""

import json
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mini_tf.errors import UserError
from mini_tf.files import is_stream, write_text
from mini_tf.gradcheck.check import gradcheck
from mini_tf.gradcheck.learner import Loaded, is_exercise, load, running
from mini_tf.gradcheck.report import EXIT_CODES, FAIL, NOT_TESTED, PASS, Report, in_json
from mini_tf.kernels import binding
from mini_tf.progress import console as out
from mini_tf.progress import progress_bar
from mini_tf.types import PathLike

import numpy as np
from rich.table import Column, Table
from rich.text import Text

Subjects = dict[str, Loaded]


def checker_options(methods: str | None, **lists: Sequence[str]) -> dict[str, Any]:
    """gradcheck's arguments of --constants pe, --params Wxh or W=path, --grads W=path, --methods go,come_back"""
    every = {**lists, "methods": methods.partition(",")[::2] if methods else ()}
    return {option: dict(text.split("=", 1) for text in texts) if all("=" in text for text in texts) else [*texts]
            for option, texts in every.items() if texts}         # fmt: skip


def chosen(
    names: Sequence[str], shapes: Sequence[str], seed: int, args: Sequence[str] = (), more: dict[str, Any] | None = None
) -> Subjects:  # fmt: skip
    """{name: what gradcheck takes} for each name: all examples whose names start with it, or a function of a file

    more: see `checker_options`. Raises UserError for unknown names, and for files that cannot be loaded.
    """
    subjects: Subjects = {}
    for name in names or [""]:
        if "::" in name or ".py" in name:
            subjects[name] = load(name, shapes, seed, args, **more or {})
        elif shapes or args or more:
            raise UserError(f"{name or 'mini_tf'} has inputs of its own; --shape, --arg and the like are for your "
                            "functions: mini-tf gradcheck my_ops.py::f --shape x=2,3")     # fmt: skip
        else:
            subjects |= _examples(name, seed)
    return subjects


def _examples(beginning: str, seed: int) -> Subjects:
    from mini_tf.gradcheck.examples import EXAMPLES  # here, because it loads all of mini_tf

    found = {name: make(np.random.default_rng(seed)) for name, make in EXAMPLES.items() if name.startswith(beginning)}
    if not found:
        near = f"did you mean {close[0]}? There" if (close := get_close_matches(beginning, EXAMPLES, 1)) else "there"
        raise UserError(f"nothing is named {beginning}; {near} are: {'; '.join(EXAMPLES)}. "
                        "Your own function is file.py::function")                # fmt: skip
    return {name: (f, inputs, {"params": params}) for name, (f, inputs, params) in found.items()}


def check_all(
    subjects: Subjects, seed: int, html: PathLike | None = None, json_file: PathLike | None = None,
    solution: bool = False,
) -> int:  # fmt: skip
    """Check, print and write the files asked for. Returns the exit code, of FAIL if one is wrong.

    With all examples, also the twins of what has no gradient: Adam, the sum of squares, a layer that writes one word.
    """
    reports, findings = _checked(subjects, seed, solution)
    if html:
        from mini_tf.gradcheck.page import write_page  # here, because it loads jinja2 and Pygments

        write_page(html, reports)
    if json_file:
        write_text(json_file, json.dumps(reports, default=in_json, indent=2, ensure_ascii=False) + "\n")
    for path in (html, json_file):
        if path and not is_stream(path):
            out.print(Text(f"written: {path}"))
    worst = min((report.verdict for report in reports), key=[FAIL, NOT_TESTED, PASS].index)
    return EXIT_CODES[FAIL if findings else worst]


def bind_twins(seed: int) -> None:
    """Bind every twin to its formula as it is now, if all agree on all examples; UserError, and none bound, if not."""
    from mini_tf import kernels
    from mini_tf.kernels.compiling import why_uncompiled
    from mini_tf.kernels.decode_layer import DECODING
    from mini_tf.ops.op import all_ops

    if why := why_uncompiled():
        raise UserError(f"{why}, so the twins cannot run, and nothing was compared or bound")
    with kernels.with_twins(even_if_edited=True):
        reports, findings = _checked(chosen([], [], seed), seed)
    if findings or not all(report.ok for report in reports):
        raise UserError("not all are right, see above; nothing was bound")
    compared = {name for report in reports for name in report.twins} | {"adam", "sum_of_squares"}
    bound: list[Any] = [op for op in all_ops() if op.name in compared and binding.twin(op)] + [DECODING]
    binding.bind(bound)
    out.print(Text(f"bound to their formulas: the twins of {', '.join(sorted(op.name for op in bound))}"))


def _checked(subjects: Subjects, seed: int, solution: bool = False) -> tuple[list[Report], list[str]]:
    """(reports; of all examples, sentences on twins that no report is about), both printed"""
    reports: list[Report] = _for_each("checking", subjects, gradcheck, seed)
    findings: list[str] = []
    for name, report in zip(subjects, reports):
        if is_exercise(name):
            _help_the_learner(report, name, solution)
    if len(reports) > 1:
        from mini_tf.gradcheck.examples import EXAMPLES
        from mini_tf.twins import check_gpu, check_updates, check_writing

        _print_table(reports)
        rng, every = np.random.default_rng(seed), subjects.keys() >= EXAMPLES.keys()
        findings = [*check_updates(rng), *check_writing(rng), *check_gpu(EXAMPLES, rng)] if every else []
    for report in reports:
        if len(reports) == 1 or not report.ok:
            out.print(Text(report.explain()))
    for finding in findings:
        out.print(Text(f"{FAIL}: {finding}"))
    return reports, findings


def _help_the_learner(report: Report, exercise: str, solution: bool) -> None:
    """Hints alone, unless the solution is asked for; and the blanks that are left"""
    if not solution:
        report.give_hints_only()
    text = Path(exercise.partition("::")[0]).read_text(encoding="utf-8")
    if blanks := re.findall(r"^\s*(\w+) = \.\.\.", text, re.MULTILINE):
        report.notes.append(f"blanks that are left, from the top down: {', '.join(blanks)}")


def _print_table(reports: list[Report]) -> None:
    styles = {PASS: "green", FAIL: "bold red", NOT_TESTED: "yellow"}
    numbers = [Column(header, justify="right") for header in ("tensors", "entries", "twins")]
    table = Table("", Column("gradients of", overflow="fold"), *numbers, box=None, header_style="bold")
    for report in reports:
        counts = map(str, (len(report.tensors), report.judged, len(report.twins) or ""))
        table.add_row(Text(report.verdict, styles[report.verdict]), Text(report.name), *counts)
    out.print(table)
    right, judged = (sum(getattr(report, what) for report in reports) for what in ("ok", "judged"))
    out.print(Text(f"{right} of {len(reports)} right. {judged:,} entries of gradients held against measured slopes"))


def plant_in_all(subjects: Subjects, seed: int) -> int:
    """Plant bugs in each backward and print which were caught. Returns the exit code: 1 for one missed, 2 for none."""
    from mini_tf.gradcheck.selftest import self_test

    results = _for_each("planting", subjects, self_test, seed)
    for one in results:
        out.print(Text(str(one) if one.missed or len(results) == 1 else str(one).splitlines()[0]))
    caught, missed = (sum(len(getattr(one, what)) for one in results) for what in ("caught", "missed"))
    if len(results) > 1:
        out.print(Text(f"{caught} of {caught + missed} planted bugs caught in {len(results)} backwards."))
    return 1 if missed else 0 if caught else 2


def _for_each(what: str, subjects: Subjects, do: Callable[..., Any], seed: int) -> list[Any]:
    """[do(…) for each subject], with a progress bar; do is called like gradcheck."""
    results = []
    with progress_bar(what, len(subjects)) as update:
        for name, (f, inputs, options) in subjects.items():
            with running(name):
                results.append(do(f, *inputs, name=name, seed=seed, **options))
            update(len(results), name)
    return results
