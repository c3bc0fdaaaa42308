"""What needs a gradient: of an object, a dict or a list each floating array that exists before the forward and moves y.

Caches, counters and gradients do not move y. What does, and gets no gradient, may be a constant: the caller has to say.
A Python number is a weight only if one number comes back as its gradient.
"""

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.parameters import is_layer
from mini_tf.gradcheck.weights import FILE, Weight, arrays_in, everything_in, is_float, named, path_of, reached
from mini_tf.places import codes_inside

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.subject import Subject

Weights = dict[str, Weight]


def weights_in(holders: dict[str, Any], names: Collection[str]) -> Weights:
    """{name: Weight} of what is in {owner: what it holds}; names: of inputs, which no weight may have"""
    found, by_id = {}, {}
    for owner, holder in holders.items():
        if is_layer(holder) or is_float(holder):
            continue
        for path, x in everything_in(holder):
            if id(x) in by_id and is_float(x):
                by_id[id(x)].paths.append(path)
            elif is_float(x) or (path and isinstance(x, float) and not isinstance(reached(holder, path[:-1]), tuple)):
                name = named((owner, *path) if owner else path)
                by_id[id(x)] = found[f"self.{name}" if name in names else name] = Weight(path, x, owner)
    return found


def without(found: Weights, constants: Collection[str]) -> Weights:
    """The others"""
    return {name: w for name, w in found.items() if name not in constants}


def chosen(entries: Sequence[tuple[str, str]], found: Weights, variables: dict[str, Any]) -> Weights:
    """{name: Weight} of what `params` means, [(name or "", path)]: a path, the end of some, a variable of the file"""
    weights = {}
    for name, text in entries:
        path = path_of(text)
        same = {n: w for n, w in found.items() if n == text or path in w.full_paths}
        same = same or {n: w for n, w in found.items() if n.endswith(f".{text}")}
        if same and not name:
            weights |= same
        elif len(same) == 1:
            weights[name] = next(iter(same.values()))
        elif same or not is_float(array := reached(variables, path)):
            there = ", ".join(same or found) or "no weights in what was given, nor variables of that name in its file"
            raise Refused(f"params: there {'are several arrays' if same else 'is no floating array'} {text!r}: {there}")
        else:
            weights[name or text] = Weight(path, array, FILE)
    return weights


def settle(subject: "Subject", dy_of: Callable[[Any, Any], Any]) -> None:
    """Settle what is a tensor of a Subject, after one run; dy_of(y, backward) draws dy.

    Of weights that get no gradient, which may be constants, there is a refusal; of inputs that may be data, a name.
    """
    y = subject.forward()[0]
    if not (isinstance(y, (np.ndarray, np.generic, float)) and np.asarray(y).dtype.kind == "f"):
        return                                           # `promises` says what is wrong with it
    dropped = _drop_what_does_not_count(subject)
    if around := unchecked_variables(subject):
        subject.notes.append(f"{', '.join(around)}: used, but not given, so not checked: give them as inputs, or, if "
                             f"they are variables of the file, params={around}")         # fmt: skip
    before = {name: np.copy(x) for name, x in subject.everything.items()}
    y, backward = subject.forward()
    gradients = backward(dy_of(np.asarray(y), backward))
    for name, x in before.items():                       # a wrong backward may write into them
        subject.everything[name][...] = x
    for name, w in dropped.items():
        beside = (reached(subject.last[w.owner], path) for path in w.gradient_paths)
        if not w.replaced and any(is_float(g) and np.any(g) for g in beside):
            subject.notes.append(f"y does not depend on {name}, and its gradient is not 0")
    _add_numbers(subject, gradients)
    lacking = [name for name in subject.weights if gradients.get(name) is None]
    if states := [name for name in lacking if subject.weights[name].replaced]:
        subject.notes.append(f"{', '.join(states)}: the forward replaces it; taken for a state, which gets no gradient")
    needed = [name for name in lacking if name not in states]
    subject.refusals += [_about(needed, subject.weights[needed[0]])] if needed else []
    subject.tensors = without(subject.tensors, lacking)
    if subject.ownership.strict or all(gradients.get(name) is None for name in subject.tensors):
        return
    for name in [n for n in subject.floats if gradients.get(n) is None]:
        subject.data += [name] if subject.depends_on(name) else []
        del subject.tensors[name]


def _drop_what_does_not_count(subject):
    """Take what does not move y from the weights, and give it; numbers only if they may be gradients."""
    weights = subject.weights
    places = {(w.owner, path) for w in weights.values() for path in w.gradient_paths}
    for name, w in weights.items():
        kept = (reached(subject.last[w.owner], path) for path in w.paths)
        w.replaced = not w.number and w.owner != FILE and all(x is not subject.tensors[name] for x in kept)
    dropped = {n: w for n, w in weights.items()
               if (not w.number or (w.owner, w.paths[0]) in places) and not subject.depends_on(n)}       # fmt: skip
    subject.notes += [f"y does not depend on {n}" for n in dropped if subject.chosen]
    subject.weights, subject.tensors = without(weights, dropped), without(subject.tensors, dropped)
    return dropped


def _add_numbers(subject, gradients):
    """Numbers that get one number as their gradient become tensors; others are constants."""
    for name in [n for n in subject.numbers if gradients.get(n) is not None]:
        k = subject.names.index(name)
        subject.inputs[k] = subject.tensors[name] = np.array(subject.given[k])
    for name, w in [(n, w) for n, w in subject.weights.items() if w.number]:
        if gradients.get(name) is None or not subject.depends_on(name):
            del subject.weights[name]
        else:
            subject.tensors[name] = np.array(w.array)


def _about(names, first):
    """Why weights that y depends on are not tested, and what to say"""
    looked = named(first.gradient_paths[0]) if first.gradient_paths else "a gradient"
    paths = ", ".join(f"{name!r}: 'path.to.its.gradient'" for name in names)
    it = "it" if len(names) == 1 else "them"
    return (f"no gradient of {', '.join(names)} was found (looked for {looked} and its like, beside {it} and in what "
            f"came back), and y depends on {it}. Constant? constants={names}. Is the gradient elsewhere? "
            f"grads={{{paths}}}")                        # fmt: skip


def unchecked_variables(subject: "Subject") -> list[str]:
    """Names of variables around the functions that hold floating arrays, and are neither given nor in `params`"""
    found, adapter = {}, subject.adapter
    for f in (adapter.f, getattr(adapter, "backward", None)) if adapter.owner is None else ():
        if inspect.isfunction(f):
            f = inspect.unwrap(f)
            found |= {name: f.__globals__.get(name) for code in codes_inside(f.__code__) for name in code.co_names}
            found |= inspect.getclosurevars(f).nonlocals
    of_file = [w for w in subject.weights.values() if w.owner == FILE]
    taken = {path[0] for w in of_file for path in (*w.paths, *w.gradient_paths)}
    return [name for name, x in found.items() if name not in taken and not is_layer(x) and any(arrays_in(x))]
