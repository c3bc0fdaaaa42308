# %% [markdown]
# # Lab 03: a network with a state
#
# Sources: CSCI 567 (USC, spring 2024), lecture 8, recurrent networks and "the problem with recurrence"; CS685 (UMass
# Amherst, 2020), lecture on neural language models, its last part. The gradients are also question 1 of CMU 10-417
# HW3a.
#
# A counting model sees two words back, a fixed window four or ten. A recurrent network has one vector, its state, and
# every word goes into it. In principle the state can remember anything. You will
#
# - run a recurrent network by hand, forward and backward, and hold your numbers against the library's,
# - multiply a matrix by itself fifty times, and see in its eigenvalues what becomes of a gradient,
# - measure how gradients vanish and explode, and blow up a training on purpose.
#
# `03b_recurrent_on_shakespeare.py` trains such a network on Shakespeare, and measures how many words back it really
# remembers.
#
# It takes a few seconds on one CPU core, with or without `--quick`.
#
# Letters: **B** texts side by side, **T** steps, **n** size of a word vector, **k** size of the state, **c** different
# words. Losses are in nats per word. A vector is a row here, x·W; the lectures write columns, W·x. Their W is our
# $W^\top$.

# %%
import textwrap

from _common import gradient_by_distance, quick_mode, show, typical
from _drawing import lab_03
from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.metrics import log_softmax_at
from mini_tf.models import CarriedState, FixedWindowModel, RecurrentModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import SGD, Adam, ConsecutiveWindows, Training, clip_gradients, fit

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
# In words: the new state is made from the new word and the old state. f is tanh or relu. $h_0$ is what the network
# knows before it has read anything; in mini_tf it is learned like the weights.
#
# The smallest example: n = k = 2, three words, f = tanh. $W_h$ is the transpose of the matrix that CSCI 567 prints; we
# will meet it again in section 4.
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

print("1. Three steps by hand, and by ops.rnn")
for t, by_hand in enumerate((h_1, h_2, h_3)):
    print(f"  h_{t + 1}   by hand {numbers(by_hand)}   ops.rnn {numbers(h[:, t])}")
print(f"  largest difference, expected about 1e-16 or 0: {abs(np.stack([h_1, h_2, h_3], 1) - h).max():.0e}")

# %% [markdown]
# ### Any length, the same number of weights
#
# The weights of a fixed window of T words have T·n rows, n for each place: a longer window has more to learn, and what
# it learns at place 92 does not help it at place 83. The recurrent network uses the same $W_x$ and $W_h$ at every step.
#
# **Expect**, with n = 64 and k = 128: weights that grow with T for the fixed window, and the same number throughout for
# the recurrent network. The table of word vectors and the readout are the same in both, and not counted.

# %%
def weights(model):
    """The numbers to learn between the table of word vectors and the readout."""
    return sum(p.data.size for name, p in model.parameters().items() if not name.startswith(("embedding", "readout")))


tiny_table = np.zeros((5, 64), np.float32)
print(f"\n  {'T, words':>8}{'fixed window':>16}{'recurrent':>12}   weights, n = 64, k = 128")
for words in (4, 16, 64, 256):
    fixed = weights(FixedWindowModel(tiny_table, T=words, k=128))
    print(f"  {words:>8}{fixed:>16,}{weights(RecurrentModel(tiny_table, T=words, k=128)):>12,}")
one_model = RecurrentModel(tiny_table, k=128)
shapes = [one_model.logits(np.zeros((1, length), int)).shape for length in (0, 1, 10, 1000)]
print(f"  the same model gives scores of shape {shapes[0]} after 0, 1, 10 and 1,000 words: "
      f"{len(set(shapes)) == 1}")

# %% [markdown]
# ## 2. Teacher forcing
#
# A language model predicts each word from the words before it. The readout turns the state into scores:
#
# $$
# \text{logits}_t = h_t \cdot U + b_2, \qquad
# \pi_t = \text{softmax}(\text{logits}_t), \qquad
# J_t = -\ln \pi_t(\text{the word that comes next})
# $$
#
# $$
# J = \frac{J_1 + \dots + J_T}{T}
# $$
#
# In training the network reads the *true* word at each step, whatever it would have guessed. That is teacher forcing:
# a teacher who corrects after every word. T + 1 words give T predictions, all in one pass.
#
# Take a line of Coriolanus, and let its few words be the whole vocabulary. "know't" comes twice, and two different
# words follow it. A model that sees only one word back cannot tell the two apart: the best it can say is ½ for each,
# ln 2 = 0.693 nats. The state can, because "We" and "we" went into it first.
#
# **Expect** before training ln 6 = 1.792 at every step (the readout starts at 0), and after 200 steps of training
# nearly 0 everywhere, below 0.693 also after both "know't".

