# %% [markdown]
# # Lab 01: counting words
#
# Sources: USC CSCI 567 (Spring 2024), lecture 8, Markov chains and n-gram models; UMass CS685 (2020), neural language
# models, the part that looks back at n-gram models. Kneser-Ney: Kneser, Ney 1995; Chen, Goodman 1998.
#
# A language model gives each word a probability, given the words before it. This lab makes language models without any
# network: it counts, and divides. They are the bar that every network of the later labs has to clear. You will
#
# - learn a Markov chain from ten days of weather, by hand, and see that no other chain fits better,
# - count 262,864 words of Shakespeare, and ask what comes after "the Duke of",
# - see why counting alone calls three in ten word pairs of a new text impossible,
# - mend that in five ways, and follow the best one number by number,
# - measure all of them in nats per word, and find out what nats do not measure.
#
# Letters: **c** different words, **n** the order, the words in an n-gram with the predicted one; **w** a word, **h**
# its history, the n − 1 words before it; **D** the discount of Kneser-Ney; **π**, **A** the Markov chain.
#
# Time on two processor cores: half a minute to a minute; with `--quick`, which writes less text, a quarter of a
# minute.

# %%
import textwrap
import time
from collections import Counter
from fractions import Fraction
from functools import cache, partial

from _common import quick_mode, show, shown
from mini_tf.decoding import continuations, generate, sample
from mini_tf.errors import UserError
from mini_tf.metrics import perplexity, uniform_cross_entropy
from mini_tf.models import NGramModel, markov_chain
from mini_tf.models.ngram import ORDERS, SMOOTHINGS, count_grams, shared_out
from mini_tf.text import Vocabulary, shakespeare, tokenize

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

QUICK = quick_mode("Lab 01: Markov chains, n-gram models, smoothing, perplexity")
WRITTEN = 200 if QUICK else 2000                         # so many words each model writes
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#777777"


def refused(attempt):
    """Print what mini_tf says to something that cannot work."""
    try:
        attempt()
    except UserError as error:
        print(textwrap.fill(f"UserError: {error}", 90, initial_indent="  ", subsequent_indent="    "))


# %% [markdown]
# ## 1. A Markov chain: the weather
#
# A Markov chain goes from state to state, and where it goes next depends on where it is now, and on nothing before.
# Two tables hold all of it:
#
#     π_s = P(X_1 = s)      A_ss′ = P(X_{t+1} = s′ | X_t = s)      P(x_1 … x_T) = π_{x_1} · Π_{t=2}^T A_{x_{t−1} x_t}
#
# To learn them from observed sequences, choose the tables that make what was observed most probable: *maximum
# likelihood*. The answer is to count and divide:
#
#     π_s = sequences that start in s / sequences          A_ss′ = transitions s → s′ / transitions from s
#
# The lecture observes five days, twice. Count by hand first. Starts: one sunny, one rainy. From sunny: 3 times to
# sunny, 2 times to rainy. From rainy: 2 times to rainy, once to sunny. The last day of a sequence leads nowhere.
#
# **Expect** π = (1/2, 1/2), and the rows (3/5, 2/5) and (1/3, 2/3).

# %%
WEATHER = ["sunny", "rainy"]
SUNNY, RAINY = 0, 1
days = np.array([
    [SUNNY, SUNNY, RAINY, RAINY, RAINY],
    [RAINY, SUNNY, SUNNY, SUNNY, RAINY],
])  # fmt: skip

pi, A = markov_chain(days, 2)                            # (2,), (2, 2)

print("1. The weather of the lecture, by maximum likelihood")
by_hand_pi, by_hand_A = np.array([1 / 2, 1 / 2]), np.array([[3 / 5, 2 / 5], [1 / 3, 2 / 3]])
for s in (SUNNY, RAINY):
    print(f"  π({WEATHER[s]})            by hand {by_hand_pi[s]:.3f}   counted {pi[s]:.3f}")
for s, s_next in np.ndindex(2, 2):
    print(f"  A({WEATHER[s]} → {WEATHER[s_next]})    by hand {by_hand_A[s, s_next]:.3f}   counted {A[s, s_next]:.3f}")

# %% [markdown]
# ### The log likelihood
#
# A product of many probabilities is a very small number, so one takes its logarithm. The product becomes a sum, and
# equal terms can be gathered: what remains of the data are the counts.
#
#     ln P = Σ_sequences ( ln π_{x_1} + Σ_{t=2}^T ln A_{x_{t−1} x_t} )
#          = Σ_s starts(s)·ln π_s + Σ_ss′ transitions(s, s′)·ln A_ss′
#
# **An error of the source.** In one line of the lecture's derivation a bare π_{x_1} stands, without its ln. One cannot
# add a probability to logarithms of probabilities. Without the ln, this term could not even teach π: for one sunny
# start and one rainy start it is π_sunny + π_rainy = 1, whatever π is.
#
# **Expect** 2·ln ½ + 3·ln 3/5 + 2·ln 2/5 + 2·ln 2/3 + ln 1/3 = −6.661 nats. ("Nats" are units of the natural
# logarithm.)


# %%
def log_likelihood(sequences, pi, A):
    return sum(np.log(pi[x[0]]) + np.log(A[x[:-1], x[1:]]).sum() for x in sequences)


best = log_likelihood(days, pi, A)
by_hand = 2 * np.log(1 / 2) + 3 * np.log(3 / 5) + 2 * np.log(2 / 5) + 2 * np.log(2 / 3) + np.log(1 / 3)
print("\nLog likelihood of the ten days")
print(f"  by hand {by_hand:.3f} nats   by the function {best:.3f} nats   P = e^{best:.3f} = {np.exp(best):.5f}")

print("\nThe term of π, for one sunny and one rainy start")
print(f"  {'π_sunny':>8}{'with ln':>16}{'without ln':>14}")
for p in (0.1, 0.5, 0.9):
    print(f"  {p:>8}{np.log(p) + np.log(1 - p):>11.3f} nats{p + (1 - p):>14.3f}")

# %% [markdown]
# ### Is nothing else more likely?
#
# Try it. **Expect** that none of 10,000 chains drawn at random beats the one that counts, and that the best of them
# comes near. In the figure, each curve moves one number of A and leaves the others alone: the tops are at 3/5 and 2/3.

# %%
rng = np.random.default_rng(0)
others = []
for _ in range(10_000):
    start, from_sunny, from_rainy = rng.dirichlet([1, 1], 3)
    others.append(log_likelihood(days, start, np.array([from_sunny, from_rainy])))
print("\nOther chains")
print(f"  counted                    {best:.3f} nats")
print(f"  best of 10,000 at random   {max(others):.3f} nats")
print(f"  more likely than the counted one: {np.sum(others > best)}")

