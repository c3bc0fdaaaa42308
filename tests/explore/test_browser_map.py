"""The map and the story in a real browser."""

import re

from mini_tf import ops
from mini_tf.explore import explore

import numpy as np
import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def mapped(opened, exploration):
    return opened(exploration)


def block(page, key):
    return page.locator(f'#map [data-key="{key}"] > .face')


def numbers_in(text):
    return [float(one.replace("−", "-")) for one in re.findall(r"−?\d+(?:\.\d+)?(?:e−?\d+)?", text)]


def test_the_page_opens_on_the_map(mapped):
    names = mapped.locator("#map .face .name").all_text_contents()
    assert names == [
        "word vectors", "positions", "layer 1", "attention", "add x + relu(y)", "layer norm", "layer 2", "attention",
        "add x + relu(y)", "layer norm", "readout", "cross-entropy",
    ]  # fmt: skip
    assert not mapped.locator("#code").is_visible()
    assert not mapped.locator("#hints").is_visible()
    assert "Follow one gradient" in mapped.inner_text("#block")
    heights = [mapped.locator(f'#map [data-key="{key}"]').bounding_box()["y"] for key in ("0", "1", "2", "3", "4", "5")]
    assert heights == sorted(heights, reverse=True)      # the words at the bottom, the loss at the top


def test_a_block_opens_into_its_parts_and_then_into_its_lines(mapped):
    block(mapped, "3/0").click()
    assert mapped.locator('#map [data-key^="3/0/"] > .face .name').all_text_contents() == [
        "query", "key", "value", "attention", "output",
    ]  # fmt: skip
    assert mapped.inner_text("#block h3").startswith("attention")
    block(mapped, "3/0/3").click()
    assert "splits" in mapped.inner_text("#block")
    block(mapped, "3/0/3").click()                       # once more: its lines
    assert mapped.inner_text("#sheet-title") == "attention"
    assert mapped.locator('#map .chosen[data-key="3/0/3"]').count() == 1
    mapped.keyboard.press("m")
    assert not mapped.locator("#code").is_visible()
    mapped.locator('#map [data-key="3/0"] > .toggle').click()
    assert mapped.locator('#map [data-key^="3/0/"]').count() == 0


@pytest.mark.exhaustive
def test_by_keys(mapped):
    block(mapped, "5").focus()
    mapped.keyboard.press("Enter")
    assert mapped.inner_text("#block h3").startswith("cross-entropy")
    assert mapped.evaluate("document.activeElement.closest('.block').dataset.key") == "5"
    mapped.keyboard.press("Enter")
    assert mapped.inner_text("#sheet-title") == "cross_entropy"
    mapped.keyboard.press("t")
    assert mapped.locator("#calls .call").count() > 10
    assert not mapped.locator("#map").is_visible()


@pytest.mark.exhaustive
def test_an_arrow_shows_its_gradient(mapped, exploration):
    """The widths are logarithms of the sizes, and a click shows the array."""
    arrow = mapped.evaluate("""() => {
      const layer = recording().map.blocks[3], [, , name, ref, gradient] = layer.edges[0];
      pinArrow(name, ref, gradient);
      return [gradient, state.pinned.ref, currentTab()];
    }""")
    assert arrow[0] == arrow[1]
    assert arrow[2] == "array"
    pairs = mapped.evaluate("""() => [...document.querySelectorAll("#map .arrow")].map((arrow) => [
      arrow.querySelector("title").textContent, ...["up", "down"].map((side) => Number(arrow.querySelector(`.${side}`)?.getAttribute("stroke-width")))])""")
    sized = [(numbers_in(text.split("gradient")[1])[-1], width) for text, _, width in pairs if "‖d" in text]
    assert len(sized) > 8
    order = sorted(sized)
    assert all(one[1] <= other[1] + 1e-6 for one, other in zip(order, order[1:]))


@pytest.mark.exhaustive
def test_the_other_moments_map(mapped):
    before = mapped.locator("#map").inner_html()
    mapped.evaluate("const m = document.getElementById('moment'); m.value = 0; m.dispatchEvent(new Event('input'))")
    assert mapped.locator("#map").inner_html() != before


@pytest.mark.exhaustive
def test_a_wrong_backward_is_marked_on_the_map(mapped):
    mapped.select_option("#alternative", label=mapped.locator("#alternative option").nth(1).inner_text())
    mapped.evaluate("showView('map')")
    marked = mapped.evaluate("[...document.querySelectorAll('#map .differs')].map((one) => one.dataset.key)")
    assert "0" in marked                                 # the word vectors, at the end of the backward
    assert "5" not in marked                             # the loss, at its beginning
    assert any("wrong by" in text for text in mapped.locator("#map .happens").all_text_contents())


