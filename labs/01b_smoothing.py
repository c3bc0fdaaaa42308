# %% [markdown]
# # Lab 01b: smoothing
#
# Sources: USC CSCI 567 (Spring 2024), lecture 8, n-gram models; UMass CS685 (2020), neural language models, the part
# that looks back at n-gram models. Kneser-Ney: Kneser, Ney 1995; Chen, Goodman 1998.
#
# `01_counting_words.py` counted n-grams and divided. Counting alone calls three in ten word pairs of a new text
# impossible, and a single impossible word makes the whole text impossible. You will
#
# - repair that in five ways, which are one formula, and follow the best one number by number,
# - measure all of them in nats per word: this is the bar that every network of the later labs has to clear,
# - let the models write, and find out what nats do not measure.
#
# Letters: **c** different words, **n** the order, the number of words in an n-gram, the predicted one included; **w** a
# word, **h** its history, the n − 1 words before it; **D** the discount of Kneser-Ney.
#
# It takes about a quarter of a minute on one quiet CPU core; with `--quick`, which tries fewer settings and writes less
# text, ten seconds.

# %%
import textwrap
import time
from collections import Counter
from functools import cache, partial

from _common import quick_mode, refused, show
from _drawing import lab_01
from mini_tf.decoding import generate, sample
from mini_tf.metrics import perplexity, uniform_cross_entropy
from mini_tf.models import NGramModel
from mini_tf.models.ngram import ORDERS, SMOOTHINGS, shared_out
from mini_tf.text import Vocabulary, shakespeare, tokenize

import numpy as np

QUICK = quick_mode("Lab 01b: smoothed n-gram models, perplexity, writing")
WRITTEN = 200 if QUICK else 2000                         # the number of words that each model writes

# %% [markdown]
# ## The corpus
#
# 292,072 words of Shakespeare. We count in the first 90 %, and keep the last 10 % as a test. To choose settings, the
# last 5 % of those 90 % stand in for the test: that is the *validation* part.

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
def gram_counts(n):
    """{n-gram: count} of the training text; an n-gram is a tuple of n words."""
    return Counter(zip(*(train_words[i:] for i in range(n))))


def count(*words):
    """How often these words stand in the training text, in this order."""
    return gram_counts(len(words))[words]


# %% [markdown]
# ## 1. Smoothing
#
# Smoothing takes probability from what was seen and gives it to what was not. All the ways of doing so that we try are
# one formula, which goes up from order 0, where all words are equally likely:
#
# $$
# p_k(w \mid h) = \text{share}(h\,w) + \text{rest}(h) \cdot p_{k-1}(w \mid h'), \qquad
# p_0(w) = \frac{1}{c}
# $$
#
# $h'$ is h without its first word, the farthest. $\text{share}(h\,w)$ is what an n-gram keeps for itself;
# $\text{rest}(h)$ is what the history hands down, for the shorter one to distribute. They differ only in how much is
# taken, and from which n-grams.
#
# | smoothing | $\text{share}(h\,w)$ | $\text{rest}(h)$ |
# | :--- | :--- | :--- |
# | maximum likelihood | $\text{count}(h\,w)/\text{count}(h)$ | 0 |
# | add-k | $\text{count}(h\,w)/(\text{count}(h) + k \cdot c)$ | $k \cdot c/(\text{count}(h) + k \cdot c)$, for $1/c$ |
# | stupid back-off | $\text{count}(h\,w)/(\text{count}(h)\,Z(h)) - \text{rest}\,p_{k-1}(w)$ | $\alpha\,Z(h')/Z(h)$ |
# | Kneser-Ney | $(n(h\,w) - D)/n(h)$, n a count: see below | $D \cdot (\text{words that follow } h)/n(h)$ |
# | modified Kneser-Ney | the same with $D_1$, $D_2$, $D_3$ for n = 1, 2, and 3 or more | the same |
#
# In stupid back-off α = 0.4, and Z makes the sum 1.
#
# ### Add-k: simple and bad
#
# Pretend that each n-gram had been seen k times more: $p = (\text{count}(h\,w) + k)/(\text{count}(h) + k \cdot c)$. The
# trouble is $k \cdot c$. With k = 1, 34 real occurrences of "the Duke of" stand against 14,295 pretended ones.
# **Expect** the probability of York to fall from a quarter to less than a thousandth.

