"""Arguments for a learner's function: their shapes, from a docstring or from options, and random numbers of that shape.

A docstring says the shapes in numbers,   Example: z (2, 5), ids (2, 3) int < 7, mask (2, 5) bool, p (3,) positive
of arrays in a dict or a list too,        Example: x (5, 4), params.W (4, 3), params.b (3,), layers.0.W (3, 3)
in letters, as those of `mini_tf.ops`:    z (…, k), gamma (k,)
or in words:                              x: array of shape (batch, features)
"""

import ast
import inspect
import itertools
import math
import re
import time
import warnings
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from mini_tf.checks import shown
from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.brought import forward_of
from mini_tf.gradcheck.measuring.returned import parameters_of
from mini_tf.gradcheck.measuring.stored import reached, ways_in
from mini_tf.gradcheck.measuring.styles import in_contract, is_machine, value_and_gradient

import numpy as np

LARGEST = 100_000        # entries of one argument, and ids: the checker runs the function thousands of times
KIND = r"positive|bool|int(?: ?< ?\w+)?"
SAID = r":? ?[^()\n]{0,60}?\bshape:? ?|: ?| "             # between a name and its shape: "x: input of shape (N, D)"
ARGUMENT = re.compile(rf"(?<![\w.])(\w+(?:\.\w+)*)({SAID})\(([^()]*)\)(?: ({KIND})\b)?")
USUAL = dict.fromkeys(("ids", "targets", "labels"), " int<7") | dict.fromkeys(("mask", "keep"), " bool")
SHAPES = [(2, 3), (3, 4), (4,), (3,), (2,), (2, 4), (4, 3), (2, 3, 4), (4, 5), (5,), (4, 4), (2, 3, 6, 5), ()]
MOST, SECONDS = 3000, 3.0        # combinations of shapes to try, and for how long


class Argument(NamedTuple):
    """What an argument has to be: axes are sizes, letters or …; kind is float, int or bool; ints are below bound."""

    axes: tuple
    kind: str
    bound: str


def parsed(args: Sequence[str]) -> dict[str, Any]:
    """{name: value} of ["stride=2", "conv={'pad': 1}", "how=mean"]; what is no Python value is a string"""
    values = {}
    for option in args:
        name, equals, text = (part.strip() for part in option.partition("="))
        if not equals or not name.isidentifier():
            raise UserError(f"--arg {option!r} is not an argument, expected a name and a value, as in stride=2")
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            values[name] = text
    return values


def made(cls: type, values: dict[str, Any], shapes: Sequence[str], seed: int) -> tuple[Any, dict[str, Any]]:
    """(an object of the class, the values that its constructor did not take)

    Random weights are drawn from the seed. Raises UserError if the constructor wants more, with a proposal.
    """
    parameters = inspect.signature(cls).parameters.values()
    wanted = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    own = {p.name: values[p.name] for p in wanted if p.name in values}
    if missing := [p.name for p in wanted if p.default is p.empty and p.name not in own]:
        raise UserError(_ask_for_sizes(cls, missing, own, shapes))
    np.random.seed(seed)  # noqa: NPY002, a learner's constructor draws from it
    return cls(**own), {name: value for name, value in values.items() if name not in own}


def inputs_for(f: Any, shapes: Sequence[str], values: dict[str, Any], rng: np.random.Generator) -> list[Any]:
    """Arrays for the arguments of f, up to the last that has a shape or a value; others keep their default."""
    called = _called(f)
    signature = inspect.signature(called).parameters.values()
    parameters = _by_place(f)
    names, name_of_f = [p.name for p in parameters], _name(f)
    if not names:
        raise UserError(f"{name_of_f} takes no arguments, expected arrays to differentiate with respect to")
    if by_name := [p.name for p in signature if p.kind == p.KEYWORD_ONLY and p.default is p.empty]:
        raise UserError(f"{name_of_f} takes {', '.join(by_name)} by name only; give it a default value")
    if unknown := [name for name in values if name not in names]:
        raise UserError(f"--arg {unknown[0]}: {name_of_f} has no argument {unknown[0]!r}; it has {', '.join(names)}")
    doc = inspect.getdoc(called) or ""
    found = _from_example(doc, names) | _from_options(name_of_f, shapes, names)
    from_letters = not shapes and not found
    if from_letters:
        found = _from_letters(doc, names)
        from_letters = any(not axis.isdecimal() for argument in found.values() for axis in argument.axes)
    found = {name: argument for name, argument in found.items() if name not in values}
    sizes = _sizes(found.values())
    found = {name: (_shape(name, a, sizes), a.kind, _bound(name, a, sizes)) for name, a in found.items()}

    owners = {*map(_owner, found), *values}
    missing = [p.name for p in parameters if p.name not in owners and p.default is p.empty]
    if missing:
        said = " (what stands after Example: was not understood)" if not found and "Example:" in doc else ""
        wanted = [each for n in names for each in (_keys_in(called, n) if n in missing else [n])]
        arguments = {n: found.get(n) for n in dict.fromkeys([*wanted, *found]) if n in found or _owner(n) in missing}
        raise UserError(_ask(f, missing, *_proposed(f, arguments, values)) + said)
    given = [*found, *values]
    draws = {n: _draw(*a, np.random.default_rng(0)) for n, a in found.items()} if from_letters else {}
    if from_letters and not _runs(f, draws | values):
        arguments, proposed = _proposed(f, dict.fromkeys(n for n in names if n in found), values)
        if proposed:
            raise UserError(f"with the shapes of its docstring it does not run. {_ask(f, found, arguments, proposed)}")
    used = parameters[: max(names.index(_owner(name)) for name in given) + 1] if given else []
    drawn = _nested({name: _draw(*argument, rng) for name, argument in found.items()}) | values
    return [drawn.get(p.name, p.default) for p in used]


