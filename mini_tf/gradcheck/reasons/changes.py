"""Small changes of a wrong function, among which `repair.py` looks for the one that makes it right.

    for change in changes(source, node, atoms): …        # Mutations; change.name says what is wrong, in words

The likeliest come first: the self-test's mutations the other way round, then another array in its place, then a factor
or a term that is missing. Arrays are first exchanged for arrays of the same shape, and multiplied by those that fit.
A kind of change, in `kinds/`, gives (what is wrong, what is replaced, by which text) for a part of the syntax tree.
"""

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from mini_tf.gradcheck.planting.mutations import Mutation, Source, mutations, own_nodes, returned_values
from mini_tf.gradcheck.reasons.kinds.factors import OF_OPERANDS, of_a_whole, of_loop_entries, of_quotients, of_upstream
from mini_tf.gradcheck.reasons.kinds.formulas import SINGLE, SIZE, is_array, is_own_function, shape_of
from mini_tf.gradcheck.reasons.kinds.places import (
    another_atom,
    atom_for_a_formula,
    everywhere,
    in_each_others_place,
    of_atoms,
    of_blocks,
    of_bounds,
    of_complements,
    of_exponents,
    of_index_arrays,
    of_keywords,
    of_namesakes,
    of_numbers,
    of_padding,
    of_signs,
    of_targets,
    of_transposed_calls,
)
from mini_tf.gradcheck.reasons.kinds.syntax import (
    NOT_ADDED,
    OF_SYNTAX,
    in_the_wrong_order,
    late_bindings,
    not_added,
    of_a_later_order,
    of_functions,
    of_indices,
    of_neighbours,
    of_order,
    of_outputs,
    of_statements,
)
from mini_tf.gradcheck.reasons.kinds.terms import (
    couplings,
    differences,
    is_slice,
    mirrored_terms,
    symmetric,
    terms,
    terms_inside,
    terms_of_arguments,
    terms_of_gates,
    terms_of_slices,
    terms_of_sums,
    terms_of_unused,
)

import numpy as np

# What is wrong, if undoing it is that mutation of the self-test.
UNDONE = {
    "an axis changed": "it runs over the wrong axis", "sum for mean, or mean for sum": "a sum and a mean are confused",
    "a transpose left out": "there is a transpose too many", "two gradients swapped": "two gradients are exchanged",
    "a sign flipped": "a sign is wrong", "a factor dropped": "there is a factor too many",
    "a term dropped": "there is a term too many", "an order reversed": "the order is wrong",
    "a statement dropped": "there is a statement too many",
    "replaced, not accumulated": "it adds up where it should be set",
}  # fmt: skip
AS_IN_THE_FORWARD = re.compile("the forward computes ")
ZEROS = re.compile(r"\b(zeros|empty)(_like)?$")
ADDED = re.compile(r"(factor|term)s? (is|are) missing|mean is not taken away|a 1 is missing")
RARE = re.compile(
    r"is missing, (1/np\.sqrt|1/\(1 \+ np\.exp|[^\W\d]\w*/\w+$|.*\.(size|sum\(|shape)|np\.sign|1/\S+\*\*2)"
    r"|is missing, −?[^\W\d]\w* / np\.\w+\("
    r"|as a (variance|length|common sum|mean) "
)

NONE = MappingProxyType({})
OUTPUT = "y", "out", "result"            # what may take the place of self.x, if self.x gets another array
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
CLIPPED = re.compile(r"maximum\((?:0(?:\.0)?, )?([A-Za-z_][\w.]*)(?:, 0(?:\.0)?)?\)")


