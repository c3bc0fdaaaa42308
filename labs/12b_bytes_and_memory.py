# %% [markdown]
# # Lab 12b: bytes and memory
#
# - **Goals:** cut texts by byte-pair encoding, compare models with different tokens, count what a KV cache saves and
#   costs, and fine-tune a model by LoRA, with its gradients.
# - **Before it:** Lab 12; the rank of a matrix. **Work:** about 4 hours.
# - **Hand in:** `count_pairs`, `merge_pair`, `read_one`, `lora.backward`; an experiment from “Try”.
#
# Sources: Sennrich, Haddow, Birch 2016, [arXiv:1508.07909](https://arxiv.org/abs/1508.07909) (byte-pair encoding);
# Radford et al. 2019, GPT-2 (of bytes); Ainslie et al. 2023, [arXiv:2305.13245](https://arxiv.org/abs/2305.13245)
# (grouped heads); Hu et al. 2021, [arXiv:2106.09685](https://arxiv.org/abs/2106.09685) (LoRA).
#
# Lab 12 built the layer of today's language models. Three inventions around it make these models practical.
#
# Letters: **c** pieces of the vocabulary, **T** tokens, **L** layers, **H** heads of queries, **G** heads of keys and
# values, **m** size of a head, **n** size of a token's vector, **r** rank of a LoRA. It runs in one to two minutes on
# two CPU cores, half a minute with `--quick`.

# %%
import timeit
from collections import Counter
from functools import partial
from itertools import pairwise

from _common import quick_mode, show, table
from _drawing import lab_12b
from _expect import about, above, at_most, below, expect
from mini_tf import ops
from mini_tf.data import movie_reviews, shakespeare
from mini_tf.gradcheck import gradcheck
from mini_tf.layers import Linear, LoRA
from mini_tf.metrics import mean_of, unigram_cross_entropy
from mini_tf.models import Llama
from mini_tf.models.reading import CachedReader, WindowReader
from mini_tf.text.byte_pairs import CHARACTER, CHUNK, BytePairVocabulary
from mini_tf.training import Adam, RandomWindows, Schedule, Training, fit
from mini_tf.training.language import tokenized

import numpy as np

QUICK = quick_mode("Lab 12b: byte-pair encoding, the KV cache, LoRA")
rng = np.random.default_rng(12)

# %% [markdown]
# ## 1. Byte-pair encoding
#
# Words make short texts, but every new word is unknown. Single bytes know everything, but make long texts. Byte-pair
# encoding is between the two. At first every byte is a piece. Then count all pairs of neighbours, make a new piece of
# the most frequent one, and repeat until there are as many pieces as you want.
#
# Pairs are counted within a chunk only, a word with the space before it; the space is written Ġ. Which pair is merged
# first in the text below, and how will *smother*, which is not in it, be cut in the end?

# %%
TINY = "this mother and that mother and the other brother, another and yet another"


def count_pairs(chunks):
    """{pair of neighbours: how often it occurs}, of {chunk, a tuple of pieces: how often it occurs}"""
    pairs = Counter()
    for pieces, times in chunks.items():
        for pair in pairwise(pieces):
            pairs[pair] += times
    return pairs


def merge_pair(pieces, pair):
    """The pieces of a chunk, a tuple, with every occurrence of the pair, from left to right, as one piece"""
    merged = []
    for piece in pieces:
        if merged and (merged[-1], piece) == pair:
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)

# %%
chunks = Counter(tuple(chunk.replace(" ", "Ġ")) for chunk in CHUNK.findall(TINY))
known, merges, rows = list(CHARACTER.values()), [], []
for _ in range(7):
    counts = count_pairs(chunks)
    pair = min(counts, key=lambda pair: (-counts[pair], *map(known.index, pair)))    # of equals, that of older pieces
    chunks = {merge_pair(pieces, pair): times for pieces, times in chunks.items()}
    merges.append(pair)
    known.append("".join(pair))
    rows.append((len(merges), "·".join(pair), counts[pair], sum(len(pieces) * chunks[pieces] for pieces in chunks)))
table(("merge", "pair", "times", "pieces of the text"), rows, title=f"1. {TINY}: {len(TINY)} bytes")

cut = tuple(" smother".replace(" ", "Ġ"))
for pair in merges:                                      # in the order in which they were learned
    cut = merge_pair(cut, pair)