# %%
tokens = tokenize(shakespeare("lab"))
place = next(t for t in range(len(tokens)) if tokens[t : t + 6] == ["We", "know't", ",", "we", "know't", "."])
line = tokens[place : place + 7]                                        # the last word is the line's end
few_words = Vocabulary(line)
window = few_words.encode(line)[None]                                   # (1, T + 1)
pupil = RecurrentModel(np.random.default_rng(0).standard_normal((len(few_words), 4)), k=8, T=6)


def step_losses(model, windows):
    """J_t at each step: (B, T)"""
    return -log_softmax_at(model.logits_after_each(windows[:, :-1]), windows[:, 1:])


before = step_losses(pupil, window)[0]
loss_before = float(pupil.loss(window)[0])
adam = Adam(0.02)
for _ in range(200):
    pupil.clear_gradients()
    _, backward = pupil.loss(window)
    backward()
    adam.step(pupil.parameters())
after = step_losses(pupil, window)[0]

print(f"\n2. Teacher forcing: {' '.join(line[:-1])!r}, {len(few_words)} different words with the end of the line")
print(f"  {'step':>4}   {'read':<8}{'predict':<10}{'J_t untrained':>14}{'J_t trained':>13}   nats")
for t in range(len(line) - 1):
    read, target = (repr(word)[1:-1] if word == "\n" else word for word in line[t : t + 2])
    print(f"  {t + 1:>4}   {read:<8}{target:<10}{before[t]:>14.3f}{after[t]:>13.3f}")
print(f"  {'mean over the steps':<25}{before.mean():>14.3f}{after.mean():>13.3f}")
print(f"  model.loss(window)       {loss_before:>14.3f}{float(pupil.loss(window)[0]):>13.3f}   J is that mean")

# %% [markdown]
# When the model writes (`03b_recurrent_on_shakespeare.py`) there is no teacher: it reads its own words. A mistake then
# stays in the state, and in training the network never saw a state that contained mistakes of its own.
#
# ## 3. Backpropagation through time
#
# Unroll the network: three steps are a network of three layers that happen to share their weights. So its gradient is
# ordinary backpropagation, from the last step to the first. Two things are new.
#
# First, a gradient reaches $h_t$ from two sides: from its own prediction, and from step t + 1, which read it.
#
# $$
# dh_t = (\text{from above}) + da_{t+1} \cdot W_h^\top, \qquad
# da_t = dh_t \cdot f'(a_t)
# $$
#
# $f'$ is known from the state itself: $1 - h^2$ for tanh; for relu, 1 where h > 0 and else 0.
#
# Second, each step has a gradient for the *same* $W_h$. They add up:
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
    """ops.rnn for three steps, written out:  x (B, 3, n) → h (B, 3, k), backward"""
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
# Here only the last state receives a gradient from above, (1, −1): $dh_1$ and $dh_2$ come from step 3 alone.
#
# **Expect** each $da_t$ to be the next one times $W_h^\top$ and the slope, and the three 2 × 2 contributions to add up
# to $dW_h$, to the last digit. **Expect** no difference from `ops.rnn` beyond rounding, with tanh and with relu, and a
# PASS from `gradcheck`, which measures slopes by differences and trusts nobody's algebra.

# %%
from_above = np.zeros((1, 3, 2))
from_above[:, 2] = 1, -1
steps = {}
_, backward = rnn_by_hand(x, h_0, Wx, Wh, b, say=steps.__setitem__)
by_hand = backward(from_above)
print("\n3. Backpropagation through time, T = 3, tanh")
for name, value in steps.items():
    print(f"  {name:<10} {numbers(value)}")
print(f"  sum = dWh  {numbers(sum(value for name, value in steps.items() if name.startswith('h')))}")
print(f"  ops.rnn    {numbers(ops.rnn(x, h_0, Wx, Wh, b, 'tanh')[1](from_above)[3])}")

