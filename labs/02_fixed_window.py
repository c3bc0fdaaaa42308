# %% [markdown]
# # Lab 02: words as vectors, and the fixed-window model
#
# - **Goals:** say what embeddings have that one-hot vectors lack, derive softmax's gradient p − y, tell which ways of
#   combining word vectors keep their order, and go through Bengio's model by hand, forward and backward.
# - **Before it:** Lab 01's n-grams; the chain rule, products of matrices. **Work:** about 4.5 hours.
# - **Hand in:** `cross_entropy`, `mean`, `hidden_layer`; an experiment from “Try”.
#
# Sources:
#
# - CS685, University of Massachusetts Amherst, 2020 (M. Iyyer), lecture on neural language models:
#   <https://people.cs.umass.edu/~miyyer/cs685/>, a recording at <https://www.bilibili.com/video/BV1BL411t7RV>; "the
#   lecture" below. We have its recording, not its slides.
# - CSCI 567, University of Southern California, 2024, lecture 8, fixed-window models (its slides have no address; they
#   follow <https://web.stanford.edu/class/cs224n/>).
# - Bengio, Ducharme, Vincent, Jauvin 2003, "A neural probabilistic language model", JMLR 3,
#   <https://www.jmlr.org/papers/v3/bengio03a.html>.
#
# The n-gram models of Lab 01 count. The model of this lab learns: it turns the last T words into vectors, combines
# them, and computes a probability for every word of the vocabulary.
#
# `02b_window_on_shakespeare.py` trains it, compares it with counting, and looks at what its vectors have learned.
#
# It runs in a few seconds on one CPU core, with or without `--quick`.
#
# Letters: **B** batch, **T** words in the window, **n** size of a word vector, **k** hidden units, **c** words in the
# vocabulary; W and U are matrices of weights. All losses are cross-entropies in nats per word. In mini_tf a word is a
# row, and a layer is y = x·W. The lecture writes columns and W·x: its matrices are the transposes of ours.

# %%
import time
from itertools import repeat

from _common import cosines, listed, quick_mode, show, table, words_of
from _drawing import lab_02
from _expect import about, above, at_most, below, expect
from mini_tf import ops
from mini_tf.gradcheck import gradcheck
from mini_tf.models import FixedWindowModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import SGD, Adam, RandomWindows, Training, fit

import numpy as np

QUICK = quick_mode("Lab 02: one-hot vectors, softmax layer, compositions, the fixed-window model")

# %% [markdown]
# ## 1. One-hot vectors
#
# Word i of c words is the vector $o_i$ of c numbers: a 1 in place i, zeros elsewhere. The lecture's vocabulary has six
# words: I, hate, love, the, movie, film. A phrase is the sum of its words' vectors, a **bag of words**.
#
# Dot products measure similarity: $o_i \cdot o_j = 1$ if i = j, else 0.
#
# How far is "movie" from "film", and from "hate"? How do the bags of "the movie film" and "film the movie" differ?

# %%
six = Vocabulary("I hate love the movie film".split())
O = np.eye(6)                                            # (6, 6), a row for each word
bags = {phrase: O[six.encode(phrase.split())].sum(0) for phrase in ("the movie film", "film the movie")}    # (6,) each

table(None, {word: str(O[six.index[word]].astype(int)) for word in ("hate", "movie", "film")}
      | {f"bag: {phrase}": str(bag.astype(int)) for phrase, bag in bags.items()}, title="1. One-hot vectors")
distances = np.linalg.norm(O[:, None] - O, axis=-1)[~np.eye(6, dtype=bool)]
expect("greatest dot product of two different words", 0, (O @ O.T - np.eye(6)).max())
expect("distance of two words, √2; largest difference", 0, abs(distances - np.sqrt(2)).max())
expect("the two bags are the same", True, np.array_equal(*bags.values()))

