# %% [markdown]
# # Lab 08: translation, part by part
#
# Source: CMU 10-417/617, recitation for HW3a: the slides from "Encoder + Decoder Architecture" to "Positional
# Encoding", and experiment 1 of the programming part. What it leaves open, this lab chooses and says so.
#
# A translator reads a French sentence with one transformer, the encoder, and writes an English one with another, the
# decoder, which looks back at what the encoder made. In this lab you build its parts by hand, put them beside those of
# mini_tf, and check every gradient:
#
# 1. positions, by the formula of the slide,
# 2. attention: one head, several heads, and between two sequences; why scores are divided by $\sqrt{m}$,
# 3. masks: for words that are not there, and for words that are not there *yet*,
# 4. sentence pairs, their words, and batches of them,
# 5. the gradient of the whole model, and how the checker finds the step that is wrong.
#
# `08b_translation_decoding.py` trains the translator and translates: beam search, attention maps, BLEU.
#
# It takes about a minute on one CPU core, half a minute with `--quick`.
#
# Letters: B batch, T words of a sentence, n size of a word vector, L layers, H heads, m size of a head, c vocabulary
# size. The slides' d is our n, their $d_k$ our m, their pos our t.

# %%
import textwrap
from dataclasses import replace
from functools import partial

from _common import quick_mode, show
from _drawing import lab_08
from mini_tf import ops
from mini_tf.data import french_pairs, split_pairs
from mini_tf.decoding import translations
from mini_tf.gradcheck import gradcheck
from mini_tf.layers import Decoder, MultiHeadAttention, walk_back
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
    prepare_pairs,
    translator_training,
)

import numpy as np

QUICK = quick_mode("Lab 08: HW3a: positions, attention, masks, sentence pairs, and the gradient of the whole")
rng = np.random.default_rng(8)

# %% [markdown]
# ## 1. Positions
#
# Attention is blind to order (Lab 07 shows it), so word t gets a vector $P_t$ of its own. The slide's formula has a
# sine in the even columns and a cosine in the odd ones:
#
# $$
# \begin{aligned}
# P_{t,2i}   &= \sin(t / 10000^{2i/n}) \\
# P_{t,2i+1} &= \cos(t / 10000^{2i/n})
# \end{aligned}
# $$
#
# mini_tf has Lab 6's formula, a cosine first and then a sine, with frequencies that Lab 6 leaves open. With
# `geometric_frequencies` **expect** the same numbers, each pair of columns in the other order: a difference of order 1
# as they stand, and of rounding alone when the pairs are swapped. The order does not matter to a model: the first
# layer's weights can be put in any order, too.
#
# The dot product of two rows is $\sum_i \cos((t - u) / 10000^{2i/n})$, because sin·sin + cos·cos is the cosine of the
# difference. So **expect** it to depend on the distance t − u alone, to be $n/2$ at distance 0, and to fall at first.

# %%
def positions_of_the_slide(T, n):
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

print("1. Positions: the slide's formula beside mini_tf's; expected: the same, each pair of columns swapped")
print(f"largest difference as they stand: {np.abs(by_slide - ours).max():.2f}")
print(f"largest difference after swapping: {np.abs(by_slide - swapped).max():.1e}")

distances = 0, 1, 2, 3, 5, 10, 20
print("\nP_t·P_u / (n/2); expected: only the distance u − t counts")
print(f"{'distance':<12}" + "".join(f"{d:>8}" for d in distances))
for t in (0, 7, 19):
    print(f"{f'from t = {t}':<12}" + "".join(f"{by_slide[t] @ by_slide[t + d] / (n / 2):>8.3f}" for d in distances))
by_distance = [np.diagonal(by_slide @ by_slide.T, d) / (n / 2) for d in range(T)]
print(f"largest spread at one distance: {max(np.ptp(row) for row in by_distance):.1e}")
show(lab_08.positions(by_slide, [row.mean() for row in by_distance]), "08_positions")

