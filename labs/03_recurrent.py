# %% [markdown]
# # Lab 03: a network with a state
#
# - **Goals:** write backpropagation through time by hand, derive a bound on how much a gradient can grow over d steps,
#   tell from a matrix whether gradients vanish or explode, and prevent a training run from diverging.
# - **Before it:** Lab 02; eigenvalues, the norm of a matrix. **Work:** about 5 hours.
# - **Hand in:** `rnn_by_hand.backward`, `contributions`, `gradient_over_steps`; an experiment from “Try”.
#
# Sources: CSCI 567 (USC, spring 2024; slides without an address, after <https://web.stanford.edu/class/cs224n/>),
# lecture 8, recurrent networks and "the problem with recurrence"; CS685 (UMass Amherst, 2020,
# <https://people.cs.umass.edu/~miyyer/cs685/>), lecture on neural language models, its last part; CMU 10-417 (fall
# 2022; no address printed), homework 3a, question 1. The bound of section 4: Pascanu, Mikolov, Bengio 2013,
# [arXiv:1211.5063](https://arxiv.org/abs/1211.5063).
#
# A counting model sees two words back, a fixed window four or ten. A recurrent network has one vector, its hidden
# state, and every word updates it. In principle the state can remember anything.
#
# `03b_recurrent_on_shakespeare.py` turns it into a language model, and measures how many words back it remembers.
#
# It runs in 5 to 25 seconds on one CPU core, with or without `--quick`.
#
# Letters: **B** texts in a batch, **T** steps, **n** size of a word vector, **k** size of the state, **c** different
# words, **d** a distance in words. Losses are in nats per word. A vector is a row here, x·W; the lectures write
# columns, W·x. Their W is $W^\top$ here.

# %%
from _common import gradient_by_distance, quick_mode, show, table, typical, wrapped
from _drawing import lab_03
from _expect import about, above, at_most, below, expect
from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.models import CarriedState, FixedWindowModel, RecurrentModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import SGD, ConsecutiveWindows, Training, clip_gradients, fit

import numpy as np

QUICK = quick_mode("Lab 03: a recurrent network, its gradients through time, and how they vanish and explode")


def numbers(array, digits=3):
    """A vector or matrix in one line; a −0 is a 0."""
    rows = np.atleast_2d(np.round(array, digits) + 0.0)
    return "(" + ";  ".join("  ".join(f"{value:.{digits}f}" for value in row) for row in rows) + ")"


# %% [markdown]
# ## 1. One state, the same weights at every step
#
# $$
# h_t = f(x_t \cdot W_x + h_{t-1} \cdot W_h + b)
# $$
#
# Shapes: $x_t$ (n,), $h_t$ and b (k,), $W_x$ (n, k), $W_h$ (k, k). In code the two matrices are `Wx` and `Wh`.
#
# In words: the new state is computed from the new word and the old state. f is tanh or relu. $h_0$ is the state before
# the network has read anything; in mini_tf it is learned like the weights.
#
# The smallest example: n = k = 2, three words, f = tanh. $W_h$ is the transpose of the matrix that CSCI 567 prints; it
# returns in section 3.
#
# **Expect** three lines of arithmetic to give the same numbers as `ops.rnn`.

# %%
x = np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])                     # (B, T, n) = (1, 3, 2)
h_0 = np.array([[0.2, -0.1]])                                           # (B, k)
Wx = np.array([[0.5, -0.3], [0.2, 0.8]])                                # (n, k)
Wh = np.array([[0.8, -0.6], [0.2, 0.9]])                                # (k, k)
b = np.array([0.1, -0.1])                                               # (k,)

h_1 = np.tanh(x[:, 0] @ Wx + h_0 @ Wh + b)
h_2 = np.tanh(x[:, 1] @ Wx + h_1 @ Wh + b)
h_3 = np.tanh(x[:, 2] @ Wx + h_2 @ Wh + b)
h, _ = ops.rnn(x, h_0, Wx, Wh, b, activation="tanh")                    # (B, T, k)

table(None, [(f"h_{t + 1}", f"by hand {numbers(by_hand)}", f"ops.rnn {numbers(h[:, t])}")
             for t, by_hand in enumerate((h_1, h_2, h_3))], title="1. Three steps by hand, and by ops.rnn")
expect("largest difference", at_most(1e-15), abs(np.stack([h_1, h_2, h_3], 1) - h).max(), form="{:.0e}")

# %% [markdown]
# ### Any length, the same number of weights
#
# The weights of a fixed window of T words have T·n rows, n for each position: a longer window has more to learn, and
# what it learns at position 92 does not help it at position 83. The recurrent network uses the same $W_x$ and $W_h$ at
# every step.
#
# **Expect**, with n = 64 and k = 128: n·k = 8,192 more weights for every word of the fixed window, and the same 24,832
# (n·k + k² + k, and k for $h_0$) throughout for the recurrent network. The table of word vectors and the readout are
# the same in both, and not counted. **Expect** one recurrent model to read texts of any length, from no words to 1,000.

