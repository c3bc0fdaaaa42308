# %% [markdown]
# # Lab 10b: wrong gradients
#
# - **Goals:** tell from a checker's report or a scatter plot what kind of mistake a backward has; say what a naive
#   check misses, and why a falling loss proves nothing.
# - **Before it:** exercises 01, 03 and 06, or the gradients of Labs 04b and 07. **Work:** about 4 hours.
# - **Hand in:** `measured_slopes`, `slope_and_scatter`, `cosine`; an experiment from “Try”.
#
# Source: 10-417/617, Intermediate Deep Learning, Carnegie Mellon University, fall 2022, recitation to homework 3a (no
# address is printed on its slides), whose gradients `10_gradients_by_hand.py` derives. The mistakes are ours.
#
# Every gradient in mini_tf is written by hand, so it can be wrong.
#
# It runs in three to four minutes on one CPU core, ten seconds with `--quick` (too short for section 2's differences to
# mean much: read those off the full run).
#
# Letters: **T** history length in words, **n** size of a word vector, **m** size of a head, **c** vocabulary size.

# %%
import math
from functools import partial

from _common import cosines, quick_mode, show, table
from _drawing import lab_10
from _expect import about, above, at_least, at_most, below, between, expect
from mini_tf import ops
from mini_tf.gradcheck import gradcheck, judge
from mini_tf.metrics import unigram_cross_entropy
from mini_tf.models import LanguageTransformer
from mini_tf.ops.op import replaced
from mini_tf.progress import training_progress
from mini_tf.text import shakespeare
from mini_tf.training import Adam, RandomWindows, Schedule, Training, Watcher, fit, mean_loss
from mini_tf.training.language import prepare

import numpy as np

QUICK = quick_mode("Lab 10b: wrong gradients: what the checker says about them, and what they do to training")

# %% [markdown]
# ## 1. A gallery of wrong gradients
#
# Here are thirteen mistakes that people make, each in the few lines of a backward; the forwards are all right. Read
# each one before you look at the checker's report: could you tell the mistake from the report?
#
# We compare `gradcheck` with a naive check, of the kind that people write first: an upstream gradient of ones, a step
# of $10^{-6}$, and FAIL where the difference is above $10^{-2}$. It misses five kinds of mistakes:
#
# - those that an upstream gradient of ones cannot reveal: softmax and layer norm have slope 0 in that direction, so a
#   wrong factor or a missing term can vanish,
# - those that are small,
# - those in gradients that are themselves small,
# - violations of the contract that no value shows, such as writing into dy,
# - those that have no effect at the point where it measures, a *blind point*. At γ = 1, its initial value, a forgotten
#   γ changes nothing. The checker therefore also measures at a second point, with its own random numbers.
#
# **Expect** the checker to catch all thirteen, one of them also at a blind point, and the naive check to miss six of
# these fourteen cases.
#
# In most reports you will see "One change makes it right". The checker has found that change by trying, and verified it
# with other numbers and other sizes. **Expect** it for at least eleven of the fourteen. It is a change that works, not
# always the one that you would make: look for those that fix the mistake in another way. Lab 10c shows how a machine
# finds it. Where there is none, the report lists the lines in which the mistake can be.

# %%
def gelu_mixed(x):
    """exact forward, backward of the tanh form"""
    y, _ = ops.gelu(x)
    _, backward = ops.gelu(x, approximate=True)
    return y, backward


def layer_norm_missing_term(x, gamma, beta):
    """dx without − x̂·mean(g·x̂): as if the variance did not depend on x"""
    y, right = ops.layer_norm(x, gamma, beta)
    r = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def backward(dy):
        g = dy * gamma
        return r * (g - g.mean(-1, keepdims=True)), *right(dy)[1:]

    return y, backward


def softmax_diagonal(z):
    """only ∂y_i/∂z_i: a larger z_i takes nothing from the others"""
    y, _ = ops.softmax(z)
    return y, lambda dy: dy * y * (1 - y)


def softmax_twice(z):
    """twice the gradient"""
    y, right = ops.softmax(z)
    return y, lambda dy: 2 * right(dy)


