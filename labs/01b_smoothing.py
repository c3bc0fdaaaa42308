# %% [markdown]
# # Lab 01b: smoothing
#
# - **Goals:** smooth n-grams in five ways, compute Kneser and Ney's probability of a word by hand, measure language
#   models in nats per word on new text, and judge what that number leaves out.
# - **Before it:** Lab 01. **Work:** about 5 hours.
# - **Hand in:** `add_delta`, `discounts`, `kneser_ney`, `copied`; an experiment from “Try”.
#
# Sources: USC CSCI 567 (spring 2024), lecture 8, n-gram models: slides without a printed address, which follow
# <https://web.stanford.edu/class/cs224n/>. UMass CS685 (fall 2020), neural language models, the part that reviews
# n-gram models: <https://people.cs.umass.edu/~miyyer/cs685/>. Kneser, Ney 1995,
# <https://doi.org/10.1109/ICASSP.1995.479394>; Chen, Goodman 1998,
# <http://nrs.harvard.edu/urn-3:HUL.InstRepos:25104739>; Brants et al. 2007, <https://aclanthology.org/D07-1090>.
#
# `01_counting_words.py` counted n-grams and divided. Counting alone gives 26 % of the words of a new text probability
# 0, given the word before them, and a single impossible word makes the whole text impossible.
#
# Letters: **c** different words; **K** the order of an n-gram model: the number of words in an n-gram, the predicted
# one included (`order` in the code; the sources' n); **w** a word, **h** its history, the K − 1 words before it; **δ**
# a pseudo-count (the library's `k`, of "add-k"); **D** the discount of Kneser-Ney; **$N_i$** how many n-grams occur i
# times.
#
# It runs in half a minute on one CPU core; with `--quick`, which tries fewer settings and writes less text, half of
# that.

# %%
from collections import Counter
from functools import cache, partial

from _common import quick_mode, refused, show, table, wrapped
from _drawing import lab_01
from _expect import about, above, at_least, at_most, expect
from mini_tf.decoding import generate, sample
from mini_tf.metrics import perplexity, uniform_cross_entropy
from mini_tf.models import NGramModel
from mini_tf.models.ngram import ORDERS, SMOOTHINGS, discounted
from mini_tf.text import Vocabulary, shakespeare, tokenize

import numpy as np

QUICK = quick_mode("Lab 01b: smoothed n-gram models, perplexity, writing")
WRITTEN = 200 if QUICK else 2000                         # the number of words that each model writes

# %% [markdown]
# ## The corpus
#
# 292,072 words of Shakespeare. We count in the first 90 %, and keep the last 10 % as a test. To choose settings, the
# last 5 % of those 90 % take the place of the test: that is the *validation* part.

# %%
tokens = tokenize(shakespeare())
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                          # (words,)
c = len(vocabulary)
first_test = int(0.9 * len(ids))
first_validation = int(0.95 * first_test)
train, train_words = ids[:first_test], tokens[:first_test]
print(f"{len(ids):,} words, {c:,} different; {len(train):,} to count, {len(ids) - first_test:,} to test")


@cache
def gram_counts(order):
    """{n-gram: count} of the training text; an n-gram is a tuple of `order` words."""
    return Counter(zip(*(train_words[i:] for i in range(order))))


def count(*words):
    """How often these words occur in the training text, in this order."""
    return gram_counts(len(words))[words]


