# %% [markdown]
# # Lab 05: predicting the next word's vector
#
# **Short path** (`README.md`), read in 15 minutes: Task 6.4; of 6.5 only why a small error is not a good word.
#
# - **Goals:** follow one head of a transformer through its equations, with all shapes; show that it ignores the order
#   of words; say why an excellent squared error can come with useless predictions.
# - **Before it:** Lab 04 (its vectors); Lab 04b or exercise 06 (attention). **Work:** about 4 hours.
# - **Hand in:** `one_head`, `average_error`, `mean_followers`; an experiment from “Try”.
#
# Source: ESE-2000 Lab 6, "Language transformers", Tasks 6.4 and 6.5, <https://dsd.seas.upenn.edu/lab6>. Lab 04 made
# the word vectors that are used here.
#
# This is the first language model in these labs that uses attention, and an instructive failure.
#
# Letters: **B** batch, **T** history length, **n** embedding dimension, **H** heads, **m** dimension of a head,
# **L** layers, **c** vocabulary size.
#
# It runs in three to five minutes on one CPU core, most of it training; with `--quick`, which uses 64 dimensions
# instead of 256 and far fewer steps, less than a minute. On a machine that is busy with other work, set
# OPENBLAS_NUM_THREADS=1: threads that wait for each other can be slower than one alone.

# %%
from functools import partial

from _common import quick_mode, show, show_page, shown, strict, table
from _drawing import lab_05
from _drawing.architecture import architecture
from _expect import about, above, at_least, at_most, below, expect
from mini_tf import ops
from mini_tf.backend import devices, to_device, to_host
from mini_tf.explore import explore
from mini_tf.gradcheck import gradcheck, judge
from mini_tf.layers import TransformerLayer
from mini_tf.models import LanguageTransformer
from mini_tf.progress import training_progress
from mini_tf.text import shakespeare
from mini_tf.training import Adam, RandomWindows, Schedule, Training, Watcher, fit, mean_loss, windows_ending_at
from mini_tf.training.language import prepare

import numpy as np
from scipy import sparse

QUICK = quick_mode("Lab 05: a transformer that predicts the next word's vector")
RECOMMENDED = False                     # True: the sizes that the source recommends, see Task 6.5

T = 32
n = 64 if QUICK else 256
SIZES = {"L": 6, "H": 8, "m": 64} if RECOMMENDED else {"L": 2, "H": 4, "m": 16}
LEARNING_RATE = 3e-4 if RECOMMENDED else 3e-3
STEPS = 240 if QUICK else 4000
MEASURED = 3000 if QUICK else 10_000    # the number of words of each part that predictions are measured on


# %% [markdown]
# ## Task 6.4: the transformer
#
# If attention, queries, keys and values are new to you, `04b_attention_from_nothing.py` builds them up one idea at a
# time.
#
# One layer of H heads, equations (13) to (15) of the source. It writes a history as n × T, a word per *column*. Here a
# word is a *row*: X is (T, n), the transpose. So products are transposed, too, with their factors in reverse order:
#
# | | source | here |
# | :--- | :--- | :--- |
# | (13) | $A = \text{sm}((Q X)^\top (K X))$ | $A = \text{softmax}((X Q)(X K)^\top)$ |
# | (14) | $Y = W^\top V X A^\top$ | $Y = A\,(X V)\,W$ |
# | (15) | $X_\ell = X_{\ell-1} + \sigma(\sum_h Y^h)$ | $X_\ell = X_{\ell-1} + \text{relu}(\sum_h Y^h)$ |
#
# A is (T, T); its row t says how much word t attends to each word. Y is (T, n): what each word gathers from them.
#
# Q, K, V are (n, m) here and W is (m, n), for each head. mini_tf keeps the heads' matrices side by side in one
# (n, H·m), so that one product serves all of them; head h owns the columns from h·m to (h + 1)·m.
#
# **Expect** the three equations, written out head by head, to give what the layer gives, up to rounding.

# %%
def one_head(X, Q, K, V, W):
    """One head, (13) and (14): X (T, n); Q, K, V (n, m); W (m, n) → A (T, T), whose rows sum to 1, and Y (T, n)"""
    A, _ = ops.softmax((X @ Q) @ (X @ K).T)                                          # (T, T)          (13)
    return A, A @ (X @ V) @ W                                                        # (T, n)          (14)


