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
# - measure how gradients vanish and explode, and blow up a training on purpose,
# - train a recurrent language model on Shakespeare, and measure how many words back it really remembers.
#
# It takes two to three minutes on one core of a processor, about a third of a minute with `--quick` (too short for the
# model of section 6 to learn much: read its conclusions off the full run), and twice as long or more on a machine that
# has other work. Set OPENBLAS_NUM_THREADS=1 there.
#
# Letters: **B** texts side by side, **T** steps, **n** size of a word vector, **k** size of the state, **c** different
# words. Losses are in nats per word. A vector is a row here, x·W; the lectures write columns, W·x. Their W is our Wᵀ.

# %%
import textwrap
from functools import partial
from time import perf_counter

from _common import loop_length, quick_mode, repeated_triples, show
from mini_tf import ops
from mini_tf.decoding import generate, greedy, sample
from mini_tf.errors import UserError
from mini_tf.gradcheck import gradcheck
from mini_tf.metrics import log_softmax_at, unigram_cross_entropy
from mini_tf.models import CarriedState, FixedWindowModel, NGramModel, RecurrentModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import SGD, Adam, clip_gradients, consecutive_windows, fit, split_words, windows_ending_at
from mini_tf.training.figures import draw_curves
from mini_tf.training.progress import training_progress

import numpy as np
from matplotlib.figure import Figure

QUICK = quick_mode("Lab 03: a recurrent network, its gradients through time, and how far back it remembers")
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#aa4499"     # told apart by the colour-blind too


def numbers(array, digits=3):
    """A vector or matrix in one line; a −0 is a 0."""
    rows = np.atleast_2d(np.round(array, digits) + 0.0)
    return "(" + ";  ".join("  ".join(f"{value:.{digits}f}" for value in row) for row in rows) + ")"


def tidy(axes):
    axes.spines[["top", "right"]].set_visible(False)


# %% [markdown]
# ## 1. One state, the same weights at every step
#
#     h_t = f(x_t·Wx + h_{t−1}·Wh + b)          x_t (n,)   h_t, b (k,)   Wx (n, k)   Wh (k, k)
#
# Read it aloud: the new state is made of the new word and of the old state. f is tanh or relu. h_0 is what the network
# knows before it has read anything; in mini_tf it is learned like the weights.
#
# The smallest example: n = k = 2, three words, f = tanh. Wh is the transpose of the matrix that CSCI 567 prints; we
# shall need it again in section 4.
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
# A fixed window of T words has a block of T·n rows in its weights, one for each place: a longer window has more to
# learn, and learns at place 83 nothing from what it saw at place 92. The recurrent network uses Wx and Wh at every
# step.
#
# **Expect**, with n = 64 and k = 128: weights that grow with T on the left, one number on the right. The tables of word
# vectors and the readout are the same in both, and not counted.

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
shapes = [one_model.next_word_logits(np.zeros((1, length), int)).shape for length in (0, 1, 10, 1000)]
print(f"  the same model after 0, 1, 10 and 1,000 words gives scores of shape {shapes[0]}, and each time so: "
      f"{len(set(shapes)) == 1}")

# %% [markdown]
# ## 2. Teacher forcing
#
# A language model predicts each word from the words before it. The readout makes scores of the state:
#
#     logits_t = h_t·U + b₂          π_t = softmax(logits_t)          J_t = −ln π_t(the word that comes next)
#     J = (J_1 + … + J_T)/T
#
# In training the network reads the *true* word at each step, whatever it would have guessed. That is teacher forcing:
# a teacher who corrects after every word. It makes T predictions out of T + 1 words, all in one pass.
#
# Take a line of Coriolanus, and let its few words be the whole vocabulary. "know't" comes twice, and two different
# words follow it. Whoever sees one word back cannot tell them apart: the best they can say is ½ for each, ln 2 = 0.693
# nats. The state can, because "We" and "we" went into it first.
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
    return -log_softmax_at(model.logits(windows[:, :-1]), windows[:, 1:])


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
# When the model writes (section 7) there is no teacher: it reads its own words. A slip then stays in the state, and
# training has never shown the network a state with slips of its own.
#
# ## 3. Backpropagation through time
#
# Unroll the network: three steps are a network of three layers that happen to have the same weights. So its gradient is
# ordinary backpropagation, from the last step to the first. Two things are new.
#
# First, a gradient reaches h_t from two sides: from its own prediction, and from step t + 1, which read it.
#
#     dh_t = (from above) + da_{t+1}·Whᵀ          da_t = dh_t·f′(a_t)
#
# f′ is known from the state itself: 1 − h² for tanh; for relu, 1 where h > 0 and else 0.
#
# Second, each step has a gradient for the *same* Wh. They add up:
#
#     dWh = Σ_t h_{t−1}ᵀ·da_t          dWx = Σ_t x_tᵀ·da_t          db = Σ_t da_t
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
# Only the last state counts here, with the gradient (1, −1): dh_1 and dh_2 come from step 3 alone.
#
# **Expect**: each da is the next one's, times Whᵀ and the slope. The three 2 × 2 contributions add up to dWh, to the
# last digit. No difference from `ops.rnn` beyond rounding, with tanh and with relu, and a PASS from `gradcheck`, which
# measures slopes by differences and believes nobody's algebra.

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
# ### Which step teaches Wh?
#
# The contributions have very different sizes. A longer example: 20 steps, k = 32, random words, and a gradient that
# enters at the last step only. We draw ‖h_{t−1}ᵀ·da_t‖ for each step t.
#
# **Expect** the last steps to teach nearly all, and less so if Wh stretches what it carries. That a late step counts
# more is no property of language. It is what the products do.

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

