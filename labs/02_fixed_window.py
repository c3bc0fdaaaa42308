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
# - put vectors together by sum, mean and concatenation, and see which compositions discard word order,
# - walk forward and backward through Bengio's model, one op after the other, and hold the gradients against two judges.
#
# `02b_window_on_shakespeare.py` trains it, against the bar that counting sets, and looks at what its vectors know.
#
# It takes a few seconds on one CPU core, with or without `--quick`.
#
# Letters: **B** batch, **T** words in the window, **n** size of a word vector, **k** hidden units, **c** words in the
# vocabulary. All losses are cross-entropies in nats per word. In mini_tf a word is a row, and a layer is y = x·W; the
# lecture writes columns and W·x. Its matrices are ours, transposed.

# %%
import time
from itertools import repeat

from _common import cosines, quick_mode, show, words_of
from _drawing import lab_02
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
# training that shows what that is good for. Four sentences, in which "movie" and "film" stand in the same places, and
# so do "love" and "hate". A model with n = 3 reads three words and predicts the next. (It is the model of section 4;
# for now you can read on without it.) Its vectors start at random, and small, so that what they learn outweighs where
# they start.
#
# **Expect** cosines near 1 for movie–film and love–hate afterwards. Nobody told the model that they are alike: they
# stand in the same places, so the gradients pushed them the same way.

# %%
toy = six.encode([word for verb in ("love", "hate") for noun in ("movie", "film") for word in ("I", verb, "the", noun)])
toy = np.concatenate([toy.reshape(4, 4)[order].ravel() for order in np.random.default_rng(0).permuted(
    np.tile(np.arange(4), (60, 1)), axis=1)])            # sixty times the four sentences, in random order


toy_model = FixedWindowModel(0.1 * np.random.default_rng(2).standard_normal((6, 3)), T=3, k=8)
cosines_before = cosines(toy_model.embedding.table.data)
fit(Training(toy_model, RandomWindows(toy, 3, 64), Adam(0.02)), steps=300, validate=lambda: 0.0,
    every=300)                                           # nothing to validate: the last parameters are kept
cosines_after = cosines(toy_model.embedding.table.data)
print("\n  cosine              one-hot   random vectors   after training")
for a, b in (("movie", "film"), ("love", "hate"), ("movie", "love"), ("I", "the")):
    i, j = six.index[a], six.index[b]
    print(f"  {a + ' – ' + b:<18}{O[i] @ O[j]:>9.2f}{cosines_before[i, j]:>17.2f}{cosines_after[i, j]:>17.2f}")

