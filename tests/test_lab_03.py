"""Labs 03, 03b, 03c and 03d run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.reader import lab_output

import numpy as np
import pytest

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"

network = lab_output(
    "03_recurrent", ["03_through_time", "03_powers", "03_bound", "03_gradient_by_distance", "03_exploding"]
)
trained = lab_output("03b_recurrent_on_shakespeare", ["03_proctor", "03_training", "03_memory"])
gated = lab_output("03c_gates", ["03c_far_word", "03c_accuracy"])
translated = lab_output("03d_sequence_to_sequence", ["03d_bottleneck", "03d_maps"])


def numbers(start, text):
    """The numbers after the start of a line."""
    found = re.search(rf"^ *{re.escape(start)}(.*)", text, re.MULTILINE)
    assert found, f"no line starts with {start!r}"
    return [float(each.replace(",", "")) for each in re.findall(rf"(?<![\w.^]){NUMBER}(?!\w)", found[1])]


def test_one_state(network):
    h_1 = np.tanh([0.5 + 0.16 - 0.02 + 0.1, -0.3 - 0.12 - 0.09 - 0.1])           # the formula, once more
    by_hand, by_library = np.reshape(numbers("h_1", network), (2, 2))
    np.testing.assert_allclose(by_hand, h_1, atol=6e-4)
    np.testing.assert_array_equal(by_hand, by_library)


def test_backpropagation_through_time(network):
    parts = [numbers(f"h_{t - 1}ᵀ·da_{t}", network) for t in (1, 2, 3)]
    np.testing.assert_allclose(np.sum(parts, axis=0), numbers("sum = dWh", network), atol=2e-3)
    assert network.count("PASS: gradients of rnn_by_hand") == 2


def test_powers(network):
    W = np.array([[0.8, 0.2], [-0.6, 0.9]])
    for t in (5, 10, 50):
        assert numbers(f"W^{t} ", network)[:4] == pytest.approx(np.linalg.matrix_power(W, t).ravel().tolist(), abs=6e-5)


def test_bound(network):
    """In the table: γ‖Wh‖ from ‖Wh‖, the bound at d = 20 from that, and every length below it."""
    table = network[network.index("4. ‖v_d‖") : network.index("5. Size of")]
    for f, kind, gamma in (("tanh", "1.3 · rotation", 1), ("relu", "1.3 · rotation", 1), ("logistic", "8.0 · rotation", 0.25)):
        stretch, _, product, length, bound, per_step = numbers(f"{f:<8}   {kind}", table)
        assert product == pytest.approx(gamma * stretch)
        assert bound == pytest.approx(product**20, rel=0.1)
        assert length < bound
        assert per_step < product


def test_gradients_measured(network):
    table = network[network.index("5. Size of") :]

    def per_step(activation, words, g):
        return numbers(f"{activation}   {words:<5}   {g}", table)[-1]

    for g in (0.7, 1.0, 1.3, 2.0):
        assert per_step("relu", "quiet", g) == pytest.approx(g / np.sqrt(2), rel=0.1)        # half of the units are off
    assert per_step("tanh", "loud", 1.0) < per_step("tanh", "loud", 1.3)


@pytest.mark.exhaustive
def test_proctor(trained):
    """In the table: p of the right word behind so many words of filler, for each model."""
    table = trained[trained.index("2. p(the right word)") :]
    for filler in (0, 3, 7, 12):
        narrow, wide, by_tanh, by_relu = numbers(f"{filler} ", table)
        assert narrow == pytest.approx(0.5, abs=0.01)
        assert (wide > 0.75) == (filler <= 3)
        assert by_tanh == pytest.approx(0.5, abs=0.03)
        assert by_relu > 0.95


@pytest.mark.exhaustive
def test_memory(trained):
    table = trained[trained.index("d, words") :]
    added = {d: numbers(f"{d} ", table)[0] for d in (0, 1, 2, 5, 20, 50)}
    assert added[0] > added[1] > added[2] > added[5] > 0.02
    assert abs(added[50]) < 0.001
    before, after = numbers("untrained  ", trained), numbers("trained  ", trained)
    assert after[3] < before[3] < 0.1                       # at distance 20


@pytest.mark.exhaustive
def test_writing_and_bad_input(trained):
    for words in (10, 100, 300, 1000):
        few, many = numbers(f"{words:,} ", trained[trained.index("words so far") :])
        assert (few, many) == (1, words)
    assert trained.count("the logits are not numbers (NaN)") == 2
    assert "the id 14295, expected ids from 0 to" in " ".join(trained.split())


@pytest.mark.exhaustive
def test_gates(gated):
    """In the table: per step, the product of f keeps about σ(b_f) of a gradient, and the whole gradient more."""
    table = gated[gated.index("3. LSTM: gradient") :]
    for b_f in (0, 1, 3):
        table = table[table.index(f"b_f = {b_f} ") :]
        whole, path = numbers(f"b_f = {b_f}", table), numbers("product of f", table)
        assert path[-1] == pytest.approx(1 / (1 + np.exp(-b_f)), abs=0.03)
        assert whole[-1] > path[-1]
    assert gated.count("PASS: gradients of five steps of") == 2


@pytest.mark.exhaustive
def test_one_vector_and_attention(translated):
    """In the tables: letters right, by length; the longer the string the fewer, but not with attention."""
    for name in ("one vector, k = 64", "one vector, k = 128"):
        right = numbers(name, translated)[1:]
        assert right == sorted(right, reverse=True)
        assert right[-1] < 0.7
    for name in ("multiplicative, k = 64", "additive, k = 64"):
        assert min(numbers(name, translated)[1:]) > 0.8
    assert translated.count("PASS: gradients of") == 2