# %% [markdown]
# A sign, a sum instead of a mean, an `=` instead of `+=`, a mask, a transpose:

# %%
def mse_wrong_sign(prediction, target):
    """dtarget has the sign of dprediction"""
    loss, right = ops.mse(prediction, target)

    def backward(dloss=1.0):
        dprediction, _ = right(dloss)
        return dprediction, dprediction

    return loss, backward


def mean_pool_without_1_over_T(x):
    """each word gets all of dy, as if y were the sum"""
    y, _ = ops.mean_pool(x)
    return y, lambda dy: np.broadcast_to(dy[..., None, :], x.shape).copy()


def embedding_assigns(table, ids):
    """= instead of +=: a word that occurs twice keeps only its last gradient"""
    x, _ = ops.embedding(table, ids)

    def backward(dx):
        dtable = np.zeros_like(table)
        dtable[ids] = dx
        return dtable, None

    return x, backward


def residual_relu_without_mask(x, y):
    """dy passes where relu was off"""
    z = x + np.maximum(y, 0)
    return z, lambda dz: (dz, dz.copy())


def linear_transposed(x, W):
    """dx = dy·W for dy·Wᵀ; W is square, so every shape fits"""
    y, right = ops.linear(x, W)
    return y, lambda dy: (dy @ W, right(dy)[1])


# %% [markdown]
# A scale, another mask, a factor that is 1 at first, and an array that may belong to another function:

# %%
def attention_unscaled_key(query, key, value):
    """dkey without the factor 1/√m"""
    scale = query.shape[-1] ** -0.5
    y, right = ops.attention(query, key, value, scale=scale)

    def backward(dY):
        dquery, dkey, dvalue, _, _ = right(dY)           # None for mask and bias, which are not there
        return dquery, dkey / scale, dvalue

    return y, backward


past = np.tri(4, dtype=bool)


def attention_unmasked_backward(query, key, value):
    """causal; the backward computes the attention again, to save memory, and forgets the mask"""
    y, _ = ops.attention(query, key, value, past)
    _, backward = ops.attention(query, key, value)
    return y, lambda dY: backward(dY)[:3]


def layer_norm_without_gamma(x, gamma, beta):
    """dx as if γ were 1"""
    y, right = ops.layer_norm(x, gamma, beta)
    _, plain = ops.layer_norm(x, np.ones_like(gamma), beta)
    return y, lambda dy: (plain(dy)[0], *right(dy)[1:])


def relu_in_place(x):
    """right, but written into dy, which may belong to another function, say to a skip connection"""
    on = x > 0

    def backward(dy):
        dy *= on
        return dy

    return np.maximum(x, 0), backward


# %% [markdown]
# Here are all thirteen, each with the right function and inputs for both. The last one appears twice, with a random γ
# and at its blind point, γ = 1.

# %%
def causal_attention(query, key, value):
    return ops.attention(query, key, value, past)[0], lambda dY: ops.attention(query, key, value, past)[1](dY)[:3]


def scaled_attention(query, key, value):
    y, right = ops.attention(query, key, value, scale=query.shape[-1] ** -0.5)
    return y, lambda dY: right(dY)[:3]