# %% [markdown]
# ## 2. Attention
#
# ### One head, by hand
#
# The slide's formula is $\operatorname{softmax}(Q \cdot K^\top / \sqrt{m}) \cdot V$. A row of Q is what a word asks
# for, a row of K what a word has to offer to those who ask, a row of V what it gives them. In the example the keys say
# "I am a noun" in their first number and "I am an adjective" in their second. The decoder is about to write "cat", and
# asks for a noun; then for an adjective.
#
# The backward, with $S = Q \cdot K^\top / \sqrt{m}$, $A = \operatorname{softmax}(S)$, $Y = A \cdot V$, goes through the
# three formulas in the other order:
#
# $$
# \begin{aligned}
# dA &= dY \cdot V^\top, \quad dV = A^\top \cdot dY && \text{from } Y = A \cdot V \\
# dS &= A \circ (dA - \operatorname{rowsum}(A \circ dA)) && \text{from the softmax of each row} \\
# dQ &= dS \cdot K / \sqrt{m}, \quad dK = dS^\top \cdot Q / \sqrt{m} && \text{from the product}
# \end{aligned}
# $$

# %%
def attention_by_hand(Q, K, V):
    scale = 1 / np.sqrt(Q.shape[-1])
    S = scale * Q @ K.T                                  # (Tq, Tk)
    e = np.exp(S - S.max(-1, keepdims=True))
    A = e / e.sum(-1, keepdims=True)

    def backward(dY):
        dA, dV = dY @ V.T, A.T @ dY
        dS = A * (dA - (A * dA).sum(-1, keepdims=True))
        return scale * dS @ K, scale * dS.T @ Q, dV

    return A @ V, backward


french, english = ["le", "chat", "noir", "dort"], ["cat", "black"]
K = np.array([[0, 0], [4, 0], [0, 4], [-2, -2.0]])       # noun-ness, adjective-ness
Q = np.array([[2, 0], [0, 2.0]])                         # wanted: a noun; an adjective
weights, _ = attention_by_hand(Q, K, np.eye(4))          # with V = 1 the output is A itself

print("\n2. One head: how much each written word takes from each word read; expected: chat and noir")
print(f"{'':<8}" + "".join(f"{word:>8}" for word in french))
for word, row in zip(english, weights):
    print(f"{word:<8}" + "".join(f"{share:>8.3f}" for share in row) + f"   sum {row.sum():.3f}")

Q, K, V, dY = (rng.standard_normal(shape) for shape in ((3, 5), (4, 5), (4, 6), (3, 6)))
Y, backward = attention_by_hand(Q, K, V)
Y_op, backward_op = ops.attention(Q, K, V, scale=5**-0.5)
print("\nBy hand beside ops.attention, random numbers; expected: equal up to rounding")
for name, mine, its in zip(("Y", "dQ", "dK", "dV"), (Y, *backward(dY)), (Y_op, *backward_op(dY))):
    print(f"  {name:<3} {str(mine.shape):<8} largest difference {np.abs(mine - its).max():.1e}")
print(gradcheck(attention_by_hand, Q, K, V))

# %% [markdown]
# ### Several heads, and two sequences
#
# With H heads, each has matrices of its own for queries, keys and values (n, m). Their outputs are put side by side,
# (T, H·m), and multiplied by $W^O$. The slide calls $W^O$ "a final weight vector": it is a matrix, (H·m, n), or the
# layer's output could not be added to its input. Multiplying by it is the same as giving each head m rows of it, and
# adding up: $\sum_h \text{head}_h \cdot W^h$, as Lab 6 writes it.
#
# In self-attention, queries, keys and values come from the same words. In the decoder's second attention the queries
# come from the English words, x, and keys and values from the French ones, z. Nothing else changes, but now there are
# two gradients: dx through the queries, and dz through keys *and* values. **Expect** the heads by hand to equal the
# layer, and both gradients to pass.

