# %% [markdown]
# # Lab 04: word embeddings
#
# **Short path** (`README.md`), read in 20 minutes: Tasks 6.1 to 6.3; skip the loop as machine code, what follows 6.3,
# and PCA.
#
# - **Goals:** turn a text into indices, co-occurrence counts and short vectors; predict a matrix's eigenvalues from
#   word counts alone; judge what such vectors capture, and how much of a word PCA loses.
# - **Before it:** eigenvalues and eigenvectors of symmetric matrices; no other lab. **Work:** about 6 hours.
# - **Hand in:** `count_pair`, `count_neighbours`, `nearest`, `ppmi`, `among_five`, `model_eigenvalues`; an experiment
#   from “Try”.
#
# Source: ESE-2000 Lab 6, "Language transformers", <https://dsd.seas.upenn.edu/lab6>, Tasks 6.1 to 6.3 and the section
# on principal component analysis.
#
# A network computes with numbers. Here words become numbers in three steps: an index for each word, a table of
# co-occurrence counts, and a short vector made from that table's eigenvectors.
#
# Letters: **c** different words, **W** co-occurrence window, **n** embedding dimension, **T** history length, **N**
# words of the corpus, **r** the rank of a word by its count, or of an eigenvector by its eigenvalue (the source's k).
# The source counts words from 1, and writes vectors as columns; Python counts from 0, and a word is a row here.
#
# It runs in one to four minutes on two CPU cores; with `--quick`, which computes only 256 eigenvectors and not 768, a
# third of that.

# %%
from time import process_time

from _common import listed, quick_mode, refused, show, shown, table
from _drawing import lab_04
from _expect import about, above, at_most, below, between, expect
from mini_tf.kernels.compiling import compiled
from mini_tf.text import Vocabulary, cooccurrence, eigenvector_embeddings, shakespeare, tokenize
from mini_tf.text.eigenvectors import captured_energy, pca_coefficients, reconstruct, word_energies

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, eigsh

QUICK = quick_mode("Lab 04: words to indices, co-occurrences, eigenvector embeddings")


# %% [markdown]
# ## A corpus of two quotations
#
# The smallest corpus that shows everything: a sentence of Miranda's, and a question of hers. Punctuation marks are
# words. Each new word gets the next free number, so the numbers are in order of first appearance.
#
# How many different words are there? The comma has one index and occurs several times: the source says three times, but
# count for yourself.

# %%
QUOTES = (
    "If by your art, my dearest father, you have put the wild waters in this roar, allay them. "
    "Sir, are not you my father?"
)
tokens = tokenize(QUOTES)
small = Vocabulary(tokens)
small_ids = small.encode(tokens)

print("Two quotations")
print("  " + " ".join(f"{word}:{i}" for word, i in list(zip(tokens, small_ids))[:12]), "…")
print(f"  and back again: {small.decode(small_ids[-8:])!r}")
expect("different words", 24, len(small))
expect("index of 'father'", 7, small.index["father"])
expect("commas (the source says 3)", 4, tokens.count(","))

# %% [markdown]
# The index i stands for the one-hot vector $e_i$: c entries, a 1 in place i and zeros elsewhere. Nobody stores those
# zeros, but the vectors are useful in formulas: `E` has one such row for each word of the corpus, and `E.T @ E` counts
# words.
#
# ### Which words occur together
#
# A window of W + 1 words slides over the corpus. $C_{ij}$ counts how often word j stands in a window whose centre is
# word i:
#
# $$
# C_{ij} = \sum_t 1(w_t = i) \cdot \sum_{u=-W/2}^{W/2} 1(w_{t+u} = j)
# $$
#
# The source prints "=" in place of the "·" here. It has to be a product: the first factor picks the windows whose
# centre is word i, the second counts word j in each of them. The term $u = 0$ is the centre itself, so each word's own
# count is on the diagonal.
#
# <details><summary>Two more slips of the source</summary>
#
# It also writes $w_u$ for the neighbour $w_{t+u}$, and says that neighbours are "less than W/2" places away; its sum
# includes those *at* W/2.
#
# </details>
#
# W = 2 means one word on either side: the first "father" stands between "dearest" and a comma, the second between "my"
# and "?". What is in its row of C?

# %%
small_C = cooccurrence(small_ids, len(small), window=2).toarray()                    # (c, c)
E = np.eye(len(small), dtype=int)[small_ids]                                         # (words, c), one-hot
row = small_C[small.index["father"]]
print("\nCo-occurrences of 'father', W = 2")
print("  " + "   ".join(f"{small.words[j]!r} {row[j]}" for j in np.flatnonzero(row)))
expect("its count on the diagonal", 2, row[small.index["father"]])
expect("counts on the diagonal: that of EᵀE", True, (small_C.diagonal() == (E.T @ E).diagonal()).all())

show(lab_04.few_counts(small.words, small_C), "04_two_quotations")

