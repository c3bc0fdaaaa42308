"""Record a computation line by line: which lines ran, in which calls, and what each of them made.

    store = Store()
    with Recorder(store, follows).on() as recorder:
        loss, backward = model.loss(batch)
        recorder.begin_backward()
        backward()
    for line in recorder.lines:
        print(line.frame.sheet.title, line.first, line.made)

Python itself reports each line before it runs (`sys.settrace`). When it reports the next one, or the function returns,
the names that the line assigns to are looked up in the function's own variables. So what is recorded is what ran.
"""

import ast
import inspect
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FrameType
from typing import Any, Self

from mini_tf.explore.arrays import Reference, Store
from mini_tf.explore.evaluating import is_array
from mini_tf.explore.parts import PartFinder, Parts
from mini_tf.explore.sheets import Sheet, WrittenCode, written_code
from mini_tf.layers import Layer, Parameter

import numpy as np

NOTHING = object()
COMPOUND = ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Match
WRITING = ast.Call, ast.Subscript, ast.AugAssign         # statements with one of these may write into any array
MOST_COMPARED = 1_000_000                                # entries of an array that is looked at again after each line
FORWARD, BACKWARD = ("forward", "fwd", "__call__"), ("backward", "back", "backprop", "bwd")
ASSIGNMENTS = ast.Assign, ast.AnnAssign, ast.AugAssign

Named = tuple[str, Reference]
Made = tuple[str, Reference, Parts | None]


@dataclass(eq=False)
class Frame:
    """One call of a function that is followed."""

    number: int
    written: WrittenCode
    parent: "Frame | None"           # the call of the function that called it
    line: int                        # the parent's line that did; 0 without a parent
    is_backward: bool                # it ran after the forward had ended
    owner: Any                       # `self`, of a method
    frame: FrameType | None = None   # Python's frame, while it runs
    maker: "Frame | None" = None     # the call in which the function was defined; of a method backward, of its forward
    arguments: list[Named] = field(default_factory=list)
    own: list[Named] = field(default_factory=list)       # of its owner what its code reads and never assigns: self.W
    variables: dict[str, Any] = field(default_factory=dict)          # {name: value} when it ended
    error: str = ""                  # what it raised, or let through
    run_inside: set[Any] = field(default_factory=set)    # keys of the functions defined in it that have run
    calls: list[tuple["Frame", Any]] = field(default_factory=list)   # (call, what it returned) of the line that runs
    returned: set[CodeType] = field(default_factory=set)             # codes of the functions that it returned
    latest: dict[str, Reference] = field(default_factory=dict)       # of what its lines have made
    running: tuple[Any, ...] = ()    # the statements of the line that runs
    before: dict[str, Any] = field(default_factory=dict)             # {name: value} before it

    @property
    def sheet(self) -> Sheet:
        return self.written.sheet


@dataclass(eq=False)
class Line:
    """A statement that ran: its lines in the file, and [(name, reference, parts or None)] of what it made."""

    frame: Frame
    first: int
    last: int
    made: list[Made]
    error: str = ""

    @property
    def is_needed(self) -> bool:
        """It made an array, or failed."""
        return bool(self.error) or any(isinstance(ref, int) for _, ref, _ in self.made)


