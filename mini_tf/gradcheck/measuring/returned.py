"""What comes back from somebody's backward, brought into the order of what it belongs to: by place, name or shape."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from mini_tf.gradcheck.measuring.naming import (
    gradient_of,
    is_gradient_name,
    is_upstream,
    keeps_gradients,
    says_gradient,
)
from mini_tf.gradcheck.measuring.stored import (
    Stored,
    fields_of,
    gradient_inside,
    gradient_kept,
    is_array_of_objects,
    is_container,
    is_floating,
    list_of,
    members,
    reached,
    ways_in,
)
from mini_tf.types import Array

import numpy as np

LOSSES = re.compile(r"(loss|value|cost|objective|nll|elbo|energy|fun|f|total)$", re.I)   # of {"value": …}
FIRST = re.compile(r"d[A-Za-z]_?0$")                      # dA0, where layers begin with 1: of the input
COME_WITH_IT = re.compile(r"(d|grads?|gradients?|derivs?|derivatives?|jac|nabla|score)$", re.I)


def together(outputs: list[Any]) -> tuple[Any, Callable[[Any], list[Any]]]:
    """(one array of all outputs, a function that gives the parts of its gradient)"""
    if len(outputs) == 1:
        return outputs[0], lambda dy: [dy]
    shapes = [np.shape(y) for y in outputs]
    ends = np.cumsum([np.size(y) for y in outputs])[:-1]

    def pieces(dy):
        parts = [part.reshape(shape) for part, shape in zip(np.split(dy, ends), shapes)]
        return [part if shape else float(part) for part, shape in zip(parts, shapes)]

    return np.concatenate([np.ravel(y) for y in outputs]), pieces


def scaled(gradients: Any, dy: Array | float | None) -> Any:
    """Gradients of a loss, times dy; with None, as they are, of whatever dtype."""
    if dy is None:
        return gradients
    if isinstance(gradients, dict):
        return {name: scaled(g, dy) for name, g in gradients.items()}
    if isinstance(gradients, (tuple, list)):
        return tuple(scaled(g, dy) for g in gradients)
    return gradients * dy if isinstance(gradients, (np.ndarray, np.generic, float)) else gradients


def by_their_names(came: Any, names: Collection[str | int]) -> Any:
    """What a backward returned, with dicts for what else has names: NamedTuples, objects, pairs of a name and an array.

    Arrays of objects become lists, and lists of numbers arrays.

    names: of what has a gradient. A NamedTuple with others stays a tuple
    """
    if isinstance(came, (tuple, list)) and came and all(map(_is_named_gradient, came)):
        return dict(came)
    if has_numbers_only(came):
        return np.array(came)                            # [[0.5, 0.1], [0.2, 0.3]]
    if is_array_of_objects(came):
        return list(came)
    if fields := fields_of(came):
        fit = any(is_gradient_name(said, name) for said in fields for name in names)
        return came._asdict() if fit else came
    if type(came) in (tuple, list):
        return type(came)(by_their_names(part, names) for part in came)
    return dict(members(came)) or came


def has_numbers_only(x: Any) -> bool:
    """True for a list of floats, or of lists of floats of one length"""
    if not isinstance(x, list) or not x:
        return False
    if all(isinstance(part, list) for part in x):
        return len({len(part) for part in x}) == 1 and all(map(has_numbers_only, x))
    return all(isinstance(part, float) for part in x)


def _is_named_gradient(x):
    """True for ("W", dW)"""
    return isinstance(x, (tuple, list)) and len(x) == 2 and isinstance(x[0], str) and isinstance(x[1], np.ndarray)


def loss_and_gradients(result: Any) -> tuple[Any, ...] | None:
    """(loss, gradients, …) of what a function returned, which may have them by name: {"value": …, "gradient": …}

    None of what is neither a tuple nor has such names.
    """
    if isinstance(result, tuple):
        held, *others = map(is_container, result)
        turned = held and others == [False] and np.ndim(result[1]) == 0  # (grads, cost)
        return tuple(result[::-1] if turned else result)
    those = members(result) if not isinstance(result, (list, np.ndarray)) else {}
    losses = [x for name, x in those.items() if LOSSES.match(str(name)) and np.ndim(x) == 0]
    gradients = [x for name, x in those.items() if COME_WITH_IT.match(str(name))]
    named = {name: x for name, x in those.items() if says_gradient(name) and is_floating(x)}         # wrt_means
    gradients = gradients or ([named] if named else [])
    return (losses[0], gradients[0]) if losses and len(gradients) == 1 else None


def in_order(
    gradients: Any, called: Sequence[str], inputs: Sequence[Any], forward: Callable,
    parameters: Mapping[str, Stored] = MappingProxyType({}), inside: Sequence[list] | None = None,
) -> tuple:  # fmt: skip
    """The gradients of the floating inputs, in their order: by place if there are as many, else by name or by shape.

    Those of arrays in a dict, a list or a tuple stand where the arrays do, in one like it: {"W": dW} or {"dW": dW}.
    called       their names
    parameters   {name: Stored} of an object's own arrays, whose gradients may be among them
    inside       the ways to arrays in each input, if they are known: an object may have got others meanwhile
    """
    names = [p.name for p in parameters_of(forward)]
    inside = [ways_in(x) for x in inputs] if inside is None else inside
    if any(inside):
        return _in_order_with_containers(gradients, called, names, inputs, inside)
    floats = [name for name, x in zip(names, inputs) if is_floating(x)]
    if isinstance(gradients, dict):
        named = gradients
    else:
        gradients = flat(gradients)
        if parameters and len(called) == len(gradients):
            gradients, called = _without_those_of(parameters, gradients, called, floats)
        if len(gradients) == len(floats):
            return tuple(gradients)
        arrays = [x for x in inputs if isinstance(x, np.ndarray)]
        if len(gradients) == len(inputs) == len(arrays):
            return tuple(gradients)
        if len(gradients) == len(inputs) and all(g is None for g, x in zip(gradients, inputs) if not is_floating(x)):
            return tuple(g for g, x in zip(gradients, inputs) if is_floating(x))
        named = dict(zip(called, gradients)) if len(called) == len(gradients) else {}
    found = [gradient_of(name, named) for name in floats]
    arrays = [x for _, x in zip(names, inputs) if is_floating(x)]
    if isinstance(gradients, dict) or any(g is not None for g in found):
        left = [k for k, g in enumerate(found) if g is None]             # dh, of h0: those that no name fits, by shape
        left.sort(key=lambda k: len(np.unique(arrays[k])) == 2 and 0 in arrays[k])          # masks last
        known = [*floats, *(name.rpartition(".")[2] for name in parameters)]
        others = [g for said, g in named.items() if not any(is_gradient_name(said, name) for name in known)]
        for place, g in zip(places_by_shape(others, [arrays[k] for k in left]), others):
            found[left[place]] = g
        return tuple(found)
    in_places = dict(zip(places_by_shape(gradients, arrays) or range(len(gradients)), gradients))
    return tuple(in_places.get(place) for place in range(len(floats)))


def _without_those_of(parameters, gradients, called, floats):
    """(gradients, names) but for those of parameters and, where there are such, states and the like: hs[-1]"""
    owns = [(name.rpartition(".")[2], p.data.shape) for name, p in parameters.items()]

    def is_theirs(said, g):
        if isinstance(g, dict):
            return any(is_gradient_name(name, own) for name in g for own, _ in owns)
        fits = any(is_gradient_name(said, own) and np.shape(g) in ((), shape) for own, shape in owns)
        return fits and not any(is_gradient_name(said, name) for name in floats)     # dxp[:, 1:-1] is dx

    theirs = [is_theirs(said, g) for said, g in zip(called, gradients)]
    left = [(g, said) for g, said, is_one in zip(gradients, called, theirs)
            if not is_one and (not any(theirs) or may_be_a_gradient(said))]  # fmt: skip
    return [g for g, _ in left], [said for _, said in left]


def without_a_gradient(
    found: Sequence[Any], gradients: Any, called: Sequence[str], inputs: Sequence[Any], forward: Callable,
    parameters: Mapping[str, Stored],
) -> list[str]:  # fmt: skip
    """The names of floating inputs of which no gradient was `found`, though one of their shape came back that is no
    parameter's
    """
    owns = [*parameters, *(name.rpartition(".")[2] for name in parameters)]
    came = zip(called, flat(gradients)) if not isinstance(gradients, dict) else gradients.items()
    used = {id(g) for g in found}
    shapes = {np.shape(g) for said, g in came if is_floating(g) and id(g) not in used and may_be_a_gradient(str(said))
              and not any(is_gradient_name(said, own) for own in owns)}  # fmt: skip
    floats = [(p.name, x) for p, x in zip(parameters_of(forward), inputs) if is_floating(x)]
    return [name for (name, x), g in zip(floats, found) if g is None and x.shape in shapes]


def by_name(gradients: Any, called: Sequence[str]) -> dict[str, Any]:
    """{name: gradient} of what a backward returned, by their keys in dicts, and else as its `return` calls them"""
    if isinstance(gradients, dict):
        return gradients
    parts = list_of(gradients)
    named = next((dict(zip(called, some)) for some in (parts, flat(gradients)) if len(some) == len(called)), {})
    named = {name: g for name, g in named.items() if may_be_a_gradient(name)}
    named |= {f"[{k}]": part for k, part in enumerate(parts) if isinstance(part, list)}
    return named | {name: g for part in parts if isinstance(part, dict) for name, g in part.items()}


def may_be_a_gradient(said: str) -> bool:
    """True for a gradient's name, and for an expression in which there is one: dW, x.T @ dy"""
    return any(map(is_upstream, re.findall(r"[^\W\d]\w*", said)))