# %%
n, H, m = 8, 2, 3
layer = MultiHeadAttention(n, H, m, rng, scale=m**-0.5, dtype=np.float64)
x, z = rng.standard_normal((2, 3, n)), rng.standard_normal((2, 4, n))            # 3 words written, 4 words read
y, backward = layer.across(x, z)
columns = [slice(h * m, (h + 1) * m) for h in range(H)]                          # of each head


def heads_by_hand(x, z):
    """Of one sentence: x (Tq, n), z (Tk, n)"""
    Wq, Wk, Wv = (each.W.data for each in (layer.query, layer.key, layer.value))           # (n, H·m)
    return [attention_by_hand(x @ Wq[:, h], z @ Wk[:, h], z @ Wv[:, h])[0] for h in columns]


side_by_side = [np.concatenate(heads_by_hand(*pair), axis=1) @ layer.output.W.data for pair in zip(x, z)]
added = [sum(head @ layer.output.W.data[h] for head, h in zip(heads_by_hand(*pair), columns)) for pair in zip(x, z)]
print("\n2. Several heads, between two sequences")
print(f"W^O has shape {layer.output.W.data.shape}: H·m = {H * m} rows, n = {n} columns")
print(f"by hand, side by side, then W^O: largest difference from the layer {np.abs(side_by_side - y).max():.1e}")
print(f"by hand, Σ_h head_h·W^h:         largest difference from the layer {np.abs(added - y).max():.1e}")
dx, dz = backward(np.ones_like(y))
print(f"x {x.shape}, z {z.shape} → y {y.shape}; gradients dx {dx.shape}, dz {dz.shape}")
print(gradcheck(layer.across, x, z, params=layer.parameters()))

# %% [markdown]
# ### Why divide by √m?
#
# A score is a sum of m products. If queries and keys have entries of variance 1, the score has variance m: **expect**
# that, and 1 after the division by $\sqrt{m}$. Large scores make softmax choose one key and ignore the rest, and where
# it has chosen, its slope is nearly 0. We measure the largest weight among 16 keys, and how much of a random gradient
# dA arrives as dS, the median of a thousand queries. With $\sqrt{m}$ **expect** both to be the same for every m;
# without it, **expect** the gradient to die away.

# %%
def of_attention(m, scale, keys=16, times=1000):
    """(variance of the scores, mean of the largest weights, median of ‖dS‖/‖dA‖)"""
    q, k = rng.standard_normal((times, 1, m)), rng.standard_normal((times, keys, m))
    S = scale * (q @ k.swapaxes(1, 2))[:, 0]             # (times, keys)
    A, backward = ops.softmax(S)
    dA = rng.standard_normal(A.shape)
    passed = np.linalg.norm(backward(dA), axis=-1) / np.linalg.norm(dA, axis=-1)
    return S.var(), A.max(-1).mean(), np.median(passed)


sizes = 4, 16, 64, 256, 512
print("\n2. Why √m? 16 keys; expected: without it the scores' variance is m, and the gradient dies away")
print(f"{'':<6}{'variance of scores':^24}{'largest weight':^24}{'gradient, ‖dS‖/‖dA‖':^24}")
print(f"{'m':<6}" + 3 * f"{'without':>12}{'with':>12}")
rows = {"without √m": [], "with √m": []}
for m in sizes:
    plain, scaled = of_attention(m, 1), of_attention(m, m**-0.5)
    rows["without √m"].append(plain)
    rows["with √m"].append(scaled)
    print(f"{m:<6}" + "".join(f"{a:>12.3g}{b:>12.3g}" for a, b in zip(plain, scaled)))
show(lab_08.scaling(sizes, rows), "08_scaling")

