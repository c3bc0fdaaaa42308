"""What y, backward = f(…) promises besides right numbers, with a sentence for each broken promise."""

import copy
import inspect
import re
from contextlib import contextmanager
from functools import partial

from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_ours, is_theirs
from mini_tf.gradcheck.measuring.brought import Brought, Machine
from mini_tf.gradcheck.measuring.naming import LEARNED, in_this_case, is_gradient_name, unclaimed
from mini_tf.gradcheck.measuring.returned import parameters_of
from mini_tf.gradcheck.measuring.stored import VALUE, members, reached, ways_in
from mini_tf.gradcheck.measuring.styles import partner_wanted
from mini_tf.gradcheck.measuring.subject import (
    Subject,
    argument_names,
    call_backward,
    is_float,
    kind_of,
    name_of,
    own_parameters,
    told,
    upstream_name,
)
from mini_tf.gradcheck.measuring.variables import Variables, arrays_named_in, named_in
from mini_tf.trace import keeps_contract
from mini_tf.types import Array, Backward

import numpy as np


class Broken(Exception):
    """The check cannot go on; str(broken) is the finding. evidence: of a backward that raised, without gradients"""

    evidence = None


def _has_floats(x):
    """True if a list, or a list in it, has floats or arrays of floats."""
    return any(map(_has_floats, x)) if isinstance(x, (list, tuple)) else is_float(x) or isinstance(x, float)


def check_inputs(subject: Subject) -> list[str]:
    """Raise Broken, or give findings, for inputs whose gradient cannot be measured."""
    if inspect.isclass(subject.f):
        name = name_of(subject.f)
        raise Broken(f"{name} is a class: give an object of it, as in gradcheck({name}(…), x)")
    for name, x in zip(subject.names, subject.inputs):
        wanted = name not in subject.optional            # of weights=(0.5, 2.0) nobody expects one
        wanted = wanted and not any(name == owner for owner, _ in subject.leaves.values())
        if isinstance(x, (list, tuple)) and wanted and _has_floats(x):
            raise Broken(f"{name} is a {type(x).__name__}, expected an array: try np.array({name}, dtype=float); or, "
                         f"if it is an option, gradcheck(lambda x: {name_of(subject.f)}(x, …), x)")  # fmt: skip
        if kind_of(x) == "c":
            raise Broken(f"{name} is complex, expected real numbers")
    for name, p in subject.not_parameters.items():
        if isinstance(p, str):
            there = ", ".join(own_parameters(subject.f)) or "none"
            raise Broken(f"params: {name_of(subject.f)} has no array {p!r}; there are: {there}")
        raise Broken(
            f"params: {name} is of type {type(p).__name__}, expected a Parameter, which has .data and .grad; to "
            "check the gradient of an array, make it an argument of the function, and let the backward return it"
        )
    if not subject.tensors:
        came = [f"{n} is {getattr(x, 'dtype', repr(x)[:40])}" for n, x in zip(subject.names, subject.inputs)]
        raise Broken(
            "there is no floating input or parameter to check"
            + (f" ({', '.join(came)}): only floating numbers have a slope; try .astype(float), or 2.0" if came else "")
        )
    findings = []
    for name, x in subject.tensors.items():
        if not np.isfinite(x).all():
            raise Broken(f"{name} has {np.count_nonzero(~np.isfinite(x))} of {x.size} entries that are not finite")
        if x.size == 0:
            findings.append(f"{name} is empty, its shape is {x.shape}: there is nothing to measure")
    return findings


def check_forward(subject: Subject) -> tuple[Array, Backward]:
    """(y, backward) of the forward. Raises Broken if it breaks a promise."""
    before = [np.copy(x) for x in subject.tensors.values()]
    y, backward = _forward(subject)
    for (name, x), was in zip(subject.tensors.items(), before):
        if not np.array_equal(x, was):
            raise Broken(f"the forward wrote into {name}; an op only reads what it is given")
    again, _ = _forward(subject)
    if np.shape(again) != np.shape(y) or not np.array_equal(y, again, equal_nan=True):
        raise Broken(
            "the forward gave two different results for the same inputs: is it random? Give it its random mask as an "
            "input, as dropout has it, or a generator that is seeded anew in each call"
        )
    if not np.isfinite(y).all():
        bad = np.count_nonzero(~np.isfinite(y))
        raise Broken(
            f"the forward gave {bad} of {np.size(y)} values that are not finite (NaN or infinite); if the function is "
            "not defined everywhere, give it inputs where it is"
        )
    return np.asarray(y), backward