def _owner(name):
    """params of params.W"""
    return name.partition(".")[0]


def _keys_in(f, name):
    """["params.W1", …] of an argument of which f reads params["W1"]; [name] of others"""
    try:
        keys = re.findall(rf"""\b{name}\[["'](\w+)["']\]""", inspect.getsource(f))
    except (OSError, TypeError):
        keys = []
    return [f"{name}.{key}" for key in dict.fromkeys(keys)] or [name]


def _nested(arrays):
    """{"x": x, "params": {"W": W}} of {"x": x, "params.W": W}; numbers are the places of a list: layers.0"""
    found = {}
    for name, array in arrays.items():
        *way, last = name.split(".")
        holder = found
        for step in way:
            holder = holder.setdefault(step, {})
        holder[last] = array
    return {name: _with_lists(x) for name, x in found.items()}


def _with_lists(x):
    if not isinstance(x, dict):
        return x
    parts = {key: _with_lists(part) for key, part in x.items()}
    places = [str(k) for k in range(len(parts))]
    return [parts[k] for k in places] if parts.keys() == {*places} else parts


def placed(f: Any, inputs: Sequence[Any], options: dict[str, Any]) -> list[Any]:
    """The inputs, and options such as stride=2 in the places that f has for them; between them stand f's defaults.

    Raises UserError for options that f does not have, or takes by name only.
    """
    if not options:
        return list(inputs)
    parameters = _by_place(f)
    names = [p.name for p in parameters]
    for name in options:
        if name not in names[len(inputs) :]:
            by_name = [p.name for p in inspect.signature(_called(f)).parameters.values() if p.kind == p.KEYWORD_ONLY]
            came = "was given it twice" if name in names else "does not take it"
            came = "takes it by name only" if name in by_name else came
            raise UserError(f"{name}={shown(options[name])}: {_name(f)}({', '.join(names)}) {came}; try "
                            f"gradcheck(lambda x: {_name(f)}(x, …), x)")  # fmt: skip
    last = max(map(names.index, options))
    return [*inputs, *(options.get(p.name, p.default) for p in parameters[len(inputs) : last + 1])]


def takes_seed(f: Any, inputs: Sequence[Any]) -> bool:
    """True if f has an argument `seed` behind the inputs, as a function with noise of its own may."""
    return "seed" in [p.name for p in _by_place(f)][len(inputs) :]


def _by_place(f):
    """The parameters of what takes the arguments that can be given by place; of a class without ctx"""
    return parameters_of(_called(f))[inspect.isclass(f) :]


def _called(f):
    """What takes the arguments: f itself, the first of a pair, an object's forward or loss, or a class's static one."""
    if isinstance(f, (tuple, list)):
        return f[0]
    if inspect.isclass(f):
        return f.forward
    if is_machine(f):
        return getattr(f, forward_of(f))
    pair = value_and_gradient(f)
    return getattr(f, pair[0]) if pair else f if callable(f) else f.loss


def _name(f):
    f = f[0] if isinstance(f, (tuple, list)) else f
    return getattr(f, "__name__", type(f).__name__)