# %% [markdown]
# An **embedding** gives each word n numbers that are learned, and n is much smaller than c. A tiny training run shows
# what that is good for: four sentences, in which "movie" and "film" occur in the same contexts, and so do "love" and
# "hate". A model with n = 3 reads three words and predicts the next. (It is the model of section 4; for now you can
# read on without it.) Its vectors are initialized at random and small, so that what they learn outweighs the
# initialization.
#
# **Expect** cosines near 1 for movie–film and love–hate afterwards (both above 0.95 for four of five seeds, 0.77 and
# 0.99 for the fifth). Nobody told the model that they are similar: they occur in the same contexts, so the gradients
# pushed them the same way.

# %%
toy = six.encode([word for verb in ("love", "hate") for noun in ("movie", "film") for word in ("I", verb, "the", noun)])
toy = np.concatenate([toy.reshape(4, 4)[order].ravel() for order in np.random.default_rng(0).permuted(
    np.tile(np.arange(4), (60, 1)), axis=1)])            # sixty times the four sentences, in random order
toy_model = FixedWindowModel(0.1 * np.random.default_rng(2).standard_normal((6, 3)), T=3, k=8)
cosines_before = cosines(toy_model.embedding.table.data)
fit(Training(toy_model, RandomWindows(toy, 3, 64), Adam(0.02)), steps=300, validate=lambda: 0.0,
    every=300)                                           # nothing to validate: the last parameters are kept
cosines_after = cosines(toy_model.embedding.table.data)
print()
PAIRS = ("movie", "film"), ("love", "hate"), ("movie", "love"), ("I", "the")
spots = {(a, b): (six.index[a], six.index[b]) for a, b in PAIRS}
table(("cosine", "one-hot", "random vectors", "after training"),
      [(f"{a} – {b}", (O @ O.T)[spot], cosines_before[spot], cosines_after[spot]) for (a, b), spot in spots.items()],
      "{:.2f}")  # fmt: skip
for pair in PAIRS[:2]:
    expect(f"cosine of {' and '.join(pair)}, trained", above(0.7), cosines_after[spots[pair]])

show(lab_02.likeness(six.words, {
    "one-hot: all equally dissimilar": O @ O.T,
    "random vectors, n = 3": cosines_before,
    "trained: similar contexts, similar vectors": cosines_after,
}), "02_one_hot")  # fmt: skip

# %% [markdown]
# ### A one-hot row times the table is a row of the table
#
# $$
# x = o_i \cdot E = \text{row } i \text{ of } E, \qquad
# dE = o_i^\top \cdot dx
# $$
#
# E is (c, n). In dE, dx goes to row i; all other rows get 0.
#
# So "look up row i" *is* a linear layer on one-hot vectors, without the multiplications by zero. The gradient is the
# same, too. If a word occurs twice in a batch, its row gets the sum of both gradients.
#
# Now the corpus of labs 01 to 07, to see what this costs at full size. How many times the memory does the input take?
# How much time it costs depends on the machine: the table has the best of three. (A third of the one-hot layer's
# arithmetic is the gradient of the one-hot vectors, which `ops.linear` computes and nobody needs.)

# %%
tokens = tokenize(shakespeare("lab"))
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c, n = len(vocabulary), 64
rng = np.random.default_rng(0)
E = (0.3 * rng.standard_normal((c, n))).astype(np.float32)
some = ids[: 256 if QUICK else 1024]                     # (B,)
dx = rng.standard_normal((len(some), n)).astype(np.float32)


def as_one_hot():
    """(x, dE) by a product with one-hot rows"""
    one_hot = np.zeros((len(some), c), np.float32)       # (B, c)
    one_hot[np.arange(len(some)), some] = 1
    x, backward = ops.linear(one_hot, E)
    return x, backward(dx)[1]

def as_index():
    """(x, dE) by looking up rows"""
    x, backward = ops.embedding(E, some)
    return x, backward(dx)[0]


