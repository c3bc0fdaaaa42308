"""The blanks of lab 06: the readout and its loss, with their gradients, and the two steps of generating text."""

from _blanks import Blank, both, gradients, same

import numpy as np

rng = np.random.default_rng(6)
Phi, A = rng.standard_normal((3, 4, 2)), rng.standard_normal((8, 5))     # (B, T, n), (T·n, c)
logits, targets = rng.standard_normal((3, 5)), np.array([4, 0, 4])       # (B, c), (B,)


def mean_surprise(logits, targets):
    """The mean of −ln p of the right words, one after the other."""
    return np.mean([np.log(sum(np.exp(z - z[target]))) for z, target in zip(logits, targets)])


def loss_only(check):
    """A check of a loss function's first value."""

    def checked(function):
        def cross_entropy(logits, targets):
            result = function(logits, targets)
            return result[0] if isinstance(result, tuple) else result

        return check(cross_entropy)

    return checked


def drawn_one_by_one(pi, u):
    words = []
    for shares, point in zip(pi, u):
        word = 0
        while point >= shares[word]:
            point -= shares[word]
            word += 1
        words.append(word)
    return np.array(words)


def toy_scores(X):
    """Scores of seven words that depend on every word of a history, absent ones too, and on its place."""
    assert X.ndim == 2, f"scores was given an array of shape {X.shape}, expected (1, T)"
    return np.sin(np.arange(7) * (1 + (X * np.arange(2, 2 + X.shape[1])).sum()))[None]


def written_from_the_end(scores, prompt, T, words, choose):
    text = [-1] * T + list(prompt)
    while len(text) < T + len(prompt) + words:
        text.append(int(choose(scores(np.array([text[-T:]])))[0]))
    return np.array(text[T + len(prompt) :])


def most_probable(logits):
    return logits.argmax(-1)


shares = rng.dirichlet(np.ones(6), 40)                   # (40, 6)

BLANKS = [
    Blank("vec_readout.backward", [
        "`rows` are multiplied by A, as in any linear layer: which two gradients does a product of matrices send back?",
        "A was used by all B histories, so its gradient is a sum over them; a product of matrices does that sum. The "
        "transposes have to make (T·n, c) of (B, T·n) and (B, c).",
        "The gradient of `rows` is (B, T·n), but Φ was (B, T, n): undo what the first line of the forward did.",
    ], gradients(lambda f: (f, Phi, A))),
    Blank("cross_entropy", [
        "Forward: softmax, then of each row the probability of its target: index pi with the numbers of the rows and "
        "the targets.",
        "Its logarithm is below 0; the loss is not. The source forgets what turns one into the other.",
        "Backward: the derivative of −log π_target with respect to logit i is π_i, minus 1 at the target.",
        "The loss is a mean over B rows, so each row's gradient has a factor. And the backward takes "
        "dloss, and returns two values.",
    ], both(loss_only(same(mean_surprise, (logits, targets), (3 * logits, targets))),
            gradients(lambda f: (f, logits, targets)))),
    Blank("draw", [
        "Lay the probabilities of a row end to end on [0, 1). Where do the pieces end?",
        "np.cumsum over the last axis gives the ends. The piece of u is the first that ends after it.",
        "Comparing the ends with u[:, None] gives False … False True … True in each row; argmax finds the first True.",
    ], same(drawn_one_by_one, (shares, rng.random(40)), (shares[::-1], rng.random(40)),
            (np.array([[0.25, 0.0, 0.75]] * 3), np.array([0.0, 0.25, 0.99])))),
    Blank("write", [
        "X always has T words: the last T of the prompt, with ABSENT in front of them if there are fewer.",
        "In each round: scores of X, a choice, and then a history without its first word, and with the new one.",
        "scores and choose work on batches: X[None] is a batch of one, and choose(…)[0] is its word.",
        "What is returned is only what was written, without the prompt, as an array.",
    ], same(written_from_the_end, *((toy_scores, np.array(prompt, dtype=int), 4, 12, most_probable)
                                    for prompt in ([1, 2, 3, 4], [5, 6], [], [0, 1, 2, 3, 4, 5, 6])))),
]  # fmt: skip