# %%
def weights(model):
    """The trainable parameters between the table of word vectors and the readout."""
    return sum(p.data.size for name, p in model.parameters().items() if not name.startswith(("embedding", "readout")))


tiny_table = np.zeros((5, 64), np.float32)
counts = {words: (weights(FixedWindowModel(tiny_table, T=words, k=128)),
                  weights(RecurrentModel(tiny_table, T=words, k=128))) for words in (4, 16, 64, 256)}  # fmt: skip
table(("T, words", "fixed window", "recurrent"), counts, title="Weights, n = 64, k = 128")
expect("fixed window, weights for each additional word", 64 * 128, (counts[256][0] - counts[64][0]) / (256 - 64))
expect("recurrent, weights for each T", "24832", ", ".join({str(recurrent) for _, recurrent in counts.values()}))
one_model = RecurrentModel(tiny_table, k=128)
shapes = {one_model.logits(np.zeros((1, length), int)).shape for length in (0, 1, 10, 1000)}
expect("shape of its scores after 0, 1, 10, 1,000 words", "(1, 5)", ", ".join(map(str, shapes)))

# %% [markdown]
# ## 2. Backpropagation through time
#
# Unrolled, three steps are a network of three layers that share their weights. So the gradient is ordinary
# backpropagation, from the last step to the first. Two things are new.
#
# First, the gradient reaches $h_t$ from two sides: from its own prediction, and from step t + 1, which read it.
#
# $$
# dh_t = (\text{from above}) + da_{t+1} \cdot W_h^\top, \qquad
# da_t = dh_t \cdot f'(a_t)
# $$
#
# $f'$ is known from the state itself: $1 - h^2$ for tanh; for relu, 1 where h > 0 and else 0.
#
# Second, each step contributes a gradient for the *same* $W_h$. They add up:
#
# $$
# dW_h = \sum_t h_{t-1}^\top \cdot da_t, \qquad
# dW_x = \sum_t x_t^\top \cdot da_t, \qquad
# db = \sum_t da_t
# $$
#
# Here is all of it for T = 3, without a loop. Compare it, line by line, with the loop in `mini_tf/ops/recurrent.py`.

# %%
def rnn_by_hand(x, h_0, Wx, Wh, b, activation="tanh", say=lambda name, value: None):
    """ops.rnn for three steps, written out:  x (B, 3, n) → h (B, 3, k), backward

    backward: dh (B, 3, k), from above  →  dx (B, 3, n), dh_0 (B, k), dWx (n, k), dWh (k, k), db (k,)
    say is called with da_t and h_{t−1}ᵀ·da_t, last step first
    """
    if activation == "tanh":
        f, slope = np.tanh, lambda h: 1 - h * h
    else:
        f, slope = lambda a: np.maximum(a, 0), lambda h: (h > 0).astype(h.dtype)
    x_1, x_2, x_3 = x[:, 0], x[:, 1], x[:, 2]
    h_1 = f(x_1 @ Wx + h_0 @ Wh + b)
    h_2 = f(x_2 @ Wx + h_1 @ Wh + b)
    h_3 = f(x_3 @ Wx + h_2 @ Wh + b)

    def backward(dh):                                                   # what comes from above, (B, 3, k)
        dh_3 = dh[:, 2]                                                 # there is no step 4
        da_3 = dh_3 * slope(h_3)
        dh_2 = dh[:, 1] + da_3 @ Wh.T
        da_2 = dh_2 * slope(h_2)
        dh_1 = dh[:, 0] + da_2 @ Wh.T
        da_1 = dh_1 * slope(h_1)
        dh_0 = da_1 @ Wh.T
        for t, da, h_before in ((3, da_3, h_2), (2, da_2, h_1), (1, da_1, h_0)):
            say(f"da_{t}", da)
            say(f"h_{t - 1}ᵀ·da_{t}", h_before.T @ da)
        dWh = h_0.T @ da_1 + h_1.T @ da_2 + h_2.T @ da_3
        dWx = x_1.T @ da_1 + x_2.T @ da_2 + x_3.T @ da_3
        db = (da_1 + da_2 + da_3).sum(0)
        dx = np.stack([da_1 @ Wx.T, da_2 @ Wx.T, da_3 @ Wx.T], axis=1)
        return dx, dh_0, dWx, dWh, db

    return np.stack([h_1, h_2, h_3], axis=1), backward


# %% [markdown]
# Here only the last state receives a gradient from above, (1, −1): $dh_1$ and $dh_2$ come entirely from the later
# steps.
#
# **Expect** each $da_t$ to be the next one times $W_h^\top$ and the slope, and the three 2 × 2 contributions to add up
# to $dW_h$. **Expect** no difference from `ops.rnn` beyond rounding, with tanh and with relu, and a PASS from
# `gradcheck`, which measures slopes by finite differences and relies on nobody's algebra.