def best_of_three(function):
    """(result, seconds)"""
    seconds = []
    for _ in range(3):
        clock = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - clock)
    return result, min(seconds)


# %%
(by_product, dE_product), product_seconds = best_of_three(as_one_hot)
(by_lookup, dE_lookup), lookup_seconds = best_of_three(as_index)
one_hot_bytes = len(some) * c * 4
table(("", "milliseconds", "input, megabytes"), {
    "one-hot, ops.linear": (product_seconds * 1e3, one_hot_bytes / 1e6),
    "index, ops.embedding": (lookup_seconds * 1e3, some.nbytes / 1e6),
}, ("{:.2f}", "{:.3f}"), title=f"{len(ids):,} words, c = {c:,} different; {len(some)} of them, n = {n}")  # fmt: skip
expect("greatest difference of the values", 0, abs(by_product - by_lookup).max())
expect("greatest difference of the gradients", at_most(1e-4), abs(dE_product - dE_lookup).max())
expect("rows of dE that are not zero", len(np.unique(some)), np.count_nonzero(dE_lookup.any(1)))
expect("one-hot vectors: times the memory", about(c / 2, within=1), one_hot_bytes / some.nbytes, form="{:,.0f}")

# %% [markdown]
# ## 2. The softmax layer
#
# From a vector x of the history to a probability for each word:
#
# $$
# z = W \cdot x, \qquad
# p_i = \frac{\exp(z_i)}{\sum_j \exp(z_j)}
# $$
#
# z has a score for each word: the dot product of x with the word's row of W.
#
# The lecture's example: three numbers stand for the history "students opened their", and four words may follow. The
# recording gives x = (−2.3, 0.9, 5.4), the first row of W (1.2, −0.3, 0.9), its first column (1.2, 0.2, 8.9, 4.5), and
# the scores 1.8 of "books", −11.9 of "houses", and 12.9, which can only be that of "lamps". The other six entries of W
# are our choice, made to give these three scores; the fourth score, −8.9 of "stamps", follows from them and is
# therefore ours, too.
#
# Scores may be negative, and add up to anything. Compute that of "books" by hand.

# %%
x = np.array([-2.3, 0.9, 5.4])                           # (3,)
W = np.array([[1.2, -0.3, 0.9], [0.2, 0.5, -2.2], [8.9, -1.9, 6.5], [4.5, 2.2, -0.1]])      # (4, 3), a row per word
FOUR = ("books", "houses", "lamps", "stamps")

z, _ = ops.linear(x, W.T)                                # (4,); mini_tf's weights are (in, out)
table(("", *(f"times {entry}" for entry in x), "sum"), {word: (*row * x, row @ x) for word, row in zip(FOUR, W)},
      "{:.2f}", title="2. The softmax layer")  # fmt: skip
read_out = np.array([1.8, -11.9, 12.9])
expect("scores of the recording, largest difference", below(0.05), abs(z[:3] - read_out).max(), form="{:.2f}")

# %% [markdown]
# The exponential makes every number positive and keeps the order; the division makes them add up to 1.
#
# With scores as far apart as 13 and −12, one word takes all the probability: softmax looks at *differences* of scores,
# and a difference of 11 is a factor of $e^{11}$ = 60,000. So the lecturer "chopped a little bit off these numbers". He
# does not read out what was left. We drop a digit of each large score, ours included: 1.8, −1.9, 2.9, −0.9. What he
# reads out is the result: 0.24, 0.0006, 0.73 and 0.02.
#
# From our scores we get three of his four; 0.0006 has one zero too many, if the score of "houses" was −1.9: it would
# take −4.2.
#
# <details><summary>Two more details of the recording</summary>
#
# The sum of the four does not decide it: 0.9906 with 0.0006 and 0.996 with 0.006, and as each of the four is rounded,
# they may be off by 0.015 together. And the recording calls the third word "stamps" once and "lamps" once. By the order
# of the rows it is "lamps".
#
# </details>

