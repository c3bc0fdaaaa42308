# %% [markdown]
# # Lab 01: counting words
#
# Sources: USC CSCI 567 (Spring 2024), lecture 8, Markov chains and n-gram models; UMass CS685 (2020), neural language
# models, the part that looks back at n-gram models.
#
# A language model gives each word a probability, given the words before it. This lab makes language models without any
# network: it counts, and divides. You will
#
# - learn a Markov chain from ten days of weather, by hand, and see that no other chain fits better,
# - count 262,864 words of Shakespeare, and ask what comes after "the Duke of",
# - shorten a history that never occurred, and learn which of its words to drop first,
# - see why counting alone calls three in ten word pairs of a new text impossible.
#
# `01b_smoothing.py` repairs that, and sets the bar that every network of the later labs has to clear.
#
# Letters: **c** different words, **n** the order, the number of words in an n-gram, the predicted one included; **w** a
# word, **h** its history, the n − 1 words before it; **π**, **A** the Markov chain.
#
# It takes a few seconds on one CPU core, with or without `--quick`.

# %%
from collections import Counter
from functools import cache

from _common import quick_mode, refused, show, shown
from _drawing import lab_01
from mini_tf.decoding import continuations
from mini_tf.models import NGramModel, markov_chain
from mini_tf.models.ngram import ORDERS, count_grams
from mini_tf.text import Vocabulary, shakespeare, tokenize

import numpy as np

quick_mode("Lab 01: Markov chains, n-gram models, sparsity")

# %% [markdown]
# ## 1. A Markov chain: the weather
#
# A Markov chain goes from state to state. Where it goes next depends on where it is now, and on nothing before that.
# Two tables describe it completely:
#
# $$
# \pi_s = P(X_1 = s), \qquad
# A_{ss'} = P(X_{t+1} = s' \mid X_t = s), \qquad
# P(x_1 \dots x_T) = \pi_{x_1} \cdot \prod_{t=2}^T A_{x_{t-1} x_t}
# $$
#
# To learn them from observed sequences, choose the tables that make what was observed most probable: *maximum
# likelihood*. The answer is to count and divide:
#
# $$
# \pi_s = \frac{\text{sequences that start in } s}{\text{sequences}}, \qquad
# A_{ss'} = \frac{\text{transitions } s \to s'}{\text{transitions from } s}
# $$
#
# The lecture observes two sequences of five days. Count by hand first. Starts: one sunny, one rainy. From sunny: 3
# times to sunny, twice to rainy. From rainy: twice to rainy, once to sunny. The last day of a sequence leads nowhere.
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
# A product of many probabilities is a very small number, so we take its logarithm. The product becomes a sum, and
# equal terms can be collected: all that remains of the data is the counts.
#
# $$
# \begin{aligned}
# \ln P &= \sum_{\text{sequences}} \left( \ln \pi_{x_1} + \sum_{t=2}^T \ln A_{x_{t-1} x_t} \right) \\
#       &= \sum_s \text{starts}(s) \cdot \ln \pi_s + \sum_{ss'} \text{transitions}(s, s') \cdot \ln A_{ss'}
# \end{aligned}
# $$
#
# **An error of the source.** One line of the lecture's derivation has a bare $\pi_{x_1}$, without its ln. A probability
# cannot be added to logarithms of probabilities. Without the ln, this term could not even teach π: for one sunny start
# and one rainy start it is $\pi_{\text{sunny}} + \pi_{\text{rainy}} = 1$, whatever π is.
#
# **Expect** $2 \ln \frac{1}{2} + 3 \ln \frac{3}{5} + 2 \ln \frac{2}{5} + 2 \ln \frac{2}{3} + \ln \frac{1}{3} = -6.661$
# nats. ("Nats" are units of the natural logarithm.)


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
# Try it. **Expect** that none of 10,000 chains drawn at random beats the counted one, and that the best of them comes
# close. In the figure, each curve varies one row of A and leaves the other alone: the peaks are at 3/5 and 2/3.

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


show(lab_01.weather(WEATHER, pi, A, a, (over_sunny, over_rainy), best), "01_weather")

# %% [markdown]
# ### Weather that never was
#
# A chain that can score a sequence can also make one: draw the first day from π, each next day from the row of the day
# before. Two checks. Counting a long sample must give A back. And in the long run the share of sunny days settles where
# as many days turn sunny as turn rainy: $\text{share} \cdot \frac{2}{5} = (1 - \text{share}) \cdot \frac{1}{3}$.
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
# Take words as states, and the chain is a language model: the *bigram model*. Its A is a table with a row for each
# word that can come before, and a column for each word that can come next. The corpus is that of all the labs: 292,072
# words of Shakespeare, where punctuation marks and line breaks count as words.
#
# We count in the first 90 %, and keep the last 10 % as a test. The vocabulary is that of the whole corpus, as in the
# other labs.
#
# **Expect** 14,295 different words.

# %%
tokens = tokenize(shakespeare())
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c = len(vocabulary)
first_test = int(0.9 * len(ids))
train, train_words = ids[:first_test], tokens[:first_test]

print(f"\n2. The corpus: {len(ids):,} words, {c:,} different")
print(f"  {len(train):,} to count, {len(ids) - first_test:,} to test")
print(f"  the bigram table has c² = {c * c / 1e6:,.0f} million entries")