rng = np.random.default_rng(3)
dh = rng.standard_normal((1, 3, 2))                                     # now a gradient from above at every step
for activation in ("tanh", "relu"):
    ours = rnn_by_hand(x, h_0, Wx, Wh, b, activation)[1](dh)
    theirs = ops.rnn(x, h_0, Wx, Wh, b, activation)[1](dh)
    off = max(abs(mine - its).max() for mine, its in zip(ours, theirs))
    report = gradcheck(rnn_by_hand, x, h_0, Wx, Wh, b, activation)
    print(f"\n  {activation}: largest difference from ops.rnn {off:.0e}")
    print(textwrap.indent(str(report), "  "))

# %% [markdown]
# ### Which step teaches `Wh`?
#
# The contributions have very different sizes. A longer example: 20 steps, k = 32, random words, and a gradient that
# enters at the last step only. We draw $\lVert h_{t-1}^\top \cdot da_t \rVert$ for each step t.
#
# **Expect** nearly all of $dW_h$ to come from the last steps, and less so if $W_h$ stretches what it carries. That late
# steps count more has nothing to do with language. It comes from the repeated products.

# %%
def rotation(k, rng):
    """A random matrix that keeps all lengths: Q·Qᵀ = I"""
    return np.linalg.qr(rng.standard_normal((k, k)))[0]


def contributions(x, h_0, Wx, Wh, b, dh):
    """‖h_{t−1}ᵀ·da_t‖ for t = 1 … T, tanh, and dWh; written again, because ops.rnn gives their sum only."""
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
print(f"\n  share of the contributions' norms, {T_bars} steps, gradient from the last step only")
for g in (0.7, 1.0, 1.3):
    bars[g], dWh = contributions(x_bars, h0_bars, Wx_bars, g * turn, np.zeros(k_bars), dh_bars)
    theirs = ops.rnn(x_bars, h0_bars, Wx_bars, g * turn, np.zeros(k_bars))[1](dh_bars)[3]
    assert np.allclose(dWh, theirs)                                     # the contributions do add up
    print(f"  Wh = {g} · rotation:  last 5 steps {bars[g][-5:].sum() / bars[g].sum():>4.0%},  "
          f"first 5 steps {bars[g][:5].sum() / bars[g].sum():>6.2%}")

gradients = [steps[f"da_{t}"] for t in (1, 2, 3)]
show(lab_03.through_time(x[0], (h_0, h_1, h_2, h_3), gradients, from_above[0, 2], bars), "03_through_time")

# %% [markdown]
# ## 4. A matrix times itself
#
# On its way from step t back to step t − d the gradient is multiplied by $W_h^\top$ (and a slope) d times. Forward it
# is the same: what the word at t − d put into the state reaches $h_t$ through d products. CSCI 567 shows what that does
# with
#
# $$
# W = \begin{pmatrix} 0.8 & 0.2 \\ -0.6 & 0.9 \end{pmatrix}
# $$
#
# and prints $W^5$, $W^{10}$ and $W^{50}$ to two decimals.
#
# **Expect** all twelve printed numbers to be the exact ones, rounded.

# %%
W = np.array([[0.8, 0.2], [-0.6, 0.9]])
PRINTED = {
    5: [[-0.31, 0.35], [-1.06, -0.13]],
    10: [[-0.28, -0.16], [0.47, -0.36]],
    50: [[0.01, 0.00], [-0.01, 0.01]],
}
print("\n4. Powers of the lecture's W")
right = 0
for t, printed in PRINTED.items():
    power = np.linalg.matrix_power(W, t)
    off = abs(power - printed).max()
    right += int(np.sum(np.round(power, 2) == printed))
    print(f"  W^{t:<3} computed {numbers(power, 4):<40} printed {numbers(np.array(printed), 2):<34} off by {off:.4f}")
print(f"  {right} of 12 printed numbers are the computed ones, rounded to two decimals")

# %% [markdown]
# Why do they shrink? Ask the eigenvalues. Along an eigenvector, multiplying by W is multiplying by λ, so $W^t$ behaves
# like $|\lambda|^t$ for the largest $|\lambda|$, the spectral radius. Complex eigenvalues also rotate, by their angle
# at each step.
#
# **Expect** two complex ones with $|\lambda| = \sqrt{\det W} = \sqrt{0.84} = 0.917$, so that half is left after
# $\ln 2/(-\ln 0.917) = 8$ steps. And something that the eigenvalues do *not* tell: $\lVert W \rVert$, the most that one
# step can stretch, is above 1. The powers first grow, then shrink. Eigenvalues describe the end, not the beginning.