def check_backward(
    subject: Subject, backward: Backward, dy: Array | float
) -> tuple[dict[str, Array | float], dict[str, Array], list[str], list[str]]:
    """({name: gradient} that can be compared, {name: array} that has none, findings, notes). Raises Broken."""
    given = dict(zip(subject.names, subject.inputs))
    given = {name: x for name, x in given.items() if isinstance(x, np.ndarray) and x.dtype != object}
    before = {name: np.copy(x) for name, x in given.items()}
    dy_before = np.copy(dy)
    for p in subject.params.values():
        p.grad = None
    returned = _backward(backward, dy)
    first = [np.copy(g) if isinstance(g, np.ndarray) else g for g in subject.listed(returned)]
    wrote_into_dy = not np.array_equal(dy, dy_before)
    if wrote_into_dy:
        dy[...] = dy_before
    grads = {name: None if p.grad is None else np.copy(p.grad) for name, p in subject.params.items()}
    gradients = subject.named(tuple(first)) | grads

    findings = []
    again = subject.listed(_backward(lambda dy: call_backward(subject, backward, dy), dy))
    again = [np.copy(g) if isinstance(g, np.ndarray) else g for g in again]
    findings += [f"backward wrote into {n}" for n, x in given.items() if not np.array_equal(x, before[n])]
    for name, x in before.items():
        given[name][...] = x                             # undo what it wrote: slopes are still to be measured
    if wrote_into_dy or not np.array_equal(dy, dy_before):
        findings.append(f"backward wrote into {upstream_name(backward)}; another op may hold the same array")
        dy[...] = dy_before
    same = len(again) == len(first) and all(map(_equal, first, again))
    is_an_op = is_ours(inspect.unwrap(subject.f)) and not isinstance(subject.f, Brought)
    adds_up = not same and not is_an_op and _only_adds_up(subject, first, dy)
    if not same and not adds_up:
        findings.append("backward gave another answer when it was called a second time")
    for name, p in subject.params.items():
        # Gradients that cannot be compared are found below.
        if np.shape(p.grad) == np.shape(p.data) == np.shape(grads[name]) and not np.allclose(
            p.grad, 2 * grads[name], rtol=1e-9, atol=1e-300, equal_nan=True
        ):
            findings.append(f"the gradient of {name} did not add up over two backwards (`=` where += belongs?)")

    wanted = subject.floats
    matched = not wanted or bool(subject.receivers(len(first)))
    if not matched:
        many = "few" if len(first) < len(wanted) else "many"
        findings.append(
            f"backward gave {len(first)} gradient{'s' * (len(first) != 1)}, too {many}: expected {len(wanted)}, "
            f"one for each of {', '.join(wanted)}"
        )
    comparable, unused, notes = {}, [], _whole_numbers(subject, gradients)
    if adds_up:
        notes.append("called a second time, backward adds to the gradients of the first call: call it once after each "
                     "forward")  # fmt: skip
    views = {name: x for name, x in subject.tensors.items() if getattr(subject.params.get(name), "shares", False)}
    views = {name: x for name, x in views.items() if not subject.depends_on(name)}
    gradients |= dict.fromkeys(views)
    missing, data = subject.leave_out(gradients)
    views = {name: x for name, x in views.items()        # theta, where W1, b1, … have it all, and are checked
             if not all(gradients.get(part) is not None for part in subject.params[name].has_it_all_in or [name])}
    if data:
        notes.append(f"the backward returns no gradient of {', '.join(data)}: not checked")
    notes += [_about_missing(subject, name) for name in missing]
    findings += [f"{made} is computed, but not returned" for name in missing for made in _not_returned(backward, name)]
    if views:
        missing |= views
        notes.append(f"{', '.join(views)} shares its memory with other arrays of the object, which a copy does not: "
                     "not tested; the others are")  # fmt: skip
    for name, x in subject.tensors.items():
        if name in subject.params and gradients.get(name) is None and not subject.depends_on(name):
            unused.append(name)
            continue
        finding = _incomparable(name, x, gradients.get(name), name in subject.params)
        if finding is None:
            comparable[name] = gradients[name]
        elif matched or name in subject.params:
            findings.append(finding)
    notes += [f"y does not depend on {', '.join(unused)}"] if unused else []
    if around := _weights_around(subject):
        missing = missing | around
        f, is_partial = name_of(subject.f), isinstance(getattr(subject.f, "written_forward", subject.f), partial)
        how = "a partial brings it along: give it as an input to have it checked" if is_partial else (
            f"if it is data, gradcheck(lambda x: {f}(x), x)")  # fmt: skip
        notes.append(
            f"no gradient of {', '.join(around)} was found, which {f} is not given, but reads: not tested; {how}"
        )
    if unknown := _unclaimed(subject, returned):
        missing = missing | unknown
        notes.append(f"the backward returns {', '.join(map(repr, unknown))}, and nothing is called so: not tested; the "
                     "gradient of W may be called W, dW, W_grad and the like")  # fmt: skip
    differing = getattr(subject.f, "kept_differently", ())
    findings += [f"the gradient of {name} that comes back is not the one that the object keeps" for name in differing]
    if isinstance(subject.f, Machine) and subject.params and not findings:
        more, notes_on_it = _of_another_run(subject, dy)
        findings, notes = findings + more, notes + notes_on_it
    if any(gradient is Ellipsis for gradient in gradients.values()):
        notes += _blanks(backward)
    return comparable, missing, findings, notes


