"""The blanks of lab 04: counting one pair and all pairs, nearest words, PPMI, answers by an offset, eigenvalues."""

from _blanks import Blank, same

import numpy as np

rng = np.random.default_rng(4)
TEXT = rng.integers(5, size=60).tolist()
COUNTS = np.array([9.0, 7, 7, 7, 4, 3, 3, 1, 1])
VECTORS = rng.standard_normal((12, 3))


def counted(words, i, j, W):
    """C_ij by pairs of places: every place of i with every place of j that is within W/2 of it."""
    places = [[t for t, word in enumerate(words) if word == wanted] for wanted in (i, j)]
    return sum(abs(t - u) <= W / 2 for t in places[0] for u in places[1])


def neighbours(words, half):
    return np.array([[counted(words, i, j, 2 * half) for j in range(5)] for i in range(5)])


def counts_of(function):
    """From words and half to the table that the function fills"""

    def count_neighbours(words, half):
        counts = np.zeros((5, 5), np.int64)
        function(np.array(words), half, counts)
        return counts

    return count_neighbours


def by_whole_matrix(q, strength, number):
    return np.linalg.eigvalsh(np.diag(q) + strength * np.outer(q, q))[::-1][:number]


def by_angle(vectors, i, allowed, number=5):
    """One word after the other: the largest cosine among those that are left."""
    cosines = [vectors[i] @ each / (np.linalg.norm(vectors[i]) * np.linalg.norm(each)) for each in vectors]
    left = sorted((j for j in range(len(vectors)) if allowed[j] and j != i), key=lambda j: -cosines[j])[:number]
    return np.array(left), np.array([cosines[j] for j in left])


def information_one_by_one(C_ij, r_i, r_j, S):
    return np.array([max(0, np.log(a) + np.log(S) - np.log(b) - np.log(c)) for a, b, c in zip(C_ij, r_i, r_j)])


def answered_one_by_one(vectors, questions, allowed, offset=True):
    """Each question's words in order of their cosine with the point"""
    x = [each / np.sqrt(each @ each) for each in vectors]
    right = 0
    for a, b, s, t in questions:
        point = x[b] - x[a] + x[s] if offset else x[s]
        left = [j for j in range(len(x)) if allowed[j] and j not in (a, b, s)]
        right += t in sorted(left, key=lambda j: -(x[j] @ point))[:5]
    return right / len(questions)


QUESTIONS = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [4, 5, 6, 7], [8, 9, 10, 11], [2, 9, 5, 0], [3, 8, 1, 11]])

BLANKS = [
    Blank("count_pair", [
        "Go through all places t where word i occurs. Each is the centre of a window.",
        "The window reaches from W/2 places before t to W/2 places after it, both ends and the centre included.",
        "At the beginning of the text a window is cut off: a negative start of a slice would count from the end. Add "
        "up how often j is in each window.",
    ], same(counted, (TEXT, 0, 1, 4), (TEXT, 3, 3, 10), (TEXT, 2, 4, 2))),
    Blank("count_neighbours", [
        "Two loops: over the centres t, and over the places u from t − half to t + half, t itself included.",
        "At both ends of the text the window is cut off: max(…, 0) and min(…, len(words)).",
        "Each place adds 1 to counts[words[t], words[u]]. Nothing is returned: counts is changed in place.",
    ], lambda function: same(neighbours, (TEXT, 1), (TEXT, 2), (TEXT[:8], 9))(counts_of(function))),
    Blank("nearest", [
        "The cosine of two vectors is the product of their directions, each vector divided by its length.",
        "With all directions as rows of a matrix, one product gives all cosines with word i.",
        "Neither word i itself nor a word that is not allowed may be returned: give them a cosine below −1, and sort.",
    ], same(by_angle, (VECTORS, 2, np.arange(12) % 3 != 1), (VECTORS, 7, np.ones(12, bool), 3))),
    Blank("ppmi", [
        "The ratio of what was counted to what chance predicts is C_ij·S/(r_i·r_j).",
        "Its logarithm is below 0 for pairs that meet less often than by chance: np.maximum(…, 0).",
    ], same(information_one_by_one, (np.array([1.0, 6, 40]), np.array([9.0, 20, 80]), np.array([70.0, 8, 80]), 200.0))),
    Blank("among_five", [
        "Divide each vector by its length first. questions.T has the four words of all questions, each as an array, so "
        "x[b] − x[a] + x[s] is a point for each question, (questions, n).",
        "One product gives the likeness of every point with every word, (questions, c). The length of a point does not "
        "change the order of its row.",
        "Words that may not be named, and a, b and s of each row, get −∞.",
        "The answer is among five if fewer than five words of its row are more alike: compare the row with its entry "
        "at t. np.mean of truth values is the share.",
    ], same(answered_one_by_one, (VECTORS, QUESTIONS, np.ones(12, bool)), (VECTORS, QUESTIONS, np.arange(12) != 8),
            (VECTORS, QUESTIONS, np.ones(12, bool), False))),
    Blank("model_eigenvalues", [
        "Sort the different counts, largest first, with how many words share each (np.unique can count).",
        "Each different count has one λ of the secular equation between it and the next larger one; the largest has "
        "one above it, at most strength·Σ q² away.",
        "Between those two the right side falls from +∞: find where it is 1 by a bracketing search such as brentq. "
        "Search for λ − count instead of λ, so that a λ very close to a count is not lost in rounding.",
        "Do not forget that a count shared by m words is an eigenvalue by itself, m − 1 times.",
    ], same(by_whole_matrix, (COUNTS, 0.05, 9), (COUNTS, 0.3, 4), (COUNTS[:2], 0.01, 2), within=1e-7)),
]  # fmt: skip