rng = np.random.default_rng(0)
layer = TransformerLayer(n=6, H=2, m=3, rng=rng, dtype=np.float64)
X = rng.standard_normal((5, 6))                                                      # (T, n): five words
attention = layer.attention
total = np.zeros_like(X)
rows = []
for h in range(attention.H):
    own = slice(h * attention.m, (h + 1) * attention.m)
    Q, K, V = (each.W.data[:, own] for each in (attention.query, attention.key, attention.value))
    A, Y = one_head(X, Q, K, V, attention.output.W.data[own])
    total += Y
    rows.append((f"head {h}", *(str(each.shape) for each in (X @ Q, X @ K, X @ V, A, Y)), str(A[0].round(2))))
table(("", "X Q", "X K", "X V", "A", "Y", "what word 0 attends to"), rows,
      title="Task 6.4: one layer, T = 5, n = 6, H = 2, m = 3")  # fmt: skip
by_hand = X + ops.relu(total)[0]                                                     # (T, n)          (15)
by_layer, _ = layer(X[None])                                                         # (1, T, n)
expect("largest difference from the layer's output", at_most(1e-12), abs(by_hand - by_layer[0]).max())

# %% [markdown]
# ### A transformer without positions ignores word order
#
# Nothing in (13) to (15) says where a word stands. Permute the words of the input, and the output is permuted in the
# same way: $\Phi(P X) = P\,\Phi(X)$. That is called equivariance. Average the output over the words, as Task 6.5 will,
# and the order is gone: the mean of $\Phi(P X)$ is the mean of $\Phi(X)$.

# %%
few_vectors = rng.standard_normal((20, 6))                                           # (c, n)
tiny = LanguageTransformer(few_vectors, T=5, L=2, H=2, m=3, readout="average")
few = np.array([[3, 1, 4, 15, 9]])                                                   # (1, T) word ids
order = np.array([4, 2, 0, 3, 1])
Phi, _ = tiny.trunk(few)
Phi_permuted, _ = tiny.trunk(few[:, order])
print("\nPermutations, L = 2")
expect("largest |Φ(P X) − P Φ(X)|", at_most(1e-12), abs(Phi_permuted - Phi[:, order]).max())
difference = abs(tiny.head(Phi_permuted)[0] - tiny.head(Phi)[0]).max()
expect("largest difference of the averages", at_most(1e-12), difference)

# %% [markdown]
# ### Are the gradients right?
#
# Every backward in mini_tf is written by hand. The checker moves each parameter a little, measures how the loss
# changes, and compares. (An entry may be set aside: if the kink of a relu lies within the step, there is no slope to
# measure.) The loss is that of Task 6.5, below: the squared error of an average. Its backward is short enough to be
# written out here.
#
# **Expect** PASS for this backward and for all eight matrices of the two layers.

# %%
def average_error(Phi, x):
    """Mean squared error of the average over a history: Φ (B, T, n), targets x (B, n) → a number, and its backward."""
    off = Phi.mean(axis=1) - x                                                       # (B, n)

    def backward(dloss):
        """dloss: a number → dΦ (B, T, n), dx (B, n)"""
        dx = -2 * dloss * off / off.size
        return np.repeat(-dx[:, None] / Phi.shape[1], Phi.shape[1], axis=1), dx

    return np.mean(off**2), backward


windows = np.array([[3, 1, 4, 15, 9, 2], [6, 5, 3, 5, 8, 9]])                        # (B, T + 1)
report = gradcheck(tiny.loss, windows, params=tiny.parameters(), name="the loss of Task 6.5")
print(f"\n{report}")
Phi, x = tiny.trunk(windows[:, :-1])[0], few_vectors[windows[:, -1]]                 # (B, T, n), (B, n)
expect("matrices of the two layers with a PASS", 8, str(report).count("  PASS  "))
expect("all their gradients are right", True, bool(report))
expect("average_error's gradients are right", True, bool(judge(average_error, Phi, x)))
expect("|average_error − the model's loss|", at_most(1e-12), abs(average_error(Phi, x)[0] - tiny.loss(windows)[0]))

