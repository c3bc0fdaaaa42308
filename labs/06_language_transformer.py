# %% [markdown]
# # Lab 06: a transformer that predicts words
#
# Source: ESE-2000 Lab 6, "Language transformers", Tasks 6.6 to 6.9.
#
# You give the transformer of Task 6.4 a readout that speaks in probabilities, train it on Shakespeare, measure it
# against baselines that need no network at all, draw words from it, and let it write. On the way you learn
#
# - what losses of 9.568, 6.06 and 5.9 nats per word mean, and how to tell memory from knowledge,
# - why words that never occur in training weigh so heavily in the test loss,
# - why the most probable word is the best guess and the worst author.
#
# It takes under three minutes on two CPU cores, a quarter of a minute with `--quick`. On a machine that has other work,
# set OPENBLAS_NUM_THREADS=1: threads that wait for each other can take longer than one alone.
#
# Letters: B batch, T history length in words, n size of a word vector, L layers, H heads, m size of a head, c
# vocabulary size.

# %%
from functools import partial

from _common import loop_length, quick_mode, repeated_triples, show, word_losses
from _drawing import lab_06
from mini_tf import ops
from mini_tf.decoding import generate, greedy, sample
from mini_tf.layers.embedding import ABSENT
from mini_tf.metrics import perplexity, uniform_cross_entropy, unigram_cross_entropy
from mini_tf.models import LanguageTransformer
from mini_tf.progress import training_progress
from mini_tf.text import shakespeare
from mini_tf.training import Adam, RandomWindows, Schedule, Training, Watcher, fit, mean_loss, windows_ending_at
from mini_tf.training.figures import draw_curves
from mini_tf.training.language import prepare

import numpy as np

QUICK = quick_mode("Lab 06: Tasks 6.6 to 6.9: probabilities, sampling, generation")

# %% [markdown]
# ## The sizes
#
# Task 6.7 leaves L, H and m as "??". Task 6.5 recommends L = 6, H = 8, m = 64 with n = 256. That makes a matrix A of
# 117 million numbers, 2.7 GB of memory and about two seconds per step on two cores: more than an hour for 2,000 steps.
# So we choose smaller sizes that show the same things; `SIZES = "lab"` gives you the large ones.
#
# The rows of V are short (0.58 on average over a text's words with n = 64), spread over n numbers. `scale` makes their
# entries about as large as a fresh layer expects. With `scale = 1` all this works too, but learning is slower: in 150
# steps with n = 64 it reached 6.34 where `scale = 8` reached 6.12.

# %%
SIZES = "quick" if QUICK else "small"                    # or "lab": the sizes that Task 6.5 recommends
T = 32
n, L, H, m, scale, learning_rate, batch, steps = {
    "quick": (16, 2, 4, 16, 4.0, 2e-3, 64, 48),
    "small": (32, 2, 4, 16, 8.0, 1e-3, 128, 400),
    "lab": (256, 6, 8, 64, 1.0, 3e-4, 64, 2000),
}[SIZES]
TESTED, OFTEN = (1000, 300) if QUICK else (4000, 2000)   # the number of test words measured, once or again and again

print("The corpus")
corpus = prepare(shakespeare(), n, T, say=print)
c = len(corpus.vocabulary)
embeddings = corpus.embeddings * np.float32(scale)       # (c, n)


def new_model(seed=0):
    return LanguageTransformer(embeddings, T=T, L=L, H=H, m=m, readout="vec", seed=seed)


def shown(ids, most=12):
    """The last words of a text in one line: " / " is a line break."""
    text = corpus.vocabulary.decode(ids[-most:]).strip(" ").replace("\n", " / ")
    return ("… " if len(ids) > most else "") + text


