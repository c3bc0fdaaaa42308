"""Exercise 8: rotary positions, or the way back of a rotation

How does a transformer of today know the order of its words? It takes the m entries of a query, and of a key, as m/2
pairs (a, b), and turns each pair like the hand of a clock, by an angle φ that grows with the word's position t:

    a′ = a·cos φ − b·sin φ
    b′ = a·sin φ + b·cos φ                              φ = t·base^(−2i/m) for pair i = 0 … m/2 − 1

The first pair turns by one radian from word to word, the last ones hardly at all. Nothing in it is learned, but the
gradient has to pass through it, on its way to the weights of queries and keys.

You will understand: why the backward of a rotation is a rotation, too, and why queries and keys that are turned know
only how far they are from each other.

    mini-tf gradcheck labs/exercises/08_rotary.py::rotary
"""

import numpy as np


def rotary(x, base=10.0):
    """Each pair (x_2i, x_2i+1) of row t turned by φ = t·base^(−2i/m)

    Example: x (2, 5, 6)
    """
    T, m = x.shape[-2:]
    phi = np.arange(T)[:, None] * base ** (-2 * np.arange(m // 2) / m)           # (T, m/2)
    cos, sin = np.cos(phi), np.sin(phi)
    a, b = x[..., 0::2], x[..., 1::2]                    # (…, T, m/2)
    y = np.empty_like(x)
    y[..., 0::2] = a * cos - b * sin
    y[..., 1::2] = a * sin + b * cos

    def backward(dy):                                    # keeps cos, sin
        dy_a, dy_b = dy[..., 0::2], dy[..., 1::2]        # what comes back to a′ and b′

        # a acts on both: ∂a′/∂a = cos φ and ∂b′/∂a = sin φ.
        da = dy_a * cos + dy_b * sin                     # (…, T, m/2)

        # b, too: ∂a′/∂b = −sin φ and ∂b′/∂b = cos φ. Together: (dy_a, dy_b) turned by −φ.
        db = dy_b * cos - dy_a * sin                     # (…, T, m/2)

        # Every entry of x is an a or a b: dx has them in the same places.
        dx = np.stack([da, db], axis=-1).reshape(x.shape)        # (…, T, m)
        return dx

    return y, backward


# To think about
#
# a) How long is dx, compared with dy? What does that mean for a gradient that passes through many layers?
# b) A query q is turned by φ, a key k by ψ. Write their product q′·k′ with one rotation instead of two. What happens to
#    it if both words move 100 places to the right?
# c) Why are there slow pairs and fast pairs, and not one angle for all? With one radian for all of them, at which
#    distance would a key look almost as if it were the neighbour?


# Answers
#
# a) As long as dy: a rotation changes no length, so a gradient neither vanishes nor explodes on its way through.
# b) q′·k′ = (R_φ q)ᵀ(R_ψ k) = qᵀ·R_(ψ−φ)·k, because R_φᵀ = R_(−φ) and angles add. Both angles grow by the same
#    amount, so their difference stays, and the product with it: it depends on the distance alone.
# c) At 45, for example, since 44 radians are almost exactly 7 turns. The slow pairs tell 1 from 45, the fast ones 1
#    from 2.