a = np.linspace(0.01, 0.99, 99)
over_sunny = np.array([log_likelihood(days, pi, np.array([[x, 1 - x], A[RAINY]])) for x in a])
over_rainy = np.array([log_likelihood(days, pi, np.array([A[SUNNY], [1 - x, x]])) for x in a])
print(f"  top of the curve over A(sunny → sunny): {a[over_sunny.argmax()]:.2f},   expected 3/5 = 0.60")
print(f"  top of the curve over A(rainy → rainy): {a[over_rainy.argmax()]:.2f},   expected 2/3 = 0.67")


def fraction(x):
    return str(Fraction(x).limit_denominator(10))


def arrow(axes, start, end, label, place, bend=0.0):
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>",
                                   mutation_scale=16, linewidth=1.6, color="0.25"))
    axes.text(*place, label, ha="center", va="center", fontsize=11)


figure = Figure(figsize=(11, 4.2), layout="constrained")
graph, curves = figure.subplots(1, 2, width_ratios=[1.15, 1])
graph.set(xlim=(-2.9, 2.9), ylim=(-1.75, 1.75), aspect="equal", title="The Markov chain that was counted")
graph.axis("off")
for x, s, color in ((-1.2, SUNNY, "#F5D76E"), (1.2, RAINY, "#9CC3E6")):
    graph.add_patch(Circle((x, 0), 0.5, facecolor=color, edgecolor="0.25", linewidth=1.6))
    graph.text(x, 0, WEATHER[s], ha="center", va="center", fontsize=12)
    arrow(graph, (x - 0.28, 0.42), (x + 0.28, 0.42), fraction(A[s, s]), (x, 1.22), bend=-1.9)
    arrow(graph, (x, -1.35), (x, -0.52), f"π = {fraction(pi[s])}", (x, -1.55))
arrow(graph, (-0.73, 0.18), (0.73, 0.18), fraction(A[SUNNY, RAINY]), (0, 0.62), bend=-0.25)
arrow(graph, (0.73, -0.18), (-0.73, -0.18), fraction(A[RAINY, SUNNY]), (0, -0.62), bend=-0.25)
for s, y, color, line in ((SUNNY, over_sunny, BLUE, "-"), (RAINY, over_rainy, RED, "--")):
    name, top = f"A({WEATHER[s]} → {WEATHER[s]})", A[s, s]
    curves.plot(a, y, line, color=color, linewidth=2, label=f"moving {name}: top at {fraction(top)}")
    curves.plot(top, best, "o", color=color, markersize=8)
    curves.axvline(top, color=color, linestyle=":", linewidth=1)
curves.set(xlabel="the probability that is moved", ylabel="log likelihood in nats", ylim=(-13, -5.5),
           title="Nothing else makes the ten days more likely")
curves.legend(loc="lower center", framealpha=1, edgecolor="none")
curves.spines[["top", "right"]].set_visible(False)
show(figure, "01_weather")

# %% [markdown]
# ### Weather that never was
#
# A chain that can be scored can be sampled: draw the first day from π, each next day from the row of the day before.
# Two checks. Counted again, a long sample must give A back. And in the long run the share of sunny days settles where
# as many days turn sunny as turn rainy: share·2/5 = (1 − share)·1/3.
#
# **Expect** a share of 5/11 = 0.455, and A, both to 0.01 or so.


# %%
def sample_chain(pi, A, length, rng):
    """x_1 from π, each x_{t+1} from the row of x_t: the first state whose share reaches a uniform number"""
    u, up_to = rng.random(length), A.cumsum(1)
    states = [np.searchsorted(pi.cumsum(), u[0], side="right")]
    for t in range(1, length):
        states.append(np.searchsorted(up_to[states[-1]], u[t], side="right"))
    return np.array(states)


weather = sample_chain(pi, A, 20_000, np.random.default_rng(1))
_, A_again = markov_chain([weather], 2)
print("\nSampled weather")
print("  " + ", ".join(WEATHER[s] for s in weather[:10]) + ", …")
print(f"  sunny among {len(weather):,} days   expected {5 / 11:.3f}   measured {np.mean(weather == SUNNY):.3f}")
print(f"  A counted from them      {np.round(A_again, 3).tolist()}")

# %% [markdown]
# ## 2. From weather to words: the bigram table
#
# Take words for states, and the chain is a language model: the *bigram model*. Its A is a table with a row for each
# word that can come before, and a column for each word that can come next. The corpus is that of Labs 04 to 06:
# 292,072 words of Shakespeare, where punctuation marks and line breaks count as words.
#
# We count in the first 90 %, and keep the last 10 % for a test. To choose settings, the last 5 % of the 90 % stand in
# for the test: that is the *validation* part. The vocabulary is that of the whole corpus, as in the other labs.
#
# **Expect** 14,295 different words.

# %%
tokens = tokenize(shakespeare())
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c = len(vocabulary)
first_test = int(0.9 * len(ids))
first_validation = int(0.95 * first_test)
train, train_words = ids[:first_test], tokens[:first_test]

print(f"\n2. The corpus: {len(ids):,} words, {c:,} different")
print(f"  {len(train):,} to count, {len(ids) - first_test:,} to test")
print(f"  the bigram table has c² = {c * c / 1e6:,.0f} million entries")

# %% [markdown]
# All 204 million entries would fill a large wall. We cut out eight words. First count how often each follows each,
#
#     count(h w),
#
# then divide every row by its sum, over *all* words and not only these eight: count(h) = Σ_w count(h w). That is again
# maximum likelihood, p(w | h) = count(h w)/count(h). (The CS685 lecture says that one divides by the probability of
# the prefix. It is the count.)
#
# **Expect** most entries to be 0, although these are frequent words; rows that know what they want ("I", "my") and
# rows that do not ("the").

# %%
SOME = ["I", "am", "will", "my", "good", "lord", "the", "king"]


@cache
def gram_counts(n):
    """{n-gram: count} of the training text; an n-gram is a tuple of n words."""
    return Counter(zip(*(train_words[i:] for i in range(n))))


pairs = gram_counts(2)
rows = Counter(train_words[:-1])                         # how often each word has a next one
counts = np.array([[pairs[h, w] for w in SOME] for h in SOME])                       # (8, 8)
probabilities = counts / np.array([[rows[h]] for h in SOME])

bigram = NGramModel(2, c, "maximum-likelihood").fit(train)
some = vocabulary.encode(SOME)
of_the_model = np.exp(bigram.next_word_logits(some[:, None]))[:, some]
assert np.allclose(of_the_model, probabilities)

print("\nRows of the bigram table: the sum of a row, and the most probable next words")
for h in SOME:
    words, p = continuations(bigram, vocabulary.encode([h]), 4)
    print(f"  {h:<6}{rows[h]:>6,}   " + "   ".join(f"{shown(vocabulary.words[w])} {x:.3f}" for w, x in zip(words, p)))
