"""Which lines of a backward can be wrong?  Those that wrong gradients depend on, and right ones do not.

The source of the backward is read: a line that assigns to a name feeds everything computed from that name. Lines that
do not run on these inputs are left out.
"""

import ast
import inspect
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from mini_tf.errors import UserError
from mini_tf.gradcheck.failures import FAILURES
from mini_tf.gradcheck.measuring.brought import WithGradients, backward_of
from mini_tf.gradcheck.measuring.evidence import Evidence
from mini_tf.gradcheck.measuring.naming import in_this_case, is_gradient_name
from mini_tf.gradcheck.measuring.stored import BACKWARD, list_of, members
from mini_tf.gradcheck.measuring.subject import upstream_name
from mini_tf.gradcheck.planting.editing import closure_of, function_of, source_of
from mini_tf.gradcheck.planting.mutations import own_nodes, returned_values
from mini_tf.gradcheck.reasons.feeding import fed_by_lines, of_wrong_ones
from mini_tf.gradcheck.reasons.theirs import calls_in, following, locals_at_the_end, parts_of, written_forward
from mini_tf.gradcheck.verdicts import listed
from mini_tf.trace import place

import numpy as np

SHORT = ast.Name, ast.Attribute, ast.Constant, ast.Subscript         # which compute nothing
EMPTY = MappingProxyType({})
VARIABLE = re.compile(r"[A-Za-z_]\w*\b(?!\()")
LOSS = re.compile(r"loss|cost|err|nll|L$|J$")
NOTHING = re.compile(r"\] = 0(\.0*)?$")                  # dW[...] = 0, from where it adds up
FEW = 3                  # lines: of so many, a bare `return dx` is shown, too


def suspects(
    evidence: Evidence, misfits: Sequence[str] = (), right_after: Mapping[str, Collection[int]] = EMPTY
) -> tuple[list[str], bool]:
    """(["ops/normalization.py:26  dx = r * (…)", …], True): the lines that feed a wrong gradient and no right one.

    If there is no such line: all lines that feed a wrong one, and False. No lines if there is no source.
    misfits       names of gradients that could not be compared, such as those of a wrong shape
    right_after   {name: numbers of lines} of the backward's variables: see `inside.measured_inside`. What a line
                  computes that is right, is right; the mistake is behind it
    """
    function, text, node = _source(evidence.backward)
    if function is None:
        return [], False
    ran = _ran(evidence, function.__code__)
    path, file_lines = function.__code__.co_filename, text.split("\n")
    feeds, of_right, _ = _feeds(node, evidence.subject, ran, right_after)
    behind, *_ = _feeds(node, evidence.subject, ran, right_after, behind=True)
    wrong = set().union(*(behind[name] for name in (*evidence.wrong, *misfits) if name in behind))
    right = [name for name in evidence.right if name in feeds and not evidence.is_zero(name)]
    sharp = wrong - of_right.union(*(feeds[name] for name in right))
    if function is getattr(evidence.subject.f, "written_forward", None):             # what y comes from is what y is
        sharp -= feeds.get("", set())
    shown = [(number, code) for number, code in sorted(sharp or wrong) if not ran or number in ran]
    few = len({number for number, _ in shown}) <= FEW
    longer = [(n, code) for n, code in shown if not code.strip().isidentifier()]     # `dx` alone says little
    if longer and few:                                   # of a few lines, the one that returns is worth a look
        returning = {n: file_lines[n - 1].strip() for n, code in shown if code.strip().isidentifier()}
        longer = sorted({*longer, *returning.items()})
    longer = [(path, *line) for line in longer] + _inside_helpers(evidence, longer)
    longer += _stored_by_helpers(evidence, [name for name in evidence.wrong if name not in feeds])
    if sharp:
        longer += _kept_for(evidence, node, shown, {line for name in right for line in feeds[name]})
    fed = fed_by_lines(evidence)
    measured = of_wrong_ones(fed, {*evidence.wrong, *misfits}, right)
    if measured:
        inner = {name: lines for name, lines in right_after.items()
                 if not any(is_gradient_name(name, _last(tensor)) for tensor in evidence.slopes)}  # fmt: skip
        _, of_right, _ = _feeds(node, evidence.subject, ran, inner)
        longer = [line for line in longer if line[:2] not in fed or line[:2] in measured]
        others = measured - {line[:2] for line in longer} - {(path, number) for number, _ in of_right}
        longer = [line for line in longer if not (others and NOTHING.search(line[2]))]
        longer += [(*line, fed[line][0]) for line in sorted(others)]
    if not longer:                                       # only names are returned: say which of them is wrong
        places = [(number, len(code) - len(code.rstrip()) + 1) for number, code in shown]
        longer = [(path, n, f"{file_lines[n - 1].strip()}  (number {k} of what it returns)") for n, k in places]
    lines = [f"{place(path, number)}  {code.rstrip()}" for path, number, code in longer]
    return list(dict.fromkeys(lines)), bool(sharp)       # of dx, dW = f(…) once


