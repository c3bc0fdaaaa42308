# %% [markdown]
# # Lab 08: translation, part by part
#
# - **Goals:** build a translator's parts by hand: positions, heads, cross-attention with both its gradients, masks;
#   recognize a loss that is too good because the model sees its answer; locate a wrong backward in a whole model.
# - **Before it:** Lab 07; exercise 06 (attention's gradient). **Work:** about 5.5 hours.
# - **Hand in:** `positions_of_the_slide`, `attention_by_hand.backward`, `head_across`, `look_ahead_mask`; an experiment
#   from “Try”.
#
# Source: CMU 10-417/617, recitation for homework 3a, fall 2022 (no address is printed on the slides): from "Encoder +
# Decoder Architecture" to "Positional Encoding", and experiment 1 of the programming part. The architecture is that of
# Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762). Where the slides leave something open,
# this lab makes a choice and says so.
#
# A translator reads a French sentence with one transformer, the encoder, and writes an English one with another, the
# decoder, which looks back at the encoder's output. In this lab you build its parts by hand, compare them with
# mini_tf's, and check every gradient:
#
# 1. positions, by the slide's formula,
# 2. attention: one head, several heads, and cross-attention between two sequences; why scores are divided by
#    $\sqrt{m}$,
# 3. sentence pairs, their vocabularies, and batches,
# 4. masks: for padding, and for words that have not been written *yet*,
# 5. the gradient of the whole model, and how the checker locates a wrong step.
#
# `08b_translation_decoding.py` trains the translator and translates: beam search, attention maps, BLEU.
#
# It runs in about a minute on one CPU core, half a minute with `--quick`.
#
# Letters: B batch, S words of a source sentence, U words of its translation, T the most words that a model can take, n
# size of a word vector, L layers, H heads, m size of a head, c vocabulary size. The slides' d is our n, their $d_k$ our
# m, their pos our t, and their k, the number of heads, our H.

# %%
import textwrap
from dataclasses import replace
from functools import partial

from _common import quick_mode, show, table
from _drawing import lab_08
from _drawing.architecture import architecture
from _expect import about, above, at_most, below, between, expect
from mini_tf import ops
from mini_tf.data import french_pairs, split_pairs
from mini_tf.decoding import translations
from mini_tf.gradcheck import gradcheck
from mini_tf.layers import Decoder, MultiHeadAttention
from mini_tf.layers.positions import geometric_frequencies, positional_encoding
from mini_tf.metrics import corpus_bleu
from mini_tf.models import Translator
from mini_tf.progress import training_progress
from mini_tf.text.sentences import SOS, UNK, padded, split_sentence
from mini_tf.training import Watcher, fit
from mini_tf.training.pair_batches import PairBatches, sentence_batch
from mini_tf.training.translation import (
    TRANSLATION,
    batches_in_order,
    mean_loss,
)

import numpy as np

QUICK = quick_mode("Lab 08: HW3a: positions, attention, masks, sentence pairs, and the gradient of the whole")
rng = np.random.default_rng(8)

# %% [markdown]
# ## The whole
#
# This is what you build, drawn from mini_tf's model: each box is a layer with the shapes of its parameters, each ⊕ adds
# what went around the boxes of a branch to what came through them. On the left the encoder reads S words of French; on
# the right the decoder reads the U words of English that are there so far, and scores each of the 1,000 words that may
# come next. Its *cross-attention* is the only place where one language meets the other. A has a row for each word that
# attends, and a column for each word that it attends to.

# %%
whole = Translator(1200, 1000, n=64, T=16, L=2, H=4, m=16, f=256, norm="after")
show(architecture(whole), "08_architecture")

# %% [markdown]
# ## 1. Positions
#
# Attention ignores order (Lab 07 shows it), so a vector $P_t$ is added to word t. The slide's formula has a sine in the
# even columns and a cosine in the odd ones:
#
# $$
# \begin{aligned}
# P_{t,2i}   &= \sin(t / 10000^{2i/n}) \\
# P_{t,2i+1} &= \cos(t / 10000^{2i/n})
# \end{aligned}
# $$
#
# mini_tf uses Lab 6's formula: a cosine first, then a sine, with frequencies that Lab 6 leaves open. With
# `geometric_frequencies` **expect** the same numbers, with the columns of each pair in the other order: unswapped, the
# two differ by almost $\sqrt{2}$, the most that a sine and a cosine of one angle can; swapped, by rounding alone. The
# order of the columns makes no difference to a model: it learns its word vectors for whichever order it is given.
#
# The dot product of two rows is $\sum_i \cos((t - u) / 10000^{2i/n})$, because sin·sin + cos·cos is the cosine of the
# difference. So **expect** it to depend on the distance t − u alone, to be $n/2$ at distance 0, and to fall up to
# distance 5.