def _in_order_with_containers(gradients, called, names, inputs, inside):
    """`in_order`, where some inputs are dicts, lists or tuples with arrays"""
    wanted = [(name, x, ways) for name, x, ways in zip(names, inputs, inside) if is_floating(x) or ways]
    parts = _without_states(list_of(gradients), called)
    if len(parts) == len(inputs) > len(wanted):          # None for ids
        parts = [g for g, x, ways in zip(parts, inputs, inside) if is_floating(x) or ways]
    bare = [g for g in parts if not is_container(g)]
    if len(bare) == len(parts) != len(wanted):           # one by one, those of all arrays, or of those inside
        places = [(reached(x, way), bool(ways)) for _, x, ways in wanted for way in ways or [()]]
        inside = [x for x, is_inside in places if is_inside]
        if len(parts) == len(places):
            return tuple(parts)
        more = len(parts) == len(inside) > len(places) - len(inside)
        if more or [np.shape(g) for g in parts] == [x.shape for x in inside]:
            left = iter(parts)
            return tuple(next(left) if is_inside else None for _, is_inside in places)
    if len(parts) != len(wanted) or isinstance(gradients, dict):
        parts = _by_kind(gradients if isinstance(gradients, dict) else parts, bare, called, wanted)
    found = []
    for part, (_, x, ways) in zip(parts, wanted):
        inside_it = [g for g in flat(part) if is_floating(g)] if isinstance(part, (tuple, list)) else []
        if ways and [g.shape for g in inside_it] == [reached(x, way).shape for way in ways]:
            found += inside_it                           # in their order, nested in whatever way
            continue
        pairs = [(gradient_inside(part, way, x), gradient_kept(x, way)) for way in ways]
        found += [kept if g is None else g for g, kept in pairs] if ways else [part]
    return tuple(found)


