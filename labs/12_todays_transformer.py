# %% [markdown]
# # Lab 12: today's transformer, in six steps
#
# - **Goals:** write RMSNorm, rotary positions, SwiGLU and attention with shared keys and values, each with its
#   backward; measure what each step from Lab 07's layer to Llama's brings in loss, time and memory.
# - **Before it:** Lab 07; exercises 03 and 06. **Work:** about 5.5 hours.
# - **Hand in:** `rms_norm.backward`, `rotary.backward`, `swiglu.backward`, `grouped_attention.backward`; an experiment
#   from “Try”.
#
# Most of today's open language models are stacks of Llama's layer or of one much like it (Touvron et al. 2023,
# arXiv:2302.13971, and with shared keys and values arXiv:2307.09288). Six changes lead to it from the layer of Lab 07
# (ESE-2000 Lab 6, <https://dsd.seas.upenn.edu/lab6>):
#
# | change | source |
# | --- | --- |
# | a feed-forward branch, with relu in it and no longer around attention | Vaswani et al. 2017, arXiv:1706.03762 |
# | the norm before each branch, no longer after the sum | Xiong et al. 2020, arXiv:2002.04745 |
# | RMSNorm instead of layer norm | Zhang, Sennrich 2019, arXiv:1910.07467 |
# | rotary positions instead of added ones | Su et al. 2021, arXiv:2104.09864 |
# | SwiGLU instead of relu | Shazeer 2020, arXiv:2002.05202 |
# | heads that share keys and values | Ainslie et al. 2023, arXiv:2305.13245 |
#
# The last four need new functions, whose gradients sections 1 to 4 derive. Section 5 makes one change after another,
# trains a model after each on the same letters, and measures what the change brings in loss, time and memory.
#
# Letters: **B** batch, **T** history length, **n** size of a vector, **L** layers, **H** heads of queries, **G** heads
# of keys and values, **m** size of a head, **f** hidden units of feed-forward.
#
# It runs in one to two minutes on one CPU core, 10 seconds with `--quick`.

# %%
import itertools
import operator
import time
from pathlib import Path

from _common import quick_mode, show, table, wrapped
from _drawing import lab_12
from _expect import above, at_most, below, expect
from mini_tf import ops
from mini_tf.decoding import generate, greedy
from mini_tf.gradcheck import gradcheck
from mini_tf.layers import Embedding, LayerNorm, Linear, PositionalEncoding, RMSNorm, TransformerLayer, Trunk
from mini_tf.models import Llama
from mini_tf.models.windows import CausalTransformer
from mini_tf.pretrained import load_llama
from mini_tf.text import open_tokenizer, shakespeare
from mini_tf.training import Adam, RandomWindows, Schedule, Training, split_words, windows_ending_at

import numpy as np

QUICK = quick_mode("Lab 12: from Lab 07's layer to Llama's in six steps, each measured on the same letters")
rng = np.random.default_rng(12)


def check(f, *inputs):
    """Check a function's gradients, and compare it with the op of its name."""
    print(gradcheck(f, *inputs))
    dy, found = None, []
    for each in (f, getattr(ops, f.__name__)):
        y, backward = each(*inputs)
        dy = rng.standard_normal(y.shape) if dy is None else dy
        gradients = backward(dy)
        found.append([y, *(gradients if isinstance(gradients, tuple) else [gradients])])
    off = max(abs(ours - theirs).max() for ours, theirs in zip(*found))
    expect(f"largest difference from ops.{f.__name__}", at_most(1e-12), off, form="{:.0e}")

# %% [markdown]
# ## 1. RMSNorm: layer norm without the mean
#
# $$
# y = \gamma \cdot \hat x, \qquad \hat x = r\,x, \qquad r = \frac{1}{\sqrt{\overline{x^2} + \epsilon}}
# $$
#
# with a bar for the mean over a word's n entries. Layer norm also subtracts $\bar x$ and adds β. Its gradient (Lab 07)
# takes three paths: directly, through r, and through the mean. Here the third is missing. Let x change by a small
# $\delta x$:
#
# $$
# \delta r = -r^3\,\overline{x\,\delta x} = -r^2\,\overline{\hat x\,\delta x}, \qquad
# \delta\hat x_i = r\,\delta x_i + x_i\,\delta r = r\,\bigl(\delta x_i - \hat x_i\,\overline{\hat x\,\delta x}\bigr)
# $$
#
# This linear map is symmetric, so it is its own backward: apply it to $g = dy \cdot \gamma$, the gradient of $\hat x$.
#
# Layer norm's output does not change if all entries of x are doubled, nor if 5 is added to each. Does RMSNorm's?