# %% [markdown]
# ## 3. Sentence pairs
#
# The masks need sentences, so here they are: the French sentences of a small grammar, with their English. HW3a uses
# sentences that people wrote; the grammar's are simpler, but it has what makes translation more than a dictionary:
# adjectives after the noun, pronouns before the verb, *ne … pas* around it. And each French sentence has exactly one
# translation, so a translation can be counted right or wrong. `mini-tf train --preset translate --pairs FILE` takes a
# file of real pairs.
#
# ### Words
#
# [SOS] is 0 and [EOS] is 1, as in HW3a. A word that is rare in training has no number of its own: it is read as
# [UNK], 2. A target begins with [SOS] and ends with [EOS], so that the model learns to begin and to stop.
#
# ### No sentence on both sides
#
# "Vous mangez" and "tu manges" are both "you are eating". Split at random, such pairs put an English sentence on both
# sides: the test would ask for something that was seen in training. `split_pairs` keeps all pairs that share a sentence
# on one side. **Expect** some test sentences to be known after a random split, and none after ours.

# %%
longest, rate = (7, 8e-3) if QUICK else (10, 6e-3)
preset = replace(TRANSLATION["translate"], longest=longest, words=1000, learning_rate=rate, warm_up=40)
print("\n3. Sentence pairs")
pairs = french_pairs(40_000, seed=0)
bitext = prepare_pairs(pairs, preset, say=print)
for f, e in pairs[:5]:
    print(f"  {f:<60}{e}")

print(f"the first words by number: {', '.join(f'{i} {w}' for i, w in enumerate(bitext.french.words[:9]))}")
words = split_sentence("Je ne vois pas l'aardvark.", "french")
ids = bitext.french.encode(words)
print(f"{' '.join(words)}  →  {ids}  →  {' '.join(bitext.french.decode(ids))}")
unknown = np.mean([word == UNK for ids in bitext.ids(bitext.test)[0] for word in ids])
print(f"words of the test sentences that are [UNK]: {unknown:.2%}")

kept = [(" ".join(f), " ".join(e)) for part in (bitext.train, bitext.validation, bitext.test) for f, e in part]
order = rng.permutation(len(kept))
cut = len(kept) // 10
at_random = [kept[i] for i in order[cut:]], [kept[i] for i in order[:cut]]
print("\nTest sentences that are in the training part, too; expected: none with split_pairs")
print(f"{'':<16}{'pairs':>9}{'French':>9}{'English':>9}")
for name, (train, test) in {"at random": at_random, "split_pairs": split_pairs(kept, 0.1)}.items():
    seen = [set(side) for side in zip(*train)]
    known = [sum(pair[side] in seen[side] for pair in test) for side in (0, 1)]
    print(f"{name:<16}{len(test):>9,}{known[0]:>9,}{known[1]:>9,}")

# %% [markdown]
# ### Batches
#
# A batch is a rectangle: short sentences are filled up with padding, −1, which costs time and teaches nothing.
# `PairBatches` puts sentences of about the same length together. **Expect** several times less padding than in batches
# of the same number of words whose sentences are drawn at random.

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
print(f"\n3. Padding in one round of {len(by_length)} batches; expected: little if sentences are sorted by length")
print(f"sentences at random: {padding_share(mixed):.1%}    by length: {padding_share(by_length):.1%}")

# %% [markdown]
# ## 4. Masks
#
# There are two reasons why a word may not be looked at: it is padding, or it comes later. The second matters in the
# decoder only. All its outputs are trained at once, and without this *look-ahead mask* the output at a word could look
# at the next word, which is the answer.
#
# The slide lets a word attend to "earlier positions". Taken by the letter, the first word would see nothing: it must be
# *itself* and earlier ones, j ≤ i. (The counts below begin with 1, not 0.)
#
# Here is a batch of two sentences, and who may see whom (white: may). Rows are queries, columns are keys. A row of the
# decoder is named by the word that is read there, so the first one is [SOS].

