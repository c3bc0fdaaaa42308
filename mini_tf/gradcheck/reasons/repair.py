"""One change that makes a wrong backward right, searched for among all small changes of its source.

This is the self-test the other way round: each change is made, run, and its gradients are compared with the measured
slopes. A change is shown only if all gradients then agree.
"""

import ast

from mini_tf.gradcheck.planting.editing import closure_of, function_of, rebuilt, recompiled, source_of
from mini_tf.gradcheck.planting.mutations import Source, mutations, own_nodes, returned_values, whole_number
from mini_tf.trace import place

import numpy as np

MOST = 600               # changes tried at most

WORDS = {
    "an axis changed": "it runs over the wrong axis", "another axis": "it runs over the wrong axis",
    "sum for mean, or mean for sum": "a sum and a mean are confused", "a transpose": "a transpose is missing",
    "a transpose left out": "there is a transpose too many", "two gradients swapped": "two gradients are exchanged",
    "a sign flipped": "a sign is wrong", "a factor dropped": "there is a factor too many",
    "a term dropped": "there is a term too many", "a factor": "a factor is missing",
    "another name": "it is the wrong array",
    "an index left out": "there is an index too many", "the other end": "an index is off by one",
    "the next index": "an index is off by one", "the index before": "an index is off by one",
    "an order reversed": "the order is wrong",
    "a statement dropped": "there is a statement too many",
}  # fmt: skip


def find_repair(evidence):
    """[place, what is wrong, the line as it is, the line as it would be right].

    [] if no single change does it, or there is no source. Every change runs in the closure of a fresh forward, on
    copies, because many changes write where they should not.
    """
    try:
        backward = function_of(evidence.backward)
        text, node = source_of(backward)
    except ValueError:                                   # UserError: written in C, or at a prompt
        return []
    source = Source(text)
    for change in _changes(source, node, _arrays(backward))[:MOST]:
        try:
            code = recompiled(backward, change.text)
        except (SyntaxError, StopIteration):
            continue
        if _makes_right(evidence, code):
            where = place(backward.__code__.co_filename, change.line)
            return [where, WORDS[change.name], change.before, change.after]
    return []


def _makes_right(evidence, code):
    """True if all gradients agree with the measured slopes when the backward runs this code."""
    subject = evidence.subject
    evidence.back_to_the_point(copies=True)
    for p in subject.params.values():
        p.grad = None
    try:
        with np.errstate(all="ignore"):
            _, backward = subject.forward()
            repaired = rebuilt(function_of(backward), code)
            gradients = subject.named(repaired(np.copy(evidence.dy) if np.ndim(evidence.dy) else evidence.dy))
        return all(evidence.agrees(name, gradients.get(name)) for name in evidence.slopes)
    except Exception:                                    # most changes make no sense
        return False
    finally:
        evidence.back_to_the_point()


def _changes(source, node, arrays):
    """Changes, the likeliest first: the self-test's, transposes and indices, other names, factors that have a name.

    No bare numbers: where m is 4, a 2 repairs a forgotten √m by chance.
    """
    found = [change for change in mutations(source.text, node) if change.name in WORDS]
    parts = list(own_nodes(node))
    found += [source.mutation(part, *change) for part in parts for change in _changes_of_shape(source, part)]
    stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    names = [*arrays, *sorted(stored)]
    written = {part.value for part in parts if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)}
    for part in parts:
        read = isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part not in written
        if read and part.id in {*names, *_arguments(node)}:
            found += [
                source.mutation(part, "another name", *source.span(part), name) for name in names if name != part.id
            ]
    wholes = [part.value for part in parts if isinstance(part, ast.Assign)]
    for value in returned_values(node):
        wholes += value.elts if isinstance(value, ast.Tuple) else [value]
    for whole in wholes:
        span, atom = source.span(whole), source.atom(whole)
        for operation in ("*", "/"):
            found += [source.mutation(whole, "a factor", *span, f"{atom} {operation} {name}") for name in arrays]
    return list({change.text: change for change in found if change.text != source.text}.values())


def _changes_of_shape(source, part):
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
        for side in (part.left, part.right):
            yield "a transpose", *source.span(side), f"{source.atom(side)}.swapaxes(-1, -2)"
    elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
        yield "an index left out", *source.span(part), source.atom(part.value)
        yield from _changes_of_index(source, part.slice)
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        for argument in [*part.args, *(k.value for k in part.keywords)]:
            number = whole_number(argument)
            if number is not None:
                for other in {-1, 0, 1, -2, number + 1, number - 1} - {number}:
                    yield "another axis", *source.span(argument), str(other)


def _changes_of_index(source, index):
    if isinstance(index, ast.Slice):
        first, last = (None if end is None else whole_number(end) for end in (index.lower, index.upper))
        if (first, last) == (1, None):
            yield "the other end", *source.span(index), ":-1"
        elif (first, last) == (None, -1):
            yield "the other end", *source.span(index), "1:"
    elif isinstance(index, ast.Tuple):
        for element in index.elts:
            yield from _changes_of_index(source, element)
    elif isinstance(index, ast.Name):
        yield "the next index", *source.span(index), f"{index.id} + 1"
        yield "the index before", *source.span(index), f"{index.id} - 1"


def _arguments(node):
    return [argument.arg for argument in node.args.args]


def _arrays(backward):
    """The names of the arrays and numbers in the backward's closure."""
    numbers = np.ndarray, np.generic, float, int
    return [name for name, value in closure_of(backward).items() if isinstance(value, numbers)]
