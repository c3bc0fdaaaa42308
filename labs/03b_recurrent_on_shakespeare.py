# %% [markdown]
# # Lab 03b: a recurrent model of Shakespeare
#
# Sources: CSCI 567 (USC, spring 2024), lecture 8, recurrent networks; CS685 (UMass Amherst, 2020), lecture on neural
# language models, its last part.
#
# `03_recurrent.py` derived a recurrent network's gradient through time, and saw it vanish and explode. Here such a
# network learns language. You will
#
# - train it on Shakespeare, hold it against counting, and find a pitfall in how it starts,
# - measure what the state is worth, and how many words back it really remembers,
# - let it write, and see what the state saves.
#
# It takes one to two minutes on one CPU core, about a quarter of a minute with `--quick` (too short for the model to
# learn much: read the conclusions off the full run), and twice as long or more on a machine that has other work. Set
# OPENBLAS_NUM_THREADS=1 there.
#
# Letters: **T** steps, **n** size of a word vector, **k** size of the state, **c** different words, **d** a distance in
# words. Losses are in nats per word. A vector is a row here, x·W; the lectures write columns, W·x.

# %%
from functools import partial
from time import perf_counter

from _common import gradient_by_distance, loop_length, quick_mode, refused, repeated_triples, show, typical
from _drawing import lab_03
from mini_tf import ops
from mini_tf.decoding import generate, greedy, sample
from mini_tf.metrics import log_softmax_at, unigram_cross_entropy
from mini_tf.models import CarriedState, NGramModel, RecurrentModel
from mini_tf.progress import training_progress
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.training import (
    Adam,
    ConsecutiveWindows,
    Schedule,
    Training,
    Watcher,
    clip_gradients,
    fit,
    split_words,
    windows_ending_at,
)
from mini_tf.training.figures import draw_curves

import numpy as np

QUICK = quick_mode("Lab 03b: a recurrent language model, and how far back it remembers")

# %% [markdown]
# ## 1. The model and its training
#
# Each word goes into one state, and the readout predicts the next word from it:
#
# $$
# h_t = \tanh(x_t \cdot W_x + h_{t-1} \cdot W_h + b), \qquad
# \pi_t = \text{softmax}(h_t \cdot U + b_2), \qquad
# J = \text{mean of } {-\ln \pi_t(\text{the next word})}
# $$
#
# The word vectors x are random at first and learned, the state has 128 numbers, the readout 14,295 words. tanh, because
# its states are never larger than 1, and where the state is large its slope is small. We clip all the same: tanh makes
# explosions rare, not impossible.
#
# **Truncated backpropagation through time.** Nobody unrolls a network over 250,000 words. The text is cut into 16
# long pieces that are read side by side, 32 words at a time. The state is carried from batch to batch (`CarriedState`),
# but as a constant: what the network knows reaches back to the beginning, what it is taught reaches back 32 words.
#
# **The initial readout**, a pitfall that we fell into. With $b_2 = 0$ the first thing to learn is which words are
# frequent. Adam pushes everything that way, the state too: it is driven into the flat ends of tanh, to serve as one
# more constant, and there its slopes are nearly 0. With the sizes of `--quick` the mean slope fell to 0.02, and the
# test loss stayed at 6.29, above the unigram's. With the larger sizes training went well, to 5.4 nats after 400 steps,
# but the validation loss was 16.7 at that point: validation begins at $h_0$, and from there the state went to a region
# that it had never visited in training.
#
# But which words are frequent can be counted: $b_2 = \ln(\text{unigram})$. So the model starts at the unigram's loss,
# and the state is free for what only a state can do. The small sizes then reached 5.90, and the validation loss stayed
# near the training loss.
#
# **The initial state.** When the state is always carried on, hardly any batch begins at $h_0$, and $h_0$ is hardly
# learned. We start every 64th batch there, so that the model knows how to begin, and a comparison with and without
# carried state is fair.

