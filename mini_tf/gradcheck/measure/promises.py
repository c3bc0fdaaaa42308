"""What a forward and a backward promise besides right numbers, with a sentence for each broken promise.

A forward reads what it is given, and gives the same for the same. A backward writes into nothing, gives the same when
it is called again, and its gradients have the shapes and the dtype of what they belong to.
"""

import ast
import linecache
import re
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from mini_tf.gradcheck.adapters import Closure, TorchFunction, described
from mini_tf.gradcheck.errors import FAILURES, Broken, Refused
from mini_tf.gradcheck.source import Unavailable, own_nodes, source_of
from mini_tf.gradcheck.subject import Gradients, Subject
from mini_tf.places import place
from mini_tf.types import Array, Backward

import numpy as np

NUMBERS = np.ndarray, np.generic, float, int
Texts = list[str]        # sentences, or names
THE_DY = "the dy that it was given"
NOT_THEIRS = re.compile(rf"{re.escape(str(Path(__file__).parents[1]))}|<frozen|.*site-packages")


def check_tensors(tensors: dict[str, Array]) -> list[str]:
    """Findings on tensors of which nothing can be measured. Raises Refused."""
    for name, x in tensors.items():
        if not np.isfinite(x).all():
            bad = np.count_nonzero(~np.isfinite(x))
            raise Refused(f"{name} has {bad} of {x.size} entries that are not finite: give it others")
    return [f"{name} is empty, its shape is {x.shape}: there is nothing to measure"
            for name, x in tensors.items() if x.size == 0]       # fmt: skip


def check_forward(subject: Subject) -> tuple[Array, Backward]:
    """(y, backward) of the forward. Raises Broken if it breaks a promise, and Refused if it cannot be judged."""
    given = subject.arrays
    before = {name: np.copy(x) for name, x in given.items()}
    y = np.copy(_forward(subject)[0])
    for name in _changed(given, before):
        line = _line_that_writes(given[name], subject.forward)
        raise Broken(f"the forward wrote into {name}; it should only read what it is given{line}")
    again, backward = _forward(subject)                  # the last one's: a tape may have what the last forward did
    if not np.array_equal(again, y, equal_nan=True):
        raise Refused(
            "the forward gave two different results for the same inputs: is it random? Give it its mask as an input, "
            "mask=mask, or a generator that is seeded anew in each call"
        )
    if not np.isfinite(y).all():
        bad = np.count_nonzero(~np.isfinite(y))
        raise Refused(f"the forward gave {bad} of {np.size(y)} values that are not finite (NaN or infinite): give it "
                      "inputs where it is defined")      # fmt: skip
    return y, backward


def _changed(given: dict[str, Array], before: dict[str, Array]) -> list[str]:
    """The names of the arrays that are not what they were before; they become that again"""
    names = [name for name, x in given.items() if not np.array_equal(x, before[name], equal_nan=True)]
    for name in names:
        given[name][...] = before[name]
    return names


def _line_that_writes(array: Array, run: Callable[[], Any]) -> str:
    """" (at net.py:12)": where run() writes into the array, which is read-only meanwhile; "" if unknown"""
    array.flags.writeable = False
    try:
        run()
    except FAILURES as error:
        return _where(error) if "read-only" in str(error) else ""
    finally:
        array.flags.writeable = True
    return ""


def check_backward(subject: Subject, backward: Backward, dy: Array | float) -> tuple[Gradients, Texts, Texts, Texts]:
    """({name: gradient} that can be compared, findings, notes, names of misfits). Raises Refused.

    misfits: tensors whose gradients are due, but missing or of another form
    """
    given = subject.arrays | ({THE_DY: dy} if isinstance(dy, np.ndarray) else {})
    before = {name: np.copy(x) for name, x in given.items()}
    first = {name: np.copy(g) if isinstance(g, np.ndarray) else g for name, g in _run("backward", backward, dy).items()}
    came_first, written = _numbers(subject.came_back), _changed(given, before)
    findings = [] if written else [*_second_call(subject, backward, dy, first, came_first), *_alone(subject, dy, first)]
    for name in written or _changed(given, before):
        line = _line_that_writes(given[name], lambda: subject.forward()[1](dy))
        findings.append(f"backward wrote into {name}; another op may hold the same array{line}")
    _changed(given, before)
    gradients, lacking, misfits, notes = dict[str, Any](), Texts(), Texts(), Texts()
    for name, x in subject.tensors.items():
        finding = _wrong_form(name, x, first.get(name))
        if finding is not None:
            findings.append(finding)
            misfits.append(name)
        elif first.get(name) is not None:
            gradients[name] = np.asarray(first[name])
        elif subject.depends_on(name):
            lacking.append(name)
            misfits.append(name)
        else:
            notes.append(f"y does not depend on {name}")
    if lacking:
        sentence = _on_missing_gradients(subject, backward, lacking, nothing=all(g is None for g in first.values()))
        if subject.refusals:                             # an object may keep all of them where no rule finds them
            raise Refused(sentence)
        findings.append(sentence)
    return gradients, findings, notes, misfits