figure = Figure(figsize=(9, 7), layout="constrained")
top, bottom = figure.subplots(2, 1, height_ratios=(1.1, 1))
top.set(xlim=(-0.6, 3.9), ylim=(-0.35, 2.35), title="Forward (blue) and backward (orange) through three steps")
top.axis("off")
boxed = {"ha": "center", "va": "center", "fontsize": 10}
for t, state in enumerate((h_0, h_1, h_2, h_3)):
    top.text(t, 1.2, f"$h_{t}$\n{numbers(state, 2)}", bbox={"boxstyle": "round,pad=0.5", "fc": "#dcebf7", "ec": BLUE},
             **boxed)  # fmt: skip
    if t:
        top.text(t, 0, f"$x_{t}$\n{numbers(x[:, t - 1], 0)}",
                 bbox={"boxstyle": "round,pad=0.4", "fc": "white", "ec": "0.5"}, **boxed)
        top.annotate("", (t, 0.88), (t, 0.3), arrowprops={"arrowstyle": "->", "color": BLUE, "lw": 1.6})
        top.text(t + 0.05, 0.57, "Wx", color=BLUE, fontsize=10)
        top.annotate("", (t - 0.32, 1.3), (t - 0.68, 1.3), arrowprops={"arrowstyle": "->", "color": BLUE, "lw": 1.6})
        top.text(t - 0.5, 1.38, "Wh", color=BLUE, ha="center", fontsize=10)
        top.annotate("", (t - 0.68, 1.1), (t - 0.32, 1.1),
                     arrowprops={"arrowstyle": "->", "color": ORANGE, "lw": 1.6, "ls": "--"})
        top.text(t - 0.5, 0.88, "Whᵀ", color=ORANGE, ha="center", fontsize=10)
        top.text(t, 1.72, f"$da_{t}$ = {numbers(steps[f'da_{t}'], 2)}", color=ORANGE, ha="center", fontsize=10)
top.annotate("", (3.32, 1.2), (3.68, 1.2), arrowprops={"arrowstyle": "->", "color": ORANGE, "lw": 1.6, "ls": "--"})
top.text(3.5, 1.29, "(1  −1)", color=ORANGE, ha="center", fontsize=10)
top.text(1.5, 2.12, "the three arrows Wh are one matrix:  $dWh = h_0^T da_1 + h_1^T da_2 + h_2^T da_3$", ha="center",
         fontsize=11)  # fmt: skip
for shift, (g, colour) in enumerate(zip(bars, (PURPLE, BLUE, ORANGE))):
    bottom.bar(np.arange(1, T_bars + 1) + 0.28 * (shift - 1), bars[g], 0.28, color=colour, label=f"Wh = {g} · rotation")
bottom.set(title="What each of 20 steps contributes to dWh; the gradient enters at step 20", xlabel="step t",
           ylabel="‖h$_{t-1}^T$ da$_t$‖ (log scale)", yscale="log", xticks=range(1, T_bars + 1))  # fmt: skip
bottom.set_ylim(top=100)
bottom.legend(frameon=False, loc="upper left", ncols=3)
tidy(bottom)
show(figure, "03_through_time")

# %% [markdown]
# ## 4. A matrix times itself
#
# To come from step t back to step t − d, the gradient is multiplied by Whᵀ (and a slope) d times. Forward it is the
# same product: what the word at t − d put into the state reaches h_t through d products. CSCI 567 shows what that does
# with
#
#     W = ( 0.8  0.2; −0.6  0.9)
#
# and prints W⁵, W¹⁰ and W⁵⁰ to two decimals.
#
# **Expect** all twelve printed numbers to be right: the exact ones, rounded.

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
# Why do they shrink? The eigenvalues tell. Along an eigenvector, a product with W is a product with λ, so Wᵗ goes like
# |λ|ᵗ for the largest |λ|, the spectral radius. Complex eigenvalues turn as they shrink, by their angle at each step.
#
# **Expect** two complex ones with |λ| = √det W = √0.84 = 0.917, half of which is left after ln 2/−ln 0.917 = 8 steps.
# And something that the eigenvalues do *not* tell: ‖W‖, the most that one step can stretch, is above 1. The powers
# first grow, then shrink. Eigenvalues speak of the end, not of the beginning.

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

