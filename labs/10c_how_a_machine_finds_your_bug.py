# %% [markdown]
# # Lab 10c: how a machine finds your bug
#
# - **Goals:** test by linear algebra which expressions of a backward can be at fault, search thousands of changes for
#   the one that mends it, and discard those that fit only by chance.
# - **Before it:** least squares, Jacobians; exercise 01; better Lab 10b, too. **Work:** about 2.5 hours.
# - **Hand in:** `measured_matrix`, `least_residual`, `residuals`; an experiment from “Try”.
#
# The checker of lab 10b says more than FAIL: it shows the one change that makes a gradient right. You will build the
# core of it, for a wrong softmax: find out which expressions of its backward can be at fault at all, try thousands of
# changes with a few matrix products, and discard those that are right only by chance. (`mini_tf/gradcheck/explain` does
# this for any function; the mistake is ours.) It runs in a few seconds on one CPU core.

# %%
import ast
import inspect
from itertools import product

from _common import quick_mode, show
from _drawing import lab_10c
from _expect import above, at_least, below, expect
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.first_checker import slopes

import numpy as np

quick_mode("Lab 10c: how a machine finds your bug: a wrong backward of softmax, repaired by linear algebra")

# %% [markdown]
# ## 1. A wrong backward
#
# It reverses the forward step by step: $y = e/\text{total}$ gives dtotal and de, and $e = \exp(z)$ gives
# $dz = de \cdot e$. One line has a mean where a sum belongs. The right gradient is measured, with the thirty lines of
# `gradcheck/first_checker.py`.

# %%
def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    total = e.sum(-1, keepdims=True)

    def backward(dy):                                    # keeps e, total
        dtotal = -(dy * e).sum(-1, keepdims=True) / total**2
        de = dy / e.mean(-1, keepdims=True)
        return (de + dtotal) * e

    return e / total, backward


rng = np.random.default_rng(10)
z, dy = rng.standard_normal((2, 4, 4))                   # four rows of four entries
right = slopes(lambda: (dy * softmax(z)[0]).sum(), z)
missing = (right - softmax(z)[1](dy)).ravel()            # what our gradient lacks, compared with the measured one

# %% [markdown]
# ## 2. Substituting other values
#
# Substitute another array for an expression E of the backward, say for `dy * e`. How does dz change? A backward is
# linear in dy: nearly everywhere it only adds, and multiplies by what the forward kept. So dz is an *affine* function
# of the value of nearly every E, $dz(E + \text{step}) = dz(E) + J \cdot \text{step}$, and the matrix J can be measured:
# add 1 to one entry of E, then to the next. No limit is taken, so the steps need not be small. To substitute a value,
# we turn each E into a call `at(k, E)`, which is easy, because Python can parse its own source into a syntax tree.

# %%
class Rewriter(ast.NodeTransformer):
    """Replaces the k-th expression E by instead(k, E); places: [(its line in the function, its text), …]"""

    def __init__(self, instead):
        self.instead, self.places = instead, []

    def visit(self, node):
        if not isinstance(node, (ast.BinOp, ast.Call, ast.Name)) or isinstance(getattr(node, "ctx", None), ast.Store):
            return self.generic_visit(node)              # a statement, or the name that it sets
        self.places.append((node.lineno, ast.unparse(node)))
        return self.instead(len(self.places) - 1, self.generic_visit(node))


def rewritten(f, instead, **names):
    """(f with instead(k, E) for the expressions E of its backward, their places)"""
    tree, rewriter, space = ast.parse(inspect.getsource(f)), Rewriter(instead), {"np": np, **names}
    inner = next(node for node in ast.walk(tree) if getattr(node, "name", "") == "backward")
    inner.body = [rewriter.visit(statement) for statement in inner.body]
    exec(compile(ast.fix_missing_locations(tree), "rewritten", "exec"), space)
    return space[f.__name__], rewriter.places


# %%
def at(k, value):
    values[k] = value                                    # recorded
    return put.pop(k, value)


def gradient_with(k, value):
    put[k] = value
    return hooked(z)[1](dy)


def measured_matrix(gradient, value):
    """J of an affine function of an array like value, gradient(value + step) = gradient(value) + J·step"""
    start = gradient(value)
    columns = [(gradient(value + one.reshape(value.shape)) - start).ravel() for one in np.eye(value.size)]
    return np.stack(columns, axis=1)                     # (entries of the gradient, entries of value)


put, values = {}, {}
hooked, places = rewritten(softmax, lambda k, E: ast.Call(ast.Name("at", ast.Load()), [ast.Constant(k), E], []), at=at)
hooked(z)[1](dy)

# %% [markdown]
# ## 3. Which expressions can be at fault at all?
#
# First we test that claim: J has to predict the effect of a random value. **Expect** it to do so, to twelve digits,
# except for the four expressions in a denominator: dz is not affine in those, and J is useless. Of the others, E can be
# at fault only if some step has J·step = missing. Least squares finds the best step, and the residual that it leaves.
# **Expect** line 6, `dtotal`, to be ruled out: it has one number per row, which cannot correct four entries
# independently, and over a tenth remains. In lines 7 and 8, **expect** nothing to remain.

# %%
def least_residual(J, missing):
    """The part of the missing gradient that the best step leaves: the least ‖J·step − missing‖ / ‖missing‖"""
    step, *_ = np.linalg.lstsq(J, missing, rcond=1e-10)
    return np.linalg.norm(J @ step - missing) / np.linalg.norm(missing)