# %%
prefix = ("the", "Duke", "of")
York = vocabulary.index["York"]
print("\n1. Smoothing.  p(York | the Duke of) with add-k; maximum likelihood says "
      f"{count(*prefix, 'York')}/{count(*prefix)} = {count(*prefix, 'York') / count(*prefix):.4f}")
for k in (1, 0.1, 0.01, 0.001):
    formula = (count(*prefix, "York") + k) / (count(*prefix) + k * c)
    model = NGramModel(4, c, "add-k", k=k).fit(train)
    print(f"  k = {k:<6} formula {formula:.4f}   model "
          f"{np.exp(model.logits([vocabulary.encode(prefix)])[0, York]):.4f}")

# %% [markdown]
# Is there a good k? Choose it on the validation words. The measure is the *cross-entropy*, the mean of $-\ln p$ over
# the words, in nats per word: 0 for a prophet, ln c = 9.568 for a model that thinks all words equally likely.
#
# **Expect** the best k to be small, and the trigram model to be *worse* than the bigram model for every k. More history
# should help. It cannot, because add-k treats all unseen words after a history alike: it never asks the shorter
# history.


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
# Kneser and Ney asked what the shorter history should say when the longer one knows nothing. Chen and Goodman's example
# is "Francisco": frequent in their newspaper, but only ever after "San". As a guess after *another* word it is bad,
# however frequent it is. So at the lower orders do not count how often a word occurs, but *after how many different
# words*: the company it keeps.
#
# $$
# n(w) = \lvert \{ v : v\,w \text{ occurs} \} \rvert, \qquad
# \text{continuation probability} = \frac{n(w)}{\sum_w n(w)}
# $$
#
# Shakespeare has his Franciscos: "Tower" comes after "the", VINCENTIO after DUKE. Beside each we put the word of about
# the same count that keeps the most company. **Expect** the counts of a pair to agree, and the continuation
# probabilities to differ by a factor of ten to more than a hundred.

# %%
pairs = gram_counts(2)
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
# "And" with a capital is a Francisco too: it begins lines, so what comes before it is almost always the line break.
#
# ### What is this idea worth?
#
# To see its effect alone, write the same discounting with plain counts at all orders. In the library a smoothing is a
# function from counts to share and rest, and the table SMOOTHINGS is open: it takes three lines. **Expect** Kneser-Ney
# to win with the same D.


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
# in the first half. How often do they occur in the second, on average? If counts could be trusted, r times.
#
# **Expect** fewer, and the difference to be nearly the same whatever r is: about 1 (0.7 to 1.4). Most of those with
# r = 1 are accidents of their half.

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
# has three; one D for all is a compromise near 1. The validation words decide its exact value: count the first 95 % of
# the training words, measure on the last 5 %, for many D.
#
# **Expect** a flat valley near D = 0.9, and a steep wall to its left. (These losses lie above those of the test in
# section 2, because the validation part is a harder text: it ends Measure for Measure and begins The Taming of the
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
# The modified form has a formula for its three discounts. It uses the numbers of n-grams that occur once, twice, three
# and four times, $N_1 \dots N_4$. With $Y = N_1/(N_1 + 2 \cdot N_2)$:
#
# $$
# D_1 = 1 - 2 \cdot Y \cdot \frac{N_2}{N_1}, \qquad
# D_2 = 2 - 3 \cdot Y \cdot \frac{N_3}{N_2}, \qquad
# D_3 = 3 - 4 \cdot Y \cdot \frac{N_4}{N_3}
# $$
#
# For trigrams, **expect** a $D_1$ near the best D above, and larger discounts for larger counts.

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
# last two nothing. At the top order n counts occurrences; below, it counts company: $n(\text{of York})$ is the number
# of different words that stand before "of York". Everything comes from Python's Counter; the model is asked only at the
# end.
#
# $$
# \begin{aligned}
# p_0 &= \frac{1}{c} \\
# p_1 &= \frac{n(w) - D}{n()} + \frac{D \cdot \text{followers}()}{n()} \cdot p_0 \\
# p_2 &= \frac{n(\text{of } w) - D}{n(\text{of})} +
#        \frac{D \cdot \text{followers}(\text{of})}{n(\text{of})} \cdot p_1 \\
# p_3 &= \frac{n(\text{Duke of } w) - D}{n(\text{Duke of})} +
#        \frac{D \cdot \text{followers}(\text{Duke of})}{n(\text{Duke of})} \cdot p_2
# \end{aligned}
# $$
#
# where $\text{followers}(h)$ is the number of different words after h, and the first term is 0 if $h\,w$ never occurs.
#
# **Expect** agreement with the model in all printed digits.


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
    p = np.exp(trigram.logits([vocabulary.encode(HISTORY)])[0, vocabulary.index[word]])
    print(f"  by hand {worked[word][-1][0]:.6e}   the model {p:.6e}")
    assert np.isclose(worked[word][-1][0], p, rtol=1e-9)