# %%
def positions_of_the_slide(T, n):
    """P (T, n), a row for each position:  P_t,2i = sin(t/10000^(2i/n)),   P_t,2i+1 = cos(t/10000^(2i/n))"""
    P = np.zeros((T, n))
    for t in range(T):
        for i in range(n // 2):
            angle = t / 10000 ** (2 * i / n)
            P[t, 2 * i] = np.sin(angle)
            P[t, 2 * i + 1] = np.cos(angle)
    return P


T, n = 40, 64
by_slide = positions_of_the_slide(T, n)
ours = positional_encoding(T, n, geometric_frequencies(T, n))
swapped = ours.reshape(T, n // 2, 2)[:, :, ::-1].reshape(T, n)       # each pair of columns the other way round

print("1. Positions: the slide's formula and mini_tf's")
expect("largest difference without swapping", about(1.414, within=0.001), np.abs(by_slide - ours).max())
expect("largest difference after swapping", at_most(1e-13), np.abs(by_slide - swapped).max())

distances = 0, 1, 2, 3, 4, 5, 6, 10, 20
table(("distance", *distances), {
    f"from t = {t}": [by_slide[t] @ by_slide[t + d] / (n / 2) for d in distances] for t in (0, 7, 19)
}, "{:.3f}", "P_t·P_u / (n/2)")  # fmt: skip
by_distance = [np.diagonal(by_slide @ by_slide.T, d) / (n / 2) for d in range(T)]
means = [row.mean() for row in by_distance]
expect("largest spread at one distance", at_most(1e-13), max(np.ptp(row) for row in by_distance))
expect("P_t·P_t / (n/2)", about(1, within=1e-12), means[0])
expect("distance up to which it falls, words", 5, np.flatnonzero(np.diff(means) > 0)[0])
show(lab_08.positions(by_slide, means), "08_positions")

# %% [markdown]
# ## 2. Attention
#
# ### One head, by hand
#
# The slide's formula is $\operatorname{softmax}(Q \cdot K^\top / \sqrt{m}) \cdot V$. A row of Q is what a word asks
# for, a row of K what a word has to offer, and a row of V what it passes on. In the example the first entry of a key
# says "I am a noun", the second "I am an adjective". The decoder is about to write "cat", so it asks for a noun; for
# "black" it asks for an adjective. **Expect** nearly all of the attention on *chat*, then on *noir*.
#
# The forward has three steps, $\text{scores} = Q \cdot K^\top / \sqrt{m}$, $A = \operatorname{softmax}(\text{scores})$
# and $Y = A \cdot V$. The backward takes them in the opposite order:
#
# $$
# \begin{aligned}
# dA &= dY \cdot V^\top, \quad dV = A^\top \cdot dY && \text{from } Y = A \cdot V \\
# d\text{scores} &= A \circ (dA - \operatorname{rowsum}(A \circ dA)) && \text{from the softmax of each row} \\
# dQ &= d\text{scores} \cdot K / \sqrt{m}, \quad dK = d\text{scores}^\top \cdot Q / \sqrt{m} && \text{from the product}
# \end{aligned}
# $$
#
# **Expect** the code by hand to equal `ops.attention` up to rounding, and to pass the gradient checker.

# %%
def attention_by_hand(Q, K, V):
    """Y = A·V,   A = softmax(Q·Kᵀ/√m), row by row;   Q (U, m), K (S, m), V (S, any) → Y; backward: dY → dQ, dK, dV"""
    scale = 1 / np.sqrt(Q.shape[-1])
    scores = scale * Q @ K.T                             # (U, S)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    A = e / e.sum(-1, keepdims=True)

    def backward(dY):
        dA, dV = dY @ V.T, A.T @ dY
        dscores = A * (dA - (A * dA).sum(-1, keepdims=True))
        return scale * dscores @ K, scale * dscores.T @ Q, dV

    return A @ V, backward


french, english = ["le", "chat", "noir", "dort"], ["cat", "black"]
K = np.array([[0, 0], [4, 0], [0, 4], [-2, -2.0]])       # noun-ness, adjective-ness
Q = np.array([[2, 0], [0, 2.0]])                         # wanted: a noun; an adjective
weights, _ = attention_by_hand(Q, K, np.eye(4))          # with V = 1 the output is A itself

table(("", *french, "sum"), {word: [*row, row.sum()] for word, row in zip(english, weights)}, "{:.3f}",
      "2. One head: how much each word being written attends to each word read")  # fmt: skip
expect("share of chat in cat", about(0.993, within=0.0005), weights[0, 1])
expect("share of noir in black", about(0.993, within=0.0005), weights[1, 2])

# %%
Q, K, V, dY = (rng.standard_normal(shape) for shape in ((3, 5), (4, 5), (4, 6), (3, 6)))
Y, backward = attention_by_hand(Q, K, V)
Y_op, backward_op = ops.attention(Q, K, V, scale=5**-0.5)
print("\n2. By hand and by ops.attention, random numbers")
for name, mine, its in zip(("Y", "dQ", "dK", "dV"), (Y, *backward(dY)), (Y_op, *backward_op(dY))):
    expect(f"{name} {mine.shape}: largest difference", at_most(1e-14), np.abs(mine - its).max())
report = gradcheck(attention_by_hand, Q, K, V)
print(report)
expect("attention_by_hand passes", True, bool(report))

# %% [markdown]
# ### Several heads, and two sequences
#
# Each of the H heads has its own matrices for queries, keys and values, (n, m). Their outputs are concatenated, (U,
# H·m), and multiplied by $W^O$. The slide calls $W^O$ "a final weight vector". It is a matrix, (H·m, n): with a vector,
# the layer's output could not be added to its input. Multiplying by it is the same as multiplying each head's output by
# its own m rows of it, and adding up: $\sum_h Y^h \cdot W^h$, as Lab 6 writes it.
#
# In self-attention, queries, keys and values come from the same words. In the decoder's second attention, the
# cross-attention, the queries come from the English words, x, and keys and values from the French ones, z. Nothing else
# changes, but now there are two gradients: dx through the queries, and dz through keys *and* values.
#
# **Expect** the heads by hand to equal the layer, forward and backward, and all six gradients of the layer to pass.

# %%
def head_across(x, z, Wq, Wk, Wv):
    """One head between two sequences: a query for each word of x, a key and a value for each word of z

    Y = softmax((x·Wq)·(z·Wk)ᵀ/√m)·(z·Wv);   x (U, n), z (S, n), Wq, Wk, Wv (n, m)  →  Y (U, m)
    backward: dY (U, m)  →  dx, dz, dWq, dWk, dWv
    """
    Y, attention_backward = ops.attention(x @ Wq, z @ Wk, z @ Wv, scale=Wq.shape[1] ** -0.5)

    def backward(dY):
        dQ, dK, dV, *_ = attention_backward(dY)
        dz = dK @ Wk.T + dV @ Wv.T                       # z was used twice
        return dQ @ Wq.T, dz, x.T @ dQ, z.T @ dK, z.T @ dV

    return Y, backward


# %%
n, H, m = 8, 2, 3
layer = MultiHeadAttention(n, H, m, rng, scale=m**-0.5, dtype=np.float64)
x, z = rng.standard_normal((2, 3, n)), rng.standard_normal((2, 4, n))            # 3 words written, 4 words read
y, backward = layer.across(x, z)
dy = rng.standard_normal(y.shape)
dx, dz = backward(dy)

Wq, Wk, Wv, W_O = (each.W.data for each in (layer.query, layer.key, layer.value, layer.output))
columns = [slice(h * m, (h + 1) * m) for h in range(H)]                          # of each head
heads = [head_across(x[0], z[0], Wq[:, of], Wk[:, of], Wv[:, of]) for of in columns]         # of the first sentence
side_by_side = np.concatenate([Y for Y, _ in heads], axis=1) @ W_O
added = sum(Y @ W_O[of] for (Y, _), of in zip(heads, columns))
gradients = [back(dy[0] @ W_O[of].T) for (_, back), of in zip(heads, columns)]           # (dx, dz, …) of each head
dx_by_hand, dz_by_hand = (sum(of_head[i] for of_head in gradients) for i in (0, 1))

print("\n2. Several heads, between two sequences")
expect("side by side, then W^O: off from the layer by", at_most(1e-14), np.abs(side_by_side - y[0]).max())
expect("Σ_h Y^h·W^h: off from the layer by", at_most(1e-14), np.abs(added - y[0]).max())
expect("dx, summed over heads: off by", at_most(1e-14), np.abs(dx_by_hand - dx[0]).max())
expect("dz, summed over heads: off by", at_most(1e-14), np.abs(dz_by_hand - dz[0]).max())
report = gradcheck(layer.across, x, z, params=layer.parameters())
print(report)
expect("gradients of the layer that pass", 6, sum(tensor.verdict == "PASS" for tensor in report.tensors))

# %% [markdown]
# ### Why divide by √m?
#
# A score is a sum of m products. If the entries of queries and keys have variance 1, what is the variance of a score,
# and after the division by $\sqrt{m}$? Large scores make softmax select one key and ignore the rest, and once it has
# saturated like that, its slope is nearly 0. We measure the largest weight among 16 keys, and how much of a random
# gradient dA reaches the scores, as the median over a thousand queries. With $\sqrt{m}$, **expect** both to be the same
# for every m, within 15 %; without it, how much of the gradient remains at m = 512?

# %%
def of_attention(m, scale, keys=16, times=1000):
    """(variance of the scores, mean of the largest weights, median of ‖dscores‖/‖dA‖)"""
    q, k = rng.standard_normal((times, 1, m)), rng.standard_normal((times, keys, m))
    scores = scale * (q @ k.swapaxes(1, 2))[:, 0]        # (times, keys)
    A, backward = ops.softmax(scores)
    dA = rng.standard_normal(A.shape)
    arrives = np.linalg.norm(backward(dA), axis=-1) / np.linalg.norm(dA, axis=-1)
    return scores.var(), A.max(-1).mean(), np.median(arrives)


sizes = 4, 16, 64, 256, 512
pairs = {m: (of_attention(m, 1), of_attention(m, m**-0.5)) for m in sizes}
table(("m", "variance", "with √m", "largest weight", "with √m", "‖dscores‖/‖dA‖", "with √m"),
      {m: np.ravel(np.transpose(pair)) for m, pair in pairs.items()}, "{:.3g}", "2. Why √m? 16 keys")  # fmt: skip
rows = dict(zip(("without √m", "with √m"), zip(*pairs.values())))
plain, scaled = pairs[512]
show(lab_08.scaling(sizes, rows), "08_scaling")

variance, largest, arrives = np.array(rows["with √m"]).T
expect("variance without √m, as a multiple of m = 512", about(1, within=0.08), plain[0] / 512)
expect("variance with √m, the one farthest from 1", about(1, within=0.08), max(variance, key=lambda v: abs(v - 1)))
expect("largest weight, with √m: greatest / least", below(1.15), largest.max() / largest.min())
expect("gradient that passes, with √m: greatest / least", below(1.15), arrives.max() / arrives.min())
expect("gradient that passes, with √m, m = 512", about(0.07, within=0.004), scaled[2])
expect("gradient that passes, without √m, m = 512", about(6e-5, within=4e-5), plain[2])

# %% [markdown]
# ## 3. Sentence pairs
#
# Masks need sentences, so here they are: French sentences generated by a small grammar, with their English
# translations. HW3a uses sentences that people wrote; the grammar's are simpler, but translating them takes more than a
# dictionary: adjectives after the noun, pronouns before the verb, *ne … pas* around it. And each French sentence has
# exactly one correct translation, so a translation can be counted as right or wrong.
# `mini-tf train --preset translate --pairs FILE` takes a file of real pairs.
#
# ### Words
#
# [SOS] is 0 and [EOS] is 1, as in HW3a. A word that is rare in training has no id of its own and is read as [UNK], 2;
# **expect** fewer than one in a thousand words of the test sentences to be [UNK]. A target begins with [SOS] and ends
# with [EOS], so that the model learns to begin and to stop.
#
# ### No sentence in both training and test
#
# "Vous mangez" and "tu manges" are both "you are eating". A random split puts the same English sentence into training
# and test: the test would ask for something that was seen in training. `split_pairs` keeps all pairs that share a
# sentence in one part. How many English test sentences are known from training after a random split?

# %%
longest, rate = (7, 8e-3) if QUICK else (10, 6e-3)
preset = replace(TRANSLATION["translate"], longest=longest, words=1000, learning_rate=rate, warm_up=40)
print("\n3. Sentence pairs")
pairs = french_pairs(40_000, seed=0)
bitext = preset.prepare(pairs, say=print)
for french, english in pairs[:5]:
    print(f"  {french:<60}{english}")

print(f"the first words by number: {', '.join(f'{i} {w}' for i, w in enumerate(bitext.french.words[:9]))}")
words = split_sentence("Je ne vois pas l'aardvark.", "french")
ids = bitext.french.encode(words)
print(f"{' '.join(words)}  →  {ids}  →  {' '.join(bitext.french.decode(ids))}")
unknown = np.mean([word == UNK for ids in bitext.ids(bitext.test)[0] for word in ids])
expect("words of the test sentences that are [UNK]", below(0.001), unknown, quick=below(0.01), form="{:.2%}")

# %%
kept = [(" ".join(french), " ".join(english))
        for part in (bitext.train, bitext.validation, bitext.test) for french, english in part]  # fmt: skip
order = rng.permutation(len(kept))
cut = len(kept) // 10
at_random = [kept[i] for i in order[cut:]], [kept[i] for i in order[:cut]]
known, rows = {}, []
for name, (train, test) in {"at random": at_random, "split_pairs": split_pairs(kept, 0.1)}.items():
    seen = [set(side) for side in zip(*train)]
    known[name] = [sum(pair[side] in seen[side] for pair in test) for side in (0, 1)]
    rows.append((name, len(test), *known[name]))
table(("", "pairs", "French", "English"), rows, title="3. Test sentences that are in the training part, too")
share = known["at random"][1] / cut
expect("English ones known, split at random", about(0.035, within=0.01), share, quick=above(0), form="{:.1%}")
expect("sentences known, split_pairs", 0, sum(known["split_pairs"]))

# %% [markdown]
# ### Batches
#
# A batch is a rectangle: short sentences are filled up with padding, −1, which costs time and teaches nothing.
# `PairBatches` groups sentences of similar length. How much of a batch is padding if its sentences are drawn at random,
# and how much if they are grouped?

# %%
def padding_share(batches):
    absent = total = 0
    for batch in batches:
        for ids in (batch.source, batch.target):
            absent, total = absent + (ids < 0).sum(), total + ids.size
    return absent / total


sources, targets = bitext.ids(bitext.train)
bucketed = PairBatches(sources, targets, preset.words, seed=0)
by_length = [next(bucketed) for _ in range(len(bucketed))]
mixed = np.array_split(rng.permutation(len(sources)), len(by_length))
mixed = [sentence_batch([sources[i] for i in some], [targets[i] for i in some]) for some in mixed]
print(f"\n3. Padding in one round of {len(by_length)} batches")
expect("sentences at random", about(0.23, within=0.01), padding_share(mixed), quick=above(0.1), form="{:.1%}")
expect("sentences by length", below(0.01), padding_share(by_length), form="{:.1%}")

# %% [markdown]
# ## 4. Masks
#
# There are two reasons to mask a word: it is padding, or it comes later. The second matters only in the decoder. All
# its outputs are trained at once, and without this *look-ahead mask* the output at a word could attend to the next
# word, which is the answer.
#
# The slide lets a word attend to "earlier positions". Taken literally, the first word would see nothing: it must be
# *itself* and earlier ones, j ≤ i.
#
# Here is a batch of two sentences, and which word may attend to which (white: allowed). Rows are queries, columns are
# keys. A row of the decoder is named after the word that is read there, so the first is [SOS]. (The short sentence's
# [EOS] is read, too, and so is its padding; the loss leaves these outputs out.) **Expect** [SOS] to see 1 word, the
# next one 2, and so on; no word to see the padding; and the mask by hand to equal the model's.

# %%
def look_ahead_mask(ids):
    """Which word may see which in the decoder: True where key j is no later than query i, and is a word

    ids (B, T), −1 for padding  →  bool (B, T, T), rows are queries, columns are keys
    """
    T = ids.shape[1]
    return np.tri(T, dtype=bool) & (ids >= 0)[:, None, :]


two = [("je ne vois pas les chats noirs .", "i do not see the black cats ."), ("elle dort .", "she is sleeping .")]
read = [bitext.french.encode(french.split()) for french, _ in two]
written = [bitext.english.encode(english.split()) for _, english in two]
batch = sentence_batch(read, written)
small = {"n": 16, "T": 12, "L": 2, "H": 2, "m": 8, "f": 32, "dropout": 0.0}
model = Translator(len(bitext.french), len(bitext.english), norm="after", **small)
inputs = batch.target[:, :-1]                            # from [SOS] on; the targets are one word later

source_mask = model.encoder.mask(batch.source)           # (B, 1, 1, S)
look_ahead = model.decoder.mask(inputs)[:, 0]            # (B, U + 1, U + 1)

# %%
S, decoded = batch.source.shape[1], inputs.shape[1]
pictures = {}
for b, (french, english) in enumerate(two):
    french = [*french.split(), *S * ["–"]][:S]
    english = ["[SOS]", *english.split(), "[EOS]", *decoded * ["–"]][:decoded]
    pictures[b] = [
        ("encoder: French to French", french, french, np.broadcast_to(source_mask[b, 0], (S, S))),
        ("decoder: English to English", english, english, look_ahead[b]),
        ("across: English to French", english, french, np.broadcast_to(source_mask[b, 0], (decoded, S))),
    ]
print("\n4. Masks of a batch of two sentences: how many words each word of the decoder may see")
for _, (_, english, _, allowed), _ in pictures.values():
    print("  " + "  ".join(f"{word} {count}" for word, count in zip(english, allowed.sum(1))))
expect("words seen by each word of sentence 1", "1 2 3 4 5 6 7 8 9", " ".join(map(str, look_ahead[0].sum(1))))
expect("queries that see the padding of sentence 2", 0, look_ahead[1][:, inputs[1] < 0].sum())
expect("entries that differ from the mask by hand", 0, (look_ahead_mask(inputs) != look_ahead).sum())
show(lab_08.masks(pictures), "08_masks")

# %% [markdown]
# ### How a mask enters softmax
#
# The slide says that a mask is a matrix of 0s and 1s, "where the 0s represent the positions to mask out". mini_tf's
# masks are the same with False and True. Scores must not be multiplied by the mask: exp(0) is 1, so a score multiplied
# by 0 still gets its share. Nor may the weights be multiplied *after* softmax, because they would no longer sum to 1. A
# masked score has to be −∞, so that its exponential is 0.
#
# One pitfall remains: a query that may see nothing. With −∞ everywhere, softmax is 0/0, NaN. With $-10^9$ instead of
# −∞, it is the mean over all masked words.
#
# Which of these ways give the right weights? And which give zeros in an empty row?

# %%
def plain_softmax(scores):
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


scores = np.array([[2.0, 1.0, 0.5, 3.0], [2.0, 1.0, 0.5, 3.0]])
may_see = np.array([[1, 1, 0, 0], [0, 0, 0, 0]])
ways = {
    "scores × mask, then softmax": plain_softmax(scores * may_see),
    "softmax, then × mask": plain_softmax(scores) * may_see,
    "−10⁹ where the mask is 0": plain_softmax(np.where(may_see, scores, -1e9)),
    "−∞ where the mask is 0": plain_softmax(np.where(may_see, scores, -np.inf)),
    "mini_tf's masked_softmax": ops.masked_softmax(scores, may_see.astype(bool))[0],
}
table(("", "mask 1 1 0 0", "", "", "", "sum", "mask 0 0 0 0"), {
    name: [*one, one.sum(), *none] for name, (one, none) in ways.items()
}, "{:.3f}", "4. Scores 2, 1, 0.5, 3, of which two are masked, or all")  # fmt: skip
scores_times, weights_times, *right = ways.values()
expect("scores × mask: share of the masked words", about(0.165, within=0.0005), scores_times[0, 2:].sum())
expect("softmax × mask: sum of the weights", about(0.317, within=0.0005), weights_times[0].sum())
expect("the last three: largest difference", at_most(1e-15), np.ptp([way[0] for way in right], axis=0).max())
expect("empty row: mini_tf's weights, their sum", 0, right[-1][1].sum())

# %% [markdown]
# ### Are the future and the padding hidden?
#
# We change word 4 of the decoder's input, "see" ([SOS] is word 0), and look at its outputs: **expect** those before it
# not to change at all. Then we give the model the short sentence alone, without the padding that its longer neighbour
# requires: **expect** differences of rounding size.

# %%
print("\n4. What a word can see")
changed = inputs.copy()
changed[0, 4] = (changed[0, 4] + 1) % len(bitext.english)
difference = np.abs(model.logits(batch.source, changed) - model.logits(batch.source, inputs))[0].max(-1)
expect("word 4 changed: largest change, outputs 0–3", 0, difference[:4].max())
expect("word 4 changed: smallest change, outputs 4–8", above(0.001), difference[4:].min())
alone = model.logits(padded(read[1:]), np.array([[SOS, *written[1]]]))
together = model.logits(batch.source, inputs)[1:, : alone.shape[1]]
expect("without padding: largest change", at_most(1e-5), np.abs(alone - together).max())

# %% [markdown]
# ### What happens without the look-ahead mask?
#
# Two small models learn from the same batches, one of them without the look-ahead mask, so that the answer is one word
# to the right. Which has the lower training loss, which the lower *validation* loss, and which the better translations,
# by BLEU (0 to 1; Lab 08b explains it)?

# %%
steps = 180 if QUICK else 700
options = {"n": 64, "T": 16, "L": 1, "H": 4, "m": 16, "f": 256, "dropout": 0.0, "smoothing": 0.0, "norm": "before"}
c = len(bitext.english)
validation = batches_in_order(*bitext.ids(bitext.validation), preset.words)
tested = bitext.test[:100 if QUICK else 300]
histories, examples, results = {}, {}, {}
for name in ("with the mask", "without it"):
    model = Translator(len(bitext.french), c, **options)
    if name == "without it":
        model.decoder.mask = lambda ids, past=0: (ids >= 0)[:, None, None, :]            # all words that are there
    training = preset.training(model, bitext, steps, seed=0)
    with training_progress(steps, preset.words) as on_step:
        history = fit(training, steps, partial(mean_loss, model, validation), steps // 10, watcher=Watcher(on_step))
    found = translations(model, [bitext.french.encode(french) for french, _ in tested])
    found = [bitext.english.decode(hypothesis.words) for hypothesis in found]
    bleu = corpus_bleu(found, [english for _, english in tested]).score
    right = np.mean([mine == english for mine, (_, english) in zip(found, tested)])
    losses = [history.rows[-1][which] for which in ("train_loss", "validation_loss")]
    histories[f"{name}: BLEU {bleu:.2f}"], examples[name] = history.rows, found
    results[name] = *losses, bleu, right
table(("", "training loss", "validation loss", "BLEU", "all right"), results, ("{:.3f}", "{:.3f}", "{:.3f}", "{:.0%}"),
      f"4. Training with and without the look-ahead mask, {steps} steps")  # fmt: skip
show(lab_08.leak(histories), "08_leak")

# %%
masked, leaking = results.values()
expect("training loss, without mask / with", below(0.05), leaking[0] / masked[0], quick=below(0.2))
expect("validation loss, with the mask", between(0.05, 0.8), masked[1], quick=below(3.5))
expect("validation loss, without it", below(0.01), leaking[1], quick=below(0.5))
expect("BLEU, with the mask", above(0.5), masked[2], quick=None)
expect("BLEU, without it", at_most(0.005), leaking[2])
for i in range(3):
    print(f"French           {' '.join(tested[i][0])}")
    for name, found in examples.items():
        print(f"  {name:<15}{' '.join(found[i])}")

# %% [markdown]
# Without the mask both losses are splendid, because the answers are visible in validation, too: no loss reveals this
# mistake. The translations do. When the model writes, the next word is not there to be copied, and it has learned
# nothing else.
#
# ## 5. The gradient of the whole model
#
# Word vectors, positions, encoder and decoder, three kinds of attention, masks, readout and loss: do they all fit
# together? We have the checker test every parameter of a small model in float64, with padding in the batch. The loss is
# a function without arguments; we differentiate it with respect to the parameters. **Expect** all 62 to pass (with
# `--quick`, 32 of one layer).

# %%
def tiny_translator(L):
    return Translator(9, 8, n=4, T=6, L=L, H=2, m=2, f=8, norm="after", dropout=0.0, smoothing=0.0, dtype="float64")


def check(model):
    budget = 5 if QUICK else None                        # entries of each parameter, plus ten random directions
    return gradcheck(lambda: model.loss(batch), params=model.parameters(), name="the translator", budget=budget)


batch = sentence_batch([np.array([3, 4, 5]), np.array([6, 8])], [np.array([3, 4]), np.array([5, 6, 7])])
report = check(tiny_translator(L=1 if QUICK else 2))
print(f"\n5. {report.explain().splitlines()[0]}; {report.judged:,} entries judged")
expect("parameters that pass", 62, sum(tensor.verdict == "PASS" for tensor in report.tensors), quick=32)

# %% [markdown]
# ### Two mistakes
#
# **Only the first layer's gradient arrives.** Every layer of the decoder reads the same z, so dz is a sum over the
# layers. The `Decoder` below has = where += belongs: in the backward pass each layer overwrites what came before, and
# the first layer comes last. Each layer by itself is right.
#
# **A forgotten value.** Keys and values are both computed from z, so dz has two terms. This attention forgets the
# second.
#
# **Expect** the decoder's own parameters to pass, all of the encoder's to fail, and the report to name the class with
# the mistake: the first wrong step of the backward pass, the innermost function that is itself wrong.

# %%
class FirstLayerOnly(Decoder):
    def __call__(self, ids, z, z_mask=None, rng=None):
        x, embed_backward = self.embed(ids, rng)
        mask, layer_backwards = self.mask(ids), []
        for layer in self.layers:
            x, layer_backward = layer(x, z, mask, z_mask, rng)
            layer_backwards.append(layer_backward)

        def backward(dx):
            dz = 0
            while layer_backwards:
                dx, dz = layer_backwards.pop()(dx)       # should be: dx, dz_layer = …, dz = dz + dz_layer
            embed_backward(dx)
            return dz

        return x, backward


class ForgottenValue(MultiHeadAttention):
    def across(self, x, z, mask=None, cache=None):
        query, query_backward = self.query(x)
        key, key_backward = self.key(z)
        value, value_backward = self.value(z)
        Q, K, V = self.split(query), self.split(key), self.split(value)
        heads, attention_backward = ops.attention(Q, K, V, mask, self.scale)
        y, output_backward = self.output(self.join(heads))

        def backward(dy):
            dQ, dK, dV, _, _ = attention_backward(self.split(output_backward(dy)))
            value_backward(self.join(dV))                # its result should be added to dz
            return query_backward(self.join(dQ)), key_backward(self.join(dK))

        return y, backward


# %%
def what_it_says(report):
    """The verdict and the first wrong step, without the gradients that pass."""
    lines = [line for line in report.explain().splitlines() if not line.lstrip().startswith(("PASS", "later steps"))]
    wrapped = (textwrap.fill(line.lstrip(), 110, initial_indent=line[: -len(line.lstrip())], subsequent_indent=10 * " ")
               for line in lines)  # fmt: skip
    return "\n".join(wrapped)


two_layers, one_layer = tiny_translator(L=2), tiny_translator(L=1)
two_layers.decoder.__class__ = FirstLayerOnly
one_layer.decoder.layers[0].cross_attention.__class__ = ForgottenValue
for mistake, wrong in (("FirstLayerOnly", two_layers), ("ForgottenValue", one_layer)):
    report = check(wrong)
    print(f"\n5. {mistake}, in a model with {wrong.config['L']} layer{'s' * (wrong.config['L'] > 1)}")
    print(what_it_says(report))
    verdicts = {part: [tensor.verdict for tensor in report.tensors if tensor.name.startswith(part)]
                for part in ("encoder", "decoder")}  # fmt: skip
    expect("the first wrong step is in", mistake, report.wrong_step.name.split(".")[0])
    expect("parameters of the encoder that fail", len(wrong.encoder.parameters()), verdicts["encoder"].count("FAIL"))
    expect("parameters of the decoder that pass", len(wrong.decoder.parameters()), verdicts["decoder"].count("PASS"))

# %% [markdown]
# ## What to remember
#
# The numbers are those of the full run.
#
# - The slide's positions and mini_tf's are the same once the columns of each pair are swapped, up to $10^{-13}$. Their
#   dot product depends on the distance alone.
# - Cross-attention has two input gradients, and dz has a term from the keys and one from the values.
# - With heads of size 512 and without $\sqrt{m}$, less than 0.0001 of the gradient passes through softmax; with it,
#   0.07, as for any size.
# - A mask is −∞ before softmax, not 0. Without the look-ahead mask the validation loss is below 0.01 instead of 0.1 to
#   0.6, and BLEU 0 instead of 0.6 to 0.9 (five seeds). A loss that is too good to be true should make you ask what the
#   model can see.
# - All 62 parameters of a translator pass the check; the checker names the class of each of two mistakes, which leave
#   the decoder's own gradients right and make all of the encoder's wrong.
#
# **Try:** `norm="before"` for the small models; another wrong backward of your own; a mask that lets each word see
# itself and *one* later word.