# %%
from_above = np.zeros((1, 3, 2))
from_above[:, 2] = 1, -1
steps = {}
_, backward = rnn_by_hand(x, h_0, Wx, Wh, b, say=steps.__setitem__)
by_hand = backward(from_above)
summed = sum(value for name, value in steps.items() if name.startswith("h"))
table(None, [(name, numbers(value)) for name, value in (steps | {"sum = dWh": summed}).items()],
      title="2. Backpropagation through time, T = 3, tanh")  # fmt: skip
off = abs(steps["da_2"] - steps["da_3"] @ Wh.T * (1 - h_2**2)).max()
expect("da_2, largest difference from da_3·Whᵀ·slope", at_most(1e-15), off, form="{:.0e}")
off = abs(summed - ops.rnn(x, h_0, Wx, Wh, b, "tanh")[1](from_above)[3]).max()
expect("dWh, largest difference from ops.rnn", at_most(1e-15), off, form="{:.0e}")

rng = np.random.default_rng(3)
dh = rng.standard_normal((1, 3, 2))                                     # now a gradient from above at every step
for activation in ("tanh", "relu"):
    ours = rnn_by_hand(x, h_0, Wx, Wh, b, activation)[1](dh)
    theirs = ops.rnn(x, h_0, Wx, Wh, b, activation)[1](dh)
    off = max(abs(mine - its).max() for mine, its in zip(ours, theirs))
    report = gradcheck(rnn_by_hand, x, h_0, Wx, Wh, b, activation)
    print()
    expect(f"{activation}, all gradients, largest difference", at_most(1e-14), off, form="{:.0e}")
    expect(f"{activation}, gradcheck finds them right", True, bool(report))
    print("    " + str(report).replace("\n", "\n    "))

# %% [markdown]
# ### Which steps contribute to `dWh`?
#
# The contributions have very different sizes. We take a longer example, with 20 steps, k = 32, random words, and a
# gradient that enters at the last step only, and plot $\lVert h_{t-1}^\top \cdot da_t \rVert$ for each step t.
#
# If all steps contributed equally, the last 5 of the 20 would hold 25 % of the summed norms. Guess their share if $W_h$
# shrinks vectors (0.7 · rotation), keeps their lengths (1.0), or stretches them (1.3). The bands are those of five
# seeds. These words are random, so language cannot be the reason why late steps count more. The reason is the repeated
# multiplication by $W_h$ and by slopes below 1; for 1.0 · rotation it is the slopes alone.

# %%
def rotation(k, rng):
    """A random orthogonal matrix, which keeps all lengths: Q·Qᵀ = I"""
    return np.linalg.qr(rng.standard_normal((k, k)))[0]


def contributions(x, h_0, Wx, Wh, b, dh):
    """‖h_{t−1}ᵀ·da_t‖ for t = 1 … T, tanh, and their sum dWh, which is what ops.rnn returns

    x (B, T, n), h_0 (B, k), Wx (n, k), Wh (k, k), b (k,), dh (B, T, k) from above  →  norms (T,), dWh (k, k)
    """
    h, _ = ops.rnn(x, h_0, Wx, Wh, b)
    before = np.concatenate([h_0[:, None], h[:, :-1]], axis=1)          # h_0 … h_{T−1}
    norms, dWh, from_later = [], 0, 0
    for t in reversed(range(x.shape[1])):
        da = (dh[:, t] + from_later) * (1 - h[:, t] ** 2)
        part = before[:, t].T @ da
        norms, dWh, from_later = [np.linalg.norm(part), *norms], dWh + part, da @ Wh.T
    return np.array(norms), dWh


T_bars, k_bars = 20, 32
x_bars = 0.3 * rng.standard_normal((1, T_bars, k_bars))
Wx_bars = rotation(k_bars, rng)
h0_bars = 0.3 * rng.standard_normal((1, k_bars))
turn = rotation(k_bars, rng)
dh_bars = np.zeros((1, T_bars, k_bars))
dh_bars[:, -1] = rng.standard_normal(k_bars)
bars = {}
SHARES = {0.7: about(0.90, within=0.02), 1.0: about(0.63, within=0.06), 1.3: about(0.36, within=0.07)}
print(f"\n  share of the contributions' norms, {T_bars} steps, gradient from the last step only")
for g, share in SHARES.items():
    bars[g], dWh = contributions(x_bars, h0_bars, Wx_bars, g * turn, np.zeros(k_bars), dh_bars)
    theirs = ops.rnn(x_bars, h0_bars, Wx_bars, g * turn, np.zeros(k_bars))[1](dh_bars)[3]
    assert np.allclose(dWh, theirs)                                     # the contributions do add up
    expect(f"Wh = {g} · rotation, the last 5 steps", share, bars[g][-5:].sum() / bars[g].sum(), form="{:.0%}")