# %% [markdown]
# Where do these gradients come from? The explorer writes a page with every line of this loss, forward and backward, and
# the array that it computed. Open it, click *to the backward*, and press → until the gradient reaches the matrices.

# %%
show_page(explore(tiny, windows[:1], bugs=["residual_relu: skip path lost"]), "05_backward")

# %% [markdown]
# ### The same lines on a GPU
#
# CuPy has NumPy's functions for arrays on a GPU. `one_head` runs on either, unchanged: `@` is the array's own, and
# `ops.softmax` asks `array_module(x)` for the library of its argument. `average_error` does not, because it calls
# `np.repeat` and `np.mean` by name. On a machine without a GPU such a line would go unnoticed. So mini_tf's tests use a
# *strict* array, which lives on the CPU and refuses, as CuPy's does, to become NumPy's by itself.
#
# **Expect** the head to give the same result on each kind of array there is, and `average_error` to be refused for all
# but NumPy's.

# %%
kinds = {"NumPy": np.asarray, "strict": strict(), "CuPy": partial(to_device, device="gpu")}
there = {"NumPy", "strict" if kinds["strict"] else None, "CuPy" if len(devices()) > 1 else None} - {None}
print(f"\nOne head on each kind of array; here are {' and '.join(sorted(there))}")
own = slice(0, attention.m)
matrices = [each.W.data[:, own] for each in (attention.query, attention.key, attention.value)]
matrices.append(attention.output.W.data[own])
_, by_numpy = one_head(X, *matrices)
for name in sorted(there):
    A, Y = one_head(*(kinds[name](each) for each in (X, *matrices)))
    try:
        said = average_error(kinds[name](Phi), kinds[name](x))[0]
    except TypeError as error:
        said = error
    print(f"  average_error: {said}")
    expect(f"{name}: Y is an array like A and X", True, type(Y) is type(A) is type(kinds[name](X)))
    expect(f"{name}: largest difference from NumPy's Y", at_most(1e-12), abs(to_host(Y) - by_numpy).max())
    expect(f"{name}: average_error is refused", name != "NumPy", isinstance(said, TypeError))

# %% [markdown]
# ## Task 6.5: the next word's vector
#
# A history $X_u$ is T = 32 words. The prediction is the mean of the transformer's output over the history, the target
# is the vector of the word that follows:
#
# $$
# \hat x = \frac{1}{T} \sum_t \Phi(X_u)_t, \qquad
# \text{loss} = \text{mean of } (\hat x - x_{u+T})^2
# $$
#
# The source calls $\Phi(X) \cdot \mathbf{1}$ the average. But multiplying by $\mathbf{1}$ gives the sum; the average
# needs the factor $1/T$, and the factor matters. Because of the skip connection $\Phi(X)$ is X plus something, and relu
# makes that something positive or zero. So $\hat x$ is *at least* the mean of the history, entry by entry; with the sum
# it would be at least 32 times that, and no amount of training could bring it down.
#
# The source also adds up the squared errors of a word's n entries, where `ops.mse` takes their mean, so its loss is n
# times ours. Both are printed below.
#
# ### Data
#
# 90 % of the words are for training, the last 10 % for the test. The last twentieth of the 90 % is held out, to see
# during training how well unseen text is predicted. The word vectors come from the whole corpus, as in the source.

# %%
print("\nTask 6.5: data")
corpus = prepare(shakespeare("lab"), n, T, say=lambda line: print(f"  {line}"))
vocabulary, vectors, c = corpus.vocabulary, corpus.embeddings, len(corpus.vocabulary)


def last_words(part):
    """(MEASURED, T + 1): windows whose last words are spread evenly over a part of the corpus."""
    return windows_ending_at(part, np.linspace(T, len(part) - 1, MEASURED).astype(int), T)


train, test = last_words(corpus.train), last_words(corpus.test)


def loss(prediction, windows):
    """The source's loss: squared error, summed over the n entries of a word, averaged over words."""
    return float(n * ops.mse(prediction, vectors[windows[:, -1]])[0])


