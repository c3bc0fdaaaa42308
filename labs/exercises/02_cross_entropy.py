"""Exercise 2: cross-entropy, the loss of every language model

A model returns a row of numbers, the logits, one for each of the c words; the word that really came next is the target.
Softmax turns the logits into probabilities. The loss is how surprised the model is by the target, averaged over rows:

    loss = mean over rows of −log p[target],   p = softmax(logits)         logits (N, c), targets (N,)  →  one number

Because log p_t = z_t − log Σ_j exp(z_j), a row's loss is

    log Σ_j exp(z_j) − z_t

which needs no logarithm of a tiny probability, and is much easier to differentiate than it looks.

You will understand: why the gradient of so long a formula is "what the model said minus what was right", and where the
factor 1/N, so often forgotten, comes from.

    mini-tf gradcheck labs/exercises/02_cross_entropy.py::cross_entropy
"""

import numpy as np


def cross_entropy(logits, targets):
    """loss = mean over rows of log Σ_j exp(logits_j) − logits_target

    Example: logits (4, 6), targets (4,) int < 6
    """
    N, c = logits.shape
    shifted = logits - logits.max(-1, keepdims=True)     # the loss is the same: the largest cancels in the difference
    e = np.exp(shifted)
    total = e.sum(-1, keepdims=True)                     # (N, 1)
    of_target = shifted[np.arange(N), targets]           # (N,)
    loss = (np.log(total[:, 0]) - of_target).mean()

    def backward(dloss=1.0):                             # keeps e, total, targets
        # dloss is one number: how fast the final loss rises with this one. It is 1 if this is the final loss.
        # A row's loss has two terms, log Σ_i exp(z_i) and −z_t. Differentiate each with respect to one logit z_j.

        # Hint 1: The first term, log Σ_i exp(z_i): the derivative of log u is u′/u.
        # Hint 2: You know this fraction well: what is it called, and how do you get it from e and total?
        p = ...                                          # (N, c)

        # The second term is minus the target's own logit. Which logit that is, as a matrix over rows and words:
        onehot = np.eye(c)[targets]                      # (N, c), 1 at each row's target, else 0

        # Hint 1: The derivative of −z_t is one number for j = t and another for j ≠ t. Write it with onehot.
        # Hint 2: Add both terms. Two factors are still missing: one from the mean over rows, one from the chain rule.
        dlogits = ...                                    # (N, c)
        return dlogits, None                             # targets are integers: nothing to differentiate

    return loss, backward


# To think about
#
# a) What is the sum of each row of dlogits? So to which direction in the logits is the loss blind?
# b) The model is sure and right; it is sure and wrong; it thinks all words equally likely. How large is the gradient at
#    the target in each case? Could a single row's gradient become huge?
