# %% [markdown]
# # Lab 07: positions, layer norms and masks
#
# **Short path** (`README.md`), read in 15 minutes: order without positions, layer norm's gradient, and Task 6.12.
#
# - **Goals:** give a model positions, normalize its layers, with layer norm's gradient, and hide the future from it;
#   find where a model sees its own answers, in outputs, in gradients and in the loss (the source leaks them twice).
# - **Before it:** Lab 06. **Work:** about 5.5 hours.
# - **Hand in:** `encoding`, `attention_map`, `words_attended`, `layer_norm.backward`, `norm_over_time`; an experiment
#   from “Try”.
#
# Source: ESE-2000 Lab 6 (<https://dsd.seas.upenn.edu/lab6>), "Positional Encoding" to "Future Masking", Tasks 6.10 to
# 6.12; the encoding is that of Vaswani et al. 2017 (arXiv:1706.03762), layer norm that of Ba, Kiros and Hinton 2016
# (arXiv:1607.06450).
#
# Lab 06's transformer gets three parts that nearly every transformer has: it is given the positions of its words, the
# outputs of its layers are normalized, and words can no longer see their future. You study each one separately.
#
# Lab 07b adds them one after the other, trains each time, and generates text (Tasks 6.13 and 6.14).
#
# It runs in about five minutes on two CPU cores, a quarter of a minute with `--quick`.
#
# Letters: B batch, T history length in words, n size of a word vector, L layers, H heads, m size of a head, c
# vocabulary size. The source writes words as columns; here, as everywhere in these labs, a word is a row.

# %%
from functools import partial

from _common import quick_mode, show, table, word_losses
from _drawing import lab_07
from _expect import about, above, at_most, below, expect
from mini_tf.gradcheck import gradcheck
from mini_tf.layers import LayerNorm
from mini_tf.layers.positions import FREQUENCIES, positional_encoding
from mini_tf.metrics import log_softmax_at
from mini_tf.models import LanguageTransformer
from mini_tf.progress import training_progress
from mini_tf.text import shakespeare
from mini_tf.training import Adam, RandomWindows, Schedule, Training, Watcher, fit, mean_loss, windows_ending_at
from mini_tf.training.language import prepare

import numpy as np

QUICK = quick_mode("Lab 07: Tasks 6.10 to 6.12: positions, layer norm, future masking")

# %% [markdown]
# ## The sizes
#
# As in Lab 06, the sizes are smaller than the source recommends, so that training takes minutes; `SIZES = "lab"`
# selects the large ones. The models whose losses we compare predict the next word after every word of a window, with
# one readout shared by all positions; Lab 07b explains it.

# %%
SIZES = "quick" if QUICK else "small"                    # or "lab": the sizes that Task 6.5 recommends
T = 32
n, L, H, m, batch, rate, short, long = {
    "quick": (16, 2, 4, 16, 8, 5e-3, 16, 60),
    "small": (64, 2, 4, 16, 16, 3e-3, 100, 1200),
    "lab": (256, 6, 8, 64, 64, 1e-3, 100, 2000),                 # hours: see Lab 06
}[SIZES]
TESTED, VALIDATED = (1000, 100) if QUICK else (4000, 1000)       # test and validation words that are measured

print("The corpus")
corpus = prepare(shakespeare(), n, T, say=print)
c = len(corpus.vocabulary)
length = np.linalg.norm(corpus.embeddings[corpus.train], axis=1).mean()
embeddings = corpus.embeddings * np.float32((n / 2) ** 0.5 / length)
print(f"mean length of the words of the text: {length:.2f}; scaled to √(n/2) = {(n / 2) ** 0.5:.2f}, see 6.10")
SHARED = {
    "readout": "shared", "causal": True, "layer_norm": True, "positions": "geometric", "position_scale": 0.1,
    "scaled_attention": True, "train_embeddings": True,
}  # fmt: skip


def new_model(**options):
    return LanguageTransformer(embeddings, **({"T": T, "L": L, "H": H, "m": m} | options))


