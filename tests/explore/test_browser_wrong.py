"""A learner's own op in a real browser: yours, measured and their difference, the checker's words, the marked line.

And what a model's page says of gradients: their sizes on a scale from 0, bugs by their titles, why they are 0.
"""

import re
from dataclasses import replace

from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.explore.exploration import explore_function, explore_model
from tests.explore import test_checked
from tests.explore.conftest import decoded, tiny_reading

import numpy as np
import pytest

pytestmark = pytest.mark.browser
MAPS = "#wrong .compared canvas.map"
PIXELS = """(canvas) => { const copy = new OffscreenCanvas(canvas.width, canvas.height), context = copy.getContext("2d");
  context.drawImage(canvas, 0, 0); return context.getImageData(0, 0, canvas.width, canvas.height); }"""
# [column, row] of the frame in each map: the only black pixels
BLACK = f"() => {{ const pixels = {PIXELS}; " """return [...document.querySelectorAll("#wrong .compared canvas.map")].map((canvas) => {
  const { data, width } = pixels(canvas), at = [];
  for (let i = 0; i < data.length; i += 4) if (data[i] + data[i + 1] + data[i + 2] < 30) at.push([(i / 4) % width, Math.floor(i / 4 / width)]);
  const middle = (axis) => at.reduce((sum, one) => sum + one[axis] + 0.5, 0) / at.length;
  return [Math.floor((middle(0) / width) * 4), Math.floor((middle(1) / canvas.height) * 3)];
}); }"""


@pytest.fixture
def inputs(rng):
    return rng.standard_normal((3, 4)), rng.standard_normal((4, 2))


@pytest.fixture
def wrong(opened, inputs):
    """(the page of `halved`, its Exploration)"""
    found = explore(test_checked.halved, *inputs)
    return opened(found), found


def numbers(text):
    """The numbers of a sentence about an entry, after its index"""
    return [float(one.replace("−", "-")) for one in re.findall(r"[−+]?\d[\d.]*(?:e−?\d+)?", text.partition("]")[2])]


def test_at_once_what_is_wrong_and_where(wrong):
    page, found = wrong
    assert page.inner_text("#wrong .verdict") == "FAIL"
    assert page.inner_text("#wrong .headline").endswith("dx is wrong; dW is right")
    line = test_checked.halved.__code__.co_firstlineno + 4
    assert page.locator(".line.suspect").count() == 1
    assert page.inner_text(".line.suspect .number") == str(line)
    assert page.inner_text(".line.suspect .suspicion") == "something is too much here"
    assert page.inner_text(".line.now .number") == str(line)         # the page begins there
    now, right = page.locator("#wrong .code-said code").all_inner_texts()
    assert (now, right) == ("dx = dy @ W.T / 2", "dx = dy @ W.T")
    assert page.locator("#wrong pre").count() == 0


def test_an_entry_is_marked_in_all_three_and_told(wrong):
    page, found = wrong
    refs = [found.data["checker"]["gradients"][0][which] for which in ("yours", "measured", "difference")]
    dx, slopes, off = (decoded(found.data["arrays"][ref]) for ref in refs)
    assert page.locator(MAPS).count() == 3
    box = page.locator(MAPS).nth(1).bounding_box()
    page.mouse.move(box["x"] + 2.5 / 4 * box["width"], box["y"] + 1.5 / 3 * box["height"])
    said = page.inner_text("#wrong .at-entry")
    assert said.startswith("dx[1, 2]: yours ")
    assert said.endswith("(half)")
    np.testing.assert_allclose(numbers(said), [dx[1, 2], slopes[1, 2], off[1, 2]], rtol=5e-3)
    assert page.evaluate(BLACK) == [[2, 1]] * 3
    page.locator(MAPS).nth(0).focus()
    page.keyboard.press("ArrowLeft")                     # from there on
    assert page.inner_text("#wrong .at-entry").startswith("dx[1, 1]")
    assert page.evaluate(BLACK) == [[1, 1]] * 3
    page.keyboard.press("Enter")                         # what yours is made of
    assert page.inner_text("#array .entry h4") == "dx at row 1, column 1"
    assert "off by" in page.inner_text("#array .measured")


