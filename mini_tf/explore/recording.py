"""Record a computation line by line: which lines ran, in which calls, and what each of them made.

    store = Store()
    with Recorder(store, follows).on() as recorder:
        loss, backward = model.loss(batch)
        recorder.goes_back()
        backward()
    for line in recorder.lines:
        print(line.frame.sheet.title, line.first, line.made)

Python itself reports each line before it runs (`sys.settrace`). When the next one is reported, or the function returns,
the names that the line assigns to are looked up in the function's own variables. So what is recorded is what ran.
"""

import ast
import inspect
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from mini_tf.explore.parts import PartFinder
from mini_tf.explore.sheets import written_code

NOTHING = object()
ASSIGNMENTS = ast.Assign, ast.AnnAssign, ast.AugAssign


@dataclass(eq=False)
class Frame:
    """One call of a function that is followed."""

    number: int
    written: object                  # its WrittenCode
    parent: object                   # the Frame that called it, or None
    line: int                        # the parent's line that did; 0 without a parent
    is_backward: bool                # it ran after the forward had ended
    owner: object                    # `self`, of a method
    frame: object = None             # Python's frame, while it runs
    maker: object = None             # of a function defined in another's call: the Frame of that call
    arguments: list = field(default_factory=list)        # [(name, reference)]
    variables: dict = field(default_factory=dict)        # {name: value} when it ended
    space: dict = field(default_factory=dict, repr=False)            # the function's globals
    error: str = ""                  # what it raised, or let through
    gone_back: set = field(default_factory=set)          # keys of the functions defined in it that have run
    calls: list = field(default_factory=list)            # [(Frame, what it returned)] of the line that runs
    running: object = None           # the statement that runs
    before: dict = field(default_factory=dict)           # {name: value} before it

    @property
    def sheet(self):
        return self.written.sheet


@dataclass(eq=False)
class Line:
    """A statement that ran: its lines in the file, and [(name, reference, parts or None)] of what it made."""

    frame: Frame
    first: int
    last: int
    made: list
    error: str = ""


