# %% [markdown]
# # Lab 03b: a recurrent language model
#
# - **Goals:** train a recurrent language model by teacher forcing, with the gradient of its loss; carry its state from
#   one batch to the next; measure how many words back a model really remembers.
# - **Before it:** Lab 03, and the losses of Labs 01b and 02b. **Work:** about 6 hours.
# - **Hand in:** `step_losses.backward`, `windows_of`, `forgotten`, `read_one`; an experiment from “Try”.
#
# Sources and letters: those of `03_recurrent.py`, which derived a recurrent network's gradient through time, and showed
# it vanish and explode. Here such a network learns language.
#
# It runs in about two minutes on one CPU core, about half a minute with `--quick` (too short for the model to learn
# much: read the conclusions off the full run), and at least twice as long on a machine that is busy with other work.
# Set OPENBLAS_NUM_THREADS=1 there.

# %%
from functools import partial
from itertools import product

from _common import (
    gradient_by_distance,
    loop_length,
    quick_mode,
    refused,
    repeated_triples,
    show,
    shown,
    table,
    typical,
)
from _drawing import lab_03
from _expect import about, above, at_most, below, between, expect
from mini_tf import ops
from mini_tf.decoding import generate, greedy, sample
from mini_tf.metrics import log_frequencies, log_softmax_at, unigram_cross_entropy
from mini_tf.models import CarriedState, FixedWindowModel, NGramModel, RecurrentModel
from mini_tf.progress import training_progress
from mini_tf.text import Vocabulary, shakespeare, tokenize
from mini_tf.trace import trace
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
# ## 1. Teacher forcing
#
# A language model predicts each word from the words before it. The readout turns the state into scores:
#
# $$
# \text{logits}_t = h_t \cdot U + b_2, \qquad
# \pi_t = \text{softmax}(\text{logits}_t), \qquad
# J_t = -\ln \pi_t(\text{the word that comes next})
# $$
#
# $$
# J = \frac{J_1 + \dots + J_T}{T}
# $$
#
# In training the network reads the *true* word at each step, whatever it would have guessed. That is teacher forcing:
# like a teacher who corrects every word at once. T + 1 words give T predictions, all in one pass.
#
# The gradient of the loss at step t is the softmax layer's of Lab 02, with $y_t$ the one-hot vector of the next word:
#
# $$
# \frac{\partial J_t}{\partial\,\text{logits}_t} = \pi_t - y_t, \qquad
# \frac{\partial J_t}{\partial h_t} = (\pi_t - y_t) \cdot U^\top, \qquad
# \frac{\partial J_t}{\partial U} = h_t^\top \cdot (\pi_t - y_t), \qquad
# \frac{\partial J_t}{\partial b_2} = \pi_t - y_t
# $$

# %%
def step_losses(h, U, b_2, following):
    """J_t = −ln π_t(following), π_t = softmax(h_t·U + b_2), for each text and step, and the backward

    h (B, T, k), U (k, c), b_2 (c,), following (B, T) the words that come next  →  J (B, T)
    backward: dJ (B, T)  →  dh (B, T, k), dU (k, c), db_2 (c,), which sum over texts and steps
    """
    logits = h @ U + b_2                                 # (B, T, c)
    logits -= logits.max(-1, keepdims=True)              # changes no probability, and no exp overflows
    log_pi = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    J = -np.take_along_axis(log_pi, following[..., None], -1)[..., 0]

    def backward(dJ):
        dlogits = (np.exp(log_pi) - np.eye(len(b_2))[following]) * dJ[..., None]
        return dlogits @ U.T, np.einsum("btk,btc->kc", h, dlogits), dlogits.sum((0, 1))

    return J, backward


# %% [markdown]
# Take a line of Coriolanus, and let its few words be the whole vocabulary. "know't" occurs twice, and is followed by
# two different words. A model that sees only one word back cannot tell the two apart: the best it can do is ½ for each,
# ln 2 = 0.693 nats. The state can, because it has read "We" and "we" before.
#
# What is each $J_t$ before training? (The readout starts at 0.) And after 200 steps, also after both "know't"?

# %%
tokens = tokenize(shakespeare("lab"))
start = next(t for t in range(len(tokens)) if tokens[t : t + 6] == ["We", "know't", ",", "we", "know't", "."])
line = tokens[start : start + 7]                         # the last word is the line's end
few_words = Vocabulary(line)
window = few_words.encode(line)[None]                    # (1, T + 1)
pupil = RecurrentModel(np.random.default_rng(0).standard_normal((len(few_words), 4)), k=8, T=6)


def losses_of(model, windows):
    """step_losses of windows (B, T + 1)"""
    states, _ = model.read(windows[:, :-1])
    return step_losses(states, model.readout.W.data, model.readout.b.data, windows[:, 1:])