# %% [markdown]
# All 204 million entries would fill a large wall. We cut out eight words. First count how often each follows another,
#
# $$
# \text{count}(h\,w),
# $$
#
# then divide every row by its sum, over *all* words and not only these eight:
# $\text{count}(h) = \sum_w \text{count}(h\,w)$. That is maximum likelihood again,
# $p(w \mid h) = \text{count}(h\,w)/\text{count}(h)$. (The CS685 lecture says that one divides by the probability of the
# prefix. It is the count.)
#
# **Expect** most entries to be 0, although these are frequent words; rows with clear favourites ("I", "my"), and rows
# without ("the").

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
of_the_model = np.exp(bigram.logits(some[:, None]))[:, some]
assert np.allclose(of_the_model, probabilities)

print("\nRows of the bigram table: the sum of a row, and the most probable next words")
for h in SOME:
    words, p = continuations(bigram, vocabulary.encode([h]), 4)
    print(f"  {h:<6}{rows[h]:>6,}   " + "   ".join(f"{shown(vocabulary.words[w])} {x:.3f}" for w, x in zip(words, p)))
difference = abs(of_the_model - probabilities).max()
print(f"  NGramModel(2, …) gives the same 64 probabilities: largest difference {difference:.0e}")
print(f"  entries of the whole table that are not 0: {len(pairs):,} of {c * c:,}, {len(pairs) / c**2:.3%}")

show(lab_01.bigram_table(SOME, counts, probabilities), "01_bigram_table")

# %% [markdown]
# ## 3. The prefix game
#
# Both lectures ask for the word after "students opened their". A 4-gram model looks at three words, and divides:
#
# $$
# p(w \mid \text{students opened their}) =
# \frac{\text{count}(\text{students opened their } w)}{\text{count}(\text{students opened their})}
# $$
#
# Our prefix is "the Duke of". **Expect** York to come first, its count divided by 34, and the model to agree.

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
# that contains it, because one factor of 0 makes the whole product 0. **Expect** quite ordinary phrases to be
# impossible.

# %%
print("\nThe numerator can be 0")
print(f"  {'':<20}{'count of the four':>18}{'of the first three':>20}{'p':>8}   in the test text")
test_fours = Counter(zip(*(tokens[first_test + i :] for i in range(4))))
for *h, w in (("I", "will", "not", "go"), ("I", "will", "be", "married"), ("the", "Duke", "of", "Milan")):
    p = np.exp(four.logits([vocabulary.encode(h)])[0, vocabulary.index[w]])
    print(f"  {' '.join((*h, w)):<20}{count(*h, w):>18}{count(*h):>20}{p:>8.3f}   {test_fours[*h, w]:>3}×")

# %% [markdown]
# (The lecture's slide on longer histories writes $x_t \dots x_{t-n+2}$ and calls them the n preceding words. Count
# them: there are n − 1. An n-gram model of order n is a Markov chain of order n − 1; the bigram model, of order 1, is
# the plain Markov chain.)
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
# A word that is not in the vocabulary has no index, and no model can use it. So take known words that never occur
# together: "servants open their". When a prefix never occurs, *back off*: use a shorter one. Which word should go?
#
# **An error of the source.** The CS685 lecture goes from "students opened their" to "students opened", and then to
# "students". That drops the *nearest* word and keeps the farthest. It must be the other way round: "opened their",
# then "their", as NGramModel does.
#
# **Expect** things that one can own after "their". After "servants", which the lecture's way ends with, expect nothing
# of the kind.

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
# measure how much a single word tells about the word d places after it, with a bigram model of words that stand d
# apart. (Reading every d-th word makes such a text. The smoothing, Kneser-Ney's, and the measure, nats per test word,
# the fewer the better, are those of `01b_smoothing.py`.)
#
# **Expect** nearness to pay: about 5.17 nats given the word just before, and given the third word back hardly better
# than the 6.06 of knowing no word at all.

# %%
def strided(ids, d):
    """The same words in an order in which neighbours are words that stood d apart."""
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
# How large is the table of order n, and how much of it does the text fill? There are $c^n$ possible n-grams, and a text
# of N words has at most N of them.
#
# **Expect** a table that no computer can hold from order 3 on, and most of the n-grams that do occur to occur only
# once. CS685 quotes 99.9 % zeros for a 4-gram table of Shakespeare. That is far too modest: see the column "filled".

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
# The last column is the cure for the storage: keep only the n-grams that occur, sorted, and search. Its size grows with
# the length of the text and not with $c^n$.
#
# Nothing cures the sparsity. Take each word of the test with the n − 1 words before it. Either the n-gram is known
# from training; or its history is known, but this word never came after it (maximum likelihood says 0); or not even the
# history was ever seen (maximum likelihood says 0/0).
#
# **Expect** the first share to shrink fast: most pairs of the test are known, but only one 4-gram in six. Order 1 has
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

show(lab_01.sparsity(list(ORDERS), c, len(train), seven.grams, {
    "n-gram seen in training": seen,
    "history seen, but not this word after it: p = 0": zero,
    "history never seen: 0/0": nothing,
}), "01_sparsity")  # fmt: skip

# %% [markdown]
# ## What to take along
#
# - Maximum likelihood for discrete things is counting and dividing. It believes that what it has not seen is
#   impossible.
# - When a history has never occurred, drop its farthest word first: the nearest one tells most.
# - A table of n-grams is empty almost everywhere. At order 4 two of three histories of a new text are new, and nothing
#   that treats each history on its own can learn about them. Networks will share what they learn between histories:
#   Labs 02, 03, 06.
#
# Next: `01b_smoothing.py` gives every n-gram a probability, measures that in nats per word, and lets the models write.
#
# Try: `shakespeare("clean")` for `shakespeare()`, a longer text without gaps. What happens to the table of sparsity? In
# section 3, let d go on to 10.