def test_the_story_goes_from_the_loss_to_a_word(mapped, exploration):
    mapped.get_by_role("button", name="Follow one gradient").click()
    titles, sentences = [], []
    for _ in range(20):
        title = mapped.inner_text("#story-title")
        if titles and title == titles[-1]:
            break
        titles.append(title)
        sentences.append(mapped.inner_text("#story-says"))
        if mapped.inner_text("#story-on") == "end":
            break
        mapped.keyboard.press("ArrowRight")
    count = len(titles)
    assert count == 11
    assert [title.split(" · ")[0] for title in titles] == [f"{i} of {count}" for i in range(1, count + 1)]
    for words in ("How wrong", "p − y", "readout", "layer norm", "splits", "Attention", "dA", "dS", "Three ways", "one word", "Change one"):
        assert any(words in title for title in titles), words
    assert all(1 <= len(re.findall(r"[.!?:](?: |$)", says)) <= 6 for says in sentences)
    assert mapped.evaluate("location.hash") == f"#step={count}"
    assert mapped.locator("#wrong").is_visible()
    mapped.keyboard.press("ArrowLeft")
    assert mapped.inner_text("#story-title") == titles[-2]
    mapped.keyboard.press("Escape")
    assert not mapped.locator("#story").is_visible()


def test_the_numbers_of_the_story_are_the_arrays(mapped):
    """The probability, p − y, and the sizes of rows, computed anew."""
    found = mapped.evaluate("""() => {
      const about = subject(), says = (title) => storySteps().find((step) => step.title.startsWith(title)).says;
      const rows = (ref) => { const a = arrayOf(ref); return Array.from(a.values.slice(about.row * a.shape[2], (about.row + 1) * a.shape[2])); };
      const readout = recording().map.blocks[4];
      return { row: about.row, id: about.id, logits: rows(about.loss.takes[0][1]), dlogits: rows(about.loss.gradients.logits), rows: about.rows,
        dx: rows(readout.gradients.x), guess: says("How wrong"), loss: says("At the loss"), readout: says("Through the readout") };
    }""")
    z = np.array(found["logits"])
    p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
    assert f"a probability of {100 * p[found['id']]:.2g} %" in found["guess"]
    assert f"= {-np.log(p[found['id']]):.3g}" in found["guess"]
    expected = (p[found["id"]] - 1) / found["rows"]
    assert found["dlogits"][found["id"]] == pytest.approx(expected, rel=1e-4)
    assert f"= {expected:.3g}".replace("-", "−") in found["loss"]
    assert f"of size {np.linalg.norm(found['dx']):.3g}" in found["readout"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [(1280, 800), (420, 800)])
def test_no_step_of_the_story_is_cut_off(opened, exploration, size):
    page = opened(exploration, viewport=dict(zip(("width", "height"), size)))
    cut = page.evaluate("""() => storySteps().map((step, i) => {
      goToStory(i + 1);
      return [document.getElementById("story"), document.querySelector("#story > div")].some((one) => one.scrollHeight > one.clientHeight) ? step.title : null;
    })""")
    assert cut == [None] * 11


@pytest.mark.exhaustive
def test_the_three_ways_back_are_the_terms_that_are_shown(mapped):
    mapped.evaluate("goToStory(9)")
    assert [text.split("\n")[0] for text in mapped.locator("#array .terms .term").all_inner_texts()] == [
        "+ by the query", "+ by the key", "+ by the value",
    ]  # fmt: skip
    terms = [numbers_in(text)[0] for text in mapped.locator("#array .terms b").all_inner_texts()]
    assert sum(terms) == pytest.approx(numbers_in(mapped.inner_text("#array .entry .value"))[0], rel=1e-2)
    says = mapped.inner_text("#story-says")
    assert all(f"by the {name}" in says for name in ("query", "key", "value"))


@pytest.mark.exhaustive
def test_an_entry_that_was_reshaped_is_said_to_be_the_same(mapped):
    mapped.evaluate("goToStory(2)")
    assert mapped.inner_text("#array .terms p") == "= the same number, before the reshape:"


@pytest.mark.exhaustive
def test_word_ids_have_no_size(mapped):
    block(mapped, "5").click()
    rows = mapped.locator("#block .flow tr").all_inner_texts()
    assert ["‖·‖" in row for row in rows if "takes" in row] == [True, False]         # of logits and targets


@pytest.mark.exhaustive
def test_a_link_leads_to_a_step(opened, exploration, tmp_path):
    page = opened(exploration, quiet=False)
    page.goto(page.url.partition("#")[0] + "#step=7")
    page.reload()
    assert page.inner_text("#story-title").startswith("7 of")
    page.evaluate("location.hash = '#step=2'")
    page.wait_for_function("document.getElementById('story-title').textContent.startsWith('2 of')")


