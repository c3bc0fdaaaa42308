# %% [markdown]
# # Lab 01: counting words
#
# - **Goals:** fit a Markov chain by counting, and prove that no other chain makes the data as probable; predict words
#   by n-grams, backing off where a history is unknown; say why counting alone gives a new text probability 0.
# - **Before it:** conditional probability, the logarithm, the maximum of a function under a constraint. **Work:** about
#   4 hours.
# - **Hand in:** `count_chain`, `log_likelihood`, `next_words`, `back_off`; an experiment from “Try”.
#
# Sources: USC CSCI 567 (spring 2024), lecture 8, Markov chains and n-gram models: slides without a printed address,
# which follow <https://web.stanford.edu/class/cs224n/>. UMass CS685 (fall 2020), neural language models, the part that
# reviews n-gram models: <https://people.cs.umass.edu/~miyyer/cs685/>, recording
# <https://www.bilibili.com/video/BV1BL411t7RV>.
#
# A language model gives each word a probability, given the words before it. This lab builds language models without any
# network, by counting and dividing.
#
# Counting alone fails on three in ten word pairs of a new text. `01b_smoothing.py` repairs that, and sets the baseline
# that every network of the later labs has to beat.
#
# Letters: **c** different words; **K** the order of an n-gram model: the number of words in an n-gram, the predicted
# one included (`order` in the code; the sources' n); **w** a word, **h** its history, the K − 1 words before it;
# **π**, **A** the Markov chain.
#
# It runs in a few seconds on one CPU core, with or without `--quick`.

# %%
from collections import Counter
from functools import cache

from _common import listed, quick_mode, refused, show, table
from _drawing import lab_01
from _expect import about, at_most, below, expect
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
# P(x_1, x_2, \dots) = \pi_{x_1} \cdot \prod_{t \ge 2} A_{x_{t-1} x_t}
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
# The lecture observes two sequences of five days. Count by hand, before you run the cell: how often does each day start
# a sequence, and how often does sun, or rain, follow sun, and rain? (The last day of a sequence leads nowhere.)


# %%
def count_chain(sequences, states):
    """(π, A) of a Markov chain by maximum likelihood, that is, by counting and dividing

    π_s = sequences that start in s / sequences,   A_ss′ = transitions s → s′ / transitions from s
    sequences: arrays of integers below `states`  →  π (states,), A (states, states)
    """
    starts, transitions = np.zeros(states), np.zeros((states, states))
    for x in sequences:
        starts[x[0]] += 1
        np.add.at(transitions, (x[:-1], x[1:]), 1)       # adds each pair, even if it comes several times
    return starts / starts.sum(), transitions / transitions.sum(1, keepdims=True)


WEATHER = ["sunny", "rainy"]
SUNNY, RAINY = 0, 1
days = np.array([
    [SUNNY, SUNNY, RAINY, RAINY, RAINY],
    [RAINY, SUNNY, SUNNY, SUNNY, RAINY],
])  # fmt: skip
pi, A = count_chain(days, 2)                             # (2,), (2, 2)

print("1. The weather of the lecture, by maximum likelihood")
table(("from", *WEATHER), {"start": pi, WEATHER[SUNNY]: A[SUNNY], WEATHER[RAINY]: A[RAINY]}, "{:.3f}")
by_hand = np.array([[3 / 5, 2 / 5], [1 / 3, 2 / 3]])
expect("π by hand is 1/2, 1/2; largest difference", 0, abs(pi - 1 / 2).max())
expect("A by hand: 3/5, 2/5; 1/3, 2/3", 0, abs(A - by_hand).max())
theirs = markov_chain(days, 2)
expect("mini_tf's markov_chain, largest difference", 0, max(abs(pi - theirs[0]).max(), abs(A - theirs[1]).max()))