def changes(
    source: Source, node: ast.FunctionDef | ast.Lambda, atoms: dict[str, Any], here: Callable[[int], bool],
    again: Mapping[str, Collection[str]] = NONE, only_commonest: bool = False,
) -> list[Mutation]:  # fmt: skip
    """[Mutation] of the function at `node`, each text once, the likeliest first.

    atoms   {text: value} of names, attributes and such that stand for arrays and numbers inside the function
    again   {name: formulas} of what the forward computes
    here    True for the numbers of the lines that may change
    only_commonest  what alters a line as it stands (a sign, a transpose, an axis, an index, = for +=), of which there
            are few; not another array in its place, nor a factor or a term that is missing, of which there are many
    """
    everything = [part for part in own_nodes(node, loops=True) if hasattr(part, "end_lineno")]
    everything += [node] * isinstance(node, ast.Lambda)
    sums = dict.fromkeys(one.id for one in everything if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))
    parts = [part for part in everything if here(part.lineno)]
    calls = [one for one in everything if isinstance(one, ast.Call)]
    zeros = [source.span(call) for call in calls if ZEROS.search(ast.unparse(call.func))]

    def of_parts(kind, *known):
        return [_made(source, part, *change) for part in parts for change in kind(source, part, *known)]

    found = of_parts(of_indices)
    found += [_by_one(change) for change in mutations(source.text, node) if change.name in UNDONE]
    found += of_parts(not_added, sums)
    for kind in OF_SYNTAX:
        found += of_parts(kind)
    found += [_made(source, node, *change) for change in late_bindings(source, node)]
    found += [change for part in [node, *everything] for change in of_order(source, part)]
    found += [change for part in [node, *everything] for change in of_a_later_order(source, part)]
    found += [change for part in [node, *everything] for change in of_neighbours(source, part)]
    found += [_made(source, *change) for change in _as_in_the_forward(source, node, again)]
    found += of_parts(of_bounds, atoms)
    found += of_parts(of_exponents, atoms) + of_parts(of_complements, atoms)
    found += [] if only_commonest else _others(source, node, atoms, here, everything, parts, sums)
    return _once(change for change in found if here(change.line) and not _of_zeros(change, zeros))


