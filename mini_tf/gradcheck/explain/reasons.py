"""The reasons that a failing report gives, in the order in which they help: a wrong step, a change, words, lines."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mini_tf.errors import counted
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.explain.edits import Edit
from mini_tf.gradcheck.explain.search import Search, all_hold
from mini_tf.gradcheck.explain.sites import Site
from mini_tf.gradcheck.explain.steps import find_steps
from mini_tf.gradcheck.explain.words import sentences
from mini_tf.gradcheck.measure.evidence import Evidence
from mini_tf.gradcheck.program import codes_that_run
from mini_tf.gradcheck.report import LINES, Change, Report
from mini_tf.gradcheck.source import is_current
from mini_tf.gradcheck.subject import Subject
from mini_tf.places import is_theirs, place

import numpy as np

MANY = 3                 # wrong gradients: of more, two changes are not looked for


def add_reasons(report: Report, subject: Subject, evidence: Evidence, other: Evidence | None, seed: int) -> None:
    """Add to a report that fails why it does."""
    nothing_came = not evidence.gradients and subject.came_back is None
    if nothing_came or is_current(evidence.backward.of) is False:
        return
    if _is_model(subject):                               # its ops and layers are checked first, one by one
        find_steps(report, subject, evidence, seed, add_reasons)
        if report.wrong_step is not None:
            return
    search = Search(evidence, other)
    every = search.target.names
    changes = [(edit, every) for edit in search.hits[:1]] or _two_changes(search)
    report.changes = [_change(edit, names) for edit, names in changes]
    report.equal = [_change(edit, every) for edit in search.hits[1:] if edit.line != search.hits[0].line
                    and edit.cost[0] <= search.hits[0].cost[0]][:2]      # in other lines, and as small
    with suppress(*FAILURES), np.errstate(all="ignore"):
        for name, (words, of_path) in sentences(evidence, [*search.points][1:]).items():     # hold at other points, too
            t = report.tensor(name)
            t.diagnosis, t.of_path = words, of_path
    evidence.back_to_the_point()
    if report.changes:
        return
    if not report.steps:
        find_steps(report, subject, evidence, seed, add_reasons)
    if report.wrong_step is None and (evidence.wrong or evidence.misfits):
        report.suspects = _lines(search)
        report.tried = (f"No single change makes it right: {counted(search.tried, 'value')} and "
                        f"{counted(search.programs, 'changed program')} were tried")     # fmt: skip


def _is_model(subject: Subject) -> bool:
    """True for code of mini_tf that calls several of its functions; an author's own functions are searched first"""
    codes = codes_that_run(subject.forward)
    calls_ops = any(Path(code.co_filename).match("mini_tf/ops/op.py") for code in codes)
    whole = bool(subject.params) or not any(is_theirs(code.co_filename) for code in codes)
    return calls_ops and whole and not hasattr(subject.f, "formula")


def _two_changes(search: Search) -> list[tuple[Edit, list[str]]]:
    """(edit, the tensors that it makes right) of two changes that make all right together; none if there are no such

    Where no line can make all right, those of the search are the lines that can make one of them right.
    """
    wrong, lines = [*search.evidence.wrong, *search.evidence.misfits], list[Site]()
    chosen: list[tuple[Edit, list[str]]] = []
    for name in wrong if 2 <= len(wrong) <= MANY else ():
        if not any(name in mended for _, mended in chosen):
            part = Search(search.evidence, search.other, [name, *search.evidence.right])
            lines += part.lines
            for edit in part.hits[:1]:
                chosen.append((edit, [one for one in wrong if all_hold([edit], search.points, [one], search.program)]))
    search.lines = search.lines or lines
    edits, names = [edit for edit, _ in chosen], search.target.names
    return chosen if len(edits) == 2 and all_hold(edits, search.points, names, search.program) else []


def _lines(search: Search) -> list[str]:
    """The lines in which another value could make the gradients right, or one of them; else those not ruled out"""
    some = search.lines or [site for site in search.sites if site.may_repair and not site.is_parameter]
    live = [site for site in some if "backward" in site.phases] or some
    seen = {(site.source.path, site.statement.lineno): site.text_of(site.statement) for site in live}
    return [f"{place(path, line)}  {text}" for (path, line), text in sorted(seen.items())][:LINES]


def _change(edit: Edit, names: Sequence[str]) -> Change:
    where = place(edit.site.source.path, edit.line)
    return Change(where, edit.line, edit.before, edit.after, edit.kind.value, list(names))