# %% [markdown]
# ### What would be a good loss?
#
# A loss means nothing by itself. These predictions need no training:
#
# - zero;
# - the mean of the training words' vectors, the same for every history;
# - the last word's vector: "the next word is the last one again";
# - the mean of the history, which is the transformer before it has learned anything (L = 0 layers);
# - the sum of the history, which is the source's formula taken literally;
# - a table of averages: for each word w, the mean vector of what followed it in the training part. (Its own average has
#   weight count(w), the mean of all words weight δ = 5.) It counts pairs, so it uses one word of history.
#
# Which has the greatest loss, and which the smallest?

# %%
def mean_followers(words, vectors, mean_vector, delta):
    """Row w: (sum of the vectors that followed w + δ·mean) / (their number + δ): words (N,), vectors (c, n) → (c, n)"""
    c = len(vectors)
    pairs = sparse.csr_array((np.ones(len(words) - 1, np.float32), (words[:-1], words[1:])), shape=(c, c))
    return (pairs @ vectors + delta * mean_vector) / (pairs.sum(axis=1)[:, None] + delta)


words = corpus.ids[: -(len(corpus.test) - T)]                                        # the first 90 %
mean_vector = vectors[words].mean(axis=0)                                            # (n,)
followers = mean_followers(words, vectors, mean_vector, delta=5)                     # (c, n)


def history_mean(windows):
    return np.stack([vectors[history].mean(axis=0) for history in windows[:, :-1]])  # (words, n)


baselines = {
    "zero": lambda windows: np.zeros((len(windows), n), vectors.dtype),
    "mean training vector": lambda windows: np.tile(mean_vector, (len(windows), 1)),
    "the last word again": lambda windows: vectors[windows[:, -2]],
    "sum of the history": lambda windows: T * history_mean(windows),
    "mean of the history": history_mean,
    "table: after the last word": lambda windows: followers[windows[:, -2]].astype(vectors.dtype),
}

# %%
test_losses = {}
constant_loss = loss(baselines["mean training vector"](test), test)


def print_losses(predictions):
    """A table of {name: a function of windows}; their losses on the test are kept in test_losses."""
    rows = {}
    for name, predict in predictions.items():
        on_train, on_test = loss(predict(train), train), loss(predict(test), test)
        test_losses[name], rows[name] = on_test, (on_test / n, on_train, on_test, 1 - on_test / constant_loss)
    print()
    table(("prediction", "MSE test", "n·train", "n·test", "R² test"), rows, ("{:.5f}", "{:.4f}", "{:.4f}", "{:.1%}"))


print_losses(baselines)
expect("sum of the history ÷ zero, test loss", above(50), test_losses["sum of the history"] / test_losses["zero"])
last_again = test_losses["the last word again"]
expect("the last word again ÷ zero, test loss", about(1.9, 0.1), last_again / test_losses["zero"])

# %% [markdown]
# $R^2 = 1 - \text{loss}/\text{loss of the mean training vector}$: the share of the variance that a prediction explains.
# The table's training loss is flattering, because the table was made by counting those very pairs.
#
# ### Training
#
# First choose the sizes. The source suggests L = 6, H = 8, m = 64: 3.1 million trainable parameters with n = 256, and
# half a second to a second per step on two cores, more than half an hour for one pass over the corpus. Set
# `RECOMMENDED = True` above if you have the time. L = 2, H = 4, m = 16 has 131 thousand. These sizes are chosen for
# speed alone: the lab does not show what the large model reaches, and the expectations below were measured with the
# small one.
#
# The picture is drawn from the model: its boxes are the layers with the shapes of their parameters, its arrows the
# arrays of one call. The ⊕ adds what went around a box to what came through it.

# %%
model = LanguageTransformer(vectors, T=T, **SIZES, readout="average")
show(architecture(model), "05_architecture")

# %% [markdown]
# It has 131,072 trainable parameters. Will its test loss be close to its training loss? Will R² be above 0?