def _on_missing_gradients(subject: Subject, backward: Any, names: Texts, nothing: bool) -> str:
    """A sentence on tensors that get no gradient: perhaps the backward's `return` is missing, or one is a constant."""
    none = f"no gradient of {', '.join(names)} came back"
    if nothing and (last := _without_return(backward.of)):
        return f"{none}: {backward.of.__name__} returns None: is `return` missing at line {last}?"
    if all(name in subject.params for name in names):
        return f"{none}: backward added none to {'its' if len(names) == 1 else 'their'} .grad"
    if nothing or subject.came_back is None:
        return f"{none}: the backward returned None"
    constants = ", ".join(f"{name}={name}" for name in names)
    return f"{none}; a constant is given by its name: gradcheck({subject.adapter.name}, …, {constants})"


def _without_return(function: Any) -> str:
    """"9, `2 * x * dy`": the last line of a function in which no `return` gives anything; else "" """
    with suppress(Unavailable):
        node, file = source_of(function).node, source_of(function).file
        returns = [one for one in own_nodes(node) if isinstance(one, ast.Return) and one.value]
        if not isinstance(node, ast.Lambda) and not returns:
            return f"{node.body[-1].lineno}, `{' '.join(file.of(node.body[-1]).split())}`"
    return ""


def _second_call(subject: Subject, backward: Backward, dy: Any, first: Gradients, came_first: list[Array]) -> Texts:
    """Findings where a second call of the same backward gives something else; objects keep state, and need not"""
    if not isinstance(subject.adapter, Closure):
        return []
    try:
        again = backward(np.copy(dy) if isinstance(dy, np.ndarray) else dy)
    except FAILURES as error:
        freed = type(error).__name__ == "MemoryFreed"    # a model's backward runs once
        return [] if freed else [f"backward raised when it was called a second time: {told(error)}"]
    theirs = [n for n in subject.params if isinstance(first.get(n), np.ndarray)]
    if once := [n for n in theirs if not np.allclose(again[n], 2 * first[n], rtol=1e-9, atol=1e-300, equal_nan=True)]:
        return [f"the gradient of {', '.join(once)} did not add up when backward was called a second time: it has to "
                "add to .grad, as a Parameter may be used twice"]        # fmt: skip
    came = _numbers(subject.came_back)
    alike = [np.array_equal(a, b, equal_nan=a.dtype != object) or (subject.adapter.may_be_single and _close(a, b))
             for a, b in zip(came, came_first)]          # fmt: skip
    same = all(alike) and len(came) == len(came_first)
    return [] if same else ["backward gave another answer when it was called a second time"]


def _alone(subject: Subject, dy: Any, first: Gradients) -> Texts:
    """Findings where a torch.autograd.Function gives another gradient of an input if that alone needs one"""
    adapter, found = subject.adapter, Texts()
    if isinstance(adapter, TorchFunction):
        for name in subject.floats:
            adapter.alone = name
            try:
                came = subject.run(dy)[name]
            finally:
                adapter.alone = ""
            if (came is None) != (first[name] is None) or not (came is None or _close(came, first[name])):
                what = "no gradient" if came is None else "another gradient"
                found.append(f"{what} of {name} came back when no other input needed one: see ctx.needs_input_grad")
    return found


def _close(a: Array, b: Array) -> bool:
    """Whether two arrays are the same up to float32's rounding, as sums in another order are on a GPU"""
    return bool(np.shape(a) == np.shape(b) and np.allclose(a, b, 0, 1e-5 * np.abs(b).max(initial=0), equal_nan=True))