# %% [markdown]
# ## 1. Smoothing
#
# Smoothing takes probability from what was seen and gives it to what was not. All the methods that we try are cases of
# one recursive formula, which starts from order 0, where all words are equally likely:
#
# $$
# p_K(w \mid h) = \text{share}(h\,w) + \text{rest}(h) \cdot p_{K-1}(w \mid h'), \qquad
# p_0(w) = \frac{1}{c}
# $$
#
# $h'$ is h without its first word, the farthest. $\text{share}(h\,w)$ is what an n-gram keeps for itself;
# $\text{rest}(h)$ is what the history passes down, for the shorter history to distribute. The methods differ only in
# how much is taken, and from which n-grams. An n-gram that never occurs has share 0; a history that never occurs has
# rest 1.
#
# | smoothing | $\text{share}(h\,w)$ | $\text{rest}(h)$ |
# | :--- | :--- | :--- |
# | maximum likelihood | $\text{count}(h\,w)/\text{count}(h)$ | 0 |
# | add-δ | $\text{count}(h\,w)/(\text{count}(h) + \delta c)$ | $\delta c/(\text{count}(h) + \delta c)$ |
# | stupid back-off | $\text{count}(h\,w)/(\text{count}(h)\,Z(h)) - \text{rest}\,p_{K-1}(w)$ | $\alpha\,Z(h')/Z(h)$ |
# | Kneser-Ney | $(\text{count}^*(h\,w) - D)/\text{count}^*(h)$ | $D \cdot \text{followers}(h)/\text{count}^*(h)$ |
# | modified Kneser-Ney | $(\text{count}^*(h\,w) - D_i)/\text{count}^*(h)$ | $\sum_i D_i\,N_i(h)/\text{count}^*(h)$ |
#
# Add-δ passes the rest straight to $p_0$, skipping the orders between. In stupid back-off α = 0.4, and Z makes the
# probabilities sum to one. $\text{followers}(h)$ is the number of different words after h. Modified Kneser-Ney has
# three discounts: $D_1$ for $\text{count}^*$ = 1, $D_2$ for 2, $D_3$ for 3 or more; $N_i(h)$ of the followers get
# $D_i$. $\text{count}^*$, a different kind of count, is defined below.
#
# ### Add-δ: simple and bad
#
# Pretend that each n-gram had been seen δ times more. The trouble is $\delta c$: with δ = 1, 34 real occurrences of
# "the Duke of" compete with 14,295 imaginary ones. Guess what becomes of York's probability, 9/34, a quarter.


# %%
def add_delta(count_hw, count_h, c, delta):
    """p(w | h) = (count(h w) + δ)/(count(h) + δ·c)"""
    return (count_hw + delta) / (count_h + delta * c)


prefix = ("the", "Duke", "of")
York = vocabulary.index["York"]
by_formula = {delta: add_delta(count(*prefix, "York"), count(*prefix), c, delta) for delta in (1, 0.1, 0.01, 0.001)}
by_model = {delta: np.exp(NGramModel(4, c, "add-k", k=delta).fit(train).logits([vocabulary.encode(prefix)])[0, York])
            for delta in by_formula}  # fmt: skip
table(("δ", "formula", "model"), {f"δ = {d}": (p, by_model[d]) for d, p in by_formula.items()}, "{:.4f}",
      title=f"1. Smoothing.  p(York | the Duke of) with add-δ; by counting {count(*prefix, 'York')}/{count(*prefix)}")
expect("p(York | the Duke of), δ = 1", about(0.0007, within=0.00005), by_formula[1])
expect("formula and model, largest difference", at_most(1e-12), max(abs(by_formula[d] - by_model[d]) for d in by_model))

# %% [markdown]
# Is there a good δ? Choose it on the validation words. The measure is the *cross-entropy*, the mean of $-\ln p$ over
# the words, in nats per word: 0 for perfect foresight, ln c = 9.568 for a model that takes all words to be equally
# likely.
#
# More history should help. **Expect** the opposite: the trigram model is *worse* than the bigram model for every δ, by
# more than one nat. Why? Add-δ treats all words unseen after a history alike: it never consults the shorter history.


# %%
def cross_entropy(model, start, stop):
    """The mean of −ln p(w | h) over the words start … stop − 1, each given the words before it; nats per word"""
    return -model.log_probabilities(ids[:stop], start).mean()


def on_validation(order, smoothing="kneser-ney", **options):
    model = NGramModel(order, c, smoothing, **options).fit(ids[:first_validation])
    return cross_entropy(model, first_validation, first_test)