show(lab_02.likeness(six.words, {
    "one-hot: all equally unlike": O @ O.T,
    "random vectors, n = 3: by chance": cosines_before,
    "trained vectors: by their company": cosines_after,
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
# So "look up row i" *is* a linear layer on one-hot vectors, with the multiplications by zero left out. The gradient
# is the same too. If a word stands twice in a batch, its row gets the sum of both gradients.
#
# Now the corpus of the labs, to see what this costs at full size.
#
# **Expect** no difference in the values, differences of rounding size in the gradients, and a factor of about a hundred
# or more in time. (`ops.linear` also computes the gradient of the one-hot vectors, which nobody needs; even without
# that the factor would be large.) Times are the best of three.

# %%
tokens = tokenize(shakespeare("lab"))
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
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


# %%
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
# $$
# z = W \cdot x, \qquad
# p_i = \frac{\exp(z_i)}{\sum_j \exp(z_j)}
# $$
#
# z has a score for each word: the dot product of x with the word's row of W.
#
# The lecture's example: three numbers stand for the history "students opened their", and four words may follow. The
# recording gives the first row of W (1.2, −0.3, 0.9), its first column (1.2, 0.2, 8.9, 4.5), and the scores 1.8, −11.9
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
# With scores as far apart as 13 and −12 one word takes all: softmax looks at *differences* of scores, and a difference
# of 11 is a factor of $e^{11}$ = 60,000. So the lecture continues with tamer ones, 1.8, −1.9, 2.9, −0.9. It reads the
# result as 0.24, 0.0006, 0.73 and 0.02, and calls the third word once "stamps" and once "lamps".
#
# **Expect** 0.24, 0.006, 0.73, 0.016: the second number has one zero too many in the recording (with 0.0006 the four
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
# The loss is −ln of the probability of the word that actually came, y. By hand:
#
# $$
# \begin{aligned}
# L &= -\ln p_y = \ln \sum_j \exp(z_j) - z_y \\
# \frac{\partial L}{\partial z_i} &= \frac{\exp(z_i)}{\sum_j \exp(z_j)} - 1(i = y) = p_i - 1(i = y)
# \end{aligned}
# $$
#
# In words: what the model said, minus what was right. The gradient is 0 only if the right word has all of the
# probability, and its entries always add up to 0: a word can gain only what others lose.
#
# **Expect** p with 1 subtracted at "books", and the same from `ops.cross_entropy`. `gradcheck` knows neither formula:
# it moves each $z_i$ a little and measures the loss.

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
# From z on it is the linear layer's backward: $\partial L/\partial W = (p - y) \cdot x^\top$. Word i's row of W moves
# along x, in proportion to how much $p_i$ was too small or too large. The lecture ends this example with the question
# how W could be changed so that "books" gets more. So:
#
# $$
# W \leftarrow W - \alpha \cdot (p - y) \cdot x^\top
# $$
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
    _, dW, _ = linear_backward(dscores)                  # (3, 4)
    if step == 0:
        np.testing.assert_allclose(dW.T, np.outer(by_hand, x))           # (p − y)·xᵀ
    W_tame = W_tame - 0.01 * dW.T

show(lab_02.softmax_layer(FOUR, {
    "scores z": z_tame, "exp(z)": e, "probabilities p": p, "gradient p − y": by_hand,
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
# | concatenation | $[x_1; \dots; x_T]$ | T·n | its own piece of de |
#
# Addition does not care about order. So after a sum or mean nothing can tell who bit whom, however clever the layers
# above are.
#
# **Expect** distance 0 between "man bites dog" and "dog bites man" for sum and mean, mean = sum/3, and a distance far
# from 0 for concatenation.

# %%
PHRASES = "man bites dog", "dog bites man"
phrases = [vocabulary.encode(phrase.split()) for phrase in PHRASES]
small_table = np.random.default_rng(5).standard_normal((c, 8))


def mean(x):
    e, backward = ops.mean_pool(x)
    return e, lambda de: backward(de)[0]                 # the second gradient, of a mask, is None


COMPOSE = {
    "sum": ops.sum_pool,
    "mean": mean,
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

show(lab_02.compositions(PHRASES, composed), "02_compositions")

# %% [markdown]
# Does a language model need the order? Shakespeare inverts verb and subject often enough for us to look: we count what
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
# in place 2. `02b_window_on_shakespeare.py` comes back to this in its last section.
#
# ## 4. The fixed-window model
#
# | step | its size | |
# | :--- | :--- | :--- |
# | $x_t = \text{row } w_t \text{ of } E$ | (n) | the vectors of the last T words |
# | $e = [x_1; \dots; x_T]$ | (T·n) | concatenation |
# | $a = e \cdot W + b_1$ | (k) | |
# | $h = \tanh(a)$ | (k) | the hidden layer |
# | $z = h \cdot U + b_2$ | (c) | scores |
# | $p = \text{softmax}(z)$, $L = -\ln p_y$ | | the softmax layer of section 2 |
#
# Everything is learned: E, W, $b_1$, U, $b_2$. (Bengio et al. have one more term, a direct connection e·D from the
# vectors to the scores. They found it to be optional, and the lecture leaves it out, as we do.)
#
# We take the lecture's sizes: n = 4, T = 4, so e has 16 numbers; k = 12 hidden units. Two windows of its sentence are
# the batch. In the second one "the" stands twice.
#
# **Expect** the shapes of the formula, with B = 2 in front, and on the way back, at each step, a gradient of the same
# shape as the value it belongs to.

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
# Backward: the same six steps from the last to the first. Each takes the gradient of its output and returns those of
# its inputs. "dq" is short for $\partial L/\partial q$.

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
# both made the same mistake, we would still agree. The second judge, `gradcheck`, has no formula: it moves parameters
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
# One could leave it out: $z = e \cdot U + b$. With concatenation that is $z = b + \sum_t x_t \cdot U_t$, with $U_t$ the
# rows of U for place t. Each word of the window adds its own scores, and no word can change what *another* one means.
#
# The classic example of what such sums cannot do is XOR, "one or the other, but not both". As a language: two
# answers, then whether they agree.
#
#     yes yes same    no no same    yes no different    no yes different
#
# If "yes" in place 1 speaks for "same", it does so in "yes no" as well. **Expect** ln 2 = 0.693 nats without a hidden
# layer, a coin toss, and near 0 with one.

# %%
answers = Vocabulary("yes no same different".split())
xor = answers.encode("yes yes same no no same yes no different no yes different".split()).reshape(4, 3)


def train_xor(k, steps=400):
    """(loss, p of "same" after each window) of a model with k hidden units; k = 0: without hidden layer."""
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
# ## What to keep
#
# - A one-hot row times a table is a row of the table. Look it up.
# - The gradient of softmax and cross-entropy is p − y. Everything in front of it is the chain rule.
# - Sum and mean discard word order; concatenation keeps it, with weights for each place.
# - Without a hidden layer, no word can change what another one means.
#
# Next: `02b_window_on_shakespeare.py` trains this model on 250,000 words.
#
# **Try:** XOR with one hidden unit, with two; the four sentences about movies with n = 1; phrases of four words in
# section 3.