@pytest.mark.exhaustive
def test_the_three_maps_have_one_scale(wrong):
    page, found = wrong
    shown, = page.locator("#wrong .scale-row").all_inner_texts()
    largest = max(np.abs(decoded(found.data["arrays"][found.data["checker"]["gradients"][0][which]])).max() for which in ("yours", "measured"))
    assert numbers("]" + shown) == pytest.approx([-largest, largest], rel=5e-3)


@pytest.mark.exhaustive
def test_one_gradient_at_a_time(wrong):
    page, found = wrong
    assert page.locator("#wrong .choices button").all_inner_texts() == ["dx ✗", "dW ✓"]
    page.locator("#wrong .choices button").nth(1).click()
    assert page.inner_text("#wrong .at-entry").endswith("✓ the same but for rounding")
    assert page.locator(MAPS).count() == 3


@pytest.mark.exhaustive
def test_what_changes_when_it_is_put_right(wrong):
    page, _ = wrong
    page.get_by_role("button", name="Put right").click()
    assert page.locator(".chip.differs").count() >= 1
    assert page.locator("#wrong .differing li button").count() >= 1
    page.get_by_role("button", name="Put right").click()
    assert page.locator(".chip.differs").count() == 0


@pytest.mark.exhaustive
def test_entries_without_a_slope_are_hatched_and_said_so(opened):
    def relu(x):
        y = np.maximum(x, 0)
        return y, lambda dy: dy / 2 * (x > 0)

    page = opened(explore(relu, np.array([[1.0, -1.0, 0.0], [0.0, 2.0, 3.0]])))
    assert "2 entries have no slope" in page.inner_text("#wrong")
    box = page.locator(MAPS).nth(1).bounding_box()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.25 * box["height"])
    assert page.inner_text("#wrong .at-entry").endswith("there is no slope here, and nothing to compare with.")
    pixel = """([n]) => { const c = document.querySelectorAll("#wrong .compared canvas.map")[n];
      return [...c.getContext("2d").getImageData(Math.floor(0.5 * c.width / 3), Math.floor(0.9 * c.height), 1, 1).data]; }"""
    grey = [page.evaluate(pixel, [n])[:3] for n in (1, 2)]
    assert all(max(one) - min(one) < 20 and max(one) < 230 for one in grey), grey
    assert page.evaluate(pixel, [0])[:3] == [255, 255, 255]          # yours is 0 there


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1280, 420])
def test_a_suspected_line_is_one_click_away(opened, rng, width):
    def cubed(x):
        y = x**3 + np.sin(x)

        def backward(dy):
            return dy * np.tanh(x + 0.3) * 1.23

        return y, backward

    page = opened(explore(cubed, rng.standard_normal((3, 4))), viewport={"width": width, "height": 900})
    line = cubed.__code__.co_firstlineno + 4
    page.get_by_role("button", name=f"line {line}").click()
    assert page.inner_text(".line.now .number") == str(line)
    assert page.locator(".line.now .suspicion").is_visible()
    assert page.inner_text(".line.now .suspicion") == "the mistake can be here"


@pytest.mark.exhaustive
def test_a_marked_line_is_not_folded(opened, rng):
    def checked(x):
        y = 2 * x

        def backward(dy):
            if dy.shape != x.shape:
                raise ValueError(...)
            return 3 * dy

        return y, backward

    found = explore(checked, rng.standard_normal((3, 4)))
    check = checked.__code__.co_firstlineno + 4
    found.data["checker"]["marks"].append({"file": found.data["sheets"][0]["file"], "line": check, "words": "for this test"})
    page = opened(found)
    assert page.locator(".line.suspect").count() == 2
    assert page.locator(".suspicion", has_text="for this test").is_visible()


@pytest.mark.exhaustive
def test_a_right_op_says_so_and_has_its_maps(opened, rng):
    page = opened(explore(ops.tanh, rng.standard_normal((3, 4))))
    page.keyboard.press("r")
    assert page.inner_text("#wrong .verdict") == "PASS"
    assert page.locator(MAPS).count() == 3
    assert page.locator(".line.suspect").count() == 0
    assert page.inner_text("#wrong .at-entry").endswith("✓ the same but for rounding")