def lines_of(evidence: Evidence, name: str, right_after: Mapping[str, Collection[int]]) -> set[int]:
    """The numbers of the lines that a variable of the backward comes from, behind what is right; helpers included."""
    _, _, node = _source(evidence.backward)
    if node is None:
        return set()
    *_, sources = _feeds(node, evidence.subject, (), right_after, behind=True)
    lines = sorted(sources.get(name, ()))
    return {number for *_, number, _ in lines + _inside_helpers(evidence, lines)}


def lines_of_all(evidence: Evidence, right_after: Mapping[str, Collection[int]]) -> set[int]:
    """The numbers of the lines that every wrong gradient comes from: one mistake is in one of these."""
    _, _, node = _source(evidence.backward)
    feeds = {} if node is None else _feeds(node, evidence.subject, (), right_after, behind=True)[0]
    lines = [sorted(feeds[name]) for name in evidence.wrong if name in feeds]
    numbers = [{number for *_, number, _ in some + _inside_helpers(evidence, some)} for some in lines]
    return set.intersection(*numbers) if numbers else set()


def unused(evidence: Evidence) -> list[str]:
    """["dmu is computed, and nothing uses it (ops/normalization.py:26)", …] of the backward, and what it calls"""
    found = []
    for part in parts_of(evidence):
        if not part.is_forward:
            with suppress(UserError):
                found += _unused_in(part.function, source_of(part.function)[1])
    return found


def _unused_in(function, node):
    read = set(_names(node, ast.Load)) | {name for one in ast.walk(node) if isinstance(one, (ast.Global, ast.Nonlocal))
                                          for name in one.names}  # fmt: skip
    made = {target.id: one.lineno for one in ast.walk(node) if isinstance(one, ast.Assign)
            for target in one.targets if isinstance(target, ast.Name) and not isinstance(one.value, SHORT)}  # fmt: skip
    path = function.__code__.co_filename
    return [f"{name} is computed, and nothing uses it ({place(path, line)})"
            for name, line in made.items() if name not in read and name != "_"]  # fmt: skip


def never_run(evidence: Evidence) -> list[str]:
    """["the backward of relu_forward (called at net.py:99) never runs", …] of the learner's steps"""
    calls = calls_in(evidence.subject)
    if all(call.ended is None for call in calls):        # nothing ran
        return []
    own = function_of(evidence.backward)                 # of a pair, which is not watched
    calls = [call for call in calls if call.backward and not call.is_going_back and call.backward is not own]
    found = []
    for name, line in dict.fromkeys((_name_of(call), call.line) for call in calls):      # of a loop once
        those = [call for call in calls if (_name_of(call), call.line) == (name, line)]
        forgotten = [call for call in those if call.ended is call.error is None]
        pairs = [(call.dy, call.output) for call in those if isinstance(call.dy, np.ndarray)]
        for_several = any(isinstance(y, np.ndarray) and dy.shape != y.shape for dy, y in pairs)
        if not forgotten or (len(forgotten) < len(those) and for_several):               # all of a loop at once
            continue
        part = f"does not run for {len(forgotten)} of these {len(those)} calls"
        how_often = "never runs" if len(forgotten) == len(those) else part
        found.append(f"the backward of {name} (called at {line}) {how_often}")
    return found