# %% [markdown]
# York has nearly all of its probability from its own share at the top. France has a share after "of", and 15 % of that,
# the rest of "Duke of", comes through: improbable, but no longer impossible. Milan has only the crumbs of $p_0$, and
# each order makes them smaller: 0.13 · 0.27 · 0.15 of 1/c. It has the same tiny probability as the other 799 words that
# training never saw, and some of them do come: section 2.

# %%
fates = "came after “Duke of”", "came after “of” only", "never came at all"
steps = {(word, fate): row for (word, row), fate in zip(worked.items(), fates)}
show(lab_01.kneser_ney(occurs, company, sociable, steps, best_D), "01_kneser_ney")

# %% [markdown]
# ## 2. Cross-entropy and perplexity on the test
#
# $$
# H = -\frac{1}{N} \sum_t \ln p(w_t \mid h_t) \text{ nats per word}, \qquad
# \text{perplexity} = e^H
# $$
#
# The perplexity is the number of equally likely words that would be as hard to guess: c = 14,295 for the uniform
# guess, 1 for the prophet. All choices are made; now each model counts all training words and is measured once on the
# test.
#
# **Expect** ln 14,295 = 9.568 for the uniform guess; Kneser-Ney with D = 0.9 near 6.06, 5.17, 5.05 and 5.07 at orders
# 1, 2, 3 and 5; modified Kneser-Ney near 5.034 at order 3. Beyond order 3 longer histories no longer help: they hardly
# ever occur again (`01_counting_words.py`, section 4). And two get *worse* with longer histories: stupid back-off,
# because it trusts what it saw once, and add-k, because it spreads nearly everything evenly over all c words.

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
print(f"\n2. Test words, nats per word; uniform: {uniform:.3f}")
print(f"  {'order':<22}" + "".join(f"{n:>8}" for n in ORDERS))
for smoothing, row in losses.items():
    print(f"  {smoothing:<22}" + "".join(f"{loss:>8.3f}" for loss in row))
print("  perplexity, equally likely words")
for smoothing, row in losses.items():
    print(f"  {smoothing:<22}" + "".join(f"{perplexity(loss):>8,.0f}" for loss in row))
print(f"  {len(settings) * len(ORDERS)} models counted and measured in {seconds:.0f} s")

# %%
names = (f"add-k, k = {best_k}", "stupid back-off, α = 0.4", f"plain counts, D = {best_D}", f"Kneser-Ney, D = {best_D}",
         "modified Kneser-Ney")  # fmt: skip
by_name = dict(zip(names, losses.values()))
show(lab_01.smoothing(DISCOUNTS, valley, best_D, list(ORDERS), by_name, uniform), "01_smoothing")

# %% [markdown]
# ### What the new words cost
#
# 4.3 % of the test words never occur in training. Kneser-Ney gives them what trickles down to order 0, and divides that
# among all c words, though only the 800 that did not occur in training need it. **Expect** new words to cost well over
# 9.568 nats each, more than a uniform guess, and a tenth of the whole loss.
#
# How much of that is unavoidable? A model that knew beforehand what share of the test words is new, and spread that
# probability evenly over the words that training does not have, would pay $-\ln(0.043/800)$ for each: about 9.8 nats.

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
# This also explains why stupid back-off, the orange line, beats Kneser-Ney at order 1: its $\alpha/c$ for an unseen
# word is more generous than the discount of order 1.
#
# ## 3. Writing
#
# To write, draw a word from $p(w \mid h)$, append it, and draw again. All models start after the same line, "KING
# RICHARD III:". First without smoothing, as in the lectures.
#
# **Expect** a bag of words from order 1, pairs that fit from order 2, sentences that lose their thread from order 3,
# and from order 7 real Shakespeare. Too real: most of its six-word histories have a single continuation, the one in the
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


print("\n3. Writing after 'KING RICHARD III:', maximum likelihood, orders 1, 2, 3, 5 and 7")
print("(/ is a line break, // an empty line)")
written = {"maximum likelihood": {n: write(n, "maximum-likelihood") for n in WRITING}}
print_samples(written["maximum likelihood"])