# %%
two = [("je ne vois pas les chats noirs .", "i do not see the black cats ."), ("elle dort .", "she is sleeping .")]
read = [bitext.french.encode(f.split()) for f, _ in two]
written = [bitext.english.encode(e.split()) for _, e in two]
batch = sentence_batch(read, written)
small = {"n": 16, "T": 12, "L": 2, "H": 2, "m": 8, "f": 32, "dropout": 0.0}
model = Translator(len(bitext.french), len(bitext.english), norm="after", **small)
inputs = batch.target[:, :-1]                            # [SOS] and the words; what is predicted is one word later

source_mask = model.encoder.mask(batch.source)           # (B, 1, 1, S)
look_ahead = model.decoder.mask(inputs)                  # (B, 1, U + 1, U + 1)
pictures = {}
for b, (f, e) in enumerate(two):
    S, U = batch.source.shape[1], inputs.shape[1]
    french = [*f.split(), *S * ["–"]][:S]
    english = ["[SOS]", *e.split(), *U * ["–"]][:U]
    pictures[b] = [
        ("encoder: French to French", french, french, np.broadcast_to(source_mask[b, 0], (S, S))),
        ("decoder: English to English", english, english, look_ahead[b, 0]),
        ("across: English to French", english, french, np.broadcast_to(source_mask[b, 0], (U, S))),
    ]
print("\n4. Masks of a batch of two sentences: how many words each word of the decoder may see")
for _, (_, english, _, allowed), _ in pictures.values():
    print("  " + "  ".join(f"{word} {count}" for word, count in zip(english, allowed.sum(1))))
show(lab_08.masks(pictures), "08_masks")

# %% [markdown]
# ### How a mask enters softmax
#
# The slide says that a mask is a matrix of 0s and 1s, "where the 0s represent the positions to mask out". mini_tf's is
# the same with False and True. What it must not be is a factor: exp(0) is 1, so a score that is multiplied by 0 still
# gets its share. Nor may it be a factor on the weights *after* softmax, whose sum would no longer be 1. A masked score
# has to be −∞, so that its exponential is 0.
#
# There is one trap left: a query that may see nothing. With −∞ everywhere softmax is 0/0, NaN. With $-10^9$ in place of
# −∞ it is the mean over all forbidden words. mini_tf gives zeros. **Expect** right weights from −∞, $-10^9$ and mini_tf
# only, and zeros in an empty row from mini_tf and the factor after.

