# %% [markdown]
# # Lab 04: word embeddings
#
# Source: ESE-2000 Lab 6, "Language transformers", Tasks 6.1 to 6.3 and the section on principal component analysis.
#
# A network computes with numbers. Here words become numbers in three steps: an index for each word, a table of
# which words stand near which, and a short vector made of that table's eigenvectors. You will
#
# - turn two quotations, then 292,072 words of Shakespeare, into integers and back,
# - count co-occurrences, check the counts by hand, and find a slip in the printed formula,
# - compute 256 eigenvectors of a 14,295 × 14,295 matrix, and see what its eigenvalues really are,
# - ask the vectors which words are alike, and learn what they know and what they do not,
# - measure what a word loses on the way from 14,295 numbers to 256: almost nothing, or almost everything.
#
# Letters: **c** different words, **W** co-occurrence window, **n** embedding dimension, **T** history length. The lab
# counts words from 1, and writes vectors as columns; Python counts from 0, and a word is a row here.
#
# It takes about a minute on two CPU cores; with `--quick`, which computes only 256 eigenvectors and not 768, ten
# seconds.

# %%
from _common import quick_mode, refused, show, shown
from _drawing import lab_04
from mini_tf.text import Vocabulary, cooccurrence, eigenvector_embeddings, shakespeare, tokenize
from mini_tf.text.eigenvectors import captured_energy, pca_coefficients, reconstruct, word_energies

import numpy as np

QUICK = quick_mode("Lab 04: words to indices, co-occurrences, eigenvector embeddings")


# %% [markdown]
# ## A corpus of two quotations
#
# The smallest corpus that shows everything: a sentence of Miranda's, and a question of hers. Punctuation marks are
# words. Each new word gets the next free number, so the numbers are in order of first appearance.
#
# **Expect** 24 different words. The eighth is "father", index 7 when counting from 0. The comma has one index and
# occurs several times: the source says three, but count for yourself.

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
print(f"  different words   expected 24   measured {len(small)}")
print(f"  index of 'father' expected  7   measured {small.index['father']}")
print(f"  commas            the source's 3   measured {tokens.count(',')}")
print(f"  and back again: {small.decode(small_ids[-8:])!r}")

# %% [markdown]
# The index i stands for the vector $e_i$: c entries, a 1 in place i and zeros elsewhere. Nobody stores those zeros.
# They are still useful in formulas: `E` has one such row for each word of the corpus, and `E.T @ E` counts words.
#
# ### Who stands next to whom
#
# A window of W + 1 words slides over the corpus. $C_{ij}$ counts how often word j stands in a window whose centre is
# word i:
#
# $$
# C_{ij} = \sum_t 1(w_t = i) \cdot \sum_{u=-W/2}^{W/2} 1(w_{t+u} = j)
# $$
#
# The source prints "=" where the "·" stands here. It has to be a product: the first factor picks the windows whose
# centre is word i, the second counts word j in each of them. (It also writes $w_u$ for the neighbour $w_{t+u}$.) The
# term $u = 0$ is the centre itself, so each word's own count is on the diagonal.
#
# W = 2 means one word on either side: the first "father" stands between "dearest" and a comma, the second between "my"
# and "?". So **expect** its row to have four ones, and a two on the diagonal.

# %%
small_C = cooccurrence(small_ids, len(small), window=2).toarray()                    # (c, c)
E = np.eye(len(small), dtype=int)[small_ids]                                         # (words, c), one-hot
row = small_C[small.index["father"]]
print("\nCo-occurrences of 'father', W = 2")
print("  " + "   ".join(f"{small.words[j]!r} {row[j]}" for j in np.flatnonzero(row)))
print(f"  symmetric: {(small_C == small_C.T).all()};  counts are on the diagonal: "
      f"{(small_C.diagonal() == (E.T @ E).diagonal()).all()}")

show(lab_04.few_counts(small.words, small_C), "04_two_quotations")

