# %% [markdown]
# # Lab 02b: the fixed-window model on Shakespeare
#
# - **Goals:** train a neural language model and compare it with counting fairly, on the same words; combine the two;
#   recognize overfitting; examine what word vectors have learned.
# - **Before it:** Lab 02, and Lab 01b's smoothing. **Work:** about 5 hours.
# - **Hand in:** `mixture`, `by_place`, `nearest`, `total_variation`; an experiment from “Try”.
#
# Sources and letters: those of `02_fixed_window.py`, which built the model step by step, on toy sentences. Here it
# learns from 250,000 words.
#
# It runs in about three minutes on one CPU core, ten seconds with `--quick`. If other programs keep the machine busy,
# set OPENBLAS_NUM_THREADS=1.
#
# All losses are cross-entropies in nats per word. The model:
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

from _common import cosines, listed, quick_mode, show, table, words_of
from _drawing import lab_02
from _expect import about, above, at_least, at_most, below, between, expect
from mini_tf import ops
from mini_tf.decoding import continuations, generate, sample
from mini_tf.metrics import log_softmax_at, perplexity, uniform_cross_entropy
from mini_tf.models import FixedWindowModel, NGramModel
from mini_tf.progress import training_progress
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
# learn from them. The fair comparison is an n-gram model, one that learns from the same words.
#
# Why do the 13,144 validation words matter so much? Because 84 % of them come from the play in which the test begins,
# The Taming of the Shrew, and none of the training words do. (The play begins with a speech of SLY, who occurs in no
# other.) Its LUCENTIO, for example, occurs 0 times in training, 20 times in the validation words, and 41 in the test.

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

table(("n-gram, learned from", "training words", "+ validation words"),
      {"words to learn from": (f"{len(train):,}", f"{len(before_test):,}"),
       "uniform, ln c": [uniform_cross_entropy(c)] * 2} | {f"order {k}": (bars[k], bars_all[k]) for k in ngrams},
      "{:.3f}", title=f"1. The baseline; cross-entropy on {len(test) - REACH:,} test words, nats per word")
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
# Which loss do you expect with $b_2 = 0$, before any training, and which with $b_2 = \ln p$?

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
# **Expect** (without `--quick`) the loss to fall steeply in the first 180 steps, then slowly, to just below the fair
# baseline of 5.38. At the end the training loss is 0.4 below the validation loss, and that is not memorization: in less
# than one pass no window is seen twice. The validation words are harder: 6 % of them never occur in training, because
# they include names of their own.