rng = np.random.default_rng(10)
draw = rng.standard_normal
gelu_x = np.random.default_rng(2).standard_normal((4, 6))
words, ones, gamma = draw((3, 5)), np.ones(5), 1 + 0.5 * draw(5)
heads = [draw((2, 4, 3)) for _ in range(3)]              # query, key, value: 2 heads, 4 words, m = 3
GALLERY = {                                              # the mistake, the right function, its inputs
    "layer norm: a mean term missing": (layer_norm_missing_term, ops.layer_norm, (words, ones, 0 * ones)),
    "softmax: the diagonal only": (softmax_diagonal, ops.softmax, (words,)),
    "softmax: twice the gradient": (softmax_twice, ops.softmax, (words,)),
    "mse: the sign of dtarget": (mse_wrong_sign, ops.mse, (0.5 * draw((40, 40)), 0.5 * draw((40, 40)))),
    "mean pool: 1/T forgotten": (mean_pool_without_1_over_T, ops.mean_pool, (draw((6, 4, 5)),)),
    "embedding: repeated ids dropped": (embedding_assigns, ops.embedding, (draw((6, 4)), np.array([3, 1, 3, 5, 3]))),
    "residual relu: mask lost": (residual_relu_without_mask, ops.residual_relu, (draw((3, 5)), draw((3, 5)))),
    "linear: W for Wᵀ": (linear_transposed, ops.linear, (draw((3, 4)), draw((4, 4)))),
    "attention: dkey unscaled": (attention_unscaled_key, scaled_attention, heads),
    "attention: backward unmasked": (attention_unmasked_backward, causal_attention, heads),
    "gelu: backward of the tanh form": (gelu_mixed, ops.gelu, (gelu_x,)),
    "relu: written into dy": (relu_in_place, ops.relu, (draw((3, 5)),)),
    "layer norm: γ forgotten, γ drawn": (layer_norm_without_gamma, ops.layer_norm, (words, gamma, 0 * ones)),
    "layer norm: γ forgotten, at γ = 1": (layer_norm_without_gamma, ops.layer_norm, (words, ones, 0 * ones)),
}


# %% [markdown]
# The naive check:

# %%
def gradients(f, inputs, dy=None):
    """The gradients of the floating inputs, a long row each; dy: ones by default"""
    y, backward = f(*inputs)
    returned = backward(np.ones_like(y) if dy is None else np.copy(dy))
    returned = returned if isinstance(returned, tuple) else (returned,)
    return [np.ravel(d) for d in returned if d is not None]


def measured_slopes(f, inputs, h=1e-6):
    """The slopes of the sum of y, where y, backward = f(*inputs), by central differences with step h

    inputs: arrays, the same again afterwards; those of integers have no slopes
    →  one long row: a slope for each entry of the first input, then of the second, and so on
    """
    slopes = []
    for x in inputs:
        for i in range(x.size) if x.dtype.kind == "f" else ():
            before = x.flat[i]
            x.flat[i] = before + h
            upper = np.sum(f(*inputs)[0])
            x.flat[i] = before - h
            lower = np.sum(f(*inputs)[0])
            x.flat[i] = before
            slopes.append((upper - lower) / (2 * h))
    return np.array(slopes)


def naive_check(f, inputs):
    """dy = 1, one step of 1e-6, tolerance 1e-2"""
    inputs = [x.copy() for x in inputs]
    yours = np.concatenate(gradients(f, inputs))
    return bool((np.abs(yours - measured_slopes(f, inputs)) < 1e-2).all())


# %%
caught, rows, repaired = {}, {}, 0
print("1. Wrong gradients, and what the checker says about each")
for name, (wrong, right, inputs) in GALLERY.items():
    report = gradcheck(wrong, *inputs)
    print(f"\n--- {name}: {wrong.__doc__.splitlines()[0]}")
    print(report.explain())
    repaired += report.repair is not None
    y, _ = right(*inputs)
    dy = draw(np.shape(y)) if np.ndim(y) else 1.0
    both = list(zip(gradients(wrong, inputs, dy), gradients(right, inputs, dy)))
    pair = max(both, key=lambda pair: np.linalg.norm(pair[0] - pair[1]))     # of the input with the largest error
    assert judge(right, *inputs), name                   # the right one passes
    assert naive_check(right, inputs), name
    caught[name] = bool(report), naive_check(wrong, inputs), pair
    off = np.linalg.norm(pair[0] - pair[1]) / np.linalg.norm(pair[1])
    rows[name] = off, *("missed" if passed else "caught" for passed in caught[name][:2])
table(("mistake", "off", "gradcheck", "naive check"), rows, "{:.2g}",
      "1. Summary: which check caught it? Off: ‖wrong − right‖ / ‖right‖, worst input, random dy")  # fmt: skip

# %%
missed = [name for name, (_, naive_passed, _) in caught.items() if naive_passed]
expect("caught by gradcheck, of 14 cases", 14, sum(not passed for passed, _, _ in caught.values()))
expect("with one change that makes it right", at_least(11), repaired)
expect("missed by the naive check", 6, len(missed))
expect("one of them at the blind point γ = 1", True, "layer norm: γ forgotten, at γ = 1" in missed)