before = losses_of(pupil, window)[0][0]
adam = Adam(0.02)
for _ in range(200):
    pupil.clear_gradients()
    _, backward = pupil.loss(window)
    backward()
    adam.step(pupil.parameters())
(after,), step_backward = losses_of(pupil, window)

table(("step", "read", "predict", "J_t untrained", "J_t trained"),
      [(t + 1, *map(shown, line[t : t + 2]), before[t], after[t]) for t in range(len(line) - 1)],
      ("{}", "{}", "{:.3f}", "{:.3f}"),
      title=f"1. Teacher forcing, nats: {' '.join(line[:-1])!r}, {len(few_words)} different words with the line's end")
expect("J_t untrained, largest difference from ln 6", at_most(1e-12), abs(before - np.log(6)).max(), form="{:.0e}")
expect("J_t trained, the largest, nats", below(0.05), after.max(), form="{:.3f}")

pupil.clear_gradients()
loss, backward = pupil.loss(window)
backward()
_, dU, _ = step_backward(np.full((1, 6), 1 / 6))         # J is the mean of six steps
expect("J by hand, difference from model.loss", at_most(1e-12), abs(after.mean() - loss), form="{:.0e}")
expect("dU by hand, largest difference", at_most(1e-12), abs(dU - pupil.readout.W.grad).max(), form="{:.0e}")

# %% [markdown]
# When a model writes (section 4) there is no teacher: it reads its own words. A mistake then enters the state, and in
# training the network never saw a state that contains its own mistakes.
#
# ## 2. Discard the proctor?
#
# "as the proctor started the clock, the students opened their …". Both lectures show a model only the last few words,
# and discard the rest; CSCI 567 asks whether the proctor should have been discarded. Here a proctor means exams, and a
# teacher books:
#
#     as the proctor started the clock , in the hall the students opened their exams .
#     as the teacher started the clock , in the hall the students opened their books .
#
# Between the comma and "the students" there are 0 to 12 filler words, in 16 different combinations. So the person is 9
# to 21 words before the word to predict, every filler occurs with both persons, and nothing else distinguishes the two.
#
# The windows below are all that a fixed-window model ever sees: a word, and the T words before it.

# %%
PHRASES = ("at nine", "in the hall", "after a short silence", "one by one")
ANSWERS = {"proctor": "exams", "teacher": "books"}
fillers = [" ".join(chosen) for chosen in product(*[("", phrase) for phrase in PHRASES])]


def sentence(person, filler):
    return f"as the {person} started the clock , {filler} the students opened their {ANSWERS[person]} .".split()


def windows_of(rows, T, padding):
    """All windows of T + 1 words, each word of a row in turn the last, with `padding` before its first word

    rows (rows, words)  →  (rows·words, T + 1), row by row
    """
    padded = np.concatenate([np.full((len(rows), T), padding), rows], axis=1)
    return np.lib.stride_tricks.sliding_window_view(padded, T + 1, axis=1).reshape(-1, T + 1)


sentences = [sentence(person, filler) for filler in fillers for person in ANSWERS]
longest = max(map(len, sentences))
school = Vocabulary(["\n", *(word for words in sentences for word in words)])
rows = np.array([school.encode(words + ["\n"] * (longest + 1 - len(words))) for words in sentences])

# %% [markdown]
# Four models with 32 hidden units each, 500 steps of Adam on all 32 sentences: a window of 4 words, a window of 12,
# which reaches the person if the filler has at most 3 words, and two recurrent networks. One has tanh and a random
# rotation for $W_h$, the default. The other has relu, and $W_h$ is initialized as the identity: the state keeps its
# value until a word changes it, and the slope of an active unit is 1 (Le, Jaitly, Hinton 2015,
# [arXiv:1504.00941](https://arxiv.org/abs/1504.00941)).
#
# What will each of them answer? Whatever its training, the window of 4 has the same input after both persons. The tanh
# network's state has the same size as the relu network's, but little of the gradient reaches the person: without any
# filler, 1 to 3 % of what reaches the last word before training, and less than $10^{-4}$ after it. **Expect** 30 % or
# more for the relu network, before and after.
#
# And what will the relu network say after 24 words of filler, twice as many as it has ever seen? It does not guess,
# which would give ½: it predicts the end of the line, because every sentence in training had ended by then. (The two
# networks differ in two things, f and the initial $W_h$. Which of them matters? Try tanh with the identity.)

# %%
def learn(model, windows, steps=500):
    adam = Adam(5e-3)
    for _ in range(steps):
        model.clear_gradients()
        _, backward = model.loss(windows)
        backward()
        clip_gradients(model.parameters(), 1.0)
        adam.step(model.parameters())