# %%
z_tame = np.array([1.8, -1.9, 2.9, -0.9])
print(f"  softmax of the scores above: {'  '.join(f'{q:.1e}' for q in ops.softmax(z)[0])}")
e = np.exp(z_tame)                                       # step 1
p = e / e.sum()                                          # step 2
table(("smaller", "z", "exp(z)", "p"), [*zip(FOUR, z_tame, e, p), ("sum", z_tame.sum(), e.sum(), p.sum())],
      ("{:.1f}", "{:.3f}", "{:.5f}"))  # fmt: skip
expect("p in percent", "24, 0.6, 73, 1.6", "{:.0f}, {:.1f}, {:.0f}, {:.1f}".format(*100 * p))
others = e.sum() - e[1]
expect("score that would give p(houses) = 0.0006", about(-4.2, within=0.05), np.log(others * 0.0006 / (1 - 0.0006)))
shifted = ops.softmax(z_tame + 1000)[0]                  # exp(1000) would overflow; ops.softmax subtracts the largest
expect("all scores + 1000: p from ops.softmax differs by", at_most(1e-12), abs(shifted - p).max(), form="{:.0e}")

# %% [markdown]
# ### Its gradient is p − y
#
# The loss is −ln of the probability of the word that actually came, y. By hand:
#
# $$
# \begin{aligned}
# \text{loss} &= -\ln p_y = \ln \sum_j \exp(z_j) - z_y \\
# \frac{\partial\,\text{loss}}{\partial z_i} &= \frac{\exp(z_i)}{\sum_j \exp(z_j)} - 1(i = y) = p_i - 1(i = y)
# \end{aligned}
# $$
#
# In words: what the model predicted, minus what was right. The gradient is 0 only if the right word has all the
# probability, and its entries always add up to 0: a word can gain only what others lose.
#
# For a batch, the loss is the mean over the rows. As everywhere in mini_tf, a function returns its value and its
# backward, which takes the gradient of the value and returns those of the inputs.
#
# Which entry is negative? `gradcheck` does not know the formula: it moves each $z_i$ a little and measures the loss.

# %%
def cross_entropy(z, y):
    """loss = mean over the rows of −ln softmax(z)[y] = ln Σ_j exp(z_j) − z_y; safe for large scores

    z (B, c), y (B,) int  →  loss, one number
    backward(dloss) → dz (B, c), and None for y
    """
    rows = np.arange(len(z))
    largest = z.max(-1, keepdims=True)                   # subtracted, so that exp cannot overflow; it cancels
    e = np.exp(z - largest)
    total = e.sum(-1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) + largest[:, 0] - z[rows, y])

    def backward(dloss=1.0):
        dz = e / total                                   # p
        dz[rows, y] -= 1                                 # − y
        return dloss * dz / len(z), None

    return loss, backward


books = np.array([0])                                    # the answer, in a batch of one row
loss, loss_backward = cross_entropy(z_tame[None], books)
dz = loss_backward()[0][0]                               # (4,)
by_op = ops.cross_entropy(z_tame[None], books)[1]()[0][0]
print(f"\n  loss −ln p(books) = {loss:.3f} nats\n  by hand, p − y      {dz}\n  ops.cross_entropy   {by_op}")
expect("by hand − ops.cross_entropy, largest entry", at_most(1e-12), abs(dz - by_op).max(), form="{:.0e}")
expect("sum of the gradient's entries", at_most(1e-12), abs(dz.sum()), form="{:.0e}")
report = gradcheck(cross_entropy, z_tame[None], books)
expect("gradcheck's verdict", "PASS", report.verdict)
print(f"  {report}")

# %% [markdown]
# Before z comes the linear layer, whose backward gives $dW = (p - y) \cdot x^\top$. Word i's row of W moves along x, in
# proportion to how much $p_i$ was too small or too large. The lecture ends this example by asking how to change W so
# that "books" gets a larger probability:
#
# $$
# W \leftarrow W - \alpha \cdot (p - y) \cdot x^\top
# $$
#
# **Expect** p(books), 0.24, to grow with every step. How far in five, with α = 0.01? (We start from a W that gives the
# smaller scores: W scaled row by row.)

