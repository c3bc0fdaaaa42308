"""Configurations that something has changed: a model of a like size, or an error that says what is wrong."""

from mini_tf.errors import UserError
from tests.models.test_options import MODELS, saved

from hypothesis import example, given, settings
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.integers() | st.floats() | st.text(max_size=4)
    | st.sampled_from([10**5, 10**9, 10**12, "vec", "shared", "learned", "float16", "after", "mean", "sum"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)  # fmt: skip
NAMES = sorted({option for model in MODELS.values() for option in model.config})


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(MODELS)), st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), VALUES, max_size=2),
    st.sets(st.sampled_from(NAMES), max_size=1),
)  # fmt: skip
@example("GPT", {"L": 10**9}, set())
@example("GPT", {"T": 10**12}, set())
@example("lab", {"readout": "vec", "T": 10**5}, {"L"})
@example("translator", {"source_words": 10**8}, set())
@example("recurrent", {"k": 10**6}, set())
@example("recurrent translator", {"k": 10**6}, set())
def test_a_changed_configuration_gives_a_model_of_a_like_size_or_a_documented_error(name, changed, lost):
    made, config, arrays = saved(MODELS[name])
    config = {option: value for option, value in (config | changed).items() if option not in lost}
    try:
        model = made.from_config(config, arrays)
    except (UserError, KeyError, TypeError):
        return
    entries = sum(array.size for array in arrays.values())
    assert sum(p.data.size for p in model.parameters().values()) <= 100 * entries + 4 * getattr(model, "T", 0)