def _without_states(parts, called):
    """What comes back beside gradients and is named as none is left out, if it is a tuple: the last states, (h, c)"""
    names = iter(called)
    said = [[next(names, "") for _ in flat([part])] for part in parts]
    if next(names, None) is not None or not all(map(all, said)):         # not as many names as things
        return parts
    named = [isinstance(part, dict) or any(map(may_be_a_gradient, some)) for part, some in zip(parts, said)]
    return [part for part, is_named in zip(parts, named) if is_named or not isinstance(part, tuple) or not any(named)]


def _by_kind(gradients, bare, called, wanted):
    """The gradients for `wanted`: dicts and lists for dicts and lists, in their order; arrays by name or by shape"""
    inside = iter([g for g in list_of(gradients) if is_container(g)])
    called = [name for name in called if not keeps_gradients(name) or is_upstream(name)]
    named = dict(zip(called, bare)) if len(called) == len(bare) else {}
    named |= gradients if isinstance(gradients, dict) else {}
    arrays = [(name, x) for name, x, ways in wanted if not ways]
    by_shape = {arrays[place][0]: g for place, g in zip(places_by_shape(bare, [x for _, x in arrays]), bare)}
    found = {name: gradient_of(name, named) for name, _ in arrays}
    found |= {name: by_shape.get(name) for name, g in found.items() if g is None}
    left = [name for name, g in found.items() if g is None]
    first = [g for said, g in named.items() if FIRST.match(said)]
    if len(left) == len(first) == 1:
        found[left[0]] = first[0]
    return [next(inside, None) if ways else found[name] for name, _, ways in wanted]


