# %% [markdown]
# # Lab 02: words as vectors, and the fixed-window model
#
# Sources: UMass CS685 (2020), lecture 2, "Neural language models"; USC CSCI 567, lecture 8 (fixed-window models);
# Bengio, Ducharme, Vincent, Jauvin 2003, "A neural probabilistic language model", JMLR 3.
#
# The n-gram models of Lab 01 count. The model of this lab learns: it turns the last T words into vectors, puts the
# vectors together, and computes a probability for every word of the vocabulary. You will
#
# - see why one-hot vectors cannot tell that two words are alike, and why nobody multiplies by them,
# - compute a softmax layer by hand, and its gradient, which is the probabilities minus the answer,
# - put vectors together by sum, mean and concatenation, and see who loses the order of the words,
# - walk forward and backward through Bengio's model, one op after the other, and hold the gradients against two judges,
# - train it on Shakespeare, against the bar that counting sets, and look at what its vectors know.
#
# It takes about four minutes on one quiet CPU core, a third of a minute with `--quick`. On a machine that has other
# work, set OPENBLAS_NUM_THREADS=1.
#
# Letters: **B** batch, **T** words in the window, **n** size of a word vector, **k** hidden units, **c** words in the
# vocabulary. All losses are cross-entropies in nats per word. In mini_tf a word is a row, and a layer is y = x·W; the
# lecture writes columns and W·x. Its matrices are ours, transposed.

# %%
import time
from functools import partial
from itertools import repeat

from _common import quick_mode, show
from mini_tf import ops
from mini_tf.decoding import continuations, generate, sample
from mini_tf.gradcheck import gradcheck
from mini_tf.metrics import log_softmax_at, perplexity, uniform_cross_entropy
from mini_tf.models import FixedWindowModel, NGramModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import SGD, Adam, fit, random_windows, split_words, windows_ending_at

import numpy as np
from matplotlib.figure import Figure

QUICK = quick_mode("Lab 02: one-hot vectors, softmax layer, compositions, the fixed-window model")
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"    # for all kinds of eyes


def words_of(vocabulary, ids):
    """Words as they can be printed in one line: the line break is a word too."""
    return " ".join("/" if vocabulary.words[i] == "\n" else vocabulary.words[i] for i in ids)


# %% [markdown]
# ## 1. One-hot vectors
#
# Word i of c words is the vector o_i of c numbers: a 1 in place i, zeros elsewhere. The lecture's vocabulary has six
# words: I, hate, love, the, movie, film. A phrase is the sum of its words' vectors, a **bag of words**.
#
# Dot products measure likeness: o_i · o_j = 1 if i = j, else 0.
#
# **Expect** the identity matrix. "movie" is as far from "film" as from "hate". And a bag has no order.

# %%
six = Vocabulary("I hate love the movie film".split())
O = np.eye(6)                                            # (6, 6), a row for each word
bag = O[six.encode("the movie film".split())].sum(0)     # (6,)

print("1. One-hot vectors")
for word in ("hate", "movie", "film"):
    print(f"  {word:<6} {O[six.index[word]].astype(int)}")
print(f"  bag of 'the movie film' {bag.astype(int)},  of 'film the movie' "
      f"{O[six.encode('film the movie'.split())].sum(0).astype(int)}")
print(f"  movie · film   expected 0   measured {O[4] @ O[5]:.0f}")
print(f"  movie · hate   expected 0   measured {O[4] @ O[1]:.0f}")
print(f"  distance of any two: √2 = {np.sqrt(2):.3f}   measured {np.linalg.norm(O[4] - O[5]):.3f}")

# %% [markdown]
# An **embedding** gives each word n numbers that are learned, and n is much smaller than c. Here is the smallest
# training that shows what for. Four sentences, in which "movie" and "film" stand in the same places, and so do "love"
# and "hate". A model with n = 3 reads three words and predicts the next. (It is the model of section 4; read on
# without it for now.) Its vectors start at random, and small, so that what they learn outweighs what they start from.
#
# **Expect** cosines near 1 for movie–film and love–hate afterwards. Nobody told the model that they are alike: where
# they stood, the gradients pushed them the same way.

# %%
toy = six.encode([word for verb in ("love", "hate") for noun in ("movie", "film") for word in ("I", verb, "the", noun)])
toy = np.concatenate([toy.reshape(4, 4)[order].ravel() for order in np.random.default_rng(0).permuted(
    np.tile(np.arange(4), (60, 1)), axis=1)])            # sixty times the four sentences, in random order


def cosines(vectors):
    directions = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return directions @ directions.T


toy_model = FixedWindowModel(0.1 * np.random.default_rng(2).standard_normal((6, 3)), T=3, k=8)
cosines_before = cosines(toy_model.embedding.table.data)
fit(toy_model, random_windows(toy, 3, 64, np.random.default_rng(0)), Adam(0.02), steps=300, validate=lambda: 0.0,
    every=300)                                           # nothing to validate: the last parameters are kept
cosines_after = cosines(toy_model.embedding.table.data)
print("\n  cosine              one-hot   random vectors   after training")
for a, b in (("movie", "film"), ("love", "hate"), ("movie", "love"), ("I", "the")):
    i, j = six.index[a], six.index[b]
    print(f"  {a + ' – ' + b:<18}{O[i] @ O[j]:>9.2f}{cosines_before[i, j]:>17.2f}{cosines_after[i, j]:>17.2f}")

figure = Figure(figsize=(11, 3.9), layout="constrained")
figure.suptitle("How alike are two words?")
for axes, (title, matrix) in zip(figure.subplots(1, 3), (
    ("one-hot: all equally unlike", O @ O.T), ("random vectors, n = 3: by chance", cosines_before),
    ("trained vectors: by their company", cosines_after),
)):  # fmt: skip
    image = axes.imshow(matrix, cmap="PuOr_r", vmin=-1, vmax=1)
    for (i, j), value in np.ndenumerate(matrix):
        axes.text(j, i, f"{value:.1f}".replace("-0.0", "0.0"), ha="center", va="center", fontsize=9,
                  color="white" if abs(value) > 0.7 else "black")
    axes.set_xticks(range(6), six.words, rotation=45)
    axes.set_yticks(range(6), six.words)
    axes.set_title(title, fontsize=11)
figure.colorbar(image, ax=figure.axes, label="cosine of the angle")
show(figure, "02_one_hot")

# %% [markdown]
# ### A one-hot row times the table is a row of the table
#
#     x = o_i · E = row i of E,      E (c, n);      dE = o_iᵀ · dx: dx goes to row i, all other rows get 0
#
# So "look up row i" *is* a linear layer on one-hot vectors, with the multiplications by zero left out. The gradient
# is the same too. If a word stands twice in a batch, its row gets the sum of both gradients.
#
# Now the corpus of the labs, to see what it costs at full size.
#
# **Expect** no difference in the values, differences of rounding size in the gradients, and a factor of about a hundred
# or more in time. (`ops.linear` also computes the gradient of the one-hot vectors, which nobody needs; the factor would
# be large without it.) Times are the best of three.