# %% [markdown]
# ## Task 6.1: words to indices
#
# Now the corpus of the lab: 40,000 lines from nine plays. mini_tf rebuilds it byte for byte, and checks that it did.
# Words, punctuation marks and line breaks all count as words. The source states two numbers: 292,072 words, 14,295
# different ones.

# %%
text = shakespeare("lab")
tokens = tokenize(text)
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                                                      # (words,)
c = len(vocabulary)
counts = np.bincount(ids, minlength=c)                                               # (c,) how often each occurs
by_count = np.argsort(-counts, kind="stable")                                        # most frequent word first

print("\nTask 6.1: words to indices")
expect("words", 292_072, len(ids))
expect("different words", 14_295, c)
print(f"  the first words: {ids[:12]}")
print(f"  and back: {vocabulary.decode(ids[:12])!r}")
print(f"  indices, 8 bytes each: {ids.nbytes / 1e6:,.1f} MB; vectors e_i, float32: {len(ids) * c * 4 / 1e6:,.1f} MB")

# %% [markdown]
# ### Words that are not in the vocabulary
#
# A vocabulary is closed. The source builds it from the *whole* corpus, test part included, so no test word is ever
# unknown. A user who types a prompt has no such luck, and neither would a model in an honest test.
#
# **Expect** an error that names the word. And if only the first 90 % of the corpus had been read, how many of the words
# of the last 10 % would be missing?

# %%
print()
refused(lambda: vocabulary.encode(tokenize("my father's telephone")))

first_test = int(0.9 * len(ids))
unseen = np.bincount(ids[:first_test], minlength=c)[ids[first_test:]] == 0           # (test words,)
expect("test words that are not in the first 90 %", about(0.043, within=0.0005), unseen.mean(), form="{:.1%}")

# %% [markdown]
# ### Few words are frequent, most are rare
#
# Zipf's law: the count of the r-th most frequent word is roughly proportional to 1/r. On logarithmic axes that is a
# straight line with slope −1. Keep this picture in mind: nearly everything below follows from it.
#
# What share of the text do a hundred words make up? And what share of the vocabulary occurs exactly once?

# %%
covered = np.cumsum(counts[by_count]) / len(ids)
print(f"\n  most frequent: {listed(vocabulary, by_count[:7], counts[by_count], '{:,}')}")
expect("share of the text: 100 most frequent words", above(0.5), covered[99], form="{:.0%}")
expect("share of the vocabulary that occurs once", between(0.4, 0.5), np.mean(counts == 1), form="{:.0%}")

named = {shown(word): counts[vocabulary.index[word]] for word in ("\n", "the", "king", "mother", "sword", "bird")}
show(lab_04.zipf(counts[by_count], named), "04_zipf")

# %% [markdown]
# ## Task 6.2: co-occurrences
#
# The same count with W = 10, five words on either side. C has $c^2$ = 204 million entries, but most pairs of words
# never occur together, and a sparse matrix stores only those that do.
#
# **Expect** $C = C^\top$: if j is within five words of i, then i is within five words of j. And for a word that never
# stands within five words of itself, $C_{ii}$ is its count.
#
# A matrix of counts is easily checked: count again, slowly, with the formula.

# %%
C = cooccurrence(ids, c, window=10)                                                  # (c, c) sparse
words = ids.tolist()


def count_pair(words, i, j, W):
    """C_ij by its formula: for each centre w_t = i, how often j occurs among the W + 1 words around it.

    words: a list of indices; i, j: two of them
    """
    half = W // 2
    return sum(words[max(t - half, 0) : t + half + 1].count(j) for t, word in enumerate(words) if word == i)


print("\nTask 6.2: co-occurrences, W = 10")
expect("pairs that differ between C and Cᵀ", 0, abs(C - C.T).nnz)
print(f"  pairs that meet   {C.nnz:,} of {c * c:,}: {C.nnz / c**2:.2%}")
print(f"  memory   dense {c * c * 8 / 1e6:,.0f} MB   sparse {(C.data.nbytes + C.indices.nbytes) / 1e6:,.0f} MB")
for a, b in (("my", "lord"), ("king", "queen"), ("Romeo", "Juliet"), ("death", "life"), ("father", "father")):
    i, j = vocabulary.index[a], vocabulary.index[b]
    expect(f"C of {a} … {b}: as counted by hand", count_pair(words, i, j, 10), C[i, j])
print(f"  'father' occurs {counts[vocabulary.index['father']]} times; each pair within reach adds two")
meets_itself = np.zeros(c, bool)
for u in range(1, 6):
    meets_itself[ids[u:][ids[u:] == ids[:-u]]] = True
apart = ~meets_itself & (counts > 1)
expect("words never near themselves: C_ii − count", 0, abs(C.diagonal() - counts)[apart].max())