figure = Figure(figsize=(12, 4), layout="constrained")
spiral, decay, three = figure.subplots(1, 3)
path = np.array([np.linalg.matrix_power(W, t) @ [1, 0] for t in range(51)])
spiral.plot(*path.T, "-", color="0.75", linewidth=1)
points = spiral.scatter(*path.T, c=range(51), cmap="viridis", s=22, zorder=3)
for t, offset in ((0, (7, 5)), (5, (-38, -4)), (10, (-44, 2))):
    spiral.annotate(f"t = {t}", path[t], xytext=offset, textcoords="offset points", fontsize=9)
figure.colorbar(points, label="t, steps", shrink=0.8)
spiral.set(title="W$^t$ · (1, 0): it turns and shrinks", xlabel="first entry", ylabel="second entry", aspect="equal",
           xlim=(-0.9, 1.4))
decay.semilogy(norms, color=BLUE, label="‖W$^t$‖")
decay.semilogy(radius ** np.arange(101), "--", color="0.3", label=f"|λ|$^t$ = {radius:.3f}$^t$")
decay.axhline(1, color="0.8", linewidth=1, zorder=0)
decay.set(title="The lecture's W", xlabel="t, steps", ylabel="norm (log scale)")
decay.legend(frameon=False)
for r, colour in zip(scaled, (PURPLE, GREEN, ORANGE)):
    three.semilogy(scaled[r], color=colour, label=f"radius {r}")
    three.semilogy(r ** np.arange(101), "--", color=colour, linewidth=0.8)
three.set(title="W scaled; dashed: radius$^t$", xlabel="t, steps", ylabel="‖W$^t$‖ (log scale)")
three.legend(frameon=False)
for axes in (spiral, decay, three):
    tidy(axes)
show(figure, "03_powers")

# %% [markdown]
# The lecture concludes that inputs from far away do not contribute. That is this W, whose radius is 0.917. At 1.1 they
# contribute all too much. Between the two lies one number, 1, and nothing in training holds the radius there.
#
# ## 5. Vanishing and exploding gradients, measured
#
# A network is more than powers of Wh: f′ is multiplied in at each step. So we measure. The number v·h_T (v random)
# depends on every word; ops.rnn's backward gives its gradient for all of them at once, and we take ‖∂(v·h_T)/∂x_{T−d}‖
# against the distance d. Wh is a random rotation times g. All |λ| are then g, and Wh stretches every vector by g.
#
# **Expect**
#
# - tanh, quiet words (entries of size 0.1): the slope is near 1, so nearly gᵈ. With g = 1 the words
#   of a text add up in the state, slopes fall a little below 1, and the gradient with them. With g = 1.3 the states
#   grow until tanh's slopes have eaten nearly all of the growth.
# - tanh, loud words (size 1): much smaller slopes, everything vanishes.
# - relu: half of the units are off, half of the squared length is lost, √½ = 0.71 per step. Not g = 1 is the border but
#   g = √2 = 1.41, whatever the words. 1.3 vanishes still, 2.0 explodes.

# %%
n, k, distance = 64, 128, 100


def gradient_by_distance(x, h_0, Wx, Wh, b, activation):
    """‖∂(v·h_T)/∂x_{T−d}‖, d = 0 … T − 1, for each text: (B, T)"""
    h, backward = ops.rnn(x, h_0, Wx, Wh, b, activation)
    dh = np.zeros_like(h)
    dh[:, -1] = np.random.default_rng(5).standard_normal(h[:, -1].shape)         # v, another for each text
    dx, *_ = backward(dh)
    return np.linalg.norm(dx, axis=-1)[:, ::-1]


def typical(gradients):
    """The geometric mean over texts, as a part of that at d = 0: (T,)"""
    mean = np.exp(np.log(np.maximum(gradients, 1e-300)).mean(0))
    return mean / mean[0]


rng = np.random.default_rng(4)
turn, Wx_random = rotation(k, rng), rng.standard_normal((n, k)) * n**-0.5
words = rng.standard_normal((32, distance + 51, n))                     # 32 random texts; the first 50 words fill h
reach = {}
print("\n5. Size of the gradient at distance d, as a part of that at d = 0")
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
print("  (per step: the hundredth root of the last column but one)")