def _only_adds_up(subject, gradients, dy):
    """Whether a backward only adds to what its earlier calls left, as a tape's x.grad += does

    Then a call with zeros leaves nothing, and another one gives the gradients.
    """
    _, backward = subject.forward()
    try:
        subject.listed(backward(0 * dy))
        found = subject.listed(backward(np.copy(dy) if np.ndim(dy) else dy))
    except FAILURES:
        return False
    return len(found) == len(gradients) and all(map(_equal, gradients, found))


def _of_another_run(subject, dy):
    """(findings, notes) on gradients that an object has from an earlier run, where those of a new one belong"""
    inputs, params = subject.arguments(), subject.params.items()
    others = [1.1 * x + 0.01 if is_float(x) else x for x in inputs]
    grads = {name: p.grad for name, p in params}
    try:
        found = subject.f.run_again(inputs, others, dy)
    except FAILURES:                                     # not defined there
        found = {}
    finally:
        for name, p in params:
            p.grad = grads[name]
    old = [name for name, what in found.items() if what == "old"]
    added = [name for name, what in found.items() if what == "adds up"]
    others = [name for name, what in found.items() if what == "new"]
    findings = [f"the gradient of {name} is another if the object has run before: is that of the first run kept?"
                for name in old]                         # fmt: skip
    notes = [f"over several calls, the gradient of {', '.join(added)} adds up, and that of {', '.join(others)} does "
             "not: is it set to zero?"]                  # fmt: skip
    return findings, notes if added and others else []


def _weights_around(subject):
    """{name: array} of weights of a learner's file, or around f, that y depends on, without a gradient.

    Those that a lambda brings along, gradcheck(lambda x: f(x, W), x), are data.
    """
    f = getattr(subject.f, "written_forward", subject.f)
    plain = inspect.isfunction(f) and f.__name__ != "<lambda>" and is_theirs(f)
    known = {id(p.data) for p in subject.all_params} | {id(x) for x in subject.given}
    y, found = np.copy(subject.forward()[0]), {}         # it may be a buffer
    if isinstance(f, partial):
        around = _brought_along(subject, f)
    else:
        around = [*_learned_around(f), *_in_records(f)] if plain else []
    for name, x, other in around:
        if id(x) not in known and not _is_input(x, subject):             # in a cache there may be one
            try:
                with other():
                    found |= {name: x} if not np.array_equal(y, subject.forward()[0]) else {}
            except FAILURES:
                found[name] = x
    return found


