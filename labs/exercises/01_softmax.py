"""Exercise 1: softmax, and what a backward is

Softmax turns a row of numbers into probabilities:

    y_i = exp(z_i) / Σ_j exp(z_j)              z (…, k)  →  y (…, k), each row sums to 1

A function here returns two things, its result and its own backward:

    y, backward = softmax(z)
    dz = backward(dy)

Somewhere further on there is a loss, one number. dy has the shape of y, and dy_i says how fast the loss rises with y_i.
Your backward answers the same question for z: how fast does it rise with z_j? It needs only dy and what the forward has
already computed.

You will understand: why every z of a row moves every y of that row, and how the k×k derivatives between them fold into
one short line that never builds a k×k matrix.

Fill the blank (...) and ask, as often as you like:

    mini-tf gradcheck labs/exercises/01_softmax.py::softmax
"""

import numpy as np


def softmax(z):
    """y_i = exp(z_i) / Σ_j exp(z_j) over the last axis

    Example: z (2, 5)
    """
    e = np.exp(z - z.max(-1, keepdims=True))             # minus the largest: it cancels, and exp cannot overflow
    y = e / e.sum(-1, keepdims=True)

    def backward(dy):                                    # keeps y
        # Hint 1: Think of one row. z_j moves every y_i, so the chain rule sums over all paths from z_j to the loss:
        #         dz_j = Σ_i dy_i · ∂y_i/∂z_j
        # Hint 2: Find ∂y_i/∂z_j with the quotient rule, once for i = j and once for i ≠ j. Write both in terms of y,
        #     with no exp left: exp(z_i)/Σ is y_i.
        # Hint 3: Put them into the sum. The expression for i ≠ j fits every i, and i = j adds one more term.
        # Hint 4: Take y_j out of the bracket. What is left is a sum over the whole row, the same for each j: shape
        #     (…, 1), which keepdims=True gives.
        dz = ...                                         # (…, k)
        return dz

    return y, backward


# To think about
#
# a) What is dz when dy is all ones? Answer before you compute it: what is the sum of y, whatever z is?
# b) What is the sum of a row of dz, whatever dy is? What has that to do with the line that subtracts the largest z?
