"""A wrong backward compared with the right one: what differs is marked, and nothing is changed for good."""

import linecache

from mini_tf import ops
from mini_tf.errors import UserError
from mini_tf.explore.comparison import (
    FAMOUS,
    Descent,
    _cosine,
    _gradients,
    bug_named,
    compare_bugs,
    compare_repair,
    differences,
    title_of,
)
from mini_tf.explore.page_data import PageData
from mini_tf.gradcheck.learner import load
from mini_tf.gradcheck.planting.editing import planted
from mini_tf.gradcheck.report import Change, Report
from mini_tf.places import place
from tests.explore.conftest import decoded, tiny_reading

import numpy as np
import pytest


@pytest.fixture
def read():
    return tiny_reading()


def compared(read, *names):
    pages = PageData(read.axes)
    base = pages.record(read.run)
    found, right = compare_bugs(read, base, lambda: pages.record(read.run, with_parts=False), names)
    return pages, base, found, right


def test_every_line_that_differs_is_marked_and_no_other(read):
    bug = bug_named("layer_norm: γ forgotten")
    pages, base, (found,), _ = compared(read, bug.name)
    with planted(bug) as (_, edited):
        wrong = PageData(read.axes)
        other = wrong.record(read.run)
    assert len(other.lines) == len(base.lines)
    for number, (right, line) in enumerate(zip(base.lines, other.lines)):
        changed = dict(found.lines.get(number, []))
        for (name, ref, _), (_, ref_wrong, _) in zip(right.made, line.made):
            if not isinstance(ref, int):
                continue
            a, b = decoded(pages.store.arrays[ref]), decoded(wrong.store.arrays[ref_wrong])
            assert (name in changed) == (not np.array_equal(a, b)), (line.frame.sheet.title, line.first, name)
            if name in changed:
                np.testing.assert_array_equal(decoded(pages.store.arrays[changed[name]]), b)
    first = base.lines[min(found.lines)]
    assert (first.frame.sheet.title, first.first) == ("layer_norm", edited)
    assert any(base.lines[n].frame.sheet.title == "embedding" for n in found.lines)      # down to the word vectors
    assert found.edited.strip() == "g = dy"
    assert {"right": "g = dy * gamma"}.items() <= {one["kind"]: one["text"] for one in found.words}.items()      # what the checker says makes it right


def test_gradients_returned_under_other_names_are_marked(read):
    """`return dz, dz` for `return dz, dz * on`: the second is dy, whatever it is called."""
    pages, base, (found,), _ = compared(read, "residual_relu: pattern lost")
    with planted(bug_named("residual_relu: pattern lost")) as (_, at):
        edited = [n for n, line in enumerate(base.lines) if line.frame.sheet.title == "residual_relu" and line.first == at]
    assert len(edited) == 2                              # two layers
    for number in edited:
        assert "dy" in dict(found.lines[number])


@pytest.mark.exhaustive
def test_lines_that_no_longer_run_are_marked(read):
    _, base, (found,), _ = compared(read, "MultiHeadAttention: key's way back forgotten")
    missing = [base.lines[number] for number, made in found.lines.items() if made is None]
    assert missing
    assert {line.frame.sheet.title for line in missing} >= {"linear", "Linear"}


@pytest.mark.exhaustive
def test_afterwards_everything_is_as_it_was(read):
    model, formula = read.model, ops.layer_norm.formula
    code, data = formula.__code__, {name: p.data.copy() for name, p in model.parameters().items()}
    source = linecache.getlines(code.co_filename)
    compared(read, "layer_norm: γ forgotten", "attention: scale forgotten in dquery")
    assert formula.__code__ is code
    assert linecache.getlines(code.co_filename) == source
    for name, p in model.parameters().items():
        np.testing.assert_array_equal(p.data, data[name])
        assert p.grad is None


@pytest.mark.exhaustive
def test_by_default_bugs_that_matter_here_are_chosen(read):
    _, _, found, right = compared(read)
    assert 4 <= len(found) <= 6
    assert {one.name for one in found} <= set(FAMOUS)
    assert all(one.lines and one.words and one.losses for one in found)
    assert right[-1] < right[0]