def calls_what_it_was_handed(evidence: Evidence) -> bool:
    """True if the backward calls what a list has, `for step in reversed(tape): step()`, or a function that its object
    was given, self.derivative(z), or sends to a generator.

    No list of its lines has what is wrong there.
    """
    _, node = source_of(function_of(evidence.backward))
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    sends = any(isinstance(f, ast.Attribute) and f.attr == "send" for f in calls)
    given = members(getattr(evidence.subject.f, "its_object", None))
    of_object = any(isinstance(f, ast.Attribute) and inspect.isfunction(given.get(f.attr)) for f in calls)
    return sends or of_object or any(part.is_handed for part in parts_of(evidence))


def _name_of(call):
    return getattr(call.f[0], "__name__", call.name) if isinstance(call.f, tuple) else call.name


def dropped(evidence: Evidence) -> list[str]:
    """["what self.emb.backward(…) gives back is not used (net.py:12)", …] of the backwards that it calls"""
    function, _, node = _source(evidence.backward)
    calls = [] if function is None else [
        one.value for one in ast.walk(node) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)
    ]  # fmt: skip
    calls = [call for call in calls if ast.unparse(call.func).endswith(BACKWARD)]
    known = locals_at_the_end(evidence, function.__code__) if calls else {}
    names = {call.lineno: ast.unparse(call.func) for call in calls if _gives_back(call.func, function, known)}
    path = "" if function is None else function.__code__.co_filename
    return [f"what {name}(…) gives back is not used ({place(path, line)})" for line, name in names.items()]


def _gives_back(called, function, known):
    """False if a function that is called in the backward returns nothing"""
    try:
        g = eval(ast.unparse(called), function.__globals__, known)
        _, node = source_of(function_of(g))
    except FAILURES:                                     # UserError, too: no source
        return True
    return any(isinstance(one, ast.Return) and one.value is not None for one in own_nodes(node, loops=True))


def shared_objects(evidence: Evidence) -> list[str]:
    """["self.act1 and self.act2 are the same object: …"] of objects that keep something for their backward"""
    names = {}
    for name, x in members(getattr(evidence.subject.f, "its_object", None)).items():
        several = {f"self.{name}[{k}]": part for k, part in enumerate(x)} if isinstance(x, (list, tuple)) else {}
        for said, part in (several or {f"self.{name}": x}).items():
            if backward_of(part) is not None and not inspect.isclass(part):
                names.setdefault(id(part), []).append(said)
    return [f"{listed(same)} are the same object: what the forward of one keeps for its backward, that of the other "
            "may overwrite; then each needs an object of its own" for same in names.values() if len(same) > 1]


def kept_and_changed(evidence: Evidence) -> list[str]:
    """["S is changed in place (attention.py:21) after it was kept: …"] of arrays that the forward appends to a list"""
    forward, _, node = _source(written_forward(evidence))
    if forward is None:
        return []
    own = list(own_nodes(node, loops=True))
    values, path = locals_at_the_end(evidence, forward.__code__), forward.__code__.co_filename
    changes = [one for one in own if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)]
    changed = {one.target.id: place(path, one.lineno) for one in changes}
    lists = {}                                           # name -> what the lists have that it is appended to
    for one in own:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "append":
            with suppress(*FAILURES):
                kept = eval(ast.unparse(one.func.value), forward.__globals__, values)
                for name in _names(one.args[0]):
                    lists.setdefault(name, []).extend(part for row in kept for part in list_of(row))
    return [
        f"{name} is changed in place ({where}), and kept in a list: every place of the list has the same array, as it "
        f"is at the end; {name} = {name} + … makes a new one"
        for name, where in changed.items()
        if isinstance(values.get(name), np.ndarray) and sum(x is values[name] for x in lists.get(name, ())) > 1
    ]  # fmt: skip


