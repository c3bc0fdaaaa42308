# %% [markdown]
# # Lab 00: one number at a time
#
# - **Goals:** write the sweep back through a graph of numbers, turn it into loops and those into products of matrices;
#   say why the backwards of a linear layer and of softmax look as they do, and what a graph costs.
# - **Before it:** the chain rule, products of matrices, NumPy; no other lab. **Work:** about 6.5 hours.
# - **Hand in:** `sweep`, `linear_in_loops.backward`, `linear_by_rows.backward`, `linear_at_once.backward`,
#   `softmax_at_once.backward`, `gpt_of_ops.backward`; an experiment from “Try”.
#
# For those who come from micrograd (<https://github.com/karpathy/micrograd>) or microgpt
# (<https://karpathy.github.io/2026/02/12/microgpt/>), by A. Karpathy: the idea is his, the code our own. There each
# number remembers which numbers it was made from, and a sweep back through that graph finds all gradients; mini_tf has
# none: its ops work on whole arrays, each with a backward written by hand. This lab leads from one to the other.
#
# Letters: **T** characters read, **n** size of a vector, **c** different characters; `dx` is the gradient of the loss
# with respect to x. It runs in half a minute on one CPU core, 10 seconds with `--quick`.

# %%
import itertools
import math
import timeit

from _common import quick_mode, show, table
from _drawing import lab_00
from _expect import about, above, at_most, below, expect
from mini_tf import ops

import numpy as np

QUICK = quick_mode("Lab 00: from a graph of single numbers to ops with a backward written by hand")

# %% [markdown]
# ## 1. Numbers that remember
#
# A `Number` knows its value, the numbers it was made from, and its slope with respect to each. The slopes of a sum are
# 1; a product's slope with respect to one factor is the other factor.

# %%
class Number:
    """A value, the numbers it was made from, and its slope with respect to each of them"""

    __slots__ = "gradient", "inputs", "serial", "slopes", "value"
    serials = itertools.count()

    def __init__(self, value, inputs=(), slopes=()):
        self.value, self.inputs, self.slopes = value, inputs, slopes
        self.gradient, self.serial = 0.0, next(Number.serials)

    def __add__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.value + other.value, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.value * other.value, (self, other), (other.value, self.value))

    def __pow__(self, power):                            # a constant
        return Number(self.value**power, (self,), (power * self.value ** (power - 1),))

    def __truediv__(self, other):
        return self * other**-1

    def exp(self):
        return Number(y := math.exp(self.value), (self,), (y,))

    def log(self):
        return Number(math.log(self.value), (self,), (1 / self.value,))

    def relu(self):
        return Number(max(self.value, 0.0), (self,), (float(self.value > 0),))

    __radd__, __rmul__ = __add__, __mul__

# %% [markdown]
# Backpropagation is a single rule: $dx = \sum_y dy \cdot \partial y/\partial x$, a sum over all numbers y made from x.
# So every y has to be done before x. A number is made after its inputs, so go from the last one made to the first.
# (micrograd sorts the graph; here a serial number says which came first.)

# %%
def sweep(loss):
    """Fill in the gradient of every number that the loss was made from, and return how many they are."""
    found, to_visit = set(), [loss]
    while to_visit:
        number = to_visit.pop()
        if number not in found:
            found.add(number)
            to_visit += number.inputs
    loss.gradient = 1.0
    for number in sorted(found, key=lambda number: number.serial, reverse=True):
        for x, slope in zip(number.inputs, number.slopes):
            x.gradient += number.gradient * slope        # +=, because x may be used again
    return len(found)

# %% [markdown]
# Work it out by hand first: a neuron $y = \text{relu}(x_1 w_1 + x_2 w_2 + b)$ with $x_1 = 3$, $w_1 = 0.5$, $x_2 = 2$,
# $w_2 = -0.25$, $b = 1$, and the loss $(y - 3)^2$. What is the gradient of $w_1$? And what is the slope of
# $x \cdot x + x$ at x = 3, where x is used three times?