# %%
vocabulary = Vocabulary(tokenize(shakespeare("lab")))
ids = vocabulary.encode(tokenize(shakespeare("lab")))    # (words,)
c, n = len(vocabulary), 64
rng = np.random.default_rng(0)
table = (0.3 * rng.standard_normal((c, n))).astype(np.float32)
some = ids[: 256 if QUICK else 1024]                     # (B,)
dx = rng.standard_normal((len(some), n)).astype(np.float32)



def as_one_hot():
    """(x, dE) by a product with one-hot rows"""
    one_hot = np.zeros((len(some), c), np.float32)       # (B, c)
    one_hot[np.arange(len(some)), some] = 1
    x, backward = ops.linear(one_hot, table)
    return x, backward(dx)[1]


def as_index():
    """(x, dE) by looking rows up"""
    x, backward = ops.embedding(table, some)
    return x, backward(dx)[0]


def best_of_three(function):
    """(result, seconds)"""
    seconds = []
    for _ in range(3):
        clock = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - clock)
    return result, min(seconds)


(by_product, dtable_product), product_seconds = best_of_three(as_one_hot)
(by_lookup, dtable_lookup), lookup_seconds = best_of_three(as_index)
one_hot_bytes = len(some) * c * 4
print(f"\n  {len(ids):,} words, c = {c:,} different; {len(some)} of them, n = {n}")
print(f"  largest difference of the values      expected 0   measured {abs(by_product - by_lookup).max():.1e}")
print(f"  largest difference of the gradients   expected 0   measured {abs(dtable_product - dtable_lookup).max():.1e}")
print(f"  rows of dE that are not zero          expected {len(np.unique(some))}   "
      f"measured {np.count_nonzero(dtable_lookup.any(1))}")
print(f"  {'':<24}{'milliseconds':>14}{'input, megabytes':>18}")
print(f"  {'one-hot, ops.linear':<24}{product_seconds * 1e3:>14.2f}{one_hot_bytes / 1e6:>18.3f}")
print(f"  {'index, ops.embedding':<24}{lookup_seconds * 1e3:>14.2f}{some.nbytes / 1e6:>18.3f}")
print(f"  {'factor':<24}{product_seconds / lookup_seconds:>14,.0f}{one_hot_bytes / some.nbytes:>18,.0f}")

# %% [markdown]
# ## 2. The softmax layer
#
# From a vector x of the history to a probability for each word:
#
#     z = W·x                     a score for each word: the dot product of x with the word's row of W
#     p_i = exp(z_i) / Σ_j exp(z_j)
#
# The lecture's example: three numbers stand for the history "students opened their", and four words may follow. Of W
# the recording gives the first row (1.2, −0.3, 0.9), the first column (1.2, 0.2, 8.9, 4.5), and the scores 1.8, −11.9
# and 12.9. The other six numbers are our choice, made so that these scores come out.
#
# **Expect** 1.2·(−2.3) − 0.3·0.9 + 0.9·5.4 ≈ 1.8 for "books". Scores may be negative, and do not add up to 1.

# %%
x = np.array([-2.3, 0.9, 5.4])                           # (3,)
W = np.array([[1.2, -0.3, 0.9], [0.2, 0.5, -2.2], [8.9, -1.9, 6.5], [4.5, 2.2, -0.1]])      # (4, 3), as in the lecture
FOUR = ("books", "houses", "lamps", "stamps")

print("\n2. The softmax layer")
z, _ = ops.linear(x, W.T)                                # (4,); mini_tf's weights are (in, out)
for word, row, score in zip(FOUR, W, z):
    terms = "  ".join(f"{weight * entry:+7.2f}" for weight, entry in zip(row, x))
    print(f"  {word:<7}{terms}   sum {score:7.2f}")

# %% [markdown]
# The exponential makes every number positive and keeps the order; the division makes them add up to 1.
#
# With scores as far apart as 13 and −12 one word takes all: softmax looks at *differences* of scores, and a
# difference of 11 is a factor of e¹¹ = 60,000. So the lecture goes on with tamer ones, 1.8, −1.9, 2.9, −0.9. It reads
# the result as 0.24, 0.0006, 0.73 and 0.02, and calls the third word once "stamps" and once "lamps".
#
# **Expect** 0.24, 0.006, 0.73, 0.016: the second number has a zero too many in the recording (with 0.0006 the four
# would not add up to 1), and the third row is "lamps".

# %%
z_tame = np.array([1.8, -1.9, 2.9, -0.9])
print(f"  softmax of the scores above: {'  '.join(f'{p:.1e}' for p in ops.softmax(z)[0])}\n")
e = np.exp(z_tame)                                       # step 1
p = e / e.sum()                                          # step 2
print(f"  {'word':<8}{'z':>7}{'exp(z)':>9}{'p':>10}")
for row in zip(FOUR, z_tame, e, p):
    print("  {:<8}{:>7.1f}{:>9.3f}{:>10.5f}".format(*row))
print(f"  {'sum':<8}{z_tame.sum():>7.1f}{e.sum():>9.3f}{p.sum():>10.5f}")
print(f"  ops.softmax differs by at most {abs(ops.softmax(z_tame)[0] - p).max():.0e}")
print(f"  all scores larger by 1000: exp would overflow; ops.softmax says "
      f"{'  '.join(f'{q:.3f}' for q in ops.softmax(z_tame + 1000)[0])}")

# %% [markdown]
# ### Its gradient is p − y
#
# The loss is −ln of the probability of the word that came, y. By hand:
#
#     L = −ln p_y = ln Σ_j exp(z_j) − z_y
#     ∂L/∂z_i = exp(z_i) / Σ_j exp(z_j) − 1(i = y) = p_i − 1(i = y)
#
# In words: what the model said, minus what was right. The gradient is 0 only if the right word has all of the
# probability, and its entries always add up to 0: a word can gain only what others lose.
#
# **Expect** p with 1 taken off at "books", and the same from `ops.cross_entropy`. `gradcheck` knows neither formula: it
# moves each z_i a little and measures the loss.

# %%
y = np.eye(4)[0]                                         # "books" came, one-hot
by_hand = p - y
loss, loss_backward = ops.cross_entropy(z_tame[None], np.array([0]))     # a batch of one row
dz = loss_backward()[0][0]                               # (4,)
print(f"\n  loss −ln p(books) = {loss:.3f} nats")
print(f"  by hand, p − y      {by_hand}   sum {by_hand.sum():+.0e}")
print(f"  ops.cross_entropy   {dz}")
report = gradcheck(ops.cross_entropy, z_tame[None], np.array([0]))
assert report
print(f"  {report}")

# %% [markdown]
# From z on it is the linear layer's backward: ∂L/∂W = (p − y)·xᵀ. Word i's row of W moves along x, by p_i too little
# or too much. The lecture ends this example with the question how W could be changed so that "books" gets more. So:
#
#     W ← W − α·(p − y)·xᵀ
#
# **Expect** p(books) to grow from step to step. (We start from a W that gives the tame scores: W scaled row by row.)

