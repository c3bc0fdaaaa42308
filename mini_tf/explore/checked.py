"""What the checker has found, as a page shows it: in words, at its lines, and as three arrays for each gradient."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from mini_tf.explore.arrays import Store, allowed, is_float
from mini_tf.explore.sheets import Sheet
from mini_tf.gradcheck import Report, Slopes, TensorReport
from mini_tf.gradcheck.page import PLACE
from mini_tf.gradcheck.report import FAIL, PASS, Comparison
from mini_tf.gradcheck.wording import listed
from mini_tf.pages import highlighted
from mini_tf.types import Array

import numpy as np

Sentence = dict[str, Any]            # {"kind", "text"}; of a line of code with "file", "line", and "html" of its text
STATES = "wrong", "not tested", "right"
HERE, BLANK = "the mistake can be here", "a blank to fill"
ELSEWHERE = {
    "generic": "It is right at your numbers, and wrong at random ones. These are of random ones.",
    "far": "It is right at your numbers and at random ones, and wrong far from them. These are from there.",
}  # fmt: skip


def checked(
    store: Store, report: Report, gradients: dict[str, Any], measured: dict[str, Slopes], sheets: Iterable[Sheet] = ()
) -> dict[str, Any]:  # fmt: skip
    """What a page holds of a check.

    gradients   {name: what the backward gave for it, on the page};  measured: {name: the slopes there, of every entry}
    sheets      of the functions that ran, whose blanks are looked for

    verdict, headline   of all
    said                [Sentence], without those about a single gradient
    marks               [{"file", "line", "words"}]: the lines that it names
    gradients           the worst first: [{"name", "state", "words"}], with the index of its "worst" entry, and `_maps`
    """
    tensors = {tensor.name: tensor for tensor in report.tensors}
    found = [_gradient(store, report, name, tensors.get(name), gradients.get(name), measured.get(name))
             for name in dict.fromkeys([*tensors, *measured])]           # fmt: skip
    found.sort(key=lambda one: -one.pop("off"))
    own = {words for one in found for words in one["words"]}
    said = [one for one in sentences(report) if one["kind"] not in ("tensor", "words") and one["text"] not in own]
    return {
        "verdict": report.verdict, "headline": _headline(report, found), "said": said,
        "marks": _marks(report) or _blanks(report, sheets), "gradients": found,
    }  # fmt: skip


def sentences(report: Report) -> Iterator[Sentence]:
    """The lines of a report, and of that on its first wrong step, whose gradients are not those of the page"""
    for line in report.lines():
        if line.kind == "report":
            for one in sentences(line.about):
                yield one | {"kind": "step"} if one["kind"] in ("tensor", "words") else one
        elif line.kind in ("now", "right"):
            yield {"kind": line.kind, "text": line.text, "html": "\n".join(highlighted(line.text))}
        elif line.kind == "place":
            yield _placed(line.text)
        else:
            of = f"d{line.about.name}: " if line.kind == "words" else ""
            yield {"kind": line.kind, "text": of + " ".join(line.text.split())}


def on_the_mistake(report: Report) -> Report:
    """The report on the first wrong step, if there is one"""
    step = report.wrong_step
    return report if step is None else step.report or report


def _placed(text: str) -> Sentence:
    """Of "net.py:12  dx = dy" """
    match = PLACE.fullmatch(text)
    if match is None:
        return {"kind": "note", "text": text}
    code = text[match.end(2) :].strip()
    return {"kind": "place", "text": f"{match[1]}:{match[2]}", "file": match[1], "line": int(match[2]),
            "html": highlighted(code)[0] if code else ""}                # fmt: skip


def _marks(report: Report) -> list[dict[str, Any]]:
    """The lines to change, with the kind of each change; or those that may be wrong"""
    report = on_the_mistake(report)
    said = [(change.place, change.kind) for change in report.changes] or [(one, HERE) for one in report.suspects]
    return [{"file": match[1], "line": int(match[2]), "words": words}
            for place, words in said if (match := PLACE.fullmatch(place))]           # fmt: skip


def _blanks(report: Report, sheets: Iterable[Sheet]) -> list[dict[str, Any]]:
    """The lines with a blank, `dx = ...`, if the checker has met one"""
    if not any(BLANK in one for one in (*report.refusals, *report.findings)):
        return []
    return [{"file": sheet.file, "line": number, "words": BLANK}
            for sheet in sheets for number, line in enumerate(sheet.source, sheet.first)
            if re.search(r"= *\.\.\. *(#.*)?$", line)]                # fmt: skip


def _headline(report: Report, gradients: list[dict[str, Any]]) -> str:
    """ "dx and dW are wrong; db is right." """
    by_state = {state: [one["name"] for one in gradients if one["state"] == state] for state in STATES}
    said = [f"{listed(some)} {'is' if len(some) == 1 else 'are'} {state}" for state, some in by_state.items() if some]
    if report.verdict == FAIL and not by_state["wrong"]:
        said.append("but a backward has to keep other promises, too")
    return "; ".join(said) if gradients else "No gradient could be compared"


def _gradient(
    store: Store, report: Report, name: str, tensor: TensorReport | None, yours: Any, measured: Slopes | None
) -> dict[str, Any]:  # fmt: skip
    """One of the gradients of `checked`; "off" says how wrong it is, to sort them by"""
    about = [one for one in (*report.findings, *report.refusals) if re.match(rf"d{re.escape(name)}\b", one)]
    verdict = FAIL if any(one in report.findings for one in about) else tensor.verdict if tensor else ""
    words, c = about, None
    if tensor is not None:
        words, c = [*about, tensor.sentence[0].upper() + tensor.sentence[1:], tensor.diagnosis], tensor.worst
    if c is not None and (measured is None or (c.wrong and c.point != "given")):
        words.append(ELSEWHERE.get(c.point, ""))
        yours, measured = c.gradient, _slopes_of(c)
    maps, share = _maps(store, np.asarray(yours) if is_float(yours) else None, measured)
    state, off = {FAIL: ("wrong", 2 + share), PASS: ("right", 0.0)}.get(verdict, ("not tested", 1.0))
    worst = list(c.index) if c is not None and verdict == FAIL else None
    words = [one for one in words if one]
    return {"name": f"d{name}", "state": state, "words": words, "worst": worst, "off": off} | maps


def _slopes_of(c: Comparison) -> Slopes:
    """Of the entries that the checker measured; all others are NaN"""
    unknown = np.isnan(c.slopes)
    return Slopes(c.slopes, np.full(c.slopes.shape, c.uncertainty), unknown & (unknown.sum() == c.set_aside))


def _maps(store: Store, yours: Array | None, measured: Slopes | None) -> tuple[dict[str, Any], float]:
    """({"yours", "measured", "difference": references or None, "kinks": flat indices}, how far it is off)

    The difference is 0 where it is no more than the measurement's uncertainty and rounding.
    """
    shown: dict[str, Any] = {"yours": yours, "measured": None, "difference": None}
    kinks, share = list[int](), 0.0
    if measured is not None:
        slopes = shown["measured"] = np.where(measured.kink, np.nan, measured.slope)
        kinks = np.flatnonzero(measured.kink).tolist()
        if yours is not None and yours.shape == slopes.shape:
            with np.errstate(invalid="ignore"):
                off = np.asarray(yours - slopes)
                off = np.where(np.abs(off) <= allowed(yours, measured.uncertainty), 0, off)
            shown["difference"], known = off, ~np.isnan(slopes)
            largest = np.abs(slopes[known]).max(initial=0) or 1.0
            share = float(np.nan_to_num(np.abs(off[known]), nan=np.inf).max(initial=0) / largest)
    references = {which: None if x is None else store.refer(x.reshape(x.shape or 1)) for which, x in shown.items()}
    return references | {"kinks": kinks}, share
