"""Classifiers that a neural classifier of texts has to beat: naive Bayes and logistic regression on word counts.

    counts = word_counts(texts, c)                       # (N, c), sparse
    model = NaiveBayes(counts, labels, classes)          # or LogisticRegression(counts, labels, classes)
    accuracy(model.predict(word_counts(test_texts, c)), test_labels)

Neither sees the order of the words. Both are linear: logits = features·W + b. Naive Bayes counts W and b, logistic
regression finds the best ones, and takes any features: on the vectors of a trained model it is a linear probe, which
shows what can be read off them.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from mini_tf import ops
from mini_tf.backend import to_host
from mini_tf.checks import is_number
from mini_tf.errors import UserError
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import checked_ids, checked_labels, log_softmax
from mini_tf.models.options import check_sizes
from mini_tf.types import Array, Backward

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

Features: TypeAlias = Array | sparse.sparray             # (N, d), dense or sparse
MOST_STEPS = 10_000              # of L-BFGS
SLOPE = 1e-6                     # it stops when no entry of the gradient, in the units of _minimum, is larger


def word_counts(texts: Iterable[ArrayLike], c: int) -> sparse.csr_array:
    """How often each word occurs in each text:  a csr_array (N, c), float64

    texts   N integer arrays of word ids, 0 … c − 1, of any lengths. −1 is padding, and is not counted
    Raises UserError for ids outside the vocabulary, and for a text that is no row of integers.
    """
    check_sizes(c=c)
    rows = [np.zeros(0, dtype=np.int64)]
    for number, text in enumerate(texts):
        words = checked_ids(text, c, f"word_counts: text {number}", least=ABSENT)
        rows.append(words[words != ABSENT])
    starts = np.cumsum([len(row) for row in rows])
    ids = np.concatenate(rows)
    counts = sparse.csr_array((np.ones(len(ids)), ids, starts), shape=(len(rows) - 1, c))
    counts.sum_duplicates()
    return counts


class LinearClassifier:
    """p(class | features) = softmax(features·W + b), with W (d, classes) and b (classes,) in double precision."""

    W: Array
    b: Array

    def log_probabilities(self, features: Features) -> Array:
        """ln p of each class:  features (N, d), dense or sparse → (N, classes)

        Raises UserError when the model was made from features of another width.
        """
        return log_softmax(_checked_features(features, len(self.W)) @ self.W + self.b)

    def predict(self, features: Features) -> Array:
        """The most probable class of each row, the first one of equals:  features (N, d) → (N,) int"""
        return self.log_probabilities(features).argmax(-1)


class NaiveBayes(LinearClassifier):
    """p(class | text) ∝ p(class)·Π_w p(w | class)^count(w),   as if each word were drawn from its class on its own

    p(class)     = texts of the class / N
    p(w | class) = (count(w in the class) + k) / (words in the class + k·c)

    counts    (N, c), from word_counts, or dense
    labels    (N,) integers, 0 … classes − 1
    k         is added to every count, k > 0, so that no word is impossible
    W = ln p(w | class), (c, classes), and b = ln p(class): a text with no words gets p(class).
    Raises UserError for counts below 0, for labels that do not fit, and for a class without a text.
    Source: Manning, Raghavan, Schütze 2008, Introduction to Information Retrieval, chapter 13; there, k = 1
    """

    def __init__(self, counts: Features, labels: ArrayLike, classes: int, k: float = 1.0):
        counts, labels = _checked_training(counts, labels, classes)
        _check_positive("k", k, "at 0, a word that a class never used would be impossible")
        if counts.shape[1] and counts.min() < 0:
            raise UserError(f"a count is {counts.min():g}, expected none below 0; for other features than counts, try "
                            "LogisticRegression")  # fmt: skip
        in_class = np.eye(classes)[labels]               # (N, classes): 1 at the label
        totals = counts.T @ in_class + k                 # (c, classes)
        self.W = np.log(totals) - np.log(totals.sum(0))
        self.b = np.log(in_class.mean(0))


def regression_loss(features: Features, labels: Array, W: Array, b: Array, penalty: float) -> tuple[float, Backward]:
    """loss = mean over rows of −ln softmax(features·W + b)[label] + penalty/(2N)·‖W‖²

    features (N, d) dense or sparse, labels (N,) int, W (d, classes), b (classes,)  →  loss, a scalar
    dW = featuresᵀ·dlogits + dloss·penalty/N·W,   db = Σ dlogits;   the backward gives these two, and none for the
    features. Times N it is the usual form: the sum of the losses + penalty/2·‖W‖².
    Source: Manning, Raghavan, Schütze 2008, chapter 15; Hoerl, Kennard 1970 (the penalty)
    """
    N = len(labels)
    loss, loss_backward = ops.cross_entropy(features @ W + b, labels)

    def backward(dloss: float = 1.0) -> tuple[Array, Array]:         # keeps features and W
        dlogits, _ = loss_backward(dloss)                # (N, classes)
        return features.T @ dlogits + dloss * penalty / N * W, dlogits.sum(0)

    return loss + penalty / (2 * N) * (W * W).sum(), backward


class LogisticRegression(LinearClassifier):
    """p(class | features) = softmax(features·W + b), with the W and b that minimize `regression_loss`

    features      (N, d), word counts or any others, dense or sparse
    labels        (N,) integers, 0 … classes − 1
    penalty       of ‖W‖², above 0: without one, classes that can be separated would have no best W
    standardize   shift and scale each dense feature to mean 0 and variance 1 over the training rows, before the penalty
                  is applied; a feature that is constant there gets weight 0. W and b apply to the original features

    The minimum is unique, but for a number added to all of b; here b sums to 0, unless features are standardized.
    Raises UserError for labels that do not fit, for a class without a text, and if L-BFGS does not get to the minimum.
    Source: see regression_loss; Byrd et al. 1995 (L-BFGS-B); Alain, Bengio 2016, arXiv:1610.01644 (linear probes)
    """

    def __init__(
        self, features: Features, labels: ArrayLike, classes: int, penalty: float = 1.0, standardize: bool = False
    ):
        features, labels = _checked_training(features, labels, classes)
        _check_positive("penalty", penalty, "at 0, classes that can be separated would have no best W")
        if not standardize:
            self.W, self.b = _minimum(features, labels, classes, penalty)
            return
        if sparse.issparse(features):
            raise UserError("standardize: the features are sparse, and would not be after it; try features.toarray()")
        mean, factor = features.mean(0), _one_over_deviation(features)
        W, b = _minimum((features - mean) * factor, labels, classes, penalty)
        self.W = factor[:, None] * W
        self.b = b - mean @ self.W


def _minimum(features: Features, labels: Array, classes: int, penalty: float) -> tuple[Array, Array]:
    """W and b at the minimum of regression_loss, from W = 0 and b = 0.

    L-BFGS moves V = [W; b]/scale, in which the loss curves alike in all directions: "the" may occur 100 times
    in a text, and most words in only one of 10,000 texts.
    """
    from scipy.optimize import minimize  # here, because it takes almost half a second to import

    scale = _scale(features, penalty)                    # (d + 1, 1)

    def loss_and_gradient(V: Array) -> tuple[float, Array]:
        W_and_b = scale * V.reshape(-1, classes)
        loss, backward = regression_loss(features, labels, W_and_b[:-1], W_and_b[-1], penalty)
        return loss, (scale * np.vstack(backward())).ravel()

    options = {"maxiter": MOST_STEPS, "maxfun": 2 * MOST_STEPS, "gtol": SLOPE, "ftol": 0}
    found = minimize(loss_and_gradient, np.zeros(scale.size * classes), method="L-BFGS-B", jac=True, options=options)
    slope = abs(found.jac).max()
    if not slope <= SLOPE:
        raise UserError(f"LogisticRegression: the gradient has an entry of {slope:.1e} after {found.nit:,} steps, "
                        f"expected at most {SLOPE}; try standardize=True, or a larger penalty")  # fmt: skip
    W_and_b = scale * found.x.reshape(-1, classes)
    return W_and_b[:-1], W_and_b[-1]


def _scale(features: Features, penalty: float) -> Array:
    """1/√(mean of x²/4 + penalty/N) of each feature x, and of the feature 1 of b, without a penalty:  (d + 1, 1)

    The second derivative of the loss by an entry of W is mean of x²·p·(1 − p), + penalty/N, and p·(1 − p) ≤ 1/4.
    """
    N = features.shape[0]
    curvature = np.asarray((features * features).sum(0)) / (4 * N) + penalty / N
    return np.append(curvature, 1 / 4)[:, None] ** -0.5


def _one_over_deviation(features: Array) -> Array:
    """1/√variance of each feature, (N, d) → (d,);  0 for a constant one, whose variance rounding may put above 0"""
    changes = features.max(0) > features.min(0)
    return np.divide(1, features.std(0), out=np.zeros(features.shape[1]), where=changes)


def _checked_features(features: Any, width: int | None = None) -> Any:
    """Features (N, width) in double precision, a csr_array if they are sparse. Raises UserError if they do not fit."""
    if sparse.issparse(features):
        features = sparse.csr_array(features, dtype=np.float64)
        numbers = features.data
    else:
        numbers = features = to_host(features).astype(np.float64)
    if features.ndim != 2 or width not in (None, features.shape[1]):
        expected = "(N, d)" if width is None else f"(N, {width}), as in training"
        raise UserError(f"the features have shape {features.shape}, expected {expected}")
    if not np.isfinite(numbers).all():
        raise UserError("the features have infinite entries or some that are not numbers (NaN), expected finite ones")
    return features


def _checked_training(features: Any, labels: ArrayLike, classes: int) -> tuple[Any, Array]:
    """Features and labels to learn from. Raises UserError if they do not fit, or if a class has no text."""
    check_sizes(classes=classes)
    features, labels = _checked_features(features), checked_labels("labels", labels, classes)
    if features.shape[0] != len(labels):
        raise UserError(f"there are {features.shape[0]} rows of features and {len(labels)} labels, expected one label "
                        "for each row")  # fmt: skip
    unseen = np.flatnonzero(np.bincount(labels, minlength=classes) == 0)
    if unseen.size:
        raise UserError(f"no label is {unseen[0]}, expected at least one text of each of the {classes} classes; try "
                        "more texts, or number the classes that occur from 0")  # fmt: skip
    return features, labels


def _check_positive(name: str, value: Any, why: str) -> None:
    if not is_number(value) or not 0 < value < np.inf:
        raise UserError(f"{name} is {value!r}, expected a number above 0: {why}")