def probability(model, words):
    """p of the answer, the last but one word of a sentence, given the words before it."""
    history = school.encode(words[:-2])
    seen = history[-model.T :] if isinstance(model, FixedWindowModel) else history
    return float(np.exp(log_softmax_at(model.logits(seen[None]), school.encode(words[-2:-1])))[0])


def person_reach(model):
    """‖∂(v·h_T)/∂x_{T−8}‖, relative to that at T: how much of the gradient reaches a person without any filler"""
    p = {name: parameter.data.astype(np.float64) for name, parameter in model.parameters().items()}
    x = p["embedding.table"][[school.encode(sentence(person, "")[:-2]) for person in ANSWERS]]
    start = np.repeat(p["recurrent.h0"][None], 2, axis=0)
    return typical(gradient_by_distance(
        x, start, p["recurrent.Wx"], p["recurrent.Wh"], p["recurrent.b"], model.config["activation"]
    ))[8]  # fmt: skip


school_table = np.random.default_rng(8).standard_normal((len(school), 16)).astype(np.float32)
school_models = {f"window of {T}": FixedWindowModel(school_table, T=T, k=32) for T in (4, 12)}
for f in ("tanh", "relu"):
    school_models[f"recurrent, {f}"] = RecurrentModel(school_table, T=longest, k=32, activation=f)
school_models["recurrent, relu"].recurrent.Wh.data[...] = np.eye(32)
reach_before = {name: person_reach(school_models[name]) for name in ("recurrent, tanh", "recurrent, relu")}

# %%
right = {}                                               # {model: p of the right word for each sentence}
for name, school_model in school_models.items():
    fixed = isinstance(school_model, FixedWindowModel)
    learn(school_model, windows_of(rows, school_model.T, school.encode(["\n"])[0]) if fixed else rows)
    right[name] = np.array([probability(school_model, words) for words in sentences])
filler_words = np.array([len(words) for words in sentences]) - len(sentence("proctor", ""))
table(("words of filler", *right),
      [(count, *(p[filler_words == count].mean() for p in right.values())) for count in np.unique(filler_words)],
      "{:.3f}", title=f"2. p(the right word), mean of both persons; {len(school)} different words")  # fmt: skip
one, other = right["window of 4"].reshape(-1, 2).T       # exams after proctor, books after teacher
expect("window of 4, p(exams) + p(books), the largest", at_most(1 + 1e-6), (one + other).max(), form="{:.3f}")
expect("window of 4, p(right), the mean", about(0.5, within=0.01), np.mean(right["window of 4"]), form="{:.3f}")
wide = right["window of 12"]
expect("window of 12, filler of 0 to 3 words, the least", above(0.75), wide[filler_words <= 3].min(), form="{:.3f}")
expect("window of 12, longer filler, the mean", about(0.5, within=0.08), wide[filler_words > 3].mean(), form="{:.3f}")
expect("recurrent, relu, the least", above(0.95), right["recurrent, relu"].min(), form="{:.3f}")
expect("recurrent, tanh, the largest", below(0.55), right["recurrent, tanh"].max(), form="{:.3f}")
for name, before, after in (("tanh", between(0.005, 0.05), below(1e-4)), ("relu", above(0.3), above(0.3))):
    name = f"recurrent, {name}"
    expect(f"{name}, gradient at the person, before", before, reach_before[name], form="{:.1e}")
    expect(f"{name}, gradient at the person, after", after, person_reach(school_models[name]), form="{:.1e}")
beyond = []
for person in ANSWERS:
    words = sentence(person, " ".join(PHRASES * 2))
    beyond.append(probability(school_models["recurrent, relu"], words))
    scores = school_models["recurrent, relu"].logits(school.encode(words[:-2])[None])[0]
    print(f"  relu, 24 words of filler after {person}: it predicts {school.words[scores.argmax()]!r}")
expect("recurrent, relu, 24 words of filler, p(right)", below(0.5), np.mean(beyond), form="{:.3f}")
show(lab_03.proctor({name: (filler_words, p) for name, p in right.items()}), "03_proctor")

# %% [markdown]
# So the proctor should not be discarded: without the person, the last word costs ln 2 nats. A window has to be as wide
# as the distance, and learns each position of the person separately. A recurrent network carries the word across any of
# these fillers, provided that the gradient reaches far enough back to train it.

