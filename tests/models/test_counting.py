"""Classifiers on word counts: the formulas by hand, the minimum from other sides, bad input."""

import math
from fractions import Fraction

from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.metrics import accuracy
from mini_tf.models import counting
from mini_tf.models.counting import LogisticRegression, NaiveBayes, regression_loss, word_counts

import numpy as np
import pytest
from scipy import sparse

CHINESE, BEIJING, SHANGHAI, MACAO, TOKYO, JAPAN = range(6)
CHINA, NOT_CHINA = 1, 0


def some_texts(rng, N=40, c=12, classes=3):
    """Texts of different lengths, some words of which are frequent in one class."""
    labels = np.arange(N) % classes
    p = rng.dirichlet(np.ones(c), classes)
    return [rng.choice(c, rng.integers(1, 15), p=p[label]) for label in labels], labels


def some_features(rng, N=30, d=4, classes=3):
    features, labels = rng.standard_normal((N, d)), np.arange(N) % classes
    features[:, 0] += labels
    return features, labels


def test_word_counts_by_hand():
    counts = word_counts([np.array([2, 0, 2]), np.array([], dtype=int), np.array([-1, 3, -1]), [1]], 4)
    assert isinstance(counts, sparse.csr_array)
    assert counts.dtype == np.float64
    assert counts.toarray().tolist() == [[1, 0, 2, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    assert word_counts([], 4).shape == (0, 4)
    assert word_counts([[], []], 4).toarray().tolist() == [[0] * 4] * 2


def test_padding_is_not_counted_and_order_does_not_matter(rng):
    texts, _ = some_texts(rng)
    padded = np.full((len(texts), 20), -1)
    for row, text in zip(padded, texts):
        row[rng.permutation(20)[: len(text)]] = text
    assert (word_counts(texts, 12) != word_counts(padded, 12)).nnz == 0
    assert word_counts(texts, 12).has_canonical_format


def test_naive_bayes_on_the_textbooks_example():
    """Manning, Raghavan, Schütze 2008, example 13.1: p(China | d5) ∝ 3/4·(3/7)³·1/14·1/14 ≈ 0.0003"""
    texts = [[CHINESE, BEIJING, CHINESE], [CHINESE, CHINESE, SHANGHAI], [CHINESE, MACAO], [TOKYO, JAPAN, CHINESE]]
    model = NaiveBayes(word_counts(texts, 6), [CHINA, CHINA, CHINA, NOT_CHINA], 2)
    china = Fraction(3, 4) * Fraction(3, 7) ** 3 * Fraction(1, 14) ** 2
    not_china = Fraction(1, 4) * Fraction(2, 9) ** 5
    assert round(float(china), 4) == 0.0003
    assert round(float(not_china), 4) == 0.0001
    d5 = word_counts([[CHINESE, CHINESE, CHINESE, TOKYO, JAPAN], []], 6)
    p = np.exp(model.log_probabilities(d5))
    np.testing.assert_allclose(p[0, CHINA], float(china / (china + not_china)), rtol=1e-12)
    np.testing.assert_allclose(p[1], [1 / 4, 3 / 4], rtol=1e-12)             # no words: the share of the class
    assert model.predict(d5).tolist() == [CHINA, CHINA]


@pytest.mark.parametrize("k", [0.1, 1, 5])
def test_naive_bayes_word_by_word(k, rng):
    texts, labels = some_texts(rng)
    log_p = NaiveBayes(word_counts(texts, 12), labels, 3, k).log_probabilities(word_counts(texts[:10], 12))
    for text, ours in zip(texts, log_p):
        joint = []
        for label in range(3):
            words = [word for other, its in zip(texts, labels) if its == label for word in other.tolist()]
            p = [(words.count(word) + k) / (len(words) + 12 * k) for word in text.tolist()]
            joint.append(math.prod(p) * (labels == label).mean())
        np.testing.assert_allclose(np.exp(ours), np.array(joint) / sum(joint), rtol=1e-10)


@pytest.mark.parametrize("make", [NaiveBayes, LogisticRegression])
def test_sparse_equals_dense(make, rng):
    texts, labels = some_texts(rng)
    counts = word_counts(texts, 12)
    of_sparse, of_dense = make(counts, labels, 3), make(counts.toarray(), labels, 3)
    expected = of_sparse.log_probabilities(counts)
    np.testing.assert_allclose(np.exp(expected).sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(of_dense.log_probabilities(counts.toarray()), expected, atol=1e-5)
    np.testing.assert_allclose(of_dense.log_probabilities(sparse.coo_array(counts)), expected, atol=1e-5)
    assert accuracy(of_sparse.predict(counts), labels) > 0.6


@pytest.mark.parametrize("make", [NaiveBayes, LogisticRegression])
def test_the_order_of_texts_and_of_words_does_not_matter(make, rng):
    texts, labels = some_texts(rng)
    order = rng.permutation(len(texts))
    shuffled = [rng.permutation(texts[i]) for i in order]
    log_p = make(word_counts(texts, 12), labels, 3).log_probabilities(word_counts(texts, 12))
    again = make(word_counts(shuffled, 12), labels[order], 3).log_probabilities(word_counts(shuffled, 12))
    np.testing.assert_allclose(again, log_p[order], atol=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_gradient_of_the_regression(kind, rng):
    features, labels = some_features(rng)
    W, b = rng.standard_normal((4, 3)), rng.standard_normal(3)
    assert gradcheck(lambda W, b: regression_loss(kind(features), labels, W, b, 0.7), W, b)


def test_the_loss_of_the_regression_by_hand(rng):
    features, labels = some_features(rng, N=6)
    W, b = rng.standard_normal((4, 3)), rng.standard_normal(3)
    total = sum(math.log(sum(np.exp(x @ W + b))) - (x @ W + b)[label] for x, label in zip(features, labels))
    loss, _ = regression_loss(features, labels, W, b, 0.7)
    assert loss == pytest.approx((total + 0.7 / 2 * sum(W.ravel() ** 2)) / 6, rel=1e-12)


@pytest.mark.parametrize("penalty", [0.01, 1, 100])
def test_at_the_minimum_the_gradient_is_zero(penalty, rng):
    features, labels = some_features(rng)
    features *= [1, 100, 1e-2, 1e4]                      # of any size
    model = LogisticRegression(features, labels, 3, penalty)
    loss, backward = regression_loss(features, labels, model.W, model.b, penalty)
    dW, db = backward()
    np.testing.assert_allclose(dW / abs(features).max(0)[:, None].clip(1), 0, atol=3e-6)
    np.testing.assert_allclose(db, 0, atol=3e-6)
    np.testing.assert_allclose(model.W.sum(1), 0, atol=1e-10)
    assert abs(model.b.sum()) < 1e-10
    for _ in range(10):                                  # and around it the loss is higher
        dW, db = 0.1 * rng.standard_normal(model.W.shape), 0.1 * rng.standard_normal(3)
        assert regression_loss(features, labels, model.W + dW, model.b + db, penalty)[0] > loss


def test_two_classes_equal_newtons_method(rng):
    """With two classes W = [−w/2, w/2], and w is the minimum of the ordinary logistic regression with penalty/2."""
    x, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    x[:, 1] += y
    X, penalty = np.hstack([x, np.ones((40, 1))]), np.diag([0.8 / 2] * 3 + [0])
    w = np.zeros(4)
    for _ in range(30):
        p = 1 / (1 + np.exp(-X @ w))
        w -= np.linalg.solve(X.T * (p * (1 - p)) @ X + penalty, X.T @ (p - y) + penalty @ w)
    model = LogisticRegression(x, y, 2, penalty=0.8)
    np.testing.assert_allclose(np.vstack([model.W, model.b]), np.outer(w, [-0.5, 0.5]), atol=2e-5)


def test_without_features_it_learns_the_shares():
    labels = np.array([0, 1, 1, 2, 1, 1, 2, 1])
    for features in (np.zeros((8, 2)), np.zeros((8, 0)), sparse.csr_array((8, 2))):
        p = np.exp(LogisticRegression(features, labels, 3).log_probabilities(features))
        np.testing.assert_allclose(p, np.tile([1 / 8, 5 / 8, 2 / 8], (8, 1)), atol=1e-5)
    p = np.exp(NaiveBayes(np.zeros((8, 2)), labels, 3).log_probabilities(np.zeros((1, 2))))
    np.testing.assert_allclose(p, [[1 / 8, 5 / 8, 2 / 8]])


def test_separable_classes(rng):
    """The smaller the penalty, the surer, but never certain."""
    x, labels = rng.standard_normal((30, 2)), np.arange(30) % 3
    x += 20 * np.array([[0, 0], [0, 1], [1, 0]])[labels]
    models = [LogisticRegression(x, labels, 3, penalty) for penalty in (10, 1, 1e-3, 1e-6)]
    losses = [-model.log_probabilities(x)[np.arange(30), labels].mean() for model in models]
    assert all(accuracy(model.predict(x), labels) == 1 for model in models)
    assert losses == sorted(losses, reverse=True)
    assert 0 < losses[-1] < 1e-5
    assert all(np.isfinite(model.W).all() for model in models)


def test_standardized_features(rng):
    features, labels = some_features(rng, d=5)
    features[:, 3] = 0.1                                 # constant, though its computed variance is not 0
    z = (features - features.mean(0)) / features.std(0).clip(1e-9)
    z[:, 3] = 0
    expected = LogisticRegression(z, labels, 3).log_probabilities(z)
    given = features * [1e-3, 1, 1e3, 1, 5] + [0, 7, -1e4, 0, 1]         # shift and scale make no difference
    model = LogisticRegression(given, labels, 3, standardize=True)
    np.testing.assert_allclose(model.log_probabilities(given), expected, atol=1e-5)
    np.testing.assert_array_equal(model.W[3], 0)
    given[:, 3] = 50
    np.testing.assert_allclose(model.log_probabilities(given), expected, atol=1e-5)


def test_inputs_are_not_written_into(rng):
    features, labels = some_features(rng)
    before = features.copy(), labels.copy()
    for standardize in (False, True):
        LogisticRegression(features, labels, 3, standardize=standardize).predict(features)
    NaiveBayes(abs(features), labels, 3)
    np.testing.assert_array_equal(features, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_single_precision_is_enough_for_the_features(rng):
    features, labels = some_features(rng)
    features = features.astype(np.float32)
    model = LogisticRegression(features, labels.astype(np.int32), 3)
    assert model.W.dtype == np.float64
    np.testing.assert_array_equal(model.W, LogisticRegression(features.astype(float), labels, 3).W)


def test_too_few_steps_are_an_error(rng, monkeypatch):
    monkeypatch.setattr(counting, "MOST_STEPS", 2)
    with pytest.raises(UserError, match=r"the gradient has an entry of .* after 2 steps, expected at most 1e-06; try"):
        LogisticRegression(*some_features(rng), 3)


X, Y = np.eye(3), np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: word_counts([[0], [0, 4]], 4), r"text 1: word 1 has the id 4, expected ids from -1 to 3"),
        (lambda: word_counts([[-2]], 4), r"text 0: word 0 has the id -2"),
        (lambda: word_counts([[0.5]], 4), r"text 0: ids have shape \(1,\) and dtype float64, expected integers in one row"),
        (lambda: word_counts([[[1]]], 4), r"text 0: ids have shape \(1, 1\)"),
        (lambda: word_counts([[0]], 0), r"c is 0, expected a whole number"),
        (lambda: NaiveBayes(X, Y, 2, k=0), r"k is 0, expected a number above 0: at 0, a word that a class never used"),
        (lambda: NaiveBayes(X, Y, 2, k=math.nan), r"k is nan"),
        (lambda: NaiveBayes(-X, Y, 2), r"a count is -1, expected none below 0; .* try LogisticRegression"),
        (lambda: NaiveBayes(X, Y, 3), r"no label is 2, expected at least one text of each of the 3 classes"),
        (lambda: NaiveBayes(X, [0, 1, 2], 2), r"labels: entry 2 is 2, expected classes from 0 to 1"),
        (lambda: NaiveBayes(X, Y[:2], 2), r"there are 3 rows of features and 2 labels"),
        (lambda: NaiveBayes(X, Y, 2).predict(np.eye(4)), r"shape \(4, 4\), expected \(N, 3\), as in training"),
        (lambda: LogisticRegression(X, [0, -1, 1], 2), r"labels: entry 1 is -1, expected classes from 0 to 1"),
        (lambda: LogisticRegression(X, [0.0, 1, 1], 2), r"labels: shape \(3,\) and dtype float64, expected integers"),
        (lambda: LogisticRegression(X, Y, 0), r"classes is 0, expected a whole number of at least 1"),
        (lambda: LogisticRegression(X[:0], [], 2), r"no label is 0, expected at least one text"),
        (lambda: LogisticRegression(X[0], Y, 2), r"features have shape \(3,\), expected \(N, d\)"),
        (lambda: LogisticRegression(X * np.nan, Y, 2), r"infinite entries or some that are not numbers"),
        (lambda: LogisticRegression(X, Y, 2, penalty=0), r"penalty is 0, expected a number above 0: at 0, classes"),
        (lambda: LogisticRegression(X, Y, 2, penalty="1"), r"penalty is '1'"),
        (lambda: LogisticRegression(sparse.csr_array(X), Y, 2, standardize=True), r"the features are sparse, .*try features.toarray\(\)"),
        (lambda: LogisticRegression(X, Y, 2).log_probabilities(X[:, :2]), r"shape \(3, 2\), expected \(N, 3\)"),
    ],
)
def test_bad_input_gets_a_sentence(make, message):
    with pytest.raises(UserError, match=message):
        make()