DELTAS = (1, 0.1, 0.01, 0.001) if QUICK else (1, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
of_delta = {delta: [on_validation(order, "add-k", k=delta) for order in (1, 2, 3)] for delta in DELTAS}
table(("δ", *(f"order {order}" for order in (1, 2, 3))), of_delta, "{:.3f}",
      title="Add-δ on the validation words, nats per word")  # fmt: skip
best_delta = min(DELTAS, key=lambda delta: of_delta[delta][1])
expect("best δ of the bigram model", 0.01, best_delta)
expect("trigrams worse than bigrams by at least, nats", above(1),
       min(three - two for _, two, three in of_delta.values()))  # fmt: skip

# %% [markdown]
# ### Kneser and Ney's idea: count contexts, not occurrences
#
# Kneser and Ney asked what the shorter history should predict when the longer one knows nothing. Chen and Goodman's
# example is "Francisco": frequent in their newspaper text, but only ever after "San". As a guess after *another* word
# it is bad, however frequent it is. So at the lower orders, do not count how often a word occurs, but *after how many
# different words*: the company it keeps.
#
# $$
# \text{company}(w) = \lvert \{ v : v\,w \text{ occurs} \} \rvert, \qquad
# \text{continuation probability} = \frac{\text{company}(w)}{\sum_w \text{company}(w)}
# $$
#
# Shakespeare has his Franciscos: "Tower" comes after "the", VINCENTIO after DUKE. We compare each with the word of
# about the same count that keeps the most company. The counts of a pair agree to within 5 %, by construction.
# ("And" with a capital is a Francisco too: it begins lines, so before it there is a line break 99 times in 100.)

# %%
pairs = gram_counts(2)
occurs = Counter(train_words)
company = Counter(w for _, w in pairs)                   # how many different words stand before w


def most_company(word):
    """Of the words whose count is within 5 % (or 1) of this word's, the one with the most different words before it."""
    near = [w for w in occurs if abs(occurs[w] - occurs[word]) <= max(1, 0.05 * occurs[word])]
    return max(near, key=lambda w: company[w])


partner = {word: most_company(word) for word in ("VINCENTIO", "morrow", "Tower", "And")}
factors = [company[other] / company[word] for word, other in partner.items()]
table(("word", "occurs", "different words before it", "count/words", "continuation"),
      [(w, occurs[w], company[w], occurs[w] / len(train), company[w] / len(pairs))
       for pair in partner.items() for w in pair], ("{:,}", "{:,}", "{:.6f}", "{:.6f}"), title="Counts and company")
expect("factor between continuations, the smallest", about(9.4, within=0.05), min(factors))
expect("factor between continuations, the largest", about(119.6, within=0.05), max(factors))
expect("times in 100 that a line break precedes And", about(99, within=0.5), 100 * pairs["\n", "And"] / occurs["And"])

# %% [markdown]
# So Kneser-Ney counts in two ways: $\text{count}^*(h\,w)$ is how often $h\,w$ occurs at the top order, and how many
# different words stand before it at the lower ones. As always, $\text{count}^*(h) = \sum_w \text{count}^*(h\,w)$.
#
# ### How much does this idea gain?
#
# To see its effect alone, we write the same discounting with plain counts at all orders. In the library a smoothing
# method is a function from counts to share and rest, and new ones can be added to SMOOTHINGS: it takes three lines.
# Does company pay, with the same D?


# %%
def absolute_discounting(model, grams):
    """share = (count(hw) − D)/count(h),   rest = D·(words that follow h)/count(h):  kneser_ney with plain counts"""
    for here in grams:
        yield discounted(here, here.count, discounts=np.full(len(here.key), model.discount))


SMOOTHINGS["absolute-discounting"] = absolute_discounting
both = {order: [on_validation(order, s, discount=0.9) for s in ("absolute-discounting", "kneser-ney")]
        for order in (2, 3)}  # fmt: skip
table(("order", "plain counts below the top", "company (Kneser-Ney)"), both, "{:.3f}",
      title="Validation words, D = 0.9, nats per word")  # fmt: skip
for order, saved in ((2, 0.10), (3, 0.16)):
    expect(f"saved by company at order {order}", about(saved, within=0.005), both[order][0] - both[order][1])

# %% [markdown]
# ### How much to take: the discount D
#
# Why take the *same* D from every count? Split the training words into two halves. Take all bigrams that occur i times
# in the first half. How often do they occur in the second, on average? If counts were reliable, i times. Guess: by how
# much less?

# %%
half = first_test // 2
one, other = (Counter(zip(some_words, some_words[1:])) for some_words in (train_words[:half], train_words[half:]))
less_by = []
for i in (1, 2, 3, 4, 5, 6):
    with_count_i = [pair for pair, times in one.items() if times == i]
    mean = np.mean([other[pair] for pair in with_count_i])
    less_by.append((i, len(with_count_i), mean, i - mean))
table(("i", "bigrams", "mean count in the other half", "less by"), less_by, ("{:,}", "{:.2f}", "{:.2f}"),
      title="Bigrams that occur i times in one half of the training words")  # fmt: skip
expect("i = 1: less by", about(0.73, within=0.005), less_by[0][-1])
expect("i = 6: less by", about(1.39, within=0.005), less_by[-1][-1])
only_here = np.mean([other[pair] == 0 for pair, times in one.items() if times == 1])
expect("of those with i = 1, not in the other half", about(0.84, within=0.005), only_here, form="{:.1%}")

# %% [markdown]
# The last column is the discount that the text itself suggests. It grows slowly with i, which is why the modified form
# has three discounts; a single D is a compromise near 1. The validation words decide its exact value: count the first
# 95 % of the training words, measure on the last 5 %, for many D.
#
# **Expect** a valley that is flat near D = 0.9 and rises on both sides. (These losses lie above those of the test in
# section 2: 6.0 % of the validation words are new, and 4.3 % of the test's.)

# %%
DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 1.0) if QUICK else (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
valley = {order: [on_validation(order, discount=D) for D in DISCOUNTS] for order in (2, 3, 5)}
table(("D", *(f"order {order}" for order in valley)), zip(DISCOUNTS, *valley.values()), "{:.3f}",
      title="Kneser-Ney on the validation words, nats per word")  # fmt: skip
best_D = DISCOUNTS[int(np.argmin(valley[3]))]
of_D = dict(zip(DISCOUNTS, valley[3]))
new_here = ~np.isin(ids[first_validation:first_test], ids[:first_validation])
expect("best D of the trigram model", 0.9, best_D)
expect("D = 1 costs more, nats", about(0.05, within=0.005), of_D[1.0] - of_D[best_D])
expect("D = 0.5 costs more, nats", about(0.26, within=0.005), of_D[0.5] - of_D[best_D])
expect("validation words that are new", about(0.060, within=0.0005), new_here.mean(), form="{:.2%}")

# %% [markdown]
# The modified form has a formula for its three discounts. It uses the numbers of n-grams that occur once, twice, three
# and four times, $N_1 \dots N_4$. With $Y = N_1/(N_1 + 2 \cdot N_2)$:
#
# $$
# D_1 = 1 - 2 \cdot Y \cdot \frac{N_2}{N_1}, \qquad
# D_2 = 2 - 3 \cdot Y \cdot \frac{N_3}{N_2}, \qquad
# D_3 = 3 - 4 \cdot Y \cdot \frac{N_4}{N_3}
# $$
#
# The first should be near the best D above. Which way do the others go?


# %%
def discounts(N):
    """[D_1, D_2, D_3] of modified Kneser-Ney, D_i = i − (i + 1)·Y·N_{i+1}/N_i with Y = N_1/(N_1 + 2·N_2)

    N: {i: the number of n-grams that occur i times}, for i = 1 … 4 at least
    """
    Y = N[1] / (N[1] + 2 * N[2])
    return [i - (i + 1) * Y * N[i + 1] / N[i] for i in (1, 2, 3)]


N = Counter(gram_counts(3).values())
print("\nModified Kneser-Ney, trigrams:  " + "   ".join(f"N_{i} {N[i]:,}" for i in (1, 2, 3, 4)))
for i, (D, expected) in enumerate(zip(discounts(N), (0.88, 1.18, 1.45)), 1):
    expect(f"D_{i}", about(expected, within=0.005), D)

# %% [markdown]
# ### Kneser-Ney by hand
#
# Now we evaluate the formula by hand, for a trigram model and the history "Duke of". Three words show the three cases:
# York often followed it; France never did, though "of France" is known; Milan never occurs in training. Maximum
# likelihood gives the last two probability 0. At the top order, $\text{count}^*$ counts occurrences; below, it counts
# company: $\text{count}^*(\text{of York})$ is the number of different words that stand before "of York". Everything
# comes from Python's Counter; the model is asked only at the end.
#
# $$
# \begin{aligned}
# p_0 &= \frac{1}{c} \\
# p_1 &= \frac{\text{count}^*(w) - D}{\text{count}^*()} +
#        \frac{D \cdot \text{followers}()}{\text{count}^*()} \cdot p_0 \\
# p_2 &= \frac{\text{count}^*(\text{of } w) - D}{\text{count}^*(\text{of})} +
#        \frac{D \cdot \text{followers}(\text{of})}{\text{count}^*(\text{of})} \cdot p_1 \\
# p_3 &= \frac{\text{count}^*(\text{Duke of } w) - D}{\text{count}^*(\text{Duke of})} +
#        \frac{D \cdot \text{followers}(\text{Duke of})}{\text{count}^*(\text{Duke of})} \cdot p_2
# \end{aligned}
# $$
#
# where the first term is 0 if $h\,w$ never occurs.
#
# **Expect** agreement with the model to the last digits.


# %%
def kneser_ney(word, tables, D, c):
    """[p_0, p_1, …, p_K] of a word by interpolated Kneser-Ney

    p_0 = 1/c,   p_K = (count*(h w) − D)/count*(h) + D·followers(h)/count*(h)·p_{K−1}, the first term 0 without h w
    tables: for each order from 1 up, {w: count*(h w)} of the words that follow its history
    """
    p = [1 / c]
    for counts in tables:
        total = sum(counts.values())                     # count*(h)
        p.append(max(counts.get(word, 0) - D, 0) / total + D * len(counts) / total * p[-1])
    return p


def followers(history, top):
    """{w: count*(h w)} for all words w after a history, a tuple: occurrences at the top order, company below."""
    order = len(history) + 1
    if top:
        return Counter({gram[-1]: times for gram, times in gram_counts(order).items() if gram[:-1] == history})
    return Counter(gram[-1] for gram in gram_counts(order + 1) if gram[1:-1] == history)


# %%
HISTORY, D = ("Duke", "of"), best_D
tables = [followers((), False), followers(("of",), False), followers(HISTORY, True)]
trigram = NGramModel(3, c, discount=D).fit(train)
worked = {word: kneser_ney(word, tables, D, c) for word in ("York", "France", "Milan")}
of_model = np.exp(trigram.logits([vocabulary.encode(HISTORY)])[0])                   # (c,)
table(("", "count*(h w)", "followers(h)", "count*(h)", "share", "rest", "p"),
      [(f"p_{order} {word}", t[word], len(t), t.total(), max(t[word] - D, 0) / t.total(), D * len(t) / t.total(), p)
       for word, steps in worked.items() for order, (t, p) in enumerate(zip(tables, steps[1:]), 1)],
      ("{:,}", "{:,}", "{:,}", "{:.3e}", "{:.4f}", "{:.3e}"),
      title=f"By hand: p(w | Duke of), order 3, D = {D}, from p_0 = 1/{c:,} = {1 / c:.3e}; share + rest · p below = p")
off = max(abs(of_model[vocabulary.index[word]] / steps[-1] - 1) for word, steps in worked.items())
expect("the model's over ours, − 1, the largest", at_most(1e-12), off)

# %% [markdown]
# York gets nearly all of its probability from its own share at the top order. France has a share after "of", and 15 %
# of that, the rest of "Duke of", is passed down: improbable, but no longer impossible. Milan has only what is left of
# $p_0$, and each order makes that smaller: 0.13 · 0.27 · 0.15 of 1/c. It has the same tiny probability as the other 799
# words that training never saw.

# %%
own = (tables[2]["York"] - best_D) / tables[2].total()
print()
expect("York: from its own share at the top", about(0.997, within=0.0005), own / worked["York"][3], form="{:.2%}")
expect("France: share passed on from order 2", about(0.152, within=0.0005), worked["France"][3] / worked["France"][2])
expect("Milan: of 1/c, that is 0.13·0.27·0.15", about(0.00534, within=5e-6), worked["Milan"][3] * c)
expect("words of the vocabulary, never in training", 800, c - len(occurs))

cases = "occurred after “Duke of”", "occurred after “of” only", "never occurred"
steps = {(word, case): [(p[0], False)] + [(step, t[word] > 0) for step, t in zip(p[1:], tables)]
         for (word, p), case in zip(worked.items(), cases)}  # fmt: skip
show(lab_01.kneser_ney(occurs, company, partner, steps, best_D), "01_kneser_ney")

# %% [markdown]
# ## 2. Cross-entropy and perplexity on the test
#
# $$
# \text{cross-entropy} = \text{the mean of } -\ln p(w_t \mid h_t), \text{ in nats per word}, \qquad
# \text{perplexity} = e^{\text{cross-entropy}}
# $$
#
# The perplexity is the number of equally likely words that would be as hard to guess: c = 14,295 for the uniform guess,
# 1 for perfect foresight. All choices have been made; now each model counts all training words and is measured once on
# the test.
#
# Beyond order 3, longer histories no longer help: they hardly ever occur again (`01_counting_words.py`, section 4).
# Two methods get *worse* with every word of history beyond order 2: guess which. (Stupid back-off, because it trusts
# what it saw once; and add-δ, because it spreads nearly everything evenly over all c words.)
# %%
settings = {"add-k": {"k": best_delta}, "stupid-backoff": {}, "absolute-discounting": {"discount": best_D},
            "kneser-ney": {"discount": best_D}, "modified-kneser-ney": {"discount": best_D}}  # fmt: skip
losses = {}
for smoothing, options in settings.items():
    losses[smoothing] = [
        cross_entropy(NGramModel(order, c, smoothing, **options).fit(train), first_test, len(ids)) for order in ORDERS
    ]

uniform = uniform_cross_entropy(c)
table(("order", *ORDERS), losses, "{:.3f}", title="2. Test words, nats per word")
table(None, {name: map(perplexity, row) for name, row in losses.items()}, "{:,.0f}",
      title="perplexity, equally likely words")  # fmt: skip

# %%
for order, loss in ((1, 6.06), (2, 5.17), (3, 5.05), (5, 5.07)):
    expect(f"Kneser-Ney, order {order}", about(loss, within=0.006), losses["kneser-ney"][order - 1])
least = min(map(min, losses.values()))
expect("modified Kneser-Ney, order 3", about(5.034, within=0.002), losses["modified-kneser-ney"][2])
expect("modified, order 3: above the least of all by", 0, losses["modified-kneser-ney"][2] - least)
for name in ("add-k", "stupid-backoff"):
    expect(f"{name}: least rise per order, nats", above(0), np.diff(losses[name][1:]).min())

# %%
names = (f"add-δ, δ = {best_delta}", "stupid back-off, α = 0.4", f"plain counts, D = {best_D}",
         f"Kneser-Ney, D = {best_D}", "modified Kneser-Ney")  # fmt: skip
by_name = dict(zip(names, losses.values()))
show(lab_01.smoothing(DISCOUNTS, valley, best_D, list(ORDERS), by_name, uniform), "01_smoothing")

# %% [markdown]
# ### What the new words cost
# that among all c words, though only the 800 that did not occur in training need it. Guess what share of the loss they
# cause.
#
# How much of that is unavoidable? A model that knew in advance what share of the test words is new, and spread that
# probability evenly over the words that training does not have, would pay $-\ln(0.043/800) = 9.83$ nats for each, and
# 0.12 less on average.
#
# A model that knows only which 800 words they are, and not how often they occur, gets most of that: give 99 % of $p_0$
# to them. A network of this project that expects new words is given the same list of 800, and has to be compared with
# this (`ladder.md`).

# %%
occurs_not = np.bincount(train, minlength=c) == 0        # (c,)
p_0_of_new_words = 0.99 * occurs_not / occurs_not.sum() + 0.01 / c
best_model = NGramModel(3, c, "modified-kneser-ney", discount=best_D).fit(train)
nats = -best_model.log_probabilities(ids, first_test)
new = occurs_not[ids[first_test:]]
table(("", "of the words", "nats each", "adds to the mean", "of the loss"),
      [(name, words.mean(), nats[words].mean(), nats[words].sum() / len(nats), nats[words].sum() / nats.sum())
       for name, words in (("new in the test", new), ("seen in training", ~new), ("all", new | ~new))],
      ("{:.1%}", "{:.3f}", "{:.3f}", "{:.1%}"), title="Modified Kneser-Ney, order 3, by word")  # fmt: skip
fair = -np.log(new.mean() / occurs_not.sum())
saved = new.mean() * (nats[new].mean() - fair) + (1 - new.mean()) * np.log(1 - new.mean())   # minus what others pay
expect("new words, share of the test", about(0.043, within=0.0005), new.mean(), form="{:.2%}")
expect("new words, nats each", about(13.66, within=0.005), nats[new].mean())
expect("new words, share of the loss", about(0.117, within=0.001), nats[new].sum() / nats.sum(), form="{:.1%}")
expect("with foresight: a new word, nats", about(9.83, within=0.005), fair)
expect("with foresight: the mean loss is lower by", about(0.123, within=0.001), saved)
for order, loss in ((3, 4.953), (5, 4.960)):
    informed = NGramModel(order, c, "modified-kneser-ney", p_0=p_0_of_new_words).fit(train)
    expect(f"given the new words, order {order}", about(loss, within=0.001),
           cross_entropy(informed, first_test, len(ids)))  # fmt: skip
of_unseen = [c * np.exp(NGramModel(1, c, s, **settings[s]).fit(train).logits([[]])[0, vocabulary.index["Milan"]])
             for s in ("stupid-backoff", "kneser-ney")]  # fmt: skip
expect("order 1, stupid back-off: p of an unseen word, 1/c", about(0.39, within=0.005), of_unseen[0])
expect("order 1, Kneser-Ney: the same", about(0.046, within=0.0005), of_unseen[1])

# %% [markdown]
# <details><summary>New words also explain why stupid back-off (triangles in the figure) beats Kneser-Ney at order
# 1.</summary>
#
# An unseen word gets 0.39/c from it, and 0.046/c from the discount of order 1. On average over all words of the test
# that saves 0.09 nats, of which the known words lose 0.02 again: 0.07 remain.
#
# </details>

# %% [markdown]
# ## 3. Writing
#
# To write, draw a word from $p(w \mid h)$, append it, and draw again. All models start after the same line, "KING
# RICHARD III:". First without smoothing, as in the lectures.
# Which words fit together at order 2, and what is still incoherent at order 3? **Expect** order 7 to write real
# Shakespeare: 99 of 100 six-word histories of the training text have a single continuation, the one in the text.

# %%
START = vocabulary.encode(tokenize("\nKING RICHARD III:\n"))
WRITING = (1, 2, 3, 5, 7)


def write(order, smoothing):
    model = NGramModel(order, c, smoothing, discount=best_D).fit(train)
    return np.array(list(generate(model, START, WRITTEN, partial(sample, rng=np.random.default_rng(order)))))


def one_line(ids):
    return vocabulary.decode(ids).strip().replace("\n\n", " // ").replace("\n", " / ")


def print_samples(texts, words=40):
    for order, text in texts.items():
        wrapped(one_line(text[:words]), f"  {order}  ")


print("\n3. Writing after 'KING RICHARD III:', maximum likelihood, orders 1, 2, 3, 5 and 7")
print("(/ is a line break, // an empty line)")
written = {"maximum likelihood": {order: write(order, "maximum-likelihood") for order in WRITING}}
print_samples(written["maximum likelihood"])
continued = Counter(gram[:-1] for gram in gram_counts(7))
single = np.mean([different == 1 for different in continued.values()])
expect("six-word histories with a single continuation", about(0.99, within=0.005), single, form="{:.1%}")

# %% [markdown]
# ### Copying the training text
#
# Is it fluent, or copied? For each written word, find the longest passage that ends with it and occurs word for word in
# the training text. How long are the passages of order 7? And those of the first 2,000 words of the test text, which
# are not copied? (In the figure their line drops out of the plot at new words, whose passage has length 0.)


# %%
def copied(text, source):
    """For each word of the text: the length of the longest passage that ends with it and also occurs in the source

    text (words,), source (words,): arrays of ids  →  lengths (words,), 0 for a word that the source does not have
    """
    run, lengths = np.zeros(len(source) + 1, dtype=np.int32), []
    for word in text:
        run[1:] = (run[:-1] + 1) * (source == word)      # matching words up to each place of the source
        lengths.append(run.max())
    return np.array(lengths)


# %%
written["Kneser-Ney"] = {order: write(order, "kneser-ney") for order in WRITING}
lengths = {s: {order: copied(text, train) for order, text in texts.items()} for s, texts in written.items()}
of_the_test = copied(ids[first_test : first_test + WRITTEN], train)
table(("order", "maximum likelihood: mean", "longest", "Kneser-Ney: mean", "longest"),
      [(order, *(measure(of[order]) for of in lengths.values() for measure in (np.mean, np.max))) for order in WRITING]
      + [("test text", of_the_test.mean(), of_the_test.max())], ("{:.1f}", "{}") * 2,
      title=f"Reciting: passages of the training text in {WRITTEN:,} written words, in words")  # fmt: skip

recited = lengths["maximum likelihood"]
means = [recited[order].mean() for order in WRITING]
expect("order 1, mean", about(1.43, within=0.08), means[0], quick=about(1.4, within=0.3))
expect("least that a higher order adds to the mean", above(0), np.diff(means).min(), quick=None)
expect("order 7, longest", at_least(100), recited[7].max(), quick=at_least(30))
expect("test text, mean", about(2.6, within=0.05), of_the_test.mean(), quick=about(2.6, within=0.3))
expect("test text, longest", 9, of_the_test.max(), quick=at_most(9))

end = int(recited[7].argmax())
passage = written["maximum likelihood"][7][end + 1 - recited[7][end] : end + 1]
print(f"\nThe longest passage that order 7 copied, {len(passage)} words, begins and ends")
wrapped(f"{one_line(passage[:20])} … {one_line(passage[-12:])}")

show(lab_01.reciting(lengths, of_the_test), "01_reciting")

# %% [markdown]
# ### The better model writes worse
#
# The right half of that table is Kneser-Ney, the model with the good cross-entropy. It does not copy. How does it
# write? Compare its order 3 with that of maximum likelihood, which never writes a word pair that is not in the training
# text.
# What share of Kneser-Ney's word pairs is new? (In Shakespeare's test text 30 % are. But his make sense.)

# %%
known_pairs = np.unique(train[:-1] * c + train[1:])


def new_pairs(text):
    """The share of the pairs of neighbouring words that are not in the training text"""
    return 1 - np.isin(text[:-1] * c + text[1:], known_pairs).mean()


print("\nWriting after 'KING RICHARD III:', Kneser-Ney")
print_samples(written["Kneser-Ney"], words=30)
expect("new pairs, maximum likelihood, order 3", 0, new_pairs(written["maximum likelihood"][3]))
expect("new pairs, Kneser-Ney, order 3", about(0.24, within=0.03), new_pairs(written["Kneser-Ney"][3]), form="{:.1%}",
       quick=about(0.19, within=0.06))  # fmt: skip
expect("new pairs, the test text", about(0.30, within=0.005), new_pairs(ids[first_test - 1 :]), form="{:.1%}")

# %% [markdown]
# Where does the nonsense come from? At each step the trigram model gives part of the probability to words that never
# followed the preceding word: 24 %, the mean over 100 histories of the test. In 71 of these 100 cases the word that
# really comes next had also followed the preceding word in training: each of these words loses 0.18 nats.

# %%
elsewhere, is_old = [], []
for t in range(first_test, first_test + 2000, 20):
    p = np.exp(trigram.logits([ids[t - 2 : t]])[0])                        # (c,)
    came_before = np.zeros(c, dtype=bool)
    came_before[train[1:][train[:-1] == ids[t - 1]]] = True
    elsewhere.append(p[~came_before].sum())
    is_old.append(came_before[ids[t]])
print("\nProbability of words that never came after the last word")
expect("mean of 100 test histories", about(0.24, within=0.005), np.mean(elsewhere), form="{:.1%}")
expect("test words that had followed it in training", 71, sum(is_old))
expect("what it costs these, nats each", about(0.18, within=0.005), -np.log1p(-np.array(elsewhere)[is_old]).mean())

# %% [markdown]
# For cross-entropy this is a bargain: it costs 0.18 nats, and no pair is impossible. For sampling it is not: together
# these tiny probabilities are a quarter of the whole, spread over 14,000 words, and every fourth word is one of them,
# drawn with little regard to the word before. So the two measures disagree. Maximum likelihood is worthless as a model
# of new text (its loss is infinite) and writes well, because it copies. `sample(…, top_k=…)` or a low temperature, as
# in lab 06, cuts off these tiny probabilities.
#
# ## 4. Invalid settings
#
# An order counts the words of an n-gram, the predicted one included: a model's order is at least 1, and the library
# stops at 7. The error messages say what to do.

# %%
print("\n4. Invalid settings")
for attempt in (
    lambda: NGramModel(0, c),
    lambda: NGramModel(3, c, k=0),
    lambda: NGramModel(3, c, discount=0),
    lambda: NGramModel(3, 10).fit(train),
    lambda: NGramModel(3, c).log_probabilities(ids),
):
    refused(attempt)

# %% [markdown]
# ## What to remember
#
# - Taking one of three discounts from each count and backing off to the shorter history, by company and not by count,
#   is the best of the five: 5.03 nats per word. A network on this corpus has to get below that to have learned more
#   than counting; below 4.95, if it is told which words are new.
# - Low cross-entropy and good writing are different things.
#
# Try: `shakespeare("clean")` for `shakespeare()`, a longer text without gaps. The best loss rises by a third of a nat:
# find half of the reason in the table of new words. Try δ between 0.001 and 0.03 at order 3. Have order 3 write with
# `partial(sample, rng=…, top_k=20)`.
