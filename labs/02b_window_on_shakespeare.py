# %% [markdown]
# # Lab 02b: the fixed-window model on Shakespeare
#
# Sources:
#
# - CS685, University of Massachusetts Amherst, 2020 (M. Iyyer), lecture on neural language models:
#   <https://people.cs.umass.edu/~miyyer/cs685/>, a recording at <https://www.bilibili.com/video/BV1BL411t7RV>; "the
#   lecture" below.
# - CSCI 567, University of Southern California, 2024, lecture 8, fixed-window models (its slides have no address; they
#   follow <https://web.stanford.edu/class/cs224n/>).
# - Bengio, Ducharme, Vincent, Jauvin 2003, "A neural probabilistic language model", JMLR 3,
#   <https://www.jmlr.org/papers/v3/bengio03a.html>.
#
# `02_fixed_window.py` built the model step by step, on toy sentences. Here it learns from 250,000 words. You will
#
# - train it and compare it with counting, but only with models that have learned from the same words,
# - see what it knows that counting does not, and combine the two in a mixture,
# - make it overfit, and compare window lengths and compositions,
# - look at what its word vectors have learned, and at how much its predictions change when a word is replaced by a
#   similar one.
#
# It takes about three minutes on one CPU core, ten seconds with `--quick`. If other programs keep the machine busy, set
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
from _expect import about, above, at_least, below, between, expect
from mini_tf import ops
from mini_tf.decoding import continuations, generate, sample
from mini_tf.metrics import log_softmax_at, perplexity, uniform_cross_entropy
from mini_tf.models import FixedWindowModel, NGramModel
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import Adam, RandomWindows, Schedule, Training, Watcher, fit, split_words, windows_ending_at

import numpy as np

QUICK = quick_mode("Lab 02b: the fixed-window model on Shakespeare, compared with counting")

# %% [markdown]
# ## 1. Training on Shakespeare
#
# ### The baseline to beat
#
# Before training a network, know what counting reaches. The last tenth of the corpus is the test, the last twentieth of
# the rest is the validation part, and what is left is for training. All models of this lab predict the same words.
#
# The baseline is Lab 01's n-gram model with order 3 and discount 0.9. But note what it has counted. With *all* words
# before the test it reaches 5.05 nats. Our model keeps the validation words aside, to choose when to stop, and does not
# learn from them. The fair comparison is an n-gram model that learns from the same words as ours.
#
# **Expect** 5.05 with all words before the test, and 5.38 without the 13,144 validation words. They matter so much
# because 84 % of them come from the play in which the test begins, The Taming of the Shrew, and none of the training
# words do. (The play begins with a speech of SLY, who occurs in no other.) Its LUCENTIO, for example, occurs 0 times in
# training, 20 times in the validation words, and 41 times in the test.

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

print(f"\n1. The baseline; cross-entropy on {len(test) - REACH:,} test words, nats per word")
print(f"  {'n-gram, learned from':<26}{'training words':>16}{'+ validation words':>20}")
print(f"  {'words to learn from':<26}{len(train):>16,}{len(before_test):>20,}")
print(f"  {'uniform, ln c':<26}{uniform_cross_entropy(c):>16.3f}{uniform_cross_entropy(c):>20.3f}")
for order in ngrams:
    print(f"  {f'order {order}':<26}{bars[order]:>16.3f}{bars_all[order]:>20.3f}")
print(f"  counting and measuring all six took {time.perf_counter() - clock:.1f} seconds")
expect("order 3, training words: nats per test word", about(5.38, within=0.005), bars[3], form="{:.3f}")
expect("order 3, + validation words", about(5.05, within=0.005), bars_all[3], form="{:.3f}")
shrew = len(before_test) - np.flatnonzero(ids == vocabulary.index["SLY"])[0]         # words of it before the test
expect("validation words from The Shrew", about(0.84, within=0.005), shrew / (len(validation) - REACH), form="{:.1%}")
lucentio = [np.sum(part == vocabulary.index["LUCENTIO"]) for part in (train, validation[REACH:], test[REACH:])]
expect("LUCENTIO in training, validation, test", "0, 20, 41", ", ".join(map(str, lucentio)))