# %%
W_tame = W * (z_tame / z)[:, None]                       # its scores are 1.8, −1.9, 2.9, −0.9
walk = []                                                # probabilities and loss before each step
for _ in range(6):
    scores, linear_backward = ops.linear(x[None], W_tame.T)
    loss, loss_backward = cross_entropy(scores, books)
    walk.append((*ops.softmax(scores)[0][0], loss))
    dscores, _ = loss_backward()
    _, dW, _ = linear_backward(dscores)                  # (3, 4)
    if len(walk) == 1:
        from_formula = abs(dW.T - np.outer(dz, x)).max()
    W_tame = W_tame - 0.01 * dW.T
table(("step", *FOUR, "loss, nats"), dict(enumerate(walk)), "{:.4f}", title="steps down the gradient, α = 0.01")
expect("dW of ops.linear − (p − y)·xᵀ, largest entry", at_most(1e-12), from_formula, form="{:.0e}")
expect("least growth of p(books) in a step", above(0), np.diff([row[0] for row in walk]).min(), form="{:.3f}")
expect("p(books) after five steps", about(0.68, within=0.005), walk[-1][0], form="{:.3f}")
show(lab_02.softmax_layer(FOUR, {
    "scores z": z_tame, "exp(z)": e, "probabilities p": p, "gradient p − y": dz,
}, right="books"), "02_softmax_layer")  # fmt: skip

# %% [markdown]
# ## 3. Composition: from T vectors to one
#
# A history is T vectors; the layer above expects one.
#
# | composition | e | its size | backward: what word t's vector gets |
# | :--- | :--- | :--- | :--- |
# | sum | $x_1 + \dots + x_T$ | n | de, the same for every word |
# | mean | $(x_1 + \dots + x_T)/T$ | n | de/T, the same for every word |
# | maximum | $\max_t x_t$, entry by entry | n | de in the entries where it is the largest, else 0 |
# | product | $\prod_t x_t$, entry by entry | n | de times the product of the *other* words' entries |
# | concatenation | $[x_1; \dots; x_T]$ | T·n | its own piece of de |
#
# Addition does not care about order, nor do the maximum and the product. So after any of the first four, no layer above
# can tell who bit whom, however powerful it is. The maximum has a gradient for one word in each entry (the first, if
# several are equally large), and the product has a danger of its own: the more words, the closer it is to 0, or the
# larger it is.
#
# **Expect** "man bites dog" and "dog bites man" to differ for one of the five only. If de = 1, what do the gradients of
# the three words add up to in each entry, for sum, mean, maximum and concatenation?

# %%
PHRASES = "man bites dog", "dog bites man"
phrases = [vocabulary.encode(phrase.split()) for phrase in PHRASES]
small_table = np.random.default_rng(5).standard_normal((c, 8))


def mean(x):
    """e = (x_1 + … + x_T)/T

    x (B, T, n)  →  e (B, n)
    backward(de) → dx (B, T, n)
    """
    T = x.shape[1]
    return x.sum(1) / T, lambda de: np.repeat(de[:, None] / T, T, axis=1)


def concatenate(x):
    """e = [x_1; …; x_T]

    x (B, T, n)  →  e (B, T·n)
    backward(de) → dx (B, T, n), each word's own piece of de
    """
    return x.reshape(len(x), -1), lambda de: de.reshape(x.shape)


COMPOSE = {"sum": ops.sum_pool, "mean": mean, "maximum": ops.max_pool, "product": ops.product_pool,
           "concatenation": concatenate}

# %%
X = small_table[np.stack(phrases)]                       # (2, T, n): two phrases of T = 3 words, n = 8
composed = {}