# %% [markdown]
# ### The same loop as machine code
#
# `cooccurrence` is not built on matrices but on loops. In Python each turn of a loop costs some hundred instructions:
# objects are made, types looked up, functions found. Numba compiles the same lines, once the types of the arguments are
# known, to the few instructions that the processor needs. Here is the plainest such loop, over the first 20,000 words.
# Two more things separate it from mini_tf's: that one needs no dense C, and uses all cores
# (`mini_tf/text/cooccurrence.py`).
#
# **Expect** the same counts from all three. How much faster the compiled loop is depends on your machine; without
# Numba's compiler it is the Python loop.

# %%
def count_neighbours(words, half, counts):
    """Adds to counts (c, c), for each centre w_t, the words at most `half` places away from it, and itself."""
    for t in range(len(words)):
        for u in range(max(t - half, 0), min(t + half + 1, len(words))):
            counts[words[t], words[u]] += 1


_, some_words = np.unique(ids[:20_000], return_inverse=True)                         # the first 20,000, numbered anew
size = some_words.max() + 1
in_machine_code = compiled("void(int64[::1], int64, int64[:, ::1])")(count_neighbours)
in_machine_code(some_words[:1], 5, np.zeros((size, size), np.int64))                 # compiles
print("\nTask 6.2: 20,000 words, three ways to count")
first = cooccurrence(some_words, size, window=10)
for name, count in (("Python", count_neighbours), ("compiled by Numba", in_machine_code)):
    counted = np.zeros((size, size), np.int64)
    start = process_time()
    count(some_words, 5, counted)
    print(f"  {name:<20} {1000 * (process_time() - start):>9.1f} ms")
    expect(f"{name}: entries that differ from mini_tf's", 0, abs(first - counted).sum())

# %% [markdown]
# A picture of the whole C would be blank. Its corner of the 40 most frequent words is full; colours are logarithmic.
# Bright rows are frequent words, which occur near every other word. The diagonal stands out: a word is always in its
# own window. Look for the dark spots too. "thou" and "thy" avoid "you" and "your": a speaker says thou or you, seldom
# both in one breath.

# %%
top = by_count[:40]
corner = C[top][:, top].toarray()
show(lab_04.many_counts([shown(vocabulary.words[i]) for i in top], corner), "04_cooccurrences")

# %% [markdown]
# ## Task 6.3: eigenvector embeddings
#
# $$
# C\,v_r = \lambda_r\,v_r, \quad
# \lambda_1 \ge \lambda_2 \ge \dots, \qquad
# V_n = [v_1 \dots v_n], \qquad
# x_i = V_n^\top e_i
# $$
#
# $V_n$ is (c, n); $x_i$ is (n,). (The source calls the matrix of *all* eigenvectors n × n; with its c columns of c rows
# it is (c, c).) The product $V_n^\top e_i$ picks row i of $V_n$. So the array V *is* the table of embeddings: a row for
# each word.
#
# **Expect** orthonormal columns, and $C V = V\,\text{diag}(\lambda)$ up to rounding. Guess what the eigenvalues are
# before you look at the table, which lists the counts of the words next to them.

# %%
n = 256
values, V = eigenvector_embeddings(C, n)                                             # (n,), (c, n)

RANKS = (1, 2, 3, 10, 50, 100, 200, 256)
table(("r", "λ_r", "count", "of the r-th most frequent word"),
      [(r, values[r - 1], counts[by_count[r - 1]], shown(vocabulary.words[by_count[r - 1]])) for r in RANKS], "{:,.0f}",
      title=f"Task 6.3: eigenvector embeddings, V {V.shape}")  # fmt: skip
expect("largest |VᵀV − I| entry", below(1e-9), abs(V.T @ V - np.eye(n)).max(), form="{:.0e}")
expect("largest |CV − V diag(λ)| entry, relative to λ_1", below(1e-9), abs(C @ V - V * values).max() / values[0],
       form="{:.0e}")  # fmt: skip

# %% [markdown]
# ### Why are the eigenvalues close to the counts?
#
# From about r = 10 on, $\lambda_r$ is within a tenth of the count of the r-th word. If C were nearly diagonal, that
# would need no explanation: the counts are on its diagonal. But nearly every frequent word occurs more often near some
# other word than near itself, $C_{ij} > C_{ii}$: "king" occurs 336 times (its $C_{ii}$ is 342, because it sometimes
# occurs near itself), and 409 line breaks stand within five words of it.
#
# What is C, then? Suppose that words came in random order. A word i has 10 neighbours, each of which is word j with
# probability $\text{count}(j)/N$; so, by chance, $C_{ij} \approx \text{count}(i) \cdot 10 \cdot \text{count}(j)/N$. And
# at $u = 0$ each word is counted with itself. With the vector q of all counts, this is a diagonal matrix plus one of
# rank one:
#
# $$
# C \approx M = \operatorname{diag}(q) + \tfrac{10}{N}\,q\,q^\top
# $$
#
# The second part's entries are small compared with the diagonal for most *pairs*, but there are c of them in a row: the
# neighbours of a word add up to ten times its count. **The eigenvalues of M interlace with the counts**, and M is 95 %
# of C, by squares; the aside at the end of this lab derives and measures both.

