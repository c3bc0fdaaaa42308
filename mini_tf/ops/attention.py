"""Attention: every query takes a weighted mean of the values whose keys it may see."""

from mini_tf.backend import array_module
from mini_tf.ops.op import op
from mini_tf.ops.shapes import sum_to, transpose
from mini_tf.ops.softmax import masked_softmax, softmax
from mini_tf.types import Array, Backward, Gradients


@op("query (…, Tq, m), key (…, Tk, m), value (…, Tk, d), mask (*) bool, bias (*)")
def attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, scale: float = 1.0, bias: Array | None = None,
) -> tuple[Array, Backward]:  # fmt: skip
    """Y = A·V,   A = softmax(S) over the keys,   S = scale·Q·Kᵀ + bias

    query (…, Tq, m), key (…, Tk, m), value (…, Tk, d), mask bool, True where query i may see key j, and bias, both
    broadcast against (…, Tq, Tk)  →  Y (…, Tq, d)

    dA = dY·Vᵀ,   dV = Aᵀ·dY                                       from  Y = A·V
    dS = A·(dA − Σ_j A_j·dA_j), in each row                        from  A = softmax(S)
    dQ = scale·dS·K,   dK = scale·dSᵀ·Q,   dbias = Σ dS            from  S = scale·Q·Kᵀ + bias
    None for the mask.  Q, K, V, S are `query`, `key`, `value`, `scores`

    A query that may see no key gets a row of zeros: there is none (Tk = 0), the mask is False for all of them, or the
    bias is −∞ for all of them. The lab's attention has scale 1; Vaswani's has 1/√m, which keeps the scores of long
    vectors from saturating the softmax.
    Source: ESE-2000 Lab 6, equations (13) and (14), a word per row; Vaswani et al. 2017, arXiv:1706.03762
    """
    scores = scale * (query @ transpose(key))            # (…, Tq, Tk)
    if bias is not None:
        scores = scores + bias
        if mask is None:
            mask = scores != -array_module(scores).inf   # a bias of −∞ hides a key, as a mask does
    if mask is None:
        A, softmax_backward = softmax(scores)
    else:
        A, softmax_backward = masked_softmax(scores, mask)

    def backward(dY: Array) -> Gradients:                # keeps query, key, value, A
        dA = dY @ transpose(value)                       # (…, Tq, Tk)
        dvalue = transpose(A) @ dY                       # (…, Tk, d)
        dscores = softmax_backward(dA) if mask is None else softmax_backward(dA)[0]
        dquery = scale * (dscores @ key)                 # (…, Tq, m)
        dkey = scale * (transpose(dscores) @ query)      # (…, Tk, m)
        dbias = None if bias is None else sum_to(dscores, bias.shape)
        return dquery, dkey, dvalue, None, dbias

    return A @ value, backward                           # (…, Tq, d)


@op("query (…, H, Tq, m), key (…, G, Tk, m), value (…, G, Tk, d), mask (*) bool")
def grouped_attention(
    query: Array, key: Array, value: Array, mask: Array | None = None, scale: float = 1.0
) -> tuple[Array, Backward]:
    """Y^h = attention(Q^h, K^g, V^g),   g = ⌊h·G/H⌋: each of G heads of keys and values serves H/G heads of queries

    query (…, H, Tq, m), key (…, G, Tk, m), value (…, G, Tk, d), mask as in attention  →  Y (…, H, Tq, d)
    dQ^h is attention's;   dK^g and dV^g are sums over the query heads that they serve. None for the mask

    With G < H fewer keys and values have to be cached while a text is written; with G = H it is attention.
    Raises ValueError unless H is a multiple of G.
    Source: Ainslie et al. 2023, arXiv:2305.13245
    """
    H, G = query.shape[-3], key.shape[-3]
    if G == 0 or H % G:
        raise ValueError(f"grouped_attention: query has {H} heads and key {G}, expected a multiple of key's")
    xp = array_module(query)
    keys, values = xp.repeat(key, H // G, axis=-3), xp.repeat(value, H // G, axis=-3)            # (…, H, Tk, m or d)
    Y, attention_backward = attention(query, keys, values, mask, scale)

    def backward(dY: Array) -> Gradients:                # keeps what attention keeps
        dquery, dkeys, dvalues, _, _ = attention_backward(dY)
        return dquery, sum_of_groups(dkeys, G), sum_of_groups(dvalues, G), None

    return Y, backward


def sum_of_groups(x: Array, G: int) -> Array:
    """(…, H, T, m) → (…, G, T, m): the sum over each group of H/G neighbouring heads"""
    *leading, H, T, m = x.shape
    return x.reshape(*leading, G, H // G, T, m).sum(-3)
