"""Labs 03 and 03b run from any folder, draw what they say they draw, and find the numbers that are known."""

import re

from tests.reader import lab_output

import numpy as np
import pytest

pytestmark = pytest.mark.lab

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"

network = lab_output("03_recurrent", ["03_through_time", "03_powers", "03_gradient_by_distance", "03_exploding"])
trained = lab_output("03b_recurrent_on_shakespeare", ["03_training", "03_memory"])


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
    assert numbers("largest difference, expected about 1e-16 or 0:", network)[0] < 1e-15
    for T in (4, 16, 64, 256):
        assert numbers(f"{T} ", network)[:2] == [T * 64 * 128 + 128, 64 * 128 + 128 * 128 + 2 * 128]
    assert "scores of shape (1, 5) after 0, 1, 10 and 1,000 words: True" in network


def test_teacher_forcing(network):
    for step in ("1   We", "2   know't  ,", "5   know't  .", "6   .       \\n"):
        untrained, trained = numbers(step, network)[-2:]
        assert untrained == pytest.approx(np.log(6), abs=5e-4)
        assert trained < 0.1 < np.log(2)                         # also after "know't", which a bigram cannot know
    assert numbers("mean over the steps", network) == numbers("model.loss(window)", network)


def test_backpropagation_through_time(network):
    parts = [numbers(f"h_{t - 1}ᵀ·da_{t}", network) for t in (1, 2, 3)]
    assert numbers("sum = dWh", network) == numbers("ops.rnn    (", network)
    np.testing.assert_allclose(np.sum(parts, axis=0), numbers("sum = dWh", network), atol=2e-3)
    assert network.count("PASS: gradients of rnn_by_hand") == 2
    for activation in ("tanh", "relu"):
        assert numbers(f"{activation}: largest difference from ops.rnn", network)[0] < 1e-14
    last, first = zip(*(numbers(f"Wh = {g} · rotation:  last 5 steps", network)[::2] for g in (0.7, 1.0, 1.3)))
    assert last[0] > last[1] > last[2]                           # the less Wh carries, the more the last steps count


def test_powers(network):
    assert "12 of 12 printed numbers are the computed ones" in network
    W = np.array([[0.8, 0.2], [-0.6, 0.9]])
    for t in (5, 10, 50):
        assert numbers(f"W^{t} ", network)[:4] == pytest.approx(np.linalg.matrix_power(W, t).ravel().tolist(), abs=6e-5)
    assert "spectral radius 0.9165,  √det W 0.9165" in network
    assert "a full turn takes 16.4 steps; half is left after 8.0" in network


def test_gradients_measured(network):
    def per_step(activation, words, g):
        return numbers(f"{activation}  {words:<8}{g:>4}", network)[-1]

    for g in (0.7, 1.0, 1.3, 2.0):
        assert per_step("relu", "quiet", g) == pytest.approx(g / np.sqrt(2), rel=0.04)       # half of the units are off
    assert per_step("tanh", "quiet", 0.7) == pytest.approx(0.7, rel=0.04)
    assert 0.9 < per_step("tanh", "quiet", 1.0) < 1
    assert 1 < per_step("tanh", "quiet", 1.3) < 1.1
    assert per_step("tanh", "loud", 1.3) < 0.85


def test_explosion(network):
    steps, largest, _ = numbers("without clipping", network)      # and the loss is "nan"
    assert steps < 20
    assert largest > 1e3
    steps, largest, _, loss = numbers("clipped at 1", network)
    assert steps == 60
    assert loss < 4
    assert re.search(r"Training\(…, clip=None\): UserError: the loss became (nan|inf) at step \d+, expected a number", network)
    assert "Training(…, clip=1.0): finished" in network


def test_shakespeare(trained):
    assert numbers("uniform, ln c", trained)[-1] == pytest.approx(9.568, abs=5e-4)
    unigram = numbers("unigram, all words before the test", trained)[-1]
    assert unigram == pytest.approx(6.06, abs=0.01)
    assert numbers("3-gram, all words before the test", trained)[-1] == pytest.approx(5.05, abs=0.005)
    assert numbers("3-gram, the words the network learns from", trained)[-1] == pytest.approx(5.38, abs=0.005)
    assert numbers("test loss, untrained:", trained)[0] == pytest.approx(6.17, abs=0.02)      # the unigram of fewer words
    learned = numbers("recurrent, learned from the first", trained)[-1]
    assert learned < 6.0
    assert numbers("recurrent, all words before the test", trained)[-1] < learned - 0.05


def test_memory(trained):
    carried = numbers("state carried through", trained)[0]
    thrown_away = [numbers(f"thrown away every {every:>2} words", trained)[0] for every in (1, 4, 16, 64)]
    assert sorted(thrown_away, reverse=True) == thrown_away
    assert thrown_away[0] > carried + 0.1
    assert abs(thrown_away[-1] - carried) < 0.03
    table = trained[trained.index("d, words") :]
    added = {d: numbers(f"{d} ", table)[0] for d in (0, 1, 2, 5, 20, 50)}
    assert added[0] > added[1] > added[2] > added[5] > 0.02
    assert abs(added[20]) < 0.01
    assert abs(added[50]) < 0.001
    before, after = numbers("untrained  ", trained), numbers("trained  ", trained)
    assert after[3] < before[3] < 0.1                       # at distance 20


def test_writing_and_bad_input(trained):
    assert re.search(r"greedy +\d+ +(9\d|100)% +\d+ words", trained)    # it runs into a loop
    assert numbers("temperature 0.7", trained)[0] < numbers("temperature 1.0", trained)[0]
    fast, slow = numbers("1,000 ", trained)
    assert slow > 5 * fast
    assert trained.count("the logits are not numbers (NaN)") == 2
    assert "the id 14295, expected ids from 0 to" in trained
