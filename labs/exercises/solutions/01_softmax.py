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
        # Quotient rule, S = Σ_j exp(z_j), so ∂S/∂z_j = exp(z_j):
        #     i = j:   (exp(z_i)·S − exp(z_i)·exp(z_i)) / S²  =  y_i·(1 − y_i)
        #     i ≠ j:   −exp(z_i)·exp(z_j) / S²                =  −y_i·y_j
        # In the chain rule, −y_i·y_j for every i and an extra y_j for i = j:
        #     dz_j = Σ_i dy_i·∂y_i/∂z_j = dy_j·y_j − Σ_i dy_i·y_i·y_j = y_j·(dy_j − Σ_i y_i·dy_i)
        dz = y * (dy - (y * dy).sum(-1, keepdims=True))  # (…, k)
        return dz

    return y, backward


# To think about
#
# a) What is dz when dy is all ones? Answer before you compute it: what is the sum of y, whatever z is?
# b) What is the sum of a row of dz, whatever dy is? What has that to do with the line that subtracts the largest z?


# Answers
#
# a) Zero. The sum of y is 1 whatever z is, and with dy all ones the loss is that sum: nothing to gain. (This is why the
#    checker never asks with dy = 1.) In the formula: Σ y_i·1 = 1, so dz = y·(1 − 1).
# b) Zero: Σ_j dz_j = Σ_j y_j·dy_j − 1·Σ_i y_i·dy_i. Adding the same number to all z of a row changes no y, and so not
#    the loss, and the slope in that direction is Σ_j dz_j. Subtracting the largest z is such a step, so the backward
#    needs no term for it.
