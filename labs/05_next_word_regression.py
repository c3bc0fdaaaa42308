# %% [markdown]
# # Lab 05: predicting the next word's vector
#
# Source: ESE-2000 Lab 6, "Language transformers", Tasks 6.4 and 6.5. Lab 04 made the word vectors that are used here.
#
# The first language model of the path with attention in it, and an instructive failure. You will
#
# - follow one head of one transformer layer through its three equations, with all shapes,
# - see that a transformer does not know the order of its words, and check its gradients,
# - train it to predict the vector of the next word from the 32 words before it, with a squared error,
# - get an error that looks excellent, and take it apart: what is it to be compared with? which word does a predicted
#   vector stand for? what would the best possible prediction be?
#
# Letters: **B** batch, **T** history length, **n** embedding dimension, **H** heads, **m** dimension of a head,
# **L** layers, **c** different words.
#
# It takes three to four minutes on two CPU cores, most of it training; with `--quick`, which takes 64 dimensions
# instead of 256 and a tenth of the steps, ten seconds. On a machine with other work, set OPENBLAS_NUM_THREADS=1:
# threads that wait for each other can cost ten times as much.

# %%
from _common import quick_mode, show, show_page, shown
from _drawing import lab_05
from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.gradcheck import gradcheck
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
STEPS = 400 if QUICK else 4000
MEASURED = 3000 if QUICK else 10_000    # the number of words of each part that predictions are measured on


# %% [markdown]
# ## Task 6.4: the transformer
#
# One layer of H heads, equations (13) to (15) of the source. It writes a history as n × T, a word per *column*. Here
# a word is a *row*: X is (T, n), the transpose. So matrices multiply from the other side, in reverse order:
#
# | | source | here |
# | :--- | :--- | :--- |
# | (13) | $A = \text{sm}((Q X)^\top (K X))$ | $A = \text{softmax}((X Q)(X K)^\top)$ |
# | (14) | $Y = W^\top V X A^\top$ | $Y = A\,(X V)\,W$ |
# | (15) | $X_\ell = X_{\ell-1} + \sigma(\sum_h Y^h)$ | $X_\ell = X_{\ell-1} + \text{relu}(\sum_h Y^h)$ |
#
# A is (T, T), and its row t is what word t attends to. Y is (T, n): what it gathers from there.
#
# Q, K, V are (n, m) here and W is (m, n), for each head. mini_tf keeps the heads' matrices side by side in one
# (n, H·m), so that one product serves all of them; head h owns the columns from h·m to (h + 1)·m.
#
# **Expect** the three equations, written out head by head, to give exactly what the layer gives.

# %%
rng = np.random.default_rng(0)
layer = TransformerLayer(n=6, H=2, m=3, rng=rng, dtype=np.float64)
X = rng.standard_normal((5, 6))                                                      # (T, n): five words
attention = layer.attention
total = np.zeros_like(X)
print("Task 6.4: one layer, T = 5, n = 6, H = 2, m = 3")
for h in range(attention.H):
    own = slice(h * attention.m, (h + 1) * attention.m)
    query, key, value = (X @ each.W.data[:, own] for each in (attention.query, attention.key, attention.value))
    A, _ = ops.softmax(query @ key.T)                                                # (T, T)          (13)
    Y = A @ value @ attention.output.W.data[own]                                     # (T, n)          (14)
    total += Y
    print(f"  head {h}: query {query.shape}  key {key.shape}  value {value.shape}  A {A.shape}  Y {Y.shape}")
    print(f"          what word 0 attends to: {A[0].round(2)}, sum {A[0].sum():.0f}")
by_hand = X + ops.relu(total)[0]                                                     # (T, n)          (15)
by_layer, _ = layer(X[None])                                                         # (1, T, n)
print(f"  by hand and by layer differ by at most {abs(by_hand - by_layer[0]).max():.0e}")

# %% [markdown]
# ### It does not know the order
#
# Nothing in (13) to (15) says where a word stands. Permute the words of the input, and the output is permuted in the
# same way: $\Phi(P X) = P\,\Phi(X)$. That is called equivariance. Average the output over the words, as Task 6.5 will,
# and the order is gone: the mean of $\Phi(P X)$ is the mean of $\Phi(X)$.
#
# **Expect** differences of rounding size, for a model of two layers.