# %%
tokens = tokenize(shakespeare("lab"))
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c = len(vocabulary)
n, k, T, batch, training_steps = (32, 64, 16, 16, 120) if QUICK else (64, 128, 32, 16, 800)
EMBEDDING_SIZE = 0.3                                     # of the entries of the first, random word vectors
EVERY = 64                                               # every 64th batch begins at h_0
train, validation, test = split_words(ids, T)            # the last two begin with T words of the part before
first_test = len(ids) - (len(test) - T)                  # the first of the test words, as an index in ids
first_validation = len(train)
HEARD = 200                                              # words that are read before the first one that is measured


def cross_entropy(model, first, last):
    """Nats per word of the words first … last − 1, read in one go, with some words before them to warm up."""
    start = max(first - HEARD, 0)
    return -model.log_probabilities(ids[start:last], first - start).mean()


def step_losses(model, windows):
    """J_t at each step: (B, T)"""
    return -log_softmax_at(model.logits_after_each(windows[:, :-1]), windows[:, 1:])


# %% [markdown]
# ### The bar
#
# The n-gram models of Lab 01. One thing first: the network learns from 85.5 % of the words; 4.5 % are set aside to
# validate; the last 10 % are the test. The counting model of Lab 01 counts the validation words too. They stand right
# before the test and lead into the play that it begins in, with its names. The fair comparison is between models that
# have seen the same words, so we count twice.
#
# **Expect** 9.568 for a uniform guess, 6.06 for counts of single words, 5.05 for counts of three words when the
# validation words are counted, and clearly more when they are not.

# %%
def counted(words, order):
    """Test cross-entropy of an n-gram model: interpolated Kneser-Ney, discount 0.9."""
    model = NGramModel(order, c, discount=0.9).fit(words)
    return -model.log_probabilities(ids, first_test).mean()


test_losses = {
    "uniform, ln c": np.log(c),
    "unigram, all words before the test": unigram_cross_entropy(ids[:first_test], ids[first_test:], c),
    "3-gram, the words the network learns from": counted(train, 3),
    "3-gram, all words before the test": counted(ids[:first_test], 3),
}


def print_losses(losses):
    for name, loss in losses.items():
        print(f"  {name:<52}{loss:>7.3f}")


def share_of_new(words):
    """The share of the test words that do not occur among the words."""
    return np.mean(~np.isin(ids[first_test:], words))


print(f"\n1. Shakespeare: {len(train):,} words to learn from, {first_test - first_validation:,} to validate, "
      f"{len(ids) - first_test:,} to test")
print_losses(test_losses)
print(f"  test words that never occur in what the network learns from {share_of_new(train):.1%}, "
      f"in all before the test {share_of_new(ids[:first_test]):.1%}")

# %% [markdown]
# ### Training
#
# Adam, clip = 1, dropout 0.2, a learning rate that rises over the first steps and then falls to the end: less than two
# passes through the text. **Expect** the unigram's loss before the first step, then a fall that gets slower and slower.
# **Expect** it to end a little below the 3-gram that counted the same words, and above the one that counted more.

# %%
table = (EMBEDDING_SIZE * np.random.default_rng(0).standard_normal((c, n))).astype(np.float32)
new_model = partial(RecurrentModel, table, np.bincount(train, minlength=c), k=k, T=T, dropout=0.2)       # counts for b₂
model, untrained = new_model(), new_model()
carried, batches = CarriedState(model, anew=EVERY), ConsecutiveWindows(train, T, batch)
print(f"\n  n = {n}, k = {k}, T = {T}, batch {batch}: {model.numbers_to_learn():,} numbers to learn, of which "
      f"{sum(p.data.size for p in model.recurrent.parameters().values()):,} carry the state")