# %%
values = np.linalg.eigvals(W)
radius = abs(values).max()
norms = np.array([np.linalg.norm(np.linalg.matrix_power(W, t), 2) for t in range(101)])      # ‖W^t‖, t = 0 … 100
print(f"\n  eigenvalues {values[0]:.3f} and {values[1]:.3f},  spectral radius {radius:.4f},  √det W "
      f"{np.sqrt(np.linalg.det(W)):.4f}")
print(f"  a full turn takes {2 * np.pi / abs(np.angle(values[0])):.1f} steps; half is left after "
      f"{np.log(2) / -np.log(radius):.1f}")
print(f"  ‖W‖ = {norms[1]:.3f}, the largest ‖W^t‖ is {norms.max():.3f} at t = {norms.argmax()}, below 1 for good from "
      f"t = {np.flatnonzero(norms >= 1)[-1] + 1}")
print(f"\n  {'t':>5}{'‖W^t‖':>12}{'|λ|^t':>12}{'radius 0.9':>14}{'1.0':>10}{'1.1':>12}")
scaled = {r: np.array([np.linalg.norm(np.linalg.matrix_power(W * r / radius, t), 2) for t in range(101)])
          for r in (0.9, 1.0, 1.1)}
for t in (0, 1, 5, 10, 20, 50, 100):
    print(f"  {t:>5}{norms[t]:>12.5f}{radius**t:>12.5f}{scaled[0.9][t]:>14.2e}{scaled[1.0][t]:>10.2f}"
          f"{scaled[1.1][t]:>12.2e}")

path = np.array([np.linalg.matrix_power(W, t) @ [1, 0] for t in range(51)])
show(lab_03.powers(path, norms, radius, scaled), "03_powers")

# %% [markdown]
# The lecture concludes that inputs from far away do not contribute. That holds for this W, whose radius is 0.917. At
# 1.1 they contribute all too much. Between the two lies one number, 1, and nothing in training holds the radius there.
#
# ## 5. Vanishing and exploding gradients, measured
#
# A network is more than powers of $W_h$: $f'$ is multiplied in at each step. So we measure. The number $v \cdot h_T$ (v
# random) depends on every word; ops.rnn's backward gives its gradient for all of them at once, and we draw
# $\lVert \partial (v \cdot h_T)/\partial x_{T-d} \rVert$ against the distance d. $W_h$ is a random rotation times g.
# All $|\lambda|$ are then g, and $W_h$ stretches every vector by g. (`gradient_by_distance` and `typical`, their mean
# over 32 texts, are in `_common.py`.)
#
# **Expect**
#
# - tanh, quiet words (entries of size 0.1): the slope is near 1, so nearly $g^d$. With g = 1 the words of a text add up
#   in the state, slopes fall a little below 1, and the gradient with them. With g = 1.3 the states grow until tanh's
#   small slopes cancel nearly all of the growth.
# - tanh, loud words (size 1): much smaller slopes, everything vanishes.
# - relu: half of the units are off, half of the squared length is lost, a factor $\sqrt{1/2} = 0.71$ per step. The
#   border is not at g = 1 but at $g = \sqrt{2} = 1.41$, whatever the words. With 1.3 the gradient still vanishes, with
#   2.0 it explodes.

# %%
n, k, distance = 64, 128, 100


rng = np.random.default_rng(4)
turn, Wx_random = rotation(k, rng), rng.standard_normal((n, k)) * n**-0.5
words = rng.standard_normal((32, distance + 51, n))                     # 32 random texts; the first 50 words fill h
reach = {}
print("\n5. Size of the gradient at distance d, relative to that at d = 0")
print(f"  {'f':<6}{'words':<8}{'g':>4}{'d = 1':>10}{'5':>10}{'10':>10}{'20':>10}{'50':>10}{'100':>10}{'per step':>11}")
for activation, loudness, sizes in (("tanh", 0.1, (0.7, 1.0, 1.3)), ("tanh", 1.0, (1.0, 1.3)),
                                    ("relu", 0.1, (0.7, 1.0, 1.3, 2.0))):
    for g in sizes:
        part = typical(gradient_by_distance(
            loudness * words, np.zeros((32, k)), Wx_random, g * turn, np.zeros(k), activation
        ))  # fmt: skip
        reach[activation, loudness, g] = part[: distance + 1]
        print(f"  {activation:<6}{'loud' if loudness == 1 else 'quiet':<8}{g:>4}"
              + "".join(f"{part[d]:>10.1e}" for d in (1, 5, 10, 20, 50, 100)) + f"{part[100] ** 0.01:>11.3f}")