vocabulary = BytePairVocabulary.learn(TINY, 256 + len(merges))
print(f"\n  “ smother” is cut into {' · '.join(cut)}")
expect("the merges that mini_tf learns are the same", True, merges == list(vocabulary.ranks))
expect("the pieces, too", True, list(cut) == vocabulary.split(" smother"))
strange = "Ωmega 🙂 smöther"
expect("unknown pieces in “Ωmega 🙂 smöther”", 0, len(vocabulary.unknown(vocabulary.split(strange))))
expect("… and it comes back whole", True, vocabulary.join(vocabulary.split(strange)) == strange)

# %% [markdown]
# All 256 bytes stay pieces, so whatever can be written in UTF-8 can be cut, if need be byte by byte.
#
# ### Shakespeare
#
# Pieces are learned from the first nine tenths and applied to the last. The text gets shorter with every doubling of
# the vocabulary; **expect** each doubling to save less than the one before it. How many of the last tenth's words never
# occur before it?

# %%
text = shakespeare()
train_text, test_text = text[: int(0.9 * len(text))], text[int(0.9 * len(text)) :]
SIZES = (256, 512, 1024, 2048) if QUICK else (256, 512, 1024, 2048, 4096, 8192)
merges = list(BytePairVocabulary.learn(train_text, SIZES[-1]).ranks)
LINE = "Full fathom five thy father lies;"
per_character, cuts = {}, []
for size in SIZES:
    vocabulary = BytePairVocabulary(merges[: size - 256])          # the first merges of a large one are a small one
    per_character[size] = len(vocabulary.split(test_text)) / len(test_text)
    cuts.append((size, per_character[size], "|".join(vocabulary.split(LINE))))
table(("pieces", "per character", "a line"), cuts, ("{:.3f}", "{}"), title="Shakespeare's last tenth")
saved = [before - after for before, after in pairwise(per_character.values())]
expect("pieces per character, 512 pieces", about(0.533, within=0.005), per_character[512], form="{:.3f}")
expect("each doubling saves less than the one before", True, saved == sorted(saved, reverse=True))
_, ids, (_, _, test) = tokenized(text, 1)
unknown = 1 - np.isin(test[1:], ids[: 1 - len(test)]).mean()
expect("words of the last tenth that were not there before", about(0.043, within=0.001), unknown, form="{:.1%}")

# %% [markdown]
# ### Losses of different tokens
#
# A model over pieces chooses among 512, one over words among 14,000, but less often: their losses in nats per token
# cannot be compared. But each gives the whole test text a probability, the product over its tokens, and −ln of that,
# divided by the number of characters, can.
#
# The simplest model shows it: a token's probability is its share of the training text, whatever came before. Which
# tokenizer has the lowest loss per token, and which per character?

# %%
rows = {}
for name in ("characters", "bpe:512", "bpe:2048", "words"):
    vocabulary, ids, (train, _, test) = tokenized(text, 1, name)
    per_token = unigram_cross_entropy(train, test[1:], len(vocabulary))
    tokens = (len(test) - 1) / len(vocabulary.decode(test[1:]))
    rows[name] = len(vocabulary), per_token, tokens, per_token * tokens
table(("tokens", "different", "nats per token", "tokens per character", "nats per character"), rows,
      ("{:,}", "{:.3f}", "{:.3f}", "{:.3f}"), title="Each token by its frequency alone")  # fmt: skip
by_token, by_character = (sorted(rows, key=lambda name: rows[name][column]) for column in (1, 3))
expect("lowest loss per token", "characters", by_token[0])
expect("per character", "words bpe:2048 bpe:512 characters", " ".join(by_character))

# %% [markdown]
# Trained models have the same order: `mini-tf train --tokenizer …`, the default preset, on the same text, gives
#
# | tokenizer | words | characters | bpe:512 | bpe:2048 |
# | --- | ---: | ---: | ---: | ---: |
# | nats per character | 1.477 | 2.237 | 1.962 | 1.860 |
#
# on its last tenth. Words have an unfair advantage: their vocabulary is that of the whole text, the test's words
# included. Pieces are learned from the training text alone.
#
# ## 2. The KV cache
#
# A model writes one token, appends it, and reads the text again. But in a causal model a token's keys and values do not
# change when tokens are appended. So keep them, and compute only what is new: one query, one key, one value. The new
# query meets all keys and values; the old queries are no longer needed.