# %%
frequent = np.flatnonzero(counts >= 120)
block = C[frequent][:, frequent].toarray()
own = block.diagonal().copy()
np.fill_diagonal(block, 0)
print("\nIs C nearly diagonal?")
expect("words that occur 120 times or more", 254, len(frequent))
expect("of them, with an entry above their own C_ii", 245, (block.max(1) > own).sum())
expect("occurrences of king", 336, counts[vocabulary.index["king"]])
expect("C of king … king", 342, C[vocabulary.index["king"], vocabulary.index["king"]])
expect("C of king … line break", 409, C[vocabulary.index["king"], vocabulary.index["\n"]])
N, q = len(ids), counts.astype(float)
neighbours = C.sum(1) - C.diagonal()
expect("neighbours per occurrence, median over words", 10, np.median(neighbours / q))

# %% [markdown]
# ### The corpus as a time series of vectors
#
# To store the embedded corpus, store `ids` and `V`. The vector of the t-th word is `V[ids[t]]`, and a history of T
# words is `V[ids[t : t + T]]`: looking up a row costs next to nothing, and a row that occurs many times is kept once.

# %%
T = 32
vectors = V.astype(np.float32)
X_0 = vectors[ids[:T]]                                                               # (T, n)
print(f"\n  the first history X_0 {X_0.shape}: {vocabulary.decode(ids[:8])!r} …")
table(("to store", "MB"), {"ids and V": (ids.nbytes + vectors.nbytes) / 1e6, f"all {len(ids):,} vectors":
      len(ids) * n * 4 / 1e6, f"all histories of {T} words": (len(ids) - T) * T * n * 4 / 1e6}, "{:,.1f}")  # fmt: skip

# %% [markdown]
# ## Which words are alike?
#
# The similarity of two words is the cosine of the angle between their vectors. The hope is that words of similar
# meaning get similar vectors, because they occur in similar contexts.
#
# **Expect** less than that. The axes of the frequent words lie almost entirely in the span of V, and axes of different
# words are at right angles; so no other frequent word points in a frequent word's direction. Those that do are rare
# words that occurred next to it, once. We list neighbours twice: among all words, and among those that occur 20 times
# or more.


# %%
def nearest(vectors, i, allowed, number=5):
    """(indices, cosines) of the words whose vectors make the smallest angles with word i's, nearest first.

    vectors (c, n); allowed (c,): which words may be named. Word i itself is not.
    """
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = directions @ directions[i]                                              # (c,)
    cosine[~allowed] = -2
    cosine[i] = -2
    order = np.argsort(-cosine, kind="stable")[:number]
    return order, cosine[order]


def print_nearest(vectors, at_least, title):
    """Print the words nearest to each of six words; returns {word: nearest words}."""
    found = {word: nearest(vectors, vocabulary.index[word], counts >= at_least)
             for word in ("king", "father", "night", "eyes", "Romeo", "is")}  # fmt: skip
    table(None, {word: listed(vocabulary, *near, "{:.2f}") for word, near in found.items()}, title=title)
    return {word: [vocabulary.words[i] for i in order] for word, (order, _) in found.items()}


all_near = print_nearest(V, 1, "Nearest words, among all")
often_near = print_nearest(V, 20, "Nearest words, among those with 20 occurrences or more")
rare = [counts[vocabulary.index[near]] for found in all_near.values() for near in found]
expect("among all: occurrences of a nearest word, median", at_most(3), np.median(rare))
expect("eyes: tears are among the five nearest", True, "tears" in often_near["eyes"])
expect("Romeo: banished is among the five nearest", True, "banished" in often_near["Romeo"])
expect("father: brother is among the five nearest", False, "brother" in often_near["father"])

# %% [markdown]
# The first list is useless: all but one of those 30 words occurred only once, near the word asked for. The second list
# holds words that *go together* (eyes and tears, Romeo and banished), but hardly any that *mean* something similar: no
# brother for father, no day for night. The source says that close vectors stand for similar words. With raw counts they
# stand for words that were neighbours.
#
# ### One line changes that
#
# The trouble is the range of the counts. A square root brings 40,000 and 40 closer together, so that the frequent words
# no longer dominate the first axes. **Expect** neighbours of similar meaning. (The source continues with raw counts,
# and so do we.)

# %%
_, V_root = eigenvector_embeddings(C.sqrt(), 64)
meanings = print_nearest(V_root, 20, "Nearest words, with √C for C and n = 64, 20 occurrences or more")
expect("father: brother is among the five nearest", True, "brother" in meanings["father"])
expect("night: day is among the five nearest", True, "day" in meanings["night"])