print("\n3. Composition: 'man bites dog' and 'dog bites man', T = 3, n = 8")
GRADIENTS = {"sum": 3, "mean": 1, "maximum": 1, "concatenation": 3}      # of all three words together, in each entry
for name, compose in COMPOSE.items():
    e, compose_backward = compose(X)
    composed[name] = e
    distance = above(1) if name == "concatenation" else at_most(1e-12)
    expect(f"{name}: distance of the two phrases", distance, np.linalg.norm(e[0] - e[1]), form="{:.3g}")
    if name in GRADIENTS:
        of_all = compose_backward(np.ones_like(e))[0].sum(0)     # (n,)
        expect(f"{name}: sum of the words' gradients", about(GRADIENTS[name], 1e-12), of_all[0], form="{:.0f}")
expect("maximum, product: gradcheck's verdicts", "PASS, PASS", ", ".join(
    gradcheck(COMPOSE[name], X).verdict for name in ("maximum", "product")))  # fmt: skip

show(lab_02.compositions(PHRASES, composed), "02_compositions")

# %% [markdown]
# Does a language model need the order? Shakespeare inverts verb and subject often enough to find out. How many of the
# six words most frequent after "thou art" are among the six after "art thou"? A model that sums has to give both
# histories the same probabilities.

# %%
def next_words(phrase, most=6):
    """The most frequent words after a phrase of two words, their counts, and the phrase's own count."""
    a, b = vocabulary.encode(phrase.split())
    after = ids[2:][(ids[:-2] == a) & (ids[1:-1] == b)]
    counts = np.bincount(after, minlength=c)
    best = np.argsort(-counts, kind="stable")[:most]
    return best, counts[best], len(after)


following = {phrase: next_words(phrase) for phrase in ("thou art", "art thou", "I have", "have I")}
table(("", "times", "what follows, with counts"),
      {phrase: (times, listed(vocabulary, best, counts, "{}")) for phrase, (best, counts, times) in following.items()},
      title="What follows in the corpus")  # fmt: skip
for first, second, in_common in (("thou art", "art thou", 1), ("I have", "have I", 2)):
    both = np.intersect1d(following[first][0], following[second][0])
    expect(f"words among both sixes: {first}, {second}", in_common, len(both))

# %% [markdown]
# Concatenation keeps the order because each position has its own weights. That has a price: for k hidden units, the
# others need n·k weights, concatenation T·n·k. And what the model learns about a word in position 1 it has to learn
# again for position 2. `02b_window_on_shakespeare.py` trains all five, and comes back to this in its last section.
#
# ## 4. The fixed-window model
#
# | step | its size | |
# | :--- | :--- | :--- |
# | $x_t = \text{row } w_t \text{ of } E$ | (n) | the vectors of the last T words |
# | $e = [x_1; \dots; x_T]$ | (T·n) | concatenation |
# | $h = \tanh(e \cdot W + b_1)$ | (k) | the hidden layer |
# | $z = h \cdot U + b_2$ | (c) | scores |
# | $p = \text{softmax}(z)$, loss $= -\ln p_y$ | | the softmax layer of section 2 |
#
# Everything is learned: E, W, $b_1$, U, $b_2$. (Bengio et al. have one more matrix, a direct connection from e to the
# scores. They say that it can be left out; the lecture does, and so do we.)
#
# Backward through the hidden layer, with $a = e \cdot W + b_1$: the slope of tanh is $1 - \tanh^2$, so
#
# $$
# da = dh \cdot (1 - h^2), \qquad de = da \cdot W^\top, \qquad dW = e^\top \cdot da, \qquad db_1 = \sum_{\text{rows}} da
# $$
#
# We take the lecture's sizes: n = 4, T = 4, so e has 16 numbers; k = 12 hidden units. Two windows of its sentence are
# the batch. In the second one "the" occurs twice.
#
# Which shapes do the values have, with B = 2 in front?