gradients = [steps[f"da_{t}"] for t in (1, 2, 3)]
show(lab_03.through_time(x[0], (h_0, h_1, h_2, h_3), gradients, from_above[0, 2], bars), "03_through_time")

# %% [markdown]
# ## 3. A matrix times itself
#
# On its way from step t back to step t − d, the gradient is multiplied by $W_h^\top$ (and a slope) d times. The forward
# pass is no different: what the word at t − d put into the state reaches $h_t$ through d products. CSCI 567
# demonstrates the effect with
#
# $$
# W = \begin{pmatrix} 0.8 & 0.2 \\ -0.6 & 0.9 \end{pmatrix}
# $$
#
# and prints $W^5$, $W^{10}$ and $W^{50}$ to two decimals.
#
# **Expect** all 12 printed numbers to be the exact ones, rounded.

# %%
W = np.array([[0.8, 0.2], [-0.6, 0.9]])
PRINTED = {
    5: [[-0.31, 0.35], [-1.06, -0.13]],
    10: [[-0.28, -0.16], [0.47, -0.36]],
    50: [[0.01, 0.00], [-0.01, 0.01]],
}
powers = {t: np.linalg.matrix_power(W, t) for t in PRINTED}
table(None, [(f"W^{t}", f"computed {numbers(power, 4)}", f"printed {numbers(np.array(PRINTED[t]), 2)}")
             for t, power in powers.items()], title="3. Powers of the lecture's W")  # fmt: skip
right = sum(np.sum(np.round(power, 2) == PRINTED[t]) for t, power in powers.items())
expect("printed numbers that are the exact ones, rounded", 12, right)

# %% [markdown]
# Why do they shrink? Along an eigenvector, multiplying by W is multiplying by λ, so $W^t$ behaves like $|\lambda|^t$
# for the largest $|\lambda|$, the spectral radius. Complex eigenvalues also rotate, by their angle at each step.
#
# This W has two complex eigenvalues with $|\lambda| = \sqrt{\det W} = \sqrt{0.84} = 0.917$; $|\lambda|^t$ halves every
# $\ln 2/(-\ln 0.917) = 8$ steps, and a full turn takes 16.4.
#
# Something that the eigenvalues do *not* tell: do the norms of the powers fall from the start? **Expect** them to grow
# first. Eigenvalues describe the long run, not the beginning.

# %%
values = np.linalg.eigvals(W)
radius = abs(values).max()
norms = np.array([np.linalg.norm(np.linalg.matrix_power(W, t), 2) for t in range(101)])      # ‖W^t‖, t = 0 … 100
print(f"\n  eigenvalues {values[0]:.3f} and {values[1]:.3f}")
expect("spectral radius |λ|", about(np.sqrt(0.84), within=1e-12), radius, form="{:.4f}")
expect("steps for a full turn", about(16.4, within=0.05), 2 * np.pi / abs(np.angle(values[0])), form="{:.2f}")
expect("steps in which |λ|^t halves", about(8, within=0.05), np.log(2) / -np.log(radius), form="{:.2f}")
expect("‖W‖", about(1.15, within=0.005), norms[1], form="{:.3f}")
expect("the largest ‖W^t‖", about(1.30, within=0.005), norms.max(), form="{:.3f}")
expect("at t", 3, norms.argmax())
expect("below 1 for good from t", 6, np.flatnonzero(norms >= 1)[-1] + 1)
scaled = {r: np.array([np.linalg.norm(np.linalg.matrix_power(W * r / radius, t), 2) for t in range(101)])
          for r in (0.9, 1.0, 1.1)}
print()
table(("t", "‖W^t‖", "|λ|^t", "radius 0.9", "1.0", "1.1"),
      [(t, norms[t], radius**t, *(each[t] for each in scaled.values())) for t in (0, 1, 5, 10, 20, 50, 100)],
      ("{:.5f}", "{:.5f}", "{:.2e}", "{:.2f}", "{:.2e}"))  # fmt: skip

path = np.array([np.linalg.matrix_power(W, t) @ [1, 0] for t in range(51)])
show(lab_03.powers(path, norms, radius, scaled), "03_powers")

