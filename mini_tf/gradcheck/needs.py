"""What needs a gradient: of an object, a dict or a list each floating array that exists before the forward and moves y.

Caches, counters and gradients do not move y. What does, and gets no gradient, may be a constant: the caller has to say.
A Python number is a weight only if one number comes back as its gradient.
"""

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.ownership import Ownership
from mini_tf.gradcheck.parameters import is_layer
from mini_tf.gradcheck.weights import Weight, arrays_in, gradient_names, is_float, named, path_of, reached
from mini_tf.places import codes_inside

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.adapters import Adapter
    from mini_tf.gradcheck.subject import Subject

Weights = dict[str, Weight]


def weights_in(holders: Sequence[tuple[str, Any]], names: Collection[str]) -> Weights:
    """{name: Weight} of what is in [(owner, what it holds)]; names: of inputs, which no weight may have"""
    found, by_id = {}, {}
    for owner, holder in holders:
        if holder is None or is_layer(holder) or is_float(holder):
            continue
        for path, array in arrays_in(holder, numbers=True):
            if id(array) in by_id and is_float(array):
                by_id[id(array)].paths.append(path)
            else:
                name = named((owner, *path) if owner else path)
                by_id[id(array)] = found[f"self.{name}" if name in names else name] = Weight(path, array, owner)
    return found


def without(found: Weights, constants: Collection[str]) -> Weights:
    """The others"""
    return {name: w for name, w in found.items() if name not in constants}


def chosen(entries: Sequence[tuple[str, str]], found: Weights, space: dict[str, Any]) -> Weights:
    """{name: Weight} of what `params` means, [(name or "", path)]: a path, the end of some, a variable of the file"""
    weights = {}
    for name, path in entries:
        same = {n: w for n, w in found.items() if n == path or path_of(path) in w.full_paths}
        same = same or {n: w for n, w in found.items() if n.endswith(f".{path}")}
        if same and not name:
            weights |= same
        elif len(same) == 1:
            weights[name] = next(iter(same.values()))
        elif same or not is_float(array := reached(space, path_of(path))):
            there = ", ".join(same or found) or "no weights in what was given, nor variables of that name in its file"
            raise Refused(f"params: there {'are several arrays' if same else 'is no floating array'} {path!r}: {there}")
        else:
            weights[name or path] = Weight(path_of(path), array, space=space)
    return weights


def kept_gradients(weights: Weights, of: Collection[Weight] | None = None) -> list[Weight]:
    """Those that are gradients of others, by their names: the forward finds zeros there. of: of these only"""
    places = {(w.owner, path) for w in weights.values() for path in w.gradient_paths}
    return [w for w in (weights.values() if of is None else of) if any((w.owner, path) in places for path in w.paths)]


def settle(subject: "Subject", dy_of: Callable[[Any, Any], Any]) -> None:
    """Settle what is a tensor of a Subject, after one run; dy_of(y, backward) draws dy.

    Of weights that get no gradient, which may be constants, there is a refusal; of inputs that may be data, a name.
    """
    y = subject.forward()[0]
    if not (isinstance(y, (np.ndarray, np.generic, float)) and np.asarray(y).dtype.kind == "f"):
        return                                           # `promises` says what is wrong with it
    dropped = _drop_what_does_not_count(subject)
    if around := unchecked_variables(subject.adapter, subject.weights):
        subject.notes.append(f"{', '.join(around)}: used, but not given, so not checked: give them as inputs, or, if "
                             f"they are variables of the file, params={around}")         # fmt: skip
    before = {name: np.copy(x) for name, x in subject.everything.items()}
    y, backward = subject.forward()
    gradients = backward(dy_of(np.asarray(y), backward))
    for name, x in before.items():                       # a wrong backward may write into them
        subject.everything[name][...] = x
    for name, w in dropped.items():
        if any(is_float(g) and np.any(g) for g in (reached(subject.last[w.owner], path) for path in w.gradient_paths)):
            subject.notes.append(f"y does not depend on {name}, and its gradient is not 0")
    _add_numbers(subject, gradients)
    blank = [name for name in subject.tensors if gradients.get(name) is ...]
    if len(blank) < len(subject.tensors):                # of an exercise: what is filled is judged
        subject.refusals += [f"d{name} is still `...`: a blank to fill" for name in blank]
        subject.tensors = without(subject.tensors, blank)
    lacking = [name for name in subject.weights if gradients.get(name) is None]
    states = [name for name in lacking if subject.weights[name].replaced]
    if states:
        subject.notes.append(f"{', '.join(states)}: the forward replaces it; taken for a state, which gets no gradient")
        lacking = [name for name in lacking if name not in states]
    subject.refusals += [_about(lacking)] if lacking else []
    subject.tensors = without(subject.tensors, [*lacking, *states])
    if subject.ownership.strict or all(gradients.get(name) is None for name in subject.tensors):
        return
    for name in [n for n in subject.floats if gradients.get(n) is None]:
        subject.data += [name] if subject.depends_on(name) else []
        del subject.tensors[name]