# %% [markdown]
# ### The settings
#
# Random initial vectors, n = 64, k = 128, T = 4, Adam. A step costs about 6·B·k·c flops: the product h·U and its two
# backward products are 98 % of all products.
#
# One shortcut saves many steps. U starts at 0, so an untrained model predicts $\text{softmax}(b_2)$. With $b_2 = 0$
# that is $1/c$ for every word, and the first steps are spent on learning which words are frequent. We can simply set
# that at the start: $b_2 = \ln p(w)$ of the unigram model, counted on the training words.
#
# **Expect** ln 14,295 = 9.568 nats with $b_2 = 0$, and the loss of the unigram model with $b_2 = \ln p$, before any
# training.

# %%
T, n, k, batch, rate = (4, 32, 32, 64, 6e-3) if QUICK else (4, 64, 128, 256, 6e-3)
STEPS, COMPARED, SHORT = (150, 50, 60) if QUICK else (900, 250, 240)     # main training, each comparison, overfitting


def new_model(words, **options):
    """An untrained model that knows only how often each word occurs in `words`."""
    embeddings = 0.1 * np.random.default_rng(0).standard_normal((c, n), dtype=np.float32)
    model = FixedWindowModel(embeddings, **{"T": T, "k": k} | options)
    log_unigram = NGramModel(1, c, discount=0.9).fit(words).logits(np.zeros((1, 0), int))[0]
    model.readout.b.data[:] = log_unigram
    return model