# %% [markdown]
# The lecture concludes that inputs from far away do not contribute. That holds for this W, whose spectral radius is
# 0.917. With a radius of 1.1 they contribute far too much. Only a radius of exactly 1 would be right, and nothing in
# training keeps it there.
#
# ## 4. A bound on how much a gradient can grow
#
# Question 1 of HW3a, "Vanishing/Exploding Gradients in RNNs". Its recitation names only the tools, derivatives and the
# chain rule; here is the derivation.
#
# **One step.** $h_t = f(a_t)$ and $a_t = x_t \cdot W_x + h_{t-1} \cdot W_h + b$. Entry i of the old state acts on entry
# j of the new one through $a_{t,j}$ alone, where its weight is $W_{h,ij}$:
#
# $$
# \frac{\partial h_{t,j}}{\partial h_{t-1,i}}
# = \frac{\partial h_{t,j}}{\partial a_{t,j}} \cdot \frac{\partial a_{t,j}}{\partial h_{t-1,i}}
# = f'(a_{t,j}) \cdot W_{h,ij}
# $$
#
# As a matrix with row i and column j this is $W_h \cdot D_t$, where $D_t$ is the diagonal matrix of the k slopes
# $f'(a_t)$.
#
# **d steps.** The chain rule multiplies the Jacobians, from the oldest step to the last:
#
# $$
# \frac{\partial h_T}{\partial h_{T-d}} = W_h D_{T-d+1} \cdot W_h D_{T-d+2} \cdots W_h D_T
# $$
#
# A gradient $v_0 = v$, a row that enters at $h_T$, is multiplied by their transposes, the last step's first. After d
# steps it is
#
# $$
# v_d = \frac{\partial (v \cdot h_T)}{\partial h_{T-d}}
# = v \, D_T W_h^\top \cdot D_{T-1} W_h^\top \cdots D_{T-d+1} W_h^\top
# $$

# %%
def gradient_over_steps(slopes, Wh, v):
    """v_d = ∂(v·h_T)/∂h_{T−d}:  v_0 = v,  v_{d+1} = v_d·D_{T−d}·Whᵀ,  where D_t has the slopes f′(a_t)

    slopes (B, T, k), Wh (k, k), v (B, k)  →  v_0 … v_T (T + 1, B, k)
    """
    reached = [v]
    for t in reversed(range(slopes.shape[1])):
        reached.append((reached[-1] * slopes[:, t]) @ Wh.T)
    return np.stack(reached)


# %% [markdown]
# **Its length.** $\lVert W_h \rVert$, the largest singular value, is the largest factor by which $W_h$ can stretch a
# vector; it is the same for $W_h^\top$. Let γ be the largest slope of f anywhere. One factor $D_t W_h^\top$ does two
# things:
#
# $$
# \lVert v D_t W_h^\top \rVert \le \lVert v D_t \rVert \cdot \lVert W_h \rVert \qquad \text{by the definition of }
# \lVert W_h \rVert
# $$
#
# $$
# \lVert v D_t \rVert^2 = \sum_j v_j^2 \, f'(a_{t,j})^2 \le \gamma^2 \sum_j v_j^2 = \gamma^2 \lVert v \rVert^2
# \qquad \text{as no slope is above } \gamma
# $$
#
# Together $\lVert v D_t W_h^\top \rVert \le \gamma \lVert W_h \rVert \cdot \lVert v \rVert$, and after d steps
#
# $$
# \lVert v_d \rVert \le (\gamma \lVert W_h \rVert)^d \, \lVert v \rVert
# $$
#
# For tanh $f' = 1 - \tanh^2 \le 1$, for relu $f' \le 1$: γ = 1. For the logistic function
# $f' = \sigma (1 - \sigma) = \tfrac14 - (\sigma - \tfrac12)^2 \le \tfrac14$: γ = ¼. So gradients *must* vanish if
# $\lVert W_h \rVert$ is below 1 with tanh or relu, below 4 with the logistic function. Above these values the bound
# still limits how fast a gradient can grow, but does not tell whether it grows or vanishes.
#
# **Expect** no measured length above its bound. Where is it exact? (tanh without words, so that all slopes are 1, and a
# rotation, which stretches all vectors equally.) Otherwise the bound is loose, for two reasons:
#
# - slopes are below γ. At 4 · rotation, where the bound is 1, the logistic function keeps about 0.7 of a gradient in
#   each step; at 8 the bound allows it to double, but it does not even grow;
# - a matrix stretches few vectors by the full factor $\lVert W_h \rVert$. Random entries of variance $0.7^2/k$ have a
#   norm of 1.3 to 1.45 (2 · 0.7 for large k) but a radius of 0.74: the bound allows about $1.4^d$, and the gradient
#   keeps 0.72 in each step.