def _is_input(x, subject):
    return any(np.may_share_memory(x, one) for one in subject.inputs if isinstance(one, np.ndarray))


def _is_learned(name):
    """True for W, params.W and W.data"""
    *before, last = name.split(".")
    return any(map(LEARNED.match, [last, *before[-1:]] if VALUE.match(last) else [last]))


def _learned_around(f):
    """(name, array, a block in which it is another) of the weights among a function's variables"""
    @contextmanager
    def with_another(p):
        given, p.data = p.data, 1.5 * p.data + 0.1
        try:
            yield
        finally:
            p.data = given

    for name, p in arrays_named_in(f).items():
        if _is_learned(name):
            yield name, p.data, partial(with_another, p)


def _brought_along(subject, f):
    """(name, array, a block in which it is another) of what an object or a dict has that a partial brings along:
    partial(forward, layer)
    """
    owner, attribute = (subject, "f") if subject.f is f else (subject.f, "written_forward")

    @contextmanager
    def with_another(which, way):
        other = copy.deepcopy(f)
        _change(reached(other.args[which] if isinstance(which, int) else other.keywords[which], way))
        setattr(owner, attribute, other)
        try:
            yield
        finally:
            setattr(owner, attribute, f)

    names = [p.name for p in parameters_of(f.func)]
    given = [(k, name, x) for k, (name, x) in enumerate(zip(names, f.args))]
    for which, name, x in [*given, *((name, name, x) for name, x in f.keywords.items())]:
        for way in ways_in(x):
            yield ".".join(map(str, (name, *way))), reached(x, way), partial(with_another, which, way)


def _in_records(f):
    """(name, array, a block in which it is another) of the fields of structured arrays among a function's variables,
    and in objects there
    """
    variables = Variables(f)

    @contextmanager
    def with_another(first, way, field):
        given, other = variables[first], copy.deepcopy(variables[first])
        _change(reached(other, way)[field])
        variables[first] = other
        try:
            yield
        finally:
            variables[first] = given

    waiting = [(name, (), x) for name, x in named_in([f], variables).items()]
    while waiting:
        first, way, x = waiting.pop()
        if isinstance(x, np.ndarray) and x.dtype.names:
            for field in [field for field in x.dtype.names if is_float(x[field])]:
                yield ".".join(map(str, (first, *way, field))), x[field], partial(with_another, first, way, field)
        elif len(way) < 2:
            waiting += [(first, (*way, name), part) for name, part in members(x).items()]


def _change(x):
    x[...] = 1.5 * x + 0.1


def _unclaimed(subject, returned):
    """{name: gradient} of those that a backward returned by names that fit nothing"""
    named = returned if isinstance(returned, dict) else getattr(subject.f, "by_key", {})
    by_key = {said: g for said, g in named.items() if isinstance(said, str) and isinstance(g, np.ndarray)}
    tensors = [*subject.names, *subject.params, *subject.leaves, *argument_names(subject.f, len(subject.inputs))]
    parts = {part for name in tensors for part in (name, name.rpartition(".")[2], *_numbered(name))}
    return {said: by_key[said] for said in unclaimed(by_key, parts)}


def _numbered(name):
    """["W0", "0W"] of layers.0.W"""
    *_, number, last = ["", *name.split(".")]
    return [f"{last}{number}", f"{number}{last}"] if number.isdigit() else []


def _whole_numbers(subject, gradients):
    """A note on each input of whole numbers for which there is a gradient: it was not checked."""
    given = dict(zip(subject.names, subject.inputs))
    names = [name for name, g in gradients.items() if g is not None and kind_of(given.get(name)) in ("i", "u")]
    return [f"{name} has whole numbers, so its gradient was not tested: try {name}.astype(float)" for name in names]