# %%
print(f"\nTraining {SIZES}, {model.parameter_count():,} trainable parameters, {STEPS:,} batches of 64 histories")
with training_progress(STEPS, 64 * T) as on_step:
    training = Training(model, RandomWindows(corpus.train, T, 64, rng), Adam(LEARNING_RATE), Schedule(20, STEPS))
    history = fit(
        training, STEPS, validate=lambda: mean_loss(model, corpus.validation, MEASURED), every=STEPS // 10,
        watcher=Watcher(on_step),
    )  # fmt: skip
rows = history.rows
print(f"  {rows[-1]['seconds']:.0f} s of training, {rows[-1]['words_per_second']:,} words a second")


# %%
def predict(windows):
    """x̂ for each window's history: (words, n), computed a few hundred at a time."""
    return np.concatenate([model.head(model.trunk(some[:, :-1])[0])[0] for some in np.array_split(windows, 50)])


names = "zero", "mean training vector", "table: after the last word"
print_losses({name: baselines[name] for name in names} | {"transformer": predict})
transformer_loss = test_losses["transformer"]
expect("trainable parameters", 131_072, model.parameter_count(), quick=32_768)
expect("test loss ÷ training loss", about(1, 0.03), transformer_loss / loss(predict(train), train))
expect("R² of the transformer, test", below(0), 1 - transformer_loss / constant_loss, form="{:.1%}")
prediction, target = predict(test), vectors[test[:, -1]]                             # (words, n) each

# %% [markdown]
# The test MSE is close to the training MSE: hardly anything was memorized. And it is only a few thousandths. Is that
# good?

# %%
validation = last_words(corpus.validation)
levels = {name: loss(baselines[name](validation), validation) for name in names}
show(lab_05.training(rows, n, levels), "05_training")

# %% [markdown]
# ## "A small MSE, and yet not good predictions. Explain."
#
# ### 1. The error is small because the vectors are
#
# A row of $V_n$ is shorter than 1, and has n entries: the mean square of an entry is below $1/n$. So *any* small
# prediction has an MSE of a few thousandths; even zero does. Multiply all vectors by 10, and every MSE is 100 times as
# large. $R^2$ does not change, and it tells the truth: the transformer is worse than a constant, the mean training
# vector.
#
# How much will the transformer gain on predicting zero?

# %%
print("\nExplain 1: the size of the vectors")
expect("mean square of an entry of the targets", below(1 / n), np.mean(target**2), form="{:.5f}")
gained = 1 - transformer_loss / test_losses["zero"]
expect("gain of the transformer over predicting zero", below(0.1), gained, form="{:.1%}")

# %% [markdown]
# ### 2. The model cannot tell which word came last
#
# The average readout of an equivariant transformer is a function of the *bag* of words. Shuffle each history, and the
# prediction stays the same. But what comes next depends most on what came last: after "my", "lord". The table of
# averages knows the last word and nothing else, and it explains about 14 % of the variance.
#
# There is a second handicap: relu can only add. $\hat x$ is the history's mean plus something that is never negative,
# so anything that the 32 words have too much of cannot be subtracted.
#
# **Expect** the same loss for shuffled histories, up to rounding, and no entry of $\hat x$ below the history's mean.

# %%
shuffled = np.concatenate([rng.permuted(test[:, :-1], axis=1), test[:, -1:]], axis=1)
print("\nExplain 2: order")
in_order, out_of_order = transformer_loss, loss(predict(shuffled), test)
print(f"  n·test   in order {in_order:.6f}   shuffled {out_of_order:.6f}")
added = prediction - history_mean(test)                                              # (words, n)
expect("|shuffled ÷ in order − 1|", below(1e-5), abs(out_of_order / in_order - 1))
expect("R² of the table, test", about(0.14, 0.005), 1 - test_losses["table: after the last word"] / constant_loss,
       quick=about(0.163, 0.005), form="{:.1%}")
expect("smallest entry of x̂ − mean of the history", at_least(-1e-6), added.min())

# %% [markdown]
# ### 3. A prediction is not a word
#
# Only c points of the n-dimensional space are words; all other points are not. As the predicted word, take the one
# whose vector is nearest to $\hat x$.
#
# How often will it be the right one, and which words will be the nearest? Predictions are short vectors, and more than
# 13,000 of the 14,295 words have vectors shorter than 0.1.


