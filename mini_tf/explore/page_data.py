"""What a page holds: sheets, arrays, and the recordings of a computation."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType
from typing import Any

import mini_tf
from mini_tf import ops
from mini_tf.explore.arrays import MOST, Axes, Store
from mini_tf.explore.comparison import Alternative
from mini_tf.explore.dataflow import dataflow
from mini_tf.explore.folding import joined, without_notes_to_tools
from mini_tf.explore.recording import Frame, Recorder
from mini_tf.explore.sheets import Sheet
from mini_tf.kernels import reference_only
from mini_tf.layers import Layer
from mini_tf.pages import highlighted
from mini_tf.places import is_theirs

import numpy as np

ROOT = Path(mini_tf.__file__).parent
READ = {ROOT / folder for folder in ("ops", "layers", "models", "experiment")}
NOT_COLOURED = re.compile(r'<span class="[pow]">([^<]*)</span>')        # punctuation, operators, blanks
NOT_READ = {ROOT / "ops" / "op.py", ROOT / "ops" / "shapes.py", ROOT / "models" / "options.py"}


def follows(code: CodeType) -> bool:
    """True for the code of ops, layers and models, and for the user's own"""
    path = Path(code.co_filename)
    return path not in NOT_READ and (path.parent in READ or is_theirs(code.co_filename))


class PageData:
    """Gathers the data of a page: sheets, arrays and recordings."""

    def __init__(self, axes: Axes | None = None, most: int = MOST):
        self.store = Store(axes, most)
        self.sheets: list[dict[str, Any]] = []
        self.numbers: dict[tuple[str, int], int] = {}    # (path, first line) of a sheet -> its number
        self.folded: list[Sheet] = []                    # by number
        self.needed: dict[str, set[int]] = {}            # {path: lines that made an array, or failed}

    def record(
        self, run: Callable[[Callable[[], None]], Any], with_parts: bool = True,
        partners: dict[str, tuple[str, ...]] | None = None,
    ) -> Recorder:  # fmt: skip
        """The Recorder that has followed run(on_backward). partners: as for Recorder"""
        recorder = Recorder(self.store, follows, with_parts, partners)
        with reference_only(), np.errstate(all="ignore"):
            try:
                with recorder.on():
                    run(recorder.begin_backward)
            except Exception as error:
                recorder.error = error
        return recorder

    def recording(self, recorder: Recorder, label: str, names: dict[int, str] | None = None, **more) -> dict[str, Any]:
        """What the page holds of a recording: its calls and lines. names: {id of a layer: its path in the model}"""
        names, shown = names or {}, self.shown_calls(recorder)
        with_sheets = {frame.maker.number for frame in recorder.frames if frame.number in shown and frame.maker} | shown
        frames = [
            {
                "sheet": self._sheet(frame.written) if frame.number in with_sheets else None,
                "parent": frame.parent and frame.parent.number, "line": frame.line,
                "own": frame.own, "back": frame.is_backward, "maker": frame.maker and frame.maker.number,
                "at": _counted_from_1(names.get(id(frame.owner), "")), "name": frame.written.name,
                "arguments": frame.arguments, "error": frame.error, "shown": frame.number in shown,
            }
            for frame in recorder.frames
        ]  # fmt: skip
        lines = [
            {"frame": line.frame.number, "first": line.first, "last": line.last, "made": self._made(line)}
            | ({"error": line.error} if line.error else {})
            for line in recorder.lines if line.frame.number in shown
        ]  # fmt: skip
        flow = dataflow(recorder, self.store, shown, names).data()
        for line in recorder.lines:
            if line.is_needed:
                self.needed.setdefault(line.frame.sheet.path, set()).update(range(line.first, line.last + 1))
        failed = next((line.error for line in recorder.lines if line.error), "") if recorder.error else ""
        return {"label": label, "frames": frames, "lines": lines, "map": flow, "stopped": failed} | more

    def _made(self, line):
        """[[name, reference, parts, slopes]] of a line, the last only of a gradient that they disagree with"""
        found = []
        for name, ref, parts in line.made:
            own = [measured for number, n, measured in self.store.disagreeing if (number, n) == (ref, name)]
            found.append([name, ref, parts, own[-1]] if own and line.frame.is_backward else [name, ref, parts])
        return found

    @staticmethod
    def shown_calls(recorder: Recorder) -> set[int]:
        """The numbers of the calls that made an array, or failed, and of the calls around them"""
        shown: set[int] = set()
        for line in recorder.lines:
            if line.is_needed:
                frame: Frame | None = line.frame
                while frame is not None and frame.number not in shown:
                    shown.add(frame.number)
                    frame = frame.parent
        return shown

    def _sheet(self, written):
        sheet = written.sheet
        key = sheet.path, sheet.first
        if key not in self.numbers:
            self.numbers[key] = len(self.sheets)
            self.folded.append(sheet)
            self.sheets.append({
                "title": sheet.title, "file": sheet.file, "first": sheet.first, "formulas": sheet.formulas,
                "text": sheet.text, "summary": sheet.summary,
                "lines": _coloured(map(without_notes_to_tools, sheet.source)),
                "op": sheet.is_op,
            })  # fmt: skip
        return self.numbers[key]

    def data(self, recordings: list[dict[str, Any]], **more) -> dict[str, Any]:
        """All that the page's script reads."""
        axes = self.store.axes
        labels = {kind: names for kind, names in axes.labels.items() if kind != "example"}
        for sheet, shown in zip(self.folded, self.sheets):
            folded = joined(sheet.folds, self.needed.get(sheet.path, ()), sheet.source, sheet.first)
            shown["folds"] = [
                {"first": one.first, "last": one.last, "says": one.says}
                | ({"short": _coloured([one.short])[0], "head": one.head} if one.short else {})
                for one in folded
            ]  # fmt: skip
        return {"sheets": self.sheets, "arrays": self.store.arrays, "recordings": recordings, "labels": labels} | more