# %%
x1, w1, x2, w2, b = map(Number, (3.0, 0.5, 2.0, -0.25, 1.0))
one, two = x1 * w1, x2 * w2
both = one + two
a = both + b
y = a.relu()
off = y + -3.0
loss = off**2
sweep(loss)
x = Number(3.0)
sweep(x * x + x)
expect("gradient of w₁", -6, w1.gradient)
expect("slope of x·x + x at x = 3", 7, x.gradient)
names = {"x₁": x1, "w₁": w1, "x₂": x2, "w₂": w2, "b": b, "x₁·w₁": one, "x₂·w₂": two, "x₁·w₁ + x₂·w₂": both, "a": a,
         "y = relu(a)": y, "−3": off.inputs[1], "y − 3": off, "loss = (y − 3)²": loss}  # fmt: skip
show(lab_00.graph(names, loss), "00_neuron")

# %% [markdown]
# ## 2. A GPT in single numbers
#
# This is a GPT of one layer, which reads a name and predicts each next letter: vectors for letters (E) and places (P),
# attention and feed-forward, each with a norm in front and a residual around it, and a readout (R). It needs no mask,
# because at letter t the later keys do not exist yet.

# %%
def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def linear(x, W):
    """y_j = Σ_i x_i·W_ij:   x (n), W (n, k)  →  y (k)"""
    return [dot(x, column) for column in zip(*W)]


def softmax(z):
    e = [each.exp() for each in z]
    total = sum(e)
    return [each / total for each in e]


def rms_norm(x):
    r = (dot(x, x) / len(x) + 1e-5) ** -0.5              # 1 / the root of the mean square
    return [each * r for each in x]

# %%
def gpt_of_numbers(parameters, ids):
    """The mean loss of predicting each letter from those before it:   T + 1 ids  →  a Number"""
    E, P, Wq, Wk, Wv, Wo, W1, W2, R = parameters
    keys, values, losses = [], [], []
    for t, (letter, following) in enumerate(itertools.pairwise(ids)):
        x = [a + b for a, b in zip(E[letter], P[t])]                                 # (n)
        normal = rms_norm(x)
        query = linear(normal, Wq)
        keys.append(linear(normal, Wk))
        values.append(linear(normal, Wv))
        A = softmax([dot(query, key) * len(query) ** -0.5 for key in keys])          # (t + 1)
        mean = linear(A, values)                         # of the values, weighted by A: (n)
        x = [a + b for a, b in zip(x, linear(mean, Wo))]
        hidden = [each.relu() for each in linear(rms_norm(x), W1)]                   # (4n)
        x = [a + b for a, b in zip(x, linear(hidden, W2))]
        losses.append(softmax(linear(x, R))[following].log() * -1)
    return sum(losses) / len(losses)


def random_parameters(n, rng, size=0.1):
    """E, P, Wq, Wk, Wv, Wo, W1, W2, R"""
    shapes = [(c, n), (longest, n), (n, n), (n, n), (n, n), (n, n), (n, 4 * n), (4 * n, n), (n, c)]
    return [size * rng.standard_normal(shape) for shape in shapes]

# %% [markdown]
# Eight names, each between two full stops, and gradient descent on one name at a time. With c = 16 characters, what is
# the loss before training?

# %%
NAMES = ["romeo", "juliet", "hamlet", "ophelia", "othello", "iago", "portia", "cordelia"]
letters = [".", *sorted(set("".join(NAMES)))]
texts = [[letters.index(letter) for letter in f".{name}."] for name in NAMES]
c, longest = len(letters), max(map(len, texts)) - 1      # longest: the largest T

to_numbers = np.frompyfunc(Number, 1, 1)                 # array of floats → array of Numbers
gradients = np.frompyfunc(lambda number: number.gradient, 1, 1)

parameters = [to_numbers(array) for array in random_parameters(8, np.random.default_rng(0))]
EPOCHS, losses = 8 if QUICK else 20, []                  # an epoch: each name once
for _ in range(EPOCHS):
    for ids in texts:
        loss = gpt_of_numbers(parameters, ids)
        count = sweep(loss)
        losses.append(loss.value)
        for number in np.concatenate([array.ravel() for array in parameters]):
            number.value -= 0.3 * number.gradient
            number.gradient = 0.0