def places_by_shape(gradients: Sequence[Any], arrays: Sequence[Any]) -> list[int]:
    """The places of the arrays to which the gradients belong, by shapes and in their order; [] if one fits nowhere.

    Of forward(A, x) with dx alone: [1].
    """
    places, first = [], 0
    for g in gradients:
        place = next((k for k in range(first, len(arrays)) if np.shape(arrays[k]) == np.shape(g)), None)
        if place is None:
            return []
        places.append(place)
        first = place + 1
    return places


def returned_names(backward: Callable) -> list[str]:
    """The names in the last `return dx, dW` of a function: of hs[-1], "hs", and of an expression, its text"""
    code = getattr(inspect.unwrap(getattr(backward, "__func__", backward)), "__code__", None)
    return [] if code is None else [*_names_returned(code)]


@lru_cache(1000)
def _names_returned(code):
    try:
        function = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return ()
    waiting, returned = list(getattr(function, "body", [])), None
    while waiting:                                       # its own, not those of functions inside
        node = waiting.pop(0)
        returned = node.value if isinstance(node, ast.Return) else returned
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            waiting[:0] = ast.iter_child_nodes(node)
    return tuple(map(_name_of_part, _parts_of(returned))) if returned else ()


def _parts_of(node):
    return [part for one in node.elts for part in _parts_of(one)] if isinstance(node, (ast.Tuple, ast.List)) else [node]


def _name_of_part(part):
    name, own = _named(part), _named(_without_factors(part))
    return name or (own if own and is_upstream(own) else ast.unparse(part))


def _named(part):
    """The name of a variable, or of one that a part is taken of; an attribute's own; "" of other expressions"""
    while isinstance(part, (ast.Subscript, ast.Attribute)):
        if isinstance(part, ast.Attribute) and part.attr != "T":
            return part.attr
        part = part.value
    return getattr(part, "id", "")


def _without_factors(part):
    """dW of -dW, dW / n, 2 * dW and dW + decay * W"""
    while isinstance(part, (ast.UnaryOp, ast.BinOp)):
        if isinstance(part, ast.UnaryOp):
            part = part.operand
        elif isinstance(part.op, ast.Mult) and isinstance(part.left, ast.Constant):
            part = part.right
        elif isinstance(part.op, (ast.Div, ast.Add, ast.Sub)) or isinstance(part.right, ast.Constant):
            part = part.left
        else:
            break
    return part


def flat(x: Any) -> list[Any]:
    """The gradients in a tuple or list, those in lists inside it included."""
    return [g for part in x for g in flat(part)] if isinstance(x, (tuple, list)) else [x]


def parameters_of(f: Callable) -> list[inspect.Parameter]:
    """The parameters of a function or bound method that can be given by place."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