difference = abs(of_the_model - probabilities).max()
print(f"  NGramModel(2, …) gives the same 64 probabilities: largest difference {difference:.0e}")
print(f"  entries of the whole table that are not 0: {len(pairs):,} of {c * c:,}, {len(pairs) / c**2:.3%}")

figure = Figure(figsize=(11, 5), layout="constrained")
left, right = figure.subplots(1, 2)
for axes, table, title, form in (
    (left, counts, "count(h w)", "{:,.0f}"), (right, probabilities, "p(w | h) = count(h w)/count(h)", "{:.3f}"),
):  # fmt: skip
    axes.imshow(np.sqrt(table), cmap="Blues", vmax=np.sqrt(table.max()) * 1.15)
    for i, j in np.ndindex(8, 8):
        entry = "0" if table[i, j] == 0 else "<0.001" if table[i, j] < 0.0005 else form.format(table[i, j])
        axes.text(j, i, entry, ha="center", va="center", fontsize=9,
                  color="white" if table[i, j] > 0.4 * table.max() else "0.65" if table[i, j] == 0 else "k")
    axes.set_xticks(range(8), SOME)
    axes.set_yticks(range(8), SOME)
    axes.set(xlabel="next word w", ylabel="word before, h", title=title)
    axes.tick_params(length=0)
figure.suptitle("Eight words of the bigram table (colour: square root of the entry)")
show(figure, "01_bigram_table")

# %% [markdown]
# ## 3. The prefix game
#
# Both lectures ask for the word after "students opened their". A 4-gram model looks at three words, and divides:
#
#     p(w | students opened their) = count(students opened their w) / count(students opened their)
#
# Shakespeare's prefix is "the Duke of". **Expect** York at the head, with its count over 34, and the model to agree.

# %%
def count(*words):
    """How often these words stand in the training text, in this order."""
    return gram_counts(len(words))[words]


print("\n3. The prefix game: the Duke of ___")
four = NGramModel(4, c, "maximum-likelihood").fit(train)
prefix = ("the", "Duke", "of")
print(f"  count(the Duke of) = {count(*prefix)}")
print(f"  {'w':<12}{'count(the Duke of w)':>21}{'divided':>10}{'the model':>12}")
words, p = continuations(four, vocabulary.encode(prefix), 6)
for w, of_model in zip(words, p):
    word = vocabulary.words[w]
    print(f"  {word:<12}{count(*prefix, word):>21}{count(*prefix, word) / count(*prefix):>10.3f}{of_model:>12.3f}")

# %% [markdown]
# The method has two holes. **The first**: the numerator can be 0. Then the n-gram is impossible, and so is every text
# that contains it, for one factor 0 makes a product 0. **Expect** quite ordinary words among the impossible.

# %%
print("\nThe numerator can be 0")
print(f"  {'':<20}{'count of the four':>18}{'of the first three':>20}{'p':>8}   in the test text")
test_fours = Counter(zip(*(tokens[first_test + i :] for i in range(4))))
for *h, w in (("I", "will", "not", "go"), ("I", "will", "be", "married"), ("the", "Duke", "of", "Milan")):
    p = np.exp(four.next_word_logits([vocabulary.encode(h)])[0, vocabulary.index[w]])
    print(f"  {' '.join((*h, w)):<20}{count(*h, w):>18}{count(*h):>20}{p:>8.3f}   {test_fours[*h, w]:>3}×")

# %% [markdown]
# (The lecture's slide on longer histories writes x_t … x_{t−n+2} and calls them the n words before. Count them: they
# are n − 1. An n-gram model of order n is a Markov chain of order n − 1, of which the bigram model is the plain one.)
#
# **The second hole**: the denominator can be 0, and 0/0 says nothing at all. Let us fall into it, with the lecture's
# own prefix.
#
# **Expect** the vocabulary to refuse: Shakespeare's students never opened anything.

# %%
print("\nThe lecture's own prefix: students opened their ___")
refused(lambda: vocabulary.encode(tokenize("students opened their")))
known = vocabulary.encode(tokenize("students opened their"), unknown="skip")
print(f"  with unknown='skip' there remains {vocabulary.decode(known)!r}")

# %% [markdown]
# ### Back-off
#
# A word that is not in the vocabulary has no number, and no model can use it. So take known words that never met:
# "servants open their". When the prefix never occurs, *back off*: use a shorter one. Which word does one drop?
#
# **An error of the source.** The CS685 lecture goes from "students opened their" to "students opened", and then to
# "students". That drops the *nearest* word and keeps the farthest. It must be the other way round: "opened their",
# then "their", as NGramModel does.
#
# **Expect** things that one can own after "their". After "servants", the lecture's way, expect nothing of the kind.

# %%
print("\nBack-off from 'servants open their'")
for shorter in ("servants open their", "open their", "their", "servants open", "servants"):
    print(f"  {shorter:<22}{count(*shorter.split()):>6} times")
for name, start in (("the model, all three words", "servants open their"), ("'their' alone", "their"),
                    ("'servants' alone", "servants")):
    words, p = continuations(four, vocabulary.encode(start.split()), 6)
    print(f"  {name:<28}" + "  ".join(f"{shown(vocabulary.words[w])} {x:.3f}" for w, x in zip(words, p)))

# %% [markdown]
# "servants" was seen seven times, before seven different words: nothing to go by. But one example proves little. So
# measure how much a single word tells about the word d places after it: a bigram model of words that stand d apart.
# (Reading every d-th word makes such a text. The smoothing is that of section 5, the measure that of section 6: nats
# per test word, the fewer the better.)
#
# **Expect** that nearness pays: about 5.17 nats from the word next to it, and from the third word back hardly better
# than the 6.06 of knowing no word at all.

# %%
def strided(ids, d):
    """A text of as many words, in which neighbours are words that stood d apart."""
    return np.concatenate([ids[start::d] for start in range(d)])


print("\nWhat one word tells about the word d places on")
alone = -NGramModel(1, c, discount=0.9).fit(train).log_probabilities(ids, first_test).mean()
print(f"  no word   {alone:.3f} nats per word")
by_distance = {}
for d in (1, 2, 3):
    at_distance = NGramModel(2, c, discount=0.9).fit(strided(train, d))
    by_distance[d] = -at_distance.log_probabilities(strided(ids[first_test:], d)).mean()
    print(f"  d = {d}     {by_distance[d]:.3f} nats per word,   {alone - by_distance[d]:.3f} gained")

# %% [markdown]
# ## 4. Sparsity and storage
#
# How large is the table of order n, and how much of it does the text fill? There are c^n possible n-grams, and a text
# of N words has at most N of them.
#
# **Expect** a table that no computer can hold from order 3 on, and that most of the n-grams which do occur, occur
# once. CS685 quotes 99.9 % of zeros for a 4-gram table of Shakespeare. That is far too modest: see the column
# "filled".

# %%
seven = NGramModel(7, c).fit(train)
once = [np.mean(grams.count == 1) for grams in count_grams(train, 7, c)]