means = np.reshape(losses, (EPOCHS, len(NAMES))).mean(1)
print(f"\n2. Numbers in the graph of {NAMES[-1]}: {count:,}")
print("  loss, every second epoch:", *(f"{mean:.2f}" for mean in means[1::2]))
expect("first loss", about(math.log(c), within=0.1), losses[0], form="{:.2f}")
expect("mean of the last epoch", below(1.5), means[-1], quick=below(2.3), form="{:.2f}")

# %% [markdown]
# ## 3. The sweep, written down
#
# It learns. But every step builds the same kind of graph again, the same sums of the same products, with other values.
# If the graph is known beforehand, so is the sweep through it, which can then be written down once, as code. Take
# `linear` for T letters, $Y_{tj} = \sum_i X_{ti} W_{ij}$. The sweep comes to each product $X_{ti} W_{ij}$, whose
# gradient is $dY_{tj}$. To the gradient of each factor it adds $dY_{tj}$ times the other factor.

# %%
def linear_in_loops(X, W):
    """Y_tj = Σ_i X_ti·W_ij, one product at a time:   X (T, n), W (n, k)  →  Y (T, k), all of them lists"""
    T, n, k = len(X), len(W), len(W[0])
    Y = [[0.0] * k for _ in range(T)]
    for t, i, j in itertools.product(range(T), range(n), range(k)):
        Y[t][j] += X[t][i] * W[i][j]

    def backward(dY):
        dX, dW = [[0.0] * n for _ in range(T)], [[0.0] * k for _ in range(n)]
        for t, i, j in itertools.product(range(T), range(n), range(k)):
            dX[t][i] += dY[t][j] * W[i][j]
            dW[i][j] += dY[t][j] * X[t][i]
        return dX, dW

    return Y, backward

# %% [markdown]
# Next, vectors replace the loops over i and j. For one letter, with a row x of X and a row dy of dY,
# $dx_i = \sum_j W_{ij}\,dy_j$ is `W @ dy`, and all $x_i\,dy_j$ together are the outer product of x and dy. dW is a sum
# of outer products, because every letter uses the same W. Last, matrices replace the loop over t: dX is `dY @ W.T`.
# And what is $dW_{ij} = \sum_t X_{ti}\,dY_{tj}$?

# %%
def linear_by_rows(X, W):
    """The same, one letter at a time"""

    def backward(dY):
        dX, dW = np.zeros_like(X), np.zeros_like(W)
        for t, (x, dy) in enumerate(zip(X, dY)):
            dX[t] = W @ dy
            dW += np.outer(x, dy)
        return dX, dW

    return np.stack([x @ W for x in X]), backward


def linear_at_once(X, W):
    """The same, all letters at once"""

    def backward(dY):
        return dY @ W.T, X.T @ dY

    return X @ W, backward

# %% [markdown]
# So $dW = X^\top dY$ is the rule of section 1: a weight's gradient is a sum over its uses, here the T letters. This
# is `ops.linear` (`mini_tf/ops/linear.py`), but for its bias.
#
# Softmax is $y_i = e_i/s$ with $e_i = \exp z_i$ and $s = \sum_j e_j$. The sweep comes first to s, which every $y_j$
# uses, then to $e_i$, which $y_i$ and s use, then to $z_i$:
#
# $$
# ds = -\sum_j dy_j \frac{e_j}{s^2}, \qquad de_i = \frac{dy_i}{s} + ds, \qquad
# dz_i = de_i \cdot e_i = y_i \Bigl(dy_i - \sum_j dy_j\,y_j\Bigr)
# $$
#
# `ops.softmax` also subtracts the largest z of each row, so that exp cannot overflow. **Expect** all of these to give
# the graph's gradients, up to rounding. (To start the graph's sweep from any dY, take $\sum dY \cdot Y$ as the loss.)