def _kept_for(evidence, node, shown, of_right):
    """[(file, line number, code)] of the forward: what it computes for the shown lines only, such as n = B·L.

    Not what y depends on, because y is taken as right.
    """
    forward, _, whole = _source(written_forward(evidence))
    if forward is None or whole is node:
        return []
    inside = {id(one) for one in ast.walk(node)}         # a backward in the forward, or beside it
    own = [one for one in ast.walk(whole) if id(one) not in inside]
    computed = [one for one in own if isinstance(one, (ast.Assign, ast.AugAssign))]
    kept = {id(n) for one in own if isinstance(one, (ast.Return, ast.Tuple, ast.Dict)) for n in ast.walk(one)}
    used = {_word(n) for n in own if isinstance(getattr(n, "ctx", None), ast.Load) and id(n) not in kept}
    read, right = ({name for _, code in lines for name in VARIABLE.findall(code)} for lines in (shown, of_right))
    targets = [(one, one.targets[0] if isinstance(one, ast.Assign) else one.target) for one in computed]
    found = [one for one, target in targets if {*_written_to(target), _word(target)} & (read - right - used)]
    found += [one for one in own if isinstance(one, (ast.Assign, ast.Return, ast.Expr)) and one not in found
              and _packs(one, _unpacked(node), read, own)]  # fmt: skip
    return [(forward.__code__.co_filename, one.lineno, _head(one)) for one in found]


def _word(node):
    """x of the name x, and of self.x; None of other nodes"""
    return getattr(node, "id", getattr(node, "attr", None))


def kept_by_the_forward(evidence: Evidence) -> set[int]:
    """The numbers of the forward's lines, without those of a backward inside it"""
    *_, forward = _source(written_forward(evidence))
    *_, backward = _source(evidence.backward)
    if forward is None or backward is None:
        return set()
    return {*range(forward.lineno, forward.end_lineno + 1)} - {*range(backward.lineno, backward.end_lineno + 1)}


def _unpacked(node):
    """([names] of what a backward unpacks, `x, s = cache`; [names] of what it takes from a list, `x, h = kept[t]`)"""
    pairs = [(one.targets[0], one.value) for one in ast.walk(node) if isinstance(one, ast.Assign)]
    pairs += [(one.target, None) for one in ast.walk(node) if isinstance(one, ast.For)]
    pairs = [(target.elts, x) for target, x in pairs if isinstance(target, ast.Tuple)]
    pairs = [([getattr(one, "id", "") for one in several], x) for several, x in pairs]
    listed = [names for names, x in pairs if x is None or isinstance(x, ast.Subscript) or _pops(x)]
    return [names for names, x in pairs if isinstance(x, (ast.Name, ast.Attribute))], listed


def _pops(value):
    return isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "pop"