def learn(model, words, steps, every, batch, **options):
    """A History. The validation loss is that of MOST/2 evenly spaced validation words."""
    training = Training(
        model, RandomWindows(words, model.T, batch), Adam(rate), Schedule(steps // 12, steps),
        rng=np.random.default_rng(1),                    # of dropout
    )  # fmt: skip
    validate = partial(cross_entropy, model, validation, MOST // 2)
    return fit(training, steps, validate, every, **options)


model = new_model(train)
untrained = cross_entropy(model, test, MOST)
model.readout.b.data[:] = 0
print("\n  parameters: " + ", ".join(f"{name} {p.data.size:,}" for name, p in model.parameters().items()))
print(f"  untrained, on {MOST} test words:")
expect("b₂ = 0: nats per word", about(9.568, within=0.001), cross_entropy(model, test, MOST), form="{:.3f}")
unigram = cross_entropy(ngrams[1], test, MOST)
expect("b₂ = ln p: nats per word", about(unigram, within=0.001), untrained, form="{:.3f}")

# %% [markdown]
# ### The training
#
# **Expect** (without `--quick`) the loss to fall steeply to about 5.5 in the first 180 steps, then slowly, to 0.08 nats
# below the fair baseline of 5.38. At the end the training loss is 0.4 below the validation loss, and that is not
# memorization: in less than one pass no window is seen twice. The validation words are harder: 6 % of them never occur
# in training, because they include names of their own.

# %%
print(f"\n  {STEPS} steps of {batch} windows: {STEPS * batch / len(train):.2f} times over the training words")
print(f"  {'step':>6}{'training':>11}{'validation':>12}   nats per word")
model = new_model(train)
untrained_table = model.embedding.table.data.copy()


def print_row(row, is_best):
    print(f"  {row['step']:>6}{row['train_loss']:>11.3f}{row['validation_loss']:>12.3f}{'   best so far' * is_best}")


history = learn(model, train, STEPS, STEPS // 10, batch, patience=3, watcher=Watcher(on_row=print_row))
ends, log_neural = log_p(model, test, TESTED)            # ln p of the test words
log_ngram = {order: log_p(ngrams[order], test, TESTED)[1] for order in ngrams}
neural = -log_neural.mean()
print(f"  {history.rows[-1]['seconds']:.0f} seconds of training; kept: step {history.best_step}\n")
print(f"  {f'{len(ends):,} test words; all learned from the training words':<50}{'nats':>7}{'perplexity':>12}")
for label, loss in ((f"n-gram, order {order}", -log_ngram[order].mean()) for order in ngrams):
    print(f"  {label:<50}{loss:>7.3f}{perplexity(loss):>12,.0f}")
print(f"  {'fixed window, T = 4':<50}{neural:>7.3f}{perplexity(neural):>12,.0f}")

# %%
last = history.rows[-1]
print("  the training")
expect("validation loss at step 180, nats", about(5.54, within=0.04), history.rows[1]["validation_loss"], quick=None)
expect("test loss below the trigram model's, nats", about(0.08, 0.02), -log_ngram[3].mean() - neural, quick=None)
expect("validation − training loss, nats", above(0.2), last["validation_loss"] - last["train_loss"], quick=None)
expect("times over the training words", below(1), STEPS * batch / len(train))
never = 1 - np.isin(validation[REACH:], train).mean()
expect("validation words that training lacks", about(0.06, within=0.001), never, form="{:.1%}")

# %% [markdown]
# ### Two kinds of knowledge
#
# The n-gram model knows exactly what it has seen. The neural model knows that only roughly, but it also knows something
# about what it has not seen. So test them separately: where the two words before the target occurred together in
# training, and where they never did.
#
# Then mix them, with the λ that is best on the *validation* words, as Bengio et al. did:
#
# $$
# p = \lambda \cdot p_{\text{neural}} + (1 - \lambda) \cdot p_{\text{n-gram}}
# $$
#
# **Expect** the neural model, once it is fully trained, to be 0.26 nats better after unseen pairs of words and no
# better after seen ones, and the mixture to be 0.13 nats better than the better of them. (Words after unseen pairs are
# easier to guess, for both: a rare word often ends a phrase, and in 48 % of the cases, against 25 %, a punctuation mark
# or a line break follows.)

# %%
def mixture(log_model, log_ngram, weight):
    """Cross-entropy of λ·p_model + (1 − λ)·p_ngram, the mean over the words in nats

    log_model, log_ngram (words,): ln p of each word by either model; weight: λ  →  one number
    """
    return -np.log(weight * np.exp(log_model) + (1 - weight) * np.exp(log_ngram)).mean()


seen = ngrams[3].matched(test)[ends - 1] >= 2            # the two words before the target stood together in training
print("\n  the pair of words before the target")
print(f"  {'':<22}{'share of test':>14}{'then a mark':>13}{'n-gram':>9}{'fixed window':>14}   nats per word")
is_mark = np.isin(test[ends], vocabulary.encode(tokenize(". , ! ? ; : - \n")))
gains = []
for label, chosen in (("occurs in training", seen), ("never occurs there", ~seen)):
    print(f"  {label:<22}{chosen.mean():>14.0%}{is_mark[chosen].mean():>13.0%}"
          f"{-log_ngram[3][chosen].mean():>9.3f}{-log_neural[chosen].mean():>14.3f}")
    gains.append((log_neural - log_ngram[3])[chosen].mean())

weights = np.linspace(0, 1, 21)
on_validation = [log_p(each, validation, TESTED)[1] for each in (model, ngrams[3])]
weight = min(weights, key=lambda weight: mixture(*on_validation, weight))
mixed = mixture(log_neural, log_ngram[3], weight)
print(f"\n  λ, chosen on the validation words {weight:.2f}")
print(f"  n-gram {-log_ngram[3].mean():.3f}   fixed window {neural:.3f}   mixture {mixed:.3f} nats per test word")
expect("gain of the network after seen pairs, nats", about(-0.02, within=0.03), gains[0], quick=None)
expect("gain of the network after unseen pairs, nats", about(0.26, within=0.07), gains[1], quick=None)
expect("gain of the mixture over the better one, nats", about(0.13, within=0.02),
       min(neural, -log_ngram[3].mean()) - mixed, quick=above(0.05))  # fmt: skip
expect("a mark or line break after unseen pairs", about(0.48, within=0.005), is_mark[~seen].mean(), form="{:.1%}",
       quick=about(0.48, within=0.02))  # fmt: skip

# %% [markdown]
# ### How much the last 13,000 words help
#
# The validation words have served their purpose: all choices are made. Now the model may learn from them, too. We
# continue training for two passes over these words, at a sixth of the learning rate. (Two and a sixth are guesses: no
# data are left for choosing them, and the test must not be used for that.)
#
# **Expect** a gain without any new idea, just from words of the test's own play. The n-gram model gains 0.33 nats, the
# network 0.15: counting learns a new name at once. Both gain more from these words than the 0.08 by which the network
# was better. But the mixture, with the λ from above, is 0.15 nats below the baseline of 5.05 (with `--quick` a little
# below what counting reaches on the fewer words measured): the network knows something that counting does not.

# %%
rounds = 2 * (len(validation) - T) // batch
fit(Training(model, RandomWindows(validation, T, batch), Adam(rate / 6)), steps=rounds, validate=lambda: 0.0,
    every=rounds)                                        # there is nothing left to validate with
_, log_neural_all = log_p(model, test, TESTED)
_, log_ngram_all = log_p(ngrams_all[3], test, TESTED)
print(f"\n  nats per test word{'training words':>24}{'+ validation words':>21}")
both = {
    "n-gram, order 3": (-log_ngram[3].mean(), -log_ngram_all.mean()),
    "fixed window": (neural, -log_neural_all.mean()),
    "mixture": (mixed, mixture(log_neural_all, log_ngram_all, weight)),
}
for label, (first, second) in both.items():
    print(f"  {label:<18}{first:>24.3f}{second:>21.3f}")
of_ngram, of_network = (first - second for first, second in list(both.values())[:2])
expect("n-gram model: gain from the words, nats", about(0.33, within=0.01), of_ngram, quick=about(0.33, within=0.03))
expect("fixed window: gain from the words, nats", about(0.15, within=0.03), of_network, quick=above(0.02))
better = both["n-gram, order 3"][0] - neural             # by how much the network was
expect("gain from the words − from the network, nats", above(0), of_network - better)
expect("mixture below counting, nats", about(0.15, within=0.02), both["n-gram, order 3"][1] - both["mixture"][1],
       quick=above(0))  # fmt: skip

# %% [markdown]
# ### Overfitting
#
# The model has more trainable parameters than the corpus has words. It memorizes a short text that it reads several
# times. We train on a part of the training words, once without and once with dropout (half of the entries of e and of h
# are set to 0 at random in each step, see `ops/dropout.py`).
#
# **Expect** the training loss to keep falling, with a drop of more than 0.4 nats each time the text starts again, and
# the validation loss to reach its minimum at the end of the first pass, and then to rise by more than 0.4. `fit` keeps
# the parameters of the best measurement, so only time is lost; `patience=2` would save that, too: it stops after two
# measurements without improvement. With dropout the validation loss rises by less than 0.1. But it is no better than
# stopping early: the best validation losses of the two are within 0.06 of each other.

# %%
few = train[: 5_000 if QUICK else 20_000]
short_runs = {}
for label, dropout in (("no dropout", 0.0), ("dropout 0.5", 0.5)):
    short_runs[label] = learn(new_model(few, dropout=dropout), few, 2 * SHORT, SHORT // 6, 128)
print(f"\n  {len(few):,} words, read {2 * SHORT * 128 / len(few):.1f} times; nats per word")
print(f"  {'':<18}" + "".join(f"{label:>24}" for label in short_runs))
print(f"  {'times over':<18}" + f"{'training':>12}{'validation':>12}" * 2)
for rows in zip(*(run.rows for run in short_runs.values())):
    print(f"  {rows[0]['step'] * 128 / len(few):<18.1f}" + "".join(
        f"{row['train_loss']:>12.3f}{row['validation_loss']:>12.3f}" for row in rows))
plain, dropped = short_runs.values()
falls = -np.diff([row["train_loss"] for row in plain.rows])              # from row to row
starts = [sum(row["step"] * 128 < number * len(few) for row in plain.rows) for number in (1, 2)]     # of passes 2 and 3
rises = [run.rows[-1]["validation_loss"] - run.best_validation_loss for run in (plain, dropped)]
passes = plain.best_step * 128 / len(few)
expect("passes before the best validation loss", between(0.7, 1.1), passes, form="{:.2f}")
expect("least drop as the text starts again, nats", above(0.4), falls[starts].min(), quick=None)
expect("rise after the best, nats", above(0.4), rises[0], quick=above(0.1))
expect("the same with dropout", below(0.1), rises[1])
expect("best with dropout − best without, nats", about(0.02, within=0.04),
       dropped.best_validation_loss - plain.best_validation_loss, quick=None)  # fmt: skip

# %%
lines = {name: -log_ngram[order].mean() for order, name in ((1, "unigram"), (2, "bigram"), (3, "trigram"))}
lines |= {"this model": neural, "mixture": mixed}
by_dropout = {label: run.rows for label, run in short_runs.items()}
times_over = [row["step"] * 128 / len(few) for row in by_dropout["no dropout"]]
show(lab_02.training(history.rows, lines, len(train), by_dropout, times_over, len(few)), "02_training")

# %% [markdown]
# ### Concatenation, sum or mean, and how long a window?
#
# We compare nine short training runs with the same steps, batches and rates: concatenation with T = 1, 2, 4, 8; the
# other four compositions with T = 4; and concatenation with a second hidden layer of k units. A model with T = 1 sees
# as much as a bigram model, with T = 2 as much as a trigram model.
#
# **Expect** concatenation more than 0.3 nats ahead of sum and mean. The order of four words matters, and most of all
# *which word is the last*. A sum does not know that, and even T = 1 is 0.26 better: one word that is known to be the
# last tells more than four in no order. (Sum and mean are the same model: W can compensate for the factor 1/T. Only the
# training differs.) As for the window length, expect T = 2 to be 0.07 better than T = 1, and 4 and 8 to be within 0.06
# of T = 2: a longer window offers more information but has more weights to learn, and these runs are too short for
# that. (With `--quick` they barely start.)
#
# **Expect** the maximum to be a little worse than the sum, and the product to learn nothing: the entries of the vectors
# start at about 0.1, so e starts at about 0.0001, and the gradient of each word is multiplied by the product of the
# three others, 0.001. Its loss stays near that of the unigram model, with which all start. **Expect** the second
# hidden layer to gain about 0.03 nats, with 16,512 more weights in 2.8 million.

# %%
compared = {}
for composition, length in (
    ("concatenation", 1), ("concatenation", 2), ("concatenation", 4), ("concatenation", 8), ("sum", 4), ("mean", 4),
    ("maximum", 4), ("product", 4), ("two layers", 4),
):  # fmt: skip
    options = {"hidden_layers": 2} if composition == "two layers" else {"composition": composition}
    each = new_model(train, T=length, **options)
    run = learn(each, train, COMPARED, COMPARED // 2, batch)
    compared[composition, length] = each, cross_entropy(each, test, MOST), run.best_validation_loss
bars_here = {order: cross_entropy(ngrams[order], test, MOST) for order in (2, 3)}        # of the same test words

print(f"\n  {COMPARED} steps of {batch} windows each; nats per word; the test loss is of {MOST} words")
print(f"  {'composition':<15}{'T':>3}{'size of e':>11}{'weights W':>11}{'all weights':>13}"
      f"{'validation':>12}{'test':>8}")
for (composition, length), (each, loss, validation_loss) in compared.items():
    print(f"  {composition:<15}{length:>3}{each.hidden.W.data.shape[0]:>11}{each.hidden.W.data.size:>11,}"
          f"{each.parameter_count():>13,}{validation_loss:>12.3f}{loss:>8.3f}")
for order, name in ((2, "bigram"), (3, "trigram")):
    print(f"  {name + ', counted':<16}{order - 1:>2}{'':>47}{bars_here[order]:>8.3f}")

# %%
tested = {key: loss for key, (_, loss, _) in compared.items()}
by_T = {T: loss for (composition, T), loss in tested.items() if composition == "concatenation"}
unordered = min(tested["sum", 4], tested["mean", 4])
print("  nats per test word")
expect("concatenation better than sum and mean by", above(0.3), unordered - by_T[4], quick=above(0.02))
expect("even with T = 1 by", about(0.26, within=0.05), unordered - by_T[1], quick=above(0))
expect("T = 2 better than T = 1 by", about(0.07, within=0.03), by_T[1] - by_T[2], quick=None)
longer = max(abs(by_T[T] - by_T[2]) for T in (4, 8))
expect("T = 4 and 8: greatest difference from T = 2", below(0.06), longer, quick=below(0.12))
expect("maximum worse than sum by", between(0.01, 0.1), tested["maximum", 4] - tested["sum", 4], quick=None)
expect("product worse than the unigram model by", about(0.05, within=0.03), tested["product", 4] - unigram, quick=None)
expect("gain of a second hidden layer", about(0.03, within=0.02), by_T[4] - tested["two layers", 4], quick=None)

# %% [markdown]
# ### Which positions count most?
#
# W has a block $W_t$ of n rows for each position. The contribution of position t to the hidden layer is
# $x_t \cdot W_t$. Its mean length over test histories says how much the position counts.
#
# **Expect** the last three words to count most, the later the more, and the last one 1.8 times as much as the one
# before it. And **expect** the weights of one position to have nothing in common with those of another: the cosine of
# $W_t$ and $W_8$, entry by entry, is below 0.15.

# %%
def by_place(x, W):
    """The contribution of each position to the hidden layer, x_t·W_t; their sum is e·W, with e = [x_1; …; x_T]

    x (B, T, n), W (T·n, k)  →  (B, T, k)
    """
    blocks = W.reshape(*x.shape[1:], -1)                 # (T, n, k)
    return np.einsum("btn,tnk->btk", x, blocks)


longest = compared["concatenation", 8][0]
some = windows_ending_at(test, np.linspace(REACH, len(test) - 1, 500).astype(int), 8)[:, :-1]
contributions = by_place(longest.embedding.table.data[some], longest.hidden.W.data)      # (B, T, k)
lengths = np.linalg.norm(contributions, axis=-1).mean(0)                 # (T,)
with_last = cosines(longest.hidden.W.data.reshape(8, -1))[-1]            # of each block with the last one
print("\n  T = 8: the places t = 1 … 8 of the window; t = 8 is the last word, 1 word back")
print("  words back                " + "".join(f"{8 - t:>8}" for t in range(8)))
print("  mean length of x_t·W_t    " + "".join(f"{length:>8.2f}" for length in lengths))
print("  cosine of W_t and W_8     " + "".join(f"{cosine:>8.2f}" for cosine in with_last))
records = sum(lengths[t] > lengths[:t].max() for t in (5, 6, 7))
expect("of the last three, more than all before them", 3, records, quick=at_least(2))
expect("the last word: times the one before it", about(1.8, within=0.2), lengths[-1] / lengths[-2], quick=above(1))
expect("greatest cosine of another block with the last", below(0.15), abs(with_last[:-1]).max(), quick=below(0.5))

losses = {name: {T: loss for (each, T), (_, loss, _) in compared.items() if each == name}
          for name in ("concatenation", "sum", "mean")}  # fmt: skip
named = {"bigram: 1 word": bars_here[2], "trigram: 2 words": bars_here[3]}
show(lab_02.windows(losses, named, COMPARED, lengths), "02_windows")

# %% [markdown]
# ## 2. What the vectors have learned
#
# Words that are used in similar ways get similar gradients, so their vectors should move together. We take the words
# that occur 50 times or more in training, and ask for the nearest by cosine, before and after training.
#
# **Expect** random neighbours before the training. After it: "she" among the five nearest to "he", "shall" to "will",
# "thy" to "my". They are not synonyms: they are similar in which words may follow them. Nouns do worse: none of the
# five nearest to "king" is a title or another word for a ruler. (With `--quick` the training is too short for that.)

# %%
counts = np.bincount(train, minlength=c)
frequent = np.flatnonzero(counts >= 50)
trained_table = model.embedding.table.data


def nearest(word, table, among, most=5):
    """The words nearest to a word by cosine, the nearest first, the word itself left out

    word: its id; table (c, n), a row for each word; among (words,): the ids to choose from  →  (ids, cosines)
    """
    directions = table / np.linalg.norm(table, axis=1, keepdims=True)
    others = among[among != word]
    cosine = directions[others] @ directions[word]
    best = np.argsort(-cosine)[:most]
    return others[best], cosine[best]


print("\n2. Nearest words by cosine")
for word in ("he", "my", "will", "is", "come", "good", "king", "Romeo"):
    for label, table in (("before", untrained_table), ("after", trained_table)):
        near, cosine = nearest(vocabulary.index[word], table, frequent)
        print(f"  {word if label == 'before' else '':<8}{label:<8}" + "  ".join(
            f"{words_of(vocabulary, [i])} {value:.2f}" for i, value in zip(near, cosine)))


def found(pairs, table):
    """For how many pairs of words the second is among the five nearest to the first."""
    index = vocabulary.index
    return sum(index[second] in nearest(index[first], table, frequent)[0] for first, second in pairs)


ALIKE = ("he", "she"), ("will", "shall"), ("my", "thy")
RULERS = [("king", word) for word in "queen duke prince lord crown King Queen Duke Prince Lord KING".split()]
expect("he – she, will – shall, my – thy: before", 0, found(ALIKE, untrained_table))
expect("he – she, will – shall, my – thy: after", 3, found(ALIKE, trained_table), quick=None)
expect("titles among the five nearest to king", 0, found(RULERS, trained_table), quick=None)

# %% [markdown]
# The figure shows five groups of words in the two directions in which their vectors vary most (principal components of
# these words, computed by a singular value decomposition of their centred vectors). A word that would cover another is
# moved up or down a little.
#
# **Expect** no groups before, and groups after: a mean cosine of about 0.36 for two words of the same group, and 0 for
# two of different groups. It is above 0.5 within the possessives and within the auxiliaries, and below 0.2 within the
# verbs.

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
    similarity = cosines(table[members])
    print(f"  {label:<27}{similarity[same].mean():>18.2f}{similarity[different].mean():>18.2f}")
    centred = table[members] - table[members].mean(0)
    left_vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left_vectors[:, :2] * values[:2]            # (words, 2)
    components[label] = places, (values[:2] ** 2).sum() / (values**2).sum()
    if label == "before training":
        expect("before: the same group", about(0, within=0.05), similarity[same].mean(), form="{:.2f}")
expect("after: the same group", about(0.36, within=0.05), similarity[same].mean(), quick=above(0.05), form="{:.2f}")
expect("after: different groups", about(0, 0.05), similarity[different].mean(), quick=about(0, 0.12), form="{:.2f}")
within = {name: similarity[same & (group_of == r)[:, None]].mean() for r, name in enumerate(GROUPS)}
print("  within each group: " + ", ".join(f"{name} {value:.2f}" for name, value in within.items()))
closest = min(within["possessives"], within["auxiliaries"])
expect("after: possessives, auxiliaries, the lower one", above(0.5), closest, quick=None, form="{:.2f}")
expect("after: verbs", below(0.2), within["verbs"], form="{:.2f}")
words = [vocabulary.words[i] for i in members]
show(lab_02.word_vectors(words, group_of, GROUPS, components), "02_word_vectors")

# %% [markdown]
# ## 3. Continuations
#
# The most probable next words after a prefix, by counting and by the network.
#
# **Expect** the trigram model to be surer where it has often seen the last two words: after "pray thee" it gives the
# comma 0.79. The network prefers frequent words: at least two thirds of its top choices in the table are among the 50
# most frequent training words.

# %%
print("\n3. The most probable next words")
most_frequent, top = np.argsort(-counts)[:50], {}
for prefix in ("I pray thee", "the duke of", "my gracious lord ,", "what is the"):
    prompt = vocabulary.encode(tokenize(prefix))
    print(f"  {prefix!r}")
    for label, each in (("trigram", ngrams_all[3]), ("fixed window", model)):
        best, probabilities = continuations(each, prompt, most=6)
        top[label, prefix] = best, probabilities
        print(f"    {label:<14}" + "  ".join(
            f"{words_of(vocabulary, [i])} {q:.3f}" for i, q in zip(best, probabilities)))
surest = [top[label, "I pray thee"][1][0] for label in ("trigram", "fixed window")]
expect("p of the comma after 'pray thee', trigram", about(0.79, within=0.005), surest[0], form="{:.3f}")
expect("the same, trigram − network", above(0.1), surest[0] - surest[1], form="{:.3f}")
choices = [i for (label, _), (best, _) in top.items() if label == "fixed window" for i in best]
share = np.isin(choices, most_frequent).mean()
expect("network's choices that are frequent words", at_least(2 / 3), share, form="{:.0%}")

prompt = test[:REACH]
written = list(generate(model, prompt, 30 if QUICK else 80, partial(sample, rng=np.random.default_rng(2))))
print(f"\n  a sample; the prompt is {words_of(vocabulary, prompt)!r}\n")
print("\n".join(f"    {line}" for line in vocabulary.decode(written).strip("\n").splitlines()))

# %% [markdown]
# ### Similar prefixes, similar predictions
#
# The lecture criticizes n-grams because what was counted for "students opened their" says nothing about "pupils opened
# their". So we take test histories and replace the last word by its nearest neighbour among the trained vectors. How
# much do the predictions change? The measure is the **total variation** distance of two distributions:
#
# $$
# \text{TV}(p, q) = \frac{1}{2} \cdot \sum_w \lvert p(w) - q(w) \rvert \qquad
# \text{0: the same; 1: nothing in common}
# $$
#
# The distance alone says little: a smooth model's predictions change little anyway. So we also replace the word by a
# *random* one of about the same frequency.
#
# **Expect** the network's predictions to change half as much for a neighbour as for a random word, and the trigram
# model's three quarters as much. That the latter is below 1 is good news: the network found the neighbours, and the
# counts, which know nothing of the network, agree that they are similar.

# %%
ends = np.arange(REACH, len(test))
ends = ends[np.isin(test[ends - 1], frequent)]
ends = ends[np.linspace(0, len(ends) - 1, 60 if QUICK else 300).astype(int)]
histories = windows_ending_at(test, ends - 1, T - 1)     # (B, T), the words before the targets
by_frequency = frequent[np.argsort(-counts[frequent], kind="stable")]
rank_of = {word: rank for rank, word in enumerate(by_frequency)}
rng = np.random.default_rng(0)


def of_like_frequency(word):
    """A random word whose rank by frequency differs by 1 to 5."""
    rank = rank_of[word]
    near = [r for r in range(rank - 5, rank + 6) if r != rank and 0 <= r < len(by_frequency)]
    return by_frequency[rng.choice(near)]


replaced = {
    "its nearest neighbour": [nearest(word, trained_table, frequent, most=1)[0][0] for word in histories[:, -1]],
    "a random word": [of_like_frequency(word) for word in histories[:, -1]],
}


# %%
def total_variation(p, q):
    """Half of the sum of all differences |p(w) − q(w)|

    p, q (B, c), each row a distribution  →  (B,), from 0 to 1
    """
    return 0.5 * abs(p - q).sum(-1)


def predictions(model, histories):
    return ops.softmax(model.logits(histories).astype(np.float64))[0]


print(f"\n  mean total variation over {len(histories)} test histories, the last word replaced by")
print(f"  {'':<15}" + "".join(f"{label:>24}" for label in replaced))
for label, each, ratio in (
    ("trigram", ngrams_all[3], about(0.76, within=0.06)), ("fixed window", model, about(0.5, within=0.05)),
):  # fmt: skip
    original = predictions(each, histories)
    moved = [total_variation(original, predictions(each, np.column_stack([histories[:, :-1], words]))).mean()
             for words in replaced.values()]
    print(f"  {label:<15}" + "".join(f"{value:>24.3f}" for value in moved))
    expect(f"{label}: neighbour / random word", ratio, moved[0] / moved[1], quick=below(1))

# %% [markdown]
# ## 4. The limits of the fixed window
#
# - **Weights grow with T.** W has T·n·k entries, and each position learns its own. The lecture counts this among the
#   model's problems. Look at the table before you agree: at our sizes W is small compared with E and U, which depend on
#   c. The memory is not the first problem. It is that each position has to learn again what another one already knows
#   about a word, from the same limited text.
# - **Beyond the window there is nothing.** (The lecture says that the window holds the words that "immediately follow
#   the current word". It means those that come before the predicted one.)
# - **Compared with n-grams:** their tables could have $c^T$ rows, but they store only what occurs, so at most one entry
#   for each word of the text and each order. The network's size does not depend on the length of the text at all.
#
# **Expect** W to have 1.2 % of all weights at T = 4, and to overtake E and U together at T = 336.

# %%
print("\n4. Trainable parameters, by the formulas, for n = 64, k = 128")
print(f"  {'T':>6}{'E = c·n':>13}{'W = T·n·k':>13}{'U = k·c':>13}{'W, share of all':>18}")
for length in (1, 4, 8, 100, 1000):
    sizes = c * 64, length * 64 * 128, 128 * c
    print(f"  {length:>6,}" + "".join(f"{size:>13,}" for size in sizes) + f"{sizes[1] / sum(sizes):>18.1%}")
print(f"  the trigram model stores {sum(ngrams[3].grams):,} counts of grams")
per_place, others = 64 * 128, c * 64 + 128 * c           # parameters in W for each position; in E and U
expect("share of W at T = 4", about(0.0118, 0.0001), 4 * per_place / (4 * per_place + others), form="{:.2%}")
expect("the first T at which W is larger than E and U", 336, others // per_place + 1)

# %% [markdown]
# ## What to remember
#
# - Sum and mean discard word order; concatenation keeps it, with separate weights for each position.
# - Compare models that have learned from the same words. Learning from the validation words, too, improved the n-gram
#   model by 0.33 nats; replacing it by a network gained 0.08.
# - The network shares what it learns between words that are used in similar ways. Counting is exact about what it has
#   seen. Their mixture is 0.13 nats better than the better of the two.
#
# Next: Lab 03 reads word after word with one set of weights, whatever the length.
#
# **Try:** `activation="relu"`; the product of vectors that start near 1; n = 16 or 256; `train_embeddings=False`, so
# that the vectors stay random; eigenvectors as in Lab 04 to start from; T = 16 with dropout (and REACH = 16).