# %%
def softmax_at_once(Z):
    """y_i = exp(z_i) / Σ_j exp(z_j) in each row:   Z (T, k)  →  Y (T, k)"""
    e = np.exp(Z)
    Y = e / e.sum(-1, keepdims=True)

    def backward(dY):
        return Y * (dY - (dY * Y).sum(-1, keepdims=True))

    return Y, backward

# %%
def by_graph(f, dY, *arrays):
    """The gradients of Σ dY·f(arrays) with respect to the arrays, by the graph"""
    inputs = [to_numbers(array) for array in arrays]
    sweep((np.array(f(*inputs)) * dY).sum())
    return [gradients(each).astype(float) for each in inputs]


def difference(ours, others):
    """The largest between two lists of arrays"""
    return max(abs(np.asarray(a) - b).max() for a, b in zip(ours, others, strict=True))


rng = np.random.default_rng(1)
X, W, dY = (rng.standard_normal(shape) for shape in ((5, 4), (4, 3), (5, 3)))
right = by_graph(lambda X, W: [linear(x, W) for x in X], dY, X, W)
print("\n3. Largest differences from the graph's gradients")
linears = {"in loops": linear_in_loops, "by rows": linear_by_rows, "at once": linear_at_once, "ops.linear": ops.linear}
for name, f in linears.items():
    expect(f"linear, {name}", at_most(1e-12), difference(f(X, W)[1](dY)[:2], right), form="{:.0e}")
right = by_graph(lambda Z: [softmax(z) for z in Z], dY, X @ W)
for name, f in {"at once": softmax_at_once, "ops.softmax": ops.softmax}.items():
    expect(f"softmax, {name}", at_most(1e-12), difference([f(X @ W)[1](dY)], right), form="{:.0e}")

# %% [markdown]
# ## 4. The same GPT from ops
#
# An op is `y, backward = op(x, …)` with `dx, … = backward(dy)`. The model's backward calls those of its ops, the last
# one first, as the sweep does. Where the sweep adds up the uses of a number, we write the sum: x goes both into a norm
# and past it, and what the first norm returns goes into queries, keys and values. **Expect** the same loss and the same
# gradients, for random parameters from five seeds, each with another name.

# %%
def gpt_of_ops(parameters, ids):
    """The mean loss of predicting each letter, and backward() → the gradients of all parameters"""
    E, P, Wq, Wk, Wv, Wo, W1, W2, R = parameters
    ids, T, n = np.array(ids), len(ids) - 1, len(Wq)
    letter, E_backward = ops.embedding(E, ids[:-1])                                  # (T, n)
    place, P_backward = ops.embedding(P, np.arange(T))
    x, gamma = letter + place, np.ones(n)
    normal, norm1_backward = ops.rms_norm(x, gamma)
    (query, q_backward), (key, k_backward), (value, v_backward) = (ops.linear(normal, W) for W in (Wq, Wk, Wv))
    mask = np.tri(T, dtype=bool)                         # letter t sees 0 … t
    mean, attention_backward = ops.attention(query, key, value, mask, n**-0.5)
    out, o_backward = ops.linear(mean, Wo)
    x = x + out
    normal, norm2_backward = ops.rms_norm(x, gamma)
    a, W1_backward = ops.linear(normal, W1)              # (T, 4n)
    hidden, relu_backward = ops.relu(a)
    out, W2_backward = ops.linear(hidden, W2)            # (T, n)
    logits, R_backward = ops.linear(x + out, R)          # (T, c)
    loss, loss_backward = ops.cross_entropy(logits, ids[1:])

    def backward():
        dx, dR, _ = R_backward(loss_backward()[0])
        dhidden, dW2, _ = W2_backward(dx)
        dnormal, dW1, _ = W1_backward(relu_backward(dhidden))
        dx = dx + norm2_backward(dnormal)[0]
        dmean, dWo, _ = o_backward(dx)
        dq, dk, dv, *_ = attention_backward(dmean)
        (by_q, dWq, _), (by_k, dWk, _), (by_v, dWv, _) = q_backward(dq), k_backward(dk), v_backward(dv)
        dx = dx + norm1_backward(by_q + by_k + by_v)[0]
        return [E_backward(dx)[0], P_backward(dx)[0], dWq, dWk, dWv, dWo, dW1, dW2, dR]

    return loss, backward