# %% [markdown]
# ### Or divide by what chance predicts
#
# If words came in random order, $C_{ij}$ would be near $r_i r_j / S$, with $r_i$ the sum of row i and S the sum of all
# rows. The logarithm of the ratio is the **pointwise mutual information** of two words; its positive part, PPMI, keeps
# the matrix sparse:
#
# $$
# \text{PPMI}_{ij} = \max\left(0,\ \ln \frac{C_{ij}\,S}{r_i\,r_j}\right)
# $$
#
# Church and Hanks 1990, <https://aclanthology.org/J90-1003>, introduced it for words; word2vec factorizes a matrix like
# it without making it (Levy and Goldberg 2014, <https://papers.nips.cc/paper/5477>). **Expect** neighbours of similar
# meaning again, son for father and day for night, but names among them: the ratio is largest for rare words, and a rare
# word is a neighbour of few.

# %%
def ppmi(C_ij, r_i, r_j, S):
    """max(0, ln(C_ij·S/(r_i·r_j))), entry by entry

    C_ij > 0, r_i, r_j: arrays of the same shape; S: a number  →  an array of that shape
    """
    return np.maximum(np.log(C_ij * S / (r_i * r_j)), 0)


pairs, r_sums = C.tocoo(), C.sum(1).astype(float)                                    # those that meet; (c,)
information = csr_array((ppmi(pairs.data, r_sums[pairs.row], r_sums[pairs.col], r_sums.sum()),
                         (pairs.row, pairs.col)), shape=C.shape)  # fmt: skip
information.eliminate_zeros()
_, V_ppmi = eigenvector_embeddings(information, 64)
by_information = print_nearest(V_ppmi, 20, "Nearest words, with PPMI and n = 64, 20 occurrences or more")
expect("pairs that meet more often than by chance", about(0.85, within=0.01), information.nnz / C.nnz, form="{:.0%}")
expect("father: son is among the five nearest", True, "son" in by_information["father"])
expect("night: day is among the five nearest", True, "day" in by_information["night"])

# %% [markdown]
# ### Does a direction have a meaning?
#
# CS685 (see Lab 02) shows pictures of word2vec's vectors: from man to woman is as from king to queen, from walking to
# walked as from swimming to swam, from a country to its capital always the same direction. If so, "man is to woman as
# king is to …" has an answer: the word nearest to $x_\text{woman} - x_\text{man} + x_\text{king}$.
#
# We ask all such questions of our vectors, with 12 pairs for gender and 20 for tense (words that occur 20 times or
# more), each both ways round: 264 and 760 questions. Of countries and capitals, only England and London, France and
# Paris occur that often, and Paris is also a count in Verona: 4 questions. An answer counts if it is among the five
# nearest of 1,183 words, without the question's own three. To see what the offset adds, we ask again **without** it,
# for the five words nearest to king itself.
#
# **Expect** little: the pictures are of vectors from billions of words, and we have 292,072. For which kind does the
# offset help? (For gender it does not: queen is near king anyway.)

# %%
KINDS = {
    "gender": "man woman  king queen  father mother  brother sister  son daughter  husband wife  he she  him her  "
              "lord lady  men women  sir madam  master mistress",
    "tense": "is was  are were  have had  do did  come came  say said  know knew  see saw  take took  give gave  "
             "make made  think thought  speak spoke  hear heard  tell told  find found  love loved  bring brought  "
             "stand stood  leave left",
    "capitals": "England London  France Paris",
}  # fmt: skip


def among_five(vectors, questions, allowed, offset=True):
    """The share of questions "a is to b as s is to …" whose answer t is among the five words nearest to x_b − x_a + x_s

    vectors (c, n), taken at length 1; questions (questions, 4): the words a, b, s, t; allowed (c,): which words may be
    named, but a, b and s are not; offset=False: nearest to x_s instead  →  a number from 0 to 1
    """
    x = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    a, b, s, t = questions.T
    points = x[b] - x[a] + x[s] if offset else x[s]
    likeness = np.where(allowed, points @ x.T, -np.inf)                              # (questions, c)
    rows = np.arange(len(questions))
    for word in (a, b, s):
        likeness[rows, word] = -np.inf
    return np.mean((likeness > likeness[rows, t][:, None]).sum(1) < 5)


def questions_of(words):
    """All questions (a, b, s, t) from two different pairs, each also from right to left."""
    couples = vocabulary.encode(words.split()).reshape(-1, 2)
    forth = [(*first, *second) for first in couples for second in couples if first[0] != second[0]]
    return np.array([*forth, *((b, a, t, s) for a, b, s, t in forth)])

# %%
asked = {kind: questions_of(words_of_kind) for kind, words_of_kind in KINDS.items()}
shares = {(kind, name): [among_five(vectors, questions, counts >= 20, offset) for offset in (True, False)]
          for kind, questions in asked.items() for name, vectors in (("C", V), ("√C", V_root), ("PPMI", V_ppmi))}
