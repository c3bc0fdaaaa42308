"""Formulas and folded lines in a real browser: letters, names and arrays light each other; folds open."""

import textwrap

from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.gradcheck.learner import load
from mini_tf.layers import Linear

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def norm(opened, rng):
    """The page of layer_norm, at the end of its backward"""
    page = opened(explore(ops.layer_norm, rng.standard_normal((2, 4)), rng.standard_normal(4), rng.standard_normal(4)))
    page.evaluate("openLines(recording().lines.length - 1)")
    return page


def lit(page, where):
    return page.evaluate("where => Array.from(document.querySelectorAll(`${where} .lit`), (one) => nameOf(one))", where)


def test_pointing_at_a_letter_lights_its_name_in_the_code_and_shows_its_array(norm):
    norm.locator('#formula [data-name="gamma"]').first.hover()
    assert lit(norm, "#lines .source") == ["gamma"] * len(lit(norm, "#lines .source"))
    assert len(lit(norm, "#lines .source")) >= 3
    assert lit(norm, "#lines .made") == ["gamma"]        # the chip
    assert norm.inner_text("#array h3") == "gamma"
    norm.locator('#formula [data-name="dgamma"]').first.hover()
    assert norm.inner_text("#array h3") == "dgamma"
    norm.mouse.move(2, 2)
    assert lit(norm, "body") == []
    norm.locator('#formula [data-name="normal"]').first.click()                      # x̂ stays in view
    norm.mouse.move(2, 2)
    assert norm.inner_text("#array h3") == "normal"


@pytest.mark.exhaustive
def test_pointing_at_a_name_or_a_chip_lights_its_letters(norm):
    norm.locator("#lines .source .n", has_text="normal").last.hover()
    assert set(lit(norm, "#formula")) == {"normal"}
    assert len(lit(norm, "#formula")) > 3
    norm.locator('#lines .chip[data-name="dbeta"]').hover()
    assert lit(norm, "#formula") == ["dbeta"]
    norm.locator('#lines .chip[data-name="dx"]').last.focus()
    assert set(lit(norm, "#formula")) == {"dx"}


@pytest.mark.exhaustive
def test_letters_are_reached_by_key_once_each(norm):
    names = norm.evaluate('Array.from(document.querySelectorAll("#formula [tabindex]"), (one) => one.dataset.name)')
    assert len(names) == len(set(names)) >= 8
    norm.locator('#formula [data-name="r"][tabindex]').focus()
    assert set(lit(norm, "#lines .source")) == {"r"}
    assert norm.inner_text("#array h3") == "r"
    norm.keyboard.press("Enter")
    norm.evaluate("document.activeElement.blur()")
    assert norm.inner_text("#array h3") == "r"


@pytest.mark.exhaustive
def test_the_formula_of_what_the_line_makes_is_marked(norm):
    marked = 'Array.from(document.querySelectorAll("#formula .math.now math"), (one) => one.dataset.makes)'
    assert norm.evaluate(marked) == ["dx", "dgamma", "dbeta"]
    norm.evaluate("openLines(0)")
    assert norm.evaluate(marked) == []
    norm.evaluate("openLines(recording().lines.find((line) => line.made[0][0] === 'r').number)")
    assert norm.evaluate(marked) == ["r"]
    norm.locator('#formula [data-name="dx"]').first.hover()          # not made yet: what it will be
    assert norm.inner_text("#array h3") == "dx"


def test_formulas_are_typeset_as_formulas(norm):
    """A fraction is taller than a letter; its line has been drawn, not written."""
    heights = norm.evaluate('["mfrac", "mi"].map((tag) => document.querySelector(`#formula ${tag}`).getBoundingClientRect().height)')
    assert heights[0] > 1.8 * heights[1]
    assert norm.locator("#formula h3").inner_text() == "formula"
    assert norm.locator("#formula summary").inner_text() == "what it does"
    assert norm.evaluate('document.querySelector("#formula details").open') is False


def test_folds_open_by_click_and_by_key(norm):
    fold = norm.locator("#lines .unfold", has_text="checks")
    assert fold.inner_text() == "⋯ 17 lines: docstring, array library, checks"
    assert not norm.locator("#lines .source", has_text="raise ValueError").is_visible()
    fold.click()
    assert norm.locator("#lines .source", has_text="raise ValueError").is_visible()
    fold.focus()
    norm.keyboard.press("Enter")
    assert fold.get_attribute("aria-expanded") == "false"
    assert not norm.locator("#lines .source", has_text="raise ValueError").is_visible()


@pytest.mark.exhaustive
def test_type_hints_are_folded(norm):
    row = norm.locator("#lines .line", has_text="def layer_norm")
    assert row.locator(".source").inner_text().strip() == "def layer_norm(x, gamma, beta, eps):"
    row.locator(".unfold").click()
    assert "beta: Array, eps: float = 1e-5" in row.locator(".source").inner_text()
    assert norm.locator("#lines .source", has_text="@op").is_visible()
    row.locator(".unfold").click()
    assert not norm.locator("#lines .source", has_text="@op").is_visible()


@pytest.mark.exhaustive
def test_what_has_no_formula_is_not_called_one(opened, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent('''
        def f(x):
            """Twice as much, however y = twice x is not a formula"""
            if x.ndim == 0:
                raise ValueError("no")
            limit = 3
            y = 2 * x

            def backward(dy):
                return 2 * dy

            return y, backward
        '''), encoding="utf-8")  # fmt: skip
    f, inputs, _ = load(f"{path}::f", ["x=2,3"])
    page = opened(explore(f, *inputs))
    page.evaluate("openLines(0)")
    assert page.locator("#formula h3").count() == 0
    assert page.inner_text("#formula pre") == "Twice as much, however y = twice x is not a formula"
    page.locator("#only-new").uncheck()
    for step in range(page.evaluate("recording().lines.length")):    # the line that runs is always in sight
        page.evaluate("openLines", step)
        assert page.locator(".line.now").is_visible()


@pytest.mark.exhaustive
def test_a_letter_of_a_layer_is_its_parameter(opened, rng):
    page = opened(explore(Linear(3, 2, rng), rng.standard_normal((4, 3)), name="Linear"))
    page.evaluate("openLines(recording().lines.length - 1)")
    assert page.inner_text("#sheet-title") == "Linear"
    page.locator('#formula [data-name="self.W"]').hover()
    assert page.inner_text("#array h3") == "self.W"
    assert "(3, 2)" in page.inner_text("#array .about-array")
    assert set(lit(page, "#lines .source")) == {"self.W"}