# %%
def rms_norm(x, gamma, eps=1e-5):
    """y = γ·x̂,   x̂ = x/√(mean(x²) + ε), the mean over the last axis:   x (B, T, n), gamma (n,)  →  y (B, T, n)"""
    r = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + eps)                        # (B, T, 1)
    normal = r * x                                       # x̂

    def backward(dy):
        g = dy * gamma
        return r * (g - normal * (g * normal).mean(-1, keepdims=True)), (dy * normal).sum((0, 1))

    return gamma * normal, backward


x, gamma = rng.standard_normal((2, 3, 8)), rng.standard_normal(8)
print("1. RMSNorm")
check(rms_norm, x, gamma)
y, doubled, shifted = (rms_norm(each, gamma)[0] for each in (x, 2 * x, x + 5))
expect("largest change of y for 2·x: ε alone", at_most(1e-4), abs(doubled - y).max(), form="{:.0e}")
expect("largest change of y for x + 5", above(0.5), abs(shifted - y).max(), form="{:.2f}")

# %% [markdown]
# ## 2. Rotary positions: turn queries and keys
#
# Lab 07 adds to each word a vector for its position. Here nothing is added. Instead, the m entries of each query and
# key are taken in pairs, and pair i of the word at place t is rotated by an angle, like the hand of a clock:
#
# $$
# R_\varphi = \begin{pmatrix} \cos\varphi & -\sin\varphi \\ \sin\varphi & \cos\varphi \end{pmatrix}, \qquad
# \varphi = t \cdot 10000^{-2i/m}
# $$
#
# A score is then a sum over pairs of $(R_\varphi q)^\top (R_\psi k) = q^\top R_{\psi - \varphi}\,k$: positions enter it
# only through the distance between query and key. And as $R^\top = R^{-1}$, the backward turns back:
# $dx = R_{-\varphi}\,dy$.
#
# Guess: a query at place 3 scores a key at place 10. What becomes of that score if both are moved 100 places on? And
# what becomes of the length of a vector?

