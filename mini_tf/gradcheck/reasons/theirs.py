"""The learner's own functions and objects inside what is checked: they are steps too.

Inside `their_code`, functions of f's file, and of the files that it imports from beside it, report to a Tracer: those
that keep y, backward = f(…), pairs such as affine_forward and affine_backward, and objects with forward and backward.
"""

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial, wraps
from types import CellType, CodeType, FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.authors import is_their_file, is_theirs
from mini_tf.gradcheck.measuring.brought import Brought, Machine, backward_of
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.naming import is_gradient_name
from mini_tf.gradcheck.measuring.returned import parameters_of, returned_names
from mini_tf.gradcheck.measuring.spaces import functions_of, namespaces
from mini_tf.gradcheck.measuring.stored import BACKWARD, FORWARD, members
from mini_tf.gradcheck.measuring.styles import is_gradient, is_single, is_static, partner
from mini_tf.gradcheck.measuring.subject import Subject, copied
from mini_tf.gradcheck.measuring.variables import Variables
from mini_tf.gradcheck.planting.editing import closure_of, function_of
from mini_tf.trace import Call, Tracer, codes_inside, keeps_contract, trace
from mini_tf.types import Array

import numpy as np

COMPREHENSIONS = "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<module>"
MARK = "_first_traced_call"
NONE = MappingProxyType({})
DEEPEST, MANY = 3, 100   # dicts and lists inside each other, and their entries, in a registry of functions


def calls_in(subject: Subject, dy: Array | float | None = None) -> list[Call]:
    """The Calls of ops, layers, and of the learner's own functions and objects in one run of the subject.

    Without f itself. dy: for its backward; ones by default
    """
    inputs = [copied(x) for x in subject.arguments()]    # which it may change
    with trace(partial(their_code, subject.f)) as calls, contextlib.suppress(*FAILURES):
        y, backward = subject.f(*inputs)
        forwards = len(calls)
        try:
            backward((np.ones_like(y) if np.ndim(y) else 1.0) if dy is None else copy.copy(dy))
        finally:
            for call in calls[forwards:]:
                call.is_going_back = True
    whole = type(subject.f.its_object) if isinstance(subject.f, Machine) else None
    return [call for call in calls if call.f is not subject.f and not (call.depth == 0 and type(call.f) is whole)]


def y_with(subject: Subject, number: int, move: Callable[[tuple], tuple]) -> Any:
    """The subject's y if the call of that number has the inputs that `move` makes of its own."""
    @contextlib.contextmanager
    def moving(tracer):
        tracer.moved[number] = move
        with their_code(subject.f, tracer):
            yield

    with trace(moving):
        return subject.forward()[0]


@contextlib.contextmanager
def their_code(f: Any, tracer: Tracer) -> Iterator[None]:
    """Inside the block, the learner's functions and objects that f may call report to the tracer."""
    undo = []
    try:
        for space in namespaces(f):
            functions = {name: g for name, g in space.items() if inspect.isfunction(g) and is_theirs(g)}
            for name, watched in _watched_functions(functions, tracer).items():
                undo.append((space.__setitem__, name, space[name]))
                space[name] = watched
            for cls in {c for c in space.values() if inspect.isclass(c) and is_theirs(c)}:
                for name, watched in _watched_methods(cls, tracer).items():
                    undo.append((partial(setattr, cls), name, vars(cls)[name]))
                    setattr(cls, name, watched)
        cells = {name: cell for g in functions_of(f) for name, cell in Variables(g).around.items()}
        functions = {name: cell.cell_contents for name, cell in cells.items()}
        functions = {name: g for name, g in functions.items() if inspect.isfunction(g) and is_theirs(g)}
        for name, watched in _watched_functions(functions, tracer).items():
            undo.append((partial(setattr, cells[name]), "cell_contents", functions[name]))
            cells[name].cell_contents = watched
        yield
    finally:
        for put, name, was in reversed(undo):
            put(name, was)


def _watched_functions(functions, tracer):
    """{name: what to call in its place}"""
    watched, pairs = {}, {}
    for name, g in functions.items():
        back = partner(g)
        if back is not None and functions.get(back.__name__) is back:
            pairs[back.__name__] = []                    # the calls that have not gone back yet
            watched[name] = _forward_of_pair(g, back, pairs[back.__name__], tracer)
            watched[back.__name__] = _backward_of_pair(back, pairs[back.__name__], tracer)
    for name, g in functions.items():
        if name not in watched and not inspect.isgeneratorfunction(g):
            watched[name] = _watched(g, tracer)
    return watched