# %% [markdown]
# ### The log-likelihood
#
# A product of many probabilities is a very small number, so we take its logarithm. The product becomes a sum, and
# equal terms can be collected: all that remains of the data is the counts.
#
# $$
# \begin{aligned}
# \ln P &= \sum_{\text{sequences}} \left( \ln \pi_{x_1} + \sum_{t \ge 2} \ln A_{x_{t-1} x_t} \right) \\
#       &= \sum_s \text{starts}(s) \cdot \ln \pi_s + \sum_{ss'} \text{transitions}(s, s') \cdot \ln A_{ss'}
# \end{aligned}
# $$
#
# For the ten days that is
# $2 \ln \frac{1}{2} + 3 \ln \frac{3}{5} + 2 \ln \frac{2}{5} + 2 \ln \frac{2}{3} + \ln \frac{1}{3} = -6.661$ nats, the
# units of the natural logarithm. (Our copy of the slide has one more $\pi_{x_1}$ before the sum, perhaps a handwritten
# mark. It does not belong there: it would make the probabilities of all five-day sequences add up to √e.)


# %%
def log_likelihood(sequences, pi, A):
    """ln P of all sequences together: the sum of ln π_{x_1} + Σ_{t ≥ 2} ln A_{x_{t−1} x_t} over them, in nats"""
    return sum(np.log(pi[x[0]]) + np.log(A[x[:-1], x[1:]]).sum() for x in sequences)


best = log_likelihood(days, pi, A)
print("\nThe log-likelihood")
expect("ln P of the ten days, nats", about(-6.661, within=0.0005), best)

# %% [markdown]
# ### Why counting is the answer
#
# Take one row of A, with N(s, s') for the transitions. Its entries must sum to 1, so a multiplier λ joins what is to be
# made as large as possible:
#
# $$
# \Lambda = \sum_{s'} N(s, s') \ln A_{ss'} - \lambda \Big( \sum_{s'} A_{ss'} - 1 \Big), \qquad
# \frac{\partial \Lambda}{\partial A_{ss'}} = \frac{N(s, s')}{A_{ss'}} - \lambda = 0
# \quad\Rightarrow\quad A_{ss'} = \frac{N(s, s')}{\lambda}
# $$
#
# Sum over s', and the constraint says $\lambda = \sum_{s'} N(s, s')$, the transitions from s: count and divide. It is a
# maximum, and the only one, because a sum of logarithms is concave. π follows in the same way.
#
# In words: at the maximum all entries of a row have the same slope, λ, so moving probability from one to another gains
# nothing.
#
# Another way to the same numbers is the definition of a conditional probability, with shares of the data in place of
# probabilities: $P(x_{t+1} \mid x_t) = P(x_t, x_{t+1}) / P(x_t)$ is how often the pair occurs, divided by how often the
# first day occurs with a day after it. What the likelihood adds is the reason: no other numbers make the data as
# probable.
#
# **Expect** a slope of 5 in the sunny row; which one in the rainy row?

# %%
slopes = np.zeros((2, 2))
for place in np.ndindex(2, 2):
    change = np.zeros((2, 2))
    change[place] = 1e-5
    slopes[place] = (log_likelihood(days, pi, A + change) - log_likelihood(days, pi, A - change)) / 2e-5
table(("∂ ln P / ∂A", *WEATHER), dict(zip(WEATHER, slopes)), "{:.6f}", title="The slope of ln P along each entry of A")
expect("sunny row: 5, rainy row: 3; largest difference", at_most(1e-6), abs(slopes - [[5], [3]]).max(), form="{:.0e}")

# %% [markdown]
# ### Is no other chain more likely?
#
# Try it: does one of 10,000 chains drawn at random beat the counted one? In the figure, each curve varies one row of A
# and leaves the other alone.

# %%
rng = np.random.default_rng(0)
others = []
for _ in range(10_000):
    start, from_sunny, from_rainy = rng.dirichlet([1, 1], 3)
    others.append(log_likelihood(days, start, np.array([from_sunny, from_rainy])))

a = np.linspace(0.01, 0.99, 99)
over_sunny = np.array([log_likelihood(days, pi, np.array([[x, 1 - x], A[RAINY]])) for x in a])
over_rainy = np.array([log_likelihood(days, pi, np.array([A[SUNNY], [1 - x, x]])) for x in a])