# %%
tiny = LanguageTransformer(rng.standard_normal((20, 6)), T=5, L=2, H=2, m=3, readout="average")
few = np.array([[3, 1, 4, 15, 9]])                                                   # (1, T) word ids
order = np.array([4, 2, 0, 3, 1])
Phi, _ = tiny.trunk(few)
Phi_permuted, _ = tiny.trunk(few[:, order])
print("\nPermutations, L = 2")
print(f"  largest |Φ(P X) − P Φ(X)|             expected 0   measured {abs(Phi_permuted - Phi[:, order]).max():.0e}")
difference = abs(tiny.head(Phi_permuted)[0] - tiny.head(Phi)[0]).max()
print(f"  largest difference of the averages    expected 0   measured {difference:.0e}")

# %% [markdown]
# ### Are the gradients right?
#
# Every backward in mini_tf is written by hand. The checker moves each parameter a little, measures how the loss
# changes, and compares. **Expect** PASS for all eight matrices of the two layers. (An entry may be set aside: where the
# kink of a relu lies within the step, there is no slope to measure.)

# %%
windows = np.array([[3, 1, 4, 15, 9, 2], [6, 5, 3, 5, 8, 9]])                        # (B, T + 1)
report = gradcheck(tiny.loss, windows, params=tiny.parameters(), name="the loss of Task 6.5")
print(f"\n{report}")
assert report

# %% [markdown]
# Where do these gradients come from? The explorer writes a page with every line of this loss, forward and backward, and
# the array that each has made. Open it, choose *to the backward*, and press → until the gradient reaches the matrices.

# %%
show_page(explore(tiny, windows[:1], bugs=["residual_relu: skip path lost"]), "05_backward")

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
# The source calls $\Phi(X) \cdot \mathbf{1}$ the average. The vector $\mathbf{1}$ sums; the average needs the factor
# $1/T$. It is not a matter of taste. Because of the skip connection $\Phi(X)$ is X plus something, and relu makes that
# something positive or zero. So $\hat x$ is *at least* the mean of the history, entry by entry; with the sum it would
# be at least 32 times that, and no training could bring it down.
#
# And the source adds up the squared errors of a word's n entries, where `ops.mse` takes their mean. So its loss is n
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
# ### What would be a good value?
#
# A loss alone says nothing. These predictions need no training:
#
# - zero;
# - the mean of the training words' vectors, the same for every history;
# - the last word's vector: "the next word is the last one again";
# - the mean of the history, which is the transformer before it has learned anything (L = 0 layers);
# - a table of averages: for each word, the mean vector of what followed it in the training part. (For a word seen k
#   times, its own average has weight k, and the mean of all words weight 5.) It counts pairs, so it knows one word.
#
# **Expect** the literal sum to be enormous, and "the last word again" to be twice as bad as zero.

# %%
words = corpus.ids[: -(len(corpus.test) - T)]                                        # the first 90 %
mean_vector = vectors[words].mean(axis=0)                                            # (n,)
pairs = sparse.csr_array((np.ones(len(words) - 1, np.float32), (words[:-1], words[1:])), shape=(c, c))
followers = (pairs @ vectors + 5 * mean_vector) / (pairs.sum(axis=1)[:, None] + 5)   # (c, n)


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


constant_loss = loss(baselines["mean training vector"](test), test)


def print_row(name, predict):
    on_train, on_test = loss(predict(train), train), loss(predict(test), test)
    print(f"  {name:<28} {on_test / n:>10.5f} {on_train:>9.4f} {on_test:>9.4f} {1 - on_test / constant_loss:>9.1%}")


heading = f"\n  {'prediction':<28} {'MSE test':>10} {'n·train':>9} {'n·test':>9} {'R² test':>9}"
print(heading)
for name, predict in baselines.items():
    print_row(name, predict)

# %% [markdown]
# $R^2 = 1 - \text{loss}/\text{loss of the mean training vector}$: the share of the variance that a prediction explains.
# The table's training loss flatters it, because it has counted those very pairs.
#
# ### Training
#
# The sizes are your choice. The source suggests L = 6, H = 8, m = 64: 3.1 million numbers to learn with n = 256, and
# half a second to a second per step on two cores, more than half an hour for one pass over the corpus. Set
# `RECOMMENDED = True` above if you have the time. L = 2, H = 4, m = 16 has 131 thousand numbers, takes a twentieth of
# the time, and loses nothing: after 1,000 steps (18 minutes beside other work) the large model had a test loss n·MSE of
# 0.694; the small one ends at 0.689.