figure = Figure(figsize=(10, 4.4), layout="constrained")
colours = {0.7: PURPLE, 1.0: GREEN, 1.3: ORANGE, 2.0: "black"}
for axes, activation in zip(figure.subplots(1, 2, sharey=True), ("tanh", "relu")):
    for (name, loudness, g), part in reach.items():
        if name == activation:
            loud = ", loud words" if loudness == 1 else ""
            axes.semilogy(part, ":" if loud else "-", color=colours[g], label=f"g = {g}{loud}", linewidth=1.8)
    for g in (0.7, 1.0, 1.3):
        axes.semilogy(g ** np.arange(distance + 1.0), "--", color=colours[g], linewidth=0.8)
    axes.set(title=f"{activation} (dashed: g$^d$)", xlabel="distance d, words", ylim=(1e-20, 1e16))
    axes.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
    tidy(axes)
figure.axes[0].set_ylabel("size of the gradient, part of that at d = 0 (log scale)")
show(figure, "03_gradient_by_distance")

# %% [markdown]
# In float32 a gradient that is 10⁻⁸ of its neighbour is lost in the sum dWh = Σ_t. So "vanishing" means: the network is
# never told that the word 50 steps back was the one that mattered.
#
# ### An explosion
#
# Now on real text, with a small model: the 200 most frequent words and one for all others, k = 64, T = 50, relu, and Wh
# = 1.5 · rotation, a little above the border of 1.41. Plain gradient descent, learning rate 0.5, once as it is and once
# with the norm of all gradients together clipped at 1:
#
#     g ← g·min(1, 1/‖g‖)
#
# Clipping leaves the direction and takes away the length. It does not make the gradient right; it makes a bad step
# short.
#
# **Expect** without clipping a norm that is harmless for a few steps, then beyond all measure, then no number; and with
# it a norm that jumps at times, and a loss that falls all the same: from ln 201 = 5.30 to about 3 nats.

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
    return CarriedState(model), consecutive_windows(frequent, 50, 16)


def norms_in_training(clip, steps):
    """(norms of the gradient before clipping, losses) by step; until the loss is not a number."""
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
# `fit` does not train on with numbers that are none. **Expect** a sentence that names the step; and the same call with
# `clip=1` to end well.

# %%
def try_to_fit(clip):
    model, batches = unstable()
    with np.errstate(all="ignore"):
        history = fit(model, batches, SGD(0.5), steps=STEPS, validate=lambda: 0.0, every=STEPS, clip=clip)
    return f"{history.stopped}, mean training loss {history.rows[-1]['train_loss']:.2f}"


for clip in (None, 1.0):
    try:
        print(f"  fit(…, clip={clip}): {try_to_fit(clip)}")
    except UserError as error:
        print(f"  fit(…, clip={clip}): UserError: {error}")

figure = Figure(figsize=(10, 4), layout="constrained")
left, right = figure.subplots(1, 2)
for (name, (norms, losses)), colour, marker in zip(runs.items(), (ORANGE, BLUE), ("o", "")):
    shown_steps = np.arange(1, len(norms) + 1)
    number = np.isfinite(norms)
    left.semilogy(shown_steps[number], norms[number], marker=marker, color=colour, label=name, markersize=4)
    right.plot(shown_steps, np.minimum(losses, 9), marker=marker, color=colour, label=name, markersize=4)
    if not np.isfinite(losses[-1]):
        left.annotate("not a number\nfrom here on", (shown_steps[number][-1], norms[number].max()), xytext=(8, -6),
                      textcoords="offset points", color=colour, fontsize=9, va="top")
left.axhline(1, color="0.6", linestyle="--", linewidth=1)
left.annotate("clipped to 1", (1, 1), xycoords=("axes fraction", "data"), xytext=(-2, 4), textcoords="offset points",
              ha="right", fontsize=9, color="0.4")
left.set(title="Norm of all gradients, before clipping", xlabel="step", xlim=(0, 60), ylabel="‖g‖ (log scale)")
right.set(title="Training loss (cut off at 9)", xlabel="step", xlim=(0, 60), ylabel="cross-entropy in nats per word")
left.legend(frameon=False, loc="upper right")
for axes in (left, right):
    tidy(axes)
show(figure, "03_exploding")

# %% [markdown]
# tanh would have spared us: its states are never larger than 1, and where the state is large its slope is small. So
# the next model uses it. (And clips: tanh makes explosions rare, not impossible.)
#
# ## 6. A recurrent model of Shakespeare
#
# All of the above in one: random word vectors that are learned, a state of 128 numbers, a readout to 14,295 words.
#
# **Truncated backpropagation through time.** Nobody unrolls a network over 250,000 words. The text is cut into 16
# long pieces that are read side by side, 32 words at a time. The state goes on from batch to batch (`CarriedState`),
# but as a constant: what the network knows reaches back to the beginning, what it is taught reaches back 32 words.
#
# **The readout's start**, a pitfall that we fell into. With b₂ = 0 the first thing to learn is which words are
# frequent. Adam pushes everything that way, the state too: it is driven into the flat ends of tanh, to serve as one
# more constant, and there its slopes are nearly 0. With the sizes of `--quick` the mean slope fell to 0.02, and the
# test loss stayed at 6.29, above the unigram's. With the larger sizes training went on well, to 5.4 nats after 400
# steps, but the validation loss was 16.7 then: validation begins at h_0, and from there the state went to a place that
# it never saw in training.
#
# But which words are frequent can be counted: b₂ = ln(unigram). So the model starts at the unigram's loss, and the
# state is free for what only a state can do. The small sizes then came to 5.90, and the validation loss stayed near
# the training loss.
#
# **The beginning.** With the state carried on and on, hardly a batch begins at h_0, and h_0 is hardly learned. We
# start every 64th batch there, so that the model knows how to begin, and a comparison with and without carried state
# is fair.