class Recorder:
    """Follows the functions for which follows(code) is true.

    store      turns values into references that a page can hold: store.refer(value), None for what cannot be shown
    partners   {name of a function: (names of the forwards that it is the backward of,)}
    frames     every call, in the order in which they began
    error      what the computation raised, if it did
    lines      every statement that made something, in the order in which they ended
    """

    def __init__(
        self, store: Store, follows: Callable[[CodeType], bool], with_parts: bool = True,
        partners: dict[str, tuple[str, ...]] | None = None,
    ):  # fmt: skip
        self.store, self.follows, self.with_parts = store, follows, with_parts
        self.frames: list[Frame] = []
        self.lines: list[Line] = []
        self.open: list[Frame] = []                      # the calls that have not ended, the innermost last
        self.is_backward, self.partners = False, partners or {}
        self.error: Exception | None = None
        self.calls_of: dict[Any, list[Frame]] = {}       # of the function with that key of a WrittenCode

    @contextmanager
    def on(self) -> Iterator[Self]:
        """Inside the block, this thread is followed."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield self
        finally:
            sys.settrace(before)

    def begin_backward(self) -> None:
        """From now on, what runs belongs to the backward."""
        self.is_backward = True

    def _enter(self, frame, event, _):
        try:
            return self._entered(frame)
        except Exception:                                # what cannot be recorded must not stop the computation
            return None

    def _entered(self, frame):
        code = frame.f_code
        written = written_code(code) if self.follows(code) else None
        if written is None:
            return None
        caller = self.open[-1] if self.open else None
        variables = frame.f_locals
        names = inspect.getargs(code)
        names = [*names.args, *filter(None, names[1:])]
        call = Frame(
            len(self.frames), written, caller, caller.frame.f_lineno if caller else 0, self.is_backward,
            variables["self"] if "self" in names else None, frame, self._maker(written, variables),
        )  # fmt: skip
        call.arguments = [one for name in names for one in self._named(name, variables[name])]
        own = [(name, getattr(call.owner, "__dict__", {}).get(name[5:])) for name in sorted(written.sheet.own)]
        call.own = [(name, self.store.refer(value.data)) for name, value in own if isinstance(value, Parameter)]
        if not isinstance(call.owner, Layer):            # a learner's object keeps plain arrays
            call.own += [(name, self.store.refer(value)) for name, value in own if is_array(value)]
        self.calls_of.setdefault(written.key, []).append(call)
        self.frames.append(call)
        self.open.append(call)
        return partial(self._follow, call)

    def _follow(self, call, frame, event, value):
        try:
            if event == "line":
                self._line(call, frame)
            elif event == "exception" and not issubclass(value[0], (StopIteration, GeneratorExit)):
                call.error = f"{value[0].__name__}: {value[1]}"
            elif event == "return":
                self._return(call, frame, value)
        except Exception:
            call.running = ()
        return partial(self._follow, call)

    def _line(self, call, frame):
        statements = call.written.statements.get(frame.f_lineno, ())
        if statements and statements == call.running and frame.f_lasti not in call.written.beginnings:
            return                                       # Python has come back to a line of the same statement
        self._complete(call, frame)
        call.error = ""                                  # whatever was raised has been caught
        call.running, call.before, call.calls = statements, dict(frame.f_locals), []
        for statement in statements:
            if isinstance(statement, ast.AugAssign):     # it may write into the array
                call.before |= self._copies(statement.target, call.before)

    def _return(self, call, frame, value):
        self._complete(call, frame, value)
        call.variables, call.frame, call.running = dict(frame.f_locals), None, ()
        returned = value if isinstance(value, tuple) else (value,)
        call.returned = {one.__code__ for one in returned if inspect.isfunction(one)}
        self.open.remove(call)
        if self.open and call.parent is self.open[-1]:
            call.parent.calls.append((call, value))

    def _complete(self, call, frame, returned=NOTHING):
        """The running statements have ended: record what they made."""
        if not call.running:
            return
        first, last = call.running[0], call.running[-1]
        end = first.lineno if isinstance(first, COMPOUND) else last.end_lineno
        if call.error:
            self.lines.append(Line(call, first.lineno, end, [], call.error))
            return
        found, written_before = [], set()
        for statement in call.running:
            finder = self._finder(call, frame) if not written_before & _names_read(statement) else None
            found += self._made_by(call, statement, frame, returned, finder)
            written_before |= _names_written(statement)
        found += self._changed(call, frame, {name for name, _, _ in found})
        for name, reference, _ in found:
            call.latest[name] = reference
        if found:
            self.lines.append(Line(call, first.lineno, end, found))

    def _made_by(self, call, statement, frame, returned, finder):
        """[(name, reference, parts)] of what one statement has made"""
        if isinstance(statement, (ast.Return, ast.expr)):
            node = statement.value if isinstance(statement, ast.Return) else statement
            return [] if returned is NOTHING else self._returned(call, node, returned, finder)
        if isinstance(statement, ASSIGNMENTS):
            inside = [node.target.id for node in ast.walk(statement) if isinstance(node, ast.NamedExpr)]     # x := …
            before = [(*one, None) for name in inside for one in self._named(name, frame.f_locals.get(name, NOTHING))]
            return before + self._assigned(call, statement, frame, finder)
        if isinstance(statement, ast.FunctionDef):
            defined = frame.f_locals.get(statement.name)
            code = getattr(defined, "__code__", None)
            names = [name for name in getattr(code, "co_freevars", ()) if name != "self"]
            return [(statement.name, self.store.text(f"keeps {', '.join(names) or 'nothing'}"), None)]
        found = []
        for name in sorted(_names_written(statement)):   # of for, with, :=
            found += [(*one, None) for one in self._named(name, frame.f_locals.get(name, NOTHING))]
        return found

    def _changed(self, call, frame, known):
        """[(name, reference, None)] of other arrays that these statements have written into: np.add.at(dx, ids, dy)"""
        if not any(isinstance(node, WRITING) for statement in call.running for node in own_nodes(statement)):
            return []
        found = []
        for name, value in frame.f_locals.items():
            if name in known or not is_array(value) or np.ndim(value) == 0 or value.size > MOST_COMPARED:
                continue
            before = call.latest.get(name, dict(call.arguments).get(name))
            if isinstance(before, int) and (reference := self.store.refer(value)) != before:
                found.append((name, reference, None))
        return found

    def _assigned(self, call, statement, frame, finder):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        after, found = frame.f_locals, []
        chosen = finder.chosen(statement.value) if finder else statement.value
        for target in targets:
            for one, node in _pairs(target, chosen):
                name, value = _what_is_written(one, after)
                if value is NOTHING:
                    continue
                if _is_empty(node):                      # what stands in it is left over from before
                    found.append((name, self.store.text("empty, to be filled"), None))
                    continue
                if isinstance(statement, ast.AugAssign):
                    parts = finder.of_change(call.before, statement, name, value) if finder else None
                else:
                    whole = finder and node is not None and not isinstance(one, ast.Subscript)       # not of x[i] = …
                    overwritten = "." in name and name in ast.unparse(node)      # self.W = self.W - …: it is gone
                    parts = finder.of(node, value) if whole and not overwritten else None
                found += [(n, ref, parts if n == name else None) for n, ref in self._named(name, value)]
        return found

    def _returned(self, call, node, value, finder):
        """What a function returns: for y, backward the y; of several gradients each."""
        if node is None or value is None:
            return []
        elements = [(node, value)]
        if isinstance(value, tuple):
            nodes = node.elts if isinstance(node, ast.Tuple) and len(node.elts) == len(value) else [None] * len(value)
            elements = list(zip(nodes, value))
        names = self._names_of_returned(call, elements)
        found = []
        for (part, one), name in zip(elements, names):
            parts = finder.of(part, one) if finder and part is not None and not isinstance(part, ast.Name) else None
            found += [(n, ref, parts if n == name else None) for n, ref in self._named(name, one) if not callable(one)]
        return found

    def _names_of_returned(self, call, elements):
        """Names for what is returned: its own; of gradients d and the argument's; y, where the backward takes dy."""
        arguments, names = self._arguments_of_forward(call, len(elements)), []
        backwards = [one.__code__ for _, one in elements if inspect.isfunction(one)]
        upstream = [name for code in backwards for name in inspect.getargs(code).args[:1]]
        result = next((name[1:] for name in upstream if re.fullmatch("d.+", name)), "returned")
        for place, (part, one) in enumerate(elements):
            if isinstance(part, ast.Name):
                names.append(part.id)
            elif place < len(arguments):
                names.append(f"d{arguments[place]}")
            else:
                shown = sum(not callable(one) for _, one in elements)
                names.append(result if shown == 1 else f"returned {place + 1}")
        return names

    def _arguments_of_forward(self, call, count):
        """What the gradients that a backward returns belong to: the forward's floating arrays, or all its arguments"""
        forward = call.maker
        if forward is None or not call.is_backward:
            return []
        is_its_backward = call.written.code in forward.returned or call.written.name in ("<lambda>", *BACKWARD)
        if not (is_its_backward or call.written.name in self.partners):
            return []
        names = [name for name in inspect.getargs(forward.written.code).args if name != "self"]
        arguments = dict(forward.arguments)
        floats = [name for name in names if self.store.is_float_array(arguments.get(name))]
        return floats if len(floats) == count else names

    def _named(self, name, value):
        """[(name, reference)] of a value, or of what a tuple, list or dict has in it"""
        reference = self.store.refer(value)
        if reference is not None:
            return [(name, reference)]
        if isinstance(value, (tuple, list)) and len(value) <= 12:
            pairs = [(f"{name}[{i}]", one) for i, one in enumerate(value)]
        elif isinstance(value, dict) and len(value) <= 24:
            pairs = [(f"{name}[{key!r}]", one) for key, one in value.items()]
        else:
            return []
        return [(n, ref) for n, one in pairs if (ref := self.store.refer(one)) is not None]

    def _finder(self, call, frame):
        if not self.with_parts:
            return None
        return PartFinder(self.store, call.written, ChainMap(call.before, frame.f_globals), call.calls)

    @staticmethod
    def _copies(target, variables):
        name = target.id if isinstance(target, ast.Name) else getattr(getattr(target, "value", None), "id", None)
        value = variables.get(name)
        return {name: value.copy()} if is_array(value) else {}

    def _maker(self, written, variables):
        """The Frame of the call in which this function was defined: its variables are those that the function keeps."""
        if written.outer is None:
            return self._forward_of(written, variables)
        found = []
        for call in reversed(self.calls_of.get(written.outer, ())):
            known = call.frame.f_locals if call.frame is not None else call.variables
            if all(known.get(name, NOTHING) is variables.get(name, NOTHING) for name in written.code.co_freevars):
                found.append(call)
        # A function that keeps nothing may belong to any of these calls: backwards run in reverse order, each once.
        found.sort(key=lambda call: call.frame is None)  # calls that still run come first
        call = next((call for call in found if written.key not in call.run_inside), found[0] if found else None)
        if call is not None:
            call.run_inside.add(written.key)
        return call

    def _forward_of(self, written, variables):
        """The last call of the forward that a method backward, or a function affine_backward, belongs to; or None"""
        if not self.is_backward or written.name not in (*BACKWARD, *self.partners):
            return None
        names = self.partners.get(written.name, FORWARD)
        kind = type(variables.get("self"))               # the checker calls copies of a learner's object
        same = (call for call in reversed(self.frames) if call.written.name in names and type(call.owner) is kind)
        return next(same, None)