table(("", "questions", *(f"{name}, {part}" for name in ("C", "√C", "PPMI") for part in ("offset", "without"))),
      [(kind, len(asked[kind]), *(share for name in ("C", "√C", "PPMI") for share in shares[kind, name]))
       for kind in KINDS], ("{}", *["{:.0%}"] * 6), title="The answer is among the five nearest")  # fmt: skip
expect("gender, √C: right", about(0.24, within=0.02), shares["gender", "√C"][0], form="{:.0%}")
expect("gender, √C: without the offset", about(0.37, within=0.02), shares["gender", "√C"][1], form="{:.0%}")
expect("tense, PPMI: right", about(0.13, within=0.02), shares["tense", "PPMI"][0], form="{:.0%}")
expect("tense, PPMI: without the offset", about(0.03, within=0.01), shares["tense", "PPMI"][1], form="{:.0%}")
expect("capitals: the best of the three", 0, max(shares["capitals", name][0] for name in ("C", "√C", "PPMI")))

# %% [markdown]
# ## Principal component analysis: how much of a word is lost?
#
# With *all* eigenvectors, $y = V^\top e$ is just another way to write e, and $e = V y$ recovers it. For two quotations
# we can afford all of them. **Expect** an error of rounding size. How much is kept on average with n of the 24?

# %%
_, all_V = np.linalg.eigh(small_C)
all_V = all_V[:, ::-1]                                                               # largest eigenvalue first
father = np.eye(len(small))[small.index["father"]]
print("\nTwo quotations, all 24 eigenvectors")
expect("‖e − V Vᵀ e‖² of 'father'", below(1e-25), np.sum((father - all_V @ (all_V.T @ father)) ** 2), form="{:.0e}")
for kept in (6, 12, 18):
    expect(f"{kept} of 24: mean kept", about(kept / 24, within=1e-9), captured_energy(all_V[:, :kept]), form="{:.3g}")

# %% [markdown]
# ### "For most word vectors the error is small"
#
# So says the source about n = 256 and c = 14,295. That is impossible. The energy kept of word i is
# $\lVert \tilde e_i \rVert^2 = \sum_k V_{ik}^2$, a number from 0 to 1, and the error is
# $\lVert e_i - \tilde e_i \rVert^2 = 1 - \lVert \tilde e_i \rVert^2$. Add it up over all words:
#
# $$
# \sum_i \lVert V_n^\top e_i \rVert^2 = \text{trace}(V_n V_n^\top) = \text{trace}(V_n^\top V_n) = n
# $$
#
# n unit columns have n units of energy in total, and c words share them. The mean over *different words* is $n/c$ for
# any orthonormal V whatsoever: it says nothing about language. But the words of a *text* are mostly frequent words.
# Guess the mean over the text.

# %%
energy = word_energies(V)                                                            # (c,)
print("\nWhat 256 eigenvectors keep of a word")
expect("mean over different words", about(n / c, within=1e-9), captured_energy(V), form="{:.2%}")
expect("mean over the words of the text", about(0.708, within=0.002), captured_energy(V, counts), form="{:.1%}")
good = energy > 0.9
print(f"  error below 0.1: {good.sum()} of {c:,} words, {good.mean():.1%} of the vocabulary, "
      f"{counts[good].sum() / len(ids):.0%} of the text")
print(f"  median over different words: {np.median(energy):.1e} is kept")

SAMPLES = ("the", "king", "love", "mother", "Romeo", "tears", "sword", "bird", "swallow")
rows = {}
for word in SAMPLES:
    i = vocabulary.index[word]
    recovered = reconstruct(V, i)                                                    # (c,)
    best = np.argsort(-recovered)[:3]
    rows[word] = counts[i], energy[i], 1 - energy[i], listed(vocabulary, best, recovered[best], "{:.2f}")
print()
table(("word", "occurs", "kept", "error", "largest entries of the recovered ẽ"), rows,
      ("{:,}", "{:.3f}", "{:.3f}", "{}"))  # fmt: skip

# %% [markdown]
# It is all or nothing, and the border is a count: $\lambda_{256}$ is about 120; words that occur more than 120 times
# are kept, words that occur less often are lost. That is the model M again. Its eigenvectors with eigenvalues above 120
# are concentrated on words whose counts are near those eigenvalues. In C the real co-occurrences mix these words with
# each other, but hardly with words that are far rarer. So 256 eigenvectors nearly span the axes of the 256 most
# frequent words, and that uses up the budget. The exceptions, frequent words of which only a third to two thirds is
# kept, are found in the names before speeches: KING RICHARD III, DUKE VINCENTIO, DUKE OF YORK. These words occur
# together, and share their axes.

