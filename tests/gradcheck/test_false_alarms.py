"""No false alarms: all correct ops and layers pass, in float64 and float32, with padding and masks.

    pytest tests/gradcheck/test_false_alarms.py --seeds 20

checks ops and single layers at ten seeds, layers that are made of them at five, models at two. The suite has fewer, and
of layers that are made of others, and of models, it takes a few parameters.

Inputs in float32 are judged in float64 copies first and then as they are, so that one check is of both.
"""

from mini_tf import layers, ops
from mini_tf.gradcheck import judge
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.layers.embedding import ABSENT
from tests.cases import cases

import numpy as np
import pytest

KINDS = "Model", "Transformer", "GPT", "GPT2", "Llama", "Translator", "Classifier", "OneAttention"
MODELS = [name for name in EXAMPLES if name.split(",")[0].endswith(KINDS)]
PARTS = [name for name in EXAMPLES if name not in MODELS]
COMPOSED = [name for name in PARTS if name.startswith(("DecoderLayer", "TransformerLayer"))]


def passes(f, inputs, params=None, seed=0, **options):
    report = judge(f, *inputs, params=params, seed=seed, **options)
    assert report.verdict == "PASS", report
    assert report.judged > 0


@pytest.mark.parametrize("dtype", [">f8", ">f4"])
def test_the_order_of_bytes_does_not_matter(dtype, rng):
    """Files have numbers of either order; NumPy's results have the processor's own."""
    x, gamma, beta = (rng.standard_normal(shape).astype(dtype) for shape in [(2, 4), 4, 4])
    passes(ops.layer_norm, [x, gamma, beta])
    passes(ops.linear, [x.T, x])
    passes(lambda x: (x.T, lambda dy: dy.T), [x])
    passes(ops.embedding, [x, np.array([1, 0, 1], ">i8")])
    layer = layers.Linear(4, 3, rng)
    for p in layer.parameters().values():
        p.data = p.data.astype(dtype)
    given = layer.W.data
    passes(layer, [x], layer.parameters())
    assert layer.W.data is given


def passes_in_float32(name, seed, most=None):
    f, inputs, params = EXAMPLES[name](np.random.default_rng(seed))
    few = [*params][:: -(-len(params) // most)] if most else params
    for parameter in params.values():
        parameter.data = parameter.data.astype(np.float32)
    passes(f, [x.astype(np.float32) if x.dtype.kind == "f" else x for x in inputs],
           {name: params[name] for name in few}, seed)   # fmt: skip


@pytest.fixture
def seeds(request):
    return request.config.getoption("seeds")


FEW = 2                  # parameters, in the suite


@pytest.mark.parametrize("name", cases([name for name in PARTS if name not in COMPOSED[1:]], COMPOSED[1:]))
def test_ops_and_layers_at_many_seeds(name, seeds):
    for seed in range(-(-seeds // 4) if name in COMPOSED else -(-seeds // 2)):
        passes_in_float32(name, seed, FEW if name in COMPOSED and seeds < 8 else None)


@pytest.mark.parametrize("name", cases(MODELS[::4], [name for name in MODELS if name not in MODELS[::4]]))
def test_models(name, seeds):
    for seed in range(-(-seeds // 10)):
        passes_in_float32(name, seed, FEW if seeds < 8 else None)


def padded(rng):
    """(x, mask): histories of 4 words of which the last ones are padding, rows of zeros; one has no word at all."""
    x = rng.standard_normal((3, 4, 6))
    words = np.arange(4) < np.array([4, 2, 0])[:, None]              # (B, T)
    x[~words] = 0
    return x, words


@pytest.mark.parametrize("seed", cases([0], [1]))
def test_padded_rows_with_zero_biases_and_fully_masked_rows(seed):
    rng = np.random.default_rng(seed)
    x, words = padded(rng)
    keys = words[:, None, None, :]                       # (B, 1, 1, T): no query of the last history sees a key

    linear = layers.Linear(6, 5, rng)                    # its bias is 0: the padding stays at the ReLU's kink
    def relu_of_linear(x):
        y, linear_backward = linear(x)
        z, relu_backward = ops.relu(y)
        return z, lambda dz: linear_backward(relu_backward(dz))

    passes(relu_of_linear, [x], linear.parameters(), seed)
    layer = layers.TransformerLayer(6, 2, 3, rng, norm="after")   # γ = 1, β = 0, as it starts
    passes(layer, [x, keys & np.tri(4, dtype=bool)], layer.parameters(), seed)
    passes(ops.mean_pool, [x, words], seed=seed)
    embedding = layers.Embedding(rng.standard_normal((7, 6)))
    passes(embedding, [np.where(words, rng.integers(0, 7, words.shape), ABSENT)], embedding.parameters(), seed)


@pytest.mark.parametrize("size", cases([1e-4, 1e3], [1e-2, 30.0]))
def test_large_and_small_numbers(size):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        x = size * rng.standard_normal((3, 6))
        for f, *others in (
            (ops.softmax,), (ops.tanh,), (ops.gelu,), (ops.relu,), (ops.layer_norm, np.ones(6), np.zeros(6)),
            (ops.linear, rng.standard_normal((6, 2))), (ops.residual_relu, x[::-1].copy()), (ops.mse, x + 1),
            (ops.cross_entropy, np.array([0, 5, 0])),
        ):  # fmt: skip
            report = judge(f, x, *others, seed=seed)
            assert not report.findings, report
            assert not any(c.wrong for t in report.tensors for c in t.comparisons), report


def elu(x):
    e = np.exp(np.minimum(x, 0))
    return np.where(x > 0, x, e - 1), lambda dy: dy * np.where(x > 0, 1, e)


def test_no_alarm_where_the_second_derivative_jumps_and_wrong_gradients_are_still_found():
    f, x = elu, np.array([-1.0, 0.0, 1.0])
    for seed in range(2):
        passes(f, [x], seed=seed)
        for wrong in (lambda dx: 1.0001 * dx, lambda dx: dx + 1e-3, lambda dx: -dx):
            report = judge(lambda x, wrong=wrong: (f(x)[0], lambda dy: wrong(f(x)[1](dy))), x, seed=seed)
            assert report.verdict == "FAIL"