# %%
model = new_model(train)
untrained_table = model.embedding.table.data.copy()
with training_progress(STEPS, batch) as on_step:
    history = learn(model, train, STEPS, STEPS // 10, batch, patience=3, watcher=Watcher(on_step))
table(("step", "training", "validation"),
      [(row["step"], row["train_loss"], row["validation_loss"]) for row in history.rows], "{:.3f}",
      title=f"Nats per word; {STEPS} steps of {batch} windows, {STEPS * batch / len(train):.2f} times over the words, "
            f"{history.rows[-1]['seconds']:.0f} seconds; kept: step {history.best_step}")  # fmt: skip
ends, log_neural = log_p(model, test, TESTED)            # ln p of the test words
log_ngram = {order: log_p(ngrams[order], test, TESTED)[1] for order in ngrams}
neural = -log_neural.mean()
reached = {f"n-gram, order {order}": -log_ngram[order].mean() for order in ngrams} | {"fixed window, T = 4": neural}
table((f"{len(ends):,} test words; all learned from the training words", "nats", "perplexity"),
      {label: (loss, perplexity(loss)) for label, loss in reached.items()}, ("{:.3f}", "{:,.0f}"))  # fmt: skip

# %%
last = history.rows[-1]
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
# In which of the two cases is the neural model better? (Words after unseen pairs are easier to guess, for both: a rare
# word often ends a phrase, and in 48 % of the cases, against 25 %, a punctuation mark or a line break follows.)

# %%
def mixture(log_model, log_ngram, weight):
    """Cross-entropy of λ·p_model + (1 − λ)·p_ngram, the mean over the words in nats

    log_model, log_ngram (words,): ln p of each word by either model; weight: λ  →  one number
    """
    return -np.log(weight * np.exp(log_model) + (1 - weight) * np.exp(log_ngram)).mean()


seen = ngrams[3].matched(test)[ends - 1] >= 2            # the two words before the target stood together in training
is_mark = np.isin(test[ends], vocabulary.encode(tokenize(". , ! ? ; : - \n")))
by_pair = {label: (chosen.mean(), is_mark[chosen].mean(), -log_ngram[3][chosen].mean(), -log_neural[chosen].mean())
           for label, chosen in (("occurs in training", seen), ("never occurs there", ~seen))}  # fmt: skip
print()
table(("the pair before the target", "share of test", "then a mark", "n-gram, nats", "fixed window, nats"), by_pair,
      ("{:.0%}", "{:.0%}", "{:.3f}", "{:.3f}"))  # fmt: skip
gains = [counted - network for *_, counted, network in by_pair.values()]

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
# Which model gains more, and why? Both gain more from these words than the network's lead of 0.08. But the mixture,
# with the λ from above, stays below the baseline of 5.05: the network knows something that counting does not.

# %%
rounds = 2 * (len(validation) - T) // batch
fit(Training(model, RandomWindows(validation, T, batch), Adam(rate / 6)), steps=rounds, validate=lambda: 0.0,
    every=rounds)                                        # there is nothing left to validate with
_, log_neural_all = log_p(model, test, TESTED)
_, log_ngram_all = log_p(ngrams_all[3], test, TESTED)
both = {
    "n-gram, order 3": (-log_ngram[3].mean(), -log_ngram_all.mean()),
    "fixed window": (neural, -log_neural_all.mean()),
    "mixture": (mixed, mixture(log_neural_all, log_ngram_all, weight)),
}
print()
table(("nats per test word", "training words", "+ validation words"), both, "{:.3f}")
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
# What will the training loss do each time the text starts again, and the validation loss after the first pass? `fit`
# keeps the parameters of the best measurement, so only time is lost; `patience=2` would save that, too: it stops after
# two measurements without improvement. With dropout the validation loss hardly rises. But it is no better than stopping
# early.

# %%
few = train[: 5_000 if QUICK else 20_000]
short_runs = {}
for label, dropout in (("no dropout", 0.0), ("dropout 0.5", 0.5)):
    short_runs[label] = learn(new_model(few, dropout=dropout), few, 2 * SHORT, SHORT // 6, 128)
by_dropout = {label: run.rows for label, run in short_runs.items()}
times_over = [row["step"] * 128 / len(few) for row in by_dropout["no dropout"]]
table(("times over", *(f"{part}, {label}" for label in short_runs for part in ("training", "validation"))),
      [(f"{times:.1f}", *(row[part] for row in rows for part in ("train_loss", "validation_loss")))
       for times, *rows in zip(times_over, *by_dropout.values())], "{:.3f}",
      title=f"{len(few):,} words, read {times_over[-1]:.1f} times; nats per word")  # fmt: skip
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
show(lab_02.training(history.rows, lines, len(train), by_dropout, times_over, len(few)), "02_training")

# %% [markdown]
# ### Concatenation, sum or mean, and how long a window?
#
# We compare ten short training runs with the same steps, batches and rates: concatenation with T = 1, 2, 4, 8; the
# other four compositions with T = 4; and concatenation with a second hidden layer of k units, and with relu in place of
# tanh. A model with T = 1 sees as much as a bigram model, with T = 2 as much as a trigram model.
#
# Guess the order of sum, mean and concatenation, and where T = 1 will be. The order of four words matters, and most of
# all *which word is the last*. (Sum and mean are the same model: W can compensate for the factor 1/T. Only the training
# differs.) As for the window length, a longer window offers more information but has more weights to learn, and these
# runs are too short for that. (With `--quick` they barely start.)
#
# **Expect** the product to learn nothing: the entries of the vectors start at about 0.1, so e starts at about 0.0001,
# and the gradient of each word is multiplied by the product of the three others, 0.001. Its loss stays near that of the
# unigram model, with which all start. The second hidden layer adds 16,512 weights to 2.8 million. And relu? The sums
# start near 0, where tanh passes all of them on and relu only the positive half.

# %%
compared = {}
for composition, length in (
    ("concatenation", 1), ("concatenation", 2), ("concatenation", 4), ("concatenation", 8), ("sum", 4), ("mean", 4),
    ("maximum", 4), ("product", 4), ("two layers", 4), ("relu", 4),
):  # fmt: skip
    options = {"two layers": {"hidden_layers": 2}, "relu": {"activation": "relu"}}
    options = options.get(composition, {"composition": composition})
    each = new_model(train, T=length, **options)
    run = learn(each, train, COMPARED, COMPARED // 2, batch)
    compared[composition, length] = each, cross_entropy(each, test, MOST), run.best_validation_loss
bars_here = {order: cross_entropy(ngrams[order], test, MOST) for order in (2, 3)}        # of the same test words

table(("composition", "T", "size of e", "weights W", "all weights", "validation", "test"),
      [(composition, length, *each.hidden.W.data.shape[:1], each.hidden.W.data.size, each.parameter_count(),
        validation_loss, loss) for (composition, length), (each, loss, validation_loss) in compared.items()]
      + [(f"{name}, counted", order - 1, None, None, None, None, bars_here[order])
         for order, name in ((2, "bigram"), (3, "trigram"))], ("{}", "{}", "{:,}", "{:,}", "{:.3f}", "{:.3f}"),
      title=f"{COMPARED} steps of {batch} windows each; nats per word; the test loss is of {MOST} words")  # fmt: skip

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
expect("relu worse than tanh by", above(0.1), tested["relu", 4] - by_T[4], quick=None)

# %% [markdown]
# ### Which positions count most?
#
# W has a block $W_t$ of n rows for each position. The contribution of position t to the hidden layer is
# $x_t \cdot W_t$. Its mean length over test histories says how much the position counts.
#
# Which positions will count most? And do the weights of one position have anything in common with those of another?

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
print()
table(("words back, T = 8", *range(8, 0, -1)), {"mean length of x_t·W_t": lengths, "cosine of W_t and W_8": with_last},
      "{:.2f}")  # fmt: skip
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
# Before you look: which words do you expect near "he", "will", "my", and which near "king"? (With `--quick`, training
# is too short for that.)

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


table(None, [(word, label, listed(vocabulary, *nearest(vocabulary.index[word], vectors, frequent), "{:.2f}"))
             for word in "he my will is come good king Romeo".split()
             for label, vectors in (("before", untrained_table), ("after", trained_table))],
      title="2. Nearest words by cosine, before and after training")  # fmt: skip


def found(pairs, table):
    """For how many pairs of words the second is among the five nearest to the first."""
    index = vocabulary.index
    return sum(index[second] in nearest(index[first], table, frequent)[0] for first, second in pairs)


ALIKE = ("he", "she"), ("will", "shall"), ("my", "thy")
RULERS = [("king", word) for word in "queen duke prince lord crown King Queen Duke Prince Lord KING".split()]
expect("he – she, will – shall, my – thy: before", at_most(1), found(ALIKE, untrained_table))
expect("he – she, will – shall, my – thy: after", 3, found(ALIKE, trained_table), quick=None)
expect("titles among the five nearest to king", at_most(1), found(RULERS, trained_table), quick=None)

# %% [markdown]
# They are not synonyms: they are similar in which words may follow them. Nouns do worse: of the five nearest to
# "king", at most one is a title or another word for a ruler.
#
# The figure shows five groups of words in the two directions in which their vectors vary most (principal components of
# these words, computed by a singular value decomposition of their centred vectors). A word that would cover another is
# moved up or down a little.
#
# **Expect** no groups before, and groups after. Which of the five will be the closest, and which the loosest?

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
components, likeness = {}, {}
for label, vectors in (("before training", untrained_table), ("after training", trained_table)):
    similarity = cosines(vectors[members])
    likeness[label] = similarity[same].mean(), similarity[different].mean()
    centred = vectors[members] - vectors[members].mean(0)
    left_vectors, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left_vectors[:, :2] * values[:2]            # (words, 2)
    components[label] = places, (values[:2] ** 2).sum() / (values**2).sum()
print()
table(("mean cosine of two words of", "the same group", "different groups"), likeness, "{:.2f}")
before, (alike, unlike) = likeness["before training"][0], likeness["after training"]
expect("before: the same group", about(0, within=0.05), before, form="{:.2f}")
expect("after: the same group", about(0.36, within=0.05), alike, quick=above(0.05), form="{:.2f}")
expect("after: different groups", about(0, 0.05), unlike, quick=about(0, 0.12), form="{:.2f}")
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
# **Expect** the trigram model to be surer where it has often seen the last two words. Which words does the network
# prefer?

# %%
most_frequent = np.argsort(-counts)[:50]
top = {(prefix, label): continuations(each, vocabulary.encode(tokenize(prefix)), most=6)
       for prefix in ("I pray thee", "the duke of", "my gracious lord ,", "what is the")
       for label, each in (("trigram", ngrams_all[3]), ("fixed window", model))}  # fmt: skip
table(None, [(*key, listed(vocabulary, *best)) for key, best in top.items()], title="3. The most probable next words")
surest = [top["I pray thee", label][1][0] for label in ("trigram", "fixed window")]
expect("p of the comma after 'pray thee', trigram", about(0.79, within=0.005), surest[0], form="{:.3f}")
expect("the same, trigram − network", above(0.1), surest[0] - surest[1], form="{:.3f}")
choices = [i for (_, label), (best, _) in top.items() if label == "fixed window" for i in best]
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
# **Expect** the predictions to change less for a neighbour than for a random word. For the network that is no surprise;
# for the trigram model it is good news: the network found the neighbours, and the counts, which know nothing of the
# network, agree that they are similar.

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


moved = {}
for label, each in (("trigram", ngrams_all[3]), ("fixed window", model)):
    original = predictions(each, histories)
    moved[label] = [total_variation(original, predictions(each, np.column_stack([histories[:, :-1], words]))).mean()
                    for words in replaced.values()]      # fmt: skip
table(("the last word replaced by", *replaced), moved, "{:.3f}",
      title=f"Mean total variation over {len(histories)} test histories")  # fmt: skip
for label, ratio in (("trigram", about(0.76, within=0.06)), ("fixed window", about(0.5, within=0.05))):
    expect(f"{label}: neighbour / random word", ratio, moved[label][0] / moved[label][1], quick=below(1))

# %% [markdown]
# ## 4. The limits of the fixed window
#
# - **Weights grow with T.** W has T·n·k entries, and each position learns its own. The lecture counts this among the
#   model's problems. Look at the table before you agree: at our sizes W is small compared with E and U, which depend on
#   c. The memory is not the first problem. The first problem is that each position has to learn again what
#   another one already knows about a word, from the same limited text.
# - **Beyond the window there is nothing.** (The lecture says that the window holds the words that "immediately follow
#   the current word". It means those that come before the predicted one.)
# - **Compared with n-grams:** their tables could have $c^T$ rows, but they store only what occurs, so at most one entry
#   for each word of the text and each order. The network's size does not depend on the length of the text at all.
#
# Guess W's share of all weights at T = 4, and from which T on it is larger than E and U together.

# %%
per_place, others = 64 * 128, c * 64 + 128 * c           # parameters in W for each position; in E and U
shares = {length: length * per_place / (length * per_place + others) for length in (1, 4, 8, 100, 1000)}
table(("T", "E = c·n", "W = T·n·k", "U = k·c", "W, share of all"),
      [(length, c * 64, length * per_place, 128 * c, share) for length, share in shares.items()],
      ("{:,}", "{:,}", "{:,}", "{:.1%}"), title="4. Trainable parameters, by the formulas, for n = 64, k = 128")
print(f"  the trigram model stores {sum(ngrams[3].grams):,} counts of grams")
expect("share of W at T = 4", about(0.0118, 0.0001), shares[4], form="{:.2%}")
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
# **Try:** the product of vectors that start near 1; n = 16 or 256; `train_embeddings=False`, so
# that the vectors stay random; eigenvectors as in Lab 04 to start from; T = 16 with dropout (and REACH = 16).
