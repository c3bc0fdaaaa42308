"""An op is one object: it has a name and a source, can be watched and replaced, and takes over a reloaded formula."""

import copy
import importlib
import inspect
import pickle
import sys
from collections import Counter

from mini_tf import kernels, layers, ops
from mini_tf.ops.op import Op, all_ops, op, replaced, watching

import numpy as np
import pytest


def test_an_op_is_its_formula_with_a_name():
    for name in ops.__all__:
        one = getattr(ops, name)
        assert isinstance(one, Op)
        assert one.name == one.__name__ == name
        assert one in all_ops()
        assert inspect.getsource(one).splitlines()[1].startswith(f"def {name}(")         # below its decorator
        assert inspect.signature(one) == inspect.signature(one.formula)
        assert "→" in one.__doc__
        assert list(inspect.signature(one).parameters)[0] == one.arrays[0]
    assert repr(ops.linear) == "<op linear: x (…, in), W (in, out), b (out)>"


def test_copies_and_pickles_are_the_op_itself():
    for one in (ops.softmax, ops.linear):
        assert copy.deepcopy(one) is one
        assert pickle.loads(pickle.dumps(one)) is one


def test_a_watcher_sees_every_call_of_every_op(rng):
    calls = Counter()

    def count(op, run, *inputs, **options):
        calls[op.name] += 1
        return run(*inputs, **options)

    attention = layers.MultiHeadAttention(4, 2, 3, rng, dtype=np.float64)
    x = rng.standard_normal((2, 3, 4))
    expected = attention(x)[0]
    with watching(count):
        np.testing.assert_array_equal(attention(x)[0], expected)
    assert calls == {"linear": 4, "attention": 1, "softmax": 1}
    attention(x)
    with pytest.raises(KeyError), watching(count):
        raise KeyError
    assert sum(calls.values()) == 6


def test_watchers_may_be_nested(rng):
    order = []

    def watcher(name):
        def watch(op, run, *inputs, **options):
            order.append(name)
            return run(*inputs, **options)

        return watch

    with watching(watcher("outer")), watching(watcher("inner")):
        ops.relu(rng.standard_normal(3))
    assert order == ["inner", "outer"]


def test_an_op_can_be_replaced_everywhere(rng):
    def ones(z, mask):
        return np.ones_like(z), lambda dy: (dy, None)

    query, mask = rng.standard_normal((2, 3, 4)).astype(np.float32), np.tri(3, dtype=bool)
    with replaced({ops.masked_softmax: ones}):
        y, _ = ops.attention(query, query, query, mask)
    np.testing.assert_allclose(y, query.sum(1, keepdims=True).repeat(3, axis=1), rtol=1e-6)
    assert not np.allclose(ops.attention(query, query, query, mask)[0], y)


def test_a_replacement_may_call_the_op_that_it_replaces(rng):
    def twice(x):
        y, backward = ops.relu(x)
        return 2 * y, backward

    x = rng.standard_normal((2, 3))
    with replaced({ops.relu: twice}):
        for _ in range(2):
            np.testing.assert_array_equal(ops.relu(x)[0], 2 * np.maximum(x, 0))


@pytest.mark.parametrize("name", ["linear", "attention", "mean_pool"])
def test_one_gradient_for_each_array_argument_whether_given_or_not(name, rng):
    x, mask = rng.standard_normal((2, 3, 3)), np.tri(3, dtype=bool)
    given = {
        "linear": [(x, x[0]), (x, x[0], x[0, 0])],
        "attention": [(x, x, x), (x, x, x, mask), (x, x, x, mask, 1.0, x[:, :3]), (x, x, x, None, 1.0, x)],
        "mean_pool": [(x,), (x, mask[:2])],
    }[name]
    one = getattr(ops, name)
    for dtype in (np.float32, np.float64):               # the twin, and the formula
        for inputs in given:
            inputs = [a.astype(dtype) if getattr(a, "dtype", None) == np.float64 else a for a in inputs]
            y, backward = one(*inputs)
            assert len(backward(np.ones_like(y))) == len(one.arrays)


def test_a_reloaded_module_changes_the_op_that_everybody_holds(tmp_path, monkeypatch):
    source = """
from mini_tf.ops.op import op

@op("x (…)")
def double(x):
    return FACTOR * x, lambda dy: FACTOR * dy
"""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "my_reloaded_ops.py"
    file.write_text(source.replace("FACTOR", "2"))
    module = importlib.import_module("my_reloaded_ops")
    held = module.double
    assert held(np.ones(3))[0].sum() == 6
    file.write_text(source.replace("FACTOR", "20"))
    importlib.reload(module)
    assert held is module.double
    assert held(np.ones(3))[0].sum() == 60


def test_a_users_op_checks_its_arguments(rng):
    @op("x (B, n), ids (B) int")
    def pick(x, ids, factor=1.0):
        return factor * x[np.arange(len(x)), ids], None

    x = rng.standard_normal((3, 4))
    np.testing.assert_array_equal(pick(x, ids=np.array([1, 0, 2]), factor=2.0)[0], 2 * x[[0, 1, 2], [1, 0, 2]])
    with pytest.raises(ValueError, match=r"pick: ids has shape \(2,\), expected \(B,\) with B = 3 as in x"):
        pick(x, np.array([1, 0]))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'ids'"):
        pick(x)


@pytest.mark.parametrize("scale", [np.float64(2), np.float32(2), np.int64(2), np.array(2.0)[()]], ids=repr)
def test_a_numpy_number_as_an_option_is_a_number(scale, rng):
    """np.float64(2) would turn float32 into float64; formula and twin give the same, by position, too."""
    query, key, value = (rng.standard_normal((2, 5, 4)).astype(np.float32) for _ in range(3))
    expected, _ = ops.attention(query, key, value, scale=2.0)
    for run in (lambda: ops.attention(query, key, value, scale=scale), lambda: ops.attention(query, key, value, None, scale)):
        y, backward = run()
        with kernels.reference_only():
            by_formula, _ = run()
        assert {y.dtype, by_formula.dtype, backward(y)[0].dtype} == {np.dtype(np.float32)}
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_allclose(by_formula, expected, atol=1e-6)


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan, np.float32(np.inf)])
def test_an_option_has_to_be_finite(scale):
    with pytest.raises(ValueError, match=r"attention: scale is -?(inf|nan), expected a finite number"):
        ops.attention(*np.ones((3, 1, 2, 2)), scale=scale)


def test_half_precision_is_refused():
    """The squares of 1,000, 2,000, 3,000 are beyond its largest number: layer norm gave zeros."""
    x = np.array([[1000, 2000, 3000]], np.float16)
    with pytest.raises(ValueError, match="layer_norm: x has dtype float16, expected float32 or float64"):
        ops.layer_norm(x, np.ones(3, np.float16), np.zeros(3, np.float16))
