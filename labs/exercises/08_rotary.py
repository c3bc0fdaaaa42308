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

        # Hint 1: Change a alone: which of a′ and b′ change, and how fast? Both have a gradient, dy_a and dy_b.
        # Hint 2: The chain rule sums over the two paths, each with its slope: cos φ and …?
        da = ...                                         # (…, T, m/2)

        # Hint 1: The same for b. One of the two slopes is negative.
        # Hint 2: Compare da and db with the forward: by which angle have dy_a and dy_b been turned?
        db = ...                                         # (…, T, m/2)

        # Hint 1: da and db go back to the places that a and b were taken from: even ones and odd ones.
        # Hint 2: np.stack([…], axis=-1) puts each da next to its db, (…, T, m/2, 2); x.shape is what you want.
        dx = ...                                         # (…, T, m)
        return dx

    return y, backward


# To think about
#
# a) How long is dx, compared with dy? What does that mean for a gradient that passes through many layers?
# b) A query q is turned by φ, a key k by ψ. Write their product q′·k′ with one rotation instead of two. What happens to
#    it if both words move 100 places to the right?
# c) Why are there slow pairs and fast pairs, and not one angle for all? With one radian for all of them, at which
#    distance would a key look almost as if it were the neighbour?