def _watched(g, tracer):
    @wraps(g)
    def call(*inputs, **options):
        made, result = tracer.forward(g.__name__, g, g, *inputs, **options)
        if isinstance(result, tuple) and len(result) > 1 and callable(result[-1]) and not callable(result[0]):
            *outputs, made.backward = result
            return *outputs, partial(tracer.backward, made)
        if comes_with_gradients(g, result):
            made.backward = g
            tracer.end(made)
            return result
        tracer.calls.remove(made)
        return result

    return call


def comes_with_gradients(g: Callable, result: Any) -> bool:
    """True for a loss and its gradients: `return loss, dmu, dlv`, where mu and lv are arguments of g."""
    if not isinstance(result, tuple) or len(result) < 2 or not is_single(result[0]) or not is_gradient(result[1:]):
        return False
    arguments, names = [p.name for p in parameters_of(g)], returned_names(g)[1:]
    return len(names) == len(result) - 1 and all(any(is_gradient_name(n, a) for a in arguments) for n in names)


def _forward_of_pair(g, back, waiting, tracer):
    @wraps(g)
    def call(*inputs, **options):
        inputs, options = by_place(g, inputs, options)
        made, result = tracer.forward(back.__name__, (g, back), g, *inputs, **options)
        if keeps_contract(result):                       # not a pair after all
            made.f, made.name, (made.output, made.backward) = g, g.__name__, result
            return made.output, partial(tracer.backward, made)
        made.backward = back
        waiting.append(made)
        return result

    return call


def _backward_of_pair(back, waiting, tracer):
    @wraps(back)
    def call(*arguments, **options):
        arguments, options = by_place(back, arguments, options)
        made = _whose_cache(arguments, waiting)
        if made is None or options or _is_of_forward(arguments, waiting):
            return back(*arguments, **options)
        waiting.remove(made)
        made.given = arguments
        return tracer.backward(made, *arguments)

    return call


def _whose_cache(arguments, waiting):
    """The waiting forward whose cache, or a copy of it, is among the arguments; else the last one, if there is one"""
    caches = [(made, x) for made in reversed(waiting) if isinstance(made.output, tuple) for x in made.output]
    for test in (lambda x, y: x is y, _has_the_same):
        for made, x in caches:
            if isinstance(x, (tuple, list, dict, np.ndarray)) and any(test(x, y) for y in arguments):
                return made
    return waiting[-1] if waiting else None


def _has_the_same(x, y):
    """True for two caches with equal contents, such as an object's and its copy's"""
    if type(x) is not type(y):
        return False
    if isinstance(x, np.ndarray):
        return np.array_equal(x, y)
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(_has_the_same(x[key], y[key]) for key in x)
    if isinstance(x, (tuple, list)):
        return len(x) == len(y) and all(map(_has_the_same, x, y))
    return x is y or type(x).__module__ == "builtins" and x == y


def _is_of_forward(arguments, calls):
    """True for a single argument that is the input or the output of a forward: what it gives is a derivative"""
    if len(arguments) != 1 or not isinstance(arguments[0], np.ndarray):
        return False
    return any(isinstance(x, np.ndarray) and np.array_equal(arguments[0], x)
               for made in calls for x in (*made.inputs, made.output))  # fmt: skip


def _watched_methods(cls, tracer):
    """{name: method} for a class with forward and backward of its own, or one of them"""
    own = vars(cls)
    if is_static(cls) and {"forward", "backward"} <= own.keys():
        return _watched_static(cls, tracer)
    found = {name: own[name] for name in (*FORWARD, "__call__") if inspect.isfunction(own.get(name))}
    way_back = backward_of(cls)
    if way_back is None or issubclass(cls, Brought):
        return {}
    watched = {}
    if found:
        way = next(iter(found))
        watched[way] = _forward_of_object(cls, found[way], tracer)
    if inspect.isfunction(own.get(way_back)):
        watched[way_back] = _backward_of_object(own[way_back], tracer)
    return watched