class Recorder:
    """Follows the functions for which follows(code) is true.

    store      turns values into references that a page can hold: store.refer(value), None for what cannot be shown
    frames     every call, in the order in which they began
    lines      every statement that made something, in the order in which they ended
    """

    def __init__(self, store, follows, with_parts=True):
        self.store, self.follows, self.with_parts = store, follows, with_parts
        self.frames, self.lines, self.open = [], [], []
        self.is_backward = False
        self.calls_of = {}                               # a WrittenCode's key -> the Frames that ran it

    @contextmanager
    def on(self):
        """Inside the block, this thread is followed."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield self
        finally:
            sys.settrace(before)

    def goes_back(self):
        """From now on, what runs belongs to the backward."""
        self.is_backward = True

    def _enter(self, frame, event, _):
        code = frame.f_code
        written = written_code(code) if self.follows(code) else None
        if written is None:
            return None
        caller = self.open[-1] if self.open else None
        variables = frame.f_locals
        names = inspect.getargs(code)
        names = [*names.args, *filter(None, names[1:])]
        made = Frame(
            len(self.frames), written, caller, caller.frame.f_lineno if caller else 0, self.is_backward,
            variables["self"] if "self" in names else None, frame, self._maker(written, variables),
        )  # fmt: skip
        made.space = frame.f_globals
        made.arguments = [one for name in names for one in self._named(name, variables[name])]
        self.calls_of.setdefault(written.key, []).append(made)
        self.frames.append(made)
        self.open.append(made)
        return partial(self._follow, made)

    def _follow(self, made, frame, event, value):
        if event == "line":
            statement = made.written.statement_at(frame.f_lineno)
            if statement is made.running and statement is not None and frame.f_lineno != statement.lineno:
                return                              # another line of the same statement
            made.error = ""                              # whatever was raised has been caught
            self._complete(made, frame)
            made.running, made.before, made.calls = statement, dict(frame.f_locals), []
            if isinstance(statement, ast.AugAssign):     # it may write into the array
                made.before |= self._copies(statement.target, made.before)
        elif event == "exception":
            made.error = f"{value[0].__name__}: {value[1]}"
        elif event == "return":
            self._complete(made, frame, value)
            made.variables, made.frame, made.running = dict(frame.f_locals), None, None
            self.open.remove(made)
            if self.open and made.parent is self.open[-1]:
                made.parent.calls.append((made, value))
        return

    def _complete(self, made, frame, returned=NOTHING):
        """The running statement has ended: record what it made."""
        statement = made.running
        if statement is None:
            return
        if made.error:
            self.lines.append(Line(made, statement.lineno, statement.end_lineno, [], made.error))
            return
        found = []
        if isinstance(statement, (ast.Return, ast.expr)):
            if returned is not NOTHING:
                node = statement.value if isinstance(statement, ast.Return) else statement
                found = self._returned(made, node, returned, frame)
        elif isinstance(statement, ASSIGNMENTS):
            found = self._assigned(made, statement, frame)
        elif isinstance(statement, ast.FunctionDef):
            kept = [name for name in frame.f_locals[statement.name].__code__.co_freevars if name != "self"]
            found = [(statement.name, self.store.text(f"keeps {', '.join(kept)}" if kept else "keeps nothing"), None)]
        if found:
            last = statement.lineno if isinstance(statement, ast.FunctionDef) else statement.end_lineno
            self.lines.append(Line(made, statement.lineno, last, found))

    def _assigned(self, made, statement, frame):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        after, found = frame.f_locals, []
        finder = self._finder(made, frame)
        for target in targets:
            for one, node in _pairs(target, statement.value):
                name, value = _what_is_written(one, after)
                if value is NOTHING:
                    continue
                if isinstance(statement, ast.AugAssign):
                    parts = finder.of_change(made.before, statement, name, value) if finder else None
                else:
                    whole = finder and node is not None and isinstance(one, ast.Name)        # not of x[i] = …
                    parts = finder.of(node, value) if whole else None
                found += [(n, ref, parts if n == name else None) for n, ref in self._named(name, value)]
        return found

    def _returned(self, made, node, value, frame):
        """What a function returns: for y, backward the y; of several gradients each."""
        if node is None or value is None:
            return []
        finder, elements = self._finder(made, frame), [(node, value)]
        if isinstance(value, tuple):
            nodes = node.elts if isinstance(node, ast.Tuple) and len(node.elts) == len(value) else [None] * len(value)
            elements = list(zip(nodes, value))
        names = self._names_of_returned(made, elements)
        found = []
        for (part, one), name in zip(elements, names):
            parts = finder.of(part, one) if finder and part is not None and not isinstance(part, ast.Name) else None
            found += [(n, ref, parts if n == name else None) for n, ref in self._named(name, one) if not callable(one)]
        return found

    def _names_of_returned(self, made, elements):
        """Names for what is returned: its own, or of gradients d and the name of the argument."""
        arguments = []
        if made.maker is not None:
            arguments = [name for name in inspect.getargs(made.maker.written.code).args if name != "self"]
        names = []
        for place, (part, one) in enumerate(elements):
            if isinstance(part, ast.Name):
                names.append(part.id)
            elif made.is_backward and place < len(arguments):
                names.append(f"d{arguments[place]}")
            else:
                shown = sum(not callable(one) for _, one in elements)
                names.append("returned" if shown == 1 else f"returned {place + 1}")
        return names

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

    def _finder(self, made, frame):
        if not self.with_parts:
            return None
        return PartFinder(self.store, made.written, made.before, frame.f_globals, made.calls)

    @staticmethod
    def _copies(target, variables):
        name = target.id if isinstance(target, ast.Name) else getattr(getattr(target, "value", None), "id", None)
        value = variables.get(name)
        return {name: value.copy()} if hasattr(value, "dtype") and hasattr(value, "copy") else {}

    def _maker(self, written, variables):
        """The Frame of the call in which this function was defined: its variables are those that the function keeps."""
        found = []
        for made in reversed(self.calls_of.get(written.outer, ())):
            known = made.frame.f_locals if made.frame is not None else made.variables
            if all(known.get(name, NOTHING) is variables.get(name, NOTHING) for name in written.code.co_freevars):
                found.append(made)
        # One that keeps nothing may be of any of these calls: backwards run in reverse order, each once.
        made = next((made for made in found if written.key not in made.gone_back), found[0] if found else None)
        if made is not None:
            made.gone_back.add(written.key)
        return made


def _pairs(target, value):
    """[(target, its own expression or None)] of an assignment, whose two sides may be tuples"""
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    values = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
    pairs = zip(target.elts, values or [None] * len(target.elts))
    return [pair for one, node in pairs for pair in _pairs(one.value if isinstance(one, ast.Starred) else one, node)]


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
