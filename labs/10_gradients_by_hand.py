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
# It takes about two minutes on two CPU cores, under a minute with `--quick`.

# %%
import gzip
import io
import math
from contextlib import contextmanager
from functools import partial
from time import perf_counter

from _common import quick_mode, show
from mini_tf import ops
from mini_tf.data_wheels import Wheel, read_member
from mini_tf.gradcheck import gradcheck
from mini_tf.models import LanguageTransformer
from mini_tf.text import shakespeare
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
#     Richardson   (4·D(h/2) − D(h)) / 3                    error −h⁴/480 · f⁗′
#
# Each error is the first term of the Taylor series that does not cancel. In D the even terms cancel; D(h/2) has a
# quarter of D(h)'s h²-error, so in 4·D(h/2) − D(h) that cancels too.
#
# But f is only known to ε, the distance of two neighbouring floating point numbers (2.2·10⁻¹⁶ in float64, 1.2·10⁻⁷ in
# float32). A difference of two values keeps this error, and it is divided by h: rounding gives ε/h. So the
# error of a formula of order p is about hᵖ + ε/h, smallest where both are equal: at **h ≈ ε^(1/(p+1))**, and there it is
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
figure.axes[0].set_ylabel("relative error of the slope")
show(figure, "10_finite_differences")

# %% [markdown]
# Two lessons. Differences belong in float64, whatever the model runs in: in float32 the popular step 10⁻⁶ leaves
# an error of several per cent, and a tolerance that forgives it forgives wrong gradients too. And with Richardson's step the
# minimum is not only lower but also wide: `gradcheck` takes h = 10⁻³ and compares D(h/2) with the extrapolated value to
# know how far to trust it.
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
print("\nWhat the checker does with such entries: it sets them aside, and says so")
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
# **The tanh form.** erf was slow once, tanh was at hand, and both are odd, rise from −1 to 1, and look alike. So we want
# erf(x/√2) ≈ tanh(s·(x + a·x³)), with s and a such that both series agree. The hint: drop all terms above the third
# order *at the very first step*. With tanh u = u − u³/3 and exp(−s²) = 1 − s²:
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