def _pairs(target, value):
    """[(target, its own expression or None)] of an assignment, whose two sides may be tuples"""
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
    pairs = zip(target.elts, values or [None] * len(target.elts))
    return [pair for one, node in pairs for pair in _pairs(one.value if isinstance(one, ast.Starred) else one, node)]


def _is_empty(node):
    """True for the expression np.empty(…), and the like"""
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("empty", "empty_like")


def _what_is_written(target, variables):
    """(name, value) of what an assignment to the target has changed: of x[i] all of x"""
    if isinstance(target, ast.Name):
        return target.id, variables.get(target.id, NOTHING)
    if isinstance(target, ast.Subscript):
        return _what_is_written(target.value, variables)
    if isinstance(target, ast.Attribute):
        _, owner = _what_is_written(target.value, variables)
        return ast.unparse(target), getattr(owner, target.attr, NOTHING)
    return "", NOTHING


def own_nodes(statement: ast.AST) -> list[ast.AST]:
    """The nodes of a statement; of a compound statement, the nodes of its first line"""
    if isinstance(statement, COMPOUND):
        parts = [getattr(statement, name, None) for name in ("target", "iter", "test", "subject")]
        parts += [one for item in getattr(statement, "items", []) for one in (item.context_expr, item.optional_vars)]
        return [node for part in parts if part is not None for node in ast.walk(part)]
    return list(ast.walk(statement))


def _names_written(statement):
    nodes = own_nodes(statement)
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _names_read(statement):
    return {node.id for node in own_nodes(statement) if isinstance(node, ast.Name)}