print("\n4. Sparsity: n-grams of the training text")
print(f"  {'n':>3}{'different':>12}{'possible, c^n':>16}{'filled':>12}{'occur once':>13}"
      f"{'full table':>15}{'the model':>12}")
for n, different, single in zip(ORDERS, seven.grams, once):
    full = c**n * 8
    stored = sum(array.nbytes for level in seven.levels[:n] for array in (level.key, level.share, level.rest))
    size = f"{full / 1e6:,.1f} MB" if full < 1e12 else f"{full / 1e12:.1e} TB"
    print(f"  {n:>3}{different:>12,}{float(c) ** n:>16.1e}{different / c**n:>12.1e}{single:>13.0%}"
          f"{size:>15}{stored / 1e6:>9.1f} MB")

# %% [markdown]
# The last column is the cure for the storage: keep only n-grams that occur, sorted, and search. Its size grows with
# the length of the text and not with c^n.
#
# Nothing cures the sparsity. Take each word of the test with the n − 1 words before it. Either the n-gram is known
# from training, or its history is known but the word never came after it (maximum likelihood says 0), or even the
# history was never seen (maximum likelihood says 0/0).
#
# **Expect** the first part to shrink fast: most pairs of the test are known, but only one 4-gram in six. Order 1 has
# no history, and its zeros are the 4.3 % of test words that are new.

# %%
matched = seven.matched(ids, first_test - 1)             # the longest known gram that ends at each word, up to 7
ends, before = matched[1:], matched[:-1]                 # at each test word, and at the word before it
seen = np.array([np.mean(ends >= n) for n in ORDERS])
zero = np.array([np.mean((ends < n) & (before >= n - 1)) for n in ORDERS])
nothing = 1 - seen - zero
print("\nThe test words, with the n − 1 words before them")
print(f"  {'n':>3}{'n-gram seen':>14}{'probability 0':>16}{'0/0':>9}")
for row in zip(ORDERS, seen, zero, nothing):
    print("  {:>3}{:>14.1%}{:>16.1%}{:>9.1%}".format(*row))

print("\nSo the whole test has probability 0. A bigram model, asked for its logarithm:")
refused(lambda: bigram.log_probabilities(ids, first_test))

figure = Figure(figsize=(12, 4.6), layout="constrained")
sizes, shares = figure.subplots(1, 2)
orders = list(ORDERS)
sizes.semilogy(orders, [float(c) ** n for n in orders], "s--", color=RED, label="possible n-grams, $c^n$")
sizes.axhline(len(train), color=GREY, linestyle=":", label=f"words of the training text, {len(train):,}")
sizes.semilogy(orders, seven.grams, "o-", color=BLUE, label="different n-grams in it")
for n, different in zip(orders, seven.grams):
    sizes.annotate(f"{different:,}", (n, different), xytext=(0, -17), textcoords="offset points", ha="center",
                   fontsize=8, color=BLUE)
sizes.set(xlabel="order n", ylabel="n-grams (logarithmic)", title="The table grows, the text does not",
          ylim=(1e1, 1e31))
sizes.legend(frameon=False, loc="upper left")
bottom = np.zeros(len(orders))
for part, color, name in (
    (seen, BLUE, "n-gram seen in training"), (zero, ORANGE, "history seen, but not this word after it: p = 0"),
    (nothing, "#BBBBBB", "history never seen: 0/0"),
):  # fmt: skip
    bars = shares.bar(orders, part * 100, bottom=bottom, color=color, label=name, width=0.8)
    shares.bar_label(bars, [f"{x:.0%}" if x > 0.025 else "" for x in part], label_type="center", fontsize=9,
                     color="white" if color == BLUE else "k")
    bottom += part * 100
shares.set(xlabel="order n", ylabel="share of the test words in %", title="What maximum likelihood says of new text",
           ylim=(0, 128), yticks=range(0, 101, 20))
shares.legend(loc="upper center", frameon=False, fontsize=9)
for axes in (sizes, shares):
    axes.set_xticks(orders)
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "01_sparsity")

# %% [markdown]
# ## 5. Smoothing
#
# Smoothing takes probability from what was seen and gives it to what was not. All ways of doing so that we try are one
# formula, which goes up from order 0, where all words are alike:
#
#     p_k(w | h) = share(h w) + rest(h) · p_{k−1}(w | h′),      p_0(w) = 1/c
#
# h′ is h without its first word, the farthest. share(h w) is what an n-gram keeps for itself; rest(h) is what the
# history hands down, to be given out by the shorter one. They differ only in how much is taken, and from whom.
#
# | smoothing | share(h w) | rest(h) |
# | --- | --- | --- |
# | maximum likelihood | count(h w)/count(h) | 0 |
# | add-k | count(h w)/(count(h) + k·c) | k·c/(count(h) + k·c), for 1/c |
# | stupid back-off | count(h w)/(count(h)·Z(h)) − rest·p_{k−1}(w) | α·Z(h′)/Z(h), α = 0.4; Z makes the sum 1 |
# | Kneser-Ney | (n(h w) − D)/n(h), n a count: see below | D · (words that follow h)/n(h) |
# | modified Kneser-Ney | the same with D_1, D_2, D_3 for n = 1, 2, and 3 or more | the same |
#
# ### Add-k: simple and bad
#
# Pretend that each n-gram had been seen k times more: p = (count(h w) + k)/(count(h) + k·c). The trouble is k·c. With
# k = 1, 34 sightings of "the Duke of" stand against 14,295 pretended ones. **Expect** York to fall from a quarter to
# less than a thousandth.

# %%
York = vocabulary.index["York"]
print("\n5. Smoothing.  p(York | the Duke of) with add-k; maximum likelihood says "
      f"{count(*prefix, 'York')}/{count(*prefix)} = {count(*prefix, 'York') / count(*prefix):.4f}")
for k in (1, 0.1, 0.01, 0.001):
    formula = (count(*prefix, "York") + k) / (count(*prefix) + k * c)
    model = NGramModel(4, c, "add-k", k=k).fit(train)
    print(f"  k = {k:<6} formula {formula:.4f}   model "
          f"{np.exp(model.next_word_logits([vocabulary.encode(prefix)])[0, York]):.4f}")

# %% [markdown]
# Is there a good k? Choose it on the validation words. The measure is the *cross-entropy*, the mean of −ln p over the
# words, in nats per word: 0 for a prophet, ln c = 9.568 for one who thinks all words alike.
#
# **Expect** that the best k is small, and that the trigram model is *worse* than the bigram model for each k. More
# history should help. It cannot, because add-k lets all unseen words after a history be alike: it never asks the
# shorter history.


# %%
def cross_entropy(model, start, stop):
    """−1/N Σ ln p(w | h) over the words start … stop − 1, each given the words before it; nats per word"""
    return -model.log_probabilities(ids[:stop], start).mean()


