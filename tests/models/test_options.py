"""Options of models: what cannot be right is refused by name, before it takes any memory."""

import json
import tracemalloc

from mini_tf.errors import UserError
from mini_tf.experiment import PointerTransformer
from mini_tf.models import (
    GPT,
    GPT2,
    Classifier,
    FixedWindowModel,
    LanguageTransformer,
    Llama,
    MaskedWordModel,
    OneAttention,
    RecurrentModel,
    RecurrentTranslator,
    Translator,
)
from mini_tf.models.saved import SavedModel

import numpy as np
import pytest

E = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
SIZES = {"T": 3, "L": 1, "H": 2, "m": 2, "f": 5}
LAB = {"T": 3, "L": 1, "H": 2, "m": 2}
MODELS = {
    "GPT": GPT(E, **SIZES),
    "GPT without layers": GPT(E, T=3, L=0),
    "GPT2": GPT2(E, **SIZES),
    "GPT2, no biases": GPT2(E, **SIZES, bias=False),
    "Llama": Llama(E, **SIZES),
    "Llama, grouped, not tied": Llama(E, **SIZES, G=1, tied=False),
    "lab": LanguageTransformer(E, **LAB),
    "lab, shared": LanguageTransformer(E, **LAB, readout="shared", causal=True, positions="geometric", tied=True),
    "lab, average": LanguageTransformer(E, **LAB, readout="average", positions=[1.0, 2.0]),
    "window": FixedWindowModel(E, T=3, k=5),
    "window, sum": FixedWindowModel(E, T=3, k=5, composition="sum"),
    "window, product, two hidden layers": FixedWindowModel(E, T=3, k=5, composition="product", hidden_layers=2),
    "recurrent": RecurrentModel(E, T=3, k=5),
    "recurrent, lstm, two layers": RecurrentModel(E, T=3, k=5, cell="lstm", L=2),
    "one attention": OneAttention(E, T=3, H=2),
    "masked": MaskedWordModel(E, **SIZES),
    "pointer": PointerTransformer(E, **SIZES),
    "classifier": Classifier(E, classes=2, k=3, **SIZES),
    "classifier, learned positions": Classifier(E, classes=2, k=3, pool="first", positions="learned", **SIZES),
    "bag": Classifier(E, classes=2, T=3, L=0, blocks=0),
    "translator": Translator(9, 8, n=4, **SIZES),
    "translator, one table": Translator(9, 9, n=4, **SIZES, tied="all", norm="after", bias=True, dtype="float64"),
    "recurrent translator": RecurrentTranslator(9, 8, n=4, k=6, T=3, L=2),
    "recurrent translator, additive": RecurrentTranslator(9, 8, n=4, k=6, T=3, cell="gru", attention="additive"),
}


def saved(model):
    """(class, configuration, arrays), as a checkpoint has them"""
    config = json.loads(json.dumps(model.config))
    return type(model), config, {name: p.data for name, p in model.parameters().items()}


def rebuilt(model, **changed):
    """The model that its checkpoint gives if the configuration there is changed."""
    made, config, arrays = saved(model)
    return made.from_config(config | changed, arrays)


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


NESTED = deep(10_000)
CASES = [(name, option) for name, model in MODELS.items() for option in model.config]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_built_again_from_its_configuration(name):
    _, config, arrays = saved(MODELS[name])
    again = rebuilt(MODELS[name])
    assert json.loads(json.dumps(again.config)) == config
    assert {name: p.data.shape for name, p in again.parameters().items()} == {
        name: array.shape for name, array in arrays.items()
    }


@pytest.mark.parametrize(("name", "option"), CASES)
def test_no_option_takes_what_it_cannot_be(name, option):
    model = MODELS[name]
    values = ["nonsense", NESTED, {"a": 1}, [1, "a"], float("nan"), float("inf"), ""]
    if option not in ("position_scale", "base", "eps"):
        values += [-1, 10**30]
    if not isinstance(model.config[option], bool):
        values += [True]
    if model.config[option] is not None and option != "positions":
        values += [None]
    for value in values:
        with pytest.raises(UserError, match=rf"{option}|expected a finite number"):
            rebuilt(model, **{option: value})


@pytest.mark.parametrize(("name", "option"), [case for case in CASES if type(MODELS[case[0]].config[case[1]]) is int])
@pytest.mark.parametrize("size", [10**5 + 1, 10**9, 10**12])
def test_a_size_that_the_parameters_have_no_room_for_takes_no_memory(name, option, size):
    free = {"GPT without layers": ("H", "m", "f"), "bag": ("H", "m", "f", "k")}.get(name, ())
    tracemalloc.start()
    try:
        if option in free and size <= 10**8:
            rebuilt(MODELS[name], **{option: size})      # without layers, no array has this size
        else:
            with pytest.raises(UserError, match=option):
                rebuilt(MODELS[name], **{option: size})
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["lab", "window"])
def test_the_largest_history_that_is_allowed_takes_no_memory_where_weights_depend_on_it(name):
    with pytest.raises(UserError, match="T = 100,000, n = 4"):
        rebuilt(MODELS[name], T=100_000)
    with pytest.raises(UserError, match="too large for the"):      # also if the configuration has lost the others
        made, config, arrays = saved(MODELS[name])
        made.from_config({"T": 100_000}, arrays)


@pytest.mark.parametrize("config", [None, [], "config", 3, [["T", 3]]])
@pytest.mark.parametrize("name", ["GPT", "translator"])
def test_a_configuration_that_is_none(name, config):
    made, _, arrays = saved(MODELS[name])
    with pytest.raises(TypeError, match="expected a dict of options"):
        made.from_config(config, arrays)


def test_unknown_and_missing_options_and_arrays():
    with pytest.raises(TypeError, match="learning_rate"):
        rebuilt(MODELS["GPT"], learning_rate=1)
    made, config, arrays = saved(MODELS["classifier"])
    del config["classes"]
    with pytest.raises(TypeError, match="classes"):
        made.from_config(config, arrays)
    with pytest.raises(KeyError, match=r"embedding\.table"):
        GPT.from_config(MODELS["GPT"].config, {})
    for table, message in ((E[0], r"shape \(4,\)"), (E[:0], r"shape \(0, 4\)"), (E.astype(int), "dtype is dtype.'int64")):
        with pytest.raises(UserError, match=message):
            GPT.from_config(MODELS["GPT"].config, {"trunk.embedding.table": table})


@pytest.mark.parametrize("embeddings", [None, [[1.0, 2.0]], "table", 3])
def test_embeddings_that_are_no_array(embeddings):
    with pytest.raises(UserError, match="embeddings are .*expected an array"):
        GPT(embeddings)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True, [1]])
def test_seeds(seed):
    for build in (lambda: GPT(E, **SIZES, seed=seed), lambda: Translator(9, 8, n=4, **SIZES, seed=seed)):
        with pytest.raises(UserError, match="seed is .*, expected a whole number of at least 0"):
            build()


@pytest.mark.parametrize("most", [0, -1, 2.5])
def test_a_mean_loss_of_no_words(most):
    for name in ("GPT", "recurrent"):
        with pytest.raises(UserError, match="most is .*, expected a whole number of at least 1"):
            MODELS[name].mean_loss(np.arange(10), most)


def test_every_model_that_can_be_saved_is_here():
    tested = {type(model).__name__ for model in MODELS.values()}
    ours = {name for name, made in SavedModel.registry.items() if made.__module__.startswith("mini_tf.")}
    bases = {"TextModel", "EmbeddingModel", "WindowModel", "CausalTransformer", "TranslationModel"}
    assert ours - bases - {"NGramModel"} <= tested
