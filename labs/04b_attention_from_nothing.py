# %% [markdown]
# # Lab 04b: attention from scratch, in six steps
#
# **Short path** (`README.md`), read in 35 minutes: all of it; steps 4 and 5 have attention's gradient.
#
# - **Goals:** build attention from a mean in six steps, say which questions each step can answer, write the backward of
#   each up to several heads, and give the reason for the 1/√m.
# - **Before it:** the chain rule, products of matrices, softmax (its gradient is derived again). **Work:** about 7
#   hours.
# - **Hand in:** `mean_of_words.backward`, `weighted_mean.backward`, `look_up.backward`, `one_head.backward`,
#   `heads.backward`; an experiment from “Try”.
#
# Sources: CSCI 567, lecture 8 (University of Southern California, spring 2024), second half: averaging word
# representations, weighted averaging, attention as soft look-up, self-attention, heads; "Multi-Head Attention
# Encoders", a course notebook; both after Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762).
#
# Lab 05 starts with equations (13) to (15) of a transformer. This lab builds up to them from scratch, one idea at a
# time:
#
# 1. no averaging: a word knows itself
# 2. the mean of all words
# 3. a weighted mean, whose weights are learned for each *place*
# 4. a soft look-up, whose weights depend on the words' *content*
# 5. queries, keys and values: three learned matrices decide what is compared and what is passed on
# 6. heads: several look-ups in parallel
#
# Each step answers a question that the step before it cannot. So each gets its formula, its gradient by hand, a figure
# that shows what it attends to and where its gradient flows, and its accuracy: how often its answer is right.
#
# Letters: **B** batch, **T** words of a text, **n** size of a word vector, **H** heads, **m** size of a head. The
# lecture's d is n here, and its $d_{attn}$ is m.
#
# It runs in a minute on one CPU core, a quarter of it with `--quick`.

# %%
from functools import partial

from _common import quick_mode, show, table
from _drawing import lab_04b
from _expect import about, above, at_most, below, expect
from mini_tf import ops
from mini_tf.gradcheck import gradcheck
from mini_tf.layers import MultiHeadAttention
from mini_tf.ops.updates import adam

import numpy as np

QUICK = quick_mode("Lab 04b: from no averaging to multi-head attention")
STEPS = 200 if QUICK else 400           # of one training run; each takes about a second

# %% [markdown]
# ## Six cards
#
# A text of T = 6 words, so small that you can solve it yourself: five cards with a name and a colour each, in random
# order, and a last one that names two of the five and has a colour of its own. The last card asks every question.
#
# A card's vector $x_t$ has n = 20 entries, all 0 but for three or four: its place, its name, the second name (of the
# last card only), its colour.
#
# | question | answer, for the text below |
# | --- | --- |
# | its own colour | gold |
# | the most frequent colour (in a tie, the last in the order of `COLOURS`) | green |
# | the third card's colour | blue |
# | the colour of the card named first: Cid's | red |
# | the colour of the card that follows it in the order of `NAMES`: Dot's | green |
# | the colours of both named cards, in order: Cid's, Ann's | red, blue |

# %%
NAMES, COLOURS, T = ["Ann", "Ben", "Cid", "Dot", "Eve"], ["red", "blue", "green", "gold"], 6
NAME, SECOND, COLOUR = slice(6, 11), slice(11, 16), slice(16, 20)
n = 20
QUESTIONS = "own", "most frequent", "third card", "first-named", "the one after", "both named"


def cards(names, colours, asked):
    """X (B, T, n) of names (B, 5), colours (B, 6) and asked (B, 2), all of them indices."""
    X = np.zeros((len(names), T, n))
    X[:, :, :T] = np.eye(T)
    X[:, :-1, NAME] = np.eye(5)[names]
    X[:, -1, NAME], X[:, -1, SECOND] = np.eye(5)[asked[:, 0]], np.eye(5)[asked[:, 1]]
    X[:, :, COLOUR] = np.eye(4)[colours]
    return X