def on_validation(order, smoothing="kneser-ney", **options):
    model = NGramModel(order, c, smoothing, **options).fit(ids[:first_validation])
    return cross_entropy(model, first_validation, first_test)


KS = (1, 0.1, 0.01, 0.001) if QUICK else (1, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
print("\nAdd-k on the validation words, nats per word")
print(f"  {'k':>8}" + "".join(f"{f'order {n}':>10}" for n in (1, 2, 3)))
add_k = {k: [on_validation(n, "add-k", k=k) for n in (1, 2, 3)] for k in KS}
for k, losses in add_k.items():
    print(f"  {k:>8}" + "".join(f"{loss:>10.3f}" for loss in losses))
best_k = min(KS, key=lambda k: add_k[k][1])
print(f"  best k of the bigram model: {best_k}")

# %% [markdown]
# ### The Francisco idea
#
# Kneser and Ney asked what the shorter history should say when the longer one knows nothing. Chen and Goodman's
# example is "Francisco": frequent in their newspaper, but only ever after "San". As a guess after *another* word it is
# bad, however frequent it is. So at the lower orders count not how often a word occurs, but *in how many different
# words' company*:
#
#     n(w) = |{v : v w occurs}|,          continuation probability = n(w) / Σ_w n(w)
#
# Shakespeare has his Franciscos: the "Tower" comes after "the", VINCENTIO after DUKE. Beside each we put the word of
# about the same count that keeps the most company. **Expect** the counts of a pair to agree, and the continuation
# probabilities to differ by a factor from about ten to a hundred and more.

# %%
occurs = Counter(train_words)
company = Counter(w for _, w in pairs)                   # how many different words stand before w
different_pairs = len(pairs)


def most_sociable(word):
    """Of the words whose count is within 5 % (or 1) of this word's, the one with the most different words before it."""
    near = [w for w in occurs if abs(occurs[w] - occurs[word]) <= max(1, 0.05 * occurs[word])]
    return max(near, key=lambda w: company[w])


print("\nCounts and company")
print(f"  {'word':<12}{'occurs':>8}{'different words before it':>27}{'count/N':>12}{'continuation':>14}")
sociable = {}
for word in ("VINCENTIO", "morrow", "Tower", "And"):
    sociable[word] = most_sociable(word)
    for w in (word, sociable[word]):
        print(f"  {w:<12}{occurs[w]:>8,}{company[w]:>27,}"
              f"{occurs[w] / len(train):>12.6f}{company[w] / different_pairs:>14.6f}")

# %% [markdown]
# "And" with its capital is a Francisco too: it begins lines, so what comes before it is almost always the line break.
#
# ### What is this idea worth?
#
# To see it alone, write the same discounting with plain counts at all orders. In the library a smoothing is a function
# from counts to share and rest, and the table SMOOTHINGS is open: three lines. **Expect** Kneser-Ney to win, on the
# same D.


# %%
def absolute_discounting(model, grams):
    """share = (count(hw) − D)/count(h),   rest = D·(words that follow h)/count(h):  kneser_ney without the company"""
    for here in grams:
        yield shared_out(here, here.count, taken=np.full(len(here.key), model.discount))


SMOOTHINGS["absolute-discounting"] = absolute_discounting
print("\nValidation words, D = 0.9, nats per word")
for n in (2, 3):
    plain, with_company = (on_validation(n, s, discount=0.9) for s in ("absolute-discounting", "kneser-ney"))
    print(f"  order {n}   plain counts below the top {plain:.3f}   company (Kneser-Ney) {with_company:.3f}"
          f"   gained {plain - with_company:.3f}")

# %% [markdown]
# ### How much to take: the discount D
#
# Why take the *same* D from every count? Cut the training words into two halves. Take all bigrams that occur r times
# in the first half. How often do they occur in the second, on average? If counts were to be trusted, r times.
#
# **Expect** less, by nearly the same whatever r is: about 1 (0.7 to 1.4). Of those with r = 1 most are accidents of
# their half.

# %%
half = first_test // 2
one, other = (Counter(zip(some_words, some_words[1:])) for some_words in (train_words[:half], train_words[half:]))
print("\nBigrams that occur r times in one half of the training words")
print(f"  {'r':>3}{'bigrams':>10}{'mean count in the other half':>31}{'less by':>10}")
for r in (1, 2, 3, 4, 5, 6):
    these = [pair for pair, times in one.items() if times == r]
    mean = np.mean([other[pair] for pair in these])
    print(f"  {r:>3}{len(these):>10,}{mean:>31.2f}{r - mean:>10.2f}")

# %% [markdown]
# The last column is the discount that the text itself asks for. It grows slowly with r, which is why the modified form
# has three; one D for all is a compromise near 1. Its exact value the validation words decide: train on the first 95 %
# of the training words, measure on the last 5 %, for many D.
#
# **Expect** a flat valley near D = 0.9, and a steep wall to its left. (These losses lie above those of the test in
# section 6, because the validation part is a harder text: it closes Measure for Measure and opens The Taming of the
# Shrew, so 6.0 % of its words are new.)

# %%
DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 1.0) if QUICK else (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
valley = {n: [on_validation(n, discount=D) for D in DISCOUNTS] for n in (2, 3, 5)}
print("\nKneser-Ney on the validation words, nats per word")
print(f"  {'D':>6}" + "".join(f"{f'order {n}':>10}" for n in valley))
for D, *losses in zip(DISCOUNTS, *valley.values()):
    print(f"  {D:>6}" + "".join(f"{loss:>10.3f}" for loss in losses))
best_D = DISCOUNTS[int(np.argmin(valley[3]))]
new_here = ~np.isin(ids[first_validation:first_test], ids[:first_validation])
print(f"  best D of the trigram model: {best_D};   new words in the validation part: {new_here.mean():.1%}")

# %% [markdown]
# The modified form has a formula for its three discounts, from how many n-grams occur once, twice, three and four
# times (N_1 … N_4). With Y = N_1/(N_1 + 2·N_2):
#
#     D_1 = 1 − 2·Y·N_2/N_1,      D_2 = 2 − 3·Y·N_3/N_2,      D_3 = 3 − 4·Y·N_4/N_3
#
# **Expect** for trigrams a D_1 near the best D above, and larger discounts for larger counts.

# %%
N = Counter(gram_counts(3).values())                     # N[i]: how many trigrams occur i times
Y = N[1] / (N[1] + 2 * N[2])
print("\nModified Kneser-Ney, trigrams:  " + "   ".join(f"N_{i} {N[i]:,}" for i in (1, 2, 3, 4)))
print("  " + "   ".join(f"D_{i} {i - (i + 1) * Y * N[i + 1] / N[i]:.3f}" for i in (1, 2, 3)))

# %% [markdown]
# ### Number by number
#
# Now the formula by hand, for a trigram model and the history "Duke of". Three words, three fates: York often came
# after it; France never did, though "of France" is known; Milan never occurs in training. Maximum likelihood gives the
# last two nothing. At the top n counts occurrences; below, it counts company: n(of York) is the number of different
# words that stand before "of York". Everything comes from Python's Counter; the model is only asked in the end.
#
#     p_0 = 1/c
#     p_1 = (n(w) − D)/n()                 +  D·followers()/n() · p_0
#     p_2 = (n(of w) − D)/n(of)            +  D·followers(of)/n(of) · p_1
#     p_3 = (n(Duke of w) − D)/n(Duke of)  +  D·followers(Duke of)/n(Duke of) · p_2
#
# where followers(h) is the number of different words after h, and the first term is 0 if h w never occurs.
#
# **Expect** agreement with the model to all digits that are printed.


# %%
@cache
def n_after(history, top):
    """{w: n(h w)} for all words w after a history, a tuple: occurrences at the top order, company below."""
    k = len(history) + 1
    if top:
        return Counter({gram[-1]: times for gram, times in gram_counts(k).items() if gram[:-1] == history})
    return Counter(gram[-1] for gram in gram_counts(k + 1) if gram[1:-1] == history)


def by_the_formula(history, word, D):
    """[p_0, p_1, …] with all numbers printed, and for each whether the word has a share of its own."""
    steps = [(1 / c, False)]
    print(f"  p_0 = 1/c = 1/{c:,} = {1 / c:.3e}")
    for k in range(1, len(history) + 2):
        h = history[len(history) + 1 - k :]
        n = n_after(h, k == len(history) + 1)
        total, below = sum(n.values()), steps[-1][0]
        share, rest = max(n[word] - D, 0) / total, D * len(n) / total
        steps.append((share + rest * below, share > 0))
        first = f"({n[word]:,} − {D})/{total:,}" if n[word] else "0"
        print(f"  p_{k} = {first:>17} + {f'{D}·{len(n):,}/{total:,}':>17} · p_{k - 1}"
              f"  =  {share:.3e} + {rest:.4f}·{below:.3e}  =  {steps[-1][0]:.3e}")
    return steps


HISTORY = ("Duke", "of")
trigram = NGramModel(3, c, discount=best_D).fit(train)
worked = {}
for word in ("York", "France", "Milan"):
    print(f"\nBy hand: p({word} | Duke of), order 3, D = {best_D}")
    worked[word] = by_the_formula(HISTORY, word, best_D)
    p = np.exp(trigram.next_word_logits([vocabulary.encode(HISTORY)])[0, vocabulary.index[word]])
    print(f"  by hand {worked[word][-1][0]:.6e}   the model {p:.6e}")
    assert np.isclose(worked[word][-1][0], p, rtol=1e-9)

# %% [markdown]
# York keeps nearly all of its probability for itself at the top. France has a share after "of", and 15 % of that, the
# rest of "Duke of", comes through: improbable, no longer impossible. Milan has only the crumbs of p_0, and each order
# makes them smaller: 0.13 · 0.27 · 0.15 of 1/c. It has the same tiny probability as the other 799 words that training
# never saw, and some of them do come: section 6.

# %%
figure = Figure(figsize=(12.5, 5), layout="constrained")
cloud, steps = figure.subplots(1, 2, width_ratios=[1.15, 1])
x = np.array([occurs[w] for w in company], dtype=float)
y = np.array([company[w] for w in company], dtype=float)
jitter = np.random.default_rng(0).uniform(0.88, 1.12, (2, len(x)))
cloud.loglog(x * jitter[0], y * jitter[1], ".", markersize=2, color="#9DBBD0", alpha=0.6)
line = np.array([1, x.max()])
cloud.loglog(line, line, ":", color=GREY, linewidth=1, label="each time after another word")
cloud.axhline(1, color=GREY, linestyle="--", linewidth=1, label="always after the same word")
for word, partner in sociable.items():
    cloud.plot([occurs[word], occurs[partner]], [company[word], company[partner]], color=GREY, linewidth=0.7)
    for w, color, offset, side in ((word, RED, (7, -4), "left"), (partner, "#004D80", (-7, 5), "right")):
        cloud.plot(occurs[w], company[w], "o", color=color, markersize=6)
        cloud.annotate(w, (occurs[w], company[w]), xytext=offset, textcoords="offset points", ha=side, color=color,
                       bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5})