def _others(source, node, atoms, here, everything, parts, sums):
    """Those `changes` that are not among the commonest"""
    slices = {source.within(source.span(one)): shape_of(one, source, atoms) for one in everything if is_slice(one)}
    wholes = [(w, t) for w, t in _wholes(node) if not isinstance(t, ast.Name) or t.id in atoms or t is w]
    wholes = [(whole, target) for whole, target in wholes if here(whole.lineno)]
    wholes.sort(key=lambda one: (isinstance(one[0], ast.Name), -one[0].lineno))      # the last formula comes first

    def of_parts(kind, *known):
        return [_made(source, part, *change) for part in parts for change in kind(source, part, *known)]

    def of_wholes(kind, *known):
        return [_made(source, w, *change) for w, target in wholes for change in kind(source, w, target, *known)]

    found = of_parts(of_upstream, node, atoms)
    found += of_parts(another_atom, atoms, True) + of_parts(of_numbers, atoms) + of_wholes(of_a_whole, atoms)
    found += of_parts(of_index_arrays, atoms)
    found += of_parts(of_quotients, atoms) + of_parts(of_padding, atoms) + of_parts(symmetric, atoms)
    for kind in (of_signs, of_transposed_calls, of_blocks):
        found += of_parts(kind, atoms)
    found += of_wholes(of_namesakes, atoms)
    loaded = {one.id for one in everything if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    found += of_wholes(terms_of_unused, atoms, sums.keys() - loaded) + of_wholes(mirrored_terms, atoms)
    found += of_wholes(in_each_others_place, atoms) + of_wholes(differences, atoms) + of_wholes(couplings, atoms)
    loops = [one for one in everything if isinstance(one, ast.For) and isinstance(one.target, ast.Name)]
    counters = {one.target.id: range(one.lineno, one.end_lineno + 1) for one in loops}
    found += [_made(source, w, *change) for w, _ in wholes for change in of_loop_entries(source, w, counters, atoms)]
    kinds = everywhere, of_keywords, of_targets, of_atoms, *OF_OPERANDS, terms_inside, terms_of_arguments, another_atom
    for kind in kinds:
        found += of_parts(kind, atoms)
    found += of_wholes(terms, atoms) + of_wholes(terms_of_gates, atoms) + of_wholes(terms_of_sums, atoms)
    found += of_wholes(terms_of_slices, atoms, slices)
    for one in _given_on(parts, atoms):
        found += [_made(source, one, *change) for change in terms(source, one, one, atoms)]
    return found + of_parts(atom_for_a_formula, atoms)


def _as_in_the_forward(source, node, again):
    """(statement, words, formula, text): the forward's formula for what the backward computes once more"""
    for one in own_nodes(node, loops=True):
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if isinstance(target, ast.Name):
            for formula in again.get(target.id, ()):
                yield one, f"the forward computes {target.id} differently", one.value, formula


def _given_on(parts, atoms):
    """Arrays that are given on to a learner's function: dx of x_back(dx)"""
    calls = [one for one in parts if is_own_function(one)]
    return [x for call in calls for x in call.args if isinstance(x, ast.Name) and is_array(atoms.get(x.id))]


def _of_zeros(change, zeros):
    """True for a factor of zeros, or a term that is taken away from them: at best they get another dtype by it."""
    return bool(ADDED.search(change.name)) and any(start <= change.start < end for start, end in zeros)


def _by_one(change):
    """The Mutation; if a dropped term is a whole number, as in range(n - 1), it says so."""
    before, after = (Counter(re.findall(r"[+-] ?\d+\b", text)) for text in (change.before, change.after))
    names, others = (Counter(re.findall(r"[A-Za-z_]\w*", text)) for text in (change.before, change.after))
    is_number = change.name == "a term dropped" and bool(before - after) and names == others
    return replace(change, name="a number is wrong") if is_number else change


def changes_of_a_step(source: Source, node: ast.FunctionDef | ast.Lambda) -> list[Mutation]:
    """Changes of a step that sets a gradient where others add to it."""
    parts = own_nodes(node, loops=True)
    found = [_made(source, part, *change) for part in parts for change in of_statements(source, part)]
    return _once(change for change in found if change.name == NOT_ADDED)


def changes_of_what_is_kept(
    source: Source, node: ast.FunctionDef | ast.Lambda, atoms: dict[str, Any]
) -> list[Mutation]:
    """Changes of a forward that leave y as it is, perhaps, but not what its backward is given."""
    parts = [part for part in own_nodes(node, loops=True) if hasattr(part, "end_lineno")]
    found = [_made(source, part, *change) for part in parts for change in another_atom(source, part, atoms, True)]
    found += [_made(source, part, *change) for part in parts for change in atom_for_a_formula(source, part, atoms)]
    found += [_made(source, part, *change) for part in parts for change in of_functions(source, part)]
    found += [_made(source, part, *change) for part in parts for change in of_outputs(source, part)]
    sizes = [part for part in parts if SIZE.fullmatch(source.within(source.span(part)))]
    found += [_made(source, part, *change) for part in sizes for change in of_numbers(source, part, atoms)]
    for whole, target in _wholes(node):                  # n = B, where B·L are averaged
        if isinstance(target, ast.Name) and isinstance(atoms.get(target.id), SINGLE):
            for name, x in atoms.items():
                if isinstance(x, SINGLE) and name != target.id:
                    span, atom = source.span(whole), source.product(whole)
                    found.append(_made(source, whole, f"a factor is missing, {name}", span, f"{atom} * {name}"))
                    found.append(_made(source, whole, f"a factor is missing, 1/{name}", span, f"{atom} / {name}"))
    for part in parts:                                   # z += h, after z was put on a tape
        name = getattr(part.target, "id", None) if isinstance(part, ast.AugAssign) else None
        if is_array(atoms.get(name)):
            value, sign = source.atom(part.value), OPERATORS.get(type(part.op))
            words = f"{name} is changed in place, and so is what was kept of it: a new array is needed"
            found += [_made(source, part, words, part, f"{name} = {name} {sign} {value}")] if sign else []
    for part in parts:                                   # active = d > e, where max(d − e + margin, 0) was computed
        for name in CLIPPED.findall(source.text) if isinstance(part, ast.Compare) else ():
            words = f"{name} > 0 belongs where {source.within(source.span(part))} is"
            found.append(_made(source, part, words, part, f"{name} > 0"))
    found += _inputs_to_keep(source, node, atoms)
    calls = [part for part in parts if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "append"]
    for name in [one for call in calls for part in call.args for one in ast.walk(part) if isinstance(one, ast.Name)]:
        words = f"{name.id} itself is changed below: a copy is missing"              # what was appended changes, too
        found.append(_made(source, name, words, name, f"{name.id}.copy()"))
    for block in [node, *own_nodes(node)]:               # without those of a backward inside it
        body = getattr(block, "body", None)
        pairs = zip(body, body[1:]) if isinstance(body, list) else ()
        pairs = [(one, other) for one, other in pairs if not isinstance(other, ast.Return)]
        found += [in_the_wrong_order(source, one, other) for one, other in pairs]
    return _once(found)


def _inputs_to_keep(source, node, atoms):
    """[Mutation]: self.x = x, where what is computed of x is kept; a new name then has that"""
    inputs = [one.arg for one in node.args.args if is_array(atoms.get(one.arg))] if hasattr(node, "body") else []
    known, found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}, []
    new = next((name for name in OUTPUT if name not in known), None)
    for one in own_nodes(node):
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or isinstance(one.value, (ast.Name, ast.Attribute)) or new is None:
            continue
        (start, end), stop = source.span(one), source.span(node)[1]
        kept, value = (source.within(source.span(part)) for part in (target, one.value))
        below = source.text[end:stop]
        word = re.compile(rf"(?<![\w.]){re.escape(kept)}\b")
        reading = [line.strip() for line in below.split("\n") if word.search(line)]
        for name in [name for name in inputs if np.shape(atoms[name]) == np.shape(atoms.get(kept))]:
            both = f"{kept}, {new} = {name}, {value}"
            words = f"{kept} keeps what is computed of {name}, and the backward needs {name} itself"
            change = _made(source, node, words, (start, stop), both + word.sub(new, below))
            shown = [f"{kept} = {value}", *reading], [both, *(word.sub(new, line) for line in reading)]
            found.append(replace(change, shown=tuple(map("; ".join, shown))))
    return found