# %% [markdown]
# ### Reciting
#
# Fluent or copied? For each written word, find the longest passage that ends with it and stands word for word in the
# training text. For comparison, do the same with Shakespeare's own test text.
#
# **Expect** one or two words from order 1, more with every order, and from order 7 passages of a hundred words. The
# test text, which surely did not copy, shares two or three words in a row with the training text on average, and seldom
# more than eight or nine. (In the figure its line leaves the picture at new words, whose passage has length 0.)

# %%
def copied(text, source):
    """For each word of the text: the length of the longest passage of the source that ends with the words up to it."""
    run, lengths = np.zeros(len(source) + 1, dtype=np.int32), []
    for word in text:
        run[1:] = (run[:-1] + 1) * (source == word)      # at each place of the source: words alike up to it
        lengths.append(run.max())
    return np.array(lengths)


written["Kneser-Ney"] = {n: write(n, "kneser-ney") for n in WRITING}
lengths = {s: {n: copied(text, train) for n, text in texts.items()} for s, texts in written.items()}
of_the_test = copied(ids[first_test : first_test + WRITTEN], train)
print(f"\nReciting: passages of the training text in {WRITTEN:,} written words")
print(f"  {'order':<12}{'maximum likelihood: mean':>26}{'longest':>9}{'Kneser-Ney: mean':>22}{'longest':>9}   words")
for n in WRITING:
    ml, kn = lengths["maximum likelihood"][n], lengths["Kneser-Ney"][n]
    print(f"  {n:<12}{ml.mean():>26.1f}{ml.max():>9}{kn.mean():>22.1f}{kn.max():>9}")
print(f"  {'test text':<12}{of_the_test.mean():>26.1f}{of_the_test.max():>9}")

end = int(lengths["maximum likelihood"][7].argmax())
passage = written["maximum likelihood"][7][end + 1 - lengths["maximum likelihood"][7][end] : end + 1]
print(f"\nThe longest passage that order 7 copied, {len(passage)} words, begins and ends")
print(textwrap.fill(f"{one_line(passage[:20])} … {one_line(passage[-12:])}", 96, initial_indent="  ",
                    subsequent_indent="  "))

show(lab_01.reciting(lengths, of_the_test), "01_reciting")

# %% [markdown]
# ### The better model writes worse
#
# The right half of that table is Kneser-Ney, the model with the good cross-entropy. It does not recite. How does it
# write? **Expect** a disappointment.

# %%
print("\nWriting after 'KING RICHARD III:', Kneser-Ney")
print_samples(written["Kneser-Ney"], words=30)

# %% [markdown]
# Where does the nonsense come from? At each step the trigram model leaves a part of the probability to words that
# never came after the preceding word. **Expect** about a quarter: so every fourth word or so is drawn without regard to
# what was just written.

# %%
elsewhere = []
for t in range(first_test, first_test + 2000, 20):
    p = np.exp(trigram.logits([ids[t - 2 : t]])[0])                        # (c,)
    came_before = np.zeros(c, dtype=bool)
    came_before[train[1:][train[:-1] == ids[t - 1]]] = True
    elsewhere.append(p[~came_before].sum())
print(f"\nProbability of words that never came after the last word, mean of {len(elsewhere)} test histories: "
      f"{np.mean(elsewhere):.0%}")

# %% [markdown]
# Cross-entropy punishes a model when the word that comes is one it thought impossible; a little probability on each of
# 14,000 wrong words costs it hardly anything. A sampler pays for it: together those crumbs are a good part of the
# whole, and every few words it picks one. So the two measures disagree. Maximum likelihood is worthless as a model of
# new text (its loss is infinite) and writes well, because it copies. `sample(…, top_k=…)` or a low temperature, Lab 06,
# cut the crumbs off.
#
# ## 4. What cannot work
#
# An order counts the words of an n-gram, the predicted one included: there is no order 0, and the library stops at 7.
# **Expect** messages that say what to do.

# %%
print("\n4. What cannot work")
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
# - Taking a fixed part from each count and asking the shorter history, by company and not by count, is hard to beat:
#   5.03 nats per word. A network on this corpus has to come below that before it has learned more than counting.
# - Low cross-entropy and good writing are different things.
#
# Try: `shakespeare("clean")` for `shakespeare()`, a longer text without gaps. The losses rise: find half of the reason
# in the table of new words. Try `k` between 0.001 and 0.03 at order 3. Let order 3 write with `partial(sample, rng=…,
# top_k=20)`.
