"""Whose gradient is what: decided by position, by name or by the caller; never by comparing numbers.

    what comes back           belongs to
    by position               the inputs: one for each floating input. Of a loss, or an object, the first k get the k
                              that come, unless their names in the `return` statement, dW or grad_W, say otherwise
    in a dict                 what its keys name: W, dW, W_grad, grad_W
    a dict, list or object    the input of that kind, each array in it to the one at the same place, or of the same name
    nothing                   weights keep theirs beside them, see `weights.py`

Two candidates for one gradient, or two readings of what came: NOT TESTED, with the argument that decides.
"""

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mini_tf.gradcheck.errors import Refused
from mini_tf.gradcheck.source import Unavailable, own_nodes, source_of
from mini_tf.gradcheck.weights import Weight, gradient_names, gradient_paths, is_array, is_float, named, parts, reached

import numpy as np

if TYPE_CHECKING:
    from mini_tf.gradcheck.subject import Subject

Said = str | list          # what a `return` statement calls its parts: "dx", or a list of such; "" for what has no name


class CameBack:
    """What a backward returned.

    parts    [(name in the `return`, what came)], as it was returned;  leaves: of lists and tuples what is in them
    keyed    {key: gradient} of dicts, and of objects;  spoken: {name in the `return`: what came}
    """

    def __init__(self, returned: Any, said: Said):
        self.returned = list(returned) if inspect.isgenerator(returned) else returned
        self.parts = [(word, _as_dict(part)) for word, part in _split(self.returned, said)]
        self.keyed, self.spoken, self.leaves = {}, {}, []
        self._sort(self.returned, said)

    def _sort(self, part, word):
        if isinstance(word, str) and word:
            self.spoken.setdefault(word, part)
        part = _as_dict(part)
        if isinstance(part, dict):
            self.keyed = part | self.keyed
        elif _is_spread(part):
            for word_of_one, one in _split(part, word):
                self._sort(one, word_of_one)
        else:
            self.leaves.append((word if isinstance(word, str) else "", part))


