"""PageData: of models, ops and learners' code, right, wrong and broken."""

import json
import re
import textwrap

from mini_tf import layers, ops
from mini_tf.errors import UserError
from mini_tf.explore import Exploration, explore
from mini_tf.explore import exploration as exploring
from mini_tf.explore.exploration import explore_function, explore_model
from mini_tf.explore.page_data import paths, with_shared_bytes
from mini_tf.explore.small import spoken
from mini_tf.gradcheck.learner import load
from tests.explore.conftest import decoded, tiny_model, tiny_reading

import numpy as np
import pytest

OP = '''
    import numpy as np

    def f(x):
        """y = 2·x, text full of </script><script>alert(1)</script>"""
        e = 2 * x
        {forward}

        def backward(dy):
            {backward}
            return dx

        return y, backward
    '''  # fmt: skip


def explored(tmp_path, forward="y = e + 0", backward="dx = 2 * dy"):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(OP).format(forward=forward, backward=backward), encoding="utf-8")
    f, inputs, _ = load(f"{path}::f", ["x=3,4"])
    return explore(f, *inputs)


def line_of(exploration, name):
    """(the line, the array) of the last thing of that name"""
    data = exploration.data
    for line in reversed(data["recordings"][-1]["lines"]):
        for n, ref, *_ in line["made"]:
            if n == name:
                return line, decoded(data["arrays"][ref]) if isinstance(ref, int) else ref
    raise AssertionError(name)


def test_a_page_is_one_file_that_needs_nothing_else(exploration, tmp_path):
    exploration.write(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"(src|href)\s*=", re.sub(r"<script id=\"data\".*?</script>", "", page, flags=re.S))
    assert "@import" not in page
    without_data = re.sub(r"<script id=\"data\".*?</script>", "", page, flags=re.S)
    assert "http" not in without_data.replace("http://www.w3.org/2000/svg", "")      # a name, which nothing asks for
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, flags=re.S)[1])
    assert data["kind"] == "model"
    assert [recording["label"] for recording in data["recordings"]] == ["earlier", "now"]


def test_the_page_has_the_same_bytes_once(exploration):
    """Of reshaped arrays, and of their slopes: nothing else changes."""
    packed = with_shared_bytes(exploration.data)
    texts = packed["bytes"]
    assert len(set(texts)) == len(texts)
    for about, own in zip(packed["arrays"], exploration.data["arrays"]):
        assert texts[about["data"]] == own["data"]
        for of, found in own.get("measured", {}).items():
            assert {name: x if x is None else texts[x] for name, x in about["measured"][of].items()} == found
    before, after = (len(json.dumps(data)) for data in (exploration.data, packed))
    assert after < 0.96 * before


@pytest.mark.exhaustive
def test_of_larger_models_less_is_shown_of_each_array(monkeypatch):
    """So that all recordings of a training fit into a page; sizes are those of the whole arrays."""
    monkeypatch.setattr(exploring, "LEAST", 8)
    monkeypatch.setattr(exploring, "ROOM", 100_000)
    read = tiny_reading()
    whole = explore(read.model, read.batch, words=read.words, bugs=["linear: dW is a mean"])
    now = {name: p.data for name, p in read.model.parameters().items()}
    found = explore_model(read, "tiny", "for tests", [("first", now), ("now", now)], ["linear: dW is a mean"])
    parts = [about for about in found.data["arrays"] if "shown" in about]
    assert len(parts) > 20
    assert {about["norm"] for about in parts} <= {about["norm"] for about in whole.data["arrays"]}
    sizes = [decoded(about).size for about in parts]
    assert 8 <= max(sizes) <= 64


@pytest.mark.exhaustive
def test_a_readout_of_zeros_is_said_at_its_moment():
    read = tiny_reading()
    now = {name: p.data for name, p in read.model.parameters().items()}
    first = now | {"A.W": np.zeros_like(now["A.W"])}
    found = explore_model(read, "tiny", "for tests", [("first", first), ("now", now)], bugs=["linear: dW is a mean"])
    earlier, last = found.data["recordings"]
    assert len(earlier["notes"]) == 1
    assert earlier["notes"][0].startswith("The readout starts at 0")
    assert last["notes"] == []
    dtable = [ref for frame in earlier["frames"] if frame["name"] == "accumulate" and frame["at"].endswith("table")
              for name, ref in frame["arguments"] if name == "gradient"]          # fmt: skip
    assert [found.data["arrays"][ref]["norm"] for ref in dtable] == [0]


