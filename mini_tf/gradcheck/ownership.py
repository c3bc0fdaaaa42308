"""Whose gradient is what: decided by position, by name or by the caller; never by comparing numbers.

    what comes back           belongs to
    by position               the inputs: one for each floating input. Of a loss, or an object, the first k get the k
                              that come, unless their names in the `return` statement, dW or grad_W, say otherwise
    in a dict                 what its keys name: W, dW, W_grad, grad_W
    a dict, list or object    the input of that kind, each array in it to the one at the same place, or of the same name
    nothing                   weights keep theirs beside them, see `weights.py`

Two candidates for one gradient, or two readings of what came: NOT TESTED, with the argument that decides. It is decided
after the first run: from then on each gradient has its address, as long as what comes back has the same form.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.source import Unavailable, own_nodes, source_of
from mini_tf.gradcheck.weights import Path, gradient_paths, is_array, is_float, named, parts, path_of, reached

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.subject import Subject

Said = str | list          # what a `return` statement calls its parts: "dx", or a list of such; "" for what has no name
RETURNED = "what came back"                              # beside the owners of weights, where gradients may be


class Leaf(NamedTuple):
    """One gradient in what came back.

    path     to it;  spelled: the same, with names in the `return` in place of numbers, ("grads", "W") for (1, "W")
    start    of the first step in `spelled` that is a key of a dict; None if there is none
    """

    path: Path
    spelled: Path
    start: int | None
    value: Any

    @property
    def word(self) -> str:
        """Its name, in a sentence and in `grads`"""
        return named(self.spelled[-1 if self.start is None else self.start :])


class Ownership:
    """Gives each tensor of a subject its gradient.

    said         what the `return` of the backward calls its parts
    kept, order  {name: path of its gradient}, and [name, …] in whose order they come, as the caller has said
    held         {name of an input that is a container: its weights that are arrays}
    words, keys  {what a gradient may be called: whose it is}, in a `return`, and as the key of a dict
    """

    def __init__(self, subject: "Subject", kept: dict[str, str], order: list[str] | None, said: Said):
        self.adapter, self.order, self.said = subject.adapter, order, said
        self.kept = {name: path_of(text) for name, text in kept.items()}
        self.names, self.floats, self.weights = subject.names, subject.floats, subject.weights
        self.inputs = [n for n in self.names if n in self.floats or n in subject.numbers]
        arrays = [n for n, x in zip(self.names, subject.given) if is_array(x)]
        options, signature = {n for n, x in subject.options.items() if is_array(x)}, subject.adapter.parameters
        self.orders = [getattr(subject.f, "arrays", ()), self.floats, arrays,
                       [n for n in signature if n in options or n in arrays], self.names, signature]     # fmt: skip
        held = {one: [name for name, w in self.weights.items() if w.owner == one] for one in self.names}
        self.held = {one: names for one, names in held.items() if names}
        self.strict = subject.adapter.strict and not self.held           # each floating input has to get a gradient
        self.addresses, self.form = {}, None
        owners = {}                                      # the end of a path is enough, where no other has it
        for name, path in ((name, path) for name, w in self.weights.items() for path in w.full_paths):
            for end in (path[k:] for k in range(len(path))):
                owners.setdefault(end, set()).add(name)
        owners |= {(name,): {name} for name in self.inputs}
        own = {path: min(names) for path, names in owners.items()
               if len(names) == 1 and any(isinstance(step, str) for step in path)}       # fmt: skip
        self.words = {one: name for path, name in own.items() for one in gradient_paths(path)}
        self.keys = self.words | own | {(named(path),): name for path, name in own.items()}

    def _named(self, leaf):
        """The tensor whose gradient it is by its name, or None"""
        names, ends = (self.words, len(leaf.spelled)) if leaf.start is None else (self.keys, leaf.start + 1)
        return next((names[end] for k in range(ends) if (end := leaf.spelled[k:]) in names), None)

    def gradients(self, returned: Any, holders: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
        """{name: gradient}, None where there is none; holders: {owner of weights: what it is in this run}"""
        there, leaves = {**holders, RETURNED: returned}, [*_leaves(returned, self.said)]
        if self.form != (form := [leaf.path for leaf in leaves]):
            self._settle(leaves, there, [tensors[n] for n in self.weights if n in tensors])
            self.form = form
        return {name: _array_of(reached(there, where)) if where else None for name, where in self.addresses.items()}

    def _settle(self, leaves, there, theirs):
        """Find {name: where its gradient is}; theirs: arrays of weights, which are no gradients"""
        placed = self._by_place(leaves, there[RETURNED])
        taken, by_name = {leaf.path for leaf in placed.values()}, {}
        for leaf in leaves:
            if leaf.path not in taken:
                by_name.setdefault(self._named(leaf), []).append(leaf)
        self._has_all([n for n in self.floats if n not in (*placed, *by_name, *self.kept)], leaves)
        came = {n: [placed[n]] if n in placed else by_name.get(n, ()) for n in (*self.inputs, *self.weights)}
        own = {(w.owner, *path) for w in self.weights.values() for path in w.paths}
        self.addresses, unclear = {n: (RETURNED, *came[n][0].path) if came[n] else None for n in self.inputs}, {}
        for name, w in self.weights.items():
            places = [(leaf.word, (RETURNED, *leaf.path)) for leaf in came[name]]
            places += [(named(path), (w.owner, *path)) for path in w.gradient_paths if (w.owner, *path) not in own]
            found = [(word, where, g) for word, where in places if _may_be(g := reached(there, where), theirs)]
            self.addresses[name] = found[0][1] if found else None
            others = [word for word, _, g in found[1:] if not _equal(found[0][2], g)]
            if others and name not in self.kept:
                unclear[name] = found[0][0], others[0]
        if unclear:
            name, (first, second) = next(iter(unclear.items()))
            choice = {name: first for name, (first, _) in unclear.items()}
            raise Refused(f"two arrays may be the gradient of {name}: {first} and {second}. Say which: grads={choice}")
        self.addresses |= {name: self._said_at(name, path, leaves, there) for name, path in self.kept.items()}

    def _said_at(self, name, path, leaves, there):
        """Where the gradient is that the caller has said: beside what it belongs to, or in what came back"""
        owner = self.weights[name].owner if name in self.weights else ""
        came = [leaf.path for leaf in leaves if path in (leaf.path, leaf.spelled[-len(path) :])]
        places = [(owner, *path), *((RETURNED, *one) for one in came)]
        return next((where for where in places if reached(there, where) is not None), None)

    def _has_all(self, lacking, leaves):
        """Raises Refused if a dict has keys that say nothing, and an input gets no gradient."""
        keyed = [leaf for leaf in leaves if leaf.start is not None]
        others = [leaf.word for leaf in keyed if self._named(leaf) is None]
        if lacking and others and (self.strict or lacking == self.floats) and not self.weights:
            choice = {n: next((key for key in others if key.endswith(n)), others[0]) for n in lacking}
            names = ", ".join(leaf.word for leaf in keyed)
            raise Refused(f"what came back has the names {names}: which are the gradients of {', '.join(lacking)}? Say "
                          f"so, as in grads={choice}")   # fmt: skip

    # --- by position

    def _by_place(self, leaves, returned):
        """{name: the leaf that belongs to it by its place}"""
        alone, depth = [leaf for leaf in leaves if leaf.start is None], int(_is_spread(returned))
        if self.order is not None:
            return dict(zip(self.order, alone))
        groups = {}                                      # for containers, what came in containers
        for leaf in leaves if self.held else ():
            if len(leaf.path) > depth:
                groups.setdefault(leaf.path[:depth], {})[leaf.path[depth:]] = leaf
        if groups:
            alone = [leaf for leaf in alone if len(leaf.path) <= depth]
        is_state = self.adapter.of_loss and len(alone) < len(leaves)     # what is behind a dict of gradients may be one
        self.together = self.adapter.together or isinstance(returned, list)
        placed = {} if is_state else self._one_by_one(alone)
        if len(self.held) in (1, len(groups)):
            for owner, came in zip(self.held, groups.values()):
                placed |= self._in_container(owner, came)
        return placed

    def _in_container(self, owner, came):
        """{weight of a container: what came at its path, or of its name}; else in their order, if there are as many"""
        mine = {name: w for name, w in self.weights.items() if w.owner == owner}
        found = {name: came[path] for name, w in mine.items() for path in (*w.gradient_paths, *w.paths) if path in came}
        if not found and len(came) == len(self.held[owner]):
            return dict(zip(self.held[owner], came.values()))
        return found

    def _one_by_one(self, leaves):
        """{name: what belongs to it by its place}, of what came one after another"""
        order = [*self._order_of(len(leaves))]
        if self.strict:
            self._none_too_many(leaves, len(order))
            return dict(zip(order, leaves))
        said = [self._named(leaf) for leaf in leaves]
        if all(name in (None, here) for name, here in zip(said, order)):
            self._not_of_weights(said)
            return {here: leaf for here, name, leaf in zip(order, said, leaves) if not name}
        of_inputs = [name for name in said if name in self.inputs]
        if None in said[: len(order)] or {*of_inputs} == {*order}:
            words = ", ".join(leaf.word if name else "one without a name" for leaf, name in zip(leaves, said))
            raise Refused(f"what comes back, {words}, has another order than {', '.join(order)}, or is not theirs. Say "
                          f"whose: grads={of_inputs or order}")          # fmt: skip
        return {}

    def _order_of(self, count):
        """The names of those to which so many gradients belong that come one after another"""
        if self.strict:
            return next((some for some in self.orders if len(some) == count), self.floats)[:count]
        held = [name for names in self.held.values() for name in names]
        if self.adapter.of_loss and self.held:
            return held if len(held) == count else []
        every = [name for one in self.names for name in ([one] if one in self.floats else self.held.get(one, ()))]
        return every if held and len(every) == count else self.inputs[:count]

    def _none_too_many(self, leaves, count):
        extra = [leaf.word for leaf in leaves[count:] if leaf.value is not None]
        if extra and not self.weights:
            word = next((one[1:] for one in extra if one[:1] == "d"), "") or "W"
            names = ", ".join(self.names) or "none"
            raise Refused(f"{_gradients(len(leaves))} came back, and the inputs are {names}: if one is that of a "
                          f"variable of the file, name it, params=[{word!r}]; others are given as inputs")   # fmt: skip

    def _not_of_weights(self, said):
        """Raises Refused where what came with a loss could be gradients of inputs, or of weights."""
        sure = not self.adapter.of_loss or any(said) or (self.held and self.together)
        if said and self.floats and self.weights and not sure:
            inputs, names = ", ".join(self.floats), [*self.weights]
            raise Refused(
                f"{_gradients(len(said))} came back without names, and may be those of the inputs, {inputs}, or of "
                f"{', '.join(names)}. Say whose: grads={names[: len(said)]}; or what is data: constants={names}"
            )


def _leaves(x: Any, said: Said, path: Path = (), spelled: Path = (), start: int | None = None) -> Iterator[Leaf]:
    """The gradients in what came back: in tuples, lists, dicts and objects"""
    spelled = spelled or ((said,) if isinstance(said, str) else ())
    inside = _gradients_in(x)
    if inside is None:
        yield Leaf(path, spelled, start, x)
        return
    if start is None and not _is_spread(x):
        start = len(spelled)
    words = said if isinstance(said, list) and len(said) == len(inside) else [""] * len(inside)
    for (step, part), word in zip(inside.items(), words):
        name = word if word and isinstance(word, str) else step
        yield from _leaves(part, word if isinstance(word, list) else "", (*path, step), (*spelled, name), start)


def _gradients_in(x):
    """{step: part} of what holds gradients; None of anything else"""
    if isinstance(x, dict):
        return parts(x)
    if _is_spread(x):
        return dict(enumerate(x))
    if isinstance(x, list) or is_array(x) or isinstance(getattr(x, "data", None), np.ndarray):
        return None
    inside = parts(x)
    return inside if any(map(is_float, inside.values())) else None


def _is_spread(x):
    """True for a list or a tuple of gradients: not of numbers, which are one gradient in a wrong form"""
    if isinstance(x, tuple):
        return not hasattr(x, "_fields")
    return isinstance(x, list) and not _only_numbers(x)


def _only_numbers(x):
    return bool(x) and all(_only_numbers(one) if isinstance(one, list) else isinstance(one, (int, float)) for one in x)


def _may_be(g, weights):
    """Whether it may be the gradient of a weight: it is none itself, no container and no method"""
    return not (g is None or callable(g) or isinstance(g, (dict, list, tuple)) or any(g is x for x in weights))


def _gradients(count):
    return "one gradient" if count == 1 else f"{count} gradients"


def _equal(a, b):
    return a is b or (np.shape(a) == np.shape(b) and np.array_equal(a, b, equal_nan=True))


def _array_of(g):
    """A tensor object's array, x.data; others as they are"""
    inner = getattr(g, "data", None)
    return inner if not is_array(g) and isinstance(inner, np.ndarray) else g


def return_names(function: Callable) -> Said:
    """What the last `return` of a function calls its parts"""
    try:
        node = source_of(inspect.unwrap(function)).node
    except Unavailable:
        return ""
    returned = [one.value for one in own_nodes(node) if isinstance(one, ast.Return) and one.value]
    last = node.body if isinstance(node, ast.Lambda) else max(returned, key=lambda one: one.lineno, default=None)
    return _said(last)


def _said(value):
    if isinstance(value, (ast.Tuple, ast.List)):
        return [_said(part) for part in value.elts]
    return getattr(value, "attr", getattr(value, "id", ""))              # of an attribute, and of a variable
