"""Exercise 5: embedding, or how a gradient finds its way into a table

The vector of a word is a row of a table, and reading it is plain indexing:

    y = table[ids]                       table (c, n), ids (B, T), integers from 0 to c − 1  →  y (B, T, n)

There is nothing to calculate, and still there is a gradient: the rows of the table are learned. Forward copies rows
out. Backward has to bring something back for each copy, and a word that occurs five times was copied five times.

You will understand: that copying forward is adding backward (you have already used that for β, γ and b), and a trap
that NumPy sets for everyone who writes this the short way.

    mini-tf gradcheck labs/exercises/05_embedding.py::embedding
"""

import numpy as np


def embedding(table, ids):
    """y = table[ids]

    Example: table (7, 4), ids (2, 5) int < 7
    """
    y = table[ids]                                       # (B, T, n)

    def backward(dy):                                    # keeps ids and the shape of table
        # y = E·table gives dtable = Eᵀ·dy, as dW = xᵀ·da in exercise 4. Row i of Eᵀ has its ones where word i stands:
        #     dtable[i] = Σ dy over the places where word i stands
        # np.add.at adds once for every place, also where ids repeat.
        dtable = np.zeros(table.shape)                   # (c, n)
        np.add.at(dtable, ids, dy)
        return dtable, None                              # ids are integers: nothing to differentiate

    return y, backward


# To think about
#
# a) Try dtable = np.zeros(table.shape); dtable[ids] += dy. Which rows are wrong, and why?
# b) Which rows of dtable are zero? What does that mean for a word that occurs once in a million words?


# Answers
#
# a) Those of words that occur more than once. It reads dtable[ids], adds dy, and writes back: a word that occurs twice
#    is read twice before it is written, and the last to write wins. Only one of its gradients is kept.
# b) Those of words that are not in this batch. A rare word's vector is seldom moved and stays nearly what it was at the
#    start. So it is the rare words for which good starting vectors matter most.
