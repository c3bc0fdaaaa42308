"""The map: which blocks a computation has, what flows between them, and the gradients that flow back."""

import itertools
import json

from mini_tf import ops
from mini_tf.explore import explore
from mini_tf.explore.dataflow import GIVEN, dataflow
from mini_tf.explore.page_data import PageData, paths
from mini_tf.explore.readings import reading
from mini_tf.gradcheck.learner import load
from mini_tf.models import GPT, Classifier, LanguageTransformer, Llama, RecurrentModel, RecurrentTranslator, Translator
from mini_tf.text import Vocabulary
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import SPECIAL, SentenceVocabulary
from tests.explore.conftest import TEXT, WORDS, decoded, tiny_reading

import numpy as np
import pytest


class Map:
    """A map as a page holds it, with its blocks by name"""

    def __init__(self, block, arrays):
        self.block, self.arrays = block, arrays
        self.blocks = block.get("blocks", [])
        self.edges = block.get("edges", [])
        self.names = [block.get("name", "") for block in self.blocks]

    def inside(self, name):
        return Map(self.blocks[self.names.index(name)], self.arrays)

    def array(self, ref):
        return decoded(self.arrays[ref])

    def arrows(self):
        """{(from, to)} by their names"""
        return {("given" if start == GIVEN else self.names[start], self.names[to]) for start, to, *_ in self.edges}

    def all(self):
        """This map, and those of all blocks inside"""
        return [self, *(deeper for block in self.blocks for deeper in Map(block, self.arrays).all())]


def map_of(exploration):
    return Map(json.loads(json.dumps(exploration.data["recordings"][-1]["map"])), exploration.data["arrays"])


def generic(model, rng):
    """No parameter is 0, so that everything has a gradient"""
    for p in model.parameters().values():
        p.data = p.data + (0.3 * rng.standard_normal(p.data.shape)).astype(p.data.dtype)
    return model


def map_of_reading(read):
    """Without the page around it, which takes time"""
    pages = PageData(read.axes)
    recorder = pages.record(read.run)
    found = dataflow(recorder, pages.store, pages.shown_calls(recorder), paths(read.model)).data()
    return Map(json.loads(json.dumps(found)), pages.store.arrays)


def map_of_model(model, vocabulary, rng, text=TEXT):
    return map_of_reading(reading(generic(model, rng), vocabulary, text))


def table(rng, words=WORDS):
    return rng.standard_normal((len(words), 8)).astype(np.float32)


@pytest.fixture
def words():
    return Vocabulary(WORDS)


def test_the_labs_transformer(exploration):
    found = map_of(exploration)
    assert found.names == ["word vectors", "positions", "layer 1", "layer 2", "readout", "cross-entropy"]
    assert found.arrows() == {("given", "word vectors"), *itertools.pairwise(found.names)}
    layer = found.inside("layer 1")
    assert layer.names == ["attention", "add x + relu(y)", "layer norm"]
    residual = {("given", "attention"), ("attention", "add x + relu(y)"), ("given", "add x + relu(y)")}
    assert layer.arrows() == residual | {("add x + relu(y)", "layer norm")}
    attention = layer.inside("attention")
    assert attention.block["detail"] == "2 heads"
    assert attention.arrows() == {
        *(("given", name) for name in ("query", "key", "value")), *((name, "attention") for name in ("query", "key", "value")),
        ("attention", "output"),
    }  # fmt: skip
    op = attention.inside("attention")
    assert op.names == ["query", "key", "value", "scores", "masked softmax", "Y"]
    assert {("query", "scores"), ("scores", "masked softmax"), ("masked softmax", "Y"), ("value", "Y")} < op.arrows()


def test_gradients_that_meet_add_up(exploration):
    """Where a layer's input is read twice, the gradients of both arrows together are the layer's."""
    found = map_of(exploration)
    for name in ("layer 1", "layer 2"):
        layer = found.inside(name)
        [(_, x)] = [one for one in layer.block["takes"] if one[0] == "x"]
        parts = [layer.array(edge[4]) for edge in layer.edges if edge[0] == GIVEN and edge[3] == x]
        assert len(parts) == 2
        np.testing.assert_allclose(sum(parts), layer.array(layer.block["gradients"]["x"]), rtol=1e-5, atol=1e-7)
        attention = layer.inside("attention")
        three = [attention.array(edge[4]) for edge in attention.edges if edge[0] == GIVEN]
        assert len(three) == 3
        np.testing.assert_allclose(sum(three), attention.array(attention.block["gradients"]["x"]), rtol=1e-5, atol=1e-7)


