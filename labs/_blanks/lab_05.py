"""The blanks of lab 05: a head, the squared error of an average with its gradients, and the table of averages."""

from _blanks import Blank, both, gradients, same

import numpy as np

rng = np.random.default_rng(5)
X, matrices = rng.standard_normal((5, 6)), rng.standard_normal((3, 6, 3))    # (T, n); Q, K, V, each (n, m)
W = rng.standard_normal((3, 6))                          # (m, n)
Phi, x = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 3))         # (B, T, n), (B, n)
vectors, mean = rng.standard_normal((5, 3)), rng.standard_normal(3)          # (c, n), (n,)


def word_by_word(X, Q, K, V, W):
    """(13) and (14) for one pair of words after the other."""
    T = len(X)
    A, Y = np.zeros((T, T)), np.zeros(X.shape)
    for t in range(T):
        weights = [np.exp(sum(a * b for a, b in zip(Q.T @ X[t], K.T @ X[s]))) for s in range(T)]
        for s in range(T):
            A[t, s] = weights[s] / sum(weights)
            Y[t] += A[t, s] * (W.T @ (V.T @ X[s]))
    return A, Y


def entry_by_entry(Phi, x):
    B, T, n = Phi.shape
    return sum((sum(Phi[b, t, i] for t in range(T)) / T - x[b, i]) ** 2 for b in range(B) for i in range(n)) / (B * n)


def loss_only(check):
    """A check of a loss function's first value."""

    def checked(function):
        def average_error(Phi, x):
            result = function(Phi, x)
            return result[0] if isinstance(result, tuple) else result

        return check(average_error)

    return checked


def followed_one_by_one(words, vectors, mean_vector, delta):
    rows = []
    for word in range(len(vectors)):
        after = [vectors[after] for before, after in zip(words, words[1:]) if before == word]
        rows.append((sum(after) + delta * mean_vector) / (len(after) + delta))
    return np.array(rows)


BLANKS = [
    Blank("one_head", [
        "Queries, keys and values are three products of X. Each is (T, m): a row for each word.",
        "The score of words t and s is query t times key s: one product of matrices makes all of them, (T, T), if one "
        "of the two is transposed.",
        "ops.softmax gives its result and a backward; here only the result is wanted. It works on the last axis, so "
        "each row sums to 1.",
        "Row t of A weighs the values, and W takes the sum from m entries back to n. Return A and Y.",
    ], same(word_by_word, (X, *matrices, W), (X[:1], *matrices, W), (X, *-matrices, W))),
    Blank("average_error", [
        "Forward: x̂ is the mean over the axis of the words, T. The loss is the mean over all B·n entries of (x̂ − x)².",
        "Backward: the derivative of a mean of squares is 2·(x̂ − x), divided by the number of entries that the mean is "
        "over, and times dloss. x has the opposite sign to x̂.",
        "Every word of a history has the same share in x̂, 1/T: so each row of dΦ is the gradient of x̂, divided by T.",
        "dΦ has Φ's shape: repeat that row T times along axis 1.",
    ], both(loss_only(same(entry_by_entry, (Phi, x), (3 * Phi, x[::-1]))), gradients(lambda f: (f, Phi, x)))),
    Blank("mean_followers", [
        "First the pairs: word words[i] is followed by words[i + 1]. The last word of the text is followed by none.",
        "Let N be the matrix (c, c) of how often word i is followed by word j. Then N times the vectors is, row by "
        "row, the sum of the vectors that followed.",
        "sparse.csr_array((ones, (rows, columns)), shape=(c, c)) adds up the ones that fall on the same entry.",
        "How many words followed each: the sums of N's rows. δ more are added to them, each with the mean vector.",
    ], same(followed_one_by_one, (np.array([0, 1, 2, 1, 2, 0, 1, 3]), vectors, mean, 5),
            (rng.integers(5, size=40), vectors, mean, 0.5), within=1e-6)),
]  # fmt: skip