@pytest.mark.parametrize(("name", "message"), [
    ("softmax: nonsense", "is no planted bug"), ("layer_norm: ", "the beginning of several"),
    ("vec readout: axes exchanged", "makes no difference here"),
])  # fmt: skip
def test_a_bug_that_cannot_be_shown_is_one_sentence(read, name, message):
    with pytest.raises(UserError, match=message):
        compared(read, name)


def test_a_bug_that_raises_shows_how_far_it_came(read):
    _, _, (found,), _ = compared(read, "linear: W not transposed")
    assert "matmul" in found.error
    assert found.cosine is None


TWO_MISTAKES = """
def product(x, w):
    def backward(dy):
        dx = dy
        dw = dy
        return dx, dw

    return x * w, backward
"""


@pytest.mark.parametrize(("second", "is_right"), [
    ("dw = dy * x", True), ("dw = (", False), ("dw = dy", False),
], ids=["two lines", "no line of Python", "no change"])  # fmt: skip
def test_changes_that_the_checker_has_found_are_made_together(tmp_path, rng, second, is_right):
    path = tmp_path / "mine.py"
    path.write_text(TWO_MISTAKES, encoding="utf-8")
    f, (x, w), _ = load(f"{path}::product", ["x=3,4", "w=3,4"])
    pages, dy = PageData(), rng.standard_normal((3, 4))

    def run(on_backward=lambda: None):
        _, backward = f(x, w)
        on_backward()
        return backward(dy)

    report = Report("product", changes=[
        Change(place(path, line), line, before, after, "a factor is missing")
        for line, before, after in ((4, "dx = dy", "dx = dy * w"), (5, "dw = dy", second))
    ])  # fmt: skip
    code = f.__code__
    found = compare_repair(report, run, pages.record(run), lambda: pages.record(run))
    assert f.__code__ is code
    if not is_right:
        assert found is None
        return
    assert (found.file, found.line) == (str(path), 4)
    assert found.edited.strip() == "dx = dy * w"
    assert found.about == "A factor is missing. These 2 changes together make it right."
    right = {name: decoded(pages.store.arrays[ref]) for made in found.lines.values() for name, ref in made if isinstance(ref, int)}
    np.testing.assert_array_equal(right["dx"], dy * w)
    np.testing.assert_array_equal(right["dw"], dy * x)


def test_the_cosine_is_that_of_all_parameters_together(read):
    right = _gradients(read)
    assert _cosine(right, right) == pytest.approx(1)
    assert _cosine(right, {name: -2 * g for name, g in right.items()}) == pytest.approx(-1)
    wrong = {name: g + 0.1 for name, g in right.items()}
    a, b = (np.concatenate([g.ravel().astype(float) for g in some.values()]) for some in (right, wrong))
    assert _cosine(right, wrong) == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert _cosine(right, {name: g * np.nan for name, g in right.items()}) is None


def test_descent_is_plain_gradient_descent(read):
    descent = Descent(read, _gradients(read))
    losses, parameters = [], read.model.parameters()
    start = {name: p.data for name, p in parameters.items()}
    for _ in range(5):
        losses.append(read.run())
        for p in parameters.values():
            p.data = p.data - np.float32(descent.rate) * p.grad
    for name, p in parameters.items():
        p.data = start[name]
    np.testing.assert_allclose(descent.right[:5], losses, rtol=1e-6)
    assert descent.right[-1] < 0.5 * descent.right[0]
    assert len(descent.right) == 41                      # before each of 40 steps, and after the last


def test_two_runs_of_the_same_do_not_differ(read):
    pages = PageData(read.axes)
    assert differences(pages.record(read.run), pages.record(read.run)) == ({}, {})


@pytest.mark.parametrize(("name", "title"), [
    ("layer_norm: γ forgotten", "Layer norm: dx leaves out γ"), ("tanh: 1 − y", "Tanh: 1 − y"),
    ("MultiHeadAttention: value's gradient not added",
     "Multi-head attention: of the three gradients of x, the value's is left out"),
    ("PositionalEncoding: P added to the gradient", "Positional encoding: P added to the gradient"),
])  # fmt: skip
def test_a_bug_has_a_title_in_words(name, title):
    assert title_of(bug_named(name)) == title


def test_every_bug_that_is_offered_says_what_is_wrong():
    titles = [title_of(bug_named(name)) for name in FAMOUS]
    assert all(bug_named(name).about for name in FAMOUS)
    assert max(map(len, titles)) <= 75
    assert len(set(titles)) == len(titles)
