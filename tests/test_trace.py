"""Tracing a model: every call with its line, in the order of the forward; backwards in the order they ended."""

from mini_tf import ops
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.layers import Linear
from mini_tf.trace import source_line, trace

import numpy as np
import pytest


def test_the_calls_of_a_model(rng):
    f, inputs, _ = EXAMPLES["LanguageTransformer, vec, every option"](rng)
    with trace() as calls:
        loss, backward = f(*inputs)
        backward()
    assert calls[0].name == "LanguageTransformer.loss"
    assert calls[0].depth == 0
    inside = next(call for call in calls if call.name == "masked_softmax")
    assert inside.line.startswith("mini_tf/ops/attention.py:")
    assert [parent.name for parent in inside.parents] == [
        "LanguageTransformer.loss", "Trunk", "Trunk.from_vectors", "TransformerLayer", "TransformerLayer.branch",
        "MultiHeadAttention", "MultiHeadAttention.across", "MultiHeadAttention.attend", "attention",
    ]  # fmt: skip
    ended = sorted((call for call in calls if call.ended is not None), key=lambda call: call.ended)
    assert ended[0].name == "cross_entropy"
    assert ended[-1].name == "LanguageTransformer.loss"
    assert len(ended) == len(calls)
    norm = next(call for call in calls if call.name == "layer_norm")
    assert norm.output.shape == norm.dy.shape == norm.gradients[0].shape
    assert np.ndim(loss) == 0


def test_tracing_changes_no_result_and_is_undone(rng):
    layer, x = Linear(3, 2, rng), rng.standard_normal((4, 3))
    y = layer(x)[0]
    before = ops.linear, Linear.__call__
    with trace() as calls:
        assert np.array_equal(layer(x)[0], y)
    with pytest.raises(KeyError), trace():
        raise KeyError
    assert (ops.linear, Linear.__call__) == before
    assert [call.name for call in calls] == ["Linear", "linear"]


def test_calls_that_raise_leave_the_stack_as_it_was(rng):
    with trace() as calls:
        with pytest.raises(ValueError, match="linear: W has shape"):
            ops.linear(rng.standard_normal((2, 3)), rng.standard_normal((4, 3)))
        ops.relu(rng.standard_normal(3))
    assert calls[-1].depth == 0


def test_where_a_backward_is_defined(rng):
    _, backward = ops.tanh(rng.standard_normal(3))
    assert source_line(backward).startswith("mini_tf/ops/activations.py:")
    assert source_line(len) == ""
