"""The page in a real browser: every step, the numbers that it shows, what it asks the network for, light and dark."""

import textwrap

from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.gradcheck.learner import load
from tests.explore.conftest import decoded
from tests.explore.test_parts import combined, value

import numpy as np
import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def explorer(opened, exploration):
    """The page, with its lines shown"""
    page = opened(exploration)
    page.evaluate("openLines(0)")
    return page


@pytest.mark.exhaustive
def test_every_line_can_be_reached_by_key(explorer, exploration):
    lines = exploration.data["recordings"][-1]["lines"]
    explorer.locator("#only-new").uncheck()
    seen, marked = explorer.evaluate("""() => {
      const seen = [], marked = [];
      for (let i = 0; i < recording().lines.length; i++) {
        seen.push(document.getElementById("position").textContent);
        marked.push(document.querySelectorAll(".line.now").length);
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
      }
      return [seen, marked];
    }""")
    assert set(marked) == {1}
    explorer.keyboard.press("ArrowRight")                # beyond the last line: it stays there
    assert seen[0] == f"line 1 of {len(lines)} · forward"
    assert seen[-1].startswith(f"line {len(lines)} of {len(lines)} · backward")
    assert len(set(seen)) == len(lines)
    explorer.keyboard.press("Home")
    assert explorer.inner_text("#position").startswith("line 1 of")
    explorer.keyboard.press("b")
    assert explorer.inner_text("#stack .phase") == "backward"
    explorer.keyboard.press("ArrowLeft")
    assert explorer.inner_text("#stack .phase") == "forward"


@pytest.mark.exhaustive
def test_lines_that_hand_on_an_array_can_be_left_out(explorer):
    """With the box ticked, as at first, → visits every array of the backward once."""
    seen = explorer.evaluate("""() => {
      goTo(recording().turn);
      const steps = new Set();
      for (let before = -1; before !== state.step; ) { before = state.step; goTo(nextLine(1)); steps.add(state.step); }
      const lines = recording().lines.filter((line) => steps.has(line.number));
      const refs = (some) => new Set(some.flatMap((line) => line.made.map(([, ref]) => ref)).filter((ref) => typeof ref === "number"));
      const before = refs(recording().lines.slice(0, recording().turn + 1));
      const all = [...refs(recording().lines.slice(recording().turn))].filter((ref) => !before.has(ref));
      return [steps.size, recording().lines.length - recording().turn, all.filter((ref) => !refs(lines).has(ref)).length];
    }""")
    visited, lines, missed = seen
    assert visited < 0.7 * lines
    assert missed == 0


def test_the_numbers_shown_are_numpys(explorer, exploration, rng):
    """Of arrays of all kinds: entries by their index, as the page decodes and writes them."""
    arrays = exploration.data["arrays"]
    numbers = rng.choice(len(arrays), 60, replace=False).tolist()
    for number in numbers:
        x = decoded(arrays[number])
        shown = explorer.evaluate("ref => Array.from(arrayOf(ref).values, Number)", number)
        np.testing.assert_allclose(shown, x.ravel(), rtol=1e-12)
        place = [int(rng.integers(size)) for size in x.shape]
        index = [i if which is None else which[i] for i, which in zip(place, arrays[number].get("shown") or [None] * x.ndim)]
        text = explorer.evaluate("([ref, index]) => written(Number(valueAt(arrayOf(ref), index)), 7)", [number, index])
        assert float(text.replace("−", "-").replace("∞", "inf")) == pytest.approx(float(x[tuple(place)]), rel=1e-6, abs=1e-30)


@pytest.mark.exhaustive
def test_the_entry_that_is_clicked_is_the_one_that_is_told(explorer, exploration):
    data = exploration.data
    number = next(n for n, line in enumerate(data["recordings"][-1]["lines"])
                  if any(name == "dx" and parts for name, _, parts in line["made"]))  # fmt: skip
    explorer.evaluate("goTo", number)
    canvas = explorer.locator("#array canvas.map")
    box = canvas.bounding_box()
    rows, columns = 5, 8
    explorer.mouse.click(box["x"] + box["width"] * 5.5 / columns, box["y"] + box["height"] * 2.5 / rows)
    ref = explorer.evaluate("state.pinned.ref")
    x = decoded(data["arrays"][ref])
    assert x.shape == (1, rows, columns)
    assert explorer.inner_text("#array .entry h4").endswith("at “sat”, column 5")
    said = explorer.inner_text("#array .entry .value").replace("−", "-")
    assert float(said) == pytest.approx(float(x[0, 2, 5]), rel=1e-6)
    assert "✓ the backward agrees" in explorer.inner_text("#array .entry")
    assert explorer.locator("#array .terms li").count() > 1
    explorer.keyboard.press("ArrowRight")                # the canvas has the focus: the next entry, not the next line
    assert explorer.inner_text("#array .entry h4").endswith("at “sat”, column 6")
    assert explorer.evaluate("state.step") == number