def _packs(statement, unpacked, read, own):
    """True for a statement of the forward in which another array may be kept than the backward reads, (x, s, s).

    Not where the names are the same there, unless the forward has set them several times.
    """
    times = Counter(one.id for one in own if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    spread = isinstance(getattr(statement, "targets", [None])[0], ast.Tuple)         # a, b = c, d
    outer = statement.value if spread or isinstance(statement, ast.Return) else None             # return y, cache
    packed = [one for one in ast.walk(statement.value)
              if isinstance(one, ast.Tuple) and isinstance(one.ctx, ast.Load) and one is not outer]  # fmt: skip
    alike = [(one.elts, names) for one in packed for names in unpacked[isinstance(statement, ast.Expr)]]
    pairs = [pair for parts, names in alike if len(parts) == len(names) for pair in zip(parts, names)]
    return any(name in read and (ast.unparse(one) != name or times[name] > 1) for one, name in pairs)


def _source(f):
    """(the function behind f, the text of its file, its node in the syntax tree), or three times None"""
    try:
        function = function_of(f)
        return function, *source_of(function)
    except UserError:
        return None, None, None


def changed_in_place(evidence: Evidence) -> list[str]:
    """["dout is changed in place (my_ops.py:10: dx *= 2): make a copy first, dx = dout.copy()"], if a line does it"""
    function, _, node = _source(evidence.backward)
    if function is None:
        return []
    upstream = upstream_name(function)
    aliases = {upstream}                                 # names of the same array
    for one in sorted((n for n in ast.walk(node) if isinstance(n, ast.stmt)), key=lambda n: n.lineno):
        target = one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None)
        array = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(one, ast.AugAssign) or isinstance(target, ast.Subscript):
            if isinstance(array, ast.Name) and array.id in aliases:
                where = f"{place(function.__code__.co_filename, one.lineno)}: {_head(one)}"
                copied = f"{array.id} = {upstream}.copy()"
                return [f"{upstream} is changed in place ({where}): make a copy first, {copied}"]
        elif isinstance(one, ast.Assign) and isinstance(target, ast.Name):
            same = isinstance(one.value, ast.Name) and one.value.id in aliases
            aliases = aliases | {target.id} if same else aliases - {target.id}
    return []


def _inside_helpers(evidence, shown):
    """[(file, line number, code)] of the learner's helpers, which are no steps, that the shown lines call.

    Of a helper that gives back several gradients, as in dx, dW = back(dy), the lines that the shown ones come from.
    """
    parts = [part.function for part in parts_of(evidence) if not part.is_forward]
    waiting = {function: {function.__name__} for function in parts[1:]}
    for function in parts:                               # h_back, of h, h_back = tanh(a); slope, of slope = lambda …
        around = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        for name, g in [*around.items(), *closure_of(function).items()]:
            if inspect.isfunction(g) and g in waiting:
                waiting[g].add(name)
    found, codes = [], [code for _, code in shown]
    while waiting:
        read = {code: {*re.findall(r"(\w+)\(", code)} for code in codes}
        function = next((g for g, names in waiting.items() if any(names & some for some in read.values())), None)
        if function is None:
            break
        names = waiting.pop(function)
        with suppress(UserError):
            _, node = source_of(function)
            wanted = [_wanted(code) for code in codes if names & read[code]]
            lines = [_lines_of_result(node, evidence.subject, which) for which in wanted]
            lines = sorted(set().union(*lines)) or [(node.lineno, _head(node))]
            found += [(function.__code__.co_filename, *line) for line in lines]
            codes += [code for _, code in lines]
    return found


def _stored_by_helpers(evidence, names):
    """[(file, line number, code)] of methods that store these gradients, self.dW = …, and are called on the way back"""
    found = []
    for part in parts_of(evidence)[1:] if names else ():
        with suppress(UserError):
            feeds, *_ = _feeds(source_of(part.function)[1], evidence.subject)
            right = set().union(*(feeds[name] for name in evidence.right if name in feeds))
            wrong = set().union(*(feeds[name] for name in names if name in feeds))
            found += [(part.function.__code__.co_filename, *line) for line in sorted(wrong - right)]
    return found


def _wanted(code):
    """The number of the result that a line takes: 1 of dW in dx, dW = f(dy), which has a space behind it; else None"""
    with suppress(SyntaxError):
        statement = ast.parse(code.strip()).body[0]
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
            return len(code) - len(code.rstrip()) if isinstance(statement.value, ast.Call) else None
    return None