def _numbers(came: Any) -> list[Array]:
    """Copies of all arrays and numbers in what came back"""
    if isinstance(came, (list, tuple, dict)):
        return [number for part in (came.values() if isinstance(came, dict) else came) for number in _numbers(part)]
    return [np.copy(came)] if isinstance(came, NUMBERS) else []


def _wrong_form(name: str, x: Array, gradient: Any) -> str | None:
    """A sentence that says what is wrong with the form of the gradient of x; None if it can be compared, or is None."""
    if gradient is None:
        return None
    if isinstance(gradient, list):
        raise Refused(f"d{name} is a list of numbers, expected an array: np.array(d{name})")
    if not isinstance(gradient, NUMBERS) or np.asarray(gradient).dtype == object:
        raise Refused(f"d{name} is {described(gradient)}, expected an array of shape {x.shape}")
    if np.shape(gradient) != x.shape:
        turned = ": it is transposed" if x.ndim > 1 and np.shape(gradient) == x.shape[::-1] else ""
        return f"d{name} has shape {np.shape(gradient)}, expected {x.shape} as {name} has{turned}"
    if np.asarray(gradient).dtype != x.dtype:
        return (f"d{name} has dtype {np.asarray(gradient).dtype}, expected {x.dtype} as {name} has; a dtype named in "
                "the code, or a list of whole numbers, changes it")      # fmt: skip
    return None


def _forward(subject: Subject) -> tuple[Any, Backward]:
    y, backward = _run("forward", subject.forward)
    if y is Ellipsis:
        raise Refused("y is still `...`: a blank to fill")
    if y is None:
        raise Refused("the forward returned None, expected y. If it keeps it, give an object that returns it: class "
                      f"Checked({subject.adapter.name}): def forward(self, x): super().forward(x); return self.output")
    if not isinstance(y, NUMBERS):
        raise Refused(f"y is one {type(y).__name__}, expected a floating array or a number; of a tensor object give "
                      "its array: gradcheck(lambda x: …, x) with y.data")    # fmt: skip
    if np.asarray(y).dtype != np.float64:
        raise Refused(f"y has dtype {np.asarray(y).dtype}, expected float64, which all tensors have, as slopes are "
                      "measured in it: if a dtype is named in the code, write x.dtype in its place")         # fmt: skip
    if np.size(y) == 0:
        raise Refused(f"y is empty, its shape is {np.shape(y)}: there is nothing to differentiate")
    if np.ndim(y) and not subject.adapter.takes_dy:
        raise Refused(
            f"{subject.adapter.name} gives {np.size(y)} numbers, and its backward takes no dy: is it the gradient of "
            "their mean, or of their sum? Say so: gradcheck((lambda …: f(…).mean(), backward), …), or .sum(). Does it "
            "give f′(x)? lambda dy, x: dy * …"
        )
    return y, backward


def _run(name: str, run: Callable[..., Any], *given: Any) -> Any:
    try:
        return run(*given)
    except Refused:
        raise
    except FAILURES as error:
        raise Refused(raised(f"the {name}", error)) from error


def told(error: BaseException) -> str:
    """An exception in one line: its message, and the author's line that raised it."""
    return f"{type(error).__name__}: {error}{_where(error)}"


def _where(error: BaseException) -> str:
    frame, line = _authors_line(error)
    return f" (at {place(frame.f_code.co_filename, line)})" if frame else ""


def raised(what: str, error: BaseException) -> str:
    """What raised the exception, in a sentence; of a line that uses a blank of an exercise, only that"""
    frame, line = _authors_line(error)
    if frame is not None:
        used = re.findall(r"\w+", linecache.getline(frame.f_code.co_filename, line))
        if blanks := [name for name in used if frame.f_locals.get(name) is ...]:
            where = place(frame.f_code.co_filename, line)
            return f"`{blanks[0]}` is still `...`, a blank to fill first: it is used at {where}"
    return f"{what} raised {told(error)}"


def _authors_line(error: BaseException) -> tuple[FrameType | None, int]:
    """(frame, line) of the last in a traceback that is neither the checker's nor an installed package's; (None, 0)"""
    frames = [one for one in traceback.walk_tb(error.__traceback__) if not NOT_THEIRS.match(one[0].f_code.co_filename)]
    return frames[-1] if frames else (None, 0)


def place_of(function: Any) -> str:
    """Where a function is written, "net.py:12"; "" if that is not known"""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return place(code.co_filename, code.co_firstlineno) if code is not None else ""