# %%
def hidden_layer(e, W, b):
    """h = tanh(e·W + b)

    e (B, T·n), W (T·n, k), b (k,)  →  h (B, k)
    backward(dh) → de, dW, db, each of the shape of its input
    """
    h = np.tanh(e @ W + b)

    def backward(dh):
        da = dh * (1 - h * h)                            # (B, k); a = e·W + b
        return da @ W.T, e.T @ da, da.sum(0)

    return h, backward


sentence = "as the proctor started the clock the students opened their books".split()
tiny = Vocabulary(sentence)
windows = tiny.encode("the students opened their books".split() + "the clock the students opened".split()).reshape(2, 5)
rng = np.random.default_rng(4)
model = FixedWindowModel(rng.standard_normal((len(tiny), 4)), T=4, k=12)             # in float64, to compare closely
model.readout.W.data = rng.standard_normal((12, len(tiny))) / 4                      # U, b₁ and b₂ would start at 0,
model.hidden.b.data, model.readout.b.data = rng.standard_normal(12), rng.standard_normal(len(tiny))    # and hide errors
E, W, b_1, U, b_2 = (parameter.data for parameter in model.parameters().values())

# %%
history, target = windows[:, :-1], windows[:, -1]        # (B, T), (B,)
x, embedding_backward = ops.embedding(E, history)        # (B, T, n)
e, concatenate_backward = concatenate(x)                 # (B, T·n)
h, hidden_backward = hidden_layer(e, W, b_1)             # (B, k)
z, readout_backward = ops.linear(h, U, b_2)              # (B, c)
loss, loss_backward = cross_entropy(z, target)           # one number, the mean over the batch

values = {
    "history": history, "x = E[history]": x, "e = [x_1; …; x_T]": e, "h = tanh(e·W + b₁)": h, "z = h·U + b₂": z,
}  # fmt: skip
table(None, {name: str(value.shape) for name, value in values.items()},
      title=f"4. The fixed-window model, forward; loss {loss:.4f} nats")  # fmt: skip
shapes = [(2, 4), (2, 4, 4), (2, 16), (2, 12), (2, len(tiny))]
expect("shapes are those of the table above", True, [value.shape for value in values.values()] == shapes)

# %% [markdown]
# Backward: the same five steps from the last to the first. Each takes the gradient of its output and returns those of
# its inputs. "dq" is short for $\partial\,\text{loss}/\partial q$.
#
# Which row of dE is the sum of three pieces of dx, and which is 0?

# %%
dz, _ = loss_backward(1.0)                               # (p − y)/B
dh, dU, db_2 = readout_backward(dz)                      # dz·Uᵀ, hᵀ·dz, Σ dz
de, dW, db_1 = hidden_backward(dh)                       # da·Wᵀ, eᵀ·da, Σ da
dx = concatenate_backward(de)                            # each word's own piece
dE, _ = embedding_backward(dx)                           # each piece to its word's row; twice "the": the sum of both

pairs = (dz, z), (dh, h), (dU, U), (db_2, b_2), (de, e), (dW, W), (db_1, b_1), (dx, x), (dE, E)
the = tiny.index["the"]
places = np.argwhere(history == the)
pieces = sum(dx[b, t] for b, t in places)
print("\n  backward")
expect("gradients of another shape than their value", 0, sum(d.shape != value.shape for d, value in pairs))
expect("places where 'the' occurs", 3, len(places))
expect("row of dE for 'the' − the sum of its pieces", at_most(1e-12), abs(dE[the] - pieces).max(), form="{:.0e}")
expect("largest entry of the row of dE for 'books'", 0, abs(dE[tiny.index["books"]]).max())

# %% [markdown]
# ### Two independent checks
#
# The first is `FixedWindowModel.loss`, which does the same in one call. It must agree up to rounding. But if both made
# the same mistake, they would still agree. The second check, `gradcheck`, uses no formula: it moves parameters and
# measures how the loss changes.
#
# (The checker's last line says that the twins, faster compiled versions of these functions that run in training, agree
# with the formulas.)

