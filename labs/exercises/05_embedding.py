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
        # Hint 1: The lookup is a product in disguise. Let E be the matrix with a row for each of the B·T places and a
        #     column for each of the c words, 1 where this word stands at this place and 0 elsewhere. Then
        #         y as (B·T, n)  =  E·table
        #     and you know from exercise 4 what comes back to the right factor of a product.
        # Hint 2: E is almost all zeros, so read what the product does: row i of dtable is the sum of dy over …?
        # Hint 3: Write it, in as many lines as you like: with E (np.eye makes it), or with a loop over places, or
        #     with np.add.at(dtable, ids, dy), starting from zeros. Not with dtable[ids] += dy: see question a.
        dtable = ...                                     # (c, n)
        return dtable, None                              # ids are integers: nothing to differentiate

    return y, backward


# To think about
#
# a) Try dtable = np.zeros(table.shape); dtable[ids] += dy. Which rows are wrong, and why?
# b) Which rows of dtable are zero? What does that mean for a word that occurs once in a million words?