def _watched_static(cls, tracer):
    """The same for a class whose forward and backward are given a ctx, by which they know each other"""
    forward, backward, waiting = cls.forward, cls.backward, []

    @wraps(forward)
    def there(ctx, *inputs, **options):
        inputs, options = by_place(partial(forward, ctx), inputs, options)
        made, result = tracer.forward(cls.__name__, cls, partial(forward, ctx), *inputs, **options)
        made.backward = backward
        waiting.append((ctx, made))
        return result

    @wraps(backward)
    def back(ctx, *arguments):
        made = next((made for of, made in reversed(waiting) if of is ctx and made.ended is None), None)
        if made is None:
            return backward(ctx, *arguments)
        made.backward = wraps(backward)(partial(backward, ctx))
        return tracer.backward(made, *arguments)

    return {"forward": staticmethod(there), "backward": staticmethod(back)}


def _forward_of_object(cls, forward, tracer):
    @wraps(forward)
    def call(self, *inputs, **options):
        inputs, options = by_place(partial(forward, self), inputs, options)
        as_it_was = copy.deepcopy(self)
        made, result = tracer.forward(type(self).__name__, as_it_was, partial(forward, self), *inputs, **options)
        made.backward = getattr(type(self), backward_of(self))
        made.owner = vars(self).setdefault(MARK, made)   # a copy of the object has the same mark
        return result

    return call


def _backward_of_object(backward, tracer):
    @wraps(backward)
    def call(self, *arguments, **options):
        mark = vars(self).get(MARK)
        waiting = [c for c in tracer.calls if mark is not None and c.owner is mark and c.ended is None]
        if not waiting or options:
            return backward(self, *arguments, **options)
        made = waiting[-1]
        vars(made.f).update(_cleared_gradients(self, vars(made.f)))
        made.backward = wraps(backward)(partial(backward, self))
        return tracer.backward(made, *arguments)

    return call


def _cleared_gradients(owner, before):
    """{name: zeros} of the gradients that an object has got since its forward, as from a zero_grad()"""
    new = {name: x for name, x in vars(owner).items() if name not in before}
    found = {name: np.zeros_like(x) for name, x in new.items()
             if isinstance(x, np.ndarray) and any(is_gradient_name(name, own) for own in before)}  # fmt: skip
    dicts = {name: x for name, x in new.items() if isinstance(x, dict) and "grad" in name and is_gradient(x)}
    return found | {name: {key: np.zeros_like(g) for key, g in x.items()} for name, x in dicts.items()}