# %%
def read_one(x, keys, values, Wq, Wk, Wv):
    """One head reads one more token:   x (n,), keys and values of those before it (t, m), Wq, Wk, Wv (n, m)

    → y (m,), and the keys and values with the new token's (t + 1, m)
    """
    keys, values = np.vstack([keys, x @ Wk]), np.vstack([values, x @ Wv])
    A, _ = ops.softmax(keys @ (x @ Wq) / np.sqrt(Wq.shape[1]))       # (t + 1,)
    return A @ values, keys, values


X = rng.standard_normal((10, 8))                         # (T, n)
Wq, Wk, Wv = rng.standard_normal((3, 8, 4))              # (n, m) each
whole, *_ = ops.attention(X @ Wq, X @ Wk, X @ Wv, np.tri(10, dtype=bool), 4**-0.5)
keys, values, one_by_one = np.zeros((0, 4)), np.zeros((0, 4)), []
for x in X:
    y, keys, values = read_one(x, keys, values, Wq, Wk, Wv)
    one_by_one.append(y)
print("\n2. The KV cache")
expect("one by one − all at once, the largest", at_most(1e-13), abs(one_by_one - whole).max(), form="{:.0e}")

# %% [markdown]
# Now a whole Llama with 3.3 million random weights. `WindowReader` reads everything again for each token,
# `CachedReader` keeps keys and values. How many times faster is the cache after 1,024 tokens: 10, 100, 1,000 times?

# %%
L, H, m, n = 4, 8, 32, 256
LENGTHS = (16, 64, 256) if QUICK else (16, 64, 256, 1024)
T = 2 * LENGTHS[-1]
ids = rng.integers(512, size=T)


def random_llama(G):
    embeddings = rng.standard_normal((512, n)).astype(np.float32) / 16
    model = Llama(embeddings, T=T, L=L, H=H, G=G, m=m, f=688)
    for parameter in model.parameters().values():        # a new Llama's layers add 0: their last products start at 0
        parameter.data += rng.standard_normal(parameter.data.shape, dtype=np.float32) / 16
    return model


def milliseconds(f, *arguments, runs):
    """f(*arguments), the fastest of some runs"""
    return 1e3 * min(timeit.repeat(lambda: f(*arguments), number=1, repeat=runs))


model, rows, off = random_llama(H), {}, []
for length in LENGTHS:
    cached, window = CachedReader(model), WindowReader(model)
    window.read(ids[: length - 1])
    cached.read(ids[: length - 1])
    off.append(abs(window.read(ids[length - 1 : length]) - cached.read(ids[length - 1 : length])).max())
    again, kept = milliseconds(model.logits, ids[None, :length], runs=5), milliseconds(cached.read, ids[:1], runs=9)
    rows[length] = again, kept, again / kept
table(("tokens so far", "read again, ms", "cache, ms", "times faster"), rows, ("{:.1f}", "{:.2f}", "{:.0f}"))
expect("scores with and without cache, largest difference", at_most(1e-4), max(off), form="{:.0e}")
expect(f"times faster after {length:,} tokens", above(50), rows[length][-1], quick=None, form="{:.0f}")

# %% [markdown]
# Not 1,000 times: a single token, too, needs all 3.3 million weights from memory, where a thousand tokens share the
# trip. And with the text grows what is left: the new query meets all keys.
#
# The cache has its price, too. For each layer, head and token there are a key and a value of m numbers, 4 bytes each:
#
# $$
# \text{bytes} = 2 \cdot L \cdot G \cdot m \cdot T \cdot 4
# $$
#
# **Grouped heads** (Lab 12) let H/G heads of queries share one of keys and values: the cache shrinks by that factor.

# %%
memory = {}
for G in (8, 4, 2, 1):
    reader = CachedReader(random_llama(G))
    reader.read(ids[:1])                                 # room for all T tokens is made at once
    memory[G] = sum(cache.key.nbytes + cache.value.nbytes for cache in reader.cache)
    expect(f"bytes of the cache, G = {G}", 2 * L * G * m * T * 4, memory[G])
show(lab_12b.cache(rows, {G: size / T for G, size in memory.items()}), "12b_cache")