matrices, off, left = {}, {}, {}
for k, value in sorted(values.items()):
    J = matrices[k] = measured_matrix(lambda v, k=k: gradient_with(k, v), value)
    step, start = rng.standard_normal(value.shape), gradient_with(k, value)
    moved = (gradient_with(k, value + step) - start).ravel()
    off[k], left[k] = np.linalg.norm(J @ step.ravel() - moved) / np.linalg.norm(moved), least_residual(J, missing)
affine = [k for k in off if off[k] < 1e-12]
live = [k for k in affine if left[k] < 1e-6]
show(lab_10c.rests(places, left, affine), "10c_rests")
expect("expressions that are not affine, of 16", 4, len(off) - len(affine))
expect("affine, in line 6: least residual", above(0.1), min(left[k] for k in affine if k not in live))
expect("lines that can be at fault", "7 8", " ".join(sorted({str(places[k][0]) for k in live})))

# %% [markdown]
# ## 4. Thousands of changes, one matrix product
#
# What could replace E? A value v that is in scope, or a simple function of one or two of them, times any number c: c·v,
# E + c·v, c·E·v, c·E/v. Each v is a row of numbers, `V @ J.T` has the effect of all of them on dz, and the best c is
# another least-squares problem. **Expect** a cloud of candidates that do not fit, and a few hits far below it, as small
# as the accuracy of the measured slopes.

# %%
def residuals(J, goal, V):
    """(the least ‖c·J·v − goal‖ / ‖goal‖ for each row v of V, and its c)"""
    G = V @ J.T
    c = (G @ goal) / (G * G).sum(1)
    return np.linalg.norm(c[:, None] * G - goal, axis=1) / np.linalg.norm(goal), c


names = {"z": z, "dy": dy} | {text: values[k] for k, (_, text) in enumerate(places) if text in ("e", "total", "dtotal")}
ONE = "{}", "{}**2", "np.exp({})", "{}.sum(-1, keepdims=True)", "{}.mean(-1, keepdims=True)", "{}.sum(0)", "{}.T"
of_one = [form.format(name) for form, name in product(ONE, names)]
texts = [*of_one, *(f"{a} {sign} {b}" for sign, a, b in product("*/", names, of_one))]
V = np.array([np.broadcast_to(eval(text, {"np": np, **names}), z.shape).ravel() for text in texts])
FORMS = {"({E})": lambda E: E[None], "({v})": lambda E: V, "({E}) + ({v})": lambda E: V,
         "({E}) * ({v})": lambda E: E * V, "({E}) / ({v})": lambda E: E / V}             # fmt: skip
found = {}                                               # {(k, form): (residuals, numbers c)}
for k, form in product(live, FORMS):
    E = values[k].ravel()
    goal = missing if "+" in form else missing + matrices[k] @ E         # added to E, or in its place
    found[k, form] = residuals(matrices[k], goal, FORMS[form](E))
show(lab_10c.candidates(places, found), "10c_candidates")
hits = [(*place, i, c[i]) for place, (least, c) in found.items() for i in np.flatnonzero(least < 1e-7)]
least = np.concatenate([least for least, _ in found.values()])
expect("candidates", at_least(5_000), len(least))
expect("hits: greatest residual", below(1e-9), least[least < 1e-7].max())
expect("the cloud: least residual", above(1e-5), least[least > 1e-7].min())

# %% [markdown]
# ## 5. Right, or right by chance?
#
# A hit is right for these 16 entries. Its c has to be a number that the code can contain: 1, or a size. Here both sizes
# are 4, so a quarter may be `/ len(z)` or `/ z.shape[1]`. So each is written into the source, and run for a z of 3×5.
# **Expect** those with `len(z)` to fail there, and others to remain right.

# %%
def right_with(k, text, z, dy):
    changed, _ = rewritten(softmax, lambda j, E: ast.parse(text, mode="eval").body if j == k else E)
    return np.allclose(changed(z)[1](dy), slopes(lambda: (dy * softmax(z)[0]).sum(), z), atol=1e-6)


NUMBERS, at_3x5 = {"": 1, " / len(z)": 1 / 4, " / z.shape[1]": 1 / 4}, rng.standard_normal((2, 3, 5))
changes = {(k, ast.unparse(ast.parse(form.format(E=places[k][1], v=texts[i]) + number)))
           for k, form, i, c in hits for number, value in NUMBERS.items() if abs(c - value) < 1e-6}      # fmt: skip
holds = {change: right_with(*change, *at_3x5) for change in sorted(changes, key=lambda one: (len(one[1]), one))}
for (k, text), is_right in list(holds.items())[:8]:
    print(f"  line {places[k][0]}: {places[k][1]:<31} → {text:<42}{'right' if is_right else 'by chance'}")
expect("with len(z): right at 3×5, too", 0, sum(holds[k, text] for k, text in holds if "len(z)" in text))
expect("others: right at 3×5, too", at_least(2), sum(holds.values()))

# %% [markdown]
# ## 6. The checker
#
# It does the same in all functions that run, with more forms, and at three other sizes. Changes that no matrix can
# judge, such as one to `e.mean` in a denominator, it writes into the source directly. Of the changes that remain, it
# shows the smallest. **Expect** line 7.

# %%
report = gradcheck(softmax, z)
print(report.explain())
expect("the change is in line", 7, report.repair.line - softmax.__code__.co_firstlineno + 1)

# %% [markdown]
# What to remember: a backward is affine in nearly all of its expressions, and the effect of each is a matrix that can
# be measured. Where least squares leaves a residual, the mistake cannot be. And that the numbers agree at one size
# proves nothing: other sizes decide. **Try:** a bug of your own in line 6; z of 4×3, where no size is right by chance;
# two bugs in two lines.