# %% [markdown]
# ## Task 6.1: words to indices
#
# Now the corpus of the lab: 40,000 lines from nine plays. mini_tf rebuilds it byte for byte, and checks that it did.
# Words, punctuation marks and line breaks all count as words.
#
# **Expect** the two numbers that the source states: 292,072 words, 14,295 different ones.

# %%
text = shakespeare("lab")
tokens = tokenize(text)
vocabulary = Vocabulary(tokens)
ids = vocabulary.encode(tokens)                                                      # (words,)
c = len(vocabulary)
counts = np.bincount(ids, minlength=c)                                               # (c,) how often each occurs
by_count = np.argsort(-counts, kind="stable")                                        # most frequent word first

print("\nTask 6.1: words to indices")
print(f"  words             expected 292,072   measured {len(ids):,}")
print(f"  different words   expected  14,295   measured  {c:,}")
print(f"  the first words: {ids[:12]}")
print(f"  and back: {vocabulary.decode(ids[:12])!r}")
print(f"  indices, 8 bytes each  {ids.nbytes / 1e6:10,.1f} MB")
print(f"  vectors e_i, float32   {len(ids) * c * 4 / 1e6:10,.1f} MB")

# %% [markdown]
# ### Words that are not there
#
# A vocabulary is closed. The source builds it from the *whole* corpus, test part included, so no test word is ever
# unknown. A reader who types a prompt has no such luck, and neither would an honest test.
#
# **Expect** an error that names the word. And if only the first 90 % of the corpus had been read, about one in 25 words
# of the last 10 % would be missing: 4.3 %.

# %%
print()
refused(lambda: vocabulary.encode(tokenize("my father's telephone")))

first_test = int(0.9 * len(ids))
unseen = np.bincount(ids[:first_test], minlength=c)[ids[first_test:]] == 0           # (test words,)
print(f"  test words that never occur in the first 90 %   expected 4.3 %   measured {unseen.mean():.1%}")

# %% [markdown]
# ### Few words are frequent, most are rare
#
# Zipf's law: the count of the r-th most frequent word is roughly proportional to 1/r. On logarithmic axes that is a
# straight line with slope −1. Keep this picture in mind: nearly everything below follows from it.
#
# **Expect** that a hundred words make up more than half of the text, and that nearly half of the vocabulary occurs
# exactly once.

# %%
covered = np.cumsum(counts[by_count]) / len(ids)
print("\n  most frequent: " + "  ".join(f"{shown(vocabulary.words[i])} {counts[i]:,}" for i in by_count[:7]))
print(f"  share of the text made of the 100 most frequent words   {covered[99]:.0%}")
print(f"  share of the vocabulary that occurs once                {np.mean(counts == 1):.0%}")

named = {shown(word): counts[vocabulary.index[word]] for word in ("\n", "the", "king", "mother", "sword", "bird")}
show(lab_04.zipf(counts[by_count], named), "04_zipf")

# %% [markdown]
# ## Task 6.2: co-occurrences
#
# The same count with W = 10, five words on either side. C has $c^2$ = 204 million entries, but most pairs of words
# never meet, and a sparse matrix stores those that do.
#
# **Expect** $C = C^\top$: if j is within five words of i, then i is within five words of j. And for a word that seldom
# meets itself, $C_{ii}$ is its count.
#
# A matrix of counts is easily checked: count again, slowly, with the formula.

# %%
C = cooccurrence(ids, c, window=10)                                                  # (c, c) sparse
words = ids.tolist()


def count_by_hand(a, b):
    """C_ij by its formula, for two words: for each centre w_t = a, the b's among the eleven words around it."""
    i, j = vocabulary.index[a], vocabulary.index[b]
    return sum(words[max(t - 5, 0) : t + 6].count(j) for t, word in enumerate(words) if word == i)