# %% [markdown]
# ## Task 6.6: from vectors to probabilities
#
# The readout makes probabilities of what leaves the transformer:
#
# $$
# \pi(X) = \operatorname{softmax}(\operatorname{vec}(\Phi(X)) \cdot A)
# $$
#
# The T vectors that leave the transformer are laid end to end, and A (T·n, c) turns them into a score for each of the
# c words.
#
# A has a row for each of the T·n numbers, so **expect** it to outgrow everything else. A starts at 0: every score is 0,
# every word has probability $1/c$, and the loss is ln c = ln 14,295 = 9.568 to the last digit, whatever the transformer
# does.

# %%
print("\nTask 6.6: the readout; expected of an untrained model: ln c = 9.568")
model = new_model()
windows = windows_ending_at(corpus.test, np.arange(T, T + 256), T)       # (B, T + 1): histories and the word after
Phi, _ = model.trunk(windows[:, :-1])                # (B, T, n)
logits, _ = model.head(Phi)                          # (B, c)
pi, _ = ops.softmax(logits)                              # (B, c)
print(f"windows  (B, T + 1)   {windows.shape}")
print(f"Φ(X)     (B, T, n)    {Phi.shape}")
print(f"logits   (B, c)       {logits.shape}")
print(f"π        (B, c)       rows sum to {pi.sum(-1).min():.4f} … {pi.sum(-1).max():.4f}\n")

print(f"{'numbers to learn':<26}{'here':>14}{'sizes of Task 6.5':>20}")
print(f"{'transformer 4·L·n·H·m':<26}{4 * L * n * H * m:>14,}{4 * 6 * 256 * 8 * 64:>20,}")
print(f"{'readout A = T·n·c':<26}{model.A.W.data.size:>14,}{32 * 256 * c:>20,}")
print(f"{'A in float32':<26}{model.A.W.data.nbytes / 1e6:>11,.0f} MB{32 * 256 * c * 4 / 1e6:>17,.0f} MB")
print("Training needs four arrays of A's size: A, its gradient, and Adam's two running means.\n")

untrained, backward = model.loss(windows)
print(f"untrained loss {untrained:.3f},   ln c = {uniform_cross_entropy(c):.3f}")

# %% [markdown]
# **A question before we go on:** what do the attention matrices learn in the very first step? Their gradient arrives
# through A, and A is 0. **Expect** a gradient for A only.

# %%
backward()
print("\nSize of the gradient in the first step; expected: 0 except for A")
for name, parameter in model.parameters().items():
    if parameter.trainable:
        print(f"  {name:<36}{np.linalg.norm(parameter.grad):>10.5f}")

# %% [markdown]
# From the second step on A is no longer 0, and the layers learn too.
#
# **An error of the source.** The loss is −log π(the word that came), averaged. Three times the source prints the
# objective to be minimised without the minus sign. Taken at its word, it rewards a model for giving the right word *no*
# probability:

# %%
print("\nThe missing minus sign")
print(f"{'π(right word)':>14}{'as printed: log π':>20}{'cross-entropy: −log π':>24}")
for probability in (0.9, 0.1, 1 / c, 1e-9):
    print(f"{probability:>14.2g}{np.log(probability):>20.3f}{-np.log(probability):>24.3f}")
print("The smallest printed objective is in the last row; the smallest cross-entropy is in the first.")

# %% [markdown]
# ## Task 6.7: training and testing
#
# ### Time indices
#
# The corpus exists twice: as indices (the answers) and as vectors $x_t$ (what the transformer reads). mini_tf stores
# only the indices and looks vectors up, so the two cannot get out of step. We check it all the same. A target taken one
# word too early would be the last word of the history: the model would learn to copy, not to predict. Its training loss
# may look fine; but its answer to the true question would be right only as often as a word follows itself.

# %%
print("\nTask 6.7: time indices")
series = embeddings[corpus.train]                        # (words, n): Task 6.3's time series
u = 1000
window = windows_ending_at(corpus.train, [u + T], T)     # (1, T + 1)
history, _ = model.trunk.embedding(window[:, :-1])             # (1, T, n)
print("X_u is x_u … x_{u+T−1}:  ", np.array_equal(history[0], series[u : u + T]))
print("the target is word u + T:", window[0, -1] == corpus.train[u + T])
print(f"history: {shown(window[0, :-1])!r}\ntarget:  {shown(window[0, -1:])!r}")
print(f"a word follows itself: {np.mean(corpus.train[1:] == corpus.train[:-1]):.1%} of the time")