def _not_returned(backward, name):
    """["db"] if the backward has a variable that is named as the gradient of what is learned, and was not returned"""
    code = getattr(inspect.unwrap(backward), "__code__", None)
    variables = code.co_varnames if code is not None and LEARNED.match(name) else ()
    return [one for one in variables if one != name and is_gradient_name(one, name) and in_this_case(one, name)][:1]


def _about_missing(subject, name):
    """Say that a tensor was not checked, and what to do about it."""
    if name in subject.by_name:
        f = name_of(subject.f)
        return (
            f"the backward returns no gradient of {name}, which was given by name: not tested; if it is data, "
            f"gradcheck(lambda x: {f}(x, …, {name}={name}), x)"
        )
    if name not in subject.params:
        return f"the backward returns no gradient of {name}: not tested"
    last = next((part for part in reversed(name.split(".")) if not part.isdigit()), name)
    return (
        f"no gradient of {name} was found: not tested. Looked for d{last}, {last}_grad, grads[{last!r}] and their "
        "like; if it is not learned, name what is: params=[…]"
    )


def _blanks(backward):
    """A note that lists the blanks left in the backward: `name = ...`."""
    try:
        lines, first = inspect.getsourcelines(inspect.unwrap(backward))
    except (OSError, TypeError):
        return []
    found = [(re.match(r" *(\w+) = \.\.\.", line), number) for number, line in enumerate(lines, first)]
    blanks = [f"{match[1]} (line {number})" for match, number in found if match]
    if not blanks:
        return []
    return [f"still blank: {', '.join(blanks)}; a blank that others are computed from is judged with them"]


def _incomparable(name, x, gradient, parameter):
    """A sentence that says why this gradient of x cannot be compared with measured slopes; None if it can."""
    if gradient is None:
        return f"no gradient for {name}: backward " + ("added none to it" if parameter else "gave None")
    if gradient is Ellipsis:
        return f"d{name} is still `...`: a blank to fill"
    if not (isinstance(gradient, (np.ndarray, np.generic)) or (x.ndim == 0 and isinstance(gradient, float))):
        return f"d{name} is a {type(gradient).__name__}, expected an array of shape {x.shape}"
    if np.shape(gradient) != x.shape:
        turned = ": it is transposed" if np.shape(gradient) == x.shape[::-1] else ""
        return f"d{name} has shape {np.shape(gradient)}, expected {x.shape} as {name} has{turned}"
    if np.asarray(gradient).dtype != x.dtype:
        return (
            f"d{name} has dtype {np.asarray(gradient).dtype}, expected {x.dtype} as {name} has; "
            "a dtype named in the op, or a list of numbers, changes it"
        )
    return None


def _forward(subject):
    try:
        result = subject.forward()
    except FAILURES as error:
        raise Broken(f"the forward raised {told(error, subject.f)}") from error
    if not keeps_contract(result):
        came = f"one {type(result).__name__}"
        if isinstance(result, tuple):
            came = f"{len(result)} things ({', '.join(type(part).__name__ for part in result)})"
        name = name_of(subject.f)
        raise Broken(
            f"the function returned {came}, expected y, backward, where backward is a function; or write "
            f"{partner_wanted(name)}(dout, cache) beside it, or give an object with forward and backward"
        )
    y = result[0]
    if y is Ellipsis:
        raise Broken("y is still `...`: a blank to fill")
    if not isinstance(y, (np.ndarray, np.generic, float, int)):
        raise Broken(f"y is a {type(y).__name__}, expected one floating array or number")
    if np.asarray(y).dtype.kind != "f":
        raise Broken(f"y has dtype {np.asarray(y).dtype}, expected a floating one")
    if np.size(y) == 0:
        raise Broken(f"y is empty, its shape is {np.shape(y)}: there is nothing to differentiate")
    return result


def _backward(backward, dy):
    try:
        return backward(dy)
    except FAILURES as error:
        raise Broken(f"the backward raised {told(error, backward)}") from error


def _equal(a, b):
    if type(a) is not type(b) or not isinstance(a, (np.ndarray, np.generic, float)):
        return type(a) is type(b)
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