# %%
W_tame = W * (z_tame / z)[:, None]                       # its scores are 1.8, −1.9, 2.9, −0.9
print("\n  steps down the gradient, α = 0.01\n  step" + "".join(f"{word:>9}" for word in FOUR) + "   loss, nats")
for step in range(6):
    scores, linear_backward = ops.linear(x[None], W_tame.T)
    loss, loss_backward = ops.cross_entropy(scores, np.array([0]))
    probabilities = ops.softmax(scores)[0][0]
    print(f"  {step:>4}" + "".join(f"{q:>9.4f}" for q in probabilities) + f"{loss:>13.3f}")
    dscores, _ = loss_backward()
    _, dW = linear_backward(dscores)                     # (3, 4)
    if step == 0:
        np.testing.assert_allclose(dW.T, np.outer(by_hand, x))           # (p − y)·xᵀ
    W_tame = W_tame - 0.01 * dW.T

figure = Figure(figsize=(11, 3.4), layout="constrained")
figure.suptitle("A softmax layer, from scores to a gradient; “books” is the right word")
for axes, (title, values) in zip(figure.subplots(1, 4), (
    ("scores z", z_tame), ("exp(z)", e), ("probabilities p", p), ("gradient p − y", by_hand),
)):  # fmt: skip
    bars = axes.bar(FOUR, values, color=[BLUE, "0.65", ORANGE, "0.65"])
    axes.bar_label(bars, fmt="%.2f" if abs(values).max() > 1 else "%.3f", padding=2, fontsize=9)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set_title(title, fontsize=11)
    axes.tick_params(axis="x", labelrotation=35)
    axes.margins(y=0.2)
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "02_softmax_layer")

# %% [markdown]
# ## 3. Composition: from T vectors to one
#
# A history is T vectors; the layer above wants one.
#
# | composition | e | its size | backward: what word t's vector gets |
# | --- | --- | --- | --- |
# | sum | x_1 + … + x_T | n | de, the same for every word |
# | mean | (x_1 + … + x_T)/T | n | de/T, the same for every word |
# | concatenation | [x_1; …; x_T] | T·n | its own piece of de |
#
# Addition does not care about order. So after sum or mean nothing can tell who bit whom, however clever the layers
# above are.
#
# **Expect** distance 0 between "man bites dog" and "dog bites man" for sum and mean, mean = sum/3, and a distance far
# from 0 for concatenation.

# %%
phrases = [vocabulary.encode(phrase.split()) for phrase in ("man bites dog", "dog bites man")]
small_table = np.random.default_rng(5).standard_normal((c, 8))
COMPOSE = {
    "sum": ops.sum_pool,
    "mean": ops.mean_pool,
    "concatenation": lambda x: (x.reshape(len(x), -1), lambda de: de.reshape(x.shape)),
}
X = small_table[np.stack(phrases)]                       # (2, T, n): two phrases of T = 3 words, n = 8
composed = {name: function(X)[0] for name, function in COMPOSE.items()}

print("\n3. Composition: 'man bites dog' and 'dog bites man', T = 3, n = 8")
print(f"  {'':<15}{'shape of e':>12}{'distance of the two phrases':>30}{'gradient of each word, if de = 1':>36}")
for name, function in COMPOSE.items():
    e, compose_backward = function(X)
    distance = np.linalg.norm(e[0] - e[1])
    de = np.ones_like(e)
    print(f"  {name:<15}{e.shape!s:>12}{distance:>30.3f}{compose_backward(de)[0, 0, 0]:>36.3f}")
print(f"  mean = sum/3: {np.allclose(composed['mean'], composed['sum'] / 3)}")

figure = Figure(figsize=(10.5, 4.4), layout="constrained")
figure.suptitle("“man bites dog” and “dog bites man”, composed")
for axes, (name, e) in zip(figure.subplots(3), composed.items()):
    image = axes.imshow(e, cmap="PuOr_r", vmin=-3, vmax=3, aspect="auto")
    axes.set(xlim=(-0.5, 23.5), xticks=[])               # numbers of the same width in all three
    axes.set_yticks([0, 1], ["man bites dog", "dog bites man"], fontsize=9)
    if name == "concatenation":
        axes.set_title("concatenation: 24 numbers, the rows are different", fontsize=10, loc="left")
        axes.set_xticks([3.5, 11.5, 19.5], ["place 1", "place 2", "place 3"])
        for place in (8, 16):
            axes.axvline(place - 0.5, color="black", linewidth=1.5)
    else:
        axes.set_title(f"{name}: 8 numbers, the rows are the same", fontsize=10, loc="left")
        axes.text(8.5, 0.5, "no layer above can tell who bit whom", va="center", color="0.35")
        axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
figure.colorbar(image, ax=figure.axes, label="entry of e")
show(figure, "02_compositions")

# %% [markdown]
# Does a language model need the order? Shakespeare turns verb and subject around often enough to look: we count what
# follows "thou art" and "art thou".
#
# **Expect** different words. A model that sums has to give both histories the same probabilities.

# %%
def next_words(phrase, most=6):
    """What follows a phrase of two words in the corpus, as text, and how often the phrase occurs."""
    a, b = vocabulary.encode(phrase.split())
    after = ids[2:][(ids[:-2] == a) & (ids[1:-1] == b)]
    counts = np.bincount(after, minlength=c)
    best = np.argsort(-counts, kind="stable")[:most]
    return len(after), "  ".join(f"{words_of(vocabulary, [i])} {counts[i]}" for i in best)


print("\n  what follows in the corpus, with counts ('/' is a line break)")
for phrase in ("thou art", "art thou", "I have", "have I"):
    number, text = next_words(phrase)
    print(f"  {phrase:<9}{number:>4} times:  {text}")

# %% [markdown]
# Concatenation keeps the order because word t meets weights of its own. That has a price: for k hidden units sum and
# mean need n·k weights, concatenation T·n·k. And what the model learns about a word in place 1 it has to learn again
# in place 2. We come back to this in section 8.
#
# ## 4. The fixed-window model
#
#     x_t = row w_t of E              (n)       the vectors of the last T words
#     e = [x_1; …; x_T]               (T·n)     concatenation
#     a = e·W + b₁                    (k)
#     h = tanh(a)                     (k)       the hidden layer
#     z = h·U + b₂                    (c)       scores
#     p = softmax(z),   L = −ln p_y             the softmax layer of section 2
#
# Everything is learned: E, W, b₁, U, b₂. (Bengio et al. have one more term, a straight connection e·D from the
# vectors to the scores. They found it to be optional, and the lecture leaves it out, as we do.)
#
# We take the lecture's sizes: n = 4, T = 4, so e has 16 numbers; k = 12 hidden units. Two windows of its sentence are
# the batch. In the second one "the" stands twice.
#
# **Expect** the shapes of the formula, with B = 2 in front, and at each step backward a gradient with the shape of what
# it is the gradient of.

# %%
sentence = "as the proctor started the clock the students opened their books".split()
tiny = Vocabulary(sentence)
windows = tiny.encode("the students opened their books".split() + "the clock the students opened".split()).reshape(2, 5)
rng = np.random.default_rng(4)
model = FixedWindowModel(rng.standard_normal((len(tiny), 4)), T=4, k=12)             # in float64, to compare closely
model.readout.W.data = rng.standard_normal((12, len(tiny))) / 4                      # U, b₁ and b₂ would start at 0,
model.hidden.b.data, model.readout.b.data = rng.standard_normal(12), rng.standard_normal(len(tiny))    # and hide errors
E, W, b_1, U, b_2 = (parameter.data for parameter in model.parameters().values())

