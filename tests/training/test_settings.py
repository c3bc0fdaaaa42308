"""--set: other values for a preset's options."""

import re
from dataclasses import asdict

from mini_tf.errors import UserError
from mini_tf.training.option_meanings import option_meanings
from mini_tf.training.registry import PRESETS, preset_named
from mini_tf.training.settings import check, options_of, with_settings

import pytest


@pytest.mark.parametrize("name", PRESETS)
def test_every_option_of_every_preset_can_be_set_to_what_it_is(name):
    preset = preset_named(name)
    check(preset)
    for option, value in options_of(preset).items():
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        same = with_settings(preset, [f"{option}={text}"])
        assert options_of(same) == options_of(preset), option
        assert options_of(same)[option] == value
        assert type(options_of(same)[option]) is type(value), option


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_trains_a_model_that_has_its_options(name):
    preset = preset_named(name)
    assert set(preset.model) <= set(options_of(preset))
    assert preset.model_type.__name__ in {
        "LanguageTransformer", "FixedWindowModel", "RecurrentModel", "GPT", "GPT2", "Llama", "PointerTransformer", "Translator", "Classifier",
        "MaskedWordModel", "RecurrentTranslator",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "setting", "option", "value"),
    [
        ("quick", "L=4", "L", 4),
        ("quick", " n = 128 ", "n", 128),
        ("quick", "causal=off", "causal", False),
        ("quick", "positions=none", "positions", None),
        ("classify-bag", "positions=sinusoidal", "positions", "sinusoidal"),
        ("quick", "clip=2", "clip", 2),
        ("gpt", "clip=none", "clip", None),
        ("gpt", "learning_rate=3e-4", "learning_rate", 3e-4),
        ("gpt", "betas=0.8,0.95", "betas", (0.8, 0.95)),
        ("translate", "tested=none", "tested", None),
        ("translate", "tied=none", "tied", "none"),
        ("translate-rnn", "attention=none", "attention", "none"),
        ("classify", "validation=0.2", "validation", 0.2),
        ("pointer", "new_words=0.3", "new_words", 0.3),
    ],
)
def test_settings_are_read_by_the_type_of_their_option(preset, setting, option, value):
    before = preset_named(preset)
    changed = with_settings(before, [setting])
    assert options_of(changed)[option] == value
    settings = asdict(changed)                           # what a run's config.json keeps
    assert (settings | settings["model"])[option] == value


def test_later_settings_win_and_the_model_of_the_preset_stays():
    changed = with_settings(preset_named("quick"), ["L=4", "T=16", "L=5"])
    assert changed.model == preset_named("quick").model | {"L": 5, "T": 16}
    assert preset_named("quick").model["L"] == 2


@pytest.mark.parametrize(
    ("preset", "setting", "message"),
    [
        ("quick", "L", "--set L: expected an option and its value, as in --set L=4"),
        ("quick", "L=four", "expected a whole number, as in L=2"),
        ("quick", "L=1.5", "expected a whole number"),
        ("quick", "learnin_rate=1", "quick has no option learnin_rate; did you mean learning_rate? "),
        ("quick", "f=64", "quick has no option f; "),
        ("quick", "name=mine", "has no option name"),
        ("quick", "model_class=GPT", "has no option model_class"),
        ("quick", "causal=maybe", "expected causal=true or causal=false"),
        ("quick", "batch=0", "batch is 0, expected a whole number of at least 1"),
        ("quick", "steps=none", "--set steps=none: expected a whole number"),
        ("quick", "warm_up=-1", "warm_up is -1, expected a whole number of at least 0"),
        ("quick", "learning_rate=0", "learning_rate is 0.0, expected a number above 0"),
        ("quick", "learning_rate=inf", "expected a number above 0"),
        ("quick", "learning_rate=nan", "expected a number above 0"),
        ("quick", "weight_decay=-1", "weight_decay is -1.0, expected 0 ≤ weight_decay < inf"),
        ("quick", "last_rate=1", "last_rate is 1.0, expected 0 ≤ last_rate < 1"),
        ("quick", "vectors=best", "vectors 'best' is unknown, expected one of eigenvectors, training, random"),
        ("quick", "betas=0.9", "expected two numbers from 0 to less than 1"),
        ("quick", "betas=0.9,1", "expected two numbers from 0 to less than 1"),
        ("quick", "betas=a,b", "expected two numbers, as in betas=0.9,0.999"),
        ("quick", "clip=abc", "clip is 'abc', expected a number above 0"),
        ("classify", "held_out=1", "held_out is 1.0, expected more than 0 and less than 1"),
        ("translate", "validation=0", "validation is 0, expected a whole number of at least 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(preset, setting, message):
    with pytest.raises(UserError, match=re.escape(message)):
        with_settings(preset_named(preset), [setting])


@pytest.mark.parametrize("name", PRESETS)
def test_every_option_has_a_meaning(name):
    meanings = option_meanings(PRESETS[name])
    assert [option for option in options_of(PRESETS[name]) if not meanings.get(option)] == []


def test_meanings_of_options_that_share_a_line_are_told_apart():
    meanings = option_meanings(PRESETS["gpt"])
    assert (meanings["T"], meanings["f"]) == ("history length in words", "hidden units of feed-forward")
    assert meanings["warm_up"] == "steps in which the learning rate rises"
    assert meanings["dropout"].endswith("of each branch's output dropped in training")