def _lines_of_result(node, subject, which):
    """{(line number, code)} that result number `which` of a helper comes from; all of them if that is None"""
    results = [value.elts for value in returned_values(node) if isinstance(value, ast.Tuple)]
    if which is not None and results and all(which < len(some) for some in results):
        *_, sources = _feeds(node, subject)
        of_results = [set() if isinstance(some[which], ast.Name) else _own(some[which]) for some in results]
        return set().union(*of_results, *(_lines_of(some[which], sources) for some in results))
    kept = ast.Assign, ast.AugAssign, ast.Return, ast.For
    return {(one.lineno, _head(one)) for one in ast.walk(node) if isinstance(one, kept)}


def _head(node):
    """A statement in a line; of a loop, its head."""
    return " ".join(ast.unparse(node).partition(":\n")[0].split())


def _ran(evidence, code):
    """The numbers of the lines of this code that run in one backward; empty if that cannot be followed."""
    ran = set()
    try:
        with following(code, lambda frame, _: ran.add(frame.f_lineno)):
            _, backward = evidence.subject.forward()     # a loss that comes with its gradients runs here
            backward(evidence.another_dy)
    except FAILURES:
        return set()
    return ran


def _feeds(function, subject, ran=(), right_after=EMPTY, behind=False):
    """({name: {(line number, code)}} of the lines that each gradient comes from, with its part of the return line;
    those that the right variables come from; {name: those that each variable comes from})

    behind: without what right variables come from, where that feeds nothing else
    """
    sources = {}                                         # name -> what it comes from
    returned, of_right = {}, set()
    declared = [one.names for one in ast.walk(function) if isinstance(one, (ast.Global, ast.Nonlocal))]
    elsewhere = {name for names in declared for name in names}
    loops = [one for one in ast.walk(function) if isinstance(one, (ast.For, ast.While))]
    looped = {id(one) for loop in loops for one in ast.walk(loop)}
    looped_over = {name: [one.id for one in ast.walk(loop.iter) if isinstance(one, ast.Name)]
                   for loop in loops if isinstance(loop, ast.For) for name in _names(loop.target)}  # fmt: skip
    run_over = {name: [one for one in ast.walk(loop.iter) if isinstance(one, ast.Attribute)]
                for loop in loops if isinstance(loop, ast.For) for name in _names(loop.target)}  # fmt: skip
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node is not function]
    if isinstance(function, ast.Lambda):
        statements = [ast.copy_location(ast.Return(function.body), function.body)]
    statements.sort(key=lambda node: node.lineno)

    under = {inside: {(one.lineno, _head(one))} for one in statements if isinstance(one, ast.If)
             for inside in ast.walk(one) if inside is not one and getattr(inside, "lineno", 0) in ran}  # fmt: skip

    def returns(name, lines):
        returned[name] = returned.get(name, set()) | lines

    for again in (False, True):                          # twice: in a loop, a later line feeds an earlier one
        for node in statements:
            for call in _backwards_called(node):         # what self.fc.backward(dz) keeps in self.fc
                lines = set().union(*(_lines_of(x, sources) for x in (call.func.value, *call.args)))
                for which, name in enumerate(_owned_by(call.func.value, subject, run_over)):
                    returns(name, _own(node, which) | lines)
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                pairs = [pair for target in targets for pair in pairs_of(target, node.value)]
                several = len(pairs) > len(targets)      # of a, b = c, d each has a line of its own
                fed = [(target, (_one_of(node, target, value) if several else _own(node, which))
                        | _lines_of(value, sources) | _lines_of_places(target, sources) | under.get(node, set()))
                       for pair in pairs for target, value, which in _one_by_one(*pair)]  # fmt: skip
                if isinstance(node.value, ast.Dict):     # grads = {"W": dW}
                    for key, value in zip(node.value.keys, node.value.values):
                        text = f"{ast.unparse(targets[0])}[{ast.unparse(key) if key else '**'}]"
                        sources[text] = _own(value) | _lines_of(value, sources)
                for target, lines in fed:
                    whole = isinstance(target, (ast.Name, ast.Tuple)) and not isinstance(node, ast.AugAssign)
                    for name in _written_to(target):
                        sources[name] = lines if whole and not again else sources.get(name, set()) | lines
                        if node.lineno in right_after.get(name, ()) and id(node) not in looped:
                            of_right |= set() if again else lines
                            sources[name] = set() if behind else sources[name]
                    for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                        said = getattr(part, "id", "")
                        kept = _named(said, subject, subject.params) if said in elsewhere else []
                        for name in kept or _stored_as(part, subject):
                            returns(name, lines)
                    if isinstance(node, ast.AugAssign):  # for total, part in zip(grads, g): total += part
                        for name in looped_over.get(getattr(target, "id", None), ()):
                            sources[name] = sources.get(name, set()) | lines
            elif isinstance(node, ast.For):              # what the loop runs over, and in which order
                lines = {(node.lineno, f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}")}
                for name in _names(node.target):
                    sources[name] = sources.get(name, set()) | lines | _lines_of(node.iter, sources)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                lines = _own(node) | _lines_of(node.value, sources) | under.get(node, set())
                call = node.value
                if isinstance(call.func, ast.Attribute) and call.func.attr == "accumulate":
                    returns(ast.unparse(call.func.value).split(".")[-1], lines)
                elif isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "insert", "extend"):
                    name = ast.unparse(call.func.value)
                    sources[name] = sources.get(name, set()) | lines
                elif call.args:                          # scatter_add(dtable, …) changes its first
                    for name in _written_to(call.args[0]):
                        sources[name] = sources.get(name, set()) | lines
                    for name in _stored_as(call.args[0], subject):
                        returns(name, lines)
            elif isinstance(node, ast.Return) and node.value is not None:
                values = _one_for_each(_returned(node.value), subject)
                by_name = {name: lines for value in values for key, lines in _by_name(value, sources)
                           for name in _named(key, subject)}  # fmt: skip
                for name, lines in by_name.items():
                    returns(name, lines)
                values = [value for value in values if not by_name or not _by_name(value, sources)]
                receivers = _called(values, subject) if by_name else _receivers(values, subject)
                for which, (name, value) in enumerate(zip(receivers, values)):
                    if by_name and not name:
                        continue
                    own = _own(value, which)             # a, a: two places
                    if len(values) == 1 and not isinstance(value, ast.Name):
                        own = _own(node)
                    returns(name, own | _lines_of(value, sources))
    return returned, of_right, sources


