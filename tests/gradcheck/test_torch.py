"""No false alarm for PyTorch's functions, with its own gradients: right by definition, and written for nobody's checker.

    pytest tests/gradcheck/test_torch.py --seeds 180        # each at 45 seeds

Left out: hardsigmoid, whose 1/6 is a float32 (the checker sees that its gradient is off by 3e-8), and fmod and remainder,
sawtooths that may be finer than the smallest step.
"""

from mini_tf.gradcheck import judge

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
F = torch.nn.functional
torch.set_num_threads(1)

MATRIX, SQUARE, TEXTS, HEIGHTS = (3, 4), (4, 4), (2, 3, 4), (2, 4, 3)
ALONG_THE_LAST = (
    "amax amin cumprod cumsum log_softmax logcumsumexp logsumexp mean norm prod softmax std var".split()
    + ["cummax", "cummin", "max", "median", "min", "sort"]                    # these give (values, indices)
)
ENTRY_BY_ENTRY = (
    "abs acos acosh asin asinh atan atanh celu cos cosh digamma elu erf erfc erfinv exp exp2 expm1 frac gelu hardswish "
    "hardtanh i0 leaky_relu lgamma log log1p log2 logit logsigmoid mish reciprocal relu relu6 rsqrt selu sigmoid silu "
    "sin sinc sinh softplus softshrink softsign sqrt square tan tanh tanhshrink trunc"
).split()
OF_TWO = (
    "atan2 binary_cross_entropy binary_cross_entropy_with_logits cdist copysign cosine_similarity div fmax fmin "
    "huber_loss hypot kl_div l1_loss logaddexp maximum minimum mse_loss mul pairwise_distance pow smooth_l1_loss "
    "xlogy"
).split()
OF_SQUARES = "det inverse matrix_exp trace".split()
TARGETS = torch.tensor([0, 2, 1])


def named(name):
    return getattr(torch, name, None) or getattr(F, name)


def along_the_last(name):
    def f(x):
        y = named(name)(x, dim=-1)
        return y if torch.is_tensor(y) else y[0]

    return f


FUNCTIONS = {
    **{name: (named(name), [MATRIX]) for name in ENTRY_BY_ENTRY},
    **{name: (along_the_last(name), [MATRIX]) for name in ALONG_THE_LAST},
    **{name: (named(name), [MATRIX, MATRIX]) for name in OF_TWO},
    **{name: (named(name), [SQUARE]) for name in OF_SQUARES},
    "attention": (F.scaled_dot_product_attention, [TEXTS] * 3),
    "attention, causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [TEXTS] * 3),
    "average pool": (lambda x: F.avg_pool1d(x, 2), [TEXTS]),
    "batch norm": (lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True), [MATRIX, (4,), (4,)]),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.T + torch.eye(4, dtype=x.dtype)), [SQUARE]),
    "clamp": (lambda x: x.clamp(-2, 2), [MATRIX]),
    "conv 1d": (F.conv1d, [(2, 3, 5), (2, 3, 3)]),
    "conv 2d": (F.conv2d, [(1, 2, 4, 4), (2, 2, 3, 3)]),
    "cross entropy": (lambda x: F.cross_entropy(x, TARGETS), [MATRIX]),
    "einsum": (lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c), [MATRIX, SQUARE, SQUARE]),
    "log of a determinant": (lambda x: torch.logdet(x @ x.T + torch.eye(4, dtype=x.dtype)), [SQUARE]),
    "group norm": (lambda x: F.group_norm(x, 2), [HEIGHTS]),
    "layer norm": (lambda x, g, b: F.layer_norm(x, (4,), g, b), [MATRIX, (4,), (4,)]),
    "LSTM cell": (lambda c, i, f, g: torch.tanh(f.sigmoid() * c + i.sigmoid() * g.tanh()), [MATRIX] * 4),
    "max pool": (lambda x: F.max_pool1d(x, 2), [TEXTS]),
    "max over time of ReLU": (lambda x, w: torch.relu(x @ w).amax(1), [HEIGHTS, (3, 2)]),
    "MLP": (lambda x, w, v: torch.relu(torch.relu(x @ w) @ v), [MATRIX, (4, 5), (5, 2)]),
    "normalize": (F.normalize, [MATRIX]),
    "pinv": (torch.linalg.pinv, [MATRIX]),
    "PReLU": (F.prelu, [MATRIX, (1,)]),
    "solve": (torch.linalg.solve, [SQUARE, (4, 2)]),
}  # fmt: skip

DRAWN = [
    lambda rng, shape: rng.standard_normal(shape),
    lambda rng, shape: rng.uniform(0.1, 0.9, shape),     # probabilities, variances
    lambda rng, shape: 3 * rng.standard_normal(shape),
]  # fmt: skip


def in_contract(f):
    """y, backward = f(*arrays), by PyTorch's own gradients"""
    def op(*arrays):
        inputs = [torch.tensor(x, requires_grad=True) for x in arrays]
        y = f(*inputs)

        def backward(dy):
            dy = torch.as_tensor(dy, dtype=y.dtype)
            gradients = torch.autograd.grad(y, inputs, dy, retain_graph=True, allow_unused=True)
            gradients = [np.zeros(x.shape) if g is None else g.numpy() for x, g in zip(arrays, gradients)]
            return tuple(gradients) if len(gradients) > 1 else gradients[0]

        return (y.detach().numpy() if y.ndim else y.item()), backward

    return op


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_alarm(name, request):
    f, shapes = FUNCTIONS[name]
    judged = 0
    for seed in range(1, 1 + -(-request.config.getoption("seeds") // 4)):
        rng = np.random.default_rng(seed)
        report = judge(in_contract(f), *(DRAWN[seed % 3](rng, shape) for shape in shapes), seed=seed)
        assert report.verdict != "FAIL", report
        judged += report.judged
    assert judged or name == "acosh"                     # which is defined from 1 on