print(f"\n4. The fixed-window model, forward; c = {len(tiny)}")
B, T = windows.shape[0], windows.shape[1] - 1
history, target = windows[:, :-1], windows[:, -1]        # (B, T), (B,)
x, embedding_backward = ops.embedding(E, history)        # (B, T, n)
e = x.reshape(B, -1)                                     # (B, T·n)
a, hidden_backward = ops.linear(e, W, b_1)               # (B, k)
h, tanh_backward = ops.tanh(a)                           # (B, k)
z, readout_backward = ops.linear(h, U, b_2)              # (B, c)
L, loss_backward = ops.cross_entropy(z, target)          # one number, the mean over the batch

for row in (
    ("history", "", history), ("x = E[history]", "embedding", x), ("e = [x_1; …; x_T]", "reshape", e),
    ("a = e·W + b₁", "linear", a), ("h = tanh(a)", "tanh", h), ("z = h·U + b₂", "linear", z),
):  # fmt: skip
    print(f"  {row[0]:<20}{row[1]:<16}{row[2].shape}")
print(f"  {'L':<20}{'cross_entropy':<16}{L:.4f} nats")

# %% [markdown]
# Backward: the same six steps from the last to the first. Each takes the gradient of its output and gives those of its
# inputs. "dq" is short for ∂L/∂q.

# %%
dz, _ = loss_backward(1.0)                               # (p − y)/B
dh, dU, db_2 = readout_backward(dz)                      # dz·Uᵀ, hᵀ·dz, Σ dz
da = tanh_backward(dh)                                   # dh·(1 − h²)
de, dW, db_1 = hidden_backward(da)                       # da·Wᵀ, eᵀ·da, Σ da
dx = de.reshape(x.shape)                                 # each word's own piece
dE, _ = embedding_backward(dx)                           # each piece to the word's row; twice "the": the sum of both

print("\n  backward")
for name, formula, gradient in (
    ("dz", "(p − y)/B", dz), ("dh", "dz·Uᵀ", dh), ("dU", "hᵀ·dz", dU), ("db₂", "Σ dz", db_2), ("da", "dh·(1 − h²)", da),
    ("de", "da·Wᵀ", de), ("dW", "eᵀ·da", dW), ("db₁", "Σ da", db_1), ("dx", "pieces of de", dx),
    ("dE", "sums of pieces", dE),
):  # fmt: skip
    print(f"  {name:<5}{formula:<18}{gradient.shape}")
the = tiny.index["the"]
places = np.argwhere(history == the)
print(f"  'the' stands in {len(places)} places; its row of dE is the sum of {len(places)} pieces: "
      f"{np.allclose(dE[the], sum(dx[b, t] for b, t in places))}")
print(f"  'books' is only a target, so its row of dE is 0: {not dE[tiny.index['books']].any()}")

# %% [markdown]
# ### Two judges
#
# The first is `FixedWindowModel.loss`, which does the same in one call. It must agree to the last digits. But if we
# both made the same mistake, we would agree as well. The second judge, `gradcheck`, has no formula: it moves parameters
# and measures how the loss changes.
#
# **Expect** differences of 0, or of rounding size, and PASS for each of the five parameters.

# %%
model_loss, backward = model.loss(windows)
backward()
print(f"\n  L by hand {L:.12f}, by model.loss {model_loss:.12f}")
for (name, parameter), gradient in zip(model.parameters().items(), (dE, dW, db_1, dU, db_2)):
    difference = abs(parameter.grad - gradient).max()
    print(f"  {name:<17}largest difference of the gradients {difference:.0e}")
    assert difference < 1e-12
report = gradcheck(model.loss, windows, params=model.parameters(), name="the fixed-window model's loss")
print(f"\n{report}")
assert report

# %% [markdown]
# ### What is the hidden layer for?
#
# One could leave it out: z = e·U + b. With concatenation that is z = b + Σ_t x_t·U_t, with U_t the rows of U for place
# t. Each word of the window adds its scores, and no word can change what *another* one means.
#
# The classic example of what such sums cannot do is XOR, "one or the other, but not both". As a language: two
# answers, then whether they agree.
#
#     yes yes same    no no same    yes no different    no yes different
#
# If "yes" in place 1 speaks for "same", it does so in "yes no" as well. **Expect** ln 2 = 0.693 nats without a hidden
# layer, a coin's toss, and near 0 with one.

# %%
answers = Vocabulary("yes no same different".split())
xor = answers.encode("yes yes same no no same yes no different no yes different".split()).reshape(4, 3)


def train_xor(k, steps=400):
    """(loss, p of "same" after each window) of a model with k hidden units; k = 0: without hidden layer."""
    rng = np.random.default_rng(1)
    embeddings = rng.standard_normal((4, 2))
    if k:
        model = FixedWindowModel(embeddings, T=2, k=k)
        fit(model, repeat(xor), SGD(1.0), steps=steps, validate=lambda: 0.0, every=steps)
        logits = model.logits(xor[:, :-1])
    else:
        U, b = rng.standard_normal((4, 4)), np.zeros(4)
        for _ in range(steps):
            x, embedding_backward = ops.embedding(embeddings, xor[:, :-1])
            logits, linear_backward = ops.linear(x.reshape(4, 4), U, b)
            _, loss_backward = ops.cross_entropy(logits, xor[:, -1])
            dx, dU, db = linear_backward(loss_backward()[0])
            dembeddings, _ = embedding_backward(dx.reshape(x.shape))
            for parameter, gradient in ((U, dU), (b, db), (embeddings, dembeddings)):
                parameter -= 1.0 * gradient
    return ops.cross_entropy(logits, xor[:, -1])[0], ops.softmax(logits)[0][:, answers.index["same"]]


print(f"\n  XOR as a language; ln 2 = {np.log(2):.3f} nats\n  {'':<22}{'loss':>7}   p(same) after", end="")
print("".join(f"{words_of(answers, window[:2]):>9}" for window in xor))
for label, k in (("no hidden layer", 0), ("8 hidden units, tanh", 8)):
    loss, same = train_xor(k)
    print(f"  {label:<22}{loss:>7.3f}{'':>16}" + "".join(f"{q:>9.3f}" for q in same))

# %% [markdown]
# ## 5. Training on Shakespeare
#
# ### The bar
#
# Before a network is trained, know what counting reaches. The last tenth of the corpus is the test, the twentieth
# before it the validation part, the rest is for training. All models of this lab predict the same words.
#
# The bar is the n-gram model of Lab 01 with order 3 and discount 0.9. But mind what it has counted. With *all* words
# before the test it reaches 5.05 nats. Our model keeps the validation words aside, to choose when to stop, and does
# not learn from them. An n-gram model that learns from the same words as ours is the fair comparison.
#
# **Expect** 5.05 with all words before the test, and clearly more without the 13,000 validation words. More than half
# of them come from the play that the test begins in, The Taming of the Shrew, and the training words have nothing of
# it. See how often its LUCENTIO occurs.