def test_each_step_is_told_before_it_begins():
    said = []
    read = tiny_reading()
    now = {name: p.data for name, p in read.model.parameters().items()}
    explore_model(read, "tiny", "for tests", [("first", now), ("now", now)], ["linear: dW is a mean"], said.append)
    assert said == ["recording: now", "recording: first", "measuring slopes", "planting bugs"]
    said.clear()
    explore_function(ops.tanh, [np.ones((2, 3))], say=said.append)
    assert said == ["checking the gradients", "recording", "measuring slopes"]


def test_the_moments_have_their_own_numbers(exploration):
    earlier, now = (recording["lines"] for recording in exploration.data["recordings"])
    assert len(earlier) == len(now)
    same = sum(a["made"] == b["made"] for a, b in zip(earlier, now))
    assert same < 0.5 * len(now)


def test_an_ops_page_has_its_gradients_the_checker_and_slopes(rng):
    found = explore(ops.tanh, x := rng.standard_normal((3, 4)))
    line, dx = line_of(found, "dx")
    _, dy = line_of(found, "y")
    assert found.data["checker"]["verdict"] == "PASS"
    assert found.title == "tanh"
    recording = found.data["recordings"][0]
    backward = next(frame for frame in recording["frames"] if frame["back"])
    given = decoded(found.data["arrays"][dict(backward["arguments"])["dy"]])
    np.testing.assert_allclose(dx, given * (1 - np.tanh(x) ** 2), rtol=1e-12)
    assert any("measured" in about for about in found.data["arrays"])


def test_a_wrong_backward_is_corrected(tmp_path):
    found = explored(tmp_path, backward="dx = -2 * dy")
    assert found.data["checker"]["verdict"] == "FAIL"
    corrected, = found.data["alternatives"]
    assert corrected["name"] == "corrected"
    assert re.sub("<[^>]*>", "", corrected["edited"]).strip() in ("dx = 2 * dy", "return -dx")
    (_, made), *_ = corrected["lines"].items()
    right = decoded(found.data["arrays"][made[0][1]])
    np.testing.assert_array_equal(right, -line_of(found, "dx")[1])


STEPS = """
    import numpy as np

    def affine(x, W):
        return x @ W, lambda dy: (dy @ W, x.T @ dy)

    def tanh(x):
        y = np.tanh(x)
        return y, lambda dy: dy * (1 - y * y)

    def layer(x, W):
        a, affine_backward = affine(x, W)
        y, tanh_backward = tanh(a)
        return y, lambda dy: affine_backward(tanh_backward(dy))
"""


def test_a_wrong_step_is_corrected(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(STEPS), encoding="utf-8")
    f, inputs, _ = load(f"{path}::layer", ["x=3,4", "W=4,4"])
    corrected, = explore(f, *inputs).data["alternatives"]
    assert "dy @ W.T" in re.sub("<[^>]*>", "", corrected["edited"])
    assert corrected["about"].endswith(".")
    assert corrected["lines"]


@pytest.mark.parametrize(("change", "says"), [
    ({"forward": "y = e.reshape(5, 5)"}, "It stopped with ValueError: cannot reshape"),
    ({"backward": "dx = dy @ dy"}, "It stopped with ValueError: matmul"),
    ({"forward": "y = np.log(-e * e)"}, "The first array that is not finite is y, at"),
    ({"backward": "dx = 2 * dy / 0"}, "The first array that is not finite is dx, at"),
    ({"forward": "y = e * (np.random.rand(3, 4) > 0.5)"}, "A second run gave other numbers, from"),
    ({"backward": "dx = ..."}, "Still blank: dx. The page shows how far the backward comes without."),
    ({"backward": "g = ...; dx = dy * g"}, "`g` is still `...`, a blank to fill"),
    ({"forward": "return 2 * x"}, "The checker: f returned one ndarray, expected"),
])  # fmt: skip
def test_what_goes_wrong_is_said_and_the_page_is_there(tmp_path, change, says):
    found = explored(tmp_path, **change)
    assert any(says in note for note in found.notes), found.notes
    assert line_of(found, "e")[1].shape == (3, 4)
    assert found.html().rstrip().endswith("</html>")
    if any(note.startswith("It stopped") for note in found.notes):
        assert any("error" in line for line in found.data["recordings"][0]["lines"])


def test_no_line_of_an_exercise_is_corrected(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(OP).format(forward="y = e + 0", backward="dx = dy"), encoding="utf-8")
    f, inputs, _ = load(f"{path}::f", ["x=3,4"])
    found = explore_function(f, inputs, hints_only=True)
    assert found.data["alternatives"] == []
    assert "2 * dy" not in json.dumps(found.data["checker"])
    mark, = found.data["checker"]["marks"]               # where, and what kind of change: as the report says
    assert (mark["line"], mark["words"]) == (10, "a factor is missing, or one too many")