def test_the_gradient_of_an_arrow_is_the_next_blocks_dy(exploration):
    """Of every array that one block alone reads"""
    checked = 0
    for found in map_of(exploration).all():
        for start, _, _, ref, gradient in found.edges:
            alone = start != GIVEN and sum((one[0], one[3]) == (start, ref) for one in found.edges) == 1
            block = found.blocks[start]
            if alone and gradient is not None and "line" not in block and block.get("dy") is not None:
                one, other = found.array(gradient), found.array(block["dy"])         # in another shape, for each head
                np.testing.assert_allclose(np.linalg.norm(one), np.linalg.norm(other), rtol=1e-6)
                checked += 1
    assert checked > 20


def test_a_gpt_has_its_norms_before_and_plain_sums(words, rng):
    found = map_of_model(GPT(table(rng), T=7, L=1, H=2, m=3, f=6), words, rng)
    assert found.names == ["word vectors", "positions", "layer 1", "layer norm", "readout", "cross-entropy"]
    layer = found.inside("layer 1")
    assert layer.names == ["layer norm", "attention", "add", "layer norm", "feed-forward", "add"]
    assert [edge[:2] for edge in layer.edges] == [[-1, 0], [0, 1], [-1, 2], [1, 2], [2, 3], [3, 4], [2, 5], [4, 5]]
    assert all(edge[4] is not None for edge in layer.edges)


def test_a_new_gpt_whose_branches_give_0_has_the_same_map(words, rng):
    """x + 0 is x: the sum is there all the same."""
    model = GPT(table(rng), T=7, L=1, H=2, m=3, f=6)
    found = map_of_reading(reading(model, words, TEXT))
    assert found.inside("layer 1").names == ["layer norm", "attention", "add", "layer norm", "feed-forward", "add"]


def test_a_llama_shares_keys_and_turns_them(words, rng):
    found = map_of_model(Llama(table(rng), T=7, L=1, H=2, G=1, m=4, f=6), words, rng)
    attention = found.inside("layer 1").inside("attention")
    assert attention.names == ["query", "key", "value", "rotary", "rotary", "grouped attention", "output"]
    assert attention.edges[:3] == [[GIVEN, i, "x", *attention.edges[i][3:]] for i in range(3)]


def test_a_translator_reads_two_texts(rng):
    vocabulary = SentenceVocabulary.of([*SPECIAL, *WORDS], [])
    model = Translator(len(vocabulary), len(vocabulary), n=8, T=9, L=1, H=2, m=3, f=6)
    found = map_of_model(model, (vocabulary, vocabulary), rng)
    assert found.arrows() == {
        ("given", "Encoder"), ("given", "Decoder"), ("Encoder", "Decoder"), ("Decoder", "readout"),
        ("readout", "cross-entropy"),
    }  # fmt: skip
    layer = found.inside("Decoder").inside("layer 1")
    assert "cross attention" in layer.names
    assert ("given", "cross attention") in layer.arrows()


@pytest.mark.exhaustive
def test_other_models(words, rng):
    found = map_of_model(RecurrentModel(table(rng), T=6, k=5, cell="lstm"), words, rng)
    assert found.names == ["word vectors", "LSTM", "readout", "cross-entropy"]
    sentences = SentenceVocabulary.of([*SPECIAL, *WORDS], [])
    model = RecurrentTranslator(len(sentences), len(sentences), attention="additive", n=8, k=6, T=9)
    found = map_of_model(model, (sentences, sentences), rng, "the cat sat")
    assert ("LSTM 1", "additive attention") in found.arrows()
    assert ("both directions 1", "additive attention") in found.arrows()
    classes = ClassVocabulary.of([*SPECIAL, *WORDS])
    classes.classes = ("bad", "good")
    found = map_of_model(Classifier(table(rng, list(classes.words)), classes=2, T=9, L=1, H=2, m=3), classes, rng)
    assert ("Encoder", "mean over the words") in found.arrows()
    assert found.arrows() >= {("mean over the words", "add"), ("feed-forward 1", "add")}


def test_what_is_made_within_a_call_is_followed(words, rng):
    """A(vec(X)), in one line: the readout reads the last layer."""
    model = LanguageTransformer(table(rng), T=5, L=1, H=2, m=3, readout="vec")
    found = map_of_model(model, words, rng)
    assert ("layer 1", "readout") in found.arrows()


def test_inside_an_op_every_line_is_a_block():
    x, gamma, beta = np.random.default_rng(0).standard_normal((2, 5)), np.full(5, 2.0), np.ones(5)
    found = map_of(explore(ops.layer_norm, x, gamma, beta)).inside("layer norm")
    assert found.names == ["x", "gamma", "beta", "centred", "r", "normal", "y"]
    assert found.arrows() == {
        ("given", "x"), ("given", "gamma"), ("given", "beta"), ("x", "centred"), ("centred", "r"), ("centred", "normal"),
        ("r", "normal"), ("normal", "y"), ("gamma", "y"), ("beta", "y"),
    }  # fmt: skip
    assert set(found.block["gradients"]) == {"x", "gamma", "beta"}