@pytest.mark.exhaustive
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_step_plays(opened, exploration, motion):
    page = opened(exploration, reduced_motion=motion)
    seen = page.evaluate("""() => {
      const found = [];
      const real = setInterval;
      window.setInterval = (next) => { window.next = next; return real(() => {}, 1e6); };
      playMap();
      for (let i = 0; i < 60 && mapState.playing; i++) { found.push(document.getElementById("map-says").textContent); window.next(); }
      return found;
    }""")
    assert seen[0].startswith("forward: word vectors gives (1, 5, 8)")
    turn = next(i for i, says in enumerate(seen) if says.startswith("backward"))
    assert seen[turn].startswith("backward: cross-entropy")
    assert len(seen) == 2 * turn
    assert "splits: ‖dx‖" in " ".join(seen[turn:])
    assert not page.evaluate("Boolean(mapState.playing)")
    assert page.evaluate("getComputedStyle(document.querySelector('#map .face')).transitionDuration") == "0s"


@pytest.mark.exhaustive
def test_an_op_has_a_map_and_no_story(opened):
    x, gamma, beta = np.random.default_rng(0).standard_normal((2, 5)), np.full(5, 2.0), np.ones(5)
    page = opened(explore(ops.layer_norm, x, gamma, beta))
    names = page.locator("#map .face .name").all_text_contents()
    assert names == ["layer norm", "x", "gamma", "beta", "centred", "r", "normal", "y"]
    assert not page.evaluate("storyExists()")
    sizes = [note for note in page.locator("#map .happens").all_text_contents() if "‖dx‖" in note]
    assert [re.findall("‖(d[a-z]+)‖", note) for note in sizes] == [["dx", "dgamma", "dbeta"]]        # beside x


@pytest.mark.exhaustive
def test_arrows_pass_a_long_title(opened):
    def L2Norm_of_all_WORDS(x):
        y = np.tanh(x)
        return y, lambda dy: dy * (1 - y * y)

    page = opened(explore(L2Norm_of_all_WORDS, np.ones((2, 3))))
    title = page.locator('#map [data-key="0"] > .face .name').bounding_box()
    arrows = [arrow.bounding_box() for arrow in page.locator("#map path.up, #map path.down").all()]
    assert len(arrows) >= 4
    assert title["x"] + title["width"] < min(box["x"] for box in arrows)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [(420, 800), (800, 1100), (1024, 768), (1280, 800)])
def test_nothing_runs_off(opened, exploration, size):
    page = opened(exploration, viewport=dict(zip(("width", "height"), size)))
    for view in ("map", "lines"):
        page.evaluate(f"{{ goToStory(0); showView('{view}'); }}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        for part in ("header", "#overview", "#inspector", *(("footer",) if view == "lines" else ())):
            box = page.locator(part).bounding_box()
            assert box["width"] > 150, (part, view)
            assert box["x"] >= 0, (part, view)
            assert box["x"] + box["width"] <= size[0] + 1, (part, view)
            assert box["y"] + box["height"] <= size[1] + 1, (part, view)
    page.evaluate("openLines(recording().turn)")
    assert page.locator(".line.now").is_visible()        # on a phone, too
    page.evaluate("goToStory(5)")
    box = page.locator("#story").bounding_box()
    assert box["y"] + box["height"] <= size[1] + 1
    labels = page.locator("#map svg").bounding_box(), page.locator("#map").bounding_box()
    assert labels[0]["x"] >= labels[1]["x"] - 1          # nothing is clipped on the left


def test_everything_has_a_name_for_a_screen_reader(mapped):
    nameless = mapped.evaluate("""() => [...document.querySelectorAll("button, select, input, [role=button], [role=tab]")].filter((one) => one.offsetParent !== null || one.closest("svg"))
      .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.title || one.labels?.length)).map((one) => one.outerHTML.slice(0, 80))""")
    assert nameless == []
    order = mapped.evaluate("[...document.querySelectorAll('#map [tabindex]')].map((one) => one.closest('.block').dataset.key)")
    assert order == sorted(order)                        # from the words up


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_written_can_be_read(opened, exploration, scheme):
    """Contrast of at least 4.5 (WCAG AA), of the map's texts on their blocks, and of the page's soft text."""
    page = opened(exploration, color_scheme=scheme)
    ratios = page.evaluate("""() => {
      const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const rgb = (colour) => { canvas.fillStyle = "#fff"; canvas.fillRect(0, 0, 1, 1); canvas.fillStyle = getComputedStyle(document.body).backgroundColor; canvas.fillRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3); };
      const light = (colour) => { const [r, g, b] = rgb(colour).map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const ratio = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };
      const found = [];
      for (const text of document.querySelectorAll("#map .face text")) found.push([text.textContent, ratio(getComputedStyle(text).fill, getComputedStyle(text.parentElement.querySelector("rect")).fill.replace("none", getComputedStyle(document.body).backgroundColor))]);
      for (const text of document.querySelectorAll("#map .happens, #map .column, #map .words")) found.push([text.textContent, ratio(getComputedStyle(text).fill, getComputedStyle(document.body).backgroundColor)]);
      for (const one of document.querySelectorAll(".inviting, [aria-pressed=true]")) found.push([one.textContent, ratio(getComputedStyle(one).color, getComputedStyle(one).backgroundColor)]);
      return found;
    }""")
    assert len(ratios) > 20
    assert [one for one in ratios if one[1] < 4.5] == []