# %% [markdown]
# ### What a wrong gradient looks like
#
# Plot your gradient against the right one (or the measured one), one point per entry. A right gradient lies on the
# diagonal, the grey line, and many mistakes have a characteristic shape. Two numbers describe it: the slope of the
# best-fitting line through 0, and the scatter around this line, relative to the length of the wrong gradient, ‖wrong −
# slope · right‖/‖wrong‖.
#
# **Expect**
#
# - a line of a different slope for a factor: −1 for a sign, T = 4 for a forgotten 1/T, $\sqrt m = \sqrt 3$ for a
#   forgotten $1/\sqrt m$, all without scatter,
# - a vertical line of points where something should be 0: with the lost mask, every entry whose right gradient is 0
#   gets a nonzero one,
# - a few stray points where repeated ids were dropped: the 4 entries of one word's row, of 24,
# - a cloud for a wrong product, with a scatter above 0.5,
# - a cloud around the diagonal, of slope 1, where a term of layer norm is missing: that term is at right angles to the
#   right gradient.

# %%
FACES = (
    "mse: the sign of dtarget", "mean pool: 1/T forgotten", "attention: dkey unscaled", "residual relu: mask lost",
    "embedding: repeated ids dropped", "linear: W for Wᵀ", "softmax: the diagonal only",
    "layer norm: a mean term missing",
)  # fmt: skip


def slope_and_scatter(wrong, right):
    """The slope for which slope·right is nearest to wrong (least squares), and ‖wrong − slope·right‖/‖wrong‖

    wrong, right (entries,)  →  two numbers
    """
    slope = wrong @ right / (right @ right)
    return slope, np.linalg.norm(wrong - slope * right) / np.linalg.norm(wrong)


faces = {name: caught[name][2] for name in FACES}
looks = {name: slope_and_scatter(*pair) for name, pair in faces.items()}
table(("mistake", "slope", "scatter"), looks, "{:.2f}", "1. Faces")
show(lab_10.faces(faces), "10_faces")

# %%
factors, (wrong, right) = list(looks.values())[:3], faces["residual relu: mask lost"]
expect("slopes of the first three", "-1.00 4.00 1.73", " ".join(f"{slope:.2f}" for slope, _ in factors))
expect("their greatest scatter", at_most(1e-12), max(scatter for _, scatter in factors))
expect("lost mask: entries on the vertical line", np.sum(right == 0), np.sum((right == 0) & (wrong != 0)))
expect("dropped ids: stray points", 4, np.sum(np.subtract(*faces["embedding: repeated ids dropped"]) != 0))
expect("wrong product: scatter", above(0.5), looks["linear: W for Wᵀ"][1])
around = looks["layer norm: a mean term missing"]
expect("missing term: slope", about(1, within=0.01), around[0], form="{:.2f}")
expect("missing term: scatter", between(0.1, 0.9), around[1], form="{:.2f}")

# %% [markdown]
# ## 2. Why a wrong gradient still trains
#
# "It trains, so the gradients are right" is a test that many people trust. Lab 07's transformer with the shared
# readout, here with four layers, learns Shakespeare with right gradients and with five kinds of wrong ones:
#
# - layer norm without its two mean terms: $dx = r \cdot \gamma \cdot dy$;
# - attention whose dkey is half of what it should be;
# - a residual step whose relu passes everything back;
# - attention whose queries and keys get gradients of the wrong sign: they go *uphill*;
# - attention that returns nothing but zeros.
#
# Layers call `ops.layer_norm` through the module, so we can replace it by a wrong function temporarily. The initial
# weights and the batches are the same; only the backward differs. For comparison, we also train with right gradients
# and other initial weights.
#
# **Expect** FAIL for each of the five.

# %%
def layer_norm_no_means(x, gamma, beta):
    y, right = ops.layer_norm(x, gamma, beta)
    r = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y, lambda dy: (r * gamma * dy, *right(dy)[1:])