@pytest.mark.exhaustive
def test_the_terms_of_every_line_give_its_value(explorer, exploration):
    """For three entries of each: what the page says they are made of, put together, and so on for the parts."""
    checked = explorer.evaluate("""() => {
      const wrong = [], seen = {};
      const check = (part, index, depth) => {
        const value = partAt(part, index), terms = termsOf(part, index);
        if (value === undefined || !terms || terms.rows.some((row) => row.value === undefined)) return;
        if (terms.count && terms.count > terms.rows.length) return;      // some are not on the page
        const values = terms.rows.map((row) => row.value), says = terms.says;
        const together = says.startsWith("the product") ? values.reduce((a, b) => a * b, 1)
          : says.startsWith("the quotient") ? values[0] / values[1]
          : /^(exp|sqrt|log|tanh) of$/.test(says) ? Math[says.split(" ")[0]](values[0])
          : values.reduce((a, b) => a + b, 0);
        seen[part.op] = (seen[part.op] || 0) + 1;
        const size = Math.max(Math.abs(value), ...values.map(Math.abs));
        if (!(Math.abs(together - value) <= 2e-5 * size + 1e-7)) wrong.push([part.src, says, together, value]);
        for (const row of terms.rows) if (row.part && row.part.op && depth < 6) check(row.part, row.index, depth + 1);
      };
      for (const line of recording().lines) for (const [name, ref, parts] of line.made) {
        if (!parts) continue;
        const shape = arrayOf(ref).shape, size = shape.reduce((a, b) => a * b, 1);
        for (const share of [0, 0.4, 0.99]) check(parts, unflatten(Math.floor(share * size), shape), 0);
      }
      return [wrong, seen];
    }""")  # fmt: skip
    wrong, seen = checked
    assert wrong == []
    assert {"+", "*", "@", "mean", "sum_to", "reshape", "/"} <= seen.keys()


@pytest.mark.exhaustive
def test_pointing_at_a_name_lights_it_wherever_it_occurs(explorer):
    explorer.keyboard.press("b")
    explorer.evaluate("goTo(recording().lines.find((line) => titleOf(recording().frames[line.frame]) === 'backward of layer_norm').number)")
    explorer.locator("#lines .source .n", has_text="normal").first.hover()
    lit = explorer.locator("#lines .lit").all_inner_texts()
    assert len(lit) >= 4
    assert all(text.split("\n")[0] == "normal" for text in lit)
    assert explorer.inner_text("#array h3") == "normal"


def test_a_wrong_backward_marks_lines_and_entries(explorer, exploration):
    explorer.select_option("#alternative", label="Layer norm: dx leaves out γ")
    assert explorer.inner_text(".line.edited .source").strip() == "g = dy"
    assert "≠ by" in explorer.inner_text(".line.now .chip.differs")
    assert "g = dy * gamma" in explorer.inner_text("#wrong .checker")
    assert "° away from the right one" in explorer.inner_text("#wrong")
    count = explorer.locator(".differing li").count()
    assert count > 20
    explorer.locator(".differing li button").last.click()
    assert explorer.locator(".line.now .chip.differs").count() >= 1
    explorer.keyboard.press("a")
    assert explorer.locator("#array canvas.map").count() == 2
    explorer.select_option("#alternative", label="none")
    assert explorer.locator(".chip.differs").count() == 0


@pytest.mark.exhaustive
def test_the_keys_stay_with_a_button_that_is_drawn_anew(explorer):
    explorer.keyboard.press("r")
    explorer.locator("#wrong .choices button").first.focus()
    explorer.keyboard.press("Enter")
    assert explorer.inner_text("#wrong h3") == "Layer norm: dx leaves out γ"
    assert explorer.evaluate("document.activeElement.textContent") == "Layer norm: dx leaves out γ"
    explorer.locator(".line.now .chip").first.focus()
    explorer.keyboard.press("Enter")                     # opens its array
    assert explorer.evaluate("currentTab()") == "array"