print("\nOther chains")
expect("of 10,000 at random, more likely", 0, np.sum(others > best))
expect("best of them, below the counted chain by, nats", below(0.02), best - max(others))
for name, curve, top in (("sunny", over_sunny, 3 / 5), ("rainy", over_rainy, 2 / 3)):
    expect(f"top of the curve over A({name} → {name})", about(top, within=0.005), a[curve.argmax()])
show(lab_01.weather(WEATHER, pi, A, a, (over_sunny, over_rainy), best), "01_weather")

# %% [markdown]
# ### Sampling from the chain
#
# A chain that can score a sequence can also generate one: draw the first day from π, and each next day from the row of
# the day before. Two checks: counting a long sample must recover A, and in the long run the share of sunny days settles
# where as many days turn from rainy to sunny as from sunny to rainy:
# $\text{share} \cdot \frac{2}{5} = (1 - \text{share}) \cdot \frac{1}{3}$.
#
# **Expect** a share of 5/11 = 0.455, and A, both to within 0.02 for 20,000 days.


# %%
def sample_chain(pi, A, length, rng):
    """x_1 from π, x_{t+1} from the row of x_t: the first state whose cumulative probability exceeds a random number"""
    u, up_to = rng.random(length), A.cumsum(1)
    states = [np.searchsorted(pi.cumsum(), u[0], side="right")]
    for t in range(1, length):
        states.append(np.searchsorted(up_to[states[-1]], u[t], side="right"))
    return np.array(states)


weather = sample_chain(pi, A, 20_000, np.random.default_rng(1))
_, A_again = count_chain([weather], 2)
print("\nSampled weather: " + ", ".join(WEATHER[s] for s in weather[:8]) + ", …")
expect("share of sunny days", about(5 / 11, within=0.02), np.mean(weather == SUNNY))
expect("A counted from them, largest difference", at_most(0.02), abs(A_again - A).max())

# %% [markdown]
# ## 2. From weather to words: the bigram table
#
# Take words as states, and the chain is a language model: the *bigram model*. Its A is a table with a row for each
# word that can come before, and a column for each word that can come next. The corpus is the one that labs 01 to 07
# share: 292,072 words of Shakespeare, where punctuation marks and line breaks count as words. 14,295 of them are
# different, so the table has 204 million entries.
#
# We count in the first 90 %, and keep the last 10 % as a test. The vocabulary is that of the whole corpus, as in the
# other labs.

# %%
tokens = tokenize(shakespeare())
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c = len(vocabulary)
first_test = int(0.9 * len(ids))
train, train_words = ids[:first_test], tokens[:first_test]

print(f"\n2. The corpus: {len(ids):,} words; {len(train):,} to count, {len(ids) - first_test:,} to test")
expect("words", 292_072, len(ids))
expect("different words, c", 14_295, c)

# %% [markdown]
# We cut out eight words. First count how often each follows another, $\text{count}(h\,w)$. Then divide every row by its
# sum, over *all* words and not only these eight: $\text{count}(h) = \sum_w \text{count}(h\,w)$. That is maximum
# likelihood again,
#
# $$
# p(w \mid h) = \frac{\text{count}(h\,w)}{\text{count}(h)}
# $$
#
# (The CS685 lecture says that one divides by the probability of the prefix. It is the count.)
#
# Guess: of the 64 pairs of these frequent words, how many never occur? **Expect** some rows to have a favourite (what
# comes after "my"?) and some to have none (after "the", no word has more than 2.5 %).

# %%
SOME = ["I", "am", "will", "my", "good", "lord", "the", "king"]


@cache
def gram_counts(order):
    """{n-gram: count} of the training text; an n-gram is a tuple of `order` words."""
    return Counter(zip(*(train_words[i:] for i in range(order))))