def attention_half_key(query, key, value, mask=None, scale=1.0, bias=None):
    y, right = ops.attention(query, key, value, mask, scale, bias)

    def backward(dY):
        dquery, dkey, *rest = right(dY)
        return dquery, 0.5 * dkey, *rest

    return y, backward


def attention_uphill(query, key, value, mask=None, scale=1.0, bias=None):
    y, right = ops.attention(query, key, value, mask, scale, bias)

    def backward(dY):
        dquery, dkey, *rest = right(dY)
        return -dquery, -dkey, *rest

    return y, backward


def attention_zeros(query, key, value, mask=None, scale=1.0, bias=None):
    y, right = ops.attention(query, key, value, mask, scale, bias)
    return y, lambda dY: tuple(None if d is None else 0 * d for d in right(dY))


# %%
RUNS = {                                                 # what is put into ops, options of the model
    "right": ({}, {}),
    "right, other weights": ({}, {"seed": 1}),
    "layer norm: no means": ({"layer_norm": layer_norm_no_means}, {}),
    "attention: dkey halved": ({"attention": attention_half_key}, {}),
    "residual: mask lost": ({"residual_relu": residual_relu_without_mask}, {}),
    "attention: uphill": ({"attention": attention_uphill}, {}),
    "attention: zeros": ({"attention": attention_zeros}, {}),
}


def in_their_place(functions):
    """Within the block, mini_tf uses these functions instead of its ops: {name of the op: function}."""
    return replaced({getattr(ops, name): function for name, function in functions.items()})


alone = {"layer_norm": (words, gamma, 0 * ones), "attention": heads, "residual_relu": (words, draw((3, 5)))}
verdicts = [judge(function, *alone[place]).verdict
            for functions, _ in RUNS.values() for place, function in functions.items()]  # fmt: skip
print("\n2. The wrong functions by themselves")
expect("FAIL, of five", 5, verdicts.count("FAIL"))

# %% [markdown]
# Which losses go down? A descent step need not follow the gradient: if it is small, any direction at less than 90° to
# steepest descent will do, and so will any gradient whose cosine with the right one is above 0. (This holds exactly for
# plain gradient descent; Adam, which is used here, also rescales every entry.) The readout's own gradient is right in
# all of them, and the readout can make use of features that are badly trained, or not trained at all.

# %%
T, n = 32, 32 if QUICK else 64
train_steps, batch, TESTED = (18, 8, 300) if QUICK else (300, 16, 3000)
print("\nThe corpus")
corpus = prepare(shakespeare(), n, T, say=print)
c = len(corpus.vocabulary)
length = np.linalg.norm(corpus.embeddings[corpus.train], axis=1).mean()
embeddings = corpus.embeddings * np.float32((n / 2) ** 0.5 / length)
unigram = unigram_cross_entropy(corpus.ids[: T - len(corpus.test)], corpus.test[T:], c)


def new_model(**options):
    recipe = {
        "T": T, "L": 4, "H": 4, "m": 16, "readout": "shared", "causal": True, "layer_norm": True,
        "positions": "geometric", "position_scale": 0.1, "scaled_attention": True, "train_embeddings": True,
    }  # fmt: skip
    return LanguageTransformer(embeddings, **recipe | options)


def gradient_of(model, windows):
    """{name: gradient of the loss with respect to this parameter}"""
    model.clear_gradients()
    model.loss(windows)[1]()
    return {name: p.grad.copy() for name, p in model.parameters().items()}


def cosine(a, b, part):
    """The cosine of two gradients, over all parameters with `part` in their names

    a, b {name of a parameter: its gradient, an array}  →  one number
    """
    return cosines(np.array([np.concatenate([g[name].ravel() for name in g if part in name]) for g in (a, b)]))[0, 1]