def _counted_from_1(path: str) -> str:
    """A layer's path in the words of the map: "trunk.layer 1.attention" of "trunk.layers.0.attention" """
    return re.sub(r"(\w+)\.(\d+)", lambda found: f"{found[1].replace('layers', 'layer')} {int(found[2]) + 1}", path)


def _coloured(lines: Iterable[str]) -> list[str]:
    """Lines of source in HTML; what base.css does not colour has no element"""
    return [NOT_COLOURED.sub(r"\1", line) for line in highlighted("\n".join(lines))]


def bad_numbers(pages: PageData, recorder: Recorder) -> list[str]:
    """[a sentence about the first line that made a NaN or an infinity], or []"""
    for line in recorder.lines:
        for name, ref, _ in line.made:
            if isinstance(ref, int) and pages.store.arrays[ref]["bad"]:
                where = f"{line.frame.sheet.file}:{line.first}"
                bad = pages.store.arrays[ref]["bad"]
                return [f"The first array that is not finite is {name}, at {where}: {bad} of its entries are NaN or ∞."]
    return []


def zeros_below(pages: PageData, recorder: Recorder) -> list[str]:
    """[why all gradients below the readout are 0], if the last linear map of the forward has a W that is 0; or []"""
    linear = ops.linear.formula.__code__
    last = next((frame for frame in reversed(recorder.frames) if frame.written.code is linear), None)
    W = dict(last.arguments).get("W") if last else None
    if not isinstance(W, int) or pages.store.arrays[W]["norm"] != 0:
        return []
    return ["The readout starts at 0, and multiplies the gradient by it: at this moment every gradient below it is 0. "
            "The readout's own is not; after one step, neither are the others."]               # fmt: skip


def alternative_data(other: Alternative, recorder: Recorder) -> dict[str, Any]:
    """What the page holds of an Alternative; its lines are numbered as the recording's, in which some are left out."""
    shown = PageData.shown_calls(recorder)
    numbers = [number for number, line in enumerate(recorder.lines) if line.frame.number in shown]
    lines = {new: other.lines[number] for new, number in enumerate(numbers) if number in other.lines}
    edited = highlighted(other.edited)[0] if other.edited else ""
    return vars(other) | {"lines": lines, "edited": edited}


def paths(layer: Layer) -> dict[int, str]:
    """{id: path} of a layer and of all layers and parameters inside it: "trunk.layers.0.attention.query" """
    found = {id(layer): ""}
    for path, member in layer.members():
        found.setdefault(id(member), path)               # of several paths the first
    return found


def with_shared_bytes(data: dict[str, Any]) -> dict[str, Any]:
    """A page's data, with the bytes of arrays and slopes once each, in "bytes", and their numbers in their places

    An array that is reshaped has the same bytes in two shapes, and its slopes.
    """
    numbers: dict[str, int] = {}

    def numbered(x: Any) -> Any:
        return numbers.setdefault(x, len(numbers)) if isinstance(x, str) else x

    arrays = []
    for about in data["arrays"]:
        slopes = about.get("measured", {})
        measured = {of: {name: numbered(x) for name, x in found.items()} for of, found in slopes.items()}
        arrays.append(about | {"data": numbered(about["data"])} | ({"measured": measured} if measured else {}))
    return data | {"arrays": arrays, "bytes": [*numbers]}
