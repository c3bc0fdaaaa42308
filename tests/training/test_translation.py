"""From pairs to a translator's training: what is left out, what is kept apart, and going on exactly."""

from dataclasses import replace

from mini_tf.errors import UserError
from mini_tf.models import Translator
from mini_tf.training import load_training, save_training, sentence_batch
from mini_tf.training.translation import (
    TRANSLATION,
    batches_in_order,
    bleu_of_each_pair,
    mean_loss,
    same_source,
)

import numpy as np
import pytest

SIZES = {"n": 8, "T": 12, "L": 1, "H": 2, "m": 4, "f": 8, "dropout": 0.2}
PRESET = replace(TRANSLATION["translate"], model=SIZES, words=60, least=2, longest=9)


@pytest.fixture(scope="module")
def pairs():
    """200 pairs of sentences of 2 to 9 words, some of them in several pairs."""
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(170):
        ids = np.minimum(rng.zipf(1.3, rng.integers(2, 10)), 60)
        drawn.append((" ".join(f"f{i}" for i in ids), " ".join(f"e{i}" for i in ids[::-1])))
    return [*drawn, *((f, f"{e} too") for f, e in drawn[:30] if len(f.split()) < 9)]


def test_the_parts_share_no_sentence(pairs):
    bitext = PRESET.prepare(pairs)
    parts = [bitext.train, bitext.validation, bitext.test]
    assert sum(map(len, parts)) == len(set(pairs))
    for side in (0, 1):
        seen = [{tuple(pair[side]) for pair in part} for part in parts]
        assert sum(map(len, seen)) == len(set().union(*seen))
    assert len(bitext.test) == pytest.approx(0.1 * len(set(pairs)), abs=3)


def test_long_sentences_and_repeats_are_left_out(pairs):
    said = []
    long = " ".join(f"f{i}" for i in range(10))
    bitext = PRESET.prepare([*pairs, *pairs, (long, "e1"), ("f1", long)], say=said.append)
    assert f"{2 * len(pairs) + 2} pairs, {len(set(pairs))} of them different and of at most 9 words" in said[0]
    assert max(len(side) for part in (bitext.train, bitext.test) for pair in part for side in pair) == 9
    with pytest.raises(UserError, match="9 pairs of at most 9 words are too few"):
        PRESET.prepare(pairs[:9])


def test_vocabularies_know_the_training_part_only(pairs):
    bitext = PRESET.prepare(pairs)
    in_training = {word for french, _ in bitext.train for word in french}
    assert set(bitext.french.words[3:]) < in_training                            # those that occur twice
    tied = replace(PRESET, model=SIZES | {"tied": "all"}).prepare(pairs)
    assert tied.french is tied.english
    assert {"f1", "e1"} <= set(tied.french.words)


def test_the_mean_loss_is_that_of_all_words(pairs):
    bitext = PRESET.prepare(pairs)
    model = Translator(len(bitext.french), len(bitext.english), **SIZES | {"dtype": "float64"})
    sources, targets = bitext.ids(bitext.test)
    batches = batches_in_order(sources, targets, 50)
    assert len(batches) > 2
    assert sum(map(len, batches)) == len(sources)
    assert all(batch.target.size <= 50 for batch in batches)
    words = [len(target) + 1 for target in targets]
    alone = [float(model.loss(sentence_batch([s], [t]))[0]) for s, t in zip(sources, targets)]
    assert mean_loss(model, batches) == pytest.approx(np.average(alone, weights=words), rel=1e-12)


def test_bleu_with_all_references_and_with_each_alone():
    examples = same_source([(["a"], ["x", "y"]), (["b"], ["z", "z"]), (["a"], ["x", "w"])])
    assert examples == [(("a",), [["x", "y"], ["x", "w"]]), (("b",), [["z", "z"]])]
    examples = [(("a",), [list("xyzv"), list("wwww")])]
    assert bleu_of_each_pair(examples, [list("xyzv")]) == pytest.approx(100 * (4 / 8 * 3 / 6 * 2 / 4 * 1 / 2) ** 0.25)


def test_a_continued_training_is_the_same_to_the_last_bit(pairs, tmp_path):
    bitext = PRESET.prepare(pairs)

    def new_training():
        model = Translator(len(bitext.french), len(bitext.english), **SIZES)
        return PRESET.training(model, bitext, 60, 0)

    whole, first = new_training(), new_training()
    losses = [whole.one_step()[0] for _ in range(50)]
    assert len(whole.batches) < 31                       # it was saved in the second round
    assert [first.one_step()[0] for _ in range(31)] == losses[:31]
    save_training(tmp_path / "training.safetensors", first)
    second = load_training(tmp_path / "training.safetensors", new_training())
    assert [second.one_step()[0] for _ in range(19)] == losses[31:]
    for name, parameter in second.parameters.items():
        np.testing.assert_array_equal(parameter.data, whole.parameters[name].data)
