"""Exercise 7: LSTM, or a gradient on its way back through time

An LSTM reads one word x_t after the other. It keeps a cell c, to which each step adds, and shows a part of it as h:

    a = x_t·Wx + h_{t−1}·Wh + b                         (B, 4k), cut into a_i, a_f, a_g, a_o, each (B, k)
    i = σ(a_i),   f = σ(a_f),   g = tanh(a_g),   o = σ(a_o)
    c_t = f·c_{t−1} + i·g,   h_t = o·tanh(c_t)          x (B, T, n)  →  y (B, T, k), the states h_1 … h_T

So x_1 reaches the last state through every step in between, and its gradient has to come back through every step: from
t = T down, each step hands to the one before what it owes to h_{t−1} and to c_{t−1}.

You will understand: why a network that repeats itself adds up its gradients, and why the way back along the cell is one
on which a gradient need not vanish and cannot explode.

    mini-tf gradcheck labs/exercises/07_lstm.py::lstm
"""

import numpy as np


def sigmoid(a):
    """σ(a) = 1 / (1 + exp(−a)), which has the slope σ·(1 − σ)"""
    return 1 / (1 + np.exp(-a))


def lstm(x, Wx, Wh, b):
    """h_1 … h_T, from h_0 = c_0 = 0

    Example: x (2, 4, 3), Wx (3, 8), Wh (2, 8), b (8,)
    """
    (B, T, _), k = x.shape, len(Wh)
    h, c, y, steps = np.zeros((B, k)), np.zeros((B, k)), np.empty((B, T, k)), []
    for t in range(T):
        a_i, a_f, a_g, a_o = np.split(x[:, t] @ Wx + h @ Wh + b, 4, axis=1)              # (B, k) each
        i, f, g, o = sigmoid(a_i), sigmoid(a_f), np.tanh(a_g), sigmoid(a_o)
        h_before, c_before = h, c
        c = f * c_before + i * g
        tanh_c = np.tanh(c)
        h = y[:, t] = o * tanh_c
        steps.append((h_before, c_before, i, f, g, o, tanh_c))

    def backward(dy):                                    # keeps x, Wx, Wh, steps
        dx, dWx, dWh, db = np.empty_like(x), np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)
        dh_next, dc_next = np.zeros((B, k)), np.zeros((B, k))            # what step t + 1 hands back to h_t and c_t
        for t in reversed(range(T)):
            h_before, c_before, i, f, g, o, tanh_c = steps[t]
            dh = dy[:, t] + dh_next                      # h_t is y_t, and step t + 1 reads it, too: both add

            # h_t = o·tanh(c_t), entry by entry: ∂h/∂o = tanh(c_t).
            do = dh * tanh_c                             # (B, k)

            # c_t acts on h_t, ∂h/∂c = o·(1 − tanh²(c_t)), and on step t + 1, from which dc_next has come: both add.
            dc = dc_next + dh * o * (1 - tanh_c * tanh_c)                # (B, k)

            # c_t = f·c_{t−1} + i·g: two products, whose factors get dc times the other factor. Three of them:
            di, df, dg = dc * g, dc * c_before, dc * i

            # And the fourth, c_{t−1}: ∂c_t/∂c_{t−1} = f. The next round of this loop is step t − 1.
            dc_next = dc * f                             # (B, k)

            # Back through the gates: σ has the slope σ·(1 − σ), tanh 1 − tanh². In the order in which a was cut.
            da = np.concatenate([di * i * (1 - i), df * f * (1 - f), dg * (1 - g * g), do * o * (1 - o)], 1)  # (B, 4k)

            # a = x_t·Wx + h_{t−1}·Wh + b, two linear maps as in exercise 4. Of the first, and of b:
            dx[:, t] = da @ Wx.T
            dWx = dWx + x[:, t].T @ da                   # every step uses the same Wx: its gradients add
            db = db + da.sum(0)

            # The second, with h_{t−1} in the place of x_t. It is handed to step t − 1; and Wh is that of all steps.
            dh_next = da @ Wh.T                          # (B, k)
            dWh = dWh + h_before.T @ da                  # (k, 4k)

        return dx, dWx, dWh, db

    return y, backward


# To think about
#
# a) In every step f is 1 and i is 0. What is c_T? What comes back to c_0 from a loss that reads c_T alone, and after
#    how many steps would that have vanished? And with f = 0.9?
# b) The other way back goes through h. By what is a gradient multiplied there, in each step? In a plain recurrent
#    network, h_t = tanh(x_t·Wx + h_{t−1}·Wh + b), there is no other.
# c) At first, Wx and Wh are small. What is f about, if b is 0, and if b is 3 for a_f? Which would you choose, for a
#    word that matters 20 steps later?


# Answers
#
# a) c_T = c_0, and dc goes from step to step as it is: all of it comes back, after any number of steps. With f = 0.9 it
#    is 0.9^T: 0.12 after 20 steps. No product of f's is larger than 1, so along the cell no gradient can explode.
# b) By the slopes of the gates, of which σ's are at most 1/4, and by Whᵀ, a matrix. T products with a matrix shrink or
#    grow like the T-th power of a number, and only by luck does this stay near 1.
# c) σ(0) = 0.5, and 0.5^20 is 0.000001; σ(3) = 0.953, and 0.953^20 is 0.38. A network can only learn to keep a word if
#    some gradient comes back to it from where it matters, so let it begin by keeping: b > 0 for a_f.