# %%
expect("kept of words with over 240 occurrences, median", above(0.95), np.median(energy[counts > 240]), form="{:.3f}")
expect("kept of words with under 60 occurrences, median", below(0.01), np.median(energy[counts < 60]), form="{:.1e}")
POINTED_OUT = ("the", "king", "mother", "Romeo", "KING", "DUKE", "YORK", "tears", "sword", "bird")
named = {word: vocabulary.index[word] for word in POINTED_OUT}
show(lab_04.energy(counts, energy, values[-1], n / c, captured_energy(V, counts), named), "04_energy")

# %% [markdown]
# ### The figure of the source: coefficients $y_{ir}$ against r
#
# It shows the coefficients of "some representative words", and the source concludes that little is left beyond r ≈ 200.
# For which words is that true? **Expect** the coefficients of "king" and "love" to be largest near r = their rank. And
# those of a rare word? Without `--quick` we compute 768 eigenvectors, to see what lies beyond 256.

# %%
_, V_far = (values, V) if QUICK else eigenvector_embeddings(C, 768)
rows, lines = {}, {}
for word in SAMPLES:
    i = vocabulary.index[word]
    y = pca_coefficients(V_far, i)                                                   # (r,)
    parts = np.add.reduceat(y**2, [0, 200, n][: 2 + (len(y) > n)])
    rows[word] = int(np.flatnonzero(by_count == i)[0]) + 1, abs(y).argmax() + 1, *parts[:2], 1 - parts[:2].sum()
    lines[f"{word}, {counts[i]:,} times: {parts[:2].sum():.3f} kept"] = y
table(("word", "rank", "largest at r", "energy to 200", "201 … 256", "beyond"), rows,
      ("{:,}", "{}", "{:.3f}", "{:.3f}", "{:.3f}"), title=f"Coefficients y_ir, r = 1 … {V_far.shape[1]}")  # fmt: skip
off = max(abs(rows[word][1] - rows[word][0]) for word in ("king", "love"))
expect("king, love: largest coefficient, r − rank", at_most(6), off)
expect("the: beyond r = 256", below(0.005), rows["the"][-1], form="{:.4f}")
expect("bird: beyond r = 256", above(0.95), rows["bird"][-1], form="{:.3f}")
show(lab_04.coefficients(lines, n), "04_pca_coefficients")

# %% [markdown]
# ## Aside: the eigenvalues and eigenvectors of C, from the counts alone
#
# Nothing later needs this section.
#
# $M v = \lambda v$ means, word by word, $q_i v_i + \frac{10}{N} q_i\,(q^\top v) = \lambda v_i$. Scale v so that
# $\frac{10}{N}\,q^\top v = 1$, and solve for $v_i$; put that back into the scaling:
#
# $$
# v_i = \frac{q_i}{\lambda - q_i}, \qquad
# 1 = \frac{10}{N} \sum_i \frac{q_i^2}{\lambda - q_i}
# $$
#
# The right equation, called secular, has λ as its only unknown. Draw its right side against λ: at every count it jumps
# from −∞ to +∞, and in between it falls. So it is 1 exactly once between any two neighbouring counts, and once above
# the largest: **the eigenvalues of M interlace with the counts**. M's $\lambda_2$ lies between the counts of the second
# and the first word, its $\lambda_{100}$ between those of the 100th and the 99th, which are 316 and 319, however large
# the factor 10/N is. (A count shared by m words is itself an eigenvalue, m − 1 times.) Only $\lambda_1$ has no count
# above it, and it does lie far above the largest.

# %%
def model_eigenvalues(q, strength, number):
    """The largest eigenvalues of diag(q) + strength·q·qᵀ, for counts q > 0, largest first: (number,)

    Between neighbouring different counts, and above the largest, one λ each with 1 = strength·Σ_i q_i²/(λ − q_i);
    and a count that m words share is an eigenvalue m − 1 times.
    """
    different, times = np.unique(q, return_counts=True)
    different, times = different[::-1], times[::-1]      # largest first

    def excess(x, count):                                # of λ = count + x, so that a tiny x is not rounded away
        return strength * np.sum(times * different**2 / (x + (count - different))) - 1

    tops = [different[0] + strength * (q @ q), *different[:-1]]
    found = np.repeat(different, times - 1).tolist()
    for count, top in zip(different[:number], tops):
        gap = top - count
        found.append(count + brentq(excess, 1e-12 * gap, (1 if top == tops[0] else 1 - 1e-12) * gap, args=(count,)))
    return np.sort(found)[::-1][:number]


predicted = model_eigenvalues(q, 10 / N, n)
table(("r", "count", "predicted", "measured"),
      [(r, q[by_count[r - 1]], predicted[r - 1], values[r - 1]) for r in RANKS], "{:,.0f}",
      title="The eigenvalues, predicted from the counts")  # fmt: skip