def _from_options(f_name, shapes, names):
    found = {}
    for option in shapes:
        name, equals, text = (part.strip() for part in option.partition("="))
        match = re.fullmatch(rf"\(?([\d, ]*)\)? ?({KIND})?", text)
        if not equals or not match or not (argument := _argument(*match.groups())):
            raise UserError(f"--shape {option!r} is not a shape, expected x=3,4 or 'ids=2,3 int<7' or 'mask=3,3 bool', "
                            "or s= for a single number")  # fmt: skip
        if _owner(name) not in names:
            raise UserError(f"--shape {option!r}: {f_name} has no argument {name!r}; it has {', '.join(names)}")
        found[name] = argument
    return found


def _from_example(doc, names):
    """The arguments after "Example:" in a docstring, to the next empty line."""
    example = re.search(r"^ *Example:(.*?)(?:\n *\n|\Z)", doc, re.S | re.M)
    return _from_letters(example[1], names, inside=True) if example else {}


def _from_letters(text, names, inside=False):
    """The arguments of a text, each where it is first followed by a shape. inside: arrays in dicts, params.W, too"""
    found = {}
    for name, said, axes, kind in ARGUMENT.findall(text):
        known = (_owner(name) if inside else name) in names and name not in found
        if known and (argument := _argument(axes, kind, bool(said.strip()))):
            found[name] = argument
    return found


def _argument(axes, kind, told=False):
    """The Argument that ("2, T", "int < 7") means, or None: "(see below)" is not a shape, and "(optional)" is none.

    Names of axes are letters, or words if there are several, as in (batch, features), or if it is `told` to be a shape.
    """
    several = "," in axes or told
    axes = tuple(axis.strip().replace("...", "…") for axis in axes.strip().removesuffix(",").split(",") if axes.strip())
    longest = 40 if several else 3
    if not all(a == "…" or a.isdecimal() or (a.isidentifier() and len(a) <= longest) for a in axes):
        return None
    kind, _, bound = (kind or "float").replace(" ", "").partition("<")
    return Argument(axes, kind, bound)


def _sizes(arguments):
    """{letter: its size}; … is two axes. All sizes differ, so that exchanged axes are noticed."""
    size = count(2)
    letters = dict.fromkeys(axis for a in arguments for axis in a.axes if not axis.isdecimal())
    return {axis: (next(size), next(size)) if axis == "…" else (next(size),) for axis in letters}


def _shape(name, argument, sizes):
    shape = tuple(n for axis in argument.axes for n in sizes.get(axis, None) or (int(axis),))
    if not 0 < math.prod(shape) <= LARGEST:
        raise UserError(f"{name} has the shape {shape}, expected sizes from 1 and at most {LARGEST:,} entries in all")
    return shape


def _bound(name, argument, sizes):
    """Ids are below this: a number, or the size of a letter, which is c, the vocabulary's, unless said otherwise."""
    if argument.kind != "int":
        return None
    bound = argument.bound or "c"
    bound = int(bound) if bound.isdecimal() else sizes.get(bound, (0,))[0]
    if not 0 < bound <= LARGEST:
        raise UserError(f"{name} is int, below which number? Write int<7 for ids from 0 to 6; at most {LARGEST:,}")
    return bound


def _draw(shape, kind, bound, rng):
    """Standard normal; or positive, not near 0; ids, the last the same as the first; booleans of both values."""
    if kind == "float":
        return rng.standard_normal(shape)
    if kind == "positive":
        return rng.uniform(0.2, 2, shape)
    drawn = rng.integers(0, bound, shape) if kind == "int" else rng.random(shape) < 0.5
    flat = drawn.reshape(-1)
    if kind == "int":
        flat[-1] = flat[0]
        if flat.size > 2 and flat.max() < 2 < bound:     # zeros and ones would look like a mask
            flat[1] = bound - 1
    else:
        flat[-1], flat[0] = False, True
    return drawn


def _proposed(f, arguments, values):
    """(arguments, shapes that fit each other): see `_that_fit`; the arguments without those that do not fit"""
    proposed, how = _that_fit(f, arguments, values)
    if how != "back" and any(arguments.values()):        # what is known may not fit: letters have sizes of their own
        unknown = dict.fromkeys(arguments)
        others, how = _that_fit(f, unknown, values)
        if how == "back":
            return unknown, others
    return arguments, proposed