def test_a_learners_functions_are_blocks(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def double(x):\n    y = 2 * x\n    return y, lambda dy: 2 * dy\n\n"
        "def triple(x):\n    y = 3 * x\n    return y, lambda dy: 3 * dy\n\n"
        "def both(x):\n    a, a_backward = double(x)\n    b, b_backward = triple(x)\n    y = (a  # double\n         * b)\n\n"
        "    def backward(dy):\n        da, db = dy * b, dy * a\n        return a_backward(da) + b_backward(db)\n\n"
        "    return y, backward\n", encoding="utf-8",
    )  # fmt: skip
    f, inputs, _ = load(f"{path}::both", ["x=2,3"])
    found = map_of(explore(f, *inputs)).inside("both")
    assert found.names == ["x", "double", "triple", "y"]
    assert found.blocks[-1]["detail"] == "y = (a * b)"     # on two lines, with a comment
    assert found.arrows() == {("given", "x"), ("x", "double"), ("x", "triple"), ("double", "y"), ("triple", "y")}
    da = {name: gradient for _, _, name, _, gradient in found.edges}["a"]
    dy = map_of(explore(f, *inputs)).block["dy"]
    np.testing.assert_allclose(found.array(da), found.array(dy) * 3 * inputs[0], rtol=1e-6)


def test_a_loop_is_left_closed(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\n\ndef total(x):\n    s = np.zeros(x.shape[1])\n    for row in x:\n        s = s + row\n"
        "    return s, lambda dy: np.broadcast_to(dy, x.shape)\n", encoding="utf-8",
    )  # fmt: skip
    f, inputs, _ = load(f"{path}::total", ["x=4,3"])
    [block] = map_of(explore(f, *inputs)).blocks
    assert "blocks" not in block


def test_each_moment_has_a_map_of_its_own(exploration):
    first, last = (one["map"] for one in exploration.data["recordings"])
    assert [block["name"] for block in first["blocks"]] == [block["name"] for block in last["blocks"]]
    assert first["edges"][2][3] != last["edges"][2][3]


def test_a_reading_without_layers_has_a_map():
    found = map_of_reading(tiny_reading(L=0))
    assert found.names == ["word vectors", "positions", "readout", "cross-entropy"]


LOCAL = '''
import numpy as np

def attention(x, W, Wv):
    q = x @ W
    v = x @ Wv
    e = np.exp(q @ x.T)
    a = e / e.sum(axis=-1, keepdims=True)

    def backward(dy):
        da, dv = dy @ v.T, a.T @ dy
        ds = a * (da - (da * a).sum(axis=-1, keepdims=True))
        dq = ds @ x
        dW, dWv = x.T @ dq, x.T @ dv
        return dq @ W.T + ds.T @ q + dv @ Wv.T, dW, dWv

    return a @ v, backward
'''

ON_SELF = '''
class Attention:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.W, self.Wv = rng.standard_normal((4, 4)), rng.standard_normal((4, 3))

    def share(self):
        self.a = self.e / self.e.sum(axis=-1, keepdims=True)

    def forward(self, x):
        self.x = x
        self.q = x @ self.W
        self.v = self.x @ self.Wv
        self.e = np.exp(self.q @ x.T)
        self.share()
        return self.a @ self.v

    def backward(self, dy):
        da, dv = dy @ self.v.T, self.a.T @ dy
        ds = self.a * (da - (da * self.a).sum(axis=-1, keepdims=True))
        dq = ds @ self.x
        self.dW, self.dWv = self.x.T @ dq, self.x.T @ dv
        return dq @ self.W.T + ds.T @ self.q + dv @ self.Wv.T
'''


def test_arrays_that_a_class_keeps_are_followed_as_local_ones_are(tmp_path):
    """q and self.q: the same blocks, arrows and gradients; but self.W is given by nobody, it is the block's own."""
    path = tmp_path / "mine.py"
    path.write_text(LOCAL + ON_SELF, encoding="utf-8")
    f, inputs, options = load(f"{path}::attention", ["x=5,4", "W=4,4", "Wv=4,3"])
    local = map_of(explore(f, *inputs, **options)).inside("attention")
    f, inputs, options = load(f"{path}::Attention", ["x=5,4"])
    kept = map_of(explore(f, *inputs, **options)).inside("Attention.forward")
    assert kept.names == ["x", "q", "v", "e", "a", "y"]
    assert kept.arrows() == {arrow for arrow in local.arrows() if arrow[0] not in ("W", "Wv") and arrow[1] not in ("W", "Wv")}
    kept_has, local_has = ({edge[2] for edge in found.edges if edge[4] is not None} for found in (kept, local))
    assert kept_has == local_has - {"W", "Wv"} == {"x", "q", "a", "v"}
    [(name, W, dW)] = kept.blocks[1]["parameters"]
    assert name == "W"
    np.testing.assert_array_equal(kept.array(W), f.W)
    assert kept.array(dW).shape == (4, 4)
