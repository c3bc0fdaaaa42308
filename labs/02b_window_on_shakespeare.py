# %% [markdown]
# # Lab 02b: the fixed-window model on Shakespeare
#
# Sources: UMass CS685 (2020), lecture 2, "Neural language models"; USC CSCI 567, lecture 8 (fixed-window models);
# Bengio, Ducharme, Vincent, Jauvin 2003, "A neural probabilistic language model", JMLR 3.
#
# `02_fixed_window.py` took the model apart, op by op, on toy sentences. Here it learns from 250,000 words. You will
#
# - train it against the bar that counting sets, and compare only models that have learned from the same words,
# - see what it knows that counting does not, and mix the two,
# - let it overfit, and compare windows and compositions,
# - look at what its word vectors know, and at how far its predictions move when a word is replaced by a similar one.
#
# It takes about two minutes on one quiet CPU core, ten seconds with `--quick`. On a machine that has other work, set
# OPENBLAS_NUM_THREADS=1.
#
# Letters: **B** batch, **T** words in the window, **n** size of a word vector, **k** hidden units, **c** words in the
# vocabulary. All losses are cross-entropies in nats per word. The model:
#
# $$
# x_t = \text{row } w_t \text{ of } E, \quad
# e = [x_1; \dots; x_T], \quad
# h = \tanh(e \cdot W + b_1), \quad
# z = h \cdot U + b_2, \quad
# p = \text{softmax}(z)
# $$

# %%
import time
from functools import partial

from _common import cosines, quick_mode, show, words_of
from _drawing import lab_02
from mini_tf import ops
from mini_tf.decoding import continuations, generate, sample
from mini_tf.metrics import log_softmax_at, perplexity, uniform_cross_entropy
from mini_tf.models import FixedWindowModel, NGramModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import Adam, RandomWindows, Schedule, Training, Watcher, fit, split_words, windows_ending_at

import numpy as np

QUICK = quick_mode("Lab 02b: the fixed-window model on Shakespeare, beside counting")

# %% [markdown]
# ## 1. Training on Shakespeare
#
# ### The bar
#
# Before training a network, know what counting reaches. The last tenth of the corpus is the test, the last twentieth of
# what is left the validation part, the rest is for training. All models of this lab predict the same words.
#
# The bar is the n-gram model of Lab 01 with order 3 and discount 0.9. But mind what it has counted. With *all* words
# before the test it reaches 5.05 nats. Our model keeps the validation words aside, to choose when to stop, and does
# not learn from them. The fair comparison is an n-gram model that learns from the same words as ours.
#
# **Expect** 5.05 with all words before the test, and clearly more without the 13,000 validation words. More than half
# of them come from the play that the test begins in, The Taming of the Shrew, of which the training words have nothing.
# See how often its LUCENTIO occurs.

# %%
tokens = tokenize(shakespeare("lab"))
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c = len(vocabulary)
REACH = 8                                                # the longest window below
train, validation, test = split_words(ids, REACH)        # validation and test begin with REACH words of context
before_test = ids[: len(ids) - (len(test) - REACH)]
MOST = 500 if QUICK else 4000                            # the number of evenly spaced words measured in comparisons,
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


# %%
clock = time.perf_counter()
ngrams = {order: NGramModel(order, c, discount=0.9).fit(train) for order in (1, 2, 3)}
ngrams_all = {order: NGramModel(order, c, discount=0.9).fit(before_test) for order in (1, 2, 3)}
bars = {order: cross_entropy(ngrams[order], test) for order in ngrams}
bars_all = {order: cross_entropy(ngrams_all[order], test) for order in ngrams}

print(f"\n1. The bar; cross-entropy on {len(test) - REACH:,} test words, nats per word")
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
# One shortcut saves many steps. U starts at 0, so an untrained model says $\text{softmax}(b_2)$. With $b_2 = 0$ that is
# $1/c$ for every word, and the first hundred steps go into learning which words are frequent. We can simply write that
# down: $b_2 = \ln p(w)$ of the unigram model, counted on the training words.
#
# **Expect** 9.568 with $b_2 = 0$, and the unigram loss with $b_2 = \ln p$, before any training.

# %%
T, n, k, batch, rate = (4, 32, 32, 64, 6e-3) if QUICK else (4, 64, 128, 256, 6e-3)
STEPS, COMPARED, SHORT = (150, 50, 60) if QUICK else (900, 250, 240)     # main training, each comparison, overfitting


def new_model(words=train, **options):
    """An untrained model that knows how often each word occurs in `words`, and no more."""
    embeddings = 0.1 * np.random.default_rng(0).standard_normal((c, n), dtype=np.float32)
    model = FixedWindowModel(embeddings, **{"T": T, "k": k} | options)
    log_unigram = NGramModel(1, c, discount=0.9).fit(words).logits(np.zeros((1, 0), int))[0]
    model.readout.b.data[:] = log_unigram
    return model