def _one_for_each(values, subject):
    """The returned expressions, in (dz, *grads) the starred one for as many as it stands for"""
    starred = next((k for k, value in enumerate(values) if isinstance(value, ast.Starred)), None)
    if starred is None:
        return values
    many = [values[starred].value] * max(1, len(subject.floats) - len(values) + 1)
    return [*values[:starred], *many, *values[starred + 1 :]]


def _by_name(value, sources):
    """[(key, lines)] of a returned dict of gradients: of {"W": dW}, or of a variable"""
    if isinstance(value, ast.Dict):
        return [(getattr(key, "value", None), _own(part) | _lines_of(part, sources))
                for key, part in zip(value.keys, value.values)]  # fmt: skip
    start = f"{ast.unparse(value)}['"
    return [(text[len(start) : -2], lines) for text, lines in sources.items() if text.startswith(start)]


def _backwards_called(statement):
    """The calls of x.backward(…) in a statement that has no others inside it"""
    calls = [] if hasattr(statement, "body") else [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in BACKWARD]


def _owned_by(part, subject, looped):
    """The names of the parameters of self.fc, or, where a loop runs over (self.conv, self.bn), of these objects"""
    owners = looped.get(part.id, [part]) if isinstance(part, ast.Name) else [part]
    owners = [ast.unparse(one).removeprefix("self.").partition("[")[0] for one in owners]
    return [name for name in subject.params if any(name.startswith(f"{owner}.") for owner in owners)]