pairs = gram_counts(2)
rows = Counter(train_words[:-1])                         # how often each word has a next one
counts = np.array([[pairs[h, w] for w in SOME] for h in SOME])                       # (8, 8)
probabilities = counts / np.array([[rows[h]] for h in SOME])
bigram = NGramModel(2, c, "maximum-likelihood").fit(train)
some = vocabulary.encode(SOME)
of_the_model = np.exp(bigram.logits(some[:, None]))[:, some]

favourite, after = {}, {}
for h in SOME:
    words, p = continuations(bigram, vocabulary.encode([h]), 4)
    favourite[h], after[h] = p[0], (rows[h], listed(vocabulary, words, p))
table(("h", "count", "most probable next words"), after, title="Rows of the bigram table")
expect("of these 64 entries, zeros", 33, np.sum(counts == 0))
expect("p(lord | my), the favourite after my", about(0.101, within=0.0005), favourite["my"])
expect("p(king | the), the favourite after the", about(0.025, within=0.0005), favourite["the"])
expect("NGramModel(2, …), largest difference", at_most(1e-12), abs(of_the_model - probabilities).max())
expect("share of the whole table that is not 0", about(0.00045, within=5e-6), len(pairs) / c**2, form="{:.4%}")
show(lab_01.bigram_table(SOME, counts, probabilities), "01_bigram_table")

# %% [markdown]
# ## 3. The prefix game
#
# Both lectures ask for the word after "students opened their". A 4-gram model looks at three words and divides the
# counts:
#
# $$
# p(w \mid \text{students opened their}) =
# \frac{\text{count}(\text{students opened their } w)}{\text{count}(\text{students opened their})}
# $$
#
# Our prefix is "the Duke of", which occurs 34 times.


# %%
def next_words(words, history):
    """{w: p(w | history)} by counting and dividing: count(h w)/count(h), for the words that follow the history

    words: the text, a list;  history: a tuple of any length;  {} if it never occurs: that would be 0/0
    """
    grams = zip(*(words[i:] for i in range(len(history) + 1)))
    after = Counter(gram[-1] for gram in grams if gram[:-1] == history)
    return {w: times / after.total() for w, times in after.items()}


def count(*words):
    """How often these words occur in the training text, in this order."""
    return gram_counts(len(words))[words]


four = NGramModel(4, c, "maximum-likelihood").fit(train)
prefix = ("the", "Duke", "of")
divided = next_words(train_words, prefix)
words, p = continuations(four, vocabulary.encode(prefix), 6)
dukes = [vocabulary.words[w] for w in words]
table(("w", "count(the Duke of w)", "divided", "the model"),
      [(w, count(*prefix, w), divided[w], of_model) for w, of_model in zip(dukes, p)], ("{}", "{:.3f}", "{:.3f}"),
      title="3. The prefix game: the Duke of ___")  # fmt: skip
expect("p(York | the Duke of)", 9 / 34, divided["York"])
expect("the model, largest difference", at_most(1e-12), max(abs(p - [divided[w] for w in dukes])))

# %% [markdown]
# The method fails in two ways. **First**, the numerator can be 0. Then the n-gram is impossible, and so is every text
# that contains it, because one factor of 0 makes the whole product 0. Three ordinary phrases come out as impossible,
# although the test text has them five times in all.

# %%
test_fours = Counter(zip(*(tokens[first_test + i :] for i in range(4))))
PHRASES = ("I", "will", "not", "go"), ("I", "will", "be", "married"), ("the", "Duke", "of", "Milan")
p_of = {phrase: np.exp(four.logits([vocabulary.encode(phrase[:3])])[0, vocabulary.index[phrase[3]]])
        for phrase in PHRASES}  # fmt: skip
table(("", "count of the four", "of the first three", "p", "in the test text"),
      [(" ".join(phrase), count(*phrase), count(*phrase[:3]), p, test_fours[phrase]) for phrase, p in p_of.items()],
      ("{}", "{}", "{:.3f}", "{}"), title="The numerator can be 0")  # fmt: skip
expect("most probable of these phrases: p", 0, max(p_of.values()))
expect("times that the test text has them", 5, sum(test_fours[phrase] for phrase in PHRASES))