# %%
n, k, T, batch, training_steps = (32, 64, 16, 16, 120) if QUICK else (64, 128, 32, 16, 800)
EMBEDDING_SIZE = 0.3                                     # of the entries of the first, random word vectors
EVERY = 64                                               # so many batches from one beginning at h_0 to the next
train, validation, test = split_words(ids, T)            # the last two begin with T words of the part before
first_test = len(ids) - (len(test) - T)                  # the first of the test words, as an index in ids
first_validation = len(train)
HEARD = 200                                              # words that are read before the first that is measured


def cross_entropy(model, first, last):
    """Nats per word of the words first … last − 1, read in one go, with some words before them to warm up."""
    start = max(first - HEARD, 0)
    return -model.log_probabilities(ids[start:last], first - start).mean()


# %% [markdown]
# ### The bar
#
# The n-gram models of Lab 01. One thing first: the network learns from 85.5 % of the words; 4.5 % are set aside to
# validate; the last 10 % are the test. The counting model of Lab 01 counts the validation words too. They stand right
# before the test and lead into the play that it begins in, with its names. Fair is to compare models that have seen the
# same words, so we count twice.
#
# **Expect** 9.568 for a uniform guess, 6.06 for counts of single words, 5.05 for three words with the validation words
# counted, and clearly more without them.

# %%
def counted(words, order):
    """Test cross-entropy of an n-gram model: interpolated Kneser-Ney, discount 0.9."""
    model = NGramModel(order, c, discount=0.9).fit(words)
    return -model.log_probabilities(ids, first_test).mean()


test_losses = {
    "uniform, ln c": np.log(c),
    "unigram, all words before the test": unigram_cross_entropy(ids[:first_test], ids[first_test:], c),
    "3-gram, the words the network learns from": counted(train, 3),
    "3-gram, all words before the test": counted(ids[:first_test], 3),
}


def print_losses(losses):
    for name, loss in losses.items():
        print(f"  {name:<52}{loss:>7.3f}")


def share_of_new(words):
    """The share of the test words that do not occur among the words."""
    return np.mean(~np.isin(ids[first_test:], words))


print(f"\n6. Shakespeare: {len(train):,} words to learn from, {first_test - first_validation:,} to validate, "
      f"{len(ids) - first_test:,} to test")
print_losses(test_losses)
print(f"  test words that never occur in what the network learns from {share_of_new(train):.1%}, "
      f"in all before the test {share_of_new(ids[:first_test]):.1%}")

# %% [markdown]
# ### Training
#
# Adam, clip = 1, dropout 0.2, learning rate rising over the first steps and falling to the end: less than two rounds
# through the text. **Expect** the unigram's loss before the first step, then a fall, fast and slower and slower. At the
# end, a little better than the 3-gram that has counted the same words, and worse than the one that has counted more.

# %%
table = (EMBEDDING_SIZE * np.random.default_rng(0).standard_normal((c, n))).astype(np.float32)
new_model = partial(RecurrentModel, table, np.bincount(train, minlength=c), k=k, T=T, dropout=0.2)       # counts for b₂
model, untrained = new_model(), new_model()
carried, batches = CarriedState(model, anew=EVERY), consecutive_windows(train, T, batch)
print(f"\n  n = {n}, k = {k}, T = {T}, batch {batch}: {model.numbers_to_learn():,} numbers to learn, of which "
      f"{weights(model):,} carry the state")
print(f"  test loss, untrained: {cross_entropy(untrained, first_test, len(ids)):.3f} nats per word")
started = perf_counter()
with training_progress(training_steps, batch * T) as on_step:
    history = fit(
        carried, batches, Adam(2e-3), steps=training_steps, every=training_steps // (5 if QUICK else 10),
        warm_up=training_steps // 20, decay=True, clip=1.0, rng=np.random.default_rng(1), on_step=on_step,
        validate=lambda: cross_entropy(model, first_validation, first_validation + (1000 if QUICK else 4000)),
    )  # fmt: skip
print(f"  {'step':>6}{'training':>11}{'validation':>12}   nats per word")
for row in history.rows:
    print(f"  {row['step']:>6}{row['train_loss']:>11.3f}{row['validation_loss']:>12.3f}")
