"""Every op with arrays of many shapes, axes without entries included: its formula, its twin, or its documented error.

The shapes come from the signature of each op, so a new op is tested as soon as it is defined.
"""

import inspect
import os

from mini_tf.ops.op import all_ops

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

OPS = {op.name: op for op in all_ops() if op.__module__.startswith("mini_tf.ops.")}
EXAMPLES = int(os.environ.get("MINI_TF_FUZZ", "60"))     # of each op: the same every time, or, if there are more, others
SIZES = st.sampled_from([3, 2, 1, 4, 0])
SHAPES = {                                               # to which an array of any shape, (*), broadcasts
    "masked_softmax": ("…", "k"), "attention": ("…", "Tq", "Tk"), "grouped_attention": ("…", "H", "Tq", "Tk"),
}  # fmt: skip
GATES = {"lstm": 4, "gru": 3}                            # their weights have so many times k columns
POSITIVE = {"p_copy", "v"}
OPTIONS = {
    "absent": [None, -1, 0],
    "approximate": [True], "scale": [0.6], "rate": [0.0, 0.3, 1.0], "ignore": [0, -1], "smoothing": [0.2, 1.0], "eps": [0.1],
    "activation": ["relu", "sine"], "t": [3, 1, 0], "learning_rate": [0.1], "betas": [(0.9, 0.99), (0.0, 0.0), (0.9, 1.0)],
    "decay": [0.9], "first": [0, 3], "base": [10.0, 0.0], "halves": [True],
}  # fmt: skip


@st.composite
def calls(draw, op):
    """The arguments of a call, by name: arrays whose shapes fit together, mostly, and options."""
    sizes = {}

    def shape_of(axes):
        shape = []
        for axis in axes:
            if axis == "gates":
                sizes.setdefault(axis, [GATES[op.name] * sizes["k"][0]])
            some = st.lists(SIZES, max_size=2) if axis == "…" else st.lists(SIZES, min_size=1, max_size=1)
            shape += sizes[axis] if axis in sizes else sizes.setdefault(axis, draw(some))
        return tuple(shape)

    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    parameters, arguments = inspect.signature(op).parameters, {}
    for name, axes, kind in op.arguments.expected:
        if parameters[name].default is None and draw(st.booleans()):
            continue
        if axes is not None:
            shape = shape_of(axes)
        elif op.name in SHAPES:
            whole = [1 if draw(st.booleans()) else size for size in shape_of(SHAPES[op.name])]
            shape = tuple(whole[draw(st.integers(0, len(whole))):])
        else:
            shape = tuple(draw(st.lists(SIZES, max_size=3)))
        if draw(st.integers(0, 19)) == 7:                # a shape that may not fit
            shape = (*shape, draw(SIZES))
        words = sizes.get("c", [3])[0]
        lowest = -1 if draw(st.integers(0, 9)) == 7 else 0
        if kind == "int":
            arguments[name] = rng.integers(lowest, max(words, 1), shape)
        elif kind == "bool":
            arguments[name] = np.asarray(rng.random(shape) < 0.6)
        else:
            arguments[name] = np.asarray(rng.standard_normal(shape).astype(np.float32))
        if name in POSITIVE:
            arguments[name] = np.asarray(np.abs(arguments[name]))
    for name, parameter in parameters.items():
        if name not in op.arrays and (parameter.default is parameter.empty or draw(st.booleans())):
            arguments[name] = draw(st.sampled_from(OPTIONS[name]))
    return arguments


def outcome(f, arguments, dtype):
    """[y, gradients, the arguments afterwards], or the type and the message of the error"""
    arguments = {
        name: np.array(x, dtype if x.dtype == np.float32 else None) if isinstance(x, np.ndarray) else x
        for name, x in arguments.items()
    }  # fmt: skip
    try:
        result = f(**arguments)
        if not isinstance(result, tuple):                # Adam, and the sum of squares: no backward
            return [result, *arguments.values()]
        y, backward = result
        dy = np.random.default_rng(7).standard_normal(np.shape(y)).astype(dtype) if np.ndim(y) else 0.7
        gradients = backward(dy)
        return [y, *(gradients if isinstance(gradients, tuple) else [gradients]), *arguments.values()]
    except Exception as error:
        return type(error), str(error)


def agree(found, expected):
    assert type(found) is type(expected), (found, expected)
    if isinstance(found, tuple):                         # errors
        assert found == expected
        return
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert (one is None) == (other is None)
        if isinstance(other, (np.ndarray, np.floating)):
            assert np.shape(one) == np.shape(other)
            size = max(np.abs(other).max(initial=0), 1)
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * size)


@pytest.mark.parametrize("name", OPS)
def test_op_formula_and_double_precision_agree(name):
    op = OPS[name]
    errors, results = set(), []

    @settings(max_examples=EXAMPLES, derandomize=EXAMPLES <= 60)
    @given(calls(op))
    def check(arguments):
        with np.errstate(all="ignore"):
            found = outcome(op, arguments, np.float32)   # the twin, if there is one
            agree(found, outcome(op.formula, arguments, np.float32) if not isinstance(found, tuple) else found)
            agree(found, outcome(op, arguments, np.float64))
        if isinstance(found, tuple):
            assert issubclass(found[0], (ValueError, TypeError)), found
            errors.add(found)
        else:
            results.append(found)

    check()
    assert len(results) > 10, errors                     # most calls are right