# %% [markdown]
# **Second**, the denominator can be 0, and 0/0 says nothing at all. Of the three words of the lecture's own prefix,
# Shakespeare has one.
#
# <details><summary>A slip of the slide on longer histories</summary>
#
# It defines the n-th order Markov chain by "previous n observations", $X_t, \dots, X_{t-n+2}$. Count them: there are
# n − 1. An n-gram model of order K is a Markov chain of order K − 1, so the bigram model, K = 2, is the ordinary chain.
#
# </details>

# %%
print("\nThe lecture's own prefix: students opened their ___")
refused(lambda: vocabulary.encode(tokenize("students opened their")))
known = vocabulary.encode(tokenize("students opened their"), unknown="skip")
expect("what remains with unknown='skip'", "their", vocabulary.decode(known))

# %% [markdown]
# ### Back-off
#
# A word that is not in the vocabulary has no index, and no model can use it. So take known words that never occur
# together: "servants open their". When a prefix never occurs, *back off*: use a shorter one. Which word should go?
#
# **An error of the source.** The CS685 lecture goes from "students opened their" to "students opened", and then to
# "students". That drops the *nearest* word and keeps the farthest. It must be the other way round: "opened their",
# then "their", as NGramModel does. The lecture's way ends with "servants", seen seven times before seven different
# words, which says nothing.


# %%
def back_off(history, known):
    """The longest ending of a history that is known; () if not even its last word is.

    history: a tuple of words;  known: a set of such tuples
    """
    while history and history not in known:
        history = history[1:]
    return history


known = {*gram_counts(1), *gram_counts(2), *gram_counts(3)}
shorter = ("servants open their", "open their", "their", "servants open", "servants")
answers = {name: continuations(four, vocabulary.encode(name.split()), 6) for name in shorter[::2]}
table(("history", "times", "the model's next words"),
      [(name, count(*name.split()), listed(vocabulary, *answers[name]) if name in answers else "") for name in shorter],
      title="Back-off from 'servants open their'")  # fmt: skip
expect("backed off to", "their", " ".join(back_off(("servants", "open", "their"), known)))
expect("the model's row, difference from that of their", 0,
       abs(answers["servants open their"][1] - answers["their"][1]).max())
expect("different words after servants, of 7", 7, len(next_words(train_words, ("servants",))))
# %% [markdown]
# But one example proves little. So measure how much a single word tells about the word d places after it, with a bigram
# model of words that stand d apart. (Reading every d-th word makes such a text. The smoothing, Kneser-Ney's, and the
# measure, nats per test word, the fewer the better, are those of `01b_smoothing.py`.)
#
# How much less does the second word back tell than the nearest, and the third?


# %%
def strided(ids, d):
    """The same words, reordered so that words that were d apart become neighbours."""
    return np.concatenate([ids[start::d] for start in range(d)])


alone = -NGramModel(1, c, discount=0.9).fit(train).log_probabilities(ids, first_test).mean()
print(f"\nWhat one word tells about the word d places later; without any word, {alone:.3f} nats per word")
for d, saved in ((1, 0.89), (2, 0.35), (3, 0.09)):
    at_distance = NGramModel(2, c, discount=0.9).fit(strided(train, d))
    loss = -at_distance.log_probabilities(strided(ids[first_test:], d)).mean()
    expect(f"d = {d}: loss {loss:.3f}; saved, nats", about(saved, within=0.005), alone - loss)

# %% [markdown]
# ## 4. Sparsity and storage
#
# How large is the table of order K, and how much of it does the text fill? There are $c^K$ possible n-grams, and a text
# has at most as many as it has words.
#
# Guess the size of the full table at order 3, and how many of the bigrams and trigrams occur only once. (CS685 quotes
# 99.9 % zeros for a 4-gram table of Shakespeare. It is far emptier: with our vocabulary, $5 \cdot 10^{-12}$ is filled.)