class Ownership:
    """Gives each tensor of a subject its gradient.

    names        of the inputs;  floats: of those that are floating arrays;  numbers: Python's;  arrays: all arrays
    weights      {name: Weight};  kept: {name of an input: path} and order: [name, …], as the caller has said
    strict       each floating input has to get one;  of_loss: loss, grads = f(…), with no upstream gradient
    """

    def __init__(self, subject: "Subject", kept: dict[str, tuple], order: list[str] | None):
        self.adapter, self.kept, self.order = subject.adapter, kept, order
        self.names, self.floats, self.numbers = subject.names, subject.floats, subject.numbers
        self.arrays = [n for n, x in zip(self.names, subject.inputs) if is_array(x)]
        options = {n for n, x in subject.options.items() if is_array(x)}
        signature = subject.adapter.parameters
        self.orders = [self.arrays, [n for n in signature if n in options or n in self.arrays], self.names, signature]
        self.op_arrays = getattr(subject.f, "arrays", None)
        self.weights = {n: w for n, w in subject.weights.items() if w not in subject.gradients_kept}
        arrays = {name: w.owner for name, w in self.weights.items() if not w.number}
        self.held = {name: [n for n, owner in arrays.items() if owner == name] for name in self.names}
        self.containers = [name for name, weights in self.held.items() if weights]
        suffixes = Counter(s for w in self.weights.values() for s in {*_suffixes(w)})
        self.places = {n: [s for s in _suffixes(w) if suffixes[s] == 1] for n, w in self.weights.items()}
        self.spoken = {n: [one for s in some for one in gradient_paths(s)] for n, some in self.places.items()}
        self.keys = {n: [one for place in some for one in (place, *gradient_paths(place), (named(place),))]
                     for n, some in self.places.items()}                 # fmt: skip
        self.seen = {}                                   # {(weight, where): paths at which its gradient was found}
        self.words = {path[0] for paths in self.spoken.values() for path in paths}

    @property
    def strict(self) -> bool:
        """True if every floating input has to get a gradient"""
        return self.adapter.strict and not self.containers

    def gradients(self, returned: Any, said: Said, holders: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
        """{name: gradient}, None where there is none; holders: {"": the object, name of an input: that input}"""
        came = CameBack(returned, said)
        placed, found = self._placed(came), {}
        for name in [*self.floats, *self.numbers]:
            keys = [key for key in (name, *gradient_names(name)) if key in came.keyed]
            found[name] = came.keyed[keys[0]] if keys else placed.get(name)
            if name in self.kept:
                found[name] = _first(reached(x, self.kept[name]) for x in (holders[""], came.keyed | came.spoken))
        self._has_all(found, came)
        theirs, unclear = [tensors[n] for n in self.weights if n in tensors], {}
        for name, w in self.weights.items():
            candidates = [(where, g) for where, g in self._candidates(name, w, came, placed, holders)
                          if not (any(g is x for x in theirs) or callable(g) or (w.number and np.ndim(g)))]
            found[name] = candidates[0][1] if candidates else None
            others = [(where, g) for where, g in candidates[1:] if not _equal(found[name], g)]
            if others:
                unclear[name] = candidates[0][0], others[0][0]
        if unclear:
            name, (first, second) = next(iter(unclear.items()))
            choice = {name: first for name, (first, _) in unclear.items()}
            raise Refused(f"two arrays may be the gradient of {name}: {first} and {second}. Say which: grads={choice}")
        return {name: _array_of(g) for name, g in found.items()}

    def _has_all(self, found, came):
        """Raises Refused if a dict has keys that say nothing, and an input gets no gradient."""
        lacking = [n for n in self.floats if found[n] is None]
        known = {key for n in self.names for key in (n, *gradient_names(n))}
        others = [key for key in came.keyed if key not in known and isinstance(key, str)]
        none = len(lacking) == len(self.floats)
        if lacking and others and (self.strict or none) and not self.weights:
            choice = {n: next((key for key in others if key.endswith(n)), others[0]) for n in lacking}
            raise Refused(f"what came back has the names {', '.join(came.keyed)}: which are the gradients of "
                          f"{', '.join(lacking)}? Say so, as in grads={choice}")         # fmt: skip

    # --- by position

    def _placed(self, came):
        """{name of an input, or of a weight: what belongs to it by its place}"""
        if self.order is not None:
            return dict(zip(self.order, [g for _, g in came.leaves]))
        if self.adapter.of_loss and came.keyed and not self.containers:
            return self._by_name(came.leaves)            # what is behind a dict of gradients may be a state
        if not self.containers:
            return self._among_inputs(came.leaves)
        parts = [(word, g) for word, g in came.parts if not isinstance(g, dict)]
        dicts = [g for _, g in came.parts if isinstance(g, dict)]
        held = [g for _, g in came.parts if _is_spread(g)]
        if self.adapter.of_loss:
            return self._of_containers(came, parts, dicts, held)
        receivers = [n for n in self.names if n in self.floats or n in self.containers]
        if len(receivers) == 1 and len(came.leaves) == len(self.held[receivers[0]]):
            return {receivers[0]: came.returned}         # dxs, of a list xs
        if len(came.parts) == len(receivers):
            return {n: g for n, (_, g) in zip(receivers, came.parts)}
        return dict(zip(self.containers, held)) | self._among_inputs([(w, g) for w, g in parts if not _is_spread(g)])

    def _among_inputs(self, leaves):
        """Of what came one after another: {name of an input: gradient}"""
        words = [word for word, _ in leaves]
        by_place = self._in_order(leaves)
        by_place += [None] * (len(leaves) - len(by_place))
        inputs = [*self.floats, *self.numbers]
        by_name = [next((n for n in inputs if word in gradient_names(n)), None) for word in words]
        speaks = [name is not None or word in self.words for name, word in zip(by_name, words)]
        differ = any(said and place not in (None, name) for said, name, place in zip(speaks, by_name, by_place))
        if self.strict and (not differ or len(leaves) >= len(self.floats)):
            self._none_too_many(leaves, by_place)
            return {place: g for place, (_, g) in zip(by_place, leaves) if place}
        if not differ:
            self._only_inputs(leaves, speaks)
            return {name or place: g for name, place, said, (_, g) in zip(by_name, by_place, speaks, leaves)
                    if name or (place and not said)}     # fmt: skip
        if self.strict:
            return {name or place: g for name, place, (_, g) in zip(by_name, by_place, leaves) if name or place}
        if any(place and not said for place, said in zip(by_place, speaks)) or {*by_name} == {*by_place}:
            said = ", ".join(word or "one without a name" for word in words)
            raise Refused(f"what comes back, {said}, has another order than {', '.join(filter(None, by_place))}, or is "
                          f"not theirs. Say whose: grads={[n for n in by_name if n] or by_place}")       # fmt: skip
        return {name: g for name, (_, g) in zip(by_name, leaves) if name}

    def _in_order(self, leaves):
        """The names of the inputs that so many gradients belong to"""
        if not self.strict:
            return [n for n in self.names if n in self.floats or n in self.numbers][: len(leaves)]
        if self.op_arrays is not None and len(self.op_arrays) == len(leaves):
            return [*self.op_arrays]
        fits = (some for some in (self.floats, *self.orders) if len(some) == len(leaves))
        return [*next(fits, self.floats)][: len(leaves)]

    def _none_too_many(self, leaves, by_place):
        extra = [word for place, (word, g) in zip(by_place, leaves) if place is None and g is not None]
        if extra and not self.weights:
            word = next(filter(None, extra), "")
            its = f"params=[{word[1:] if word[:1] == 'd' and word[1:] else 'W'!r}]"
            raise Refused(f"{_gradients(len(leaves))} came back, and the inputs are {', '.join(self.names) or 'none'}: "
                          f"if one is that of a variable of the file, name it, {its}; others are given as inputs")

    def _only_inputs(self, leaves, speaks):
        """Raises Refused where what came with a loss could be gradients of inputs, or of weights."""
        weights = [n for n, w in self.weights.items() if not w.number]
        if self.adapter.of_loss and leaves and not any(speaks) and weights and self.floats:
            raise Refused(
                f"{_gradients(len(leaves))} came back without names, and may be those of the inputs, "
                f"{', '.join(self.floats)}, or of {', '.join(weights)}. Say whose: grads={weights[: len(leaves)]}; or "
                f"what is data: constants={weights}"
            )

    def _of_containers(self, came, parts, dicts, held):
        """Of a loss that is given weights in containers: {name of a container, or of a weight: what belongs to it}"""
        if dicts or held:
            of_each = held if len(held) <= len(self.containers) and not dicts else dicts
            placed = dict(zip(self.containers, of_each)) if len(self.containers) == 1 or len(of_each) > 1 else {}
        else:
            weights, leaves, placed = [n for name in self.containers for n in self.held[name]], came.leaves, {}
            together = self.adapter.together or isinstance(came.returned, list)
            if len(leaves) == len(weights) and not any(word in self.words for word, _ in leaves):
                if not together and self.floats:
                    raise Refused(f"{_gradients(len(leaves))} came back without names. Say whose: grads={weights}")
                return {n: g for n, (_, g) in zip(weights, leaves)}
        return placed | self._by_name(parts)

    def _by_name(self, parts):
        """{name of an input: what the `return` calls its gradient}"""
        return {n: g for n in (*self.floats, *self.numbers) for word, g in parts if word in gradient_names(n)}

    # --- weights

    def _candidates(self, name, w: Weight, came, placed, holders) -> Iterator[tuple[str, Any]]:
        """(where, gradient) of all that a weight's gradient may be, by the rules"""
        holder, named_ones = holders[w.owner], came.keyed | came.spoken
        if w.kept_at is not None:
            found = _first(reached(one, w.kept_at) for one in (holder, w.space, named_ones, came.returned))
            yield from [] if found is None else [(named(w.kept_at), found)]
            return
        if name in placed:
            yield "by its place", placed[name]
            return
        if w.owner in placed:
            yield from self._at_its_place(name, w, placed[w.owner])
        else:
            found = [*_those(self.keys[name] if came.keyed else (), came.keyed)]
            found += _those(self.spoken[name] if came.spoken else (), came.spoken)
            yield from ((named(path), g) for path, g in found)
        for k, one in enumerate((holder, w.space)):      # where there were gradients before, there they will be
            found = [*_those(self.seen.get((name, k), w.gradient_paths), one)]
            self.seen.setdefault((name, k), [path for path, _ in found]) if found else None
            yield from ((named(path), g) for path, g in found)

    def _at_its_place(self, name, w, part):
        """The gradient in what came for its container: at the same path, of its name, or in the same order"""
        paths = [one for path in w.paths for one in (path, *gradient_paths(path))]
        found = [(named(path), g) for path, g in _those(paths, part)]
        leaves, weights = CameBack(part, "").leaves, self.held[w.owner]
        if not found and not w.number and len(leaves) == len(weights):
            found = [("by its place", leaves[weights.index(name)][1])]
        yield from found


def _suffixes(w):
    """The ends of a weight's paths that have a name in them"""
    for path in w.full_paths:
        yield from (path[k:] for k in range(len(path)) if any(isinstance(step, str) for step in path[k:]))


def _first(found):
    return next((g for g in found if g is not None), None)


def _those(paths, x):
    for path in paths:
        g = reached(x, path)
        if g is not None and not isinstance(g, (dict, list, tuple)):
            yield path, g


def _is_spread(x):
    """True for a list or a tuple of gradients: not of numbers, which are one gradient in a wrong form"""
    if isinstance(x, tuple):
        return not hasattr(x, "_fields")
    return isinstance(x, list) and not _only_numbers(x)


def _only_numbers(x):
    return bool(x) and all(_only_numbers(one) if isinstance(one, list) else isinstance(one, (int, float)) for one in x)


def _split(x, said):
    """(name, part) of what is in a list or tuple; of anything else itself"""
    if not _is_spread(x):
        return [(said if isinstance(said, str) else "", x)]
    return zip(said if isinstance(said, list) and len(said) == len(x) else [""] * len(x), x)


def _as_dict(x):
    """{name: gradient} of a NamedTuple, a dataclass or the like; others as they are"""
    if isinstance(x, (dict, list)) or is_array(x) or (isinstance(x, tuple) and not hasattr(x, "_fields")):
        return x
    inside = parts(x)
    return inside if any(map(is_float, inside.values())) and not isinstance(inside.get("data"), np.ndarray) else x


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
    if isinstance(node, ast.Lambda):
        return _said(node.body)
    returns = [one for one in own_nodes(node) if isinstance(one, ast.Return) and one.value]
    return _said(max(returns, key=lambda one: one.lineno).value) if returns else ""


def _said(value):
    if isinstance(value, (ast.Tuple, ast.List)):
        return [_said(part) for part in value.elts]
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ""