# %%
def answers(question, names, colours, asked):
    """The right answers (B, 1), or (B, 2) for "both named"."""
    def colour_of(who):
        return colours[names == who[:, None]]            # each name is on one card

    first, second = asked.T
    names = np.pad(names, ((0, 0), (0, 1)), constant_values=-1)                      # the last card has none
    how_often = np.eye(4)[colours].sum(1)                # each colour (B, 4)
    right = {
        "own": [colours[:, -1]], "most frequent": [(how_often + 0.1 * np.arange(4)).argmax(1)],
        "third card": [colours[:, 2]], "first-named": [colour_of(first)], "the one after": [colour_of((first + 1) % 5)],
        "both named": [colour_of(first), colour_of(second)],
    }  # fmt: skip
    return np.stack(right[question], axis=1)


def texts(question, B, rng):
    """B random texts X (B, T, n), and the right answers"""
    names = rng.permuted(np.tile(np.arange(5), (B, 1)), axis=1)
    asked = rng.permuted(np.tile(np.arange(5), (B, 1)), axis=1)[:, :2]
    colours = rng.integers(4, size=(B, T))
    return cards(names, colours, asked), answers(question, names, colours, asked)


IN_WORDS = np.array([[3, 0, 4, 2, 1]]), np.array([[2, 1, 1, 0, 2, 3]]), np.array([[2, 0]])
EXAMPLE = cards(*IN_WORDS)
LABELS = ["Dot green", "Ann blue", "Eve blue", "Cid red", "Ben green", "Cid? Ann?\ngold"]

# %% [markdown]
# ### Training, the same for all six
#
# A step turns the text into one vector y (B, …). A linear readout gives the scores of the answer, $z = y \cdot R$, the
# loss is the softmax cross-entropy (`ops.cross_entropy`), and Adam updates R and the step's own parameters. Nothing is
# hidden: this is the whole training loop. Guessing is right 1 time in 4, or 1 in 16 for two colours.

# %%
FUNCTIONS, PARAMETERS, right, trained = {}, {}, {}, {}


def train(step, question, seed=0, B=128):
    """Train one step for one question, and store its accuracy on 2,000 new texts in right[step, question]."""
    rng = np.random.default_rng(seed)
    f, params = FUNCTIONS[step], PARAMETERS[step](rng)
    many = 2 if question == "both named" else 1           # answers
    params.append(np.zeros((f(EXAMPLE, *params)[0].shape[-1], many * 4)))         # R
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in params]
    for t in range(1, STEPS + 1):
        X, answer = texts(question, B, rng)
        y, backward = f(X, *params[:-1])
        _, loss_backward = ops.cross_entropy((y @ params[-1]).reshape(B * many, 4), answer.reshape(-1))
        dz = loss_backward()[0].reshape(B, -1)
        gradients = backward(dz @ params[-1].T)[1:] if len(params) > 1 else ()       # dX is not needed
        for p, g, (mean, square) in zip(params, [*gradients, y.T @ dz], moments):
            adam(p, g, mean, square, t, 0.02, (0.9, 0.99), 1e-8, 1.0)
    X, answer = texts(question, 2000, rng)
    z = (f(X, *params[:-1])[0] @ params[-1]).reshape(2000, many, 4)
    right[step, question], trained[step, question] = (z.argmax(-1) == answer).all(1).mean(), params


def compare(step, before, question):
    """Train a step and the one before it for a question, and compare them."""
    train(before, question)
    train(step, question)
    expect(f"{question}: {step}, right", above(0.97), right[step, question], quick=above(0.8), form="{:.1%}")
    expect(f"{question}: {before}, right", below(0.6), right[before, question], form="{:.1%}")

# %% [markdown]
# Once a step is trained, its gradient shows which cards matter to it: those whose vectors change the right answer's
# score.

