"""A training that cannot fit into the memory is refused before anything is allocated."""

from mini_tf.errors import UserError
from mini_tf.training import memory
from mini_tf.training.memory import available, check_memory
from mini_tf.training.registry import PRESETS
from tests import tiny

import pytest

FROM_DATA = {"c": 14_295, "n": 64, "classes": 2, "source_words": 1_000, "target_words": 1_000}
HUGE = [
    ("quick", {"m": 10**8}), ("quick", {"H": 10**8}), ("lab", {"T": 10**8}), ("recurrent", {"k": 10**8}),
    ("window", {"k": 10**8}), ("gpt", {"f": 10**8}), ("translate", {"n": 10**8}), ("translate-rnn", {"k": 10**8}),
    ("classify", {"f": 10**8}), ("classify-bag", {"k": 10**8}), ("fill", {"f": 10**8}), ("quick", {"n": 10**8}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "size"), HUGE, ids=lambda x: str(x))
def test_huge_sizes_are_refused(name, size):
    preset = PRESETS[name]
    with pytest.raises(UserError, match=rf"at least [\d,]+ GB .*{next(iter(size))} = 100,000,000.* GB free"):
        check_memory(preset.model_type, FROM_DATA | preset.model | size, 1)


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_fit_and_the_bound_is_one(name):
    """The least number of parameters is at most that of the model itself, and more than a twentieth of it."""
    preset = tiny.preset(name)
    prepared = preset.prepare(tiny.data(preset), 0, lambda line: None)
    model = preset.new_model(prepared, 0)
    least, _ = preset.model_type.least_parameters(preset.model | preset.sizes(prepared))
    assert model.parameter_count() / 20 < least <= model.parameter_count()


def test_a_huge_batch_is_refused_and_named():
    with pytest.raises(UserError, match="for a batch of 10,000,000,000 words"):
        check_memory(PRESETS["gpt"].model_type, FROM_DATA | PRESETS["gpt"].model, 10**10)


def test_what_the_system_does_not_say_refuses_nothing(monkeypatch):
    assert available() is None or available() > 10**6
    monkeypatch.setattr(memory, "available", lambda: None)
    check_memory(PRESETS["quick"].model_type, FROM_DATA | {"m": 10**8}, 1)


def test_the_command_says_it(mini_tf, corpus, tmp_path):
    code, _, err = mini_tf("train", "--corpus", corpus, "--run", "big", "--set", "m=100000000")
    assert code == 2
    assert "the training needs at least" in err
    assert not (tmp_path / "big").exists()
    code, out, _ = mini_tf("train", "--corpus", corpus, "--run", "cut", "--set", "batch=5000")
    assert code == 0
    assert "note: batch is 5,000, but the training words have" in " ".join(out.split())