def test_text_full_of_tags_stays_text(tmp_path):
    page = explored(tmp_path).html()
    assert "<script>alert" not in page
    assert page.count("</script>") == 2                  # the data's, and the script's


def test_objects_and_pairs_can_be_explored(tmp_path, rng):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent('''
        import numpy as np

        def affine_forward(x, w):
            out = x @ w
            return out, (x, w)

        def affine_backward(dout, cache):
            x, w = cache
            return dout @ w.T, x.T @ dout

        class Scale:
            def __init__(self):
                self.g = np.array([2.0, 3.0, 4.0, 5.0])

            def forward(self, x):
                self.x = x
                return x * self.g

            def backward(self, dout):
                self.dg = (dout * self.x).sum(0)
                return dout * self.g
        '''), encoding="utf-8")  # fmt: skip
    f, inputs, _ = load(f"{path}::affine", ["x=3,4", "w=4,2"])
    pair = explore(f, *inputs)
    assert line_of(pair, "out")[1].shape == (3, 2)
    assert pair.notes == []
    machine, inputs, _ = load(f"{path}::Scale", ["x=3,4"])
    found = explore(machine, *inputs)
    assert line_of(found, "self.dg")[1].shape == (4,)
    assert found.notes == []
    for one, forward in ((pair, "affine_forward"), (found, "forward")):      # each backward belongs to its forward
        frames = one.data["recordings"][0]["frames"]
        makers = [frames[frame["maker"]]["name"] for frame in frames if frame["back"]]
        assert makers == [forward]
    assert line_of(pair, "dx")[1].shape == (3, 4)
    line, _ = line_of(found, "self.dg")
    assert line["made"][0][2]["op"] == "sum"             # its terms: self.x is what the forward kept


def test_what_gradcheck_is_told_can_be_told_here_too(tmp_path, rng):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent('''
        class Scale:
            def __init__(self):
                self.factor = 2.0

            def there(self, x):
                y = self.factor * x
                return y

            def and_back(self, dout):
                dx = self.factor * dout
                return dx
        '''), encoding="utf-8")  # fmt: skip
    machine, inputs, options = load(f"{path}::Scale", ["x=3,4"], methods=("there", "and_back"))
    found = explore(machine, *inputs, **options)
    assert found.data["checker"]["verdict"] == "PASS"
    frames = found.data["recordings"][0]["frames"]
    assert [frames[frame["maker"]]["name"] for frame in frames if frame["back"]] == ["there"]
    x = rng.standard_normal((1, 3, 4))
    scaled = explore(ops.attention, x, x, x, scale=0.5)
    assert scaled.data["checker"]["verdict"] == "PASS"
    with pytest.raises(TypeError, match="takes no scale"):
        explore((read := tiny_reading()).model, read.batch, scale=0.5)


@pytest.mark.exhaustive
def test_a_layer_and_a_model_with_a_batch(rng):
    layer = layers.LayerNorm(4, np.float64)
    assert line_of(explore(layer, rng.standard_normal((3, 4))), "dgamma")[1].shape == (4,)
    read = tiny_reading()
    found = explore(read.model, read.batch, words=read.words, bugs=["linear: dW is a mean"])
    assert isinstance(found, Exploration)
    assert found.data["words"] == read.words
    assert len(found.data["alternatives"]) == 1
    assert all(p.grad is None for p in read.model.parameters().values())


def test_a_notebook_shows_the_page_in_a_frame(exploration):
    cell = exploration._repr_html_()
    assert cell.startswith("<iframe srcdoc=")
    assert "<script" not in cell                         # escaped, all of it


def test_a_page_that_cannot_be_written_is_one_sentence(exploration, tmp_path):
    with pytest.raises(UserError, match="cannot be written"):
        exploration.write(tmp_path)


def test_paths_name_layers_as_the_model_does():
    found = paths(model := tiny_model())
    assert found[id(model)] == ""
    assert found[id(model.trunk.layers[1].attention.query)] == "trunk.layers.1.attention.query"
    assert found[id(model.A.W)] == "A.W"


def test_the_small_models_text_is_what_is_said():
    play = "x\nBERNARDO:\nWho's there?\n\nFRANCISCO:\nNay, answer me: stand.\n"
    assert spoken(play) == "Who's there? Nay, answer me: stand."
