"""The blanks of lab 00: the sweep through a graph, the same as loops and as products of matrices, softmax, a GPT."""

from _blanks import Blank, gradients, same

import numpy as np

rng = np.random.default_rng(0)
X, W, Z = rng.standard_normal((5, 4)), rng.standard_normal((4, 3)), rng.standard_normal((3, 5))


def swept(sweep):
    """A function of x and y: how many numbers the sweep finds in x·(x·y + y)², and their gradients by it"""
    Number = sweep.__globals__["Number"]

    def by_sweep(x, y):
        x, y = Number(x), Number(y)
        count = sweep(x * (x * y + y) ** 2)
        return count, x.gradient, y.gradient

    by_sweep.__name__ = "sweep of x·(x·y + y)²"
    return by_sweep


def derived(x, y):
    return 6, y**2 * (x + 1) * (3 * x + 1), 2 * x * y * (x + 1) ** 2


def from_lists(linear):
    """linear_in_loops, which takes and returns lists, as a function of arrays"""

    def f(X, W):
        Y, backward = linear(X.tolist(), W.tolist())
        return np.array(Y), lambda dY: tuple(map(np.array, backward(dY.tolist())))

    return f


def with_loss_gradient(gpt):
    """gpt_of_ops for a name of three letters, n = 4, as a function of its nine parameters"""

    def f(E, P, Wq, Wk, Wv, Wo, W1, W2, R):
        loss, backward = gpt((E, P, Wq, Wk, Wv, Wo, W1, W2, R), [0, 2, 1, 1, 0])
        return loss, lambda dloss=1.0: tuple(dloss * each for each in backward())

    return f


SHAPES = (3, 4), (4, 4), (4, 4), (4, 4), (4, 4), (4, 4), (4, 16), (16, 4), (4, 3)

BLANKS = [
    Blank("sweep", [
        "First collect every number that the loss was made from: its inputs, their inputs, and so on, each one once. A "
        "list of those still to be visited saves you the recursion.",
        "The loss has the gradient 1. Then from the number made last, which has the highest serial, to the one made "
        "first.",
        "When a number's turn comes, its own gradient is complete. Pass it on to each of its inputs, times the slope "
        "for that input. An input may be used elsewhere, too: add.",
        "Return how many numbers you found.",
    ], lambda sweep: same(derived, (2.0, -0.5), (-0.7, 1.3))(swept(sweep))),
    Blank("linear_in_loops.backward", [
        "The same three loops as forward. dX and dW start as lists of zeros, in the shapes of X and W.",
        "Y_tj got the product X_ti·W_ij. In a product, the slope for one factor is the other.",
        "So X_ti receives dY_tj times W_ij. What does W_ij receive? Both add up.",
    ], gradients(lambda f: (from_lists(f), X, W), "linear_in_loops")),
    Blank("linear_by_rows.backward", [
        "For each letter: dx_i = Σ_j W_ij·dy_j is a product of W and dy, a row of dX.",
        "Entry (i, j) of np.outer(a, b) is a_i·b_j. All letters use the same W, so dW is a sum over them.",
    ], gradients(lambda f: (f, X, W), "linear_by_rows")),
    Blank("linear_at_once.backward", [
        "dX_ti = Σ_j dY_tj·W_ij. In a product of matrices, the sum runs over the columns of the first and the rows of "
        "the second: what has to be transposed?",
        "dW_ij = Σ_t X_ti·dY_tj: the sum is over the rows of both. The shapes, (n, T) times (T, k), say which one has "
        "to be transposed.",
    ], gradients(lambda f: (f, X, W), "linear_at_once")),
    Blank("softmax_at_once.backward", [
        "dz_i = y_i·(dy_i − Σ_j dy_j·y_j), for each row at once. Y is known from the forward.",
        "The sum is one number for each row; keepdims=True keeps it as a column, which NumPy can subtract from dY.",
    ], gradients(lambda f: (f, Z), "softmax_at_once")),
    Blank("gpt_of_ops.backward", [
        "Go through the forward from its last line to its first, and call each op's backward. That of ops.linear "
        "returns dx, dW and None, for the bias that was left out; that of ops.embedding, dtable and None.",
        "Of rms_norm's gradients only the first is needed: here γ is not a parameter.",
        "x + out passes dx on to both. After each branch, add what it sends back to the dx that went past it.",
        "normal was used three times, for queries, keys and values: its gradient is a sum of three.",
        "Return nine gradients, in the order of the parameters.",
    ], gradients(lambda f: (with_loss_gradient(f), *map(rng.standard_normal, SHAPES)), "gpt_of_ops")),
]  # fmt: skip