# %%
def nearest_words(prediction, by="distance"):
    """For each x̂ the word i of smallest ‖x̂ − x_i‖, or of largest x̂·x_i, and the distance between the two."""
    squares = (vectors**2).sum(axis=1) if by == "distance" else np.float32(0)
    found = [(2 * some @ vectors.T - squares).argmax(axis=1) for some in np.array_split(prediction, 50)]
    found = np.concatenate(found)                                                    # (words,)
    return found, np.linalg.norm(prediction - vectors[found], axis=1)


counts = np.bincount(words, minlength=c)
nearest, to_nearest = nearest_words(prediction)
to_target = np.linalg.norm(prediction - target, axis=1)
between = np.linalg.norm(target - rng.permutation(target), axis=1)                   # two words picked from the text
table(("", "median"), {
    "length of a target": np.median(np.linalg.norm(target, axis=1)),
    "length of a prediction": np.median(np.linalg.norm(prediction, axis=1)),
    "from x̂ to the right word": np.median(to_target),
    "from x̂ to the nearest word": np.median(to_nearest),
    "between two words of the text": np.median(between),
}, "{:.2f}", title="Explain 3: distances")  # fmt: skip
different, times = np.unique(nearest, return_counts=True)
common = np.argsort(-times)[:5]
table(("nearest word", "for … of the histories", "occurs in training", "‖x‖"),
      [(shown(vocabulary.words[i]), share, counts[i], np.linalg.norm(vectors[i]))
       for i, share in zip(different[common], times[common] / len(test))], ("{:.1%}", "{}", "{:.2f}"),
      title=f"The most common of {len(different)} different nearest words")  # fmt: skip
expect("the nearest word is the right one", below(0.02), np.mean(nearest == test[:, -1]), form="{:.1%}")
expect("words with a vector shorter than 0.1", above(13_000), np.sum(np.linalg.norm(vectors, axis=1) < 0.1))
expect("length of the nearest word, median", below(0.1), np.median(np.linalg.norm(vectors[nearest], axis=1)))

# %%
typical = np.abs(between[:, None] - np.array([0, 1, np.sqrt(2)])).min(axis=1)        # to the closest of the three
expect("two words of the text, within 0.2 of 0, 1, √2", above(0.7), np.mean(typical < 0.2), form="{:.0%}")
from_prediction = {"from x̂ to the nearest word": to_nearest, "from x̂ to the right word": to_target}
show(lab_05.distances(from_prediction, {"between two words of the text": between}), "05_distances")

# %% [markdown]
# Between two words of the text there are three typical distances: 0 (the same word twice, or two rare ones), 1 (a
# frequent word and a rare one) and $\sqrt{2}$ (two frequent ones, nearly orthogonal). The word nearest to a prediction
# is a rare one.
#
# ### 4. The best prediction is an average, by design
#
# Which $\hat x$ minimizes the mean of $\lVert \hat x - x \rVert^2$, if the next word is word i with probability
# $\pi_i$? The mean of the vectors,
#
# $$
# \hat x = \sum_i \pi_i\,x_i = V_n^\top \pi
# $$
#
# If "king" and "lord" were equally likely, a perfect model of language, trained with this loss, would answer with a
# point halfway between them, which is neither. However, $V_n \hat x = V_n V_n^\top \pi$ is nearly π, at least for
# frequent words: read that way, the prediction is a list of probabilities. For the mean training vector, it is the
# frequencies of the words in the training part. The word with the largest $(V_n \hat x)_i$ is a better guess than the
# nearest one.
#
# The transformer's $V_n \hat x$ is not close to these frequencies: for most of the frequent words it is too high,
# because of what relu added. Subtract the mean of what was added over the test words (one vector for all histories),
# and what remains is, on average, the mean of the histories: its $V_n \hat x$ is much closer.
#
# How often will the model be right, compared with always guessing the most frequent word?