def _ask(f, missing, arguments, proposed):
    """How to give the missing shapes, both ways, with this function's own names, and the proposed shapes."""
    options, example = [], []
    usual = next((shape[-2:] for shape, _, _ in filter(None, arguments.values())), (2, 3))
    for name, known in arguments.items():
        shape, kind, bound = known or proposed.get(name) or (usual, "float", None)
        if known or name in proposed:
            kind = {"float": "", "positive": " positive", "int": f" int<{bound}", "bool": " bool"}[kind]
        else:
            kind = USUAL.get(name, "")
        spec = f"{name}={','.join(map(str, shape))}{kind}"
        options.append(f'--shape "{spec}"' if kind else f"--shape {spec}")
        example.append(f"{name} {shape}{kind}")
    with_them = " (with these it runs)" if proposed else ""
    return (
        f"{_name(f)}: what is the shape of {', '.join(missing)}? Give those of all arguments: {' '.join(options)}"
        f"{with_them} (word ids are 2,3 int<7, a mask is 2,3 bool; a number or an option is --arg stride=2), or write "
        f"into the docstring: Example: {', '.join(example)}"
    )


def _ask_for_sizes(cls, missing, own, shapes):
    """How to give what the constructor of a class wants, with numbers that fit."""
    for numbers in itertools.islice(itertools.permutations((3, 4, 5, 6, 2), len(missing)), MOST // 10):
        options = dict(zip(missing, numbers))
        try:
            machine = cls(**own, **options)
            names = [p.name for p in parameters_of(_called(machine))]
            found, _ = _that_fit(machine, dict.fromkeys(names), {}, MOST // 10)
        except FAILURES:
            continue
        if found:
            break
    else:
        options, found = dict.fromkeys(missing, 4), {}
    arg = " ".join(f"--arg {name}={value}" for name, value in options.items())
    shape = "" if shapes else "".join(f" --shape {_spec(name, *found[name])}" for name in found)
    return f"{cls.__name__}: its constructor takes {', '.join(missing)}; give them: {arg}{shape}"


def _spec(name, shape, kind, bound):
    text = f"{name}={','.join(map(str, shape))}"
    return f'"{text} int<{bound}"' if kind == "int" else f'"{text} bool"' if kind == "bool" else text


def _that_fit(f, arguments, values, most=MOST):
    """({name: (shape, kind, bound)} with which f runs, "back" or "forward"), found by trying; ({}, "") if none do.

    arguments: {name: the same for those that are known, None for the others}
    """
    rng, sizes = np.random.default_rng(0), [n for known in arguments.values() if known for n in known[0]]
    tried = []
    for name, known in arguments.items():
        kind = USUAL.get(name, "").strip().partition("<")[0] or "float"
        kinds = [kind, "int"] if name == "y" else [kind]
        shapes = SHAPES + [shape for k in (1, 2) for shape in itertools.permutations(sizes, k) if shape not in SHAPES]
        bounds = {"int": (3, 2)}
        tried.append([known] if known else [(s, k, n) for k in kinds for n in bounds.get(k, (None,)) for s in shapes])
    only_forward, deadline = {}, time.monotonic() + SECONDS
    for chosen in itertools.islice(itertools.product(*tried), most):
        drawn = {name: _draw(*argument, rng) for name, argument in zip(arguments, chosen)} | values
        how = _runs(f, drawn)
        if how == "back" and all(_runs(f, another) == how for another in _drawn_again(arguments, chosen, values)):
            return dict(zip(arguments, chosen)), how
        if how and not only_forward:
            only_forward = dict(zip(arguments, chosen))
        if time.monotonic() > deadline:
            break
    return only_forward, "forward" if only_forward else ""


def _drawn_again(arguments, chosen, values):
    """Other numbers of the same shapes: ids may be out of range for some."""
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        yield {name: _draw(*argument, rng) for name, argument in zip(arguments, chosen)} | values


def _runs(f, given):
    """ "back" if f runs forward and back, and all gradients have the right shapes; "forward" if it runs; "" if not"""
    parameters = parameters_of(_called(f))[inspect.isclass(f) :]
    parameters = [p for p in parameters if p.name in {*map(_owner, given)} or p.default is p.empty]
    try:
        given = _nested(given)
        inputs = [given[p.name] for p in parameters]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y, backward = in_contract(f, inputs)(*inputs)
            if not callable(backward) or not np.isfinite(y).all() or np.asarray(y).dtype.kind != "f":
                return ""
    except FAILURES:
        return ""
    try:
        came = backward(np.ones_like(y) if np.ndim(y) else 1.0)
        came = [g for g in (came if isinstance(came, (tuple, list)) else [came]) if g is not None]
        arrays = [reached(x, way) for x in inputs for way in ways_in(x) or [()]]
        shapes = [np.shape(x) for x in arrays if getattr(x, "dtype", None) == np.float64]
        return "back" if not came or [np.shape(g) for g in came] == shapes else "forward"
    except FAILURES:
        return "forward"