def array_of(target: ast.expr) -> ast.expr:
    """Of dx[:, t] the node dx"""
    return array_of(target.value) if isinstance(target, ast.Subscript) else target


def _one_of(node, target, value):
    return {(node.lineno, " ".join(f"{ast.unparse(target)} = {ast.unparse(value)}".split()))}


def pairs_of(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """[(target, value)] of an assignment; those of a, b = c, d one by one"""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts))
    return [(target, value)]


def _one_by_one(target, value):
    """[(target, value, number)]: of dx, dW = f(…) each target, and its number, because one may be right"""
    several = isinstance(target, ast.Tuple) and isinstance(value, (ast.Call, ast.Name))
    targets = target.elts if several else [target]
    return [(one, value, which) for which, one in enumerate(targets)]


def _receivers(values, subject):
    """The names of what each returned value is the gradient of, "" where that is not known."""
    if isinstance(subject.f, WithGradients) and len(values) > 1:         # loss, dW
        said = _called(values[1:], subject)
        return ["", *(said if any(said) else subject.floats[: len(said)])]
    names, called = subject.receivers(len(values)), _called(values, subject)
    if any(called) and isinstance(values[0], ast.Name) and LOSS.match(values[0].id):
        return called                                    # of `loss, dW` the first is none
    return names or called


def _called(values, subject):
    """The names of the tensors that returned names are the gradients of, "" for what has none"""
    said = [value.id if isinstance(value, ast.Name) else "" for value in values]
    return [next(iter(_named(s, subject) if s else []), "") for s in said]


def _stored_as(target, subject):
    """The parameters whose gradient is stored in self.dW or self.grads["W"], or in a part of it, self.dW[:, k]."""
    said = None
    if isinstance(target, ast.Subscript) and isinstance(getattr(target.slice, "value", None), str):
        said = target.slice.value
    elif isinstance(target, ast.Subscript):
        return _stored_as(target.value, subject)
    elif isinstance(target, ast.Attribute):
        said = target.attr
    return _named(said, subject, subject.params)


def _named(said, subject, among=None):
    """The tensors whose gradient is called that."""
    if not isinstance(said, str):
        return []
    found = [name for name in (subject.tensors if among is None else among) if is_gradient_name(said, _last(name))]
    return [name for name in found if in_this_case(said, _last(name))] or found


def _last(name):
    return name.rpartition(".")[2]


def _returned(value):
    """The returned expressions, one for each receiver."""
    if isinstance(value, ast.IfExp):
        return _returned(value.body)
    several = isinstance(value, (ast.Tuple, ast.List))
    return [one for part in value.elts for one in _returned(part)] if several else [value]


def _own(node, which=0):
    """{(line number, code)}; number `which` of several targets of one call has so many spaces behind it"""
    return {(node.lineno, " ".join(ast.unparse(node).split()) + " " * which)}


def _lines_of(value, sources):
    read = _names(value) + [ast.unparse(n) for n in ast.walk(value) if isinstance(n, (ast.Attribute, ast.Subscript))]
    return set().union(*(sources.get(name, set()) for name in read))


def _lines_of_places(target, sources):
    """The lines that the indices come from, of dx[i : i + k]"""
    indices = [one.slice for one in ast.walk(target) if isinstance(one, ast.Subscript)]
    return set().union(*(_lines_of(index, sources) for index in indices))


def _written_to(target):
    """What an assignment writes: names; self.dW; grads["W"]; for dx[:, t] the array dx."""
    if names := _names(target, ast.Store):
        return names
    if isinstance(target, ast.Subscript) and not (
        isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)
    ):
        return _written_to(target.value)
    return [ast.unparse(target)]


def _names(node, context=None):
    found = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [n.id for n in found if context is None or isinstance(n.ctx, context)]