def _drop_what_does_not_count(subject):
    """Take arrays on which y does not depend from the weights; gives {name: Weight} of those that no run replaces."""
    holders, weights = subject.last, subject.weights
    used = [(w.owner, w.paths[0]) for w in kept_gradients(weights) if w.number and _moves(subject, w)]
    for w in weights.values():                           # a step dt that the forward uses, as in t + dt, is no gradient
        w.gradient_paths = [path for path in w.gradient_paths if (w.owner, path) not in used]
    for name, w in weights.items():
        w.replaced = not w.number and w.space is None and not any(
            reached(holders[w.owner], path) is subject.tensors[name] for path in w.paths
        )
    dropped = {n: w for n, w in weights.items() if not w.number and not subject.depends_on(n)}
    subject.notes += [f"y does not depend on {n}" for n in dropped if subject.chosen]
    subject.gradients_kept = kept_gradients(weights, dropped.values())
    subject.weights, subject.tensors = without(weights, dropped), without(subject.tensors, dropped)
    subject.ownership = Ownership(subject, subject.ownership.kept, subject.ownership.order)
    return {n: w for n, w in dropped.items() if not w.replaced and w not in subject.gradients_kept}


def _moves(subject, number):
    """Whether y depends on a number"""
    name = next(n for n, w in subject.weights.items() if w is number)
    subject.tensors[name] = np.array(number.array)
    try:
        return subject.depends_on(name)
    finally:
        del subject.tensors[name]


def _add_numbers(subject, gradients):
    """Numbers that get one number as their gradient become tensors; others are constants."""
    for name in [n for n in subject.numbers if gradients.get(n) is not None]:
        k = subject.names.index(name)
        subject.inputs[k] = subject.tensors[name] = np.array(subject.given[k])
    for name, w in [(n, w) for n, w in subject.weights.items() if w.number]:
        if gradients.get(name) is None or not _moves(subject, w):
            del subject.weights[name]
        else:
            subject.tensors[name] = np.array(w.array)


def _about(names):
    """Why weights that y depends on are not tested, and what to say"""
    *_, last = path_of(names[0])
    looked = gradient_names(last)[0] if isinstance(last, str) else f"grads[{last}]"
    paths = ", ".join(f"{name!r}: 'path.to.its.gradient'" for name in names)
    it = "it" if len(names) == 1 else "them"
    return (f"no gradient of {', '.join(names)} was found (looked for {looked} and its like, beside {it} and in what "
            f"came back), and y depends on {it}. Constant? constants={names}. Is the gradient elsewhere? "
            f"grads={{{paths}}}")                        # fmt: skip


def unchecked_variables(adapter: "Adapter", weights: Weights) -> list[str]:
    """Names of variables around the functions that hold floating arrays, and are neither given nor in `params`"""
    found = {}
    for f in (adapter.f, getattr(adapter, "backward", None)) if adapter.owner is None else ():
        if inspect.isfunction(f):
            f = inspect.unwrap(f)
            found |= {name: f.__globals__.get(name) for code in codes_inside(f.__code__) for name in code.co_names}
            found |= inspect.getclosurevars(f).nonlocals
    taken = {path[0] for w in weights.values() if w.space is not None for path in (*w.paths, *w.gradient_paths)}
    return [name for name, x in found.items() if name not in taken and not is_layer(x) and any(arrays_in(x))]