cloud.set(xlabel="occurrences of the word", ylabel="different words before it",
          title="Alike in count, not in company (each dot is a word)", xlim=(0.7, 1e5), ylim=(0.6, 1e4))
cloud.legend(frameon=False, loc="upper left")
for (word, row), color, fate in zip(
    worked.items(), (BLUE, RED, GREY), ("came after “Duke of”", "came after “of” only", "never came at all")
):
    p = [value for value, _ in row]
    steps.semilogy(range(4), p, "-", color=color, linewidth=1.5, label=f"{word}: {fate}")
    for k, (value, own) in enumerate(row):
        steps.plot(k, value, "o", markersize=8, markeredgecolor=color, markerfacecolor=color if own else "white")
        if k:
            offset, side = ((-6, 6), "right") if word == "York" else ((0, -16), "center")
            steps.annotate(f"{value:.1e}", (k, value), xytext=offset, textcoords="offset points", ha=side, fontsize=9,
                           color=color)
steps.annotate(f"1/c = {1 / c:.1e}", (0, 1 / c), xytext=(0, 10), textcoords="offset points", ha="center", fontsize=9)
steps.plot([], [], "o", color="0.3", label="filled: with a share of its own")
steps.plot([], [], "o", markeredgecolor="0.3", markerfacecolor="white", label="hollow: only what was handed down")
steps.set_xticks(range(4), ["p₀\nall words alike", "p₁\nno history", "p₂\nafter “of”", "p₃\nafter “Duke of”"])
steps.set_yticks(10.0 ** np.arange(-7, 1))
steps.set(ylabel="probability (logarithmic)", xlim=(-0.4, 3.4), ylim=(5e-8, 50),
          title=f"Kneser-Ney by hand, order 3, D = {best_D}")
steps.legend(frameon=False, loc="upper left", fontsize=9)
for axes in (cloud, steps):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "01_kneser_ney")

# %% [markdown]
# ## 6. Cross-entropy and perplexity on the test
#
#     H = −1/N Σ_t ln p(w_t | h_t)   nats per word,          perplexity = e^H
#
# The perplexity is the number of equally likely words that would be as hard to guess: c = 14,295 for the uniform
# guess, 1 for the prophet. All choices are made; now each model counts all training words and is measured once on the
# test.
#
# **Expect** ln 14,295 = 9.568 for the uniform guess; Kneser-Ney with D = 0.9 near 6.06, 5.17, 5.05 and 5.07 at orders
# 1, 2, 3 and 5; modified Kneser-Ney near 5.034 at order 3. After order 3 longer histories help no more: they are
# hardly ever there (section 4). And two get *worse* with longer histories: stupid back-off, because it trusts what it
# saw once, and add-k, because it spreads nearly everything evenly over all c words.

