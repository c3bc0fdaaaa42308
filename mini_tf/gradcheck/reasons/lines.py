"""Which lines of a backward can be wrong?  Those that wrong gradients depend on, and right ones do not.

The source of the backward is read: a line that assigns to a name feeds everything computed from that name. Lines that
do not run on these inputs are left out.
"""

import ast
import sys

from mini_tf.errors import UserError
from mini_tf.gradcheck.planting.editing import function_of, source_of
from mini_tf.trace import place

import numpy as np


def suspects(evidence):
    """(["ops/normalization.py:26  dx = r * (…)", …], True): the lines that feed a wrong gradient and no right one.

    If there is no such line: all lines that feed a wrong one, and False. No lines if there is no source.
    """
    try:
        function = function_of(evidence.backward)
        text, node = source_of(function)
    except UserError:
        return [], False
    if not isinstance(node, ast.FunctionDef):
        return [], False
    feeds, path, file_lines = _feeds(node, evidence.subject.receivers), function.__code__.co_filename, text.split("\n")
    wrong = set().union(*(feeds[name] for name in evidence.wrong if name in feeds))
    sharp = wrong - set().union(*(feeds[name] for name in evidence.right if name in feeds))
    ran = _ran(evidence, function.__code__)
    shown = [(number, code) for number, code in sorted(sharp or wrong) if not ran or number in ran]
    longer = [(number, code) for number, code in shown if not code.strip().isidentifier()]   # `dx` alone says little
    if not longer:                                       # only names are returned: say which of them is wrong
        places = [(number, len(code) - len(code.rstrip()) + 1) for number, code in shown]
        longer = [(n, f"{file_lines[n - 1].strip()}  (number {which} of what it returns)") for n, which in places]
    return [f"{place(path, number)}  {code.rstrip()}" for number, code in longer], bool(sharp)


def _ran(evidence, code):
    """The numbers of the lines of this code that run in one backward; empty if that cannot be followed."""
    ran, before = set(), sys.gettrace()

    def follow(frame, event, argument):
        if frame.f_code is code:
            ran.add(frame.f_lineno)
            return follow
        return None

    try:
        _, backward = evidence.subject.forward()
        sys.settrace(follow)
        backward(np.copy(evidence.dy) if np.ndim(evidence.dy) else evidence.dy)
    except Exception:
        return set()
    finally:
        sys.settrace(before)
    return ran


def _feeds(function, receivers):
    """{receiver: {(line number, code)}} of the lines that each gradient comes from, with its part of the return line.

    receivers: count → the names that so many returned gradients are for
    """
    sources = {}                                         # name -> what it comes from
    returned = {}
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    statements.sort(key=lambda node: node.lineno)
    for again in (False, True):                          # twice: in a loop, a later line feeds an earlier one
        for node in statements:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                lines = _own(node) | _lines_of(node.value, sources)
                for target in targets:
                    whole = isinstance(target, (ast.Name, ast.Tuple)) and not isinstance(node, ast.AugAssign)
                    for name in _names(target, ast.Store) or _names(target)[:1]:
                        sources[name] = lines if whole and not again else sources.get(name, set()) | lines
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                lines = _own(node) | _lines_of(node.value, sources)
                call = node.value
                if isinstance(call.func, ast.Attribute) and call.func.attr == "accumulate":
                    owner = ast.unparse(call.func.value).split(".")[-1]
                    returned[owner] = returned.get(owner, set()) | lines
                elif call.args and isinstance(call.args[0], ast.Name):       # scatter_add(dtable, …) changes its first
                    sources[call.args[0].id] = sources.get(call.args[0].id, set()) | lines
            elif isinstance(node, ast.Return) and node.value is not None:
                values = _returned(node.value)
                for which, (name, value) in enumerate(zip(receivers(len(values)), values)):
                    own = {(number, code + " " * which) for number, code in _own(value)}          # a, a: two places
                    returned[name] = returned.get(name, set()) | own | _lines_of(value, sources)
    return returned


def _returned(value):
    """The returned expressions, one for each receiver."""
    if isinstance(value, ast.IfExp):
        return _returned(value.body)
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _own(node):
    return {(node.lineno, " ".join(ast.unparse(node).split()))}


def _lines_of(value, sources):
    return set().union(*(sources.get(name, set()) for name in _names(value)))


def _names(node, context=None):
    found = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [n.id for n in found if context is None or isinstance(n.ctx, context)]