# %%
model_loss, backward = model.loss(windows)
backward()
both = list(zip(model.parameters().values(), (dE, dW, db_1, dU, db_2), strict=True))
off = max(abs(parameter.grad - gradient).max() for parameter, gradient in both)
report = gradcheck(model.loss, windows, params=model.parameters(), name="the fixed-window model's loss")
print(f"\n{report}")
expect("loss by hand − model.loss", at_most(1e-12), abs(loss - model_loss), form="{:.0e}")
expect("greatest difference of the five gradients", at_most(1e-12), off, form="{:.0e}")
expect("parameters whose gradient passes gradcheck", 5, sum(each.verdict == "PASS" for each in report.tensors))

# %% [markdown]
# ### What is the hidden layer for?
#
# One could leave it out: $z = e \cdot U + b$. With concatenation that is $z = b + \sum_t x_t \cdot U_t$, with $U_t$ the
# rows of U for position t. Each word of the window adds its own scores, and no word can change what *another* one
# means.
#
# The classic example of what such sums cannot do is XOR, "one or the other, but not both". As a language: two
# answers, then whether they agree.
#
#     yes yes same    no no same    yes no different    no yes different
#
# If "yes" in position 1 raises the score of "same", it does so in "yes no" as well. Guess the loss without a hidden
# layer, and with one.

# %%
answers = Vocabulary("yes no same different".split())
xor = answers.encode("yes yes same no no same yes no different no yes different".split()).reshape(4, 3)


def train_xor(k, steps=400):
    """(loss, p of "same" after each window) of a model with k hidden units; k = 0: without a hidden layer."""
    rng = np.random.default_rng(1)
    embeddings = rng.standard_normal((4, 2))
    if k:
        model = FixedWindowModel(embeddings, T=2, k=k)
        fit(Training(model, repeat(xor), SGD(1.0)), steps=steps, validate=lambda: 0.0, every=steps)
        logits = model.logits(xor[:, :-1])
    else:
        U, b = rng.standard_normal((4, 4)), np.zeros(4)
        for _ in range(steps):
            x, embedding_backward = ops.embedding(embeddings, xor[:, :-1])
            logits, linear_backward = ops.linear(x.reshape(4, 4), U, b)
            _, loss_backward = cross_entropy(logits, xor[:, -1])
            dx, dU, db = linear_backward(loss_backward()[0])
            dembeddings, _ = embedding_backward(dx.reshape(x.shape))
            for parameter, gradient in ((U, dU), (b, db), (embeddings, dembeddings)):
                parameter -= 1.0 * gradient
    return cross_entropy(logits, xor[:, -1])[0], ops.softmax(logits)[0][:, answers.index["same"]]


xor_trained = {"no hidden layer": train_xor(0), "8 hidden units, tanh": train_xor(8)}
table(("p(same) after", *(words_of(answers, pair[:2]) for pair in xor)),
      {name: same for name, (_, same) in xor_trained.items()}, "{:.3f}", title="XOR as a language")  # fmt: skip
for (label, (loss, _)), expected in zip(xor_trained.items(), (about(0.693, 0.005), below(0.01))):
    expect(f"{label}: loss, nats", expected, loss, form="{:.3f}")

# %% [markdown]
# ## What to remember
#
# - A one-hot row times a table is a row of the table. Look it up.
# - The gradient of softmax and cross-entropy is p − y. The layers before it only apply the chain rule.
# - Sum, mean, maximum and product discard word order; concatenation keeps it, with separate weights for each position.
# - Without a hidden layer, no word can change what another one means.
#
# Next: `02b_window_on_shakespeare.py` trains this model on 250,000 words.
#
# **Try:** XOR with one hidden unit, with two; the four sentences about movies with n = 1; phrases of four words in
# section 3.
