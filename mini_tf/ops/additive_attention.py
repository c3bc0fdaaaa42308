"""Additive attention: the score of a query and a key is that of a small network with one hidden layer."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.ops.shapes import transpose
from mini_tf.ops.softmax import masked_softmax, softmax
from mini_tf.types import Array, Backward, Gradients


@op("query (…, Tq, m), key (…, Tk, m), value (…, Tk, d), v (m), mask (*) bool")
def additive_attention(
    query: Array, key: Array, value: Array, v: Array, mask: Array | None = None
) -> tuple[Array, Backward]:
    """Y = A·V,   A = softmax(S) over the keys,   S_ij = H_ij·v,   H_ij = tanh(Q_i + K_j)

    query (…, Tq, m), key (…, Tk, m), value (…, Tk, d), v (m,), mask bool, True where query i may see key j, broadcast
    against (…, Tq, Tk)  →  Y (…, Tq, d)

    dA = dY·Vᵀ,   dV = Aᵀ·dY                                       from  Y = A·V
    dS = A·(dA − Σ_j A_j·dA_j), in each row                        from  A = softmax(S)
    dv = Σ_ij dS_ij·H_ij,   dH_ij = dS_ij·v                        from  S = H·v
    dQ_i = Σ_j dH_ij·(1 − H_ij²),   dK_j = Σ_i dH_ij·(1 − H_ij²)   from  H = tanh(Q + K)
    None for the mask.  Q, K, V, S are `query`, `key`, `value`, `scores`

    H has (…, Tq, Tk, m) entries, m times as many as the scores: what ops.attention computes by one matrix product, and
    why that one is faster. A query that may see no key gets a row of zeros.
    Source: Bahdanau, Cho, Bengio 2015, arXiv:1409.0473; CMU 10-417 HW3a
    """
    H = array_module(query).tanh(query[..., :, None, :] + key[..., None, :, :])      # (…, Tq, Tk, m)
    scores = H @ v                                       # (…, Tq, Tk)
    A, softmax_backward = softmax(scores) if mask is None else masked_softmax(scores, mask)

    def backward(dY: Array) -> Gradients:                # keeps value, v, H, A
        dA = dY @ transpose(value)                       # (…, Tq, Tk)
        dvalue = transpose(A) @ dY                       # (…, Tk, d)
        dscores = softmax_backward(dA) if mask is None else softmax_backward(dA)[0]
        dv = dscores.reshape(-1) @ H.reshape(-1, len(v))
        dsum = dscores[..., None] * v * (1 - H * H)      # (…, Tq, Tk, m)
        return dsum.sum(-2), dsum.sum(-3), dvalue, dv, None

    return A @ value, backward                           # (…, Tq, d)