def by_place(g: Callable, inputs: tuple, options: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """(inputs, options), with what was given by name put in its place, if that can be"""
    if not options:
        return inputs, options
    try:
        bound = inspect.signature(g).bind(*inputs, **options)
    except (TypeError, ValueError):
        return inputs, options
    return bound.args, bound.kwargs


# What a backward is made of -----------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A function of the backward, or the forward.

    runs        the function whose code is exchanged to try a change: the one around it, if it is made anew in each call
    is_inside   it is defined inside another part
    is_handed   the backward runs it, and does not name it: a list has it, `for step in reversed(tape): step()`
    """

    function: FunctionType
    runs: FunctionType
    is_forward: bool = False
    is_inside: bool = False
    is_handed: bool = False


def parts_of(evidence: Evidence) -> list[Part]:
    """[Part]: the backward, what it calls of the learner's functions and methods, and the same of the forward.

    Without functions that are steps, because steps are checked by themselves.
    """
    found, waiting, f, steps = {}, [evidence.backward], evidence.subject.f, set()
    steps.update(code for g in functions_of_steps(evidence.subject) for code in codes_inside(g.__code__))
    forward = function_of(written_forward(evidence))
    both = function_of(evidence.backward) is forward     # a loss that comes with its gradients
    stay = functions_of(f)                               # they are not made anew in each call
    methods, classes, helpers = {}, [], [g for g in evidence.subject.helpers if g.__name__ not in FORWARD]
    owner = f.its_object if isinstance(f, Brought) else None
    if owner is not None:
        those = [*(own for cls in type(owner).__mro__ for own in vars(cls).items())]
        those = [(name, getattr(g, "__func__", g)) for name, g in those]         # static ones, too
        methods = {name: g for name, g in those if inspect.isfunction(g)}
    while waiting:
        try:
            function = function_of(waiting.pop(0))
        except UserError:
            continue
        known = function.__code__ in found or (function is forward and not both)
        if known or (found and (not is_theirs(function) or function.__code__ in steps)):
            continue
        around = function if function in stay else _around(function, forward)
        found[function.__code__] = part = Part(function, around)
        inside = [] if both else _functions_inside(function)
        found |= {g.__code__: Part(g, part.runs, is_inside=True) for g in inside}
        names = {name for code in codes_inside(function.__code__) for name in code.co_names}
        values = [*closure_of(function).values(), *(function.__globals__.get(name) for name in names)]
        values += function.__defaults__ or ()            # loss_and_gradient=neg_sampling
        values += _in_registries({name: x for name, x in function.__globals__.items() if name in names})
        values += [x for name, x in members(owner).items() if name in names]             # self.derivative
        values += _in_modules(values, names)
        values += [methods[name] for name in names & methods.keys() - {*FORWARD, *BACKWARD, "__init__"}]
        held = [type(x) for x in vars(owner).values()] if hasattr(owner, "__dict__") else []         # self.act.grad(z)
        classes += [c for c in dict.fromkeys(c for c in [*values, *held] if _is_their_class(c)) if c not in classes]
        classes += [c for cls in classes for c in _given_to(cls) if _is_their_class(c) and c not in classes]
        for cls in classes:
            of_steps, own = _of_steps(cls), vars(cls)
            named = sorted((names | {"__call__"}) & own.keys())
            methods_of_cls = [(name, getattr(own[name], "__func__", own[name])) for name in named]
            values += [g for name, g in methods_of_cls if name not in of_steps or g in helpers]
        waiting += [g for g in (getattr(value, "__func__", value) for value in values) if inspect.isfunction(g)]
    for code, space in _run_back(evidence, both).items():
        if code not in found and code not in steps and code is not forward.__code__:
            function = _empty(code, space)
            around = _around(function, forward)
            named = named_in(space, code.co_qualname)
            if getattr(named, "__code__", None) is not code:
                named = next((g for g in _in_registries(space) if getattr(g, "__code__", None) is code), None)
            if around is not function:
                found[code] = Part(function, around, is_inside=True, is_handed=True)
            elif named is not None and not both:
                found[code] = Part(named, named, is_handed=True)
    if both:
        return list(found.values())
    others = [g for g in called_by(forward, methods) if g.__code__ not in found and g.__code__ not in steps]
    return [*found.values(), *(Part(g, g, is_forward=True) for g in (forward, *others))]


def called_by(function: FunctionType, methods: Mapping[str, Any] = NONE) -> list[FunctionType]:
    """The learner's functions that a function names, and its methods; not those that these name"""
    names = {name for code in codes_inside(function.__code__) for name in code.co_names}
    found = [methods.get(name, function.__globals__.get(name)) for name in sorted(names)]
    found += _in_modules([*closure_of(function).values(), *found], names)
    return [g for g in found if inspect.isfunction(g) and is_theirs(g) and g is not function]


def _in_modules(values, names):
    """What these names stand for in the learner's modules among values"""
    modules = [x for x in values if isinstance(x, ModuleType) and is_their_file(getattr(x, "__file__", None))]
    return [vars(module)[name] for module in modules for name in sorted(names & vars(module).keys())]


def _in_registries(space):
    """The functions and classes in dicts, lists and tuples of a file: {"elu": (lambda z: …, lambda z: …)}"""
    parts = list(space.values())
    for _ in range(DEEPEST):
        held = [x for x in parts if isinstance(x, (dict, list, tuple)) and len(x) < MANY]
        parts = [part for x in held for part in (x.values() if isinstance(x, dict) else x)]
        yield from (part for part in parts if inspect.isfunction(part) or _is_their_class(part))


def _is_their_class(x):
    return inspect.isclass(x) and is_theirs(x)


def _of_steps(cls):
    """The names of methods that are steps: forward and backward, where a class has both"""
    both = {name for name in FORWARD if hasattr(cls, name)}, {name for name in BACKWARD if hasattr(cls, name)}
    return set.union(*both) if all(both) else set()


def _given_to(cls):
    """What the constructor of a class is given by default: cost=Quadratic"""
    return getattr(vars(cls).get("__init__"), "__defaults__", None) or ()


def written_forward(evidence: Evidence) -> Any:
    """f itself, or, if it was brought to the contract, the learner's own forward"""
    f = evidence.subject.f
    return f.written_forward if isinstance(f, Brought) else f


def functions_of_steps(subject: Subject) -> list[FunctionType]:
    """The functions and methods that are called as steps inside the subject, but for its helpers; looked for once."""
    if subject.steps is None:
        found = [g for call in calls_in(subject) for g in functions_of_call(call)]
        subject.steps = [g for g in dict.fromkeys(found) if g not in subject.helpers]
    return subject.steps


def functions_of_call(call: Call) -> list[FunctionType]:
    """The functions of the call of a step: its own, or the two of a pair, or an object's forward and backward"""
    owner = call.f if inspect.isclass(call.f) else type(call.f)
    calls = ["__call__"] * (backward_of(owner) is not None)
    methods = [getattr(owner, name, None) for name in (*FORWARD, *calls, *BACKWARD)]
    parts = call.f if isinstance(call.f, tuple) else (call.f, *methods)
    return [inspect.unwrap(g) for g in (getattr(part, "__func__", part) for part in parts) if inspect.isfunction(g)]


def named_in(space: dict[str, Any], name: str) -> Any:
    """What a dotted name, "Affine.backward", stands for in a module's globals, or None"""
    found = space
    for step in name.split("."):
        found = found.get(step) if isinstance(found, dict) else getattr(found, step, None)
    return found


def _functions_inside(function):
    """The functions that are defined inside a function, by `def`, which cannot be called from here"""
    codes = [code for code in codes_inside(function.__code__)[1:] if not code.co_name.startswith("<")]
    return [_empty(code, function.__globals__) for code in codes]


def _empty(code, space):
    """A function of this code, with nothing in its cells"""
    return FunctionType(code, space, code.co_name, None, tuple(CellType() for _ in code.co_freevars))


def _run_back(evidence, both):
    """{code: globals} of the learner's functions that run while one backward does

    both: the forward goes back, too
    """
    forward, back = _run(evidence)
    return forward | back if both else back


def run_forward(evidence: Evidence) -> dict[CodeType, dict[str, Any]]:
    """{code: globals} of the learner's functions that run while the forward does"""
    return _run(evidence)[0]


def _run(evidence):
    """`run_forward`, and the same of the backward; looked for once. Empty where one fails"""
    if evidence.run is None:
        evidence.back_to_the_point()
        forward, back = {}, {}
        with contextlib.suppress(*FAILURES):
            with _seeing(forward):
                _, backward = evidence.subject.forward()
            with _seeing(seen := {}):
                backward(evidence.another_dy)
            back = seen
        evidence.run = forward, back
        evidence.back_to_the_point()
    return evidence.run


@contextlib.contextmanager
def _seeing(found):
    """Inside the block, `found` gets {code: globals} of the learner's functions that are called"""
    before = sys.gettrace()

    def see(frame, event, _):
        code = frame.f_code
        if event == "call" and is_their_file(code.co_filename) and code.co_name not in COMPREHENSIONS:
            found[code] = frame.f_globals

    sys.settrace(see)
    try:
        yield
    finally:
        sys.settrace(before)


def _around(function, forward):
    """The function whose code has this function's in it: the forward, or one that can be found by its name."""
    name, *_ = function.__qualname__.split(".<locals>")
    for g in (forward, named_in(function.__globals__, name)):
        if inspect.isfunction(g) and g is not function and function.__code__ in codes_inside(g.__code__)[1:]:
            return g
    return function


@contextlib.contextmanager
def following(code: CodeType, see: Callable[[FrameType, str], None], lines: bool = True) -> Iterator[None]:
    """Inside the block, see(frame, event) is called for each line that this code runs, and when it returns.

    lines: with False only when it returns, which in a function with loops is much faster
    """
    before = sys.gettrace()

    def follow(frame, event, _):
        if frame.f_code is not code:
            return None
        frame.f_trace_lines = lines
        see(frame, event)
        return follow

    sys.settrace(follow)
    try:
        yield
    finally:
        sys.settrace(before)


def locals_at_the_end(evidence: Evidence, code: CodeType) -> dict[str, Any]:
    """{name: value} of what is local to this code when it returns, in one run, forward and back, on copies."""
    found = {}
    evidence.back_to_the_point()

    def see(frame, event):
        if event in ("return", "exception"):
            found.update(frame.f_locals)

    with contextlib.suppress(*FAILURES), following(code, see, lines=False):
        _, backward = evidence.subject.forward()
        backward(evidence.another_dy)
    evidence.back_to_the_point()
    return found
