"""What needs a gradient: of an object, a dict or a list each floating array that exists before the forward and moves y.

Caches, counters and gradients do not move y. What does, and gets no gradient, may be a constant: the caller has to say.
Of mini_tf's layers it is their Parameters; nothing of mini_tf is imported for a file that does not use them.
"""

import inspect
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from mini_tf.gradcheck.adapters import signature_of
from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.measure.points import random_dy
from mini_tf.gradcheck.weights import FILE, Weight, everything_in, is_float, named, path_of, reached
from mini_tf.places import codes_inside

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.subject import Subject

Weights = dict[str, Weight]


def weights_in(holders: dict[str, Any], names: Collection[str]) -> Weights:
    """{name: Weight} of the floating arrays in {owner: object or container}; names: of inputs, reserved"""
    found: Weights = {}
    by_id: dict[int, Weight] = {}
    for owner, holder in holders.items():
        for path, x in everything_in(holder) if not (is_layer(holder) or is_float(holder)) else ():
            if id(x) in by_id:
                by_id[id(x)].paths.append(path)
            elif is_float(x):
                name = named((owner, *path) if owner else path)
                by_id[id(x)] = found[f"self.{name}" if name in names else name] = Weight([path], x, owner)
    return found


def chosen(entries: Sequence[tuple[str, str]], found: Weights, variables: dict[str, Any]) -> Weights:
    """{name: Weight} of what `params` means, [(name or "", path)]: weights that were found, or variables of the file"""
    weights: Weights = {}
    for name, text in entries:
        path = path_of(text)
        own = next((n for n, w in found.items() if n == text or path in w.full_paths), "")
        if own:
            weights[name or own] = found[own]
        elif is_float(array := reached(variables, path)):
            weights[name or text] = Weight([path], array, FILE)
        else:
            there = ", ".join(found) or "no weights in what was given, nor variables of that name in its file"
            raise Refused(f"params: there is no floating array {text!r}: {there}")
    return weights


def settle(subject: "Subject", rng: np.random.Generator) -> None:
    """Settle what is a tensor of a Subject, after one run with a random dy.

    Of weights that get no gradient, which may be constants, there is a refusal; of inputs that may be data, a name.
    """
    with subject.on_copies():
        y = subject.forward()[0]
    if not (isinstance(y, (np.ndarray, np.generic, float)) and np.asarray(y).dtype.kind == "f"):
        return                                           # `promises` says what is wrong with it

    def leave_out(names: Collection[str]) -> None:
        subject.wanted = [name for name in subject.wanted if name not in names]

    dropped = {name: w for name, w in subject.weights.items() if not subject.depends_on(name)}
    leave_out(dropped)
    for name in dropped:
        del subject.weights[name], subject.arrays[name]
    with subject.on_copies():                            # a wrong backward may write into what it is given
        y, backward = subject.forward()
        gradients = backward(random_dy(y, rng, backward))
    for name, w in dropped.items():
        kept = (reached(subject.last[w.owner], path) for path in w.gradient_paths)
        if subject.chosen or any(is_float(g) and g.any() for g in kept):
            subject.notes.append(f"y does not depend on {name}")
    came = {name for name, g in gradients.items() if g is not None}
    for name in [n for n in subject.numbers if n in came]:
        subject.arrays[name] = subject.originals[name] = np.array(subject.last[name])
        subject.wanted.append(name)
    blank = [name for name in subject.wanted if gradients.get(name) is ...]
    subject.refusals += [f"d{name} is still `...`: a blank to fill" for name in blank]
    lacking = [name for name in subject.weights if name not in came]
    subject.refusals += [_about(lacking, subject.weights[lacking[0]])] if lacking else []
    leave_out(blank + lacking)
    if subject.ownership and not subject.ownership.strict and came.intersection(subject.wanted):
        data = [name for name in subject.floats if name not in came]
        if moving := [name for name in data if subject.depends_on(name)]:
            subject.notes.append(f"{', '.join(moving)}: no gradient came back; taken as data")
        leave_out(data)


def _about(names: list[str], first: Weight) -> str:
    """Why weights that y depends on are not tested, and the arguments that help"""
    looked = named(first.gradient_paths[0]) if first.gradient_paths else "a gradient"
    paths = ", ".join(f"{name!r}: 'path.to.its.gradient'" for name in names)
    it = "it" if len(names) == 1 else "them"
    return (f"no gradient of {', '.join(names)} was found (looked for {looked} and its like, beside {it} and in what "
            f"came back), and y depends on {it}. Constant? constants={names}. Is the gradient elsewhere? "
            f"grads={{{paths}}}")                        # fmt: skip


def is_layer(x: Any) -> bool:
    """True for a layer or a model of mini_tf, or one's own subclass"""
    module = sys.modules.get("mini_tf.layers.layer")
    return module is not None and isinstance(x, module.Layer)


def variables_of(f: Any) -> dict[str, Any]:
    """{name: value} of the variables that a function uses: of its file, and of the functions around it"""
    if not inspect.isfunction(f):
        return {}
    f = inspect.unwrap(f)
    names = [name for code in codes_inside(f.__code__) for name in code.co_names if name in f.__globals__]
    return {**{name: f.__globals__[name] for name in names}, **inspect.getclosurevars(f).nonlocals}


def parameters_of(f: Any, inputs: Sequence[Any], params: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """({name: Parameter} to check, {name: Parameter} of the others) that `params` gives, or that are in layers.

    Layers are looked for where f has them: f itself, the layer whose method it is, its inputs, and what its text names.
    """
    names, given = params, {}
    if isinstance(params, dict):
        names, given = (), {name: p for name, p in params.items() if not isinstance(p, str)}
    for name, p in given.items():
        if not (hasattr(p, "data") and hasattr(p, "grad")):
            raise Refused(f"params: {name} is of type {type(p).__name__}, expected a Parameter, or a name in text")
    f = getattr(f, "func", f)
    arguments = dict(zip(signature_of(f).names, inputs))
    owners = {"": f, "self": getattr(f, "__self__", None), **arguments, **variables_of(f)}
    layers = {name: one for name, one in owners.items() if is_layer(one)}
    every = {id(p): (name, p, True) for name, p in given.items()}                # {id: (name, Parameter, asked)}
    for name, layer in layers.items():
        for own, p in layer.parameters().items():
            full = f"{name}.{own}" if name not in ("", "self") and len(layers) > 1 else own
            every.setdefault(id(p), (full, p, params is None or full in names or own in names))
    checked = {name: p for name, p, asked in every.values() if asked and getattr(p, "trainable", True)}
    return checked, {f"{name}, fixed": p for name, p, _ in every.values() if checked.get(name) is not p}