# %%
def rotary(x, first=0, base=10000.0):
    """Each pair (x_2i, x_2i+1) turned by φ = t·base^(−2i/m):   x (…, T, m)  →  y (…, T, m);   t = first, first+1, …"""
    T, m = x.shape[-2:]
    phi = (first + np.arange(T))[:, None] * base ** (-2 * np.arange(m // 2) / m)         # (T, m/2)

    def turned(x, phi):
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = a * np.cos(phi) - b * np.sin(phi), a * np.sin(phi) + b * np.cos(phi)
        return np.stack(pairs, axis=-1).reshape(x.shape)

    def backward(dy):
        return turned(dy, -phi)

    return turned(x, phi), backward


print("\n2. Rotary positions")
check(rotary, rng.standard_normal((2, 5, 6)))
m = 16
query, key = rng.standard_normal((2, 1, m))
at = {t: (rotary(query, t)[0], rotary(key, t)[0]) for t in (3, 10, 103, 110)}
score, later = at[3][0] @ at[10][1].T, at[103][0] @ at[110][1].T
expect("change of the score, both 100 places later", at_most(1e-12), abs(later - score).max(), form="{:.0e}")
expect("length at place 110 / length", 1, round(np.linalg.norm(at[110][0]) / np.linalg.norm(query), 12))

# %%
PLACES = 64
hands, _ = rotary(np.tile([1.0, 0.0], (PLACES, m // 2)))                         # (T, m), all pairs at (1, 0)
queries, keys = (rotary(np.tile(each, (PLACES, 1)))[0] for each in (query, key))
scores = {"query = key, all pairs alike": hands @ hands.T, "a random query and key": queries @ keys.T}
show(lab_12.rotary(hands, scores), "12_rotary")

# %% [markdown]
# On the right, queries at three different places see the same curve. With all pairs alike it falls, on the whole, with
# the distance; other queries and keys have other curves, which a model learns. The fast pairs tell neighbours apart,
# the slow ones tell near from far.
#
# ## 3. SwiGLU: a gate for each hidden unit
#
# So far, feed-forward was $\text{relu}(x W_1)\,W_2$: a hidden unit passes if it is positive. In SwiGLU a gate, with
# weights of its own, decides:
#
# $$
# \bigl(\text{silu}(x W_g) \cdot x W_1\bigr)\,W_2, \qquad \text{silu}(a) = a \cdot \sigma(a), \qquad
# \text{silu}'(a) = \sigma(a)\,\bigl(1 + a\,(1 - \sigma(a))\bigr)
# $$
#
# where $\sigma(a) = 1/(1 + e^{-a})$. In the product of gate and hidden unit, each factor's gradient is dy times the
# other factor. There are three matrices instead of two, so with $f = 8n/3$ instead of $4n$ the number of parameters is
# the same.
#
# How much does a gate of −5, 0 or 5 let through? And what is silu's slope at 0?

# %%
def swiglu(gate, x):
    """y = silu(gate)·x, entry by entry:   gate (…), x (…)  →  y (…)"""
    sigma = 1 / (1 + np.exp(-gate))
    opened = gate * sigma                                # silu(gate)

    def backward(dy):
        return dy * x * sigma * (1 + gate * (1 - sigma)), dy * opened

    return opened * x, backward


print("\n3. SwiGLU")
check(swiglu, *rng.standard_normal((2, 3, 4)))
y, backward = swiglu(np.array([-5.0, 0.0, 5.0]), np.ones(3))
print("  a gate of −5, 0 and 5 passes", *(f"{each:.3f}" for each in y))
expect("slope at a gate of 0", 0.5, backward(np.ones(3))[0][1])

# %% [markdown]
# ## 4. Heads that share keys and values
#
# While it writes, a model keeps the keys and values of all words so far, its **cache**: $2\,L\,G\,m$ numbers for each
# word, where until now G = H. Let each head of keys and values serve H/G heads of queries, and the cache shrinks to G/H
# of its size. The forward uses each key H/G times, so the backward adds up H/G gradients.

# %%
def grouped_attention(query, key, value):
    """Y^h = softmax(Q^h·K^gᵀ)·V^g,   g = ⌊h·G/H⌋:   query (H, T, m), key and value (G, T, m)  →  Y (H, T, m)"""
    H, G = len(query), len(key)
    keys, values = np.repeat(key, H // G, axis=0), np.repeat(value, H // G, axis=0)      # (H, T, m)
    Y, attention_backward = ops.attention(query, keys, values)

    def backward(dY):
        dquery, dkeys, dvalues, *_ = attention_backward(dY)
        dkey, dvalue = (each.reshape(G, H // G, *each.shape[1:]).sum(1) for each in (dkeys, dvalues))
        return dquery, dkey, dvalue

    return Y, backward


print("\n4. Heads that share keys and values")
check(grouped_attention, *(rng.standard_normal((heads, 5, 4)) for heads in (6, 2, 2)))

# %% [markdown]
# ## 5. The six steps
#
# The model reads Shakespeare and predicts each next letter; letters take the place of words, and c = 65. At first it
# has six of Lab 07's layers: attention alone, relu around it, layer norm after the sum, and positions added to the
# letters. Each step changes one thing and keeps the changes before it. (The norm before each branch comes with a last
# norm after all layers and, in mini_tf, with branches that start at 0.)
#
# All have nearly the same number of parameters. An attention has $4n^2$, a feed-forward with f = 4n has $8n^2$: so two
# layers with both replace six with attention alone. Shared keys and values save $n^2$ in each layer, and f = 3n makes
# up for it.

# %%
n, T, H, m, B = 64, 64, 4, 16, 16
STEPS, SEEDS, RATES = 30 if QUICK else 300, 1, (3e-3, 1e-2)                      # SEEDS = 5: the table in the text
CHANGES = {
    "0 Lab 07": {"norm": "after"},
    "1 feed-forward": {"relu": False, "f": 4 * n},       # relu: the one around attention
    "2 norm before": {"norm": "before"},
    "3 RMSNorm": {"rms": True},
    "4 rotary": {"rotary": 10000.0},
    "5 SwiGLU": {"activation": "swiglu", "plain": True, "f": 8 * n // 3},        # plain: its matrices have no biases
    "6 shared keys": {"G": H // 2, "f": 3 * n},
}
OPTIONS = dict(zip(CHANGES, itertools.accumulate(CHANGES.values(), operator.or_)))      # of each step, and those before

letters, ids = np.unique(list(shakespeare()), return_inverse=True)
train_ids, validation_ids, _ = split_words(ids, T)
ends = np.linspace(T, len(validation_ids) - 1, 32 if QUICK else 320).astype(int)
windows = windows_ending_at(validation_ids, ends, T)     # (32 or 320, T + 1)
c = len(letters)


class LetterModel(CausalTransformer):
    """Vectors of the letters, layers with these options, a readout A"""

    def __init__(self, options, seed):
        rng = np.random.default_rng(seed)
        layers = [TransformerLayer(n, H, m, rng, scale=m**-0.5, **options) for _ in range(2 if "f" in options else 6)]
        positions = None if "rotary" in options else PositionalEncoding(T, n)
        norm = None if options["norm"] == "after" else RMSNorm(n) if "rms" in options else LayerNorm(n)
        embedding = Embedding(rng.standard_normal((c, n), dtype=np.float32))
        self.T, self.c = T, c
        self.trunk, self.A = Trunk(embedding, layers, T=T, positions=positions, norm=norm), Linear(n, c, bias=False)

# %% [markdown]
# The learning rate rises to its peak over the first tenth of the steps, then falls along a cosine. Each model is
# trained with two peaks, 0.003 and 0.01, because the rate that is right for one kind of layer may be wrong for another;
# the better one counts.

# %%
def train(options, rate, seed):
    """(the model, its loss on the validation letters in nats per letter, the seconds of its fastest step)"""
    model = LetterModel(options, seed)
    training = Training(model, RandomWindows(train_ids, T, B, seed), Adam(rate), Schedule(STEPS // 10, STEPS))
    clock = [time.perf_counter()]
    for _ in range(STEPS):
        training.one_step()
        clock.append(time.perf_counter())
    loss = np.mean([model.loss(some)[0] for some in np.array_split(windows, len(windows) // B)])
    return model, loss, np.diff(clock).min()


def cached(model):
    """Numbers in the cache for each letter read"""
    cache = model.new_cache()
    model.read(ids[None, :10], cache)
    return sum(each.size for layer in cache for each in layer.contents()) // 10


def spread(some):
    """The mean of some losses and, of several, their standard deviation"""
    return f"{some.mean():.3f}" + (f" ± {some.std(ddof=1):.3f}" if len(some) > 1 else "")

# %% [markdown]
# Before you look: which step lowers the loss most? Which ones hardly change it, and what are they good for? After which
# one is the higher rate the better one?

# %%
losses, rows = {}, {}                                    # {step: (rates, seeds)}
for name, options in OPTIONS.items():
    runs = [[train(options, rate, seed) for seed in range(SEEDS)] for rate in RATES]
    losses[name] = np.array([[loss for _, loss, _ in some] for some in runs])
    model, seconds = runs[0][0][0], min(each[2] for some in runs for each in some)
    rows[name] = model.parameter_count(), cached(model), 1e3 * seconds, *map(spread, losses[name])
print(f"\n5. After {STEPS} steps; cache: numbers for each letter read; fastest: of the steps")
table(("step", "parameters", "cache", "fastest, ms", *(f"loss, rate {rate:g}" for rate in RATES)), rows,
      ("{:,}", "{:,}", "{:.0f}", "{}", "{}"))            # fmt: skip
show(lab_12.ladder(losses, RATES), "12_ladder")

# %%
best = {name: found.mean(1).min() for name, found in losses.items()}             # at the better rate
lab_07, feed_forward, before, rms, turned, gated, shared = best.values()
norm_after, norm_before = (losses[name][1].mean() for name in ("1 feed-forward", "2 norm before"))       # at 0.01
counts, caches = zip(*(row[:2] for row in rows.values()))
expect("parameters, most / fewest", below(1.02), max(counts) / min(counts), form="{:.3f}")
expect("cache, steps 0, 1 and 6", "768, 256, 128", f"{caches[0]}, {caches[1]}, {caches[6]}")
expect("all six: change of the loss, nats", below(-0.2), shared - lab_07, form="{:.2f}")
expect("4, rotary: change", below(-0.08), turned - rms, quick=below(0), form="{:.2f}")
expect("2, norm before: change at the rate 0.01", below(-0.2), norm_before - norm_after, quick=below(0), form="{:.2f}")
small = max(abs(change) for change in (feed_forward - lab_07, rms - before, gated - turned, shared - gated))
expect("1, 3, 5, 6: the largest change", below(0.1), small, quick=None, form="{:.2f}")

# %% [markdown]
# A single run of each does not tell which of the small changes are real. `SEEDS = 5`, five runs with different initial
# weights and batches, gave these means and standard deviations:
#
# | step | rate 0.003 | rate 0.01 | what the step changed |
# | --- | --- | --- | --- |
# | 0 Lab 07 | **2.425 ± 0.021** | 2.626 ± 0.377 | |
# | 1 feed-forward | **2.434 ± 0.020** | 2.858 ± 0.185 | the same loss in less time, with a third of the cache |
# | 2 norm before | 2.420 ± 0.021 | **2.301 ± 0.035** | −0.13, thanks to the higher rate |
# | 3 RMSNorm | 2.396 ± 0.029 | **2.277 ± 0.022** | −0.02, within the noise |
# | 4 rotary | 2.203 ± 0.016 | **2.126 ± 0.012** | −0.15 |
# | 5 SwiGLU | 2.187 ± 0.012 | **2.090 ± 0.019** | −0.04 |
# | 6 shared keys | 2.185 ± 0.004 | **2.110 ± 0.013** | +0.02, hardly more than the noise; half the cache |
#
# The difference of two such means has a standard error of 0.01 to 0.02. Positions matter most: a letter depends on the
# few before it, and a rotary head can easily look a fixed distance back, whatever the letters are. With the norm after
# the sum, a rate of 0.01 is a gamble; with the norm before, it is the better one. Part of step 2 is that branches start
# at 0: if they do so with the norm after (`attention.output.W.data[...] = 0`), step 1 reaches 2.393 ± 0.014 at 0.003,
# and 2.592 ± 0.230 at 0.01.
#
# The last step is `models.Llama`. **Expect** parameters with the same names and, once they hold the same numbers, the
# same logits.

# %%
llama = Llama(model.trunk.embedding.table.data, T=T, L=2, H=H, G=H // 2, m=m, f=3 * n, tied=False)
ours, theirs = model.parameters(), llama.parameters()
expect("step 6 has the parameters of models.Llama", True, [*ours] == [*theirs])
for name, parameter in ours.items():
    theirs[name].data = parameter.data
off = abs(llama.logits_after_each(windows[:4, :-1]) - model.logits_after_each(windows[:4, :-1])).max()
expect("largest difference of their logits", 0, off)

# %% [markdown]
# And here is a trained one, if llama2.c's stories260K.bin and tok512.bin are in the folder in which you run this lab
# (<https://huggingface.co/karpathy/tinyllamas>): L = 5, n = 64, H = 8, G = 4. It writes a story twice, as it is and
# without turning its queries and keys. Both losses are on the first story.

# %%
STORIES = Path("stories260K.bin")
if STORIES.exists():
    llama, vocabulary = load_llama(STORIES), open_tokenizer(STORIES.with_name("tok512.bin"))
    story = [vocabulary.first, *generate(llama, [vocabulary.first], 60, greedy)]
    for name, base in {"turned": 10000.0, "not turned": None}.items():
        for layer in llama.trunk.layers:
            layer.attention.rotary = base
        text = vocabulary.decode(list(generate(llama, [vocabulary.first], 60, greedy)))
        wrapped(f"{name}, loss {-llama.log_probabilities(story, 1).mean():.2f}: {text}")
else:
    print(f"{STORIES} is not here")

# %% [markdown]
# ## 6. What a small model cannot show
#
# - **Norm before.** In $x_L = x_0 + \sum_\ell \text{branch}_\ell$ gradients reach the first layer through sums alone;
#   with the norm after, they have to pass 2L norms. With two layers that hardly matters. The largest Llama 3 has 126.
# - **RMSNorm** is there for speed: one mean less, no β. Zhang and Sennrich report running times 7 to 64 % shorter.
# - **Rotary positions** have no table that ends at T, and a cached key, turned once, stays valid for all later queries.
#   For longer texts the base is raised, to 500,000 in Llama 3, so that all pairs but the first turn more slowly.
# - **SwiGLU**: Shazeer reports a loss 0.04 nats below relu's, at equal size, in a model 2,000 times as large as ours.
# - **Shared keys and values** are there for the cache. Llama 3 8B has L = 32, H = 32, G = 8, m = 128 and two bytes per
#   number: a text of 8,192 tokens needs 1 GiB of cache, and with G = 32 would need 4 GiB.
#
# ## What to remember
#
# - RMSNorm's backward is layer norm's without the path through the mean.
# - A rotation's backward is the rotation back, and the scores of rotated queries and keys know only their distance.
# - In the product with a gate, each factor's gradient is dy times the other factor.
# - What several heads use gets the sum of their gradients.
# - On letters, in 300 steps, the loss falls most through rotary positions and through the higher rate that the norm
#   before allows; feed-forward and shared keys save time and memory.
#
# **Try:** G = 1; a base of 100; twelve layers, with the norm before and after.