# %% [markdown]
# ## 3. A model of Shakespeare
#
# The model of section 1, $h_t = \tanh(x_t \cdot W_x + h_{t-1} \cdot W_h + b)$, with word vectors x that are initialized
# at random and learned, 128 entries in the state, and 14,295 words in the readout. We use tanh, because its states are
# never larger than 1, and where the state is large its slope is small. We clip nevertheless.
#
# **Truncated backpropagation through time.** Nobody unrolls a network over 250,000 words. The text is cut into 16 long
# pieces that are read in parallel, 32 words at a time. The state is carried from batch to batch (`CarriedState`), but
# as a constant: the state may hold information from any word since the last reset, up to 2,048 words back, but
# gradients reach back at most 32 words.
#
# **The initial state.** If the state were always carried over, hardly any batch would begin at $h_0$, and $h_0$ would
# hardly be learned. So every 64th batch starts there; the model learns how to begin, and comparing it with and without
# carried state is fair.
#
# **The initial readout**, a pitfall. With $b_2 = 0$ the first thing to learn is which words are frequent, and Adam
# pushes all parameters in that direction, so that even the state is driven into the flat ends of tanh. But which words
# are frequent can be counted: with $b_2 = \ln(\text{unigram})$ the model starts at the unigram's loss, and the state is
# free to learn what only a state can.
#
# Try both with a small model (n = 32, k = 64, 120 steps). Which will have the larger slopes, and the lower loss?

# %%
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
    """Nats per word of the words first … last − 1, read in one pass, after some words to warm up the state."""
    start = max(first - HEARD, 0)
    return -model.log_probabilities(ids[start:last], first - start).mean()


