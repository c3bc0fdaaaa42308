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
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mini_tf.gradcheck.adapters import Adapter, Loss
from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.needs import Weights
from mini_tf.gradcheck.source import Unavailable, own_nodes, source_of
from mini_tf.gradcheck.weights import Path, gradient_paths, is_array, is_float, named, only_numbers, parts, reached

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.subject import Subject

Names = str | list[Any]  # what a `return` statement calls its parts: "dx", or a list of such; "" for what has no name
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
    """Gives each tensor of a subject its gradient."""

    returned_names: Names    # what the `return` of the backward calls its parts
    containers: dict[str, Weights]       # {name of an input that is a container: its weights}
    words: dict[Path, str]   # {what a gradient may be called in a `return`: whose it is}
    keys: dict[Path, str]    # the same, as the key of a dict
    orders: tuple[Sequence[str], ...]    # of the inputs, in which gradients may come back

    def __init__(self, subject: "Subject", backward: Callable[..., Any]):
        self.adapter: Adapter = subject.adapter
        self.returned_names = _names_in_return(backward)
        if isinstance(self.adapter, Loss):               # gradients are behind the loss
            behind = self.returned_names[1:] if isinstance(self.returned_names, list) else [""]
            self.returned_names = behind[0] if len(behind) == 1 else behind
        self.stated: dict[str, Path] = subject.grads if isinstance(subject.grads, dict) else {}
        self.order: list[str] | None = [*subject.grads] if subject.grads and not self.stated else None   # as they come
        self.names: list[str] = subject.names
        self.floats: list[str] = subject.floats
        self.weights: Weights = dict(subject.weights)
        self.inputs: list[str] = [n for n in self.names if n in self.floats or n in subject.numbers]
        held = {one: {name: w for name, w in self.weights.items() if w.owner == one} for one in self.names}
        self.containers = {one: weights for one, weights in held.items() if weights}
        self.strict: bool = self.adapter.strict and not self.containers
        # If strict, gradients may belong to what an op says, or to all inputs of a kind that are as many.
        arrays = [n for n, x in zip(self.names, subject.given) if is_array(x)]
        self.orders = getattr(subject.f, "arrays", ()), self.floats, arrays, self.names, self.adapter.parameters
        self.addresses: dict[str, Path | None] = {}
        self.form: list[Path] | None = None
        owners: dict[Path, set[str]] = {(name,): {name} for name in self.inputs}
        for name, path in ((name, path) for name, w in self.weights.items() for path in w.full_paths):
            for end in (path[k:] for k in range(len(path))):             # enough, where no other has it
                owners.setdefault(end, set()).add(name)
        own = {path: min(names) for path, names in owners.items()
               if len(names) == 1 and any(isinstance(step, str) for step in path)}       # fmt: skip
        self.words = {one: name for path, name in own.items() for one in gradient_paths(path)}
        self.keys = self.words | own | {(named(path),): name for path, name in own.items()}

    def _named(self, leaf: Leaf) -> str | None:
        """The tensor whose gradient it is by its name, or None"""
        names, ends = (self.words, len(leaf.spelled)) if leaf.start is None else (self.keys, leaf.start + 1)
        return next((names[end] for k in range(ends) if (end := leaf.spelled[k:]) in names), None)

    def gradients(self, returned: Any, holders: dict[str, Any]) -> dict[str, Any]:
        """{name: gradient}, None where there is none; holders: {owner of weights: what it is in this run}"""
        there, leaves = {**holders, RETURNED: returned}, [*_leaves(returned, self.returned_names)]
        if self.form != (form := [leaf.path for leaf in leaves]):
            self._settle(leaves, there)
            self.form = form
        return {name: _array_of(reached(there, where)) if where else None for name, where in self.addresses.items()}

    def _settle(self, leaves: list[Leaf], there: dict[str, Any]) -> None:
        """Find {name: where its gradient is}"""
        placed, unclear = self._by_place(leaves, there[RETURNED]), {}
        named_so = defaultdict[str | None, list[Leaf]](list)
        taken = {leaf.path for leaf in placed.values()}
        weights = [reached(there, (w.owner, *path)) for w in self.weights.values() for path in w.paths]
        for leaf in leaves:
            if leaf.path not in taken:
                named_so[self._named(leaf)].append(leaf)
        lacking = [n for n in self.floats if n not in (*placed, *named_so, *self.stated)]
        self._has_all(lacking, named_so[None])
        for name in (*self.inputs, *self.weights):
            came = [placed[name]] if name in placed else named_so[name]
            places: list[tuple[str, Path]] = [(leaf.word, (RETURNED, *leaf.path)) for leaf in came]
            if name in self.weights:
                w = self.weights[name]
                places += [(named(path), (w.owner, *path)) for path in w.gradient_paths]
                places = [one for one in places if _may_be(reached(there, one[1]), weights)]
            self.addresses[name] = places[0][1] if places else None
            first, *others = [reached(there, where) for _, where in places] or [None]
            differ = [word for (word, _), g in zip(places[1:], others)
                      if g is not first and not np.array_equal(g, first, equal_nan=True)]            # fmt: skip
            if differ and name not in self.stated:
                unclear[name] = places[0][0], differ[0]
        if unclear:
            name, (first, second) = next(iter(unclear.items()))
            choice = {name: first for name, (first, _) in unclear.items()}
            raise Refused(f"two arrays may be the gradient of {name}: {first} and {second}. Say which: grads={choice}")
        self.addresses |= {name: self._stated_address(name, path, leaves, there) for name, path in self.stated.items()}

    def _stated_address(self, name: str, path: Path, leaves: list[Leaf], there: dict[str, Any]) -> Path | None:
        """Where the gradient is that the caller has said: beside what it belongs to, or in what came back"""
        owner = self.weights[name].owner if name in self.weights else ""
        came = [leaf.path for leaf in leaves if path in (leaf.path, leaf.spelled[-len(path) :])]
        places: list[Path] = [(owner, *path), *((RETURNED, *one) for one in came)]
        return next((where for where in places if reached(there, where) is not None), None)

    def _has_all(self, lacking: list[str], unnamed: list[Leaf]) -> None:
        """Raises Refused if a dict has keys that say nothing, and an input gets no gradient."""
        others = [leaf.word for leaf in unnamed if leaf.start is not None]
        if lacking and others and (self.strict or lacking == self.floats) and not self.weights:
            choice = {n: next((key for key in others if key.endswith(n)), others[0]) for n in lacking}
            raise Refused(f"{', '.join(others)} came back by name: which are the gradients of {', '.join(lacking)}? "
                          f"Say so, as in grads={choice}")               # fmt: skip

    def _by_place(self, leaves: list[Leaf], returned: Any) -> dict[str, Leaf]:
        """{name: the leaf that belongs to it by its place}"""
        alone, depth = [leaf for leaf in leaves if leaf.start is None], int(_is_spread(returned))
        if self.order is not None:
            return dict(zip(self.order, alone))
        groups = defaultdict[Path, dict[Path, Leaf]](dict)               # for containers, what came in containers
        for leaf in leaves if self.containers else ():
            if len(leaf.path) > depth:
                groups[leaf.path[:depth]][leaf.path[depth:]] = leaf
        if groups:
            alone = [leaf for leaf in alone if len(leaf.path) <= depth]
        is_state = self.adapter.of_loss and len(alone) < len(leaves)     # what is behind a dict of gradients may be one
        together = self.adapter.together or isinstance(returned, list)
        placed = {} if is_state else self._in_order(alone, together)
        if len(self.containers) in (1, len(groups)):
            for weights, came in zip(self.containers.values(), groups.values()):
                placed |= _alike(weights, came)
        return placed

    def _in_order(self, leaves: list[Leaf], together: bool) -> dict[str, Leaf]:
        """{name: what belongs to it by its place}, of what came one after another"""
        count, of_loss = len(leaves), self.adapter.of_loss
        if self.strict:
            order = next((some for some in self.orders if len(some) == count), self.floats)
            self._none_too_many(leaves, len(order))
            return dict(zip(order, leaves))
        held = [name for weights in self.containers.values() for name in weights]
        every = [name for one in self.names for name in ([one] if one in self.floats else self.containers.get(one, ()))]
        every = held if of_loss else every
        order = every if held and len(every) == count else [] if held and of_loss else self.inputs[:count]
        said = [self._named(leaf) for leaf in leaves]
        if all(name in (None, here) for name, here in zip(said, order)):
            if not (any(said) or (held and together)) and of_loss:
                self._not_of_weights(count)
            return {here: leaf for here, name, leaf in zip(order, said, leaves) if not name}
        of_inputs = [name for name in said if name in self.inputs]
        if None in said[: len(order)] or {*of_inputs} == {*order}:
            words = ", ".join(leaf.word if name else "one without a name" for leaf, name in zip(leaves, said))
            raise Refused(f"what comes back, {words}, has another order than {', '.join(order)}, or is not theirs. Say "
                          f"whose: grads={of_inputs or order}")          # fmt: skip
        return {}

    def _none_too_many(self, leaves: list[Leaf], count: int) -> None:
        extra = [leaf.word for leaf in leaves[count:] if leaf.value is not None]
        if extra and not self.weights:
            word = next((one[1:] for one in extra if one[:1] == "d"), "") or "W"
            names = ", ".join(self.names) or "none"
            raise Refused(f"{len(leaves)} gradients came back, and the inputs are {names}: if one is that of a "
                          f"variable of the file, name it, params=[{word!r}]; others are given as inputs")   # fmt: skip

    def _not_of_weights(self, count: int) -> None:
        """Raises Refused where what came with a loss could be gradients of inputs, or of weights."""
        if count and self.floats and self.weights:
            inputs, names = ", ".join(self.floats), [*self.weights]
            came = "one gradient" if count == 1 else f"{count} gradients"
            raise Refused(f"{came} came back without names, and may be those of the inputs, {inputs}, or of "
                          f"{', '.join(names)}. Say whose: grads={names[:count]}; or what is data: constants={names}")