# %%
model = LanguageTransformer(vectors, T=T, **SIZES, readout="average")
print(f"\nTraining {SIZES}, {model.numbers_to_learn():,} numbers to learn, {STEPS:,} batches of 64 histories")
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
    """x̂ for each window's history: (words, n), a few hundred at a time."""
    return np.concatenate([model.head(model.trunk(some[:, :-1])[0])[0] for some in np.array_split(windows, 50)])


print(heading)
for name in ("zero", "mean training vector", "table: after the last word"):
    print_row(name, baselines[name])
print_row("transformer", predict)
prediction, target = predict(test), vectors[test[:, -1]]                             # (words, n) each

# %% [markdown]
# The test MSE is close to the training MSE: nothing was learned by heart. And it is a few thousandths. Is that good?

# %%
validation = last_words(corpus.validation)
names = "zero", "mean training vector", "table: after the last word"
levels = {name: loss(baselines[name](validation), validation) for name in names}
show(lab_05.training(rows, n, levels), "05_training")

# %% [markdown]
# ## "A small MSE, and yet not good predictions. Explain."
#
# ### 1. The error is small because the vectors are
#
# A row of $V_n$ is shorter than 1, and has n entries: the mean square of an entry is below $1/n$. So *any* small
# prediction has an MSE of a few thousandths; even zero does. Multiply all vectors by 10, and every MSE is 100 times as
# large. $R^2$ does not change, and $R^2$ says it: the transformer does not even reach the best constant vector.

# %%
print("\nExplain 1: the size of the vectors")
print(f"  mean square of an entry of the targets {np.mean(target**2):.5f}, the bound 1/n {1 / n:.5f}")
print(f"  MSE of the transformer                 {np.mean((prediction - target) ** 2):.5f}")

# %% [markdown]
# ### 2. It cannot see which word came last
#
# The average readout of an equivariant transformer is a function of the *bag* of words. Shuffle each history, and the
# prediction stays the same. But what comes next depends most on what came last: after "my", "lord". The table of
# averages knows the last word and nothing else, and it explains about 15 % of the variance.
#
# **Expect** the same loss for shuffled histories, to about seven digits.
#
# There is a second handicap: relu only adds. $\hat x$ is the history's mean plus something that is never negative, so
# any excess in the 32 words cannot be subtracted.

# %%
shuffled = np.concatenate([rng.permuted(test[:, :-1], axis=1), test[:, -1:]], axis=1)
print("\nExplain 2: order")
print(f"  n·test   in order {loss(prediction, test):.6f}   shuffled {loss(predict(shuffled), test):.6f}")
added = prediction - history_mean(test)
print(f"  smallest entry of x̂ − mean of the history   expected 0 or more   measured {added.min():.0e}")

# %% [markdown]
# ### 3. A prediction is no word
#
# c points in n dimensions are words; everything between them is not. Take as the predicted word the one whose vector is
# nearest to $\hat x$.
#
# **Expect** the nearest word to be hardly ever the right one. And **expect** a strange one: predictions are short
# vectors, and the 14,000 rare words lie near zero. To be near $\hat x$ a word has to be nothing in particular.


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
print("\nExplain 3: distances")
for what, lengths in (
    ("length of a target", np.linalg.norm(target, axis=1)),
    ("length of a prediction", np.linalg.norm(prediction, axis=1)),
    ("from x̂ to the right word", to_target),
    ("from x̂ to the nearest word", to_nearest),
    ("between two words of the text", between),
):
    print(f"  {what:<30} median {np.median(lengths):.2f}")
different, times = np.unique(nearest, return_counts=True)
print(f"  nearest words: {len(different)} different ones for {len(test):,} histories; the most common:")
for which in np.argsort(-times)[:5]:
    i = different[which]
    print(f"    {shown(vocabulary.words[i]):<12} for {times[which] / len(test):>5.1%} of the histories; "
          f"occurs {counts[i]} times in training, ‖x‖ = {np.linalg.norm(vectors[i]):.2f}")