def train(model, steps):
    """(training loss, the mean of the last tenth of the steps; validation loss). All models get the same batches."""
    training = Training(model, RandomWindows(corpus.train, T, batch), Adam(rate), Schedule(steps // 10, steps))
    validate = partial(mean_loss, model, corpus.validation, VALIDATED)
    losses = []
    with training_progress(steps, batch * T) as show_progress:

        def on_step(step, loss):
            losses.append(loss)
            show_progress(step, loss)

        history = fit(training, steps, validate, steps, watcher=Watcher(on_step))
    return np.mean(losses[-max(steps // 10, 1) :]), history.best_validation_loss


# %% [markdown]
# ## Task 6.10: positions
#
# The vector of its position is added to each word, $y_t = x_t + P_t$, where the columns of P (T, n) are pairs of a
# cosine and a sine:
#
# $$
# \cos(2\pi \cdot \alpha_i \cdot t/T), \quad \sin(2\pi \cdot \alpha_i \cdot t/T), \qquad i = 1, \dots, n/2
# $$

# %%
def encoding(T, frequencies):
    """P (T, n): in row t = 0 … T − 1 the pairs cos(2π·α_i·t/T), sin(2π·α_i·t/T), one pair after the other

    frequencies: the n/2 numbers α_i
    """
    angles = 2 * np.pi * np.outer(np.arange(T), frequencies) / T         # (T, n/2)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(T, -1)


# %% [markdown]
# ### Which frequencies?
#
# The source leaves $\alpha_i$ = "??". Two choices make sense:
#
# - **geometric**, $2\pi \cdot \alpha_i/T = 10000^{-2i/n}$ with i from 0: angles per word from 1 down to almost 0. T
#   cancels, so word 5 has the same encoding whatever T is. This is the encoding of Vaswani et al. 2017.
# - **Fourier**, $\alpha_i = i \cdot T/n$: evenly spaced, up to T/2, the highest frequency that T samples can represent.
#
# A third is lazy: $\alpha_i = 1$ in all columns, so that n numbers do the work of two. **Expect** $P \cdot P^\top$, the
# similarity of two positions, to be a soft ridge for the geometric choice (near positions are similar), a sharp one for
# Fourier (any two positions are nearly orthogonal), and for the third choice a single cosine, $\cos(2\pi/T)$ at
# distance 1. Fourier has a trap: with n < T, as in `--quick`, its frequencies are all multiples of $T/n > 1$, so the
# encoding repeats after n words: positions n apart look the same.
#
# With n = T, the columns of Fourier are almost the Fourier basis, which the source hints at; but i starts at 1, so the
# constant is missing, and at $i = T/2$ the sine is $\sin(\pi t) = 0$. **Expect** rank T − 1: one of the n entries is
# wasted, and one direction in the space of the T positions, their mean, cannot be expressed.

# %%
print("\nTask 6.10: which frequencies?")
frequencies = {name: choice(T, n) for name, choice in FREQUENCIES.items()} | {"all α = 1": np.ones(n // 2)}
codes = {name: encoding(T, alpha) for name, alpha in frequencies.items()}        # (T, n) each
similarity = {name: P @ P.T / (n / 2) for name, P in codes.items()}              # (T, T), 1 on the diagonal
table(("similarity of", "neighbours", f"places {T // 2} apart"), [
    (name, *(np.mean(np.diagonal(S, distance)) for distance in (1, T // 2))) for name, S in similarity.items()
], "{:.2f}")  # fmt: skip
show(lab_07.positions(codes), "07_positions")

expect("encoding against mini_tf's, largest difference", at_most(1e-12),
       max(np.abs(P - positional_encoding(T, n, frequencies[name])).max() for name, P in codes.items()), form="{:.1g}")
expect("geometric: similarity of neighbours", about(0.97, within=0.005), similarity["geometric"][0, 1],
       quick=about(0.94, within=0.005), form="{:.3f}")
expect("Fourier: largest similarity of two places", at_most(0.04), np.abs(similarity["fourier"] - np.eye(T)).max(),
       quick=about(1, within=0.001), form="{:.3f}")
expect("all α = 1: similarity of neighbours − cos(2π/T)", about(0, within=1e-9),
       similarity["all α = 1"][0, 1] - np.cos(2 * np.pi / T), form="{:.1g}")  # fmt: skip
expect("rank of P, Fourier with n = T", T - 1, np.linalg.matrix_rank(encoding(T, np.arange(1, T // 2 + 1))))

# %% [markdown]
# ### Without positions, order is invisible
#
# What happens to the outputs, without a mask, when the words are shuffled? And does P change that?

# %%
print("\nTask 6.10: the words of 64 histories, shuffled")
rng = np.random.default_rng(7)
histories = windows_ending_at(corpus.test, np.linspace(T, len(corpus.test) - 1, 64).astype(int), T)[:, :-1]   # (B, T)
order = rng.permutation(T)
by_shuffling, rows = {}, []
for name, positions in (("no positions", None), ("geometric", "geometric")):
    model = new_model(positions=positions)
    in_order, _ = model.trunk(histories)             # (B, T, n)
    shuffled, _ = model.trunk(histories[:, order])
    by_word = np.abs(shuffled - in_order[:, order]).max()
    rows.append((name, by_word, np.abs(shuffled.mean(1) - in_order.mean(1)).max()))
    by_shuffling[name] = by_word / in_order.std()
table(("greatest difference of", "Φ, word by word", "mean over words"), rows, "{:.1e}")
expect("no positions: change of Φ ÷ its std deviation", at_most(1e-4), by_shuffling["no positions"], form="{:.1g}")
expect("geometric: change of Φ ÷ its standard deviation", above(0.1), by_shuffling["geometric"], form="{:.1g}")

# %% [markdown]
# Without positions, shuffled words give the same outputs, shuffled in the same way. So a readout that averages over the
# words has no information about their order. Lab 06's readout on vec(Φ(X)) does: A has separate rows for every
# position.
#
# ### How large should P be?
#
# A row of P has length $\sqrt{n/2}$ whatever the frequencies, and the words of the text have length 0.58 on average:
# without scaling, P drowns out the words. **Expect** two different words at one position to look the same when P is too
# large, and one word at two positions to look the same when it is too small. Our words are scaled to P's length, so
# with factor 1 word and position have equal weight on average. But that average hides two kinds of words: **expect**
# half of the text to be frequent words about 1.7 times as long as P, and a quarter of it rarer words, shorter than a
# twentieth of P.

# %%
print("\nTask 6.10: how large? Cosine between the sums of word and place")
P = codes["geometric"]
x = embeddings[corpus.train[rng.integers(len(corpus.train), size=(2, 1000))]]    # (2, 1000, n): pairs of words


def cosine(a, b):
    return ((a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)).mean()


one_word, two_words = {}, {}
for factor in (0, 0.01, 0.1, 1, 10):
    one_word[factor] = cosine(x[0] + factor * P[3], x[0] + factor * P[20])
    two_words[factor] = cosine(x[0] + factor * P[3], x[1] + factor * P[3])
table(("P times", "one word, places 3 and 20", "two words, place 3"),
      [(f"{factor:g}", one_word[factor], two_words[factor]) for factor in one_word], "{:.2f}")  # fmt: skip
quartile, median = np.quantile(np.linalg.norm(embeddings[corpus.train], axis=1) / (n / 2) ** 0.5, (0.25, 0.5))
print(f"a quarter of the words are shorter than {quartile:.3f} times P, half of them shorter than {median:.2f} times")
expect("cosine of one word at two places, P × 0.01", above(0.9), one_word[0.01])
expect("cosine of two words at one place, P × 10", above(0.95), two_words[10])
expect("a quarter of the words are shorter than … times P", below(0.05), quartile)
expect("half of the words are shorter than … times P", about(1.7, within=0.05), median, quick=below(0.3))

# %% [markdown]
# ### Does the choice matter for the loss?
#
# We train a small model for 100 steps with each choice, at the same learning rate. How much do positions gain, and what
# matters more, the kind of frequencies or the size of P? (A causal mask alone already distinguishes positions: the
# first word sees one word, the last one sees T.)

# %%
choices = {"none": {"positions": None}}
choices |= {f"{name}, P × 0.1": {"positions": alpha} for name, alpha in frequencies.items()}
choices |= {f"geometric, P × {factor}": {"position_scale": factor} for factor in (1, 10)}
print(f"\nTask 6.10: does the choice matter? Validation loss after {short} small steps")
after = {}
for name, options in choices.items():
    _, after[name] = train(new_model(**SHARED | options), short)
    print(f"  {name:<22}{after[name]:.3f}")
kinds = [after[f"{name}, P × 0.1"] for name in frequencies]
sizes = [after[f"geometric, P × {factor}"] for factor in (0.1, 1, 10)]
expect("gain from positions, geometric × 0.1, nats", about(0.05, within=0.09), after["none"] - kinds[0], quick=None)
expect("range of the losses of three frequencies", below(0.1), max(kinds) - min(kinds), quick=None)
expect("range of the losses of three sizes of P", above(0.05), max(sizes) - min(sizes), quick=None)

# %% [markdown]
# Positions gain little in 100 steps (0.12 nats here, 0.02 and −0.01 with other seeds), the three kinds of frequencies
# differ by less than 0.1, and the size of P matters more than its frequencies.
#
# ## Task 6.11: layer norm
#
# After each layer, every word's vector is normalized to mean 0 and variance 1, then scaled by γ and shifted by β, which
# are learned. Without it, $X_\ell = X_{\ell-1} + \operatorname{relu}(Y)$ can only add, and attention's scores are
# products of two such vectors. The effect on attention can be read off the attention map A: how much query i attends to
# key j. (`mask` says which keys a query may see: all of them, until Task 6.12.)

# %%
def attention_map(query, key, mask, scale=1.0):
    """A_ij = exp(S_ij) / Σ_j exp(S_ij) over the keys j that query i may see, and 0 for the others;   S = scale·Q·Kᵀ

    query, key (…, T, m), mask (T, T) bool, True where i may see j  →  A (…, T, T)
    A row that may see nothing is all 0.
    """
    scores = np.where(mask, scale * query @ key.swapaxes(-1, -2), -np.inf)
    top = scores.max(-1, keepdims=True)                  # subtracted, so that exp cannot overflow
    weights = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def words_attended(A):
    """exp(−Σ_j A_ij·ln A_ij), (…, T):  from 1, when query i attends to one word, to T, when to all equally

    A (…, T, T), rows that sum to 1. An entry of 0 adds nothing.
    """
    return np.exp(-(A * np.log(np.where(A > 0, A, 1))).sum(-1))


def maps_of(layer, x, mask=True):
    """A (B, H, T, T) of the heads of a layer that reads x (B, T, n)"""
    attention = layer.attention
    query, key = (attention.split(part(x)[0]) for part in (attention.query, attention.key))      # (B, H, T, m)
    return attention_map(query, key, mask, attention.scale)


# %% [markdown]
# What becomes of the size of the outputs from layer to layer, without layer norm and with it? To how many of the 32
# words does a head attend, in the first layer and in the last? And how large are the gradients?
#
# We look at six layers. For the gradients, both models are first trained for ten steps, because the readout starts at 0
# and would pass none back.

# %%
print("\nTask 6.11: six layers, untrained; the gradient after ten steps")
windows = windows_ending_at(corpus.train, np.linspace(T, len(corpus.train) - 1, 64).astype(int), T)
deep = {}
for name, layer_norm in (("without", False), ("with layer norm", True)):
    model = new_model(L=6, positions="geometric", layer_norm=layer_norm)         # readout "vec", as in Lab 06
    states = model.trunk.after_each_layer(histories)     # [X_0, …, X_6]
    breadth = [words_attended(maps_of(layer, x)).mean() for layer, x in zip(model.trunk.layers, states)]
    sizes = [x.std(-1).mean() for x in states[1:]]
    train(model, 10)
    _, backward = model.loss(windows)
    backward()
    gradients = [np.sqrt(sum((p.grad**2).sum() for p in layer.attention.parameters().values()))
                 for layer in model.trunk.layers]  # fmt: skip
    deep[name] = sizes, breadth, gradients
table(("layer", "without: std", "words", "gradient", "with: std", "words", "gradient"),
      [(f"{layer}", *row) for layer, row in enumerate(zip(*deep["without"], *deep["with layer norm"]), start=1)],
      ("{:.2f}", "{:.1f}", "{:.1e}", "{:.2f}", "{:.1f}", "{:.1e}"))  # fmt: skip
print("words: how many a head attends to, as exp(entropy); 32 would be all equally")
show(lab_07.layer_norm(deep), "07_layer_norm")

(grown, sharp, steep), (normed, broad, flat) = deep.values()
expect("without: std in layer 6 ÷ std in layer 1", above(2.5), grown[-1] / grown[0])
expect("without: words attended to in layer 6", below(2), sharp[-1])
expect("with: std in layer 6", about(1, within=0.01), normed[-1])
expect("with: words attended to, layer 6 ÷ layer 1", above(1), broad[-1] / broad[0])
expect("gradient in layer 1, without : with", above(10), steep[0] / flat[0], quick=above(4))

# %% [markdown]
# ### Its gradient
#
# An entry of x changes its own $\hat x$, and through the mean and the variance all the others. With
# $r = 1/\sqrt{\sigma^2 + \epsilon}$, $\hat x_i = r\,(x_i - \mu)$ and a bar for the mean over the n entries, change x by
# a small dx:
#
# $$
# d\mu = \overline{dx}, \qquad
# d\sigma^2 = 2\,\overline{(x - \mu)\,dx} = \tfrac{2}{r}\,\overline{\hat x\,dx}, \qquad
# dr = -\tfrac{1}{2} r^3\,d\sigma^2 = -r^2\,\overline{\hat x\,dx}
# $$
#
# $$
# d\hat x_i = r\,(dx_i - d\mu) + (x_i - \mu)\,dr
#            = r\,\big(dx_i - \overline{dx} - \hat x_i\,\overline{\hat x\,dx}\big)
# $$
#
# The matrix of this map, $J = r\,(I - \tfrac{1}{n} 1 1^\top - \tfrac{1}{n} \hat x \hat x^\top)$, is symmetric. So the
# backward applies the same map to the gradient with respect to $\hat x$, which is $g = dy \cdot \gamma$:
#
# $$
# \frac{\partial L}{\partial x_i} = r\,\big(g_i - \bar g - \hat x_i\,\overline{\hat x\,g}\big)
# $$
#
# It subtracts what g has along 1 and along $\hat x$: shifting or stretching x does not change the norm's output, so the
# gradient cannot point there. **Expect** PASS, and next to nothing along either: along 1 but for rounding, along
# $\hat x$ but for ε.

# %%
def layer_norm(x, gamma, beta, eps=1e-5):
    """y = γ·x̂ + β,   x̂ = (x − μ)/√(σ² + ε) over the last axis;   x (B, T, n), γ and β (n,)  →  y (B, T, n), backward

    backward: dy (B, T, n) → dx (B, T, n), dgamma (n,), dbeta (n,)
    """
    centred = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    normal = r * centred                                 # x̂

    def backward(dy):
        g = dy * gamma
        dx = r * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))
        return dx, (dy * normal).sum((0, 1)), dy.sum((0, 1))

    return gamma * normal + beta, backward


rng = np.random.default_rng(11)
x, gamma, beta = rng.standard_normal((2, 3, 8)), rng.standard_normal(8), rng.standard_normal(8)
print("\nTask 6.11: layer norm's gradient")
report = gradcheck(layer_norm, x, gamma, beta)
print(report)
y, backward = layer_norm(x, gamma, beta)
dx, _, _ = backward(rng.standard_normal(y.shape))
along = abs((dx * (y - beta) / gamma).sum(-1)) / np.linalg.norm(dx, axis=-1)
expect("the checker's verdict", "PASS", report.verdict)
expect("largest |Σ dx| of a word", at_most(1e-12), abs(dx.sum(-1)).max())
expect("largest |dx·x̂| ÷ ‖dx‖ of a word", below(1e-3), along.max())

# %% [markdown]
# ### An error of the source: a mean over time
#
# The source has words as columns, so X is n × T, and it normalizes each *row*:
#
# $$
# \hat X_{ij} = \gamma_i \cdot \frac{X_{ij} - \mu_i}{\sqrt{\sigma_i^2 + \epsilon}} + \beta_i,
# \qquad \mu_i = \frac{1}{n} \sum_{j=1}^n X_{ij}
# $$
#
# A row of n × T holds one entry of the vectors at T times: this mean runs over time (and has T terms, not n). Read X as
# T × n, a word per row, and μ is right: one mean for each word, over its n entries. But then $\gamma_i$ and $\beta_i$
# belong to a place, and they should belong to an entry: $\gamma_j$, $\beta_j$. As printed, the formula is wrong in both
# readings. `nn.LayerNorm`, which the task recommends, does what was meant.
#
# Let us take the first reading literally. It normalizes, too, and its gradient is no harder. What does it break?

# %%
def norm_over_time(x, gamma, beta, eps=1e-5):
    """y_ti = γ_i·x̂_ti + β_i,   x̂_ti = (x_ti − μ_i)·r_i,   r_i = 1/√(σ_i² + ε);   μ_i, σ_i²: mean and variance over t

    x (B, T, n), gamma (n,), beta (n,)  →  y (B, T, n), and its backward, from dy to dx, dgamma, dbeta
    """
    centred = x - x.mean(1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + eps)                   # (B, 1, n)
    normal = centred * r                                                        # x̂

    def backward(dy):
        g = dy * gamma
        dx = r * (g - g.mean(1, keepdims=True) - normal * (g * normal).mean(1, keepdims=True))
        return dx, (dy * normal).sum((0, 1)), dy.sum((0, 1))

    return gamma * normal + beta, backward


class NormOverTime(LayerNorm):
    """The source's layer norm as printed: mean and variance of each entry over the words."""

    def __call__(self, x):
        y, norm_backward = norm_over_time(x, self.gamma.data, self.beta.data)

        def backward(dy):
            dx, dgamma, dbeta = norm_backward(dy)
            self.gamma.accumulate(dgamma)
            self.beta.accumulate(dbeta)
            return dx

        return y, backward


# %% [markdown]
# What does the checker say of its gradient? Along which axis do the outputs have mean 0? And what is left of a history
# of a single word?

# %%
print("\nTask 6.11: layer norm as printed, over time")
rng = np.random.default_rng(11)
x, gamma, beta = rng.standard_normal((2, 5, 4)) + 3, rng.standard_normal(4), rng.standard_normal(4)
report = gradcheck(norm_over_time, x, gamma, beta)
print(report)
y, _ = norm_over_time(x, np.ones(4), np.zeros(4))
alone, _ = norm_over_time(x[:, :1], gamma, beta)         # histories of one word
expect("the checker's verdict on the gradient", "PASS", report.verdict)
expect("largest mean over time", at_most(1e-12), np.abs(y.mean(1)).max(), form="{:.1g}")
expect("largest mean of a word's entries", above(0.1), np.abs(y.mean(2)).max(), form="{:.2g}")
expect("one word: largest difference from β", 0, np.abs(alone - beta).max())

# %% [markdown]
# The gradient is right, and the mean is 0 along the wrong axis. A single word is its own mean, so y = β whatever the
# word is: all information is lost.
#
# ## Task 6.12: words must not see their future
#
# **An error of the source.** It keeps the score $B_{ij}$ "if j > i". With a row per query, as in its own
# $B = (QX)^\top (KX)$, that keeps exactly the future, drops the word itself, and leaves the last row nothing to attend
# to. The right condition is j ≤ i: a word sees itself and the words before it. The slip has a reason: in the source's
# $a_t = [a_{1t}\ a_{2t} \dots a_{tt}\ 0 \dots 0]$ the query is the *second* index, and read that way only the "=" of
# j ≥ i is missing. **Expect** rows that sum to 1 with the right rule, and a last row of zeros with the rule as printed.
# We look at the words of one sentence, in one head of an untrained model:

# %%
sentence = corpus.test[T + 5 : T + 13]                   # eight different words
labels = [repr(word) if word == "\n" else word for word in (corpus.vocabulary.decode([i]) for i in sentence)]
model = new_model(positions="geometric", scaled_attention=True)
x, _ = model.trunk.embed(sentence[None])                 # (1, 8, n)

print("\nTask 6.12: three masks")
past = np.tri(8, dtype=bool)                             # row i, column j: j ≤ i
masks = {"no mask": np.ones((8, 8), bool), "j ≤ i: right": past, "j > i: as printed": ~past}
maps = {}
for name, mask in masks.items():
    maps[name] = maps_of(model.trunk.layers[0], x, mask)[0, 0]                   # (8, 8), the first head
    print(f"{name:<20} sums of the rows: {' '.join(f'{total:.0f}' for total in maps[name].sum(-1))}")
show(lab_07.word_maps(labels, maps, "attention", "Task 6.12: one head under three masks"), "07_masks")
expect("j ≤ i: least sum of a row", about(1, within=1e-6), maps["j ≤ i: right"].sum(-1).min())
expect("j > i: sum of the last row", 0, maps["j > i: as printed"][-1].sum())

# %% [markdown]
# ### Is the future hidden?
#
# Change one word, and see which outputs change; start a gradient at output i, and see which words it reaches.
# **Expect** exact zeros with the mask and a layer norm over n, not small numbers: what is multiplied by 0 leaves no
# rounding error. With the layer norm as printed, **expect** the same mask to hide nothing: attention cannot look ahead,
# but the mean can.
#
# (`mini-tf explore` shows the same for a trained model, under *Words*: how much gradient each word's loss sends to each
# word, layer by layer, and what A, dA and dS of each head look like behind the mask.)

# %%
def as_printed(model):
    """The model, with its layer norms over time instead of over n"""
    for layer in model.trunk.layers:
        layer.attention_norm = NormOverTime(n)
    return model


def gradient_flow(model):
    """(8, 8): row i, how much gradient the output at word i of the sentence sends to each of the eight words"""
    flow = np.zeros((8, 8))
    for i in range(8):
        model.clear_gradients()
        Phi, backward = model.trunk(sentence[None])      # (1, 8, n)
        dPhi = np.zeros_like(Phi)
        dPhi[0, i] = 1 + np.arange(n) / n                # not all ones: layer norm ignores a constant
        backward(dPhi)
        flow[i] = np.linalg.norm(model.trunk.embedding.table.grad[sentence], axis=-1)
    return flow


plain = {"positions": "geometric", "layer_norm": True, "train_embeddings": True}
cases = {
    "no mask": (new_model(**plain), above(0.01)),
    "mask, norm over n": (new_model(**plain, causal=True), 0),
    "mask, norm over time": (as_printed(new_model(**plain, causal=True)), above(0.01)),
}
changed = histories.copy()
changed[:, 20] = (changed[:, 20] + 1) % c                # another word at place 20
print("\nTask 6.12: is the future hidden?")
flows = {}
for name, (model, band) in cases.items():
    difference = np.abs(model.trunk(changed)[0] - model.trunk(histories)[0]).max(axis=(0, 2))     # (T,)
    flow = gradient_flow(model)
    print(f"{name}: word 20 changes outputs 20–31 by up to {difference[20:].max():.1e}")
    expect(f"{name}: change of outputs 0–19", band, difference[:20].max(), form="{:.2g}")
    expect(f"{name}: gradient to later words", band, np.triu(flow, 1).max(), form="{:.2g}")
    flows[name] = flow / flow.max(axis=1, keepdims=True)
show(lab_07.word_maps(labels, flows, "share of the row's largest", "Task 6.12: where gradients flow", size=(11, 3.9),
                      xlabel="… to the word", ylabel="gradient from the output at …"), "07_gradient_flow")  # fmt: skip

# %% [markdown]
# ### What a leak does to a model
#
# Both errors show a model what it is asked to predict: the mask as printed shows every later word, the layer norm as
# printed a mean over all 32, from which the model can subtract what it has already read. We train three models on the
# same batches, with the right rules, with the wrong mask, and with the wrong norm, and measure the loss at each
# position of a window separately: the loss of the next word after 1, 2, … 32 words. Then we measure positions 8, 16 and
# 24 again, with the words after them replaced by those of another window: if the loss rises, the model relies on later
# words. (The rise overstates what these words contributed, because false words mislead the model.)
#
# How far are the two wrong models ahead of the right one at the positions before the last, and how far behind at the
# last? Nothing follows the last word; under the wrong mask it sees no word at all, not even the past. And this is the
# case that counts: when a model writes, every word is the last.

# %%
def losses_by_place(model, ids, following):
    """−ln π of the words that follow each word of the windows: (B, T)"""
    parts = zip(np.array_split(ids, 20), np.array_split(following, 20))
    return np.concatenate([-log_softmax_at(model.logits_after_each(some), words) for some, words in parts])


def rise_with_a_false_future(model, ids, following):
    """How much the loss at positions 8, 16 and 24 rises when another window's words follow: (3, B)"""
    rise = []
    for place in (8, 16, 24):
        foreign = ids.copy()
        foreign[:, place:] = np.roll(ids, 1, axis=0)[:, place:]
        own, other = (
            -log_softmax_at(model.A(model.trunk(given)[0][:, place - 1])[0], following[:, place - 1])
            for given in (ids, foreign)
        )
        rise.append(other - own)
    return np.array(rise)


windows = windows_ending_at(corpus.test, np.linspace(T, len(corpus.test) - 1, TESTED // 4).astype(int), T)
ids, following = windows[:, :-1], windows[:, 1:]         # (B, T) each
models = {name: new_model(**SHARED) for name in ("right", "mask as printed", "norm as printed")}
models["mask as printed"].trunk.mask = lambda ids, past=0: ~np.tri(ids.shape[1], dtype=bool)
as_printed(models["norm as printed"])

print(f"\nTask 6.12: three models after {long} steps")
training_loss, places, last, future = {}, {}, {}, {}
for name, model in models.items():
    training_loss[name], _ = train(model, long)
    places[name] = losses_by_place(model, ids, following)            # (B, T)
    _, last[name] = word_losses(model, corpus.test, TESTED)          # more words, for the last place
    future[name] = rise_with_a_false_future(model, ids, following)
table(("", "training", "places 1–31", "after 32 words", "false future: rise"), [
    (name, training_loss[name], places[name][:, :-1].mean(), last[name].mean(), future[name].mean()) for name in models
], "{:.2f}")  # fmt: skip
show(lab_07.by_place(places), "07_leak")

# %%
print("\nTask 6.12: the two wrong models against the right one, in nats")
expect("right: rise with a false future", 0, np.abs(future["right"]).max())
for name, before, after_all, seen in (
    ("mask as printed", about(-2.6, within=0.5), about(1, within=0.5), above(1)),
    ("norm as printed", about(-0.25, within=0.15), about(0.25, within=0.15), above(0.03)),
):
    easier = (places[name] - places["right"])[:, :-1].mean()
    expect(f"{name}: training loss", below(0), training_loss[name] - training_loss["right"], quick=None)
    expect(f"{name}: places 1–31", before, easier, quick=None)
    expect(f"{name}: after 32 words", after_all, (last[name] - last["right"]).mean(), quick=above(0))
    expect(f"{name}: rise with a false future", seen, future[name].mean(), quick=None)

# %% [markdown]
# ## What to remember
#
# The numbers are those of the full run.
#
# - Without positions and without a mask the transformer cannot see order: shuffled words give shuffled outputs. But a
#   small model gains little from positions in 100 steps, and the size of P matters more than its frequencies.
# - The Fourier frequencies with n = T are not quite the Fourier basis: the constant is missing, the last sine is 0, and
#   the rank is T − 1.
# - Without layer norm the standard deviation of a vector's entries grows several-fold from layer 1 to layer 6, and
#   attention collapses onto a single word; with layer norm it stays at 1, and attention becomes broader.
# - A mean over time looks into the future. With the layer norm as printed the same mask hides nothing, and the model
#   learns to exploit that: it is a quarter of a nat too good at the positions before the last, and a quarter of a nat
#   worse at the last, the only one that counts when it writes.
# - With the mask as printed, the model is 2.6 nats too good at the positions before the last, and a nat worse at the
#   last.
# - The training loss does not reveal the leak: it is 2.13 with the wrong mask, 4.38 with the wrong norm, and 4.40 with
#   the right rules, which give the best model. Change a later word: if an earlier output changes, there is a leak.
#
# **Try:** `SIZES = "lab"`; batch norm, whose mean also runs over the texts of a batch: what does a model see of the
# other texts?