def _alike(weights: Weights, came: dict[Path, Leaf]) -> dict[str, Leaf]:
    """{weight of a container: what came at its path, or of its name}; else in their order, if there are as many"""
    found = {name: came[path] for name, w in weights.items() for path in (*w.gradient_paths, *w.paths) if path in came}
    in_order = not found and len(came) == len(weights)
    return dict(zip(weights, came.values())) if in_order else found


def _leaves(x: Any, said: Names, path: Path = (), spelled: Path = (), start: int | None = None) -> Iterator[Leaf]:
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


def _gradients_in(x: Any) -> dict[str | int, Any] | None:
    """{step: part} of what holds gradients; None of anything else"""
    if isinstance(x, dict):
        return parts(x)
    if _is_spread(x):
        return dict(enumerate(x))
    if isinstance(x, list) or is_array(x) or isinstance(getattr(x, "data", None), np.ndarray):
        return None
    inside = parts(x)
    return inside if any(map(is_float, inside.values())) else None


def _is_spread(x: Any) -> bool:
    """True for a list or a tuple of gradients: not of numbers, which are one gradient in a wrong form"""
    if isinstance(x, tuple):
        return not hasattr(x, "_fields")
    return isinstance(x, list) and not only_numbers(x)


def _may_be(g: Any, weights: list[Any]) -> bool:
    """Whether it may be the gradient of a weight: it is none itself, no container and no method"""
    return not (g is None or callable(g) or isinstance(g, (dict, list, tuple)) or any(g is x for x in weights))


def _array_of(g: Any) -> Any:
    """A tensor object's array, x.data; others as they are"""
    inner = getattr(g, "data", None)
    return inner if not is_array(g) and isinstance(inner, np.ndarray) else g


def _names_in_return(function: Callable[..., Any]) -> Names:
    """What the last `return` of a function calls its parts"""
    try:
        node = source_of(inspect.unwrap(function)).node
    except Unavailable:
        return ""
    returned = [one.value for one in own_nodes(node) if isinstance(one, ast.Return) and one.value]
    last = node.body if isinstance(node, ast.Lambda) else max(returned, key=lambda one: one.lineno, default=None)
    return _names(last)


def _names(value: ast.expr | None) -> Names:
    if isinstance(value, (ast.Tuple, ast.List)):
        return [_names(part) for part in value.elts]
    return str(getattr(value, "attr", getattr(value, "id", "")))         # of an attribute, and of a variable