from_prediction = {"from x̂ to the nearest word": to_nearest, "from x̂ to the right word": to_target}
show(lab_05.distances(from_prediction, {"between two words of the text": between}), "05_distances")

# %% [markdown]
# Between two words of the text there are three typical distances: 0 (the same word twice, or two rare ones), 1 (a
# frequent word and a rare one) and $\sqrt{2}$ (two frequent ones, nearly orthogonal). A prediction is near only to the
# rare ones.
#
# ### 4. The best prediction is an average, by design
#
# Which $\hat x$ minimises the mean of $\lVert \hat x - x \rVert^2$, if the next word is word i with probability
# $\pi_i$? The mean of the vectors,
#
# $$
# \hat x = \sum_i \pi_i\,x_i = V_n^\top \pi
# $$
#
# If "king" and "lord" were equally likely, a perfect model of language, trained with this loss, would answer with a
# point halfway between them, which is neither. But then $V_n \hat x = V_n V_n^\top \pi$ is nearly π, at least for
# frequent words: read that way, the prediction is a list of probabilities. The word with the largest $(V_n \hat x)_i$
# is a better guess than the nearest one.
#
# **Expect** $V_n \hat x$ of the transformer to be close to the plain frequencies of words, and the model to guess
# little more than the most frequent word.

# %%
as_probabilities = (prediction @ vectors.T).mean(axis=0)                             # (c,)
print("\nExplain 4: V x̂ read as probabilities, mean over the test words")
print(f"  {'word':<8} {'V x̂':>8} {'frequency in training':>23}")
for i in np.argsort(-counts)[:8]:
    print(f"  {shown(vocabulary.words[i]):<8} {as_probabilities[i]:>8.3f} {counts[i] / len(words):>23.3f}")

right = test[:, -1]
print(f"\n  {'how often is the right word guessed?':<42} {'nearest':>8} {'largest V x̂':>12}")
print(f"  {'always the most frequent word':<42} {np.mean(right == counts.argmax()):>8.1%}")
table = baselines["table: after the last word"](test)
for name, guess in (("transformer", prediction), ("table: after the last word", table)):
    by_distance, by_score = nearest_words(guess)[0], nearest_words(guess, by="product")[0]
    print(f"  {name:<42} {np.mean(by_distance == right):>8.1%} {np.mean(by_score == right):>12.1%}")

# %% [markdown]
# In the plane of the first two dimensions: words (size by frequency), and predictions for test histories. The
# predictions are a cloud among the words, and the cloud lies at the mean of all words.

# %%
named = {vocabulary.words[i]: i for i in np.argsort(-np.linalg.norm(vectors[:, :2], axis=1))[:5]}
show(lab_05.plane(vectors, counts, prediction[:1000], mean_vector, named), "05_predictions")

# %% [markdown]
# ### 5. Words that were never seen cost nothing
#
# The vocabulary is that of the whole corpus, so every test word has a vector, even the 4.3 % of the test words that
# never occur in the training part. No model can predict them. A squared error does not show that: their vectors are
# almost zero, and so a small $\hat x$ is close to all of them. **Expect** them to have the smallest error of all.

# %%
error = ((prediction - target) ** 2).sum(axis=1)                                     # (words,)
unseen = counts[right] == 0
print("\nExplain 5: test words and how often they occur in training")
print(f"  {'occurrences':<14} {'share':>7} {'n·test':>8}")
for name, chosen in (("never", unseen), ("1 to 100", (counts[right] <= 100) & ~unseen), ("more", counts[right] > 100)):
    print(f"  {name:<14} {chosen.mean():>7.1%} {error[chosen].mean():>8.4f}")

# %% [markdown]
# ## What to take along
#
# - Compare a loss with the loss of a constant before you believe it.
# - A squared error asks for the mean of all possible answers. For words, the mean is no answer.
# - What is wanted is a probability for each word, and a loss that counts words: lab 06 puts a softmax over the
#   vocabulary on top (Task 6.6). Lab 07 tells the transformer where its words stand (Task 6.10).
#
# Try: which T is best for the mean of the history, and why? Give the model `positions="geometric"` and
# `position_scale=0.06`, and train again. It knows the order now. Why is its loss higher? (The encoding is added to X,
# the average keeps its mean, and relu cannot subtract it again.)