# %%
def plain_softmax(S):
    with np.errstate(invalid="ignore"):
        e = np.exp(S - S.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


scores = np.array([[2.0, 1.0, 0.5, 3.0], [2.0, 1.0, 0.5, 3.0]])
may_see = np.array([[1, 1, 0, 0], [0, 0, 0, 0]])
infinite = np.where(may_see, scores, -np.inf)
with np.errstate(invalid="ignore"):
    ways = {
        "scores × mask, then softmax": plain_softmax(scores * may_see),
        "softmax, then × mask": plain_softmax(scores) * may_see,
        "−10⁹ where the mask is 0": plain_softmax(np.where(may_see, scores, -1e9)),
        "−∞ where the mask is 0": plain_softmax(infinite),
        "mini_tf's masked_softmax": ops.masked_softmax(scores, may_see.astype(bool))[0],
    }
print("\n4. Scores 2, 1, 0.5, 3, of which two are masked, or all; expected: the first two ways are wrong")
print(f"{'':<30}{'mask 1 1 0 0':^31}{'sum':>6}   {'mask 0 0 0 0':^31}")
for name, (one, none) in ways.items():
    some, empty = ("".join(f"{a:>7.3f}" for a in row) for row in (one, none))
    print(f"{name:<30}{some:<31}{one.sum():>6.2f}   {empty}")

# %% [markdown]
# ### Is the future hidden, and is padding?
#
# We change the fifth English word and see which outputs change: **expect** exactly 0 before it. Then we give the model
# the short sentence alone, without the padding that its longer neighbour needs: **expect** nothing but rounding.

# %%
print("\n4. What a word can see; expected: exactly 0 before the changed word")
changed = inputs.copy()
changed[0, 4] = (changed[0, 4] + 1) % len(bitext.english)
difference = np.abs(model.logits(batch.source, changed) - model.logits(batch.source, inputs))[0].max(-1)
before, after = difference[:4].max(), difference[4:].max()
print(f"word 4 changed: outputs 0–3 change by at most {before:.1e}, outputs 4–8 by up to {after:.1e}")
alone = model.logits(padded(read[1:]), np.array([[SOS, *written[1]]]))
together = model.logits(batch.source, inputs)[1:, : alone.shape[1]]
print(f"without padding: outputs change by at most {np.abs(alone - together).max():.1e}")

# %% [markdown]
# ### What happens without the look-ahead mask?
#
# Two small models learn from the same batches, and one of them has no look-ahead mask. **Expect** its training loss to
# fall far below the other's: it finds out that the answer stands one word to the right. *The validation loss falls just
# as much*, because the answers can be seen there, too, so no loss tells you of this mistake. Only the translations do:
# **expect** a BLEU of nearly 0 (Lab 08b explains BLEU; 1 is the best). When the model writes, the next word is not
# there to be copied, and it has learned nothing else.

# %%
steps = 260 if QUICK else 700
options = {"n": 64, "T": 16, "L": 1, "H": 4, "m": 16, "f": 256, "dropout": 0.0, "smoothing": 0.0, "norm": "before"}
c = len(bitext.english)
validation = batches_in_order(*bitext.ids(bitext.validation), preset.words)
tested = bitext.test[:100 if QUICK else 300]
print(f"\n4. Training with and without the look-ahead mask, {steps} steps; expected: a lower loss, and nonsense")
print(f"{'':<24}{'training loss':>15}{'validation loss':>17}{'BLEU':>8}{'all right':>11}")
histories, examples = {}, {}
for name in ("with the mask", "without it"):
    model = Translator(len(bitext.french), c, **options)
    if name == "without it":
        model.decoder.mask = lambda ids, past=0: (ids >= 0)[:, None, None, :]            # all words that are there
    training = translator_training(preset, model, bitext, steps, seed=0)
    with training_progress(steps, preset.words) as on_step:
        history = fit(training, steps, partial(mean_loss, model, validation), steps // 10, watcher=Watcher(on_step))
    found = translations(model, [bitext.french.encode(f) for f, _ in tested])
    found = [bitext.english.decode(hypothesis.words) for hypothesis in found]
    bleu = corpus_bleu(found, [e for _, e in tested]).score
    right = np.mean([mine == e for mine, (_, e) in zip(found, tested)])
    last = history.rows[-1]
    print(f"{name:<24}{last['train_loss']:>15.2f}{last['validation_loss']:>17.2f}{bleu:>8.3f}{right:>11.0%}")
    histories[f"{name}: BLEU {bleu:.2f}"], examples[name] = history.rows, found
show(lab_08.leak(histories), "08_leak")
for k in range(3):
    print(f"French           {' '.join(tested[k][0])}")
    for name, found in examples.items():
        print(f"  {name:<15}{' '.join(found[k])}")

# %% [markdown]
# ## 5. The gradient of the whole
#
# Words, positions, two trunks, three kinds of attention, masks, readout and loss: does it all fit together? We ask the
# checker about every parameter of a small model in float64, with padding in the batch. The loss is a function of no
# argument; its parameters are what we differentiate by. **Expect** PASS for each.

# %%
def tiny_translator(L):
    return Translator(9, 8, n=4, T=6, L=L, H=2, m=2, f=3, norm="after", dropout=0.0, smoothing=0.0, dtype="float64")


def check(model):
    name, budget = "the translator", 10 if QUICK else 60             # entries measured of each parameter
    return gradcheck(lambda: model.loss(batch), params=model.parameters(), name=name, budget=budget)


batch = sentence_batch([np.array([3, 4, 5]), np.array([6, 8])], [np.array([3, 4]), np.array([5, 6, 7])])
report = check(tiny_translator(L=2))
print("\n5. The gradient of the whole model; expected: PASS")
print(report.explain().splitlines()[0])
print(f"{sum(t.verdict == 'PASS' for t in report.tensors)} of {len(report.tensors)} parameters pass, "
      f"{report.judged:,} entries judged, {sum(t.wrong for t in report.tensors)} wrong")  # fmt: skip

# %% [markdown]
# ### Two mistakes
#
# **The encoder hears from the last layer only.** Every layer of the decoder reads the same Z, so dZ is a sum over the
# layers. The `Decoder` below has written = where += belongs. All layers are right by themselves.
#
# **A forgotten value.** Keys and values are both made of Z, so dZ has two terms. This attention forgets the second.
#
# **Expect** both models to be caught, the decoder's own parameters to pass, and those of the encoder to fail. The
# report names the first wrong step on the way back: the innermost function that is wrong by itself.

# %%
class LastLayerOnly(Decoder):
    def __call__(self, ids, z, z_mask=None, rng=None):
        x, enter_backwards = self.enter(ids, rng)
        mask, layer_backwards = self.mask(ids), []
        for layer in self.layers:
            x, layer_backward = layer(x, z, mask, z_mask, rng)
            layer_backwards.append(layer_backward)
        enter_backward = walk_back(enter_backwards)

        def backward(dx):
            dz = 0
            while layer_backwards:
                dx, dz = layer_backwards.pop()(dx)       # should be: dx, dz_layer = …, dz = dz + dz_layer
            enter_backward(dx)
            return dz

        return x, backward


class ForgottenValue(MultiHeadAttention):
    def across(self, x, z, mask=None, memory=None):
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
    about_step, _, _ = report.explain().partition("  The gradients of the whole:")
    lines = [line for line in about_step.splitlines() if not line.lstrip().startswith(("PASS", "later steps"))]
    wrapped = (textwrap.fill(line.lstrip(), 110, initial_indent=line[: -len(line.lstrip())], subsequent_indent=10 * " ")
               for line in lines)  # fmt: skip
    return "\n".join(wrapped)


two_layers, one_layer = tiny_translator(L=2), tiny_translator(L=1)
two_layers.decoder.__class__ = LastLayerOnly
one_layer.decoder.layers[0].cross_attention.__class__ = ForgottenValue
print("\n5. Two mistakes; expected: the step that is wrong, by its name")
for name, wrong in (("LastLayerOnly, two layers", two_layers), ("ForgottenValue, one layer", one_layer)):
    report = check(wrong)
    print(f"\n--- {name}")
    print(what_it_says(report))
    for part in ("encoder", "decoder"):
        verdicts = [t.verdict for t in report.tensors if t.name.startswith(part)]
        print(f"  parameters of the {part}: {verdicts.count('PASS')} pass, {verdicts.count('FAIL')} fail")

# %% [markdown]
# ## What to keep
#
# The numbers are those of the full run.
#
# - The slide's positions and mini_tf's differ by $7 \cdot 10^{-15}$ once sines and cosines are swapped. Their dot
#   product depends on the distance alone.
# - Between two sequences attention has two gradients, and dz has a term from the keys and one from the values.
# - With heads of size 512 and without $\sqrt{m}$, 0.0001 of the gradient passes through softmax; with it, 0.07, as for
#   any size.
# - A mask is −∞ before softmax, not 0. Without the look-ahead mask the validation loss is 0.01 in place of 0.11, and
#   the BLEU 0.000 in place of 0.901. A loss that is too good to be true should make you look at what the model can see.
# - All 62 parameters of a translator pass the check; each of two mistakes is found by name, and though the decoder's
#   own gradients are right, all of the encoder's are wrong.
#
# **Try:** `norm="before"` for the small models; another wrong backward of your own; a mask that lets each word see
# itself and *one* later word.