# %%
seven = NGramModel(7, c).fit(train)
once = [np.mean(grams.count == 1) for grams in count_grams(train, 7, c)]

sparse = []
for order, different, single in zip(ORDERS, seven.grams, once):
    full = c**order * 8
    stored = sum(array.nbytes for level in seven.levels[:order] for array in (level.key, level.share, level.rest))
    size = f"{full / 1e6:,.1f} MB" if full < 1e12 else f"{full / 1e12:.1e} TB"
    sparse.append((order, different, float(c) ** order, different / c**order, single, size, stored / 1e6))
table(("K", "different", "possible, c^K", "filled", "occur once", "full table", "the model, MB"), sparse,
      ("{:,}", "{:.1e}", "{:.1e}", "{:.0%}", "{}", "{:.1f}"), title="4. Sparsity: n-grams of the training text")
expect("full table of order 3, terabytes", about(23, within=0.5), c**3 * 8 / 1e12)
expect("bigrams that occur once", about(0.75, within=0.01), once[1], form="{:.0%}")
expect("trigrams that occur once", about(0.89, within=0.01), once[2], form="{:.0%}")
expect("4-gram table, share that is filled", about(5.25e-12, within=1e-14), seven.grams[3] / c**4)

# %% [markdown]
# The last column shows how to solve the storage problem: keep only the n-grams that occur, sorted, and search. The size
# grows with the length of the text and not with $c^K$.
#
# Nothing solves the sparsity problem. Take each word of the test with the K − 1 words before it. Either the n-gram is
# known from training; or its history is known, but this word never followed it (maximum likelihood says 0); or not even
# the history was ever seen (maximum likelihood says 0/0).
#
# How many of the test's word pairs are known, and how many of its 4-grams? (Order 1 has no history; its zeros are the
# test words that are new.)

# %%
matched = seven.matched(ids, first_test - 1)             # the longest known gram that ends at each word, up to 7
ends, before = matched[1:], matched[:-1]                 # at each test word, and at the word before it
seen = np.array([np.mean(ends >= order) for order in ORDERS])
zero = np.array([np.mean((ends < order) & (before >= order - 1)) for order in ORDERS])
nothing = 1 - seen - zero
table(("K", "n-gram seen", "probability 0", "0/0"), zip(ORDERS, seen, zero, nothing), "{:.1%}",
      title="The test words, with the K − 1 words before them")  # fmt: skip
expect("test words that are new", about(0.043, within=0.0005), zero[0], form="{:.2%}")
expect("test bigrams seen in training", about(0.70, within=0.005), seen[1], form="{:.1%}")
expect("test bigrams, probability 0", about(0.26, within=0.005), zero[1], form="{:.1%}")
expect("test 4-grams seen in training", about(1 / 6, within=0.01), seen[3], form="{:.1%}")
expect("histories of three test words that are new", about(0.627, within=0.0005), nothing[3], form="{:.2%}")

print("\nSo the whole test has probability 0. A bigram model, asked for its logarithm:")
refused(lambda: bigram.log_probabilities(ids, first_test))

show(lab_01.sparsity(list(ORDERS), c, len(train), seven.grams, {
    "n-gram seen in training": seen,
    "history seen, but not this word after it: p = 0": zero,
    "history never seen: 0/0": nothing,
}), "01_sparsity")  # fmt: skip

# %% [markdown]
# ## What to remember
#
# - Maximum likelihood for discrete variables is counting and dividing. It takes what it has not seen to be impossible.
# - When a history has never occurred, drop its farthest word first: the nearest one tells most.
# - A table of n-grams is empty almost everywhere. At order 4, 63 % of the histories of a new text are new, and nothing
#   that treats each history on its own can learn about them. Networks share what they learn between histories: labs 02,
#   03 and 06.
#
# Next: `01b_smoothing.py` gives every n-gram a probability, measures the models in nats per word, and has them write.
#
# Try: `shakespeare("clean")` for `shakespeare()`, a longer text without gaps. What happens to the sparsity table? In
# section 3, continue up to d = 10.