# %%
settings = {"add-k": {"k": best_k}, "stupid-backoff": {}, "absolute-discounting": {"discount": best_D},
            "kneser-ney": {"discount": best_D}, "modified-kneser-ney": {"discount": best_D}}  # fmt: skip
losses = {}
seconds = time.perf_counter()
for smoothing, options in settings.items():
    losses[smoothing] = [
        cross_entropy(NGramModel(n, c, smoothing, **options).fit(train), first_test, len(ids)) for n in ORDERS
    ]
seconds = time.perf_counter() - seconds

uniform = uniform_cross_entropy(c)
print(f"\n6. Test words, nats per word; uniform: {uniform:.3f}")
print(f"  {'order':<22}" + "".join(f"{n:>8}" for n in ORDERS))
for smoothing, row in losses.items():
    print(f"  {smoothing:<22}" + "".join(f"{loss:>8.3f}" for loss in row))
print("  perplexity, equally likely words")
for smoothing, row in losses.items():
    print(f"  {smoothing:<22}" + "".join(f"{perplexity(loss):>8,.0f}" for loss in row))
print(f"  {len(settings) * len(ORDERS)} models counted and measured in {seconds:.0f} s")

# %%
STYLES = {
    "add-k": (RED, "s", f"add-k, k = {best_k}"),
    "stupid-backoff": (ORANGE, "^", "stupid back-off, α = 0.4"),
    "absolute-discounting": (PURPLE, "v", f"plain counts, D = {best_D}"),
    "kneser-ney": (BLUE, "o", f"Kneser-Ney, D = {best_D}"),
    "modified-kneser-ney": (GREEN, "D", "modified Kneser-Ney"),
}
figure = Figure(figsize=(14, 4.8), layout="constrained")
valleys, overview, closer = figure.subplots(1, 3)
for (n, row), color, marker in zip(valley.items(), (ORANGE, BLUE, PURPLE), "^os"):
    valleys.plot(DISCOUNTS, row, marker + "-", color=color, label=f"order {n}")
valleys.axvline(best_D, color=GREY, linestyle=":", linewidth=1)
valleys.set(xlabel="discount D", ylabel="cross-entropy in nats per word", title="Choosing D on the validation words")
valleys.legend(frameon=False)
for smoothing, (color, marker, name) in STYLES.items():
    for axes, least in ((overview, 1), (closer, 2)):
        row = losses[smoothing][least - 1 :]
        axes.plot(ORDERS[least - 1 :], row, marker + "-", color=color, label=name, markersize=5)
overview.axhline(uniform, color=GREY, linestyle="--", linewidth=1)
overview.annotate(f"uniform, ln c = {uniform:.3f}", (1, uniform), xytext=(0, -12), textcoords="offset points",
                  color="0.35")
overview.set(xlabel="order n", title="Test words", ylim=(4.8, 9.9))
overview.legend(frameon=False, loc="center right", bbox_to_anchor=(1, 0.37), fontsize=9)
closer.set(xlabel="order n", title="Test words, from order 2 on", xlim=(1.8, 7.2), ylim=(5.0, 5.65))
least, best_order = min(zip(losses["modified-kneser-ney"], ORDERS))
closer.annotate(f"{least:.3f}", (best_order, least), xytext=(0, -14), textcoords="offset points", ha="center",
                color=GREEN)
overview.set_xticks(list(ORDERS))
closer.set_xticks(list(ORDERS)[1:])
for axes in (valleys, overview, closer):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "01_smoothing")

# %% [markdown]
# ### What the new words cost
#
# 4.3 % of the test words never occur in training. Kneser-Ney gives them what trickles down to order 0, and divides it
# among all c words, though only the 800 that did not occur in training need it. **Expect** new words to cost well over
# 9.568 nats each, more than a uniform guess, and a tenth of the whole loss.
#
# How much of that is unavoidable? Someone who knew beforehand how many test words are new, and spread that probability
# evenly over the words that training does not have, would pay −ln(0.043/800) for each: about 9.8 nats.

# %%
best_model = NGramModel(3, c, "modified-kneser-ney", discount=best_D).fit(train)
nats = -best_model.log_probabilities(ids, first_test)
new = ~np.isin(ids[first_test:], train)
absent = c - len(occurs)
print("\nModified Kneser-Ney, order 3, by word")
print(f"  {'':<18}{'of the words':>14}{'nats each':>12}{'adds to the mean':>19}{'of the loss':>14}")
for name, these in (("new in the test", new), ("seen in training", ~new), ("all", new | ~new)):
    adds = nats[these].sum() / len(nats)
    print(f"  {name:<18}{these.mean():>14.1%}{nats[these].mean():>12.3f}{adds:>14.3f} nats{adds / nats.mean():>14.1%}")
fair = -np.log(new.mean() / absent)
saved = new.mean() * (nats[new].mean() - fair) + (1 - new.mean()) * np.log(1 - new.mean())
print(f"  {absent} words of the vocabulary never occur in training.")
print(f"  With foresight each new word would cost {fair:.2f} nats, and the mean would be {saved:.3f} nats lower")
print("  (what the other words would pay for it is in that number).")

# %% [markdown]
# This also explains order 1 of the orange line, where stupid back-off beats Kneser-Ney at order 1: its α/c for an
# unseen word is more generous than the discount of order 1.
#
# ## 7. Writing
#
# To write, draw a word from p(w | h), append it, and draw again. All models start after the same line, "KING RICHARD
# III:". Without smoothing first, as the lectures do it.
#
# **Expect** a bag of words from order 1, pairs that fit from order 2, sentences that lose their thread from order 3,
# and from order 7 real Shakespeare. Too real: its six words of history have mostly one continuation, the one in the
# text.

# %%
START = vocabulary.encode(tokenize("\nKING RICHARD III:\n"))
WRITING = (1, 2, 3, 5, 7)


def write(order, smoothing):
    model = NGramModel(order, c, smoothing, discount=best_D).fit(train)
    return np.array(list(generate(model, START, WRITTEN, partial(sample, rng=np.random.default_rng(order)))))


def one_line(ids):
    return vocabulary.decode(ids).strip().replace("\n\n", " // ").replace("\n", " / ")


def print_samples(texts, words=40):
    for n, text in texts.items():
        print(textwrap.fill(one_line(text[:words]), 100, initial_indent=f"  {n}  ", subsequent_indent="     "))


print("\n7. Writing after 'KING RICHARD III:', maximum likelihood, orders 1, 2, 3, 5 and 7")
print("(/ is a line break, // an empty line)")
written = {"maximum-likelihood": {n: write(n, "maximum-likelihood") for n in WRITING}}
print_samples(written["maximum-likelihood"])