# %%
top = np.argsort(-counts)[:8]
frequency = counts[top] / len(words)
constant, transformer, taken_off = (
    (vectors[top] @ x_hat) / frequency - 1                                           # (8,): relative error
    for x_hat in (mean_vector, prediction.mean(axis=0), prediction.mean(axis=0) - added.mean(axis=0))
)
table(("word", "frequency in training", "V x̂", "off", "without what relu added"),
      [(shown(vocabulary.words[i]), share, share * (1 + off), off, off_without)
       for i, share, off, off_without in zip(top, frequency, transformer, taken_off)],
      ("{:.3f}", "{:.3f}", "{:+.0%}", "{:+.0%}"),
      title="Explain 4: V x̂ read as probabilities, mean over the test words, and by how much it is off")  # fmt: skip
expect("mean training vector: largest error of eight", below(0.01), abs(constant).max(), form="{:.1%}")
expect("of the eight words, too high by over 10 %", at_least(6), np.sum(transformer > 0.1))
expect("largest excess of the eight", above(0.5), transformer.max(), quick=above(0.25), form="{:.0%}")
expect("mean of what relu added, over all entries", above(0), added.mean())
expect("largest error without what relu added", below(0.25), abs(taken_off).max(), form="{:.0%}")

# %%
right = test[:, -1]
most_frequent = np.mean(right == counts.argmax())
shares = {name: [np.mean(nearest_words(guess, by)[0] == right) for by in ("distance", "product")]
          for name, guess in (("transformer", prediction), (names[-1], baselines[names[-1]](test)))}  # fmt: skip
print()
table(("how often is the right word guessed?", "nearest", "largest V x̂"),
      shares | {"always the most frequent word": most_frequent}, "{:.1%}")  # fmt: skip
for name, (by_distance, by_score) in shares.items():
    expect(f"{name.split(':')[0]}: largest V x̂ − nearest", above(0.05), by_score - by_distance, form="{:.1%}")
more_often_right = shares["transformer"][1] - most_frequent
expect("transformer − always the most frequent word", about(0, 0.01), more_often_right, form="{:.1%}")

# %% [markdown]
# The figure shows the plane of the first two dimensions, with the words (size by frequency) and the predictions for
# test histories. The predictions form a cloud among the words, near the mean of all training words.

# %%
named = {vocabulary.words[i]: i for i in np.argsort(-np.linalg.norm(vectors[:, :2], axis=1))[:5]}
show(lab_05.plane(vectors, counts, prediction[:1000], mean_vector, named), "05_predictions")

# %% [markdown]
# ### 5. Words never seen in training cost almost nothing
#
# The vocabulary is that of the whole corpus, so every test word has a vector, even the 4.3 % of the test words that
# never occur in the training part. No model can predict them. A squared error does not show that: their vectors are
# almost zero, and so a small $\hat x$ is close to all of them. Guess their error, compared with the mean.

# %%
error = ((prediction - target) ** 2).sum(axis=1)                                     # (words,)
unseen = counts[right] == 0
groups = {"never": unseen, "1 to 100": (counts[right] <= 100) & ~unseen, "more": counts[right] > 100}
table(("occurrences in training", "share of the test words", "n·test"),
      {name: (chosen.mean(), error[chosen].mean()) for name, chosen in groups.items()}, ("{:.1%}", "{:.4f}"),
      title="Explain 5: rare words")  # fmt: skip
all_unseen = np.mean(counts[corpus.ids[len(words) :]] == 0)
expect("test words that never occur in training", about(0.043, 0.0005), all_unseen, form="{:.1%}")
expect("error of the unseen ones ÷ mean error", below(1 / 3), error[unseen].mean() / error.mean())

# %% [markdown]
# ## What to remember
#
# - Compare a loss with the loss of a constant before you believe it.
# - A squared error is minimized by the mean of all possible answers. For words, the mean is not an answer.
# - What is needed is a probability for each word, and a loss on those probabilities: lab 06 puts a softmax over the
#   vocabulary on top (Task 6.6). Lab 07 gives the transformer the positions of its words (Task 6.10).
# - `model.to("gpu")` trains the same model on a GPU: the formulas take their functions from the array's library, NumPy
#   or CuPy. `gpu.md` in this folder explains why that alone is not fast, and what a kernel is.
#
# Try: which T is best for the mean of the history, and why? Give the model `positions="geometric"` and
# `position_scale=0.06`, and train again. Now the model knows the order. Does its loss fall? (The encoding is added to
# X, its mean stays in the average, and relu cannot subtract it again.)