# %%
SLOPES = {                                                              # f, f′ in terms of h, and γ
    "tanh": (np.tanh, lambda h: 1 - h * h, 1.0),
    "relu": (lambda a: np.maximum(a, 0), lambda h: (h > 0) * 1.0, 1.0),
    "logistic": (lambda a: 1 / (1 + np.exp(-a)), lambda h: h * (1 - h), 0.25),
}
k, T, far = 64, 80, 50
rng = np.random.default_rng(10)
turn, noise = rotation(k, rng), rng.standard_normal((k, k)) / np.sqrt(k)
quiet = 0.1 * rng.standard_normal((32, T, k))                           # x·Wx + b of 32 texts
silent = 0 * quiet
v = rng.standard_normal((32, k))
networks = [("tanh", f"{g} · rotation", g * turn, quiet) for g in (0.7, 1.0, 1.3)]
networks += [("tanh", "random", 0.7 * noise, quiet), ("relu", "1.3 · rotation", 1.3 * turn, quiet)]
networks += [("logistic", f"{g} · rotation", g * turn, quiet) for g in (2.8, 4.0, 8.0, 16.0)]
networks += [("tanh", "0.7, no words", 0.7 * turn, silent), ("tanh", "random, no words", 0.7 * noise, silent)]
bounds, per_step, tightest, rows = {}, {}, {}, []
for name, kind, Wh_now, words in networks:
    f, slope, steepest = SLOPES[name]
    h = [np.zeros((32, k))]
    for t in range(T):
        h.append(f(words[:, t] + h[-1] @ Wh_now))
    lengths = np.linalg.norm(gradient_over_steps(slope(np.stack(h[1:], 1)), Wh_now, v), axis=-1)[: far + 1]
    lengths /= lengths[0]                                               # (far + 1, B)
    stretch, part = np.linalg.norm(Wh_now, 2), typical(lengths.T)
    bound = (steepest * stretch) ** np.arange(far + 1)
    bounds[name, kind], per_step[name, kind] = (part, bound), part[far] ** (1 / far)
    tightest[name, kind] = (lengths[1:] / bound[1:, None]).max()
    rows.append((name, kind, stretch, abs(np.linalg.eigvals(Wh_now)).max(), bound[1], part[20], bound[20],
                 per_step[name, kind]))  # fmt: skip
table(("f", "Wh", "‖Wh‖", "radius", "γ‖Wh‖", "d = 20", "bound", "per step"), rows,
      ("{}", "{:.2f}", "{:.2f}", "{:.2f}", "{:.1e}", "{:.1e}", "{:.3f}"),
      title=f"4. ‖v_d‖/‖v‖, the geometric mean of 32 texts, and its bound (per step: the {far}th root at d = {far})")

# %%
expect("largest length / bound, of all with words", below(1), max(
    ratio for (_, kind), ratio in tightest.items() if "no words" not in kind), form="{:.3f}")  # fmt: skip
exact = bounds["tanh", "0.7, no words"]
expect("0.7 · rotation, no words: length / bound, d = 50", about(1, within=1e-9), exact[0][far] / exact[1][far])
expect("tanh, 1.3 · rotation, length at d = 20", below(2), bounds["tanh", "1.3 · rotation"][0][20])
expect("logistic, 4 · rotation, kept in each step", about(0.68, within=0.05), per_step["logistic", "4.0 · rotation"])
expect("logistic, 8 · rotation, kept in each step", about(0.95, within=0.07), per_step["logistic", "8.0 · rotation"])
expect("random matrix, ‖Wh‖", about(1.37, within=0.09), np.linalg.norm(0.7 * noise, 2))
expect("random matrix, its radius", about(0.74, within=0.01), abs(np.linalg.eigvals(0.7 * noise)).max())
expect("random matrix, kept in each step, no words", about(0.72, within=0.02), per_step["tanh", "random, no words"])
arguments = 10 * quiet, np.zeros((32, k)), np.eye(k), 0.7 * noise, np.zeros(k)
h, backward = ops.rnn(*arguments)
dh = np.zeros_like(h)
dh[:, -1] = v
off = abs(gradient_over_steps(1 - h * h, 0.7 * noise, v)[-1] - backward(dh)[1]).max()
expect("v_T, largest difference from dh_0 of ops.rnn", at_most(1e-12), off, form="{:.0e}")
show(lab_03.bound(bounds), "03_bound")

# %% [markdown]
# So the bound can prove that gradients vanish, but not that they explode. With 1.3 · rotation and tanh it allows
# $1.3^{20} = 190$ at d = 20, and the gradient has not even doubled: as the states grow, their slopes shrink.
#
# ## 5. Vanishing and exploding gradients, measured
#
# Now we measure the gradient with respect to each word, with `gradient_by_distance` from `_common.py`. The number
# $v \cdot h_T$ (v random) depends on every word; the backward of `ops.rnn` gives its gradient for all of them at once,
# and we plot $\lVert \partial (v \cdot h_T)/\partial x_{T-d} \rVert = \lVert v_d \, D_{T-d} W_x^\top \rVert$ against
# the distance d. $W_h$ is a random rotation times g: all $|\lambda|$ and all singular values are g. (`typical` is the
# geometric mean over 32 texts.)
#
# For which g does the gradient vanish, and for which does it explode? Guess first.
#
# - tanh, quiet words (entries of size 0.1): a little less than $g^d$ for g = 0.7. With g = 1 the words of a text add up
#   in the state, slopes fall a little below 1, and the gradient with them. With g = 1.3 the states grow until tanh's
#   small slopes cancel nearly all of the growth.
# - tanh, loud words (size 1): much smaller slopes, and everything vanishes, even with g = 1.3.
# - relu: about half of the units are off, and about half of the squared length is lost: a factor of $\sqrt{1/2} = 0.71$
#   or a little less in each step, because it depends on which units are on (0.67 to 0.71 in five seeds). So the
#   threshold is not g = 1 but 1.4 to 1.5.