# %% [markdown]
# ### Reciting
#
# Fluent or copied? For each written word, find the longest passage of the training text that ends in it: how many
# words up to here stand in the training text in the same order. As a measure to compare with: Shakespeare's own test
# text.
#
# **Expect** one or two words from order 1, more the higher the order, and from order 7 passages of a hundred words.
# The test text, which surely did not copy, shares two or three words in a row with the training text on average, and
# seldom more than eight or nine. (In the figure its line leaves the picture at new words: they end a passage of length
# 0.)

# %%
def copied(text, source):
    """For each word of the text: the length of the longest passage of the source that ends with the words up to it."""
    run, lengths = np.zeros(len(source) + 1, dtype=np.int32), []
    for word in text:
        run[1:] = (run[:-1] + 1) * (source == word)      # at each place of the source: words alike up to it
        lengths.append(run.max())
    return np.array(lengths)


written["kneser-ney"] = {n: write(n, "kneser-ney") for n in WRITING}
lengths = {s: {n: copied(text, train) for n, text in texts.items()} for s, texts in written.items()}
of_the_test = copied(ids[first_test : first_test + WRITTEN], train)
print(f"\nReciting: passages of the training text in {WRITTEN:,} written words")
print(f"  {'order':<12}{'maximum likelihood: mean':>26}{'longest':>9}{'Kneser-Ney: mean':>22}{'longest':>9}   words")
for n in WRITING:
    ml, kn = lengths["maximum-likelihood"][n], lengths["kneser-ney"][n]
    print(f"  {n:<12}{ml.mean():>26.1f}{ml.max():>9}{kn.mean():>22.1f}{kn.max():>9}")
print(f"  {'test text':<12}{of_the_test.mean():>26.1f}{of_the_test.max():>9}")

end = int(lengths["maximum-likelihood"][7].argmax())
passage = written["maximum-likelihood"][7][end + 1 - lengths["maximum-likelihood"][7][end] : end + 1]
print(f"\nThe longest passage that order 7 copied, {len(passage)} words, begins and ends")
print(textwrap.fill(f"{one_line(passage[:20])} … {one_line(passage[-12:])}", 96, initial_indent="  ",
                    subsequent_indent="  "))

figure = Figure(figsize=(12, 4.6), layout="constrained")
over_time, over_order = figure.subplots(1, 2, width_ratios=[1.35, 1])
first = min(WRITTEN, 300)
for n, color, line in zip((7, 5, 3), (BLUE, RED, GREEN), ("-", "--", "-")):
    over_time.plot(range(1, first + 1), lengths["maximum-likelihood"][n][:first], line, color=color, label=f"order {n}")
over_time.plot(range(1, first + 1), of_the_test[:first], color="0.55", linewidth=1, label="Shakespeare's test text")
over_time.set(xlabel="written word", ylabel="copied passage up to here, in words", yscale="log",
              title="Order 7 recites from one crossroads to the next (maximum likelihood)")
over_time.set_ylim(0.8, 600)
over_time.legend(frameon=False, loc="upper left", ncols=2)
for smoothing, color, marker in (("maximum-likelihood", BLUE, "o"), ("kneser-ney", ORANGE, "^")):
    for line, name, measure in (("-", "longest", np.max), (":", "mean", np.mean)):
        over_order.plot(WRITING, [measure(lengths[smoothing][n]) for n in WRITING], marker + line, color=color,
                        label=f"{smoothing.replace('-', ' ').replace('kneser ney', 'Kneser-Ney')}: {name}")
over_order.axhline(of_the_test.max(), color=GREY, linewidth=1, label="Shakespeare's test text: longest")
over_order.axhline(of_the_test.mean(), color=GREY, linewidth=1, linestyle=":", label="Shakespeare's test text: mean")
over_order.set(xlabel="order n", ylabel="copied passage, in words", yscale="log", title=f"In {WRITTEN:,} written words")
over_order.set_ylim(0.8, 2000)
over_order.set_xticks(WRITING)
over_order.legend(frameon=False, loc="upper left", fontsize=8, ncols=2)
for axes in (over_time, over_order):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "01_reciting")

# %% [markdown]
# ### The better model writes worse
#
# The right half of that table is Kneser-Ney, the model with the good cross-entropy. It does not recite. How does it
# write? **Expect** a disappointment.

# %%
print("\nWriting after 'KING RICHARD III:', Kneser-Ney")
print_samples(written["kneser-ney"], words=30)

# %% [markdown]
# Where does the nonsense come from? At each step the trigram model leaves a part of the probability to words that
# never came after the word before. **Expect** about a quarter: so every fourth word or so is drawn without regard to
# what was just written.

# %%
elsewhere = []
for t in range(first_test, first_test + 2000, 20):
    p = np.exp(trigram.next_word_logits([ids[t - 2 : t]])[0])                        # (c,)
    came_before = np.zeros(c, dtype=bool)
    came_before[train[1:][train[:-1] == ids[t - 1]]] = True
    elsewhere.append(p[~came_before].sum())
print(f"\nProbability of words that never came after the last word, mean of {len(elsewhere)} test histories: "
      f"{np.mean(elsewhere):.0%}")

# %% [markdown]
# Cross-entropy punishes the word that was thought impossible, and it hardly minds a little probability on each of
# 14,000 wrong words. A sampler does mind: together those crumbs are a good part of the whole, and every few words it
# picks one. So the two measures disagree. Maximum likelihood is worthless as a model of new text (its loss is
# infinite) and writes well, because it copies. `sample(…, top_k=…)` or a low temperature, Lab 06, cut the crumbs off.
#
# ## 8. What cannot work
#
# An order is a number of words with the predicted one: there is no order 0, and the library stops at 7. **Expect**
# messages that say what to do.

# %%
print("\n8. What cannot work")
for attempt in (
    lambda: NGramModel(0, c),
    lambda: NGramModel(3, c, k=0),
    lambda: NGramModel(3, c, discount=0),
    lambda: NGramModel(3, 10).fit(train),
    lambda: NGramModel(3, c).log_probabilities(ids),
):
    refused(attempt)

# %% [markdown]
# ## What to take along
#
# - Maximum likelihood for discrete things is counting and dividing. It believes that what it has not seen is
#   impossible.
# - A table of n-grams is empty almost everywhere. At order 4 two of three histories of a new text are new, and nothing
#   that treats each history on its own can learn about them. Networks will share what they learn between histories:
#   Labs 02, 03, 06.
# - Taking a fixed part from each count and asking the shorter history, by company and not by count, is hard to beat:
#   5.03 nats per word. A network on this corpus has to come below that before it has learned more than counting.
# - Low cross-entropy and good writing are different things.
#
# Try: `shakespeare("clean")` for `shakespeare()`, a longer text without gaps. The losses rise: find half of the reason
# in the table of new words. Try `k` between 0.001 and 0.03 at order 3. Let order 3 write with `partial(sample, rng=…,
# top_k=20)`.