print(f"  test loss, untrained: {cross_entropy(untrained, first_test, len(ids)):.3f} nats per word")
started = perf_counter()
with training_progress(training_steps, batch * T) as on_step:
    schedule = Schedule(training_steps // 20, training_steps)
    history = fit(
        Training(carried, batches, Adam(2e-3), schedule, clip=1.0, rng=np.random.default_rng(1)), training_steps,
        validate=lambda: cross_entropy(model, first_validation, first_validation + (1000 if QUICK else 4000)),
        every=training_steps // (5 if QUICK else 10), watcher=Watcher(on_step),
    )  # fmt: skip
print(f"  {'step':>6}{'training':>11}{'validation':>12}   nats per word")
for row in history.rows:
    print(f"  {row['step']:>6}{row['train_loss']:>11.3f}{row['validation_loss']:>12.3f}")
log_p = model.log_probabilities(ids[first_test - HEARD :], HEARD)        # of every test word: (29,208,)
test_losses["recurrent, learned from the first"] = -log_p.mean()
print(f"  {perf_counter() - started:.0f} s for training and testing")
print_losses(test_losses)
lines = {
    "unigram": test_losses["unigram, all words before the test"],
    "3-gram, same words": test_losses["3-gram, the words the network learns from"],
    "3-gram, more words": test_losses["3-gram, all words before the test"],
    "test": test_losses["recurrent, learned from the first"],
}
show(draw_curves(history.rows, lines), "03_training")

# %% [markdown]
# Now the network may learn from the validation words too, as the second 3-gram did: one pass, a few seconds, learning
# rate $10^{-3}$. **Expect** a real gain from so few words, and for the same reason as the 3-gram's: the play's names.

# %%
def learn_on(model, words, rate, rng):
    """One pass through the words."""
    carried, adam = CarriedState(model), Adam(rate)
    batches = ConsecutiveWindows(words, T, batch)
    for _ in range(len(words) // batch // T):
        model.clear_gradients()
        _, backward = carried.loss(next(batches), rng)
        backward()
        clip_gradients(model.parameters(), 1.0)
        adam.step(model.parameters())


later = new_model()
for name, parameter in later.parameters().items():
    parameter.data = model.parameters()[name].data.copy()
learn_on(later, validation, 1e-3, np.random.default_rng(2))
test_losses["recurrent, all words before the test"] = cross_entropy(later, first_test, len(ids))
print(f"\n  one pass through {len(validation):,} more words")
print_losses(test_losses)

# %% [markdown]
# So the network's state is worth something, and counting still wins when both have seen all the words before the test.
# A count learns a name from one occurrence; a gradient has to push it there, a step at a time. And 250,000 words are
# few: networks that leave counting behind learn from millions.
#
# ### What the carried state is worth
#
# The same model, the same test words. Now we throw the state away every so many words, and it starts again at $h_0$.
#
# **Expect** the loss to fall to that of the carried state as resets become rarer. Right after a reset, where the model
# knows one word and is a bigram model, the loss is much higher; ten words later hardly at all.

# %%
def reset_losses(model, every, most):
    """Losses of the first test words when the state is thrown away every so many words: (windows, every)"""
    count = min(most, len(ids) - first_test) // every
    begins = first_test - 1 + every * np.arange(count)   # the word before a window's first prediction is read
    windows = ids[begins[:, None] + np.arange(every + 1)]
    parts = np.array_split(windows, max(count * every // 256, 1))
    return np.concatenate([step_losses(model, part) for part in parts])


MEASURED = 2048 if QUICK else 8192                       # words
print(f"\n  the first {MEASURED:,} test words, nats per word")
print(f"  state carried through {-log_p[:MEASURED].mean():>9.3f}")
for every in (1, 2, 4, 8, 16, 32, 64):
    print(f"  thrown away every {every:>2} words{reset_losses(model, every, MEASURED).mean():>8.3f}")
more = reset_losses(model, 32, MEASURED) + log_p[:MEASURED].reshape(-1, 32)      # − log p is the carried state's loss
print("  words read since it was thrown away, and the loss added there:   "
      + "   ".join(f"{known}: {round(more[:, known - 1].mean(), 2) + 0.0:.2f}" for known in (1, 2, 3, 5, 10, 20, 32)))

# %% [markdown]
# ### How far back does it remember?
#
# A test that asks the model itself. Take places in the test with 100 words before each. Keep the last d words and
# replace all words further back by others: once by random words of the training text, once by a passage of it, which
# is good Shakespeare but has nothing to do with what follows. If the loss does not change, the model does not use what
# is further back than d. The places are the same for all d, so the differences are measured well: each comes with its
# standard error.
#
# CS685 says that recurrent networks hardly look beyond 20 to 30 words. **Expect** that to be generous here: a large
# loss added at d = 1 and 2, some up to 10, and none that can be measured from 20 on, though T = 32 would allow more.
# The two kinds of other words give nearly the same from d = 1 on. The row d = 2 has a meaning of its own: it is what
# the network gains from words that a 3-gram never looks at.

# %%
H, places = 100, 400 if QUICK else 2000
ends = np.linspace(first_test, len(ids) - 1, places).astype(int)
windows = windows_ending_at(ids, ends, H)                # (places, H + 1)
rng = np.random.default_rng(6)


def last_word_losses(windows):
    parts = np.array_split(windows, 8)
    return np.concatenate([-log_softmax_at(model.logits(part[:, :-1]), part[:, -1]) for part in parts])


def forgotten(windows, d, other):
    """The windows with all words further back than d replaced by those of `other`."""
    changed = windows.copy()
    changed[:, : H - d] = other[:, : H - d]
    return changed


others = {
    "random words": train[rng.integers(0, len(train), (places, H))],
    "another passage": train[rng.integers(0, len(train) - H, places)[:, None] + np.arange(H)],
}
true_history = last_word_losses(windows)
distances = (0, 1, 2, 3, 5, 10, 20, 50)
lost = {}                                                # {(other, d): (mean, standard error)}
print(f"\n  loss with all {H} words before: {true_history.mean():.3f} nats; what is added when only d words are kept:")
print(f"  {'d, words':>9}" + "".join(f"{name:>26}" for name in others))
for d in distances:
    cells = ""
    for name, other in others.items():
        more = last_word_losses(forgotten(windows, d, other)) - true_history
        lost[name, d] = more.mean(), more.std() / np.sqrt(places)
        cells += f"{lost[name, d][0]:>16.4f} ± {lost[name, d][1]:.4f}"
    print(f"  {d:>9}{cells}   nats")

# %% [markdown]
# And the gradient by distance, as in section 5 of `03_recurrent.py`:
# $\lVert \partial (v \cdot h_T)/\partial x_{T-d} \rVert$ for a random v, now through the trained model on the test's
# words (64 places, the learned $W_h$). **Expect** it to fall faster than that of the untrained one: the words have
# become loud, the slopes small. What the model does not use, it is not taught to use either.

# %%
def model_reach(model):
    """The gradient by distance through the model on test words, and the mean slope of its states."""
    p = {name: parameter.data.astype(np.float64) for name, parameter in model.parameters().items()}
    some = windows_ending_at(ids, np.linspace(first_test + 150, len(ids) - 1, 64).astype(int), 150)
    x = p["embedding.table"][some]                       # (64, 151, n)
    start = np.repeat(p["recurrent.h0"][None], 64, axis=0)
    arguments = x, start, p["recurrent.Wx"], p["recurrent.Wh"], p["recurrent.b"], "tanh"
    h, _ = ops.rnn(*arguments)
    return gradient_by_distance(*arguments)[:, :101], (1 - h * h).mean(), p["recurrent.Wh"]


print(f"\n  {'':<11}{'d = 1':>9}{'5':>9}{'10':>9}{'20':>9}{'50':>9}{'mean slope':>13}{'radius of Wh':>14}")
reaches = {}
for name, some_model in (("untrained", untrained), ("trained", model)):
    gradients, slope, learned = model_reach(some_model)
    reaches[name] = gradients / np.exp(np.log(gradients[:, :1]).mean())
    part = typical(gradients)
    print(f"  {name:<11}" + "".join(f"{part[d]:>9.1e}" for d in (1, 5, 10, 20, 50))
          + f"{slope:>13.2f}{abs(np.linalg.eigvals(learned)).max():>14.2f}")

added = {name: [lost[name, d] for d in distances[1:]] for name in others}
show(lab_03.memory(reaches, distances[1:], added), "03_memory")

# %% [markdown]
# ## 2. Writing with a state
#
# `generate` asks the model for a `reader()`: it reads the prompt once, and then each word that it writes. The state is
# all it keeps. **Expect** greedy to repeat itself (a fixed window has to; a state, a vector of real numbers, need not
# return to where it was, but it does); sampling at temperature 0.7 to stay with frequent words, and at 1.0 to be as
# varied as Shakespeare, and wilder.

# %%
prompt = ids[first_test : first_test + 40]
choices = {
    "greedy": greedy,
    "temperature 0.7": partial(sample, temperature=0.7, rng=np.random.default_rng(7)),
    "temperature 1.0": partial(sample, temperature=1.0, rng=np.random.default_rng(7)),
}
texts = {name: np.array(list(generate(model, prompt, 300, choose))) for name, choose in choices.items()}
texts["Shakespeare"] = ids[first_test + 40 : first_test + 340]
print("\n2. Writing 300 words")
print(f"  {'':<18}{'different words':>16}{'repeated triples':>18}{'loop of':>12}")
for name, written in texts.items():
    loop = loop_length(written)
    print(f"  {name:<18}{len(set(written)):>16}{repeated_triples(written):>18.0%}"
          f"{f'{loop} words' if loop else 'none':>12}")
print("\n--- the end of the prompt ---\n" + vocabulary.decode(prompt[-20:]).strip("\n"))
for name in choices:
    print(f"\n--- {name}, the first 60 words ---\n" + vocabulary.decode(texts[name][:60]).strip("\n"))

# %% [markdown]
# What does the state save? Without it each new word means reading all the words so far again. **Expect** a time per
# word that does not depend on the length of the text with the state, and one that grows in proportion to it without.
# (Both pay for the readout, a score for each of 14,295 words.) The predictions are the same.

# %%
def median_time(action, times=7):
    """Milliseconds."""
    measured = []
    for _ in range(times):
        begin = perf_counter()
        action()
        measured.append(perf_counter() - begin)
    return 1000 * np.median(measured)


print(f"\n  {'words so far':>13}{'with the state':>16}{'reading all again':>19}   ms per word")
for length in (10, 100, 300, 1000):
    so_far = ids[first_test : first_test + length]
    read = model.reader().read
    read(so_far[:-1])
    by_state = read(so_far[-1:])
    assert np.allclose(by_state, model.logits(so_far[None]), atol=1e-4)
    fast, slow = median_time(partial(read, so_far[-1:])), median_time(partial(model.logits, so_far[None]))
    print(f"  {length:>13,}{fast:>16.2f}{slow:>19.2f}")

# %% [markdown]
# ## 3. When it goes wrong
#
# A single weight that is NaN spoils every later state, and so every probability. **Expect** messages, not NaN.

# %%
print("\n3. Bad input")
kept = model.recurrent.Wh.data.copy()
model.recurrent.Wh.data[0, 0] = np.nan
for what, attempt in (
    ("measuring a text with a weight that is NaN", lambda: cross_entropy(model, first_test, first_test + 50)),
    ("writing with it", lambda: list(generate(model, prompt, 5, greedy))),
    ("a word that is not in the vocabulary", lambda: model.log_probabilities(np.array([c]))),
    ("a state of no size", lambda: RecurrentModel(table, k=0)),
    ("an unknown activation", lambda: RecurrentModel(table, activation="sigmoid")),
    ("a text too short for the pieces", lambda: ConsecutiveWindows(ids[:100], T, batch)),
):  # fmt: skip
    refused(attempt, what, width=110)
model.recurrent.Wh.data = kept

# %% [markdown]
# ## 4. What to take along
#
# - Count what can be counted ($b_2$), and let the network learn the rest.
# - Carried state: what the network knows goes back further than what it is taught. Let it learn to begin, too.
# - It remembers about ten words, with a state that could in principle hold anything.
#
# That last point is the bottleneck. *One* vector has to hold all that may ever matter, and each new word is written
# over it. A word twenty places back can be reached only through twenty steps, forward and backward. **Attention** keeps
# a vector for each word, and looks at any of them in one step: the distance is 1, whatever d. No product of twenty
# matrices, no bottleneck; and all positions can be computed at once, not one after the other. The price: it has to keep
# all words and look at all of them again for each new word, as the right column of the last table does.
# `06_language_transformer.py` (Lab 06) builds it.
#
# **Try:** `activation="relu"` in section 1, with and without clip. T = 4: how far back does it remember now? k = 32.
# $W_h$ times 0.5 before training: does it learn faster, does it remember less?

# %%
print("\n4. Test words, nats per word, all models of this lab")
print_losses(test_losses)
print("All models of the project, from counting to copying, on the same words: mini-tf compare, labs/ladder.md")