# %%
REACH = 8                                                # the longest window below
train, validation, test = split_words(ids, REACH)        # validation and test begin with REACH words of context
before_test = ids[: len(ids) - (len(test) - REACH)]
MOST = 500 if QUICK else 4000                            # so many evenly spaced words are measured in comparisons,
TESTED = 1500 if QUICK else None                         # and in the test of the main model; None: all


def log_p(model, words, most=None):
    """(ends, ln p of the words there): of all words from number REACH on, or of `most` of them, evenly spaced."""
    ends = np.arange(REACH, len(words))
    if most is not None and most < len(ends):
        ends = ends[np.linspace(0, len(ends) - 1, most).astype(int)]
    if isinstance(model, NGramModel):
        return ends, model.log_probabilities(words, REACH)[ends - REACH]
    parts = [windows_ending_at(words, some, model.T) for some in np.array_split(ends, len(ends) // 128 + 1)]
    return ends, np.concatenate([log_softmax_at(model.logits(w[:, :-1]), w[:, -1]) for w in parts])


def cross_entropy(model, words, most=None):
    """Nats per word."""
    return -log_p(model, words, most)[1].mean()


clock = time.perf_counter()
ngrams = {order: NGramModel(order, c, discount=0.9).fit(train) for order in (1, 2, 3)}
ngrams_all = {order: NGramModel(order, c, discount=0.9).fit(before_test) for order in (1, 2, 3)}
bars = {order: cross_entropy(ngrams[order], test) for order in ngrams}
bars_all = {order: cross_entropy(ngrams_all[order], test) for order in ngrams}

print(f"\n5. The bar; cross-entropy on {len(test) - REACH:,} test words, nats per word")
print(f"  {'n-gram, learned from':<26}{'training words':>16}{'+ validation words':>20}")
print(f"  {'words to learn from':<26}{len(train):>16,}{len(before_test):>20,}")
print(f"  {'uniform, ln c':<26}{uniform_cross_entropy(c):>16.3f}{uniform_cross_entropy(c):>20.3f}")
for order in ngrams:
    print(f"  {f'order {order}':<26}{bars[order]:>16.3f}{bars_all[order]:>20.3f}")
lucentio = vocabulary.index["LUCENTIO"]
print("  LUCENTIO: " + ", ".join(f"{np.sum(part == lucentio)} times in {name}" for name, part in (
    ("training", train), ("validation", validation[REACH:]), ("test", test[REACH:]))))
print(f"  counting and measuring all six took {time.perf_counter() - clock:.1f} seconds")

# %% [markdown]
# ### The settings
#
# Random initial vectors, n = 64, k = 128, T = 4, Adam. A step costs about 6·B·k·c flops: the product h·U and its two
# backward products are nearly all of it.
#
# One shortcut saves many steps. U starts at 0, so that an untrained model says softmax(b₂). With b₂ = 0
# that is 1/c for every word, and the first hundred steps go into learning which words are frequent. We can write that
# down: b₂ = ln p(w) of the unigram model, counted on the training words.
#
# **Expect** 9.568 with b₂ = 0, and the unigram loss with b₂ = ln p, before any training.

# %%
T, n, k, batch, rate = (4, 32, 32, 64, 6e-3) if QUICK else (4, 64, 128, 256, 6e-3)
STEPS, COMPARED, SHORT = (150, 50, 60) if QUICK else (900, 250, 240)     # main training, each comparison, overfitting


def new_model(words=train, **options):
    """An untrained model that knows how often each word occurs in `words`, and no more."""
    embeddings = 0.1 * np.random.default_rng(0).standard_normal((c, n), dtype=np.float32)
    model = FixedWindowModel(embeddings, **{"T": T, "k": k} | options)
    log_unigram = NGramModel(1, c, discount=0.9).fit(words).next_word_logits(np.zeros((1, 0), int))[0]
    model.readout.b.data[:] = log_unigram
    return model


def learn(model, words, steps, every, batch=batch, **options):
    """A History. The validation loss is taken of MOST evenly spaced validation words."""
    return fit(
        model, random_windows(words, model.T, batch, np.random.default_rng(0)), Adam(rate), steps=steps,
        validate=partial(cross_entropy, model, validation, MOST // 2), every=every, warm_up=steps // 12, decay=True,
        rng=np.random.default_rng(1), **options,
    )  # fmt: skip


model = new_model()
untrained = cross_entropy(model, test, MOST)
model.readout.b.data[:] = 0
print(f"\n  untrained, b₂ = 0       {cross_entropy(model, test, MOST):.3f} nats")
print(f"  untrained, b₂ = ln p    {untrained:.3f} nats   (on {MOST} test words)")
print("  numbers to learn: " + ", ".join(f"{name} {p.data.size:,}" for name, p in model.parameters().items()))

# %% [markdown]
# ### The training
#
# **Expect** (without `--quick`) a steep fall to about 5.5 in the first 200 steps, then a slow one, to a little below
# the fair bar of 5.38. The training loss lies below the validation loss, and that is not memory: in less than one round
# no window is met twice. The validation words are harder. They have names that the training words do not have.

# %%
print(f"\n  {STEPS} steps of {batch} windows: {STEPS * batch / len(train):.2f} times over the training words")
print(f"  {'step':>6}{'training':>11}{'validation':>12}   nats per word")
model = new_model()
untrained_table = model.embedding.table.data.copy()


def print_row(row, is_best):
    print(f"  {row['step']:>6}{row['train_loss']:>11.3f}{row['validation_loss']:>12.3f}{'   best so far' * is_best}")


history = learn(model, train, STEPS, STEPS // 10, patience=3, on_row=print_row)
ends, log_neural = log_p(model, test, TESTED)            # ln p of the test words
log_ngram = {order: log_p(ngrams[order], test, TESTED)[1] for order in ngrams}
neural = -log_neural.mean()
print(f"  {history.rows[-1]['seconds']:.0f} seconds of training; kept: step {history.best_step}\n")
print(f"  {f'{len(ends):,} test words; all learned from the training words':<50}{'nats':>7}{'perplexity':>12}")
for label, loss in ((f"n-gram, order {order}", -log_ngram[order].mean()) for order in ngrams):
    print(f"  {label:<50}{loss:>7.3f}{perplexity(loss):>12,.0f}")
print(f"  {'fixed window, T = 4':<50}{neural:>7.3f}{perplexity(neural):>12,.0f}")

# %% [markdown]
# ### Two kinds of knowledge
#
# The n-gram model knows what it has seen, exactly. The neural model knows it roughly, and knows something of what it
# has not seen. So ask them separately: where the two words before the target stood together in training, and where
# they never did.
#
# And mix them: p = λ·p_neural + (1 − λ)·p_n-gram, with the λ that is best on the *validation* words. Bengio et al. did
# that too.
#
# **Expect** the neural model, once it is trained in full, to gain most after unseen pairs of words, and the mixture to
# be better than either. (Words after unseen pairs are the easier ones to guess, for both: a rare word often ends a
# phrase, and a mark or a line break follows. The second column counts that.)

# %%
def mixture(log_model, log_ngram, weight):
    """Cross-entropy of λ·p_model + (1 − λ)·p_ngram"""
    return -np.log(weight * np.exp(log_model) + (1 - weight) * np.exp(log_ngram)).mean()


seen = ngrams[3].matched(test)[ends - 1] >= 2            # the two words before the target stood together in training
print("\n  the pair of words before the target")
print(f"  {'':<22}{'share of test':>14}{'then a mark':>13}{'n-gram':>9}{'fixed window':>14}   nats per word")
is_mark = np.isin(test[ends], vocabulary.encode(tokenize(". , ! ? ; : - \n")))
for label, those in (("occurs in training", seen), ("never occurs there", ~seen)):
    print(f"  {label:<22}{those.mean():>14.0%}{is_mark[those].mean():>13.0%}"
          f"{-log_ngram[3][those].mean():>9.3f}{-log_neural[those].mean():>14.3f}")

weights = np.linspace(0, 1, 21)
on_validation = [log_p(each, validation, TESTED)[1] for each in (model, ngrams[3])]
weight = min(weights, key=lambda weight: mixture(*on_validation, weight))
mixed = mixture(log_neural, log_ngram[3], weight)
print(f"\n  λ, chosen on the validation words {weight:.2f}")
print(f"  n-gram {-log_ngram[3].mean():.3f}   fixed window {neural:.3f}   mixture {mixed:.3f} nats per test word")

# %% [markdown]
# ### What the last 13,000 words are worth
#
# The validation words have done their work: all choices are made. Now the model may learn from them too. We let it go
# on, for two rounds over these words, at a sixth of the rate. (Two and a sixth are guesses: nothing is left to choose
# them with, and the test is no place for it.)
#
# **Expect** a gain without any new idea: words from the test's own play. The n-gram model gains more, for it takes a
# name over as it stands. But the mixture, with the λ from above, falls clearly below the bar of 5.05 (with `--quick`,
# just below what counting reaches on the fewer words measured): the network knows something that counting does not.

# %%
rounds = 2 * (len(validation) - T) // batch
fit(model, random_windows(validation, T, batch, np.random.default_rng(0)), Adam(rate / 6), steps=rounds,
    validate=lambda: 0.0, every=rounds)                  # there is nothing left to validate with
_, log_neural_all = log_p(model, test, TESTED)
_, log_ngram_all = log_p(ngrams_all[3], test, TESTED)
print(f"\n  nats per test word{'training words':>24}{'+ validation words':>21}")
for label, first, second in (
    ("n-gram, order 3", -log_ngram[3].mean(), -log_ngram_all.mean()),
    ("fixed window", neural, -log_neural_all.mean()),
    ("mixture", mixed, mixture(log_neural_all, log_ngram_all, weight)),
):
    print(f"  {label:<18}{first:>24.3f}{second:>21.3f}")

# %% [markdown]
# ### Overfitting
#
# The model has more numbers to learn than the corpus has words. On a short text, read several times, it learns the text
# by heart. We take a part of the training words, once without and once with dropout (half of the entries of e and of
# h are set to 0 at random in each step, see `ops/dropout.py`).
#
# **Expect** the training loss to fall and fall, by a leap each time the text begins anew, and the validation loss to
# turn at the end of the first round. `fit` keeps the parameters of the best measurement, so nothing is lost but time;
# `patience=2` would also save that: it stops after two measurements without a better one. Dropout learns more slowly,
# and keeps the validation loss from rising far. It works no wonders: to stop early is about as good here.

# %%
few = train[: 5_000 if QUICK else 20_000]
short_runs = {}
for label, dropout in (("no dropout", 0.0), ("dropout 0.5", 0.5)):
    short_runs[label] = learn(new_model(few, dropout=dropout), few, 2 * SHORT, SHORT // 6, batch=128)
print(f"\n  {len(few):,} words, read {2 * SHORT * 128 / len(few):.1f} times; nats per word")
print(f"  {'':<18}" + "".join(f"{label:>24}" for label in short_runs))
print(f"  {'times over':<18}" + f"{'training':>12}{'validation':>12}" * 2)
for rows in zip(*(run.rows for run in short_runs.values())):
    print(f"  {rows[0]['step'] * 128 / len(few):<18.1f}" + "".join(
        f"{row['train_loss']:>12.3f}{row['validation_loss']:>12.3f}" for row in rows))
for label, run in short_runs.items():
    print(f"  {label}: best validation loss {run.best_validation_loss:.3f}, after {run.best_step} steps")

figure = Figure(figsize=(12, 4.6), layout="constrained")
left, right = figure.subplots(1, 2)
steps = [row["step"] for row in history.rows]
left.plot(steps, [row["train_loss"] for row in history.rows], "o-", color=BLUE, label="training")
left.plot(steps, [row["validation_loss"] for row in history.rows], "s-", color=ORANGE, label="validation")
lines = {name: -log_ngram[order].mean() for order, name in ((1, "unigram"), (2, "bigram"), (3, "trigram"))}
lines |= {"this model": neural, "mixture": mixed}
bottom, top = min(mixed, history.rows[-1]["train_loss"]) - 0.1, lines["unigram"] + 0.1
left.set_ylim(bottom, top)
free = bottom
for label, loss in sorted(lines.items(), key=lambda line: line[1]):
    color = "0.45" if "gram" in label else GREEN
    left.axhline(loss, color=color, linestyle="--", linewidth=1)
    height = max(loss, free)
    free = height + 0.05 * (top - bottom)
    left.annotate(f"{label} {loss:.2f}", (1, height), xycoords=("axes fraction", "data"), xytext=(5, 0),
                  textcoords="offset points", va="center", fontsize=9, color=color)
left.set(title=f"{len(train):,} training words; dashed: on the test words", xlabel="step",
         ylabel="cross-entropy in nats per word")
left.legend(frameon=False)
for (label, run), color in zip(short_runs.items(), (RED, BLUE)):
    times = [row["step"] * 128 / len(few) for row in run.rows]
    right.plot(times, [row["train_loss"] for row in run.rows], "o--", color=color, label=f"training, {label}")
    right.plot(times, [row["validation_loss"] for row in run.rows], "s-", color=color, label=f"validation, {label}")
right.set(title=f"Overfitting: only {len(few):,} words, again and again", xlabel="times over the text",
          ylabel="cross-entropy in nats per word")
right.legend(frameon=False, fontsize=9)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "02_training")

# %% [markdown]
# ### Concatenation, sum, mean; and how long a window?
#
# Six short trainings with the same steps, batches and rates. First the three compositions with T = 4, then
# concatenation with T = 1, 2, 4, 8. A model with T = 1 knows as much as a bigram model, with T = 2 as much as a trigram
# model.
#
# **Expect** concatenation far ahead of sum and mean. The order of four words matters, and most of all *which word is
# the last*. A sum does not know that, and even T = 1 does better: one word, known to be the last, tells more than four
# in no order. (Sum and mean are the same model: the factor 1/T is one that W can make up for. Only the training
# differs.) Of the windows, expect T = 2 better than T = 1, and little after that: more words give more to know and more
# to learn, and these short trainings do not get to the bottom of it. (With `--quick` they hardly begin.)

# %%
compared = {}
for composition, length in (
    ("concatenation", 1), ("concatenation", 2), ("concatenation", 4), ("concatenation", 8), ("sum", 4), ("mean", 4),
):  # fmt: skip
    each = new_model(T=length, composition=composition)
    run = learn(each, train, COMPARED, COMPARED // 2)
    compared[composition, length] = each, cross_entropy(each, test, MOST), run.best_validation_loss
bars_here = {order: cross_entropy(ngrams[order], test, MOST) for order in (2, 3)}        # of the same test words

print(f"\n  {COMPARED} steps of {batch} windows each; nats per word; the test loss is of {MOST} words")
print(f"  {'composition':<15}{'T':>3}{'size of e':>11}{'weights W':>11}{'all numbers':>13}"
      f"{'validation':>12}{'test':>8}")
for (composition, length), (each, loss, validation_loss) in compared.items():
    print(f"  {composition:<15}{length:>3}{each.hidden.W.data.shape[0]:>11}{each.hidden.W.data.size:>11,}"
          f"{each.numbers_to_learn():>13,}{validation_loss:>12.3f}{loss:>8.3f}")
for order, name in ((2, "bigram"), (3, "trigram")):
    print(f"  {name + ', counted':<15}{order - 1:>3}{'':>47}{bars_here[order]:>8.3f}")

# %% [markdown]
# ### Where does the model look?
#
# W has a block W_t of n rows for each place. The contribution of place t to the hidden layer is x_t·W_t. Its mean
# length over test histories says how much the place counts.
#
# **Expect** the last word to count most, and less the further back, though a longer training would use them more. And a
# word's weights in one place know nothing of those in another: the cosine of W_t and W_8, entry by entry, is near 0.

# %%
longest = compared["concatenation", 8][0]
some = windows_ending_at(test, np.linspace(REACH, len(test) - 1, 500).astype(int), 8)[:, :-1]
blocks = longest.hidden.W.data.reshape(8, n, k)          # (T, n, k)
lengths = [np.linalg.norm(longest.embedding.table.data[some[:, t]] @ blocks[t], axis=1).mean() for t in range(8)]
print("\n  T = 8: the places of the window, 1 is the word just before the target")
print("  words back                " + "".join(f"{8 - t:>8}" for t in range(8)))
print("  mean length of x_t·W_t    " + "".join(f"{length:>8.2f}" for length in lengths))
print("  cosine of W_t and W_8     " + "".join(
    f"{(block * blocks[-1]).sum() / np.linalg.norm(block) / np.linalg.norm(blocks[-1]):>8.2f}" for block in blocks))

figure = Figure(figsize=(11, 4.4), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
windows_tried = [1, 2, 4, 8]
left.plot(windows_tried, [compared["concatenation", length][1] for length in windows_tried], "o-", color=BLUE,
          label="concatenation")
left.plot(4, compared["sum", 4][1], "D", color=RED, markersize=8, label="sum")
left.plot(4, compared["mean", 4][1], "s", color=ORANGE, markersize=8, label="mean")
for order, name, style in ((2, "bigram: 1 word", ":"), (3, "trigram: 2 words", "--")):
    left.axhline(bars_here[order], color="0.45", linestyle=style, linewidth=1.2, label=name)
left.set_xscale("log", base=2)
left.set_xticks(windows_tried, [str(length) for length in windows_tried])
left.minorticks_off()
left.set(title=f"Windows and compositions, {COMPARED} steps each", xlabel="T, words in the window",
         ylabel="test cross-entropy in nats per word")
left.margins(y=0.15)
figure.legend(*left.get_legend_handles_labels(), frameon=False, fontsize=9, ncols=5, loc="outside lower left")
right.bar(range(8, 0, -1), lengths, color=BLUE)
right.set_xticks(range(1, 9))
right.invert_xaxis()
right.set(title="T = 8: how much each place counts", xlabel="words back from the target",
          ylabel="mean length of $x_t W_t$")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "02_windows")

# %% [markdown]
# ## 6. What the vectors know
#
# Words of like use get like gradients, so their vectors should move together. We look at words that occur 50 times or
# more in training, and ask for the nearest by cosine: before the training, and after it.
#
# **Expect** chance before. After: "he" near "she" and "it", "will" near "shall", "my" near "thy". They are not
# synonyms. What is alike is the company that they keep: the words that may come after them. Nouns and names do worse.
# They occur more seldom, and what follows "king" is not so different from what follows any other noun. (With `--quick`
# the training is too short for most of that.)

# %%
counts = np.bincount(train, minlength=c)
frequent = np.flatnonzero(counts >= 50)
trained_table = model.embedding.table.data


def nearest(word, table, most=5):
    """(ids, cosines) of the frequent words nearest to a word's id, the word itself left out."""
    directions = table / np.linalg.norm(table, axis=1, keepdims=True)
    others = frequent[frequent != word]
    cosine = directions[others] @ directions[word]
    best = np.argsort(-cosine)[:most]
    return others[best], cosine[best]


print("\n6. Nearest words by cosine")
for word in ("he", "my", "will", "is", "come", "good", "king", "Romeo"):
    for label, table in (("before", untrained_table), ("after", trained_table)):
        near, cosine = nearest(vocabulary.index[word], table)
        print(f"  {word if label == 'before' else '':<8}{label:<8}" + "  ".join(
            f"{words_of(vocabulary, [i])} {value:.2f}" for i, value in zip(near, cosine)))

# %% [markdown]
# And a picture: four groups of words, in the two directions in which their vectors differ most (principal components of
# these words, computed by a singular value decomposition of their centred vectors). A word that would hide another is
# moved up or down a little.
#
# **Expect** no groups before, and groups after. The number to go with it: the mean cosine of two words of the same
# group, and of two words of different groups.

# %%
GROUPS = {
    "names": "Romeo Juliet Clarence Warwick Edward Henry Angelo".split(),
    "pronouns": "he she they it him her them".split(),
    "possessives": "my thy his our your their".split(),
    "verbs": "come go speak give take know think".split(),
    "auxiliaries": "will shall may must can should".split(),
}
group_of = np.repeat(np.arange(len(GROUPS)), [len(words) for words in GROUPS.values()])
members = vocabulary.encode([word for words in GROUPS.values() for word in words])
same = (group_of[:, None] == group_of) & ~np.eye(len(members), dtype=bool)
different = group_of[:, None] != group_of

def write_words(axes, words, places, colors):
    """Words at their places, as numbers from 0 to 1 of the axes; one that would hide another is moved up or down."""
    taken = []                                           # (x, y, half the width)

    def is_free(x, y, half):
        return all(abs(x - other_x) > half + other_half or abs(y - other_y) > 0.036
                   for other_x, other_y, other_half in taken)

    for word, (x, y), color in zip(words, places, colors):
        half = 0.011 * len(word) + 0.005
        shifts = sorted(np.arange(-0.4, 0.4, 0.005), key=abs)
        y = next((y + shift for shift in shifts if is_free(x, y + shift, half)), y)
        taken.append((x, y, half))
        axes.text(x, y, word, ha="center", va="center", fontsize=10, color=color, transform=axes.transAxes)


figure = Figure(figsize=(12, 6), layout="constrained")
print(f"\n  mean cosine of two words of{'the same group':>18}{'different groups':>18}")
group_colors = (BLUE, RED, "0.1", GREEN, "#B8569A")
for axes, (label, table) in zip(figure.subplots(1, 2), (("before", untrained_table), ("after", trained_table))):
    alike = cosines(table[members])
    print(f"  {label + ' training':<27}{alike[same].mean():>18.2f}{alike[different].mean():>18.2f}")
    centred = table[members] - table[members].mean(0)
    left_vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left_vectors[:, :2] * values[:2]            # (words, 2)
    lowest, highest = places.min(0), places.max(0)
    share = (values[:2] ** 2).sum() / (values**2).sum()
    write_words(axes, [vocabulary.words[i] for i in members], 0.08 + 0.84 * (places - lowest) / (highest - lowest),
                [group_colors[group] for group in group_of])
    axes.set(title=f"{label} training: two components, {share:.0%} of the variance", xticks=[], yticks=[],
             xlabel="first principal component", ylabel="second principal component")
for name, color in zip(GROUPS, group_colors):
    axes.plot([], [], "s", color=color, label=name)
figure.legend(*axes.get_legend_handles_labels(), frameon=False, ncols=5, loc="outside lower center")
show(figure, "02_word_vectors")

# %% [markdown]
# ## 7. Continuations
#
# The most probable next words after a prefix, by counting and by the network.
#
# **Expect** the trigram model to be sure of itself where it has seen the last two words often, and both to like the
# frequent words.

# %%
print("\n7. The most probable next words")
for prefix in ("I pray thee", "the duke of", "my gracious lord ,", "what is the"):
    prompt = vocabulary.encode(tokenize(prefix))
    print(f"  {prefix!r}")
    for label, each in (("trigram", ngrams_all[3]), ("fixed window", model)):
        best, probabilities = continuations(each, prompt, most=6)
        print(f"    {label:<14}" + "  ".join(
            f"{words_of(vocabulary, [i])} {q:.3f}" for i, q in zip(best, probabilities)))

prompt = test[:REACH]
written = list(generate(model, prompt, 30 if QUICK else 80, partial(sample, rng=np.random.default_rng(2))))
print(f"\n  a sample; the prompt is {words_of(vocabulary, prompt)!r}\n")
print("\n".join(f"    {line}" for line in vocabulary.decode(written).strip("\n").splitlines()))

# %% [markdown]
# ### Similar prefixes, similar predictions
#
# The lecture's complaint about n-grams: what was counted for "students opened their" says nothing about "pupils opened
# their". So take test histories and replace the last word by its nearest neighbour in the trained vectors. How far do
# the predictions move? The measure is the **total variation** of two distributions:
#
#     TV(p, q) = ½·Σ_w |p(w) − q(w)|       0: the same;  1: nothing in common
#
# A number alone says little, a smooth model moves little anyway. So we also replace the word by a *random* one of the
# same frequency.
#
# **Expect** the network to move much less for a neighbour than for a random word: a ratio well below 1. For the trigram
# model, expect a ratio nearer to 1. It is not 1, and that is good news: the neighbours were found by the network, yet
# the counts agree that they are alike. Only, the trigram model cannot make use of it.

# %%
ends = np.arange(REACH, len(test))
ends = ends[np.isin(test[ends - 1], frequent)]
ends = ends[np.linspace(0, len(ends) - 1, 60 if QUICK else 300).astype(int)]
histories = windows_ending_at(test, ends - 1, T - 1)     # (B, T), the words before the targets
by_frequency = frequent[np.argsort(-counts[frequent], kind="stable")]
rank_of = {word: rank for rank, word in enumerate(by_frequency)}
rng = np.random.default_rng(0)


def of_like_frequency(word):
    """A random word whose rank differs by 1 to 5."""
    rank = rank_of[word]
    near = [r for r in range(rank - 5, rank + 6) if r != rank and 0 <= r < len(by_frequency)]
    return by_frequency[rng.choice(near)]


replaced = {
    "its nearest neighbour": [nearest(word, trained_table, most=1)[0][0] for word in histories[:, -1]],
    "a random word": [of_like_frequency(word) for word in histories[:, -1]],
}


def total_variation(model, histories, others):
    p, q = (ops.softmax(model.next_word_logits(each).astype(np.float64))[0] for each in (histories, others))
    return 0.5 * abs(p - q).sum(-1)


print(f"\n  mean total variation over {len(histories)} test histories, the last word replaced by")
print(f"  {'':<15}" + "".join(f"{label:>24}" for label in replaced) + f"{'ratio':>9}")
variations = {}
for label, each in (("trigram", ngrams_all[3]), ("fixed window", model)):
    variations[label] = [total_variation(each, histories, np.column_stack([histories[:, :-1], words])).mean()
                         for words in replaced.values()]
    print(f"  {label:<15}" + "".join(f"{value:>24.3f}" for value in variations[label])
          + f"{variations[label][0] / variations[label][1]:>9.2f}")

# %% [markdown]
# ## 8. What it cannot do
#
# - **Weights grow with T.** W has T·n·k numbers, and each place learns its own. The lecture names this as the model's
#   main weakness. Look at the table before you agree: at our sizes W is small beside E and U, which depend on c.
#   It is not the memory that hurts first. It is that place 83 has to learn about "students" again what place 92
#   knows, from the same few words of text.
# - **Beyond the window there is nothing.** (The lecture says that the window holds the words that follow the current
#   one. It means those that come before the predicted one.)
# - **Compared with n-grams**, whose tables could have cᵀ rows: they store only what occurs, so at most one entry for
#   each word of the text and order. The network's numbers do not grow with the text at all.
#
# **Expect** W to overtake E and U together at a window of a few hundred words.

# %%
print("\n8. Numbers to learn, by the formulas, for n = 64, k = 128")
print(f"  {'T':>6}{'E = c·n':>13}{'W = T·n·k':>13}{'U = k·c':>13}{'W, share of all':>18}")
for length in (1, 4, 8, 100, 1000):
    sizes = c * 64, length * 64 * 128, 128 * c
    print(f"  {length:>6,}" + "".join(f"{size:>13,}" for size in sizes) + f"{sizes[1] / sum(sizes):>18.1%}")
print(f"  the trigram model stores {sum(ngrams[3].grams):,} counts of grams")

# %% [markdown]
# ## What to keep
#
# - A one-hot row times a table is a row of the table. Look it up.
# - The gradient of softmax and cross-entropy is p − y. Everything in front of it is the chain rule.
# - Sum and mean lose the order; concatenation keeps it, with weights for each place.
# - Compare models that have learned from the same words. The validation words were worth more than a network.
# - The network shares what it learns between words of like use. Counting is exact where it has seen. Mixed, they are
#   better than either.
#
# Next: Lab 03 reads word after word with one set of weights, whatever the length.
#
# **Try:** `activation="relu"`; n = 16 or 256; `train_embeddings=False`, so that the vectors stay random; eigenvector
# embeddings of Lab 04 as the start; a second hidden layer; T = 16 with dropout.