print("\nTask 6.2: co-occurrences, W = 10")
print(f"  symmetric: {abs(C - C.T).nnz == 0}")
print(f"  pairs that meet   {C.nnz:,} of {c * c:,}: {C.nnz / c**2:.2%}")
print(f"  memory   dense {c * c * 8 / 1e6:,.0f} MB   sparse {(C.data.nbytes + C.indices.nbytes) / 1e6:,.0f} MB")
print(f"\n  {'pair':<20} {'C_ij':>7} {'C_ji':>7} {'by hand':>8}")
for a, b in (("my", "lord"), ("king", "queen"), ("Romeo", "Juliet"), ("death", "life"), ("father", "father")):
    i, j = vocabulary.index[a], vocabulary.index[b]
    by_hand = count_by_hand(a, b)
    print(f"  {a + ' … ' + b:<20} {C[i, j]:>7,} {C[j, i]:>7,} {by_hand:>8,}")
    assert C[i, j] == by_hand
print(f"  'father' occurs {counts[vocabulary.index['father']]} times; each pair within reach adds two")

# %% [markdown]
# A picture of the whole C would be blank. Its corner of the 40 most frequent words is full; colours are logarithmic.
# Bright rows are frequent words, which meet every other word. The diagonal stands out: a word is always in its own
# window. Look for the dark spots too. "thou" and "thy" avoid "you" and "your": a speaker says thou or you, seldom both
# in one breath.

# %%
top = by_count[:40]
corner = C[top][:, top].toarray()
show(lab_04.many_counts([shown(vocabulary.words[i]) for i in top], corner), "04_cooccurrences")

# %% [markdown]
# ## Task 6.3: eigenvector embeddings
#
# $$
# C\,v_k = \lambda_k\,v_k, \quad
# \lambda_1 \ge \lambda_2 \ge \dots, \qquad
# V_n = [v_1 \dots v_n], \qquad
# x_i = V_n^\top e_i
# $$
#
# $V_n$ is (c, n), $x_i$ is (n,). The product $V_n^\top e_i$ picks row i of $V_n$. So the array V *is* the table of
# embeddings: a row for each word.
#
# **Expect** orthonormal columns, and $C V = V\,\text{diag}(\lambda)$ up to rounding. Guess what the eigenvalues are
# before you look at the figure; the counts of the words are drawn beside them.

# %%
n = 256
values, V = eigenvector_embeddings(C, n)                                             # (n,), (c, n)

print("\nTask 6.3: eigenvector embeddings")
print(f"  V {V.shape};  largest |VᵀV − I| entry {abs(V.T @ V - np.eye(n)).max():.0e}")
print(f"  largest |C V − V diag(λ)| entry, relative to λ_1: {abs(C @ V - V * values).max() / values[0]:.0e}")
print(f"\n  {'k':>5} {'λ_k':>10} {'count of the k-th most frequent word':>40}")
for k in (1, 2, 3, 10, 50, 100, 200, 256):
    word = by_count[k - 1]
    print(f"  {k:>5} {values[k - 1]:>10,.0f} {counts[word]:>30,}  {shown(vocabulary.words[word])}")

show(lab_04.eigenvalues(values, counts[by_count[:n]]), "04_eigenvalues")

# %% [markdown]
# The two curves nearly coincide. C is close to a diagonal matrix of counts: a word is always in its own window, and
# seldom meets any single other word as often. The eigenvectors of a diagonal matrix are the $e_i$ themselves. So the
# first eigenvectors describe the company of the most frequent words, and from k = 20 or so $v_k$ is, roughly, the k-th
# most frequent word with a few companions. Remember this when we come to the reconstruction.
#
# ### The corpus as a time series of vectors
#
# To store the embedded corpus, store `ids` and `V`. The vector of the t-th word is `V[ids[t]]`, and a history of T
# words is `V[ids[t : t + T]]`: looking up a row costs next to nothing, and a row that occurs many times is kept once.

# %%
T = 32
table = V.astype(np.float32)
X_0 = table[ids[:T]]                                                                 # (T, n)
print(f"\n  the first history X_0 {X_0.shape}: {vocabulary.decode(ids[:8])!r} …")
print(f"  ids and table            {(ids.nbytes + table.nbytes) / 1e6:8,.1f} MB")
print(f"  all {len(ids):,} vectors      {len(ids) * n * 4 / 1e6:8,.1f} MB")
print(f"  all histories of {T} words {(len(ids) - T) * T * n * 4 / 1e6:8,.1f} MB")