def learn_on(model, words, rate, rng, steps=None):
    """One pass through the words, or `steps` steps."""
    carried, adam = CarriedState(model, anew=EVERY), Adam(rate)
    batches = ConsecutiveWindows(words, model.T, batch)
    for _ in range(steps or len(words) // batch // model.T):
        model.clear_gradients()
        _, backward = carried.loss(next(batches), rng)
        backward()
        clip_gradients(model.parameters(), 1.0)
        adam.step(model.parameters())


# %%
small_table = (EMBEDDING_SIZE * np.random.default_rng(3).standard_normal((c, 32))).astype(np.float32)
starts = {}                                              # {first b₂: (test loss, mean slope)}
for name, frequencies in (("zero", None), ("ln(unigram)", np.bincount(train, minlength=c))):
    small = RecurrentModel(small_table, frequencies, k=64, T=16, dropout=0.2)
    learn_on(small, train, 2e-3, np.random.default_rng(4), steps=120)
    states, _ = small.read(ids[None, first_test : first_test + 2000])
    starts[name] = cross_entropy(small, first_test, first_test + 4000), np.mean(1 - states**2)
of_unigram = unigram_cross_entropy(train, ids[first_test : first_test + 4000], c)
table(("first b₂", "loss, nats", "mean slope of its states"), starts | {"the unigram model itself": of_unigram},
      "{:.3f}", title="3. Shakespeare: a small model after 120 steps, on 4,000 test words")  # fmt: skip
expect("b₂ from zero, loss, nats", about(6.30, within=0.12), starts["zero"][0], form="{:.2f}")
expect("b₂ from zero, mean slope", below(0.2), starts["zero"][1], form="{:.3f}")
expect("b₂ from ln(unigram), loss, nats", about(5.84, within=0.05), starts["ln(unigram)"][0], form="{:.2f}")
expect("b₂ from ln(unigram), mean slope", about(0.57, within=0.05), starts["ln(unigram)"][1], form="{:.2f}")
ahead = starts["zero"][0] - starts["ln(unigram)"][0]
expect("loss, from zero − from ln(unigram), nats", above(0.3), ahead, form="{:.2f}")

# %% [markdown]
# ### The baseline to beat
#
# We compare with the n-gram models of Lab 01. The network learns from 85.5 % of the words; 4.5 % are set aside for
# validation; the last 10 % are the test. Lab 01's model counts the validation words, too. They come right before the
# test and include the beginning of the play in which it starts, with its names. A fair comparison is between models
# that have seen the same words, so we count twice.
#
# The difference is large: 6.9 % of the test words never occur in the words that the network learns from, 4.3 % never
# before the test.

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


def share_of_new(words):
    """The share of the test words that do not occur among the words."""
    return np.mean(~np.isin(ids[first_test:], words))
print(f"\n  {len(train):,} words to learn from, {first_test - first_validation:,} to validate, "
      f"{len(ids) - first_test:,} to test")
for name, bar in zip(test_losses, (9.568, 6.064, 5.380, 5.050)):
    expect(name, about(bar, within=0.001), test_losses[name], form="{:.3f}")
expect("test words not in the words it learns from", about(0.069, within=0.0005), share_of_new(train), form="{:.1%}")
expect("test words not in any words before the test", about(0.043, within=0.0005), share_of_new(ids[:first_test]),
       form="{:.1%}")  # fmt: skip

# %% [markdown]
# ### Training
#
# We train with Adam, clip = 1, dropout 0.2, and a learning rate that rises over the first steps and then falls until
# the end, for less than two passes through the text. Guess where the loss begins, and where it ends: below the trigram
# model that counted the same words? Below the one that counted more?
#
# In the figure, the dashed lines are losses on the test words, which are harder than the validation words: there is a
# new play, with new names. Compare them with one another, not with the curves. Each training loss is the mean over an
# interval, and is drawn at its middle.

# %%
vectors = (EMBEDDING_SIZE * np.random.default_rng(0).standard_normal((c, n))).astype(np.float32)
counts = np.bincount(train, minlength=c)                 # for b₂
new_model = partial(RecurrentModel, vectors, counts, k=k, T=T, dropout=0.2)
model, untrained = new_model(), new_model()
carried, batches = CarriedState(model, anew=EVERY), ConsecutiveWindows(train, T, batch)
print(f"\n  n = {n}, k = {k}, T = {T}, batch {batch}: {model.parameter_count():,} trainable parameters, of which "
      f"{sum(p.data.size for p in model.recurrent.parameters().values()):,} carry the state")
start = cross_entropy(untrained, first_test, len(ids))
with training_progress(training_steps, batch * T) as on_step:
    schedule = Schedule(training_steps // 20, training_steps)
    history = fit(
        Training(carried, batches, Adam(2e-3), schedule, clip=1.0, rng=np.random.default_rng(1)), training_steps,
        validate=lambda: cross_entropy(model, first_validation, first_validation + (1000 if QUICK else 4000)),
        every=training_steps // (5 if QUICK else 10), watcher=Watcher(on_step),
    )  # fmt: skip
table(("step", "training", "validation"),
      [(row["step"], row["train_loss"], row["validation_loss"]) for row in history.rows], "{:.3f}",
      title=f"Nats per word; {history.rows[-1]['seconds']:.0f} s of training")  # fmt: skip
log_p = model.log_probabilities(ids[first_test - HEARD :], HEARD)        # of every test word: (29,208,)
test_losses["recurrent, the words it learns from"] = -log_p.mean()
of_unigram = -log_frequencies(np.bincount(train, minlength=c), c)[ids[first_test:]].mean()        # counts + ½
loss = test_losses["recurrent, the words it learns from"]
expect("untrained, above the unigram of its words, nats", about(0, within=1e-4), start - of_unigram, form="{:.4f}")
falls = -np.diff([row["validation_loss"] for row in history.rows])
expect("fall of the first interval / of the last", above(3), falls[0] / falls[-1], quick=above(1))
expect("trained, nats per word", about(5.31, within=0.02), loss, quick=below(6), form="{:.3f}")
expect("below the 3-gram of the same words by, nats", above(0),
       test_losses["3-gram, the words the network learns from"] - loss, quick=None, form="{:.3f}")  # fmt: skip
expect("above the 3-gram of more words by, nats", above(0.1),
       loss - test_losses["3-gram, all words before the test"], form="{:.3f}")  # fmt: skip
lines = {                                                # of the test words, which are harder than those to validate
    "test: unigram": test_losses["unigram, all words before the test"],
    "test: 3-gram, same words": test_losses["3-gram, the words the network learns from"],
    "test: 3-gram, more words": test_losses["3-gram, all words before the test"],
    "test: this model": test_losses["recurrent, the words it learns from"],
}
show(draw_curves(history.rows, lines), "03_training")

# %% [markdown]
# Now the network may learn from the validation words, too, as the second 3-gram model did: one pass, a few seconds,
# learning rate $10^{-3}$. Some four fifths of the gain come from the 2.6 % of the test words that the network meets
# there for the first time: the play's names, as the list shows. Will it overtake the 3-gram?

# %%
later = new_model()
for name, parameter in later.parameters().items():
    parameter.data = model.parameters()[name].data.copy()
learn_on(later, validation, 1e-3, np.random.default_rng(2))
later_log_p = later.log_probabilities(ids[first_test - HEARD :], HEARD)
test_losses["recurrent, all words before the test"] = -later_log_p.mean()
table(None, test_losses, "{:.3f}", title=f"After one pass through {len(validation) - T:,} more words, test words")
gain = later_log_p - log_p                               # of every test word
met = np.isin(ids[first_test:], validation) & ~np.isin(ids[first_test:], train)
of_word = np.bincount(ids[first_test:][met], gain[met], minlength=c)
print("  words met for the first time, where the gain is largest: "
      + "  ".join(vocabulary.words[i] for i in np.argsort(-of_word)[:5]))
expect("gain, nats per word", above(0.1), gain.mean(), form="{:.3f}")
expect("test words met there for the first time", about(0.026, within=0.001), met.mean(), form="{:.1%}")
expect("their share of the gain", about(0.83, within=0.05), gain[met].sum() / gain.sum(), quick=above(0.2),
       form="{:.0%}")  # fmt: skip
expect("the 3-gram of the same words is ahead by, nats", above(0.1), test_losses["recurrent, all words before the test"]
       - test_losses["3-gram, all words before the test"], form="{:.3f}")  # fmt: skip

# %% [markdown]
# So counting still wins when both have seen all the words before the test. Counting learns a name from one occurrence;
# gradient descent has to learn it one step at a time.
#
# ### How much the carried state helps
#
# We take the same model and the same test words, but reset the state to $h_0$ every so many words.
#
# What does a state that has read only one word add to the loss, and how soon is that made up?

# %%
def reset_losses(model, every, most):
    """Losses of the first test words when the state is reset every `every` words: (windows, every)"""
    count = min(most, len(ids) - first_test) // every
    begins = first_test - 1 + every * np.arange(count)   # the word before a window's first prediction is read
    windows = ids[begins[:, None] + np.arange(every + 1)]
    parts = np.array_split(windows, max(count * every // 256, 1))
    return np.concatenate([losses_of(model, part)[0] for part in parts])


MEASURED = 2048 if QUICK else 8192                       # words
by_reset = {every: reset_losses(model, every, MEASURED).mean() for every in (1, 2, 4, 8, 16, 32, 64)}
table(("reset every … words", *by_reset, "never"), {"": (*by_reset.values(), -log_p[:MEASURED].mean())}, "{:.3f}",
      title=f"The first {MEASURED:,} test words, nats per word")  # fmt: skip
more = reset_losses(model, 32, MEASURED) + log_p[:MEASURED].reshape(-1, 32)      # − log p is the carried state's loss
more = more.mean(0)
KNOWN = (1, 2, 3, 5, 10, 20, 32)
table(("words read since the reset", *KNOWN), {"loss added there": [more[known - 1] for known in KNOWN]}, "{:.2f}")
expect("each doubling of the words lowers the loss", True, bool(np.all(np.diff(list(by_reset.values())) < 0)))
expect("every 64 words, above the carried state's, nats", below(0.03), by_reset[64] + log_p[:MEASURED].mean(),
       form="{:.3f}")  # fmt: skip
expect("added when one word is known, nats", about(0.37, within=0.04), by_reset[1] + log_p[:MEASURED].mean(),
       quick=above(0.05), form="{:.2f}")  # fmt: skip
expect("added when 10 to 32 words are known, nats", below(0.01), more[9:].mean(), form="{:.3f}")

# %% [markdown]
# ### How far back does it remember?
#
# We test the model directly. Take places in the test with 100 words before each. Keep the last d words and replace all
# words further back: once by random words of the training text, once by a passage of it, which is good Shakespeare but
# unrelated to what follows. If the loss does not change, the model does not use what is further back than d. The places
# are the same for all d, so the differences are measured precisely; each comes with its standard error.
#
# CS685 says that recurrent networks hardly look beyond 20 to 30 words. How far do you expect this one to look? T = 32
# would allow 32.
#
# False words cost more than missing ones, because they mislead. With two true words, false words before them add 0.4
# nats; a reset before them (the table above, every 2 words) adds half of that. The latter is what the network gains
# from words that a 3-gram model never sees.

# %%
HISTORY, places = 100, 400 if QUICK else 2000
ends = np.linspace(first_test, len(ids) - 1, places).astype(int)
windows = windows_ending_at(ids, ends, HISTORY)          # (places, HISTORY + 1)
rng = np.random.default_rng(6)


def last_word_losses(windows):
    parts = np.array_split(windows, 8)
    return np.concatenate([-log_softmax_at(model.logits(part[:, :-1]), part[:, -1]) for part in parts])


def forgotten(windows, d, other):
    """The windows with all words further back than d replaced by the words of `other` in the same places

    windows (places, history + 1): the last word is the one to predict; other (places, history)  →  a new array
    """
    changed, replaced = windows.copy(), windows.shape[1] - 1 - d
    changed[:, :replaced] = other[:, :replaced]
    return changed


others = {
    "random words": train[rng.integers(0, len(train), (places, HISTORY))],
    "another passage": train[rng.integers(0, len(train) - HISTORY, places)[:, None] + np.arange(HISTORY)],
}

# %%
true_history = last_word_losses(windows)
distances = (0, 1, 2, 3, 5, 10, 20, 50)
lost = {}                                                # {(other, d): (mean, standard error)}
for d in distances:
    for name, other in others.items():
        more = last_word_losses(forgotten(windows, d, other)) - true_history
        lost[name, d] = more.mean(), more.std() / np.sqrt(places)
table(("d, words", *(f"{name}, ± standard error" for name in others)),
      [(d, *("{:.4f} ± {:.4f}".format(*lost[name, d]) for name in others)) for d in distances],
      title=f"Nats added when only d words are kept; all {HISTORY} kept: {true_history.mean():.3f}; {places:,} places")
added = {name: [lost[name, d] for d in distances[1:]] for name in others}
mean = {d: np.mean([lost[name, d][0] for name in others]) for d in distances}
expect("added at d = 1, both kinds, nats", about(0.68, within=0.04), mean[1], quick=above(0.1), form="{:.2f}")
expect("added at d = 2, both kinds, nats", about(0.39, within=0.05), mean[2], quick=above(0.05), form="{:.2f}")
expect("added at d = 10, both kinds, nats", between(0.001, 0.01), mean[10], quick=below(0.05), form="{:.4f}")
expect("added at d = 20, both kinds, nats", about(0, within=0.001), mean[20], quick=about(0, within=0.01),
       form="{:.4f}")  # fmt: skip
kinds = np.array([[lost[name, d][0] for d in distances[1:]] for name in others])
expect("difference of the two kinds, d = 1", below(0.1), abs(kinds[0] - kinds[1])[0], form="{:.3f}")
expect("… d ≥ 2, the largest", below(0.1), abs(kinds[0] - kinds[1])[1:].max(), quick=below(0.1), form="{:.3f}")
fresh = 2 * by_reset[2] - by_reset[1] + log_p[:MEASURED].mean()          # two words per reset: one known, then two
expect("a reset, two words known: added, nats", about(0.21, within=0.04), fresh, quick=None, form="{:.2f}")

# %% [markdown]
# And the gradient by distance, as in section 5 of `03_recurrent.py`:
# $\lVert \partial (v \cdot h_T)/\partial x_{T-d} \rVert$ for a random v, now through the trained model on the test's
# words (64 places, the learned $W_h$). Does training lengthen its reach? $W_h$ has grown, but the slopes have fallen
# more: **expect** radius times mean slope to be close to what is kept of the gradient for each word.

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


reaches, kept, rows = {}, {}, {}
for name, some_model in (("untrained", untrained), ("trained", model)):
    gradients, slope, learned_Wh = model_reach(some_model)
    reaches[name] = gradients / np.exp(np.log(gradients[:, :1]).mean())
    part = typical(gradients)
    kept[name] = part[20] ** (1 / 20)
    rows[name] = (*part[[1, 5, 10, 20, 50]], slope, abs(np.linalg.eigvals(learned_Wh)).max())
print()
table(("", "d = 1", "d = 5", "d = 10", "d = 20", "d = 50", "mean slope", "radius of Wh"), rows,
      ["{:.1e}"] * 5 + ["{:.2f}"] * 2)  # fmt: skip
expect("untrained, gradient kept for each word", about(0.84, within=0.02), kept["untrained"], form="{:.2f}")
expect("trained, gradient kept for each word", about(0.68, within=0.02), kept["trained"], quick=below(0.82),
       form="{:.2f}")  # fmt: skip
for name, (*_, slope, radius) in rows.items():
    expect(f"{name}, radius · mean slope / kept", about(1.05, within=0.12), radius * slope / kept[name], quick=None,
           form="{:.2f}")  # fmt: skip
show(lab_03.memory(reaches, distances[1:], added), "03_memory")

# %% [markdown]
# ## 4. Writing with a state
#
# `generate` asks the model for a `reader()`, which reads the prompt once, and then each word that is written. The state
# is all it keeps. Here is one step of the reader by hand. **Expect** it to give the library's scores.

# %%
def read_one(x, state, Wx, Wh, b, U, b_2):
    """Read one word: the new state h = tanh(x·Wx + state·Wh + b), and the scores h·U + b_2 of the next word

    x (n,), state (k,), Wx (n, k), Wh (k, k), b (k,), U (k, c), b_2 (c,)  →  h (k,), scores (c,)
    """
    h = np.tanh(x @ Wx + state @ Wh + b)
    return h, h @ U + b_2


prompt = ids[first_test : first_test + 40]
p = {name: parameter.data for name, parameter in model.parameters().items()}
weights = [p[name] for name in ("recurrent.Wx", "recurrent.Wh", "recurrent.b", "readout.W", "readout.b")]
state = p["recurrent.h0"]
for word in prompt:
    state, scores = read_one(p["embedding.table"][word], state, *weights)
off = abs(scores - model.logits(prompt[None])[0]).max()
print("\n4. Writing")
expect("scores after 40 words, largest difference", at_most(1e-4), off, form="{:.0e}")

# %% [markdown]
# **Expect** greedy decoding to end in a loop. (With a fixed window it must. A state, a vector of real numbers, need not
# repeat, but here it does.) At which temperature will sampling use about as many different words as Shakespeare?

# %%
choices = {
    "greedy": greedy,
    "temperature 0.7": partial(sample, temperature=0.7, rng=np.random.default_rng(7)),
    "temperature 1.0": partial(sample, temperature=1.0, rng=np.random.default_rng(7)),
}
texts = {name: np.array(list(generate(model, prompt, 300, choose))) for name, choose in choices.items()}
texts["Shakespeare"] = ids[first_test + 40 : first_test + 340]
different = {name: len(set(written)) for name, written in texts.items()}
table(("300 words", "different words", "repeated triples", "loop of … words"),
      [(name, different[name], repeated_triples(written), loop_length(written)) for name, written in texts.items()],
      ("{}", "{:.0%}", "{}"))  # fmt: skip
expect("greedy ends in a loop", True, loop_length(texts["greedy"]) is not None)
expect("greedy, repeated triples", above(0.5), repeated_triples(texts["greedy"]), form="{:.0%}")
wildest = different["temperature 1.0"]
expect("different words, temperature 1.0 / 0.7", above(1.2), wildest / different["temperature 0.7"])
expect("different words, temperature 1.0 / Shakespeare", about(1.1, within=0.25), wildest / different["Shakespeare"])
print("\n--- the end of the prompt ---\n" + vocabulary.decode(prompt[-20:]).strip("\n"))
for name in choices:
    print(f"\n--- {name}, the first 60 words ---\n" + vocabulary.decode(texts[name][:60]).strip("\n"))

# %% [markdown]
# How much does the state save? Without it, each new word means reading all the words so far again. Times depend on the
# machine, so we count steps of the network: how many does a new word take after 10, and after 1,000 words, with the
# state and without it?

# %%
def steps_of(action):
    """The steps that recurrent networks take in an action: one for each word read"""
    with trace() as calls:
        action()
    return sum(call.inputs[0].shape[1] for call in calls if call.name == "rnn")      # x (B, T, n)


counted, off = {}, 0
for length in (10, 100, 300, 1000):
    so_far = ids[first_test : first_test + length]
    read = model.reader().read
    read(so_far[:-1])
    off = max(off, abs(read(so_far[-1:]) - model.logits(so_far[None])).max())
    counted[length] = steps_of(partial(read, so_far[-1:])), steps_of(partial(model.logits, so_far[None]))
print()
table(("words so far", "steps with the state", "steps reading all again"), counted)
expect("logits, the largest difference of the two", at_most(1e-4), off, form="{:.0e}")
expect("with the state, steps for each new word", 1, max(few for few, _ in counted.values()))
expect("reading all again, steps for the 1,000th word", 1000, counted[1000][1])

# %% [markdown]
# ## 5. Invalid input
#
# A single weight that is NaN corrupts every later state, and so every probability. **Expect** a message for each of six
# mistakes, and no NaN.

# %%
print("\n5. Invalid input")
whole = model.recurrent.Wh.data.copy()
model.recurrent.Wh.data[0, 0] = np.nan
given = [refused(attempt, what, width=110) for what, attempt in (
    ("measuring a text with a weight that is NaN", lambda: cross_entropy(model, first_test, first_test + 50)),
    ("writing with it", lambda: list(generate(model, prompt, 5, greedy))),
    ("a word that is not in the vocabulary", lambda: model.log_probabilities(np.array([c]))),
    ("a state of no size", lambda: RecurrentModel(vectors, k=0)),
    ("an unknown activation", lambda: RecurrentModel(vectors, activation="sigmoid")),
    ("a text too short for the pieces", lambda: ConsecutiveWindows(ids[:100], T, batch)),
)]  # fmt: skip
model.recurrent.Wh.data = whole
expect("mistakes that give a message, of 6", 6, sum(given))

# %% [markdown]
# ## 6. What to remember
#
# - The state can carry a word over any distance seen in training, if the gradient survives that distance.
# - Count what can be counted ($b_2$), and let the network learn the rest.
# - A carried state *could* bring information from before the T words of backpropagation. Here it does not: nothing
#   beyond ten words is used. What it saves is the poor predictions after each reset. Let the model learn to begin, too.
# - On Shakespeare it remembers ten words at most, with a state that could in principle hold anything.
#
# That last point is the bottleneck. *One* vector has to hold everything that may ever matter, and each new word
# overwrites some of it. A word twenty places back can be reached only through twenty steps, forward and backward.
# **Attention** keeps a vector for each word, and reaches any of them in one step: the distance is 1, whatever d is.
# There is no product of twenty matrices and no bottleneck, and all positions can be computed in parallel. The price is
# that it has to keep a vector for every word, and compare each new word with all of them, so the time per word grows
# with the text. Labs 03c (gates) and 03d (attention over a recurrent network) lead there; Lab 06 builds it.
#
# **Try:** the tanh network of section 2 with fillers of at most two words, or 5,000 steps. `activation="relu"` in
# section 3, with and without clip. T = 4: how far back does it remember now? k = 32. $W_h$ times 0.5 before training:
# does it learn faster, does it remember less? In section 1, a line in which a word occurs three times.

# %%
table(None, test_losses, "{:.3f}", title="6. Test words, nats per word, all models of this lab")
print("All models of the project, from counting to copying, on the same words: mini-tf compare, labs/ladder.md")
