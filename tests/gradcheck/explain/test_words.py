"""What a wrong gradient is in words: they hold at two points and at other sizes."""

from mini_tf.gradcheck.explain.elsewhere import other_sizes
from mini_tf.gradcheck.explain.paths import missing_paths
from mini_tf.gradcheck.explain.words import sentences
from mini_tf.gradcheck.subject import Subject
from mini_tf.gradcheck.verdict import judged
from tests.gradcheck.contracts import normal
from tests.gradcheck.explain import edited, gradcheck
from tests.gradcheck.explain import functions as right
from tests.gradcheck.explain.test_search import FUNCTIONS, INPUTS

import numpy as np
import pytest


def said(thing, inputs, of=None):
    """{tensor: words} of a wrong thing; or what `of(evidence)` gives"""
    check = judged(lambda: Subject(thing, inputs, {}), None, 0, None)
    with check as (report, _, evidence, other), np.errstate(all="ignore"):
        assert report.verdict == "FAIL"
        if of:
            return of(evidence)
        found = sentences(evidence, [*filter(None, [other]), *other_sizes(evidence)])
        return {name: words for name, (words, _) in found.items()}


@pytest.mark.parametrize(("name", "old", "new", "words"), [
    ("dense", "dz @ W.T", "-dz @ W.T", {"x": "It has the wrong sign."}),
    ("dense", "return dx, dW", "return dx * 2, dW", {"x": "It is the right one times 2."}),
    ("relu", "return dx", "return 0 * dx", {"x": "It is zero everywhere: nothing comes back."}),
])  # fmt: skip
def test_words(name, old, new, words):
    assert said(edited(FUNCTIONS[name], old, new), INPUTS[name]()) == words


def test_a_factor_is_named_by_all_sizes_that_fit_elsewhere():
    words = said(edited(FUNCTIONS["dense"], "dz.sum(0)", "dz.mean(0)"), INPUTS["dense"]())["b"]
    assert words.startswith("It is the right one times 1/5 (axis 0 of x)")
    words = said(edited(FUNCTIONS["dense"], "dz.sum(0)", "dz.mean(0)"), normal((3, 3), (3, 4), (4,)))["b"]
    assert "axis 0 of W" not in words
    words = said(edited(right.attention, "return dq", "return dq / np.sqrt(q.shape[-1])"), INPUTS["attention"]())
    assert "1/√4 (axis 2 of q)" in words["q"]


def test_beside_a_change_words_are_for_hints_but_those_on_a_path():
    path = str(gradcheck(edited(right.layer_norm, " - n * (dn * n).mean(-1, keepdims=True)", ""), *INPUTS["layer_norm"]()))
    assert "One change makes it right" in path
    assert "→ The gradient through `s` (line 4) is missing; all else is right." in path
    report = gradcheck(edited(FUNCTIONS["dense"], "dz @ W.T", "-dz @ W.T"), *INPUTS["dense"]())
    assert report.repair.after == "dx = dz @ W.T"
    assert "wrong sign" not in str(report)
    report.give_hints_only()
    assert "→ It has the wrong sign." in str(report)
    assert "dx = dz @ W.T" not in str(report)


def test_transposed():
    wrong = edited(right.sech, "dW = X.T @ dz", "dW = dz.T @ X")
    assert said(wrong, normal((5, 4), (4, 4))) == {"W": "It is transposed."}


def test_repeated_ids_and_masks():
    wrong = edited(right.lookup, "np.add.at(dW, ids, 2 * dy * W[ids])", "dW[ids] += 2 * dy * W[ids]")
    assert "ids that occur more than once: each time has to count" in said(wrong, INPUTS["lookup"]())["W"]
    x, other = normal((3, 4), (3, 4))
    assert said(edited(right.masked, " * mask", ""), [x, other > 0])["x"].endswith("exactly where mask is False.")


@pytest.mark.parametrize(("name", "old", "new", "tensor", "words"), [
    ("recurrent", "(dy[t] + dh)", "dy[t]", "U", "The gradient through `h` (line 4) is missing; all else is right."),
    ("layer_norm", " - n * (dn", " + n * (dn", "x",
     "The gradient through `s` (line 4) has the wrong sign; all else is right."),
    ("layer_norm", " - n * (dn", " - 2 * n * (dn", "x",
     "The gradient through `s` (line 4) is there twice; all else is right."),
    ("attention", "ds, k)", "0 * ds, k)", "q", ""),      # all of it: zero says more
    ("dense", "x.T @ dz", "np.sin(x.T @ dz)", "W", ""),
])  # fmt: skip
def test_paths(name, old, new, tensor, words):
    assert said(edited(FUNCTIONS[name], old, new), INPUTS[name](), lambda one: missing_paths([one], [tensor]).get(tensor, "")) == words