# %% [markdown]
# ## Which words are alike?
#
# Similarity of two words: the cosine of the angle between their vectors. The hope is that words of similar meaning get
# similar vectors, because they keep the same company.
#
# **Expect** less than that. A frequent word has nearly an axis of its own, so no other frequent word points in its
# direction; the words that do are those that stood next to it, once. We list neighbours twice: among all words, and
# among those that occur 20 times or more.


# %%
def nearest(word, vectors, at_least, number=5):
    """The words whose vectors make the smallest angle with the word's, of those that occur often enough."""
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = directions @ directions[vocabulary.index[word]]                         # (c,)
    cosine[(counts < at_least) | (np.arange(c) == vocabulary.index[word])] = -1
    return [(vocabulary.words[i], cosine[i]) for i in np.argsort(-cosine)[:number]]


def print_nearest(vectors, at_least):
    for word in ("king", "father", "night", "eyes", "Romeo", "is"):
        print(f"  {word:<7} " + "  ".join(f"{near} {cosine:.2f}" for near, cosine in nearest(word, vectors, at_least)))


print("\nNearest words, among all")
print_nearest(V, at_least=1)
print("\nNearest words, among those with 20 occurrences or more")
print_nearest(V, at_least=20)

# %% [markdown]
# Honestly: the first list is useless. Those words occurred once, beside the word asked for. The second list holds words
# that *go together* (eyes and tears, Romeo and banished), but hardly any that *mean* something similar: no brother for
# father, no day for night. The source says that close vectors stand for similar words. With raw counts they stand for
# words that were neighbours.
#
# ### One line changes that
#
# The trouble is the range of the counts. A square root brings 40,000 and 40 closer together, so that the frequent words
# no longer own the first axes. **Expect** meanings. (The source continues with raw counts, and so do we.)

# %%
_, V_root = eigenvector_embeddings(C.sqrt(), 64)
print("\nNearest words, with √C for C and n = 64, 20 occurrences or more")
print_nearest(V_root, at_least=20)

# %% [markdown]
# ## Principal component analysis: what does a word lose?
#
# With *all* eigenvectors, $y = V^\top e$ is just another way to write e, and $e = V y$ gives it back. On two quotations
# we can afford them all. **Expect** an error of rounding size; and with n of the 24, a mean loss of $1 - n/24$.

# %%
_, all_V = np.linalg.eigh(small_C)
all_V = all_V[:, ::-1]                                                               # largest eigenvalue first
father = np.eye(len(small))[small.index["father"]]
print("\nTwo quotations, all 24 eigenvectors")
print(f"  ‖e − V Vᵀ e‖² of 'father'   expected 0   measured {np.sum((father - all_V @ (all_V.T @ father)) ** 2):.0e}")
for kept in (6, 12, 18):
    print(f"  {kept:>2} of 24: mean kept   expected {kept / 24:.3f}   measured {captured_energy(all_V[:, :kept]):.3f}")

# %% [markdown]
# ### "For most word vectors the error is small"
#
# So says the source about n = 256 and c = 14,295. That is impossible. What is kept of word i is
# $\lVert \tilde e_i \rVert^2 = \sum_k V_{ik}^2$, a number from 0 to 1, and the error is
# $\lVert e_i - \tilde e_i \rVert^2 = 1 - \lVert \tilde e_i \rVert^2$. Add up what is kept of all words:
#
# $$
# \sum_i \lVert V_n^\top e_i \rVert^2 = \text{trace}(V_n V_n^\top) = \text{trace}(V_n^\top V_n) = n
# $$
#
# n unit columns have n units of energy to give, and c words share them. The mean over *different words* is $n/c$ for
# any orthonormal V whatsoever: language has nothing to do with it. But the words of a *text* are mostly frequent words.
#
# **Expect** 256/14,295 = 1.8 % as the mean over different words, and a large part as the mean over the text.