def learn(model, words, steps, every, batch=batch, **options):
    """A History. The validation loss is taken of MOST evenly spaced validation words."""
    training = Training(
        model, RandomWindows(words, model.T, batch), Adam(rate), Schedule(steps // 12, steps),
        rng=np.random.default_rng(1),                    # of dropout
    )  # fmt: skip
    validate = partial(cross_entropy, model, validation, MOST // 2)
    return fit(training, steps, validate, every, **options)


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
# the fair bar of 5.38. The training loss lies below the validation loss, and that is not memorization: in less than one
# pass no window is seen twice. The validation words are harder. They have names that the training words do not have.

# %%
print(f"\n  {STEPS} steps of {batch} windows: {STEPS * batch / len(train):.2f} times over the training words")
print(f"  {'step':>6}{'training':>11}{'validation':>12}   nats per word")
model = new_model()
untrained_table = model.embedding.table.data.copy()


def print_row(row, is_best):
    print(f"  {row['step']:>6}{row['train_loss']:>11.3f}{row['validation_loss']:>12.3f}{'   best so far' * is_best}")


history = learn(model, train, STEPS, STEPS // 10, patience=3, watcher=Watcher(on_row=print_row))
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
# The n-gram model knows exactly what it has seen. The neural model knows that only roughly, but it also knows something
# about what it has not seen. So test them separately: where the two words before the target stood together in training,
# and where they never did.
#
# And mix them: $p = \lambda \cdot p_{\text{neural}} + (1 - \lambda) \cdot p_{\text{n-gram}}$, with the λ that is best
# on the *validation* words. Bengio et al. did that too.
#
# **Expect** the neural model, once it is fully trained, to gain most after unseen pairs of words, and the mixture to be
# better than either. (Words after unseen pairs are easier to guess, for both: a rare word often ends a phrase, and a
# punctuation mark or a line break follows. The second column counts that.)

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
# The validation words have done their work: all choices are made. Now the model may learn from them too. We let it
# continue for two passes over these words, at a sixth of the rate. (Two and a sixth are guesses: no data are left to
# choose them with, and the test is not for that.)
#
# **Expect** a gain without any new idea: words from the test's own play. The n-gram model gains more, because it adopts
# a name at once. But the mixture, with the λ from above, falls clearly below the bar of 5.05 (with `--quick`, just
# below what counting reaches on the fewer words measured): the network knows something that counting does not.

# %%
rounds = 2 * (len(validation) - T) // batch
fit(Training(model, RandomWindows(validation, T, batch), Adam(rate / 6)), steps=rounds, validate=lambda: 0.0,
    every=rounds)                                        # there is nothing left to validate with
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
# **Expect** the training loss to fall and fall, with a drop each time the text starts again, and the validation loss to
# turn at the end of the first pass. `fit` keeps the parameters of the best measurement, so nothing is lost but time;
# `patience=2` would save that too: it stops after two measurements without a better one. Dropout learns more slowly,
# and keeps the validation loss from rising far. No miracles: stopping early is about as good here.

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

lines = {name: -log_ngram[order].mean() for order, name in ((1, "unigram"), (2, "bigram"), (3, "trigram"))}
lines |= {"this model": neural, "mixture": mixed}
by_dropout = {label: run.rows for label, run in short_runs.items()}
times_over = [row["step"] * 128 / len(few) for row in by_dropout["no dropout"]]
show(lab_02.training(history.rows, lines, len(train), by_dropout, times_over, len(few)), "02_training")

# %% [markdown]
# ### Concatenation, sum, mean; and how long a window?
#
# Six short trainings with the same steps, batches and rates: concatenation with T = 1, 2, 4, 8, and the other two
# compositions with T = 4. A model with T = 1 sees as much as a bigram model, with T = 2 as much as a trigram model.
#
# **Expect** concatenation far ahead of sum and mean. The order of four words matters, and most of all *which word is
# the last*. A sum does not know that, and even T = 1 does better: one word, known to be the last, tells more than four
# in no order. (Sum and mean are the same model: W can compensate for the factor 1/T. Only the training differs.) Of the
# windows, expect T = 2 to be better than T = 1, and little gain after that: a longer window offers more information but
# has more to learn, and these trainings are too short for it. (With `--quick` they hardly begin.)

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
# W has a block $W_t$ of n rows for each place. The contribution of place t to the hidden layer is $x_t \cdot W_t$. Its
# mean length over test histories says how much the place counts.
#
# **Expect** the last word to count most, and each word less the further back it is, though longer training would use
# those more. And the weights of one place know nothing of those of another: the cosine of $W_t$ and $W_8$, entry by
# entry, is near 0.

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

losses = {name: {T: loss for (each, T), (_, loss, _) in compared.items() if each == name}
          for name in ("concatenation", "sum", "mean")}  # fmt: skip
named = {"bigram: 1 word": bars_here[2], "trigram: 2 words": bars_here[3]}
show(lab_02.windows(losses, named, COMPARED, lengths), "02_windows")

# %% [markdown]
# ## 2. What the vectors know
#
# Words that are used alike get similar gradients, so their vectors should move together. We look at words that occur 50
# times or more in training, and ask for the nearest by cosine: before the training, and after it.
#
# **Expect** chance before. After: "he" near "she" and "it", "will" near "shall", "my" near "thy". They are not
# synonyms. What is alike is the company that they keep: the words that may come after them. Nouns and names do worse.
# They are rarer, and what follows "king" is not so different from what follows any other noun. (With `--quick` the
# training is too short for most of that.)

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


print("\n2. Nearest words by cosine")
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
components = {}
print(f"\n  mean cosine of two words of{'the same group':>18}{'different groups':>18}")
for label, table in (("before training", untrained_table), ("after training", trained_table)):
    alike = cosines(table[members])
    print(f"  {label:<27}{alike[same].mean():>18.2f}{alike[different].mean():>18.2f}")
    centred = table[members] - table[members].mean(0)
    left_vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left_vectors[:, :2] * values[:2]            # (words, 2)
    components[label] = places, (values[:2] ** 2).sum() / (values**2).sum()
words = [vocabulary.words[i] for i in members]
show(lab_02.word_vectors(words, group_of, GROUPS, components), "02_word_vectors")

# %% [markdown]
# ## 3. Continuations
#
# The most probable next words after a prefix, by counting and by the network.
#
# **Expect** the trigram model to be sure of itself where it has seen the last two words often, and both to like the
# frequent words.

# %%
print("\n3. The most probable next words")
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
# their". So take test histories and replace the last word by its nearest neighbour among the trained vectors. How far
# do the predictions move? The measure is the **total variation** distance of two distributions:
#
# $$
# \text{TV}(p, q) = \frac{1}{2} \cdot \sum_w \lvert p(w) - q(w) \rvert \qquad
# \text{0: the same; 1: nothing in common}
# $$
#
# The number alone says little: a smooth model moves little anyway. So we also replace the word by a *random* one of
# about the same frequency.
#
# **Expect** the network to move much less for a neighbour than for a random word: a ratio well below 1. For the trigram
# model, expect a ratio closer to 1. It is not 1, and that is good news: the network found the neighbours, yet the
# counts agree that they are alike. But the trigram model cannot make use of it.

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
    p, q = (ops.softmax(model.logits(each).astype(np.float64))[0] for each in (histories, others))
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
# ## 4. What it cannot do
#
# - **Weights grow with T.** W has T·n·k numbers, and each place learns its own. The lecture names this as the model's
#   main weakness. Look at the table before you agree: at our sizes W is small beside E and U, which depend on c. What
#   hurts first is not the memory. It is that place 83 has to learn again what place 92 already knows about "students",
#   from the same few words of text.
# - **Beyond the window there is nothing.** (The lecture says that the window holds the words that follow the current
#   one. It means those that come before the predicted one.)
# - **Compared with n-grams**, whose tables could have $c^T$ rows: they store only what occurs, so at most one entry for
#   each word of the text and order. The network's numbers do not grow with the text at all.
#
# **Expect** W to overtake E and U together at a window of a few hundred words.

# %%
print("\n4. Numbers to learn, by the formulas, for n = 64, k = 128")
print(f"  {'T':>6}{'E = c·n':>13}{'W = T·n·k':>13}{'U = k·c':>13}{'W, share of all':>18}")
for length in (1, 4, 8, 100, 1000):
    sizes = c * 64, length * 64 * 128, 128 * c
    print(f"  {length:>6,}" + "".join(f"{size:>13,}" for size in sizes) + f"{sizes[1] / sum(sizes):>18.1%}")
print(f"  the trigram model stores {sum(ngrams[3].grams):,} counts of grams")

# %% [markdown]
# ## What to keep
#
# - Sum and mean discard word order; concatenation keeps it, with weights for each place.
# - Compare models that have learned from the same words. The validation words were worth more than a network.
# - The network shares what it learns between words that are used alike. Counting is exact where it has seen. Mixed,
#   they are better than either.
#
# Next: Lab 03 reads word after word with one set of weights, whatever the length.
#
# **Try:** `activation="relu"`; n = 16 or 256; `train_embeddings=False`, so that the vectors stay random; eigenvector
# embeddings of Lab 04 as the start; a second hidden layer; T = 16 with dropout.
