"""Which lines of a backward can be to blame?  Those that wrong gradients come from, and right ones do not.

The source of the backward is read, not run: a line that assigns to a name feeds all that is computed from that name.
"""

import ast
import inspect
import textwrap

from mini_tf.trace import place


def suspects(backward, wrong, right, receivers):
    """(["ops/normalization.py:26  dx = r * (…)", …], True): the lines that feed all wrong gradients and no right one.

    wrong, right    names of tensors whose gradients are wrong and right
    receivers       lists of the names that returned gradients can be for, in order; the one of fitting length is. A
                    parameter W is found by its `….W.accumulate(dW)`

    Where every line feeds a right one too, those that feed all wrong ones, and False. No lines where there is no
    source.
    """
    try:
        function = inspect.unwrap(backward)
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return [], False
    body = next((node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))), None)
    if not isinstance(body, ast.FunctionDef):
        return [], False
    feeds = _feeds(body, receivers)
    wrong_feeds = [feeds[name] for name in wrong if name in feeds]
    if not wrong_feeds:
        return [], False
    common = set.intersection(*wrong_feeds)
    sharp = common - set().union(*(feeds[name] for name in right if name in feeds))
    path = inspect.getsourcefile(function)
    return [f"{place(path, first + number - 1)}  {text}" for number, text in sorted(sharp or common)], bool(sharp)


def _feeds(function, receivers):
    """{receiver: {(number, text) of the lines, or of its part of the last line, that its gradient comes from}}"""
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
                names = next((names for names in receivers if len(names) == len(values)), [])
                for name, value in zip(names, values):
                    own = set() if isinstance(value, ast.Name) else _own(value)
                    returned[name] = returned.get(name, set()) | own | _lines_of(value, sources)
    return returned


def _returned(value):
    """The expressions that are returned, one for each receiver."""
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