# %%
def reaching(step, question):
    """‖dx_t‖ of each card of the example (T,): how much the right answer's score z changes with the card, once trained.

    With two answers, their scores are added.
    """
    *params, R = trained[step, question]
    _, backward = FUNCTIONS[step](EXAMPLE, *params)
    right_answers = answers(question, *IN_WORDS)[0] + [0, 4][: R.shape[1] // 4]      # columns of R
    dX = backward(R[:, right_answers].sum(1)[None])      # z = y·R
    return np.linalg.norm((dX[0] if params else dX)[0], axis=-1)

# %% [markdown]
# ## Step 1: no averaging
#
# $$
# y = x_T
# $$
#
# The last word's own vector. Its gradient goes to that word and to no other: $dx_T = dy$, and $dx_t = 0$ for the rest.
# A language model of this kind, which predicts each word from the one before it, is Lab 01's table of pairs.
#
# How often will it be right about its own colour, and how often about the third card's?

# %%
def no_averaging(X):
    """y = x_T, the last word:   X (B, T, n)  →  y (B, n)"""

    def backward(dy):
        dX = np.zeros_like(X)
        dX[:, -1] = dy
        return dX

    return X[:, -1], backward


FUNCTIONS["no averaging"], PARAMETERS["no averaging"] = no_averaging, lambda rng: []
rng = np.random.default_rng(4)
X = rng.standard_normal((2, 3, 4))                       # (B, T, n), for the gradient checks of all steps
print("\nStep 1: no averaging")
print(gradcheck(no_averaging, X))
for question in ("own", "third card"):
    train("no averaging", question)
expect("own: no averaging, right", 1, right["no averaging", "own"], form="{:.1%}")
expect("third card: no averaging, right", about(0.25, within=0.04), right["no averaging", "third card"], form="{:.1%}")
reached = reaching("no averaging", "own")
show(lab_04b.step("Step 1: no averaging", LABELS, {"": [0, 0, 0, 0, 0, 1]}, reached), "04b_no_averaging")

# %% [markdown]
# ## Step 2: the mean
#
# $$
# y = \frac{1}{T} \sum_t x_t = A \cdot X, \qquad A = \left(\tfrac1T \dots \tfrac1T\right)
# $$
#
# Every word contributes equally. Written as a product with a row A of weights, the gradient is $A^\top \cdot dy$: each
# word gets $dx_t = dy/T$. Steps 3 and 4 change only where A comes from.
#
# **Expect** it to know the most frequent colour, which step 1 can only guess from one of the six. What happens to y if
# the cards are shuffled?

# %%
def mean_of_words(X):
    """y = (1/T)·Σ_t x_t:   X (B, T, n)  →  y (B, n)"""
    T = X.shape[1]

    def backward(dy):
        return np.repeat(dy[:, None] / T, T, axis=1)     # (B, T, n)

    return X.mean(axis=1), backward


FUNCTIONS["mean"], PARAMETERS["mean"] = mean_of_words, lambda rng: []
print("\nStep 2: the mean")
print(gradcheck(mean_of_words, X))
compare("mean", "no averaging", "most frequent")
shuffled = mean_of_words(X[:, rng.permutation(3)])[0]
expect("largest change of the mean by shuffling", at_most(1e-15), abs(shuffled - mean_of_words(X)[0]).max())
show(lab_04b.step("Step 2: the mean", LABELS, {"": np.full(T, 1 / T)}, reaching("mean", "most frequent")), "04b_mean")

# %% [markdown]
# ## Step 3: a weighted mean
#
# $$
# w = \operatorname{softmax}(s), \qquad y = \sum_t w_t\,x_t
# $$
#
# One number $s_t$ for each place is learned, and softmax turns them into weights, positive and with sum 1. With $s = 0$
# this is the mean. The gradient flows along two paths, to the words and to their weights:
#
# $$
# dx_t = w_t\,dy, \qquad dw_t = x_t \cdot dy, \qquad ds_t = w_t\,\Bigl(dw_t - \sum_u w_u\,dw_u\Bigr)
# $$
#
# $ds_t$ compares: a word whose $dw_t$ is above the weighted mean of all has a positive $ds_t$, and descent takes weight
# from it and gives it to the others. **Expect** it to know the third card's colour, with nearly all the weight on place
# 3; from the mean the best guess is that the third card has the most frequent colour.

# %%
def weighted_mean(X, s):
    """y = Σ_t w_t·x_t, w = softmax(s):   X (B, T, n), s (T,)  →  y (B, n)"""
    e = np.exp(s - s.max())
    w = e / e.sum()                                      # (T,)
    y = np.einsum("t,btn->bn", w, X)

    def backward(dy):
        dX = w[:, None] * dy[:, None]                    # (B, T, n)
        dw = np.einsum("bn,btn->t", dy, X)
        ds = w * (dw - w @ dw)
        return dX, ds

    return y, backward


FUNCTIONS["weighted mean"], PARAMETERS["weighted mean"] = weighted_mean, lambda rng: [np.zeros(T)]
print("\nStep 3: a weighted mean")
print(gradcheck(weighted_mean, X, rng.standard_normal(3)))
compare("weighted mean", "mean", "third card")
w, _ = ops.softmax(trained["weighted mean", "third card"][0])
expect("weight of the third place", above(0.85), w[2], quick=above(0.6), form="{:.3f}")
reached = reaching("weighted mean", "third card")
show(lab_04b.step("Step 3: a weighted mean", LABELS, {"": w}, reached), "04b_weighted_mean")

# %% [markdown]
# ## Step 4: a soft look-up
#
# A dictionary compares a query with its keys and returns the value of the key that matches. Places are no help here,
# because the card asked for can be anywhere. So the weights have to depend on the cards' content. With a query q, keys
# $k_t$ and values $v_t$ for each card:
#
# $$
# S_t = q \cdot k_t, \qquad A = \operatorname{softmax}(\beta S), \qquad y = \sum_t A_t\,v_t
# $$
#
# β sets how sharp the weights are: at β = 0, y is the mean, and as β grows it approaches the one value whose key fits
# best, the dictionary's answer. But unlike a dictionary it is differentiable everywhere, so it can learn (dS is the
# gradient with respect to βS):
#
# $$
# dv_t = A_t\,dy, \qquad dA_t = v_t \cdot dy, \qquad dS_t = A_t\,\Bigl(dA_t - \sum_u A_u\,dA_u\Bigr), \qquad
# dq = \beta \sum_t dS_t\,k_t, \qquad dk_t = \beta\,dS_t\,q, \qquad d\beta = \sum_t dS_t\,S_t
# $$
#
# For now we choose queries, keys and values ourselves: the query is the last card's first name, the keys are the other
# cards' names, and the values are the whole cards. Only β is learned. **Expect** it to know the colour of the card
# named first. Which cards will have a gradient? (The last one, too, although it is not among the values: its query
# decides where the weight goes, so it receives dq.)

# %%
def look_up(query, keys, values, beta):
    """y = Σ_t A_t·v_t, A_t = softmax_t(β·q·k_t)

    query (B, m), keys (B, T, m), values (B, T, n), beta (1,)  →  y (B, n)
    """
    S = np.einsum("bm,btm->bt", query, keys)             # how well each key fits
    A, softmax_backward = ops.softmax(beta * S)          # (B, T)
    y = np.einsum("bt,btn->bn", A, values)

    def backward(dy):
        dvalues = A[:, :, None] * dy[:, None]            # (B, T, n)
        dS = softmax_backward(np.einsum("bn,btn->bt", dy, values))                   # of β·S
        dquery = beta * np.einsum("bt,btm->bm", dS, keys)
        dkeys = beta * dS[:, :, None] * query[:, None]   # (B, T, m)
        return dquery, dkeys, dvalues, np.array([(dS * S).sum()])

    return y, backward


# %%
def look_up_name(X, beta):
    """Step 4 for the cards: the last card's first name is looked up among the names of the others."""
    y, backward = look_up(X[:, -1, NAME], X[:, :-1, NAME], X[:, :-1], beta)

    def backward_to_cards(dy):
        dquery, dkeys, dvalues, dbeta = backward(dy)
        dX = np.zeros_like(X)
        dX[:, :-1] = dvalues
        dX[:, :-1, NAME] += dkeys                        # a name is key and part of the value: its gradients add
        dX[:, -1, NAME] = dquery
        return dX, dbeta

    return y, backward_to_cards


FUNCTIONS["soft look-up"], PARAMETERS["soft look-up"] = look_up_name, lambda rng: [np.ones(1)]
print("\nStep 4: a soft look-up")
print(gradcheck(look_up, rng.standard_normal((2, 4)), rng.standard_normal((2, 3, 4)), X, np.array([1.5])))
compare("soft look-up", "weighted mean", "first-named")
beta = trained["soft look-up", "first-named"][0]
A, _ = ops.softmax(beta * EXAMPLE[0, :-1, NAME] @ EXAMPLE[0, -1, NAME])
print(f"  β has grown from 1 to {beta[0]:.1f}")
expect("weight of Cid's card, which was asked for", above(0.85), A[3], quick=above(0.6), form="{:.3f}")
reached = reaching("soft look-up", "first-named")
expect("gradient at the last card, in parts of Cid's", above(0.1), reached[-1] / reached[3], form="{:.2f}")
show(lab_04b.step("Step 4: a soft look-up", LABELS, {"": [*A, 0]}, reached), "04b_look_up")

# %% [markdown]
# ## Step 5: queries, keys and values
#
# Who decides what is query, key and value? In step 4 we did. Now each word computes its own three vectors, with three
# learned matrices:
#
# $$
# Q = X W_q, \quad K = X W_k, \quad V = X W_v, \qquad A = \operatorname{softmax}(Q K^\top/\sqrt m), \qquad Y = A\,V
# $$
#
# Now every word has a query, so A is (T, T): row t holds the weights of word t. What is compared is not the words
# themselves but their images under $W_q$ and $W_k$, so a word can look for something *unlike* itself. The gradient
# takes the same steps backwards:
#
# $$
# dV = A^\top dY, \quad dA = dY\,V^\top, \quad dS = \text{softmax's backward of } dA, \quad
# dQ = dS\,K/\sqrt m, \quad dK = dS^\top Q/\sqrt m
# $$
#
# and $dW_q = X^\top dQ$, as for any product ($dW_k$ and $dW_v$ likewise). X was used three times, so its three
# gradients add up.
#
# **Expect** it to know the colour of the card *after* the one named first: $W_q$ and $W_k$ have to learn which name
# follows which. Step 4 can only find the card that is named.

# %%
def one_head(X, Wq, Wk, Wv):
    """Y = softmax(Q·Kᵀ/√m)·V:   X (B, T, n), Wq, Wk, Wv (n, m)  →  Y (B, T, m)"""
    scale = Wq.shape[1] ** -0.5
    Q, K, V = X @ Wq, X @ Wk, X @ Wv                     # (B, T, m) each
    A, softmax_backward = ops.softmax(scale * Q @ K.swapaxes(1, 2))                  # (B, T, T)

    def backward(dY):
        dV = A.swapaxes(1, 2) @ dY
        dS = scale * softmax_backward(dY @ V.swapaxes(1, 2))
        dQ, dK = dS @ K, dS.swapaxes(1, 2) @ Q
        dX = dQ @ Wq.T + dK @ Wk.T + dV @ Wv.T           # used three times
        dWq, dWk, dWv = (np.einsum("btn,btm->nm", X, each) for each in (dQ, dK, dV))
        return dX, dWq, dWk, dWv

    return A @ V, backward


def last_of(f):
    """The same for the last word only: Y[:, −1]"""

    def last(X, *params):
        Y, backward = f(X, *params)
        return Y[:, -1], lambda dy: backward(np.pad(dy[:, None], ((0, 0), (X.shape[1] - 1, 0), (0, 0))))

    return last


# %%
m = 16
FUNCTIONS["one head"] = last_of(one_head)
PARAMETERS["one head"] = lambda rng: list(rng.standard_normal((3, n, m)) / n**0.5)
print("\nStep 5: queries, keys and values")
print(gradcheck(one_head, X, *rng.standard_normal((3, 4, 3))))
compare("one head", "soft look-up", "the one after")


def attention_map(X, Wq, Wk):
    return ops.softmax(X @ Wq @ (X @ Wk).swapaxes(-1, -2) * Wq.shape[-1] ** -0.5)[0]


A = attention_map(EXAMPLE[0], *trained["one head", "the one after"][:2])             # (T, T)
expect("weight of Dot's card, the one after Cid", above(0.85), A[-1, 0], quick=above(0.5), form="{:.3f}")
reached = reaching("one head", "the one after")
show(lab_04b.step("Step 5: queries, keys and values", LABELS, {"": A[-1]}, reached), "04b_one_head")

# %% [markdown]
# ### Why 1/√m
#
# A score is a sum of m products. If the entries of q and k are independent, of mean 0 and variance 1, each product has
# mean 0 and variance 1, and the variances add: $\operatorname{Var}(q \cdot k) = m$. A typical score has size $\sqrt m$,
# and with large scores softmax saturates: it puts all its weight on one word. Its slope is then almost 0:
# $dS_t = A_t\,(dA_t - \sum_u A_u\,dA_u)$ vanishes where $A_t = 0$, and also where $A_t = 1$. Divided by $\sqrt m$, the
# scores have variance 1 for any m.
#
# Without the division, how much of the gradient will pass for m = 1,024, compared with m = 4? And with it?

# %%
sizes, passed, rows = [4, 16, 64, 256, 1024], {"without": [], "with 1/√m": []}, []
for size in sizes:
    query, key = rng.standard_normal((2000, 1, size)), rng.standard_normal((2000, 16, size))
    scores = (query * key).sum(-1)                       # (2000, 16)
    for name, S in zip(passed, (scores, scores * size**-0.5)):
        A, softmax_backward = ops.softmax(S)
        dA = rng.standard_normal(A.shape)
        slope = np.median(np.linalg.norm(softmax_backward(dA), axis=1) / np.linalg.norm(dA, axis=1))
        passed[name].append(slope)
        rows.append((size, name, S.var(), np.median(A.max(1)), slope))
table(("m", "1/√m", "variance of a score", "largest weight, median", "‖dS‖/‖dA‖, median"),
      sorted(rows, key=lambda row: row[1] == "with 1/√m"), ("{}", "{:.3g}", "{:.3g}", "{:.3g}"),
      title="Why 1/√m: 2,000 queries, 16 keys each, random with variance 1")  # fmt: skip
expect("variance of a score divided by m, m = 1,024", about(1, within=0.03), scores.var() / size, form="{:.2f}")
expect("m = 1,024: of the gradient passes, without", below(0.001), passed["without"][-1])
expect("m = 1,024: of the gradient passes, with 1/√m", about(0.069, within=0.004), passed["with 1/√m"][-1])
show(lab_04b.slopes(sizes, passed), "04b_scale")

# %% [markdown]
# ## Step 6: heads
#
# One head computes one mean. Asked for two colours *in order*, it would have to return both and say which is whose, and
# a mean of the two cards does not tell. So let H heads attend at the same time, each with its own matrices, and add up
# their results, each multiplied by its own matrix $W_h$:
#
# $$
# Y = \sum_h Y_h W_h = [Y_1 \dots Y_H] \begin{bmatrix} W_1 \\ \vdots \\ W_H \end{bmatrix} = [Y_1 \dots Y_H]\,W
# $$
#
# A sum of products is one product of block matrices: that is what "concatenate, then multiply by W" means, and why the
# sum over heads of lab 05 (equations 14 and 15 of its source) and Vaswani's concatenation are the same. For the same
# reason one matrix (n, H·m) holds all heads' $W_q$, and head h owns the columns from h·m to (h + 1)·m.
#
# Backward, $dY_h = dY\,W_h^\top$: each head gets its own columns of $dY\,W^\top$; from there on it is step 5, H times.
# **Expect** two heads to answer for both names, each attending to one of the two cards.

# %%
def heads(X, Wq, Wk, Wv, W, H):
    """Y = [Y_1 … Y_H]·W, Y_h as in step 5:   X (B, T, n), Wq, Wk, Wv (n, H·m), W (H·m, n)  →  Y (B, T, n)"""
    own = np.split(np.arange(W.shape[0]), H)             # the columns of each head
    outputs, backwards = zip(*(one_head(X, Wq[:, h], Wk[:, h], Wv[:, h]) for h in own))
    together = np.concatenate(outputs, axis=-1)          # (B, T, H·m)

    def backward(dY):
        dW = np.einsum("btm,btn->mn", together, dY)
        dtogether = dY @ W.T
        dXs, *dWs = zip(*(back(dtogether[:, :, h]) for h, back in zip(own, backwards)))
        return sum(dXs), *(np.concatenate(each, axis=1) for each in dWs), dW

    return together @ W, backward


# %%
FUNCTIONS["two heads"] = last_of(partial(heads, H=2))
PARAMETERS["two heads"] = lambda rng: [*(rng.standard_normal((3, n, 2 * m)) / n**0.5), np.eye(2 * m, n)]
print("\nStep 6: heads")
small = [*rng.standard_normal((3, 4, 6)), rng.standard_normal((6, 4))]               # n = 4, H = 2, m = 3
print(gradcheck(partial(heads, H=2), X, *small, name="heads"))
one_by_one = sum(one_head(X, *(each[:, h] for each in small[:3]))[0] @ small[3][h] for h in (slice(0, 3), slice(3, 6)))
by_layer = MultiHeadAttention(n=4, H=2, m=3, rng=rng, dtype=np.float64, scale=3**-0.5)
for layer, data in zip((by_layer.query, by_layer.key, by_layer.value, by_layer.output), small):
    layer.W.data = data
Y, _ = heads(X, *small, H=2)
expect("sum over heads − concatenation, largest entry", at_most(1e-13), abs(one_by_one - Y).max())
expect("ours − mini_tf's MultiHeadAttention, largest", at_most(1e-13), abs(by_layer(X)[0] - Y).max())
compare("two heads", "one head", "both named")
Wq, Wk = trained["two heads", "both named"][:2]
maps = {f"head {h + 1}": attention_map(EXAMPLE[0], Wq[:, own], Wk[:, own])[-1]
        for h, own in enumerate((slice(0, m), slice(m, 2 * m)))}  # fmt: skip
looks = sorted(LABELS[weights.argmax()] for weights in maps.values())
expect("cards that the two heads attend to most", "Ann blue, Cid red", ", ".join(looks), quick=None)
show(lab_04b.step("Step 6: heads", LABELS, maps, reaching("two heads", "both named")), "04b_two_heads")

# %% [markdown]
# ## The whole ladder
#
# Each step, trained for each question. **Expect** a staircase: a step answers its own question, and those of the steps
# that it contains. The mean is a weighted mean with equal weights, and no averaging one with all weight on the last
# place, so step 3 contains both. Step 4 uses neither the places nor the last card's content, so it loses the first
# three questions again. Step 5 answers them all: a place is part of a word's vector, and $W_q$ and $W_k$ can compare
# it.

# %%
for step in FUNCTIONS:
    for question in QUESTIONS:
        if (step, question) not in right:
            train(step, question)
shares = np.array([[right[step, question] for question in QUESTIONS] for step in FUNCTIONS])          # (6, 6)
table(("", *QUESTIONS), dict(zip(FUNCTIONS, shares)), "{:.1%}", title="The whole ladder: right answers")
expect("worst answer on the diagonal, right", above(0.97), shares.diagonal().min(), quick=above(0.8), form="{:.1%}")
expect("best answer one above the diagonal, right", below(0.6), np.diag(shares, 1).max(), form="{:.1%}")
expect("two heads, worst question, right", above(0.97), shares[-1].min(), quick=above(0.8), form="{:.1%}")
expect("soft look-up, its own colour: a guess, right", about(0.25, within=0.04), shares[3, 0], form="{:.1%}")
show(lab_04b.ladder(list(FUNCTIONS), QUESTIONS, shares), "04b_ladder")

# %% [markdown]
# ## What to remember
#
# - Attention is a weighted mean, $Y = A X$; the steps differ in where its weights A come from. So the gradient has two
#   parts: through the values, $A^\top dY$, and through the weights, where softmax's backward compares each word with
#   the weighted mean of all.
# - Queries and keys decide which word attends to which; values are what is passed on.
# - From step 2 on, each step answers a question that the one before it cannot: it is right at least 97 % of the time,
#   the one before it at most 55 %.
# - $1/\sqrt m$ keeps the scores' variance at 1, and softmax lets the same share of the gradient through
#   whatever m is: 7 % with 16 keys.
# - Heads are added up; concatenating them is a way to write that sum as one product.
#
# **Try:** take $1/\sqrt m$ out of `one_head`, with m = 256. Use one matrix for both, $W_q = W_k$: which questions are
# lost? Leave the place out of the cards: which ones are lost now? Add a third name to the last card: how many heads
# does that take?