# %% [markdown]
# ### The split, and words that training never shows
#
# The last tenth of the words, in order of time, is the test. A random choice of windows would leak: two neighbouring
# windows share T − 1 of their words. (mini_tf also sets the last twentieth of the rest aside, to choose which step's
# parameters to keep; the test is only for reporting.)
#
# The vocabulary is that of the whole corpus, so the test has no unknown words by construction. But some of its words
# never occur before it. All that a model can learn about a word it never sees as an answer is that the word is rare.
# **Expect** a loss *above* 9.568 for these words: each step in which they do not come takes probability from them.

# %%
print("\nTask 6.7: the split; expected: 4.3 % of the test words are new")
test_words = corpus.test[T:]
before_test = corpus.ids[: -len(test_words)]
unseen = ~np.isin(test_words, before_test)
print(f"{len(before_test):,} words before the test, {len(test_words):,} in it")
print(f"{unseen.mean():.1%} of the test words never occur before it")
print(f"{(~np.isin(test_words, corpus.train)).mean():.1%} never occur in the {len(corpus.train):,} we learn from")
once = np.sum(np.bincount(before_test) == 1) / len(before_test)
print(f"{once:.1%} of the words before the test occur there once: Good and Turing's estimate of what is new after it")

# %% [markdown]
# More is new than they estimate, because the test is not more of the same: its last third is the beginning of another
# play, The Tempest, which has its own names.

# %%
for name in ("PROSPERO", "MIRANDA", "ARIEL"):
    i = corpus.vocabulary.index[name]
    print(f"  {name:<10}{np.sum(before_test == i):>4} times before the test, {np.sum(test_words == i):>4} in it")

# %% [markdown]
# ### Training
#
# **Expect** a steep fall from 9.568 to about 6.5, which is little more than learning which words are frequent; then
# a slow one. The mark to beat is 6.06, what a table of word counts reaches (in Lab 01b, interpolated Kneser-Ney
# models of two and three words reach 5.17 and 5.05; they count the validation words, too).