# %% [markdown]
# In a large model this decides how many texts fit beside the weights. With 2 bytes per number, Llama 2 7B (L = 32,
# G = H = 32, m = 128) needs 2.1 GB for a text of T = 4,096; Llama 3 8B, with G = 8 of 32, 0.5 GB.
#
# ## 3. LoRA
#
# Fine-tuning all weights takes three more numbers for each: its gradient and Adam's two running means. LoRA leaves W as
# it is and learns a change of rank r, a product of two thin matrices:
#
# $$
# y = x \cdot W + x \cdot A \cdot B, \qquad A\ (\text{in} \times r), \quad B\ (r \times \text{out})
# $$
#
# With $h = x \cdot A$ it is two linear layers, so
#
# $$
# dB = h^\top dy, \qquad dh = dy \cdot B^\top, \qquad dA = x^\top dh, \qquad dx = dy \cdot W^\top + dh \cdot A^\top
# $$
#
# B starts at 0, so that the model begins as what it was. What are dA and dB at the first step? And why may A not start
# at 0 as well?

# %%
def lora(x, A, B, W):
    """y = x·W + x·A·B, W fixed:   x (B, in), A (in, r), B (r, out), W (in, out)  →  y (B, out)"""
    h = x @ A

    def backward(dy):
        dh = dy @ B.T
        return dy @ W.T + dh @ A.T, x.T @ dh, h.T @ dy

    return x @ W + h @ B, backward


x, W, A, B = (rng.standard_normal(shape) for shape in ((5, 6), (6, 4), (6, 2), (2, 4)))
report = gradcheck(partial(lora, W=W), x, A, B, name="lora")
print(f"\n3. LoRA\n{report}")
expect("gradcheck finds the gradients right", True, bool(report))
linear = Linear(6, 4, rng, bias=False, dtype=np.float64)
layer, dy = LoRA(linear, 2, rng), rng.standard_normal((5, 4))
layer(x)[1](dy)
_, dA, dB = lora(x, layer.A.data, layer.B.data, linear.W.data)[1](dy)
expect("difference from layers.LoRA", at_most(1e-14), max(abs(dA - layer.A.grad).max(), abs(dB - layer.B.grad).max()))
expect("first step: the largest |dA|, as B is 0", 0, abs(dA).max())
expect("first step: the largest |dB|", above(0.1), abs(dB).max(), form="{:.2f}")

# %% [markdown]
# With A = B = 0 both gradients would stay 0.
#
# ### From Shakespeare to film reviews
#
# A tiny Llama learns 512 pieces and Shakespeare, and is then fine-tuned on 1,000 sentences of film reviews: all of its
# weights; LoRA of ranks 8 and 2 in each product of the layers; for comparison, a new model learns from random weights.

# %%
T, BATCH = 64, 16
STEPS = {"before": 120, "after": 60} if QUICK else {"before": 1200, "after": 300}