# %%
print("\n4. The GPT from ops, and the GPT of numbers")
off = []
for seed, ids in enumerate(texts[:5]):
    arrays = random_parameters(8, np.random.default_rng(seed), size=0.5)
    numbers = [to_numbers(array) for array in arrays]
    sweep(loss_of_numbers := gpt_of_numbers(numbers, ids))
    loss, backward = gpt_of_ops(arrays, ids)
    right = loss_of_numbers.value, *(gradients(each).astype(float) for each in numbers)
    off.append(difference((loss, *backward()), right))
expect("loss and gradients, largest difference", at_most(1e-12), max(off), form="{:.0e}")

# %% [markdown]
# ## 5. What the graph costs
#
# First `linear` alone, forward and backward, at each stage of section 3; then the GPT on one name, with larger and
# larger vectors. Graph and ops do nearly the same multiplications. How many times faster are the ops?

# %%
def milliseconds(f, *arguments, runs=50):
    """f(*arguments), the fastest of some runs"""
    return 1e3 * min(timeit.repeat(lambda: f(*arguments), number=1, repeat=runs))


X, W, dY = (rng.standard_normal(shape) for shape in ((9, 64), (64, 64), (9, 64)))
x_list, W_list, dY_list = X.tolist(), W.tolist(), dY.tolist()
steps = {
    "graph": milliseconds(lambda: by_graph(lambda X, W: [linear(x, W) for x in X], dY, X, W), runs=3),
    "in loops": milliseconds(lambda: linear_in_loops(x_list, W_list)[1](dY_list), runs=3),
    "by rows": milliseconds(lambda: linear_by_rows(X, W)[1](dY)),
    "ops.linear": milliseconds(lambda: ops.linear(X, W)[1](dY)),
}
rows = {}
for n in (8, 16, 32) if QUICK else (8, 16, 32, 64):
    arrays = random_parameters(n, rng)
    numbers = [to_numbers(array) for array in arrays]
    count = sweep(gpt_of_numbers(numbers, texts[-1]))
    by_graph_ms = milliseconds(lambda numbers: sweep(gpt_of_numbers(numbers, texts[-1])), numbers, runs=3)
    by_ops_ms = milliseconds(lambda arrays: gpt_of_ops(arrays, texts[-1])[1](), arrays)
    rows[n] = count, by_graph_ms, by_ops_ms, by_graph_ms / by_ops_ms
table(("linear", "milliseconds"), steps, "{:.3f}", title="5. What the graph costs")
table(("n", "numbers in the graph", "graph, ms", "ops, ms", "times faster"), rows,
      ("{:,}", "{:.1f}", "{:.2f}", "{:,.0f}"))  # fmt: skip
expect("GPT, n = 8: graph / ops", above(20), rows[8][-1], quick=None, form="{:,.0f}")
expect(f"GPT, n = {n}: graph / ops", above(1000), rows[n][-1], quick=None, form="{:,.0f}")
show(lab_00.costs(steps, list(rows), *np.array(list(rows.values()))[:, 1:3].T), "00_costs")

# %% [markdown]
# The ops are tens to hundreds of times faster at n = 8, and thousands of times at n = 64, where the graph has nearly a
# million numbers: no object remembers each product, and no Python runs between one product and the next.
#
# ## What to remember
#
# - The gradient of a number is a sum over its uses. That is why $dW = X^\top dY$: every row of X uses the same W.
# - An op's backward is the sweep through its part of the graph, written down beforehand, without its bookkeeping.
# - The graph differentiates any formula by itself. A backward written by hand can be wrong, so mini_tf has a checker
#   (`mini-tf gradcheck`, Lab 10). PyTorch is in between: it has a graph, but of ops, whose backwards people wrote.
#
# **Try:** let the trained GPT write names. Use Eᵀ as the readout in both GPTs: where do its two gradients meet?