# %%
def train(model, words, steps, validate, every):
    """A History: `steps` steps of Adam on windows of `words`."""
    schedule = Schedule(steps // 10, steps)
    training = Training(model, RandomWindows(words, T, batch), Adam(learning_rate), schedule)
    with training_progress(steps, batch * T) as on_step:
        return fit(training, steps, validate, every, watcher=Watcher(on_step))


print("\nTask 6.7: training; expected: near the unigram model's 6.06, perhaps a little below")
uniform = uniform_cross_entropy(c)
unigram = unigram_cross_entropy(before_test, test_words, c)
model = new_model()
history = train(model, corpus.train, steps, partial(mean_loss, model, corpus.validation, TESTED // 4), steps // 8)
train_loss = mean_loss(model, corpus.train, TESTED)
test_loss = mean_loss(model, corpus.test, TESTED)

print(f"{'nats per word':<40}{'loss':>7}{'perplexity':>13}")
for name, loss in (
    ("uniform", uniform), ("unigram", unigram), ("transformer, words it learns from", train_loss),
    ("transformer, test words", test_loss),
):  # fmt: skip
    print(f"{name:<40}{loss:>7.3f}{perplexity(loss):>13,.0f}")
seconds, share = history.rows[-1]["seconds"], steps * batch / (len(corpus.train) - T)
print(f"{steps} steps of {batch} windows: {share:.0%} of the training windows, {seconds:.0f} s")

show(draw_curves(history.rows, {"uniform": uniform, "unigram": unigram, "test": test_loss}), "06_training")

# %% [markdown]
# The training words are easier than the test words, though the model has seen only some of their windows, each once.
# There are two reasons, and the next two sections separate them: it remembers, and the test has words that it never
# saw.
#
# ### Overfitting
#
# A has more numbers than the corpus has words. When the same model reads a shorter text several times, **expect** the
# training loss to keep falling, and the test loss to turn and rise.

# %%
few = corpus.train[: 2_000 if QUICK else 12_000]
memorizer = new_model()
losses = {"step": [], "the words it learns from": [], "test words": []}


def measure(memorizer, few, losses):
    """Record both losses. Returns a number that always falls, so that fit() keeps the last parameters, not the best."""
    losses["step"].append(losses["step"][-1] + every if losses["step"] else every)
    losses["the words it learns from"].append(mean_loss(memorizer, few, OFTEN))
    losses["test words"].append(mean_loss(memorizer, corpus.test, OFTEN))
    return -len(losses["step"])


every = 10 if QUICK else 40
train(memorizer, few, 6 * every, partial(measure, memorizer, few, losses), every)

rounds = np.array(losses.pop("step")) * batch / (len(few) - T)
print("\nOverfitting; expected: training falls, test turns")
print(f"{'times over the text':>20}{'training':>10}{'test':>8}")
for row in zip(rounds, losses["the words it learns from"], losses["test words"]):
    print("{:>20.1f}{:>10.2f}{:>8.2f}".format(*row))
show(lab_06.overfitting(rounds, losses, len(few), unigram), "06_overfitting")

# %% [markdown]
# ### Where the loss comes from
#
# **Expect** the words that training never shows to be few and expensive: their share of the loss is far above their
# share of the words.

# %%
print("\nWhere the test loss comes from; expected: words never seen cost more than 9.568 each")
words, losses = word_losses(model, corpus.test, TESTED)
times_seen = np.bincount(corpus.train, minlength=c)[words]
classes = {"never": (0, 0), "1–5": (1, 5), "6–50": (6, 50), "51–500": (51, 500), "more": (501, len(corpus.train))}
print(f"{'times in training':<20}{'of the words':>13}{'mean loss':>11}{'of the loss':>13}")
shares = {}
for name, (least, greatest) in classes.items():
    these = (times_seen >= least) & (times_seen <= greatest)
    shares[name] = these.mean(), losses[these].sum() / losses.sum()
    print(f"{name:<20}{these.mean():>13.1%}{losses[these].mean():>11.2f}{shares[name][1]:>13.1%}")
known = losses[times_seen > 0].mean()
print(f"{'all':<20}{1:>13.0%}{losses.mean():>11.2f}{1:>13.0%}")
print(f"Only over words that occur in training the test loss is {known:.2f}; on training words it is {train_loss:.2f}.")

show(lab_06.where_the_loss_comes_from(shares), "06_where_the_loss_comes_from")

# %% [markdown]
# In the full run this explains the whole gap between test and training. The new words alone add half a nat to the test
# loss, and no choice of L, H or m can change that.
#
# ## Task 6.8: from probabilities to a word
#
# Parts (a) and (b) are the model above: `model.logits(histories)`. Part (c) is `sample`: word i with probability
# $\pi_i$. Two knobs change the odds. A temperature below 1 sharpens π, one above 1 flattens it; top-k admits only the k
# most probable words. `greedy` takes the most probable one, the argmax.
#
# **Expect** the drawn shares to be those of π, up to the luck of 2,000 draws: ± 0.01 for a word with π = 0.05.

# %%
print("\nTask 6.8: the sampler; expected: drawn = π, up to 0.01\n")
rng = np.random.default_rng(6)
temperatures = 0.5, 1.0, 1.5
for end in (2_050, 9_004, 20_016):
    history = corpus.test[None, end - T : end]           # (1, T)
    logits = model.logits(history)             # (1, c)
    many = np.repeat(logits, 200, axis=0)                # (200, c)
    draws = [sample(many, rng) for _ in range(10)], [sample(many, rng, top_k=10) for _ in range(10)]
    drawn, top_10 = (np.bincount(np.ravel(some), minlength=c) / 2000 for some in draws)
    sharp, pi, flat = (ops.softmax(logits / np.float32(t))[0][0] for t in temperatures)
    print(f"{shown(history[0])!r}")
    print(f"  {'':<12}{'π':>8}{'drawn':>8}{'top 10':>8}{'temp. 0.5':>11}{'temp. 1.5':>11}")
    for i in np.argsort(-pi)[:5]:
        print(f"  {corpus.vocabulary.decode([i])!r:<12}", end="")
        print(f"{pi[i]:>8.3f}{drawn[i]:>8.3f}{top_10[i]:>8.3f}{sharp[i]:>11.3f}{flat[i]:>11.3f}")
    came = corpus.test[end]
    rank = 1 + (pi > pi[came]).sum()
    print(f"  what came: {corpus.vocabulary.decode([came])!r}, π = {pi[came]:.4f}, number {rank} in the order of π")
    print(f"  eight draws: {'  '.join(repr(corpus.vocabulary.decode([i])) for i in draws[0][0][:8])}\n")

show(lab_06.temperature({f"temperature {t}": pi for t, pi in zip(temperatures, (sharp, pi, flat))}), "06_temperature")

# %% [markdown]
# **Which is better, argmax or a random draw?** To *guess* the next word, argmax: it is right as often as its favourite
# comes, a draw only with the mean probability of the right word. **Expect** a clear difference.

# %%
print("\nGuessing the next word; expected: argmax is right more often than a draw")
some = windows_ending_at(corpus.test, np.linspace(T, len(corpus.test) - 1, 512).astype(int), T)
logits = model.logits(some[:, :-1])            # (512, c)
pi, _ = ops.softmax(logits)
guesses = {"argmax": greedy(logits), "random draw": sample(logits, rng), "top 10": sample(logits, rng, top_k=10)}
for name, guess in guesses.items():
    print(f"{name:<12} right {np.mean(guess == some[:, -1]):>6.1%},  {len(np.unique(guess)):>4} different words")
print(f"a draw is expected to be right {pi[np.arange(512), some[:, -1]].mean():.1%} of the time")

# %% [markdown]
# **When is the model sure of itself?** A rare word's row of V is almost zero: the eigenvectors keep the frequent words,
# as Lab 04 shows. Scores are linear in Φ(X), so short vectors mean small scores and a flat π, as if at a high
# temperature. **Expect** a flatter π after histories of rare words.

# %%
print("\nHow sure is the model? Expected: less so after histories of rare words")
flatness = np.exp(-(pi * np.log(np.maximum(pi, 1e-30))).sum(-1))     # (512,): exp of the entropy
lengths = np.linalg.norm(embeddings[some[:, :-1]], axis=-1).mean(-1)    # (512,): mean over the words of the history
print("mean length of the history's vectors   π as flat as … equally likely words")
for quarter in np.array_split(np.argsort(lengths), 4):
    print(f"{lengths[quarter].min():>12.1f} to {lengths[quarter].max():.1f}{np.median(flatness[quarter]):>38,.0f}")

# %% [markdown]
# That is a trap for a writing model: one unlucky rare word makes the next draw wilder, and that draw the one after it.
# Layer norm (Lab 07) gives every word's vector the same size.

# %% [markdown]
# ## Task 6.9: writing
#
# $X_u = [x_u \dots x_{T-1+u}]$ gives word T + u; then the history moves on by one word, and what was written counts as
# given.
#
# **An error of the source.** It trains with T = 32 and asks here for prompts of T = 64. With this readout the two
# exclude each other: A has T·n rows, so T is part of its shape. We keep T = 32; of a longer prompt only the last 32
# words count.

# %%
print("\nTask 6.9: 64 words do not fit T = 32")
try:
    model.logits(corpus.test[None, :64])
except ValueError as error:
    print("64 words:", error)

# %% [markdown]
# Prompts may be shorter than T: absent words are vectors of zeros, in front. That works, at a price. Nothing hides an
# absent word from attention: its key is 0, so its score is 0, and $e^0$ is as much as many a real word gets. And
# without positions a vector of zeros leaves the transformer as it entered, plus what attention adds to it, so that most
# of vec(Φ(X)) is near 0, which is not what A was trained on. **Expect** a flat π after short prompts; after an empty
# prompt Φ = 0, and all 14,295 words are equally likely.

# %%
print("\nTask 6.9: prompts of any length; expected: flat π after short ones")
print(f"{'words':>5}{'on absent':>11}{'π like':>9}   the end of the prompt → drawn at temperature 0.8")
prompts = {length: corpus.test[T : T + length] for length in (0, 1, 4, 16, 32, 64)}
for length, prompt in prompts.items():
    history = np.concatenate([np.full(max(T - length, 0), ABSENT), prompt])[None, -T:]     # (1, T)
    x, _ = model.trunk.embedding(history)                      # (1, T, n)
    attention = model.trunk.layers[0].attention
    query, _ = attention.query(x)
    key, _ = attention.key(x)
    scores = attention.split(query) @ attention.split(key).swapaxes(-1, -2)                # (1, H, T, T)
    A, _ = ops.softmax(scores)
    on_absent = A[0, :, -1][:, history[0] == ABSENT].sum(-1).mean()
    pi, _ = ops.softmax(model.logits(prompt[None, -T:]).astype(np.float64))
    like = perplexity(-(pi * np.log(pi)).sum())
    written = list(generate(model, prompt, 6, partial(sample, rng=np.random.default_rng(1), temperature=0.8)))
    print(f"{length:>5}{on_absent:>11.0%}{like:>9,.0f}   {shown(prompt, 5)!r} → {shown(written)!r}")
print("on absent: share of the last word's attention that absent words get, mean over the heads of layer 1")
print("π like: as flat as so many equally likely words")

# %% [markdown]
# ### 500 words, and how much they repeat
#
# **Expect** argmax to run into a loop: what it writes depends only on the last 32 words, so as soon as 32 words recur,
# it repeats itself for ever. The more is left to chance, the more different words, and the less coherent the text.

# %%
prompt = corpus.test[T : T + T]
choices = {
    "argmax": greedy,
    "temperature 0.7": partial(sample, temperature=0.7, rng=np.random.default_rng(7)),
    "top 10": partial(sample, top_k=10, rng=np.random.default_rng(7)),
    "random, as π says": partial(sample, rng=np.random.default_rng(7)),
}
texts = {name: np.array(list(generate(model, prompt, 500, choose))) for name, choose in choices.items()}
texts["Shakespeare"] = corpus.test[2 * T : 2 * T + 500]

print("\nTask 6.9: 500 words; expected: argmax runs into a loop")
print(f"{'500 words':<20}{'different':>10}{'repeated triples':>18}{'loop of':>12}")
for name, ids in texts.items():
    loop = loop_length(ids)
    print(f"{name:<20}{len(set(ids)):>10}{repeated_triples(ids):>18.0%}{f'{loop} words' if loop else 'none':>12}")

show(lab_06.repetition(texts), "06_repetition")

# %%
print("\nThe prompt:\n" + corpus.vocabulary.decode(prompt).strip("\n"))
for name in ("argmax", "random, as π says"):
    print(f"\n--- {name}, the first 60 of 500 words ---")
    print(corpus.vocabulary.decode(texts[name][:60]).strip("\n"))

# %% [markdown]
# ## What to keep
#
# - Beside 9.568 and 6.06 a loss has a meaning; alone it has none.
# - A readout on vec(Φ(X)) costs T·n·c numbers, learns from one answer per window, and ties the model to one T. Lab 07
#   (`07_positions_norms_masks.py`) shares one small A between all positions and learns far more from the same words.
# - About 4 % of the test words are out of reach of any such model, and they are a large part of its loss.
# - Guess with argmax, write with `sample`.
#
# **Try:** `SIZES = "lab"`; another T; `scale = 1`; `readout="average"` and Lab 05's loss; prompts of your own through
# `corpus.vocabulary.encode(tokenize("…"))`.