# %%
n, k, distance = 64, 128, 100
rng = np.random.default_rng(4)
turn, Wx_random = rotation(k, rng), rng.standard_normal((n, k)) * n**-0.5
words = rng.standard_normal((32, distance + 51, n))                     # 32 random texts; the first 50 words fill h
reach, kept = {}, {}                                                    # kept: of the gradient, in each step
for activation, loudness, sizes in (("tanh", "quiet", (0.7, 1.0, 1.3)), ("tanh", "loud", (1.0, 1.3)),
                                    ("relu", "quiet", (0.7, 1.0, 1.3, 2.0))):
    for g in sizes:
        part = typical(gradient_by_distance(
            {"quiet": 0.1, "loud": 1}[loudness] * words, np.zeros((32, k)), Wx_random, g * turn, np.zeros(k), activation
        ))  # fmt: skip
        reach[activation, loudness, g] = part[: distance + 1]
        kept[activation, loudness, g] = part[100] ** 0.01
shown_at = 1, 5, 10, 20, 50, 100
table(("f", "words", "g", *(f"d = {d}" for d in shown_at), "per step"),
      [(*key, *part[list(shown_at)], kept[key]) for key, part in reach.items()],
      ("{}", "{}", *["{:.1e}"] * 6, "{:.3f}"),
      title="5. Size of the gradient at distance d, relative to d = 0 (per step: the hundredth root at d = 100)")
for (activation, loudness, g), expected in (
    (("tanh", "quiet", 0.7), about(0.69, within=0.01)), (("tanh", "quiet", 1.0), about(0.94, within=0.01)),
    (("tanh", "quiet", 1.3), about(1.02, within=0.01)), (("tanh", "loud", 1.3), below(0.85)),
    (("relu", "quiet", 1.3), below(1)), (("relu", "quiet", 2.0), above(1)),
):  # fmt: skip
    expect(f"{activation}, {loudness}, g = {g}, kept per step", expected, kept[activation, loudness, g], form="{:.3f}")
expect("relu, kept per step / g, the mean of four", about(0.69, within=0.03), np.mean(
    [each / g for (activation, _, g), each in kept.items() if activation == "relu"]), form="{:.3f}")  # fmt: skip
show(lab_03.gradient_by_distance(reach), "03_gradient_by_distance")

# %% [markdown]
# Now add up $dW_h = \sum_t h_{t-1}^\top \cdot da_t$ in float32. A contribution $10^{-8}$ times the size of another is
# lost, and with tanh and g = 0.7 the contribution from d = 50 is no larger.
#
# Learning fails long before that limit, because the contribution of a distant word is drowned out by those of the near
# ones: Lab 03b has a network that fails although 1 % of the gradient arrives 8 steps back.

# %%
expect("tanh, quiet, g = 0.7, size at d = 50", below(1e-8), reach["tanh", "quiet", 0.7][50], form="{:.0e}")
expect("1 + 1e-8 in float32", 1, np.float32(1) + np.float32(1e-8))

# %% [markdown]
# ### Exploding gradients in training
#
# Now real text, with a small model: the 200 most frequent words and one for all others, k = 64, T = 50, relu, and
# $W_h = 1.7 \cdot \text{rotation}$, above that threshold. We use plain gradient descent with learning rate 0.5,
# once without clipping and once with the norm of the whole gradient, $\lVert \nabla J \rVert$, clipped at 1:
#
# $$
# \nabla J \leftarrow \nabla J \cdot \min\left(1, \frac{1}{\lVert \nabla J \rVert}\right)
# $$
#
# Clipping keeps the direction and limits the length. It does not make a bad gradient good; it makes a bad step short.
#
# **Expect**, without clipping, a norm above 1,000, then NaN, all within 10 steps. With clipping, **expect** a norm that
# spikes now and then, and a loss that falls nevertheless, from ln 201 = 5.30. Does tanh instead of relu need clipping?
# (Its states are never larger than 1, and where a state is large its slope is small.)

# %%
tokens = tokenize(shakespeare("lab"))
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                                         # (words,)
c = len(vocabulary)
rank = np.empty(c, int)                                                 # of each word: 0 is the most frequent
rank[np.argsort(-np.bincount(ids, minlength=c), kind="stable")] = np.arange(c)
frequent = np.minimum(rank[ids[:60_000]], 200)                          # word 200: all the others