@pytest.mark.exhaustive
def test_a_blank_has_its_target(opened, inputs):
    page = opened(explore(test_checked.blank, *inputs))
    assert page.inner_text("#wrong .verdict") == "NOT TESTED"
    assert page.inner_text("#wrong figcaption") == "measured: what it has to be"
    assert page.locator(MAPS).count() == 1


def test_an_exercise_gives_no_line_away(opened, inputs):
    page = opened(explore_function(test_checked.halved, inputs, hints_only=True))
    assert "something is too much here" in page.inner_text("#wrong")
    assert page.locator("#wrong .code-said").count() == 0
    assert "dx = dy @ W.T\n" not in page.inner_text("#wrong") + "\n"
    assert page.get_by_role("button", name="Put right").count() == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1280, 420])
def test_the_maps_are_side_by_side_or_below_each_other_and_inside(opened, rng, width):
    def doubled(x):
        y = x * x
        return y, lambda dy: 4 * dy * x

    page = opened(explore(doubled, rng.standard_normal((4, 40))), viewport={"width": width, "height": 900})
    boxes = [page.locator(MAPS).nth(n).bounding_box() for n in range(3)]
    assert boxes[0]["x"] == boxes[1]["x"] == boxes[2]["x"]           # 40 columns: too wide to be side by side
    assert boxes[0]["y"] < boxes[1]["y"] < boxes[2]["y"]
    assert max(box["x"] + box["width"] for box in boxes) <= width
    assert page.evaluate("(id => { const e = document.getElementById(id); return e.scrollWidth <= e.clientWidth; })('inspector')")


@pytest.mark.exhaustive
def test_sizes_of_gradients_have_a_scale_from_0(opened, exploration):
    page = opened(exploration)
    page.keyboard.press("w")
    flow = [decoded(exploration.data["arrays"][ref]) for _, ref in exploration.data["recordings"][-1]["flow"]]
    scales = page.locator("#words .scale-row").all_inner_texts()
    for norms, scale in zip(reversed(flow), scales):
        assert scale.startswith("0 ")
        assert float(scale.split()[-1]) == pytest.approx(norms.max(), rel=5e-3)
    assert scales[len(flow)].startswith("0 ")            # A
    assert scales[-1].startswith("−")                    # dS
    colours = page.evaluate("""() => { const { data } = document.querySelector("#words .scale").getContext("2d").getImageData(0, 0, 120, 1);
      return [Array.from(data.slice(0, 3)), Array.from(data.slice(4 * 119, 4 * 119 + 3))]; }""")
    assert colours == [[255, 255, 255], page.evaluate("POSITIVE")]


@pytest.mark.exhaustive
def test_bugs_have_titles(opened, exploration):
    page = opened(exploration)
    assert page.locator("#alternative option").all_inner_texts() == ["none", "Layer norm: dx leaves out γ"]
    page.select_option("#alternative", index=1)
    assert page.inner_text("#wrong h3") == "Layer norm: dx leaves out γ"
    assert "g = dy * gamma" in page.inner_text("#wrong .checker")
    assert page.locator("#wrong pre").count() == 0


@pytest.mark.exhaustive
def test_a_page_about_one_bug_opens_with_it(opened, exploration):
    page = opened(replace(exploration, data=exploration.data | {"chosen": 0}))
    assert page.locator("#alternative option:checked").inner_text() == "Layer norm: dx leaves out γ"
    assert page.inner_text("#wrong h3") == "Layer norm: dx leaves out γ"
    assert page.locator("#map .differs").count() > 0


@pytest.mark.exhaustive
def test_why_gradients_are_0_is_said_at_that_moment_only(opened):
    read = tiny_reading()
    now = {name: p.data for name, p in read.model.parameters().items()}
    moments = [("first", now | {"A.W": np.zeros_like(now["A.W"])}), ("now", now)]
    page = opened(explore_model(read, "tiny", "for tests", moments, bugs=["linear: dW is a mean"]))
    assert "readout" not in page.inner_text("#notes")
    page.evaluate("chooseMoment(0)")
    assert "The readout starts at 0, and multiplies the gradient by it" in page.inner_text("#notes")
    page.evaluate("chooseMoment(1)")
    assert "readout" not in page.inner_text("#notes")