print("  (per step: the hundredth root of the column d = 100)")

show(lab_03.gradient_by_distance(reach), "03_gradient_by_distance")

# %% [markdown]
# In float32 a gradient of $10^{-8}$ times another's size is lost when both are added up in
# $dW_h = \sum_t h_{t-1}^\top \cdot da_t$. So "vanishing" means: the network never learns that the word 50 steps back
# was the one that mattered.
#
# ### An explosion
#
# Now on real text, with a small model: the 200 most frequent words and one for all others, k = 64, T = 50, relu, and
# $W_h = 1.5 \cdot \text{rotation}$, a little above the border of 1.41. Plain gradient descent, learning rate 0.5, once
# as it is and once with the norm of all gradients together clipped at 1:
#
# $$
# g \leftarrow g \cdot \min\left(1, \frac{1}{\lVert g \rVert}\right)
# $$
#
# Clipping keeps the direction and limits the length. It does not make the gradient right; it makes a bad step short.
#
# **Expect**, without clipping, a norm that is harmless for a few steps, then enormous, then NaN; and with clipping a
# norm that jumps now and then, and a loss that falls all the same: from ln 201 = 5.30 to about 3 nats.

# %%
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                                         # (words,)
c = len(vocabulary)
rank = np.empty(c, int)                                                 # of each word: 0 is the most frequent
rank[np.argsort(-np.bincount(ids, minlength=c), kind="stable")] = np.arange(c)
frequent = np.minimum(rank[ids[:60_000]], 200)                          # word 200: all the others


def unstable():
    """(model, batches): a small model that is about to explode, and what it reads."""
    table = np.random.default_rng(0).standard_normal((201, 16)).astype(np.float32)
    model = RecurrentModel(table, k=64, T=50, activation="relu")
    model.recurrent.Wh.data *= np.float32(1.5)
    return CarriedState(model), ConsecutiveWindows(frequent, 50, 16)


def norms_in_training(clip, steps):
    """(norms of the gradient before clipping, losses) by step, until the loss is NaN or infinite."""
    model, batches = unstable()
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


STEPS = 60 if QUICK else 200
runs = {"without clipping": norms_in_training(np.inf, STEPS), "clipped at 1": norms_in_training(1.0, STEPS)}
print(f"\n  {'':<18}{'steps':>6}{'largest ‖g‖':>14}{'median ‖g‖':>13}{'last loss':>12}")
for name, (norms, losses) in runs.items():
    known = norms[np.isfinite(norms)]
    print(f"  {name:<18}{len(losses):>6}{known.max():>14.1e}{np.median(known):>13.2f}{losses[-1]:>12.3f}")
print(f"  norms without clipping: {'  '.join(f'{norm:.1e}' for norm in runs['without clipping'][0])}")

# %% [markdown]
# `fit` stops once the loss is NaN. **Expect** a message that names the step, and the same
# training with `clip=1` to end well.

# %%
def try_to_fit(clip):
    model, batches = unstable()
    with np.errstate(all="ignore"):
        history = fit(Training(model, batches, SGD(0.5), clip=clip), STEPS, validate=lambda: 0.0, every=STEPS)
    return f"{history.stopped}, mean training loss {history.rows[-1]['train_loss']:.2f}"


for clip in (None, 1.0):
    try:
        print(f"  Training(…, clip={clip}): {try_to_fit(clip)}")
    except UserError as error:
        print(f"  Training(…, clip={clip}): UserError: {error}")

show(lab_03.exploding(runs), "03_exploding")

# %% [markdown]
# tanh would have spared us this: its states are never larger than 1, and where the state is large its slope is small.
#
# ## What to take along
#
# - One set of weights, used at every step: any length, no more weights. Its gradient is the sum over the steps.
# - What reaches back d steps is a product of d matrices. It vanishes or explodes, and the border is one number. Clip
#   against explosions. Against vanishing no such line of code helps; gates do (LSTM, Hochreiter and Schmidhuber 1997),
#   and attention.
#
# Next: `03b_recurrent_on_shakespeare.py` trains such a network on 250,000 words, and measures what its state is worth.
#
# **Try:** $W_h = g \cdot \text{rotation}$ with g = 1.41 and relu; loud words with g = 2; another line for teacher
# forcing, in which a word comes three times.