def unstable(activation="relu"):
    """(model, batches): a small model that is about to explode, and its batches."""
    vectors = np.random.default_rng(0).standard_normal((201, 16)).astype(np.float32)
    model = RecurrentModel(vectors, k=64, T=50, activation=activation)
    model.recurrent.Wh.data *= np.float32(1.7)
    return CarriedState(model), ConsecutiveWindows(frequent, 50, 16)


def norms_in_training(clip, steps, activation="relu"):
    """(norms of the gradient before clipping, losses) by step, until the loss is NaN or infinite."""
    model, batches = unstable(activation)
    optimizer, norms, losses = SGD(0.5), [], []
    with np.errstate(all="ignore"):
        for _ in range(steps):
            model.clear_gradients()
            loss, backward = model.loss(next(batches))
            backward()
            norms.append(clip_gradients(model.parameters(), clip))
            optimizer.step(model.parameters())
            losses.append(float(loss))
            if not np.isfinite(loss):
                break
    return np.array(norms), np.array(losses)


# %%
STEPS = 60 if QUICK else 200
runs = {"without clipping": norms_in_training(np.inf, STEPS), "clipped at 1": norms_in_training(1.0, STEPS),
        "tanh, without clipping": norms_in_training(np.inf, STEPS, "tanh")}  # fmt: skip
known = {name: norms[np.isfinite(norms)] for name, (norms, _) in runs.items()}
largest = {name: norms.max() for name, norms in known.items()}
print()
table(("", "steps", "largest ‖∇J‖", "median ‖∇J‖", "last loss"),
      [(name, len(losses), largest[name], np.median(known[name]), losses[-1]) for name, (_, losses) in runs.items()],
      ("{:,}", "{:.1e}", "{:.2g}", "{:.3f}"))  # fmt: skip
print(f"  norms without clipping: {'  '.join(f'{norm:.1e}' for norm in runs['without clipping'][0])}")
expect("without clipping, steps until NaN", below(10), len(runs["without clipping"][1]))
expect("without clipping, largest ‖∇J‖", above(1e3), largest["without clipping"], form="{:.0e}")
expect("first loss − ln 201, nats", about(0, within=1e-3), runs["clipped at 1"][1][0] - np.log(201), form="{:.4f}")
clipped, with_tanh = (runs[name][1][-10:].mean() for name in ("clipped at 1", "tanh, without clipping"))
expect("clipped, last 10 losses, nats", about(2.9, within=0.15), clipped, quick=below(4), form="{:.2f}")
expect("tanh, largest ‖∇J‖", below(10), largest["tanh, without clipping"], form="{:.1f}")
expect("tanh, last 10 losses, nats", about(2.87, within=0.1), with_tanh, quick=below(4), form="{:.2f}")

# %% [markdown]
# `fit` stops once the loss is NaN. **Expect** a message that names the step, and the same training with `clip=1` to
# finish.

# %%
def ending(clip):
    """How `fit` ends: what it returns or, if the loss becomes NaN, the beginning of its message."""
    model, batches = unstable()
    training = Training(model, batches, SGD(0.5), clip=clip)
    try:
        with np.errstate(all="ignore"):
            return fit(training, STEPS, validate=lambda: 0.0, every=STEPS).stopped
    except UserError as error:
        wrapped(f"Training(…, clip={clip}): {error}", rest="    ", width=116)
        return str(error).split(",")[0]


became_nan = f"the loss became nan at step {len(runs['without clipping'][1])}"
for clip, expected in ((None, became_nan), (1.0, "finished")):
    expect(f"clip={clip}, how it ends", expected, ending(clip))
show(lab_03.exploding(runs), "03_exploding")

# %% [markdown]
# ## What to remember
#
# - One set of weights is used at every step, for texts of any length. Its gradient is the sum over the steps.
# - The gradient that reaches d steps back is a product of d Jacobians, at most $(\gamma \lVert W_h \rVert)^d$ times as
#   long. If that factor is below 1 it must vanish; above 1 it may explode, but need not.
# - Clipping helps against exploding gradients, not against vanishing ones. Initializing $W_h$ as the identity, with
#   relu, can (Lab 03b, section 2); gates (LSTM, Hochreiter and Schmidhuber 1997,
#   <https://doi.org/10.1162/neco.1997.9.8.1735>) and attention are the usual remedies (Labs 03c and 03d).
#
# Next: `03b_recurrent_on_shakespeare.py` asks whether the state can carry a word that matters, trains on 250,000 words,
# and measures how much the state helps.
#
# **Try:** $W_h = g \cdot \text{rotation}$ with g = 1.41 and relu; loud words with g = 2; the logistic function with b =
# −½ · (sum of the rows of $W_h$), so that its states stay near ½.