# %%
energy = word_energies(V)                                                            # (c,)
print("\nWhat 256 eigenvectors keep of a word")
print(f"  mean over different words       expected {n / c:.1%}   measured {captured_energy(V):.1%}")
print(f"  mean over the words of the text expected large   measured {captured_energy(V, counts):.1%}")
good = energy > 0.9
print(f"  error below 0.1: {good.sum()} of {c:,} words, {good.mean():.1%} of the vocabulary, "
      f"{counts[good].sum() / len(ids):.0%} of the text")
print(f"  median over different words: {np.median(energy):.1e} is kept")

print(f"\n  {'word':<10} {'occurs':>7} {'kept':>7} {'error':>7}   largest entries of the recovered ẽ")
SAMPLES = ("the", "king", "love", "mother", "Romeo", "tears", "sword", "bird", "swallow")
for word in SAMPLES:
    i = vocabulary.index[word]
    recovered = reconstruct(V, i)                                                    # (c,)
    best = "  ".join(f"{shown(vocabulary.words[j])} {recovered[j]:.2f}" for j in np.argsort(-recovered)[:3])
    print(f"  {word:<10} {counts[i]:>7,} {energy[i]:>7.3f} {1 - energy[i]:>7.3f}   {best}")

# %% [markdown]
# It is all or nothing, and the border is a count: $\lambda_{256}$ is about 120; words that occur more than 120 times
# are kept, words that occur less often are lost. That is the near-diagonal C again. It has an eigenvector for each
# frequent word, in order of frequency, and after 256 of them the budget is spent. The exceptions below the bend stand
# before speeches: KING RICHARD III, DUKE VINCENTIO, DUKE OF YORK. These words occur together, and share their axes.

# %%
POINTED_OUT = ("the", "king", "mother", "Romeo", "KING", "DUKE", "YORK", "tears", "sword", "bird")
named = {word: vocabulary.index[word] for word in POINTED_OUT}
show(lab_04.energy(counts, energy, values[-1], n / c, captured_energy(V, counts), named), "04_energy")

# %% [markdown]
# ### The figure of the source: coefficients $y_{ik}$ against k
#
# It shows the coefficients of "some representative words", and concludes that little is left beyond k ≈ 200. For which
# words is that so? **Expect** it to hold for frequent words, whose coefficients peak near k = their rank. The peak of a
# word of middling frequency lies further out, and a rare word's beyond what we compute. Without `--quick` we compute
# 768 eigenvectors, to see what lies past 256.

# %%
_, V_far = (values, V) if QUICK else eigenvector_embeddings(C, 768)
rows = {}
print(f"\nCoefficients y_ik, k = 1 … {V_far.shape[1]}")
print(f"  {'word':<10} {'rank':>6} {'largest at k':>13} {'energy to 200':>14} {'201 … 256':>10} {'beyond':>7}")
for word in SAMPLES:
    y = pca_coefficients(V_far, vocabulary.index[word])                              # (k,)
    place = int(np.flatnonzero(by_count == vocabulary.index[word])[0]) + 1
    print(f"  {word:<10} {place:>6,} {np.argmax(abs(y)) + 1:>13} {np.sum(y[:200] ** 2):>14.3f} "
          f"{np.sum(y[200:n] ** 2):>10.3f} {1 - np.sum(y[:n] ** 2):>7.3f}")
    rows[f"{word}, {counts[vocabulary.index[word]]:,} times: {np.sum(y[:n] ** 2):.3f} kept"] = y
show(lab_04.coefficients(rows, n), "04_pca_coefficients")

# %% [markdown]
# ## What to take along
#
# - A corpus is a sequence of integers. Vectors are looked up when they are needed.
# - Eigenvector embeddings of raw counts spend one dimension on each of the most frequent words. They keep 71 % of
#   the text and 2 % of the vocabulary.
# - A rare word's vector is almost zero. Lab 05 trains a transformer to predict such vectors with a squared error,
#   and a vector that is almost zero is easy to predict.
#
# Try: W = 2 or W = 40 in Task 6.2. Which neighbours change? Try `C.log1p()` for `C.sqrt()`. Draw the energy figure
# with n = 64, and predict first where its border will be.