def _made(source, part, words, where, text):
    """The Mutation that puts text in the place of `where`, a node or (start, end)."""
    return source.mutation(part, words, *(where if isinstance(where, tuple) else source.span(where)), text)


def _once(found):
    first = {}                                           # several may make the same change: the first says it best
    for change in found:
        first.setdefault((change.start, change.end, change.new), change)
    return [change for change in first.values() if change.new != change.old]


def _wholes(node):
    """(expression, the target it is assigned to or None): right sides, and each returned gradient"""
    for part in own_nodes(node, loops=True):
        if isinstance(part, ast.Assign):
            target, value = part.targets[0], part.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                yield from zip(value.elts, target.elts)  # da, db = dy * b, dy * a
            elif isinstance(value, ast.Dict):            # grads = {"W": dW}
                yield from ((one, one) for one in value.values)
            elif not isinstance(target, ast.Tuple) and not isinstance(value, ast.Tuple):
                yield value, target
        elif isinstance(part, ast.AugAssign) and not isinstance(part.op, ast.Div):
            yield part.value, part.target
        elif isinstance(part, ast.Call) and ast.unparse(part.func).endswith(".at") and len(part.args) == 3:
            yield part.args[2], part.args[2]             # np.add.at(dtable, ids, d)
    for value in returned_values(node):
        for element in _elements(value):
            yield element, element


def _elements(value):
    """The expressions in a tuple or a dict, and in those inside it"""
    several = {ast.Tuple: "elts", ast.Dict: "values"}.get(type(value))
    return [one for part in getattr(value, several) for one in _elements(part)] if several else [value]