log_p = model.log_probabilities(ids[first_test - HEARD :], HEARD)        # of every test word: (29,208,)
test_losses["recurrent, learned from the first"] = -log_p.mean()
print(f"  {perf_counter() - started:.0f} s for training and testing")
print_losses(test_losses)
lines = {
    "unigram": test_losses["unigram, all words before the test"],
    "3-gram, same words": test_losses["3-gram, the words the network learns from"],
    "3-gram, more words": test_losses["3-gram, all words before the test"],
    "test": test_losses["recurrent, learned from the first"],
}
show(draw_curves(history.rows, lines), "03_training")

# %% [markdown]
# Now the network may learn from the validation words too, as the second 3-gram did: one round, a few seconds, learning
# rate 10⁻³. **Expect** a real gain for so few words, of the kind that the 3-gram had: the play's names.

# %%
def learn_on(model, words, rate, rng):
    """One round through the words."""
    carried, adam = CarriedState(model), Adam(rate)
    batches = consecutive_windows(words, T, batch)
    for _ in range(len(words) // batch // T):
        model.clear_gradients()
        _, backward = carried.loss(next(batches), rng)
        backward()
        clip_gradients(model.parameters(), 1.0)
        adam.step(model.parameters())


later = new_model()
for name, parameter in later.parameters().items():
    parameter.data = model.parameters()[name].data.copy()
learn_on(later, validation, 1e-3, np.random.default_rng(2))
test_losses["recurrent, all words before the test"] = cross_entropy(later, first_test, len(ids))
print(f"\n  one round through {len(validation):,} words more")
print_losses(test_losses)

# %% [markdown]
# So the network's state is worth something, and the counts still win where both know the same. A count learns a name
# from one look; a gradient has to push it there, a step at a time. And 250,000 words are few: networks that leave
# counts behind learn from millions.
#
# ### What the carried state is worth
#
# The same model, the same test words. Now we throw the state away every T words, and it starts again at h_0.
#
# **Expect** a loss that falls with T to that of the carried state. Right after a reset, where the model knows one word
# and is a bigram, much is added; ten words later hardly anything.

# %%
def reset_losses(model, every, most):
    """Losses of the first test words when the state is thrown away every so many words: (windows, every)"""
    count = min(most, len(ids) - first_test) // every
    begins = first_test - 1 + every * np.arange(count)   # the word before a window's first prediction is read
    windows = ids[begins[:, None] + np.arange(every + 1)]
    parts = np.array_split(windows, max(count * every // 256, 1))
    return np.concatenate([step_losses(model, part) for part in parts])


MEASURED = 2048 if QUICK else 8192                       # words
print(f"\n  the first {MEASURED:,} test words, nats per word")
print(f"  state carried through {-log_p[:MEASURED].mean():>9.3f}")
for every in (1, 2, 4, 8, 16, 32, 64):
    print(f"  thrown away every {every:>2} words{reset_losses(model, every, MEASURED).mean():>8.3f}")
more = reset_losses(model, 32, MEASURED) + log_p[:MEASURED].reshape(-1, 32)      # − log p is the carried state's loss
print("  words read since it was thrown away, and the loss added there:   "
      + "   ".join(f"{known}: {round(more[:, known - 1].mean(), 2) + 0.0:.2f}" for known in (1, 2, 3, 5, 10, 20, 32)))

# %% [markdown]
# ### How far back does it remember?
#
# A test that asks the model itself. Take places in the test with 100 words before each. Keep the last d words and
# replace all words further back by others: once by random words of the training text, once by a passage of it, which
# is good Shakespeare but has nothing to do with what follows. If the loss does not change, the model does not use what
# is further back than d. The same places for all d, so the differences are measured well: each comes with its standard
# error.
#
# CS685 says that recurrent networks hardly look beyond 20 to 30 words. **Expect** that to be generous here: a large
# loss at d = 1 and 2, some up to 10, and none that can be measured from 20 on, though T = 32 would allow more. The two
# kinds of other words give nearly the same from d = 1 on. The row d = 2 has a meaning of its own: so much the network
# gets out of words that a 3-gram never looks at.

# %%
H, places = 100, 400 if QUICK else 2000
ends = np.linspace(first_test, len(ids) - 1, places).astype(int)
windows = windows_ending_at(ids, ends, H)                # (places, H + 1)
rng = np.random.default_rng(6)


def last_word_losses(windows):
    parts = np.array_split(windows, 8)
    return np.concatenate([-log_softmax_at(model.next_word_logits(part[:, :-1]), part[:, -1]) for part in parts])


def forgotten(windows, d, other):
    """The windows with all words further back than d replaced by those of `other`."""
    changed = windows.copy()
    changed[:, : H - d] = other[:, : H - d]
    return changed


others = {
    "random words": train[rng.integers(0, len(train), (places, H))],
    "another passage": train[rng.integers(0, len(train) - H, places)[:, None] + np.arange(H)],
}
true_history = last_word_losses(windows)
distances = (0, 1, 2, 3, 5, 10, 20, 50)
lost = {}                                                # {(other, d): (mean, standard error)}
print(f"\n  loss with all {H} words before: {true_history.mean():.3f} nats; what is added when only d words are kept:")
print(f"  {'d, words':>9}" + "".join(f"{name:>26}" for name in others))
for d in distances:
    cells = ""
    for name, other in others.items():
        more = last_word_losses(forgotten(windows, d, other)) - true_history
        lost[name, d] = more.mean(), more.std() / np.sqrt(places)
        cells += f"{lost[name, d][0]:>16.4f} ± {lost[name, d][1]:.4f}"
    print(f"  {d:>9}{cells}   nats")

# %% [markdown]
# And the gradient, as in section 5, now through the trained model on the test's words (64 places, the learned Wh).
# **Expect** it to fall faster than that of the untrained one: the words have become loud, the slopes small. What the
# model does not use, it is not taught to use either.

# %%
def model_reach(model):
    """The gradient by distance through the model on test words, and the mean slope of its states."""
    p = {name: parameter.data.astype(np.float64) for name, parameter in model.parameters().items()}
    some = windows_ending_at(ids, np.linspace(first_test + 150, len(ids) - 1, 64).astype(int), 150)
    x = p["embedding.table"][some]                       # (64, 151, n)
    start = np.repeat(p["recurrent.h0"][None], 64, axis=0)
    arguments = x, start, p["recurrent.Wx"], p["recurrent.Wh"], p["recurrent.b"], "tanh"
    h, _ = ops.rnn(*arguments)
    return gradient_by_distance(*arguments)[:, :101], (1 - h * h).mean(), p["recurrent.Wh"]


print(f"\n  {'':<11}{'d = 1':>9}{'5':>9}{'10':>9}{'20':>9}{'50':>9}{'mean slope':>13}{'radius of Wh':>14}")
reaches = {}
for name, some_model in (("untrained", untrained), ("trained", model)):
    gradients, slope, learned = model_reach(some_model)
    reaches[name] = gradients / np.exp(np.log(gradients[:, :1]).mean())
    part = typical(gradients)
    print(f"  {name:<11}" + "".join(f"{part[d]:>9.1e}" for d in (1, 5, 10, 20, 50))
          + f"{slope:>13.2f}{abs(np.linalg.eigvals(learned)).max():>14.2f}")

figure = Figure(figsize=(11, 4.3), layout="constrained")
left, right = figure.subplots(1, 2)
for (name, gradients), colour in zip(reaches.items(), (GREEN, BLUE)):
    low, high = np.percentile(gradients, (10, 90), axis=0)
    left.semilogy(np.exp(np.log(np.maximum(gradients, 1e-300)).mean(0)), color=colour, label=name, linewidth=1.8)
    left.fill_between(np.arange(101), low, high, color=colour, alpha=0.2, linewidth=0)
left.axhline(1.2e-7, color="0.5", linestyle="--", linewidth=1)
left.annotate("float32's precision", (0, 1.2e-7), xycoords=("axes fraction", "data"), xytext=(8, -12),
              textcoords="offset points", fontsize=9, color="0.4")
left.set(title="How far back the gradient reaches", xlabel="distance d, words", ylim=(None, 10),
         ylabel="size of the gradient, part of that at d = 0")  # fmt: skip
left.legend(frameon=False, title="mean, and 80 % of the places", loc="upper right")
for (name, colour, shift) in zip(others, (ORANGE, PURPLE), (0.97, 1.03)):
    mean, error = np.array([lost[name, d] for d in distances[1:]]).T
    right.errorbar(np.array(distances[1:]) * shift, mean, 2 * error, fmt="o-", color=colour, capsize=3, markersize=4,
                   label=name)
right.axhline(0, color="0.7", linewidth=1, zorder=0)
right.axvspan(20, 30, color="0.9", zorder=0)
right.annotate("20–30 words,\nCS685's remark", (24.5, 0.5), xycoords=("data", "axes fraction"), ha="center",
               fontsize=9, color="0.35")
right.set(title="How far back the model uses its words", xlabel="true words kept, d (log scale)", xscale="log",
          ylabel="loss added, nats per word (± 2 standard errors)")  # fmt: skip
right.set_xticks(distances[1:], distances[1:])
right.minorticks_off()
right.legend(frameon=False, title="further back", loc="upper right")
for axes in (left, right):
    tidy(axes)
show(figure, "03_memory")

# %% [markdown]
# ## 7. Writing with a state
#
# `generate` asks the model for a `reader()`: it reads the prompt once, and then each word that it writes. The state is
# all it keeps. **Expect** greedy to repeat itself (here it is not a rule as it was for a fixed window: the state is a
# vector of real numbers and need not come back, but it does); sampling at temperature 0.7 to stay with frequent words,
# and at 1.0 to be as varied as Shakespeare, and wilder.

# %%
prompt = ids[first_test : first_test + 40]
choices = {
    "greedy": greedy,
    "temperature 0.7": partial(sample, temperature=0.7, rng=np.random.default_rng(7)),
    "temperature 1.0": partial(sample, temperature=1.0, rng=np.random.default_rng(7)),
}
texts = {name: np.array(list(generate(model, prompt, 300, choose))) for name, choose in choices.items()}
texts["Shakespeare"] = ids[first_test + 40 : first_test + 340]
print("\n7. Writing 300 words")
print(f"  {'':<18}{'different words':>16}{'repeated triples':>18}{'loop of':>12}")
for name, written in texts.items():
    loop = loop_length(written)
    print(f"  {name:<18}{len(set(written)):>16}{repeated_triples(written):>18.0%}"
          f"{f'{loop} words' if loop else 'none':>12}")
print("\n--- the end of the prompt ---\n" + vocabulary.decode(prompt[-20:]).strip("\n"))
for name in choices:
    print(f"\n--- {name}, the first 60 words ---\n" + vocabulary.decode(texts[name][:60]).strip("\n"))

# %% [markdown]
# What does the state save? Without it each new word means reading all words so far again. **Expect** a time per word
# that does not depend on the length of the text with the state, and one that grows in proportion to it without. (What
# both pay is the readout, a score for each of 14,295 words.) The predictions are the same.

# %%
def median_time(action, times=7):
    """Milliseconds."""
    measured = []
    for _ in range(times):
        begin = perf_counter()
        action()
        measured.append(perf_counter() - begin)
    return 1000 * np.median(measured)


print(f"\n  {'words so far':>13}{'with the state':>16}{'reading all again':>19}   ms per word")
for length in (10, 100, 300, 1000):
    so_far = ids[first_test : first_test + length]
    read = model.reader()
    read(so_far[:-1])
    by_state = read(so_far[-1:])
    assert np.allclose(by_state, model.next_word_logits(so_far[None]), atol=1e-4)
    fast, slow = median_time(partial(read, so_far[-1:])), median_time(partial(model.next_word_logits, so_far[None]))
    print(f"  {length:>13,}{fast:>16.2f}{slow:>19.2f}")

# %% [markdown]
# ## 8. When it goes wrong
#
# One weight that is no number spoils every state after it, and so every probability. **Expect** sentences, not NaN.

# %%
print("\n8. Bad input")
kept = model.recurrent.Wh.data.copy()
model.recurrent.Wh.data[0, 0] = np.nan
for what, attempt in (
    ("measuring a text with a weight that is NaN", lambda: cross_entropy(model, first_test, first_test + 50)),
    ("writing with it", lambda: list(generate(model, prompt, 5, greedy))),
    ("a word that is not in the vocabulary", lambda: model.log_probabilities(np.array([c]))),
    ("a state of no size", lambda: RecurrentModel(table, k=0)),
    ("an unknown activation", lambda: RecurrentModel(table, activation="sigmoid")),
    ("a text too short for the pieces", lambda: next(consecutive_windows(ids[:100], T, batch))),
):  # fmt: skip
    try:
        attempt()
    except UserError as error:
        print(textwrap.fill(f"{what}: {error}", 110, initial_indent="  ", subsequent_indent="    "))
model.recurrent.Wh.data = kept

# %% [markdown]
# ## 9. What to take along
#
# - One set of weights, used at every step: any length, no more weights. Its gradient is the sum over the steps.
# - What reaches back d steps is a product of d matrices. It vanishes or explodes, and the border is one number. Clip
#   against explosions. Against vanishing no such line of code helps; gates do (LSTM, Hochreiter and Schmidhuber 1997),
#   and attention.
# - Count what can be counted (b₂), and let the network learn the rest.
# - Carried state: what the network knows goes back further than what it is taught. Let it learn to begin, too.
# - It remembers about ten words, with a state that could in principle hold anything.
#
# That last point is the bottleneck. *One* vector has to hold all that may ever matter, and each new word is written
# over it. A word twenty places back can be reached only through twenty steps, forward and backward. **Attention** keeps
# a vector for each word, and looks at any of them in one step: the distance is 1, whatever d. No product of twenty
# matrices, no bottleneck; and all positions can be computed at once, not one after the other. The price: it has to keep
# all words and look at all of them again for each new word, as the right column of the last table does.
# `06_language_transformer.py` (Lab 06) builds it.
#
# **Try:** `activation="relu"` in section 6, with and without clip. T = 4: how far back does it remember now? k = 32. Wh
# times 0.5 before training: does it learn faster, does it remember less?

# %%
print("\n9. Test words, nats per word, all models of this lab")
print_losses(test_losses)
print("All models of the project, from counting to copying, on the same words: mini-tf compare, labs/ladder.md")