# %%
windows = next(RandomWindows(corpus.train, T, 16 if QUICK else 64, seed=1))
every = train_steps // 6
runs, cosine_of, rows_of_table = {}, {}, {}
for name, (functions, options) in RUNS.items():
    model = new_model(**options)
    training = Training(
        model, RandomWindows(corpus.train, T, batch), Adam(5e-3 if QUICK else 3e-3),
        Schedule(train_steps // 10, train_steps),
    )  # fmt: skip
    validate = partial(mean_loss, model, corpus.validation, TESTED // 3)
    with in_their_place(functions), training_progress(train_steps, batch * T) as on_step:
        rows = fit(training, train_steps, validate, every, watcher=Watcher(on_step)).rows
        used = gradient_of(model, windows)
    right, test = gradient_of(model, windows), mean_loss(model, corpus.test, TESTED)
    runs[name], last, cosine_of[name] = (rows, test), rows[-1], cosine(used, right, "")
    rows_of_table[name] = (cosine_of[name], cosine(used, right, "attention"), last["train_loss"],
                           last["validation_loss"], test, last["seconds"])  # fmt: skip
table(("gradients", "cosine", "attention", "training", "validation", "test", "seconds"),
      rows_of_table | {"by frequency (unigram)": (None, None, None, None, unigram)},
      ("{:.2f}", "{:.2f}", "{:.3f}", "{:.3f}", "{:.3f}", "{:.0f}"),
      f"2. {train_steps} steps with wrong gradients; before them, ln c = {math.log(c):.3f}")  # fmt: skip
print("cosine of the gradient used and the right one, for the trained model: all parameters, attention's matrices\n")
table(("validation loss at step", *(row["step"] for row in runs["right"][0])),
      {name: [row["validation_loss"] for row in rows] for name, (rows, _) in runs.items()}, "{:.2f}")  # fmt: skip

show(lab_10.wrong_training(runs, math.log(c)), "10_wrong_training")

# %%
wrong_runs = list(RUNS)[2:]
middle = [row["validation_loss"] for rows, _ in runs.values() for row in rows if 3 * row["step"] == train_steps]
behind = {name: runs[name][1] - runs["right"][1] for name in runs}       # test losses
slow = [behind[name] for name in ("layer norm: no means", "residual: mask lost", "attention: uphill")]
print("test losses; behind: higher than that of right gradients, in nats")
expect("greatest of all test losses, nats", below(6.5), max(test for _, test in runs.values()), quick=below(8.5))
expect("least cosine of a wrong gradient, trained", above(0), min(cosine_of[name] for name in wrong_runs))
expect("step 100: from best to worst, validation", below(0.15), np.ptp(middle), quick=None)
expect("no means, lost mask, uphill: behind by at least", above(0.05), min(slow), quick=None)
expect("no means, lost mask, uphill: behind by at most", between(0.35, 0.65), max(slow), quick=None)
expect("worst of these three − counting words", above(0.1), max(slow) + runs["right"][1] - unigram, quick=None)
expect("dkey halved: behind by", about(-0.02, within=0.08), behind["attention: dkey halved"])
expect("zeros: behind by", about(-0.1, within=0.12), behind["attention: zeros"], quick=None)
expect("right, other weights: behind by", about(0, within=0.3), behind["right, other weights"])

# %% [markdown]
# ## What to remember
#
# The numbers are those of five full runs, each with other initial weights and batches.
#
# - The checker catches all thirteen mistakes. The naive check misses five, and a sixth at γ = 1, which no measurement
#   at that point alone can reveal. For eleven of the thirteen the checker shows the corrected line.
# - A loss that goes down proves nothing. At step 100 the losses with right and wrong gradients are within 0.15 nats of
#   each other. After 300 steps three of the five wrong models are behind the right one: the worst by 0.46 to 0.57 nats,
#   and worse than counting words (6.06), the best by 0.09 to 0.43. From a single curve you cannot tell what it should
#   have been: right gradients from other initial weights differ by up to 0.25.
# - And two of the wrong gradients have no visible cost: with dkey halved the test loss is within 0.06 of that with
#   right gradients, and with *nothing* coming back through attention it is lower, in all five runs. In 300 steps random
#   queries, keys and values do as well as trained ones. No curve reveals these mistakes; the checker does, within
#   seconds.
#
# **Try:** a mistake of your own in the gallery; in section 2, a backward that is random noise.