def train(model, ids, steps, rate, measures):
    """Train by Adam. Returns the Training, and the measures of the model at seven times, the first before training."""
    adam, schedule = Adam(rate, (0.9, 0.99)), Schedule(steps // 10, steps)
    training = Training(model, RandomWindows(ids, T, BATCH, apart=T), adam, schedule, clip=1.0)
    rows = [[measure(model) for measure in measures]]

    def validate():
        rows.append([measure(model) for measure in measures])
        return rows[-1][0]

    fit(training, steps, validate, every=steps // 6)
    return training, np.array(rows)


def adapted(model, r):
    """A copy of a Llama in which LoRAs of rank r are learned; r = 0: all weights"""
    copy = Llama(model.trunk.embedding.table.data, **model.config | {"lora": r})
    for name, parameter in model.parameters().items():
        copy.parameters()[name].data = parameter.data.copy()
    return copy

# %%
sentences = [sentence for sentence, _ in movie_reviews()[::5]]
reviews, new_text = "\n".join(sentences[:1000]), "\n".join(sentences[1000:])
vocabulary = BytePairVocabulary(merges[:256])
old, old_test, new, new_test = (vocabulary.encode(vocabulary.split(each)) for each in
                                (train_text, test_text[:30_000], reviews, new_text[:30_000]))  # fmt: skip
measures = [lambda model, ids=ids: mean_of(model.window_loss_parts(ids)) for ids in (new_test, old_test)]


def new_llama():
    embeddings = np.random.default_rng(0).standard_normal((512, 64)).astype(np.float32) / 8
    return Llama(embeddings, T=T, L=3, H=4, G=2, m=16, f=172)


begun = new_llama()
training, _ = train(begun, old, STEPS["before"], 3e-3, measures[::-1])
print(f"  trained on Shakespeare in {training.seconds:.0f} s")

# %% [markdown]
# Guess: how near does LoRA come to all weights, is it faster, and which model forgets Shakespeare least? (LoRA gets a
# higher learning rate: A·B starts at 0, and steps of two small matrices make smaller ones of their product.)

# %%
KINDS = {"all weights": (begun, 0, 2e-3), "LoRA, r = 8": (begun, 8, 1e-2), "LoRA, r = 2": (begun, 2, 1e-2),
         "from random weights": (new_llama(), 0, 3e-3)}  # fmt: skip
per_character = np.array([len(ids) / len(vocabulary.decode(ids)) for ids in (new_test, old_test)])
losses, trainings, rows = {}, {}, {}
for name, (start, r, rate) in KINDS.items():
    model = adapted(start, r)
    trainings[name], measured = train(model, new, STEPS["after"], rate, measures)
    losses[name] = measured * per_character
steps = np.min([[milliseconds(each.one_step, runs=1) for each in trainings.values()] for _ in range(30)], axis=0)
for (name, training), step in zip(trainings.items(), steps):
    learned = sum(p.data.size for p in training.parameters.values() if p.trainable)
    means = [array for arrays in training.optimizer.memory.values() for array in arrays.values() if np.ndim(array)]
    rows[name] = learned, sum(array.nbytes for array in means) / 1024, step, *losses[name][-1]
table(("fine-tuned", "numbers learned", "Adam's KiB", "ms per step", "reviews", "Shakespeare"), rows,
      ("{:,}", "{:,.0f}", "{:.1f}", "{:.3f}", "{:.3f}"), title="Nats per character after fine-tuning")  # fmt: skip
(new_before, old_before), full, r8, r2, scratch = losses["all weights"][0], *(each[-1] for each in losses.values())
print(f"  before: reviews {new_before:.3f}, Shakespeare {old_before:.3f}")
show(lab_12b.fine_tuning(np.linspace(0, STEPS["after"], 7), losses, old_before), "12b_fine_tuning")
numbers, memory, time, *_ = np.divide(rows["LoRA, r = 2"], rows["all weights"])
expect("numbers, LoRA, r = 2 / all weights", about(0.041, within=0.001), numbers, form="{:.3f}")
expect("Adam's memory, the same", about(0.041, within=0.001), memory, form="{:.3f}")
expect("time of a step, the same", above(0.5), time, quick=None, form="{:.2f}")
expect("share of the gain, LoRA, r = 8", above(0.7), (new_before - r8[0]) / (new_before - full[0]), quick=None)
expect("share of the gain, LoRA, r = 2", above(0.5), (new_before - r2[0]) / (new_before - full[0]), quick=None)
expect("forgotten: r = 2 / all weights", below(0.8), (r2[1] - old_before) / (full[1] - old_before), quick=None)
expect("random weights − LoRA, r = 8, on reviews", above(0), scratch[0] - r8[0], quick=None, form="{:.3f}")

# %% [markdown]
# LoRA learns less and forgets less, as Biderman et al. found for large models
# ([arXiv:2405.09673](https://arxiv.org/abs/2405.09673)). It is not faster here: the gradient still goes through every
# layer. What it saves is memory, Adam's above all, and a fine-tuned copy of the model is a small file. For this tiny
# model rank 2 is too little: in as many steps, random weights learn as much.
#
# The same with a real pretrained model, stories260K (from where: `labs/pretrained.md`), from children's stories to
# Shakespeare: nats per character, 3.143 before, after 600 steps of
# `mini-tf train --preset llama --from stories260K.bin --tokenizer tok512.bin --seed 0`, a minute or two:
#
# | learned | numbers | seed 0 | seed 1 | seed 2 |
# | --- | ---: | ---: | ---: | ---: |
# | all weights | 260,032 | 1.734 | 1.738 | 1.722 |
# | `--set lora=8 --set learning_rate=1e-2` | 46,240 | 1.803 | 1.819 | 1.833 |
# | `--set lora=2 --set learning_rate=1e-2` | 11,560 | 1.884 | 1.881 | 1.868 |
#
# (Rank 8, seed 0, with the preset's own rate, 2e-3: 1.843; with 5e-3: 1.830.)
#
# ## What to remember
#
# - Byte-pair encoding merges the most frequent pair, again and again. Bytes stay pieces, so no text has unknown ones.
# - Compare losses of different tokens in nats per character.
# - With a KV cache each token is read once. It costs 2·L·G·m numbers per token; grouped heads divide that by H/G.
# - LoRA fixes W and learns A·B of low rank, with B = 0 at first: less memory, but not less time.
#
# **Try:** cut another language with Shakespeare's pieces: how many per character? LoRA of ranks 1 and 32.