between_counts = (predicted[1:] >= q[by_count[1:n]] - 1e-6) & (predicted[1:] <= q[by_count[: n - 1]] + 1e-6)
expect("predicted λ_2 … λ_256 between two counts", 255, between_counts.sum())
off = abs(predicted / values - 1)
expect("λ_1: predicted off by", about(0.053, within=0.002), off[0], form="{:.1%}")
expect("λ_10: count of the tenth word off by", below(0.1), abs(q[by_count[9]] / values[9] - 1), form="{:.1%}")
expect("λ_256: predicted off by", below(0.015), off[-1], form="{:.1%}")
expect("all 256: predicted off by, median", below(0.02), np.median(off), form="{:.1%}")
expect("λ_3: predicted off by (it reflects language)", above(0.3), off[2], form="{:.0%}")
show(lab_04.eigenvalues(values, predicted, counts[by_count[:n]]), "04_eigenvalues")

# %% [markdown]
# ### And the eigenvectors?
#
# The model says $v_i \propto q_i/(\lambda - q_i)$: an eigenvector of M is concentrated on the few words whose count is
# close to λ. The real ones mix about ten words: the word with the largest entry of $v_r$, for $r \ge 20$, holds a
# quarter of its squared length ($V_{ir}^2$), where the model predicts four fifths. Around r = 100 the eigenvalues are
# only 1 to 4 apart. What the model leaves out, which words *really* stand near which, need only be larger than such a
# gap to rotate two eigenvectors into each other. That changes the eigenvalues little, and the span of all 256 vectors
# hardly at all: the axes of the 200 most frequent words lie almost entirely within it.

# %%
squares = V[:, 19:] ** 2                                                             # (c, n − 19)
largest, words_mixed = squares.max(0), 1 / (squares**2).sum(0)
alone = [value for value in predicted[19:] if abs(value - q).min() > 1e-6]           # λ that no two words share
model_squares = [(q / (value - q)) ** 2 for value in alone]
model_largest = [each.max() / each.sum() for each in model_squares]
print("\nThe eigenvectors, r = 20 … 256")
expect("largest word's part of v_r, median", about(0.24, within=0.01), np.median(largest), form="{:.0%}")
expect("the same in the model", about(0.82, within=0.03), np.median(model_largest), form="{:.0%}")
expect("words mixed in v_r, 1/Σ v⁴, median", about(9.8, within=0.3), np.median(words_mixed), form="{:.1f}")
expect("λ_r − λ_{r+1} around r = 100, median", between(1, 4), np.median(-np.diff(values[80:120])), form="{:.1f}")
inside = (V[by_count[:200]] ** 2).sum(1)
expect("kept of the axes of the 200 most frequent, median", above(0.95), np.median(inside), form="{:.3f}")

# %% [markdown]
# ### Which part of C is language?
#
# The model leaves out $C - M$: which words occur together more or less often than chance predicts. Its first
# eigenvectors show patterns that a reader recognizes. Which ones do you see?

# %%
def beyond_chance(x):
    """(C − M)·x"""
    return C @ x - q * x - 10 / N * q * (q @ x)


total = C.multiply(C).sum()
cross = q @ C.diagonal() + 10 / N * (q @ (C @ q))
model_total = q @ q + 2 * 10 / N * (q**3).sum() + (10 / N * (q @ q)) ** 2
expect("share of C beyond the model, by squares", about(0.047, within=0.002), (total - 2 * cross + model_total) / total,
       form="{:.1%}")  # fmt: skip
beyond, directions = eigsh(LinearOperator((c, c), beyond_chance, dtype=float), 5, which="LM", v0=q)
ends = []
for number in np.argsort(-abs(beyond)):
    order = np.argsort(directions[:, number])
    ends.append((f"{beyond[number]:,.0f}", *("  ".join(shown(vocabulary.words[i]) for i in end)
                                           for end in (order[:6], order[:-7:-1]))))      # fmt: skip
table(("λ", "words at one end", "words at the other end"), ends,
      title="Beyond chance: the ends of the first eigenvectors of C − M")  # fmt: skip

# %% [markdown]
# ## What to remember
#
# - A corpus is a sequence of integers. Vectors are looked up when they are needed.
# - Raw counts of co-occurrence are mostly what chance predicts, plus each word's own count:
#   $\operatorname{diag}(q) + \frac{10}{N} q q^\top$ is 95 % of C, by squares. It predicts half of the 256 eigenvalues
#   to within 2 %; its own eigenvalues interlace with the counts.
# - Square roots or PPMI in place of raw counts bring words of similar meaning together. Directions that stand for
#   gender or tense hardly appear from 292,072 words.
# - So 256 eigenvectors span little more than the axes of the 256 most frequent words. They keep 71 % of the text and
#   2 % of the vocabulary.
# - A rare word's vector is almost zero. Lab 05 trains a transformer to predict such vectors with a squared error,
#   and a vector that is almost zero is easy to predict.
#
# Try: W = 2 or W = 40 in Task 6.2. Which neighbours change? Try `C.log1p()` for `C.sqrt()`. Draw the energy figure with
# n = 64, after predicting where its border will be.