@pytest.mark.exhaustive
def test_the_slider_goes_to_other_moments(explorer, exploration):
    line = explorer.evaluate("recording().lines.find((line) => line.number >= 10 && makesArray(line)).number")
    explorer.evaluate(f"goTo({line})")
    before = explorer.evaluate("state.pinned.ref")
    explorer.evaluate("const m = document.getElementById('moment'); m.value = 0; m.dispatchEvent(new Event('input'))")
    assert explorer.inner_text("#moment-name") == "earlier"
    assert explorer.evaluate("recording().label") == "earlier"
    explorer.evaluate(f"goTo({line})")
    assert explorer.evaluate("state.pinned.ref") != before


@pytest.mark.exhaustive
def test_the_words_show_gradients_and_attention(explorer, exploration):
    explorer.keyboard.press("w")
    headings = explorer.locator("#words h4").all_inner_texts()
    assert headings == ["out of layer 2", "into layer 2", "into layer 1", "A", "dA", "dS"]
    explorer.locator("#words canvas.map").nth(2).click(position={"x": 5, "y": 5})
    said = explorer.locator("#words .entry").first.inner_text()
    assert "the loss of the→cat sends a gradient of size" in said
    flow = dict(exploration.data["recordings"][-1]["flow"])
    norm = decoded(exploration.data["arrays"][flow["into layer 1"]])[0, 0]
    assert float(said.split("size ")[1].split(" ")[0]) == pytest.approx(norm, rel=1e-3)
    assert explorer.locator("#words .tiles").first.locator("button").all_inner_texts() == ["layer 1", "layer 2"]
    explorer.get_by_role("button", name="head 2").click()
    explorer.locator("#words canvas.map").nth(3).click(position={"x": 5, "y": 5})
    for _ in range(2):
        explorer.keyboard.press("ArrowDown")             # the map keeps the keys
    assert "A at head 2, row “sat”, column “the”" in explorer.locator("#words .entry").nth(1).inner_text()
    explorer.keyboard.press("Enter")
    assert "head 2" in explorer.inner_text("#array .entry h4")


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened, exploration, scheme):
    page = opened(exploration, color_scheme=scheme)
    red, green, blue = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red + green + blue > 600) == (scheme == "light")
    page.keyboard.press("d")                             # the other scheme
    red, green, blue = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (red + green + blue > 600) == (scheme == "dark")


@pytest.mark.exhaustive
def test_how_to_read_it(opened, exploration):
    page = opened(exploration)
    page.keyboard.press("?")
    assert "opens it into its parts" in page.inner_text("#hints")
    page.keyboard.press("Enter")
    assert not page.locator("#hints").is_visible()


def test_text_full_of_scripts_stays_text(opened, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent('''
        def f(x):
            """</script><script>alert(1)</script><img src=x onerror=alert(2)>"""
            tag = "</script><script>alert(3)</script>"
            y = 2 * x            # <img src=x onerror=alert(4)>

            def backward(dy):
                return 2 * dy

            return y, backward
        '''), encoding="utf-8")  # fmt: skip
    f, inputs, _ = load(f"{path}::f", ["x=2,3"])
    page = opened(explore(f, *inputs, name="<img src=x onerror=alert(5)>"))
    assert page.inner_text("#title") == "<img src=x onerror=alert(5)>"
    assert "<script>alert(1)</script>" in page.inner_text("#formula pre")
    assert "<img src=x onerror=alert(4)>" in page.inner_text("#lines")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("r")
    assert "PASS" in page.inner_text("#wrong .verdict")


@pytest.mark.exhaustive
def test_a_page_of_something_that_failed_begins_where_it_failed(opened, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def f(x):\n    a = x + 1\n    y = a.reshape(7, 7)\n    return y, lambda dy: dy\n", encoding="utf-8")
    f, inputs, _ = load(f"{path}::f", ["x=2,3"])
    page = opened(explore(f, *inputs))
    assert "cannot reshape" in page.inner_text(".line.failed")
    assert page.inner_text(".line.failed .number") == "3"
    assert "It stopped with ValueError" in page.inner_text("#notes")


@pytest.mark.exhaustive
def test_an_op_with_a_single_number(opened):
    page = opened(explore(ops.mse, np.ones((2, 3)), np.zeros((2, 3))))
    page.keyboard.press("End")
    assert page.inner_text("#stack .phase") == "backward"


def test_values_are_not_made_up():
    """The helpers of these tests: a part that does not fit is noticed."""
    arrays = [{"shape": [2], "form": "f8", "data": "AAAAAAAA8D8AAAAAAAAAQA=="}]      # 1, 2
    part = {"src": "x", "value": 0}
    assert value(part, arrays).tolist() == [1, 2]
    double = {"src": "x + x", "value": 0, "op": "+", "of": [part, part], "signs": [1, 1]}
    assert combined(double, arrays).tolist() == [2, 4]
