"""Arguments for a learner's function: shapes from options and docstrings, and values."""

from mini_tf.errors import UserError
from mini_tf.gradcheck.arguments import constructed, inputs_for, values_of

import numpy as np
import pytest


def chosen(signature, doc="", *shapes, args=(), seed=0):
    """(inputs, options) for a function with that signature and docstring"""
    scope, rng = {}, np.random.default_rng(seed)
    exec(f"def f({signature}):\n    {doc!r}", scope)
    return inputs_for(scope["f"], shapes, values_of(args, rng), rng)


def inputs(*how, **more):
    return chosen(*how, **more)[0]


def shapes(arrays):
    return [np.shape(a) for a in arrays]


def test_shapes_from_options():
    doc = "Example: x (9,)"
    x, ids, mask = inputs("x, ids, mask", doc, "x=3,4", "ids=2,3 int<7", "mask = (3, 3) bool")
    assert shapes((x, ids, mask)) == [(3, 4), (2, 3), (3, 3)]
    assert x.dtype == np.float64
    assert ids.dtype.kind == "i"
    assert ids.min() >= 0
    assert ids.max() < 7
    assert ids[-1, -1] == ids[0, 0]
    assert mask.dtype == bool
    assert mask[0].any()
    assert not mask.all()


def test_shapes_from_the_example_in_the_docstring():
    doc = """y = γ·x̂

    x (…, n), gamma (n,)  →  y (…, n), which are no sizes
    Example: x (2, 3), gamma (3,),
             ids (2, 5) int < 7, mask (3, 3) bool, y onehot(4, 5)

    gamma (5,) is no more part of it
    """
    x, gamma, ids, mask, y = inputs("x, gamma, ids, mask, y, eps=1e-5", doc)
    assert shapes((x, gamma, ids, mask, y)) == [(2, 3), (3,), (2, 5), (3, 3), (4, 5)]
    assert ids.dtype.kind == "i"
    assert mask.dtype == bool
    assert (y.sum(-1) == 1).all()


def test_arrays_in_dicts_and_lists():
    (params, layers), options = chosen("params, layers", args=["params={'W': randn(3, 2)}", "layers=[randn(3), randn(2)]"])
    assert {name: x.shape for name, x in params.items()} == {"W": (3, 2)}
    assert shapes(layers) == [(3,), (2,)]
    assert options == {"constants": []}                  # weights, whose gradients are checked


def test_scalars_and_positive_numbers():
    p, c = inputs("p, c", "Example: p (3, 4) positive, c ()")
    assert shapes((p, c)) == [(3, 4), ()]
    assert p.min() > 0
    assert inputs("p", "", "p=3,4 positive")[0].min() > 0
    assert shapes(inputs("x, s", "Example: x (4,)", "x=3", "s=")) == [(3,), ()]          # an option goes before


def test_a_default_before_a_given_argument_is_passed_on():
    x, mask, scale = inputs("x, mask=None, scale=1.0", "", "x=2", "scale=3")
    assert mask is None
    assert scale.shape == (3,)
    assert len(inputs("x, mask=None, scale=1.0", "", "x=2")) == 1


def test_one_hot_rows_are_constants_wherever_they_stand():
    (_, y, _), options = chosen("z, y, b", "", "z=4,5", "y=onehot(4,5)", "b=5")
    assert set(np.unique(y)) == {0, 1}
    assert options == {"constants": ["y"]}


def test_values_are_python_s_or_strings_or_made():
    rng = np.random.default_rng(0)
    values = values_of(["a=2", "b=[1, 2.5]", "how=mean", "W=randn(3,2)", "z=np.zeros(4)"], rng)
    assert {name: values[name] for name in ("a", "b", "how")} == {"a": 2, "b": [1, 2.5], "how": "mean"}
    assert values["W"].shape == (3, 2)
    assert np.array_equal(values["z"], np.zeros(4))


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        ("p", "--arg 'p' is not an argument, expected a name and a value, as in stride=2"),
        ("W=randn(99999999,99999999)", "--arg 'W=randn(99999999,99999999)': "),
        ("W=np.onse(3)", "--arg 'W=np.onse(3)': module 'numpy' has no attribute"),
    ],
)
def test_bad_values_are_refused(arg, message):
    with pytest.raises(UserError) as error:
        values_of([arg], np.random.default_rng(0))
    assert message in str(error.value)


def test_a_value_is_no_input_of_a_random_shape():
    x, stride, pad = inputs("x, stride=1, pad=0", "Example: x (2,), pad (3,)", args=["stride=2", "pad=1"])
    assert (x.shape, stride, pad) == ((2,), 2, 1)
    assert chosen("x, W", "", "x=2", args=["W=randn(2,2)"])[1] == {"constants": ["W"]}


def test_what_is_taken_by_name_only_is_given_by_name():
    options = chosen("x, *, mask, rate=0.5", "", "x=2", "mask=2 bool", args=["rate=0.1"])[1]
    assert options["mask"].dtype == bool
    assert options["rate"] == 0.1
    with pytest.raises(UserError, match="what is the shape of mask"):
        chosen("x, *, mask", "", "x=2")


def test_an_object_is_made_of_the_values_that_its_constructor_takes():
    class Linear:
        def __init__(self, W, scale=1.0, **more):
            self.W, self.scale, self.noise = W, scale, np.random.randn(2)    # noqa: NPY002

    made, left = constructed(Linear, {"W": np.ones((3, 2)), "stride": 2}, seed=1)
    assert made.W.shape == (3, 2)
    assert left == {"stride": 2}
    assert np.array_equal(constructed(Linear, {"W": 0}, seed=1)[0].noise, made.noise)
    with pytest.raises(UserError, match=r"Linear: its constructor needs W: add --arg W=3, with your values \(an array is randn"):
        constructed(Linear, {}, seed=1)


def test_without_shapes_it_asks_in_one_sentence_and_names_each_argument():
    with pytest.raises(UserError) as error:
        inputs("z, ids, eps=1")
    message = str(error.value)
    assert "f: what is the shape of z, ids? Add --shape z=3,4 --shape ids=3,4, with your sizes" in message
    example = message[message.index("Example: ") :]
    assert example == "Example: z (3, 4), ids (3, 4)"
    assert shapes(inputs("z, ids, eps=1", example)) == [(3, 4)] * 2


def test_an_incomplete_docstring_names_what_is_missing():
    with pytest.raises(UserError, match=r"what is the shape of beta\? Add --shape beta=3,4,"):
        inputs("x, beta", "Example: x (4, 5)")
    with pytest.raises(UserError, match="ids is int, below which number"):
        inputs("ids", "Example: ids (2, 3) int")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("x=3,a", "is not a shape, expected x=3,4 or"),
        ("x=-1", "is not a shape"),
        ("3,4", "is not a shape"),
        ("x=3 float", "is not a shape"),
        ("z=3", "f has no argument 'z'; it has x"),
        ("x=3 int", "x is int, below which number? Write int<7"),
        ("x=3 int<99999999999999999999", "at most 100,000"),
        ("x=0,3", "x has the shape (0, 3), expected sizes from 1"),
        ("x=1000,1000", "at most 100,000 entries"),
    ],
)
def test_bad_shapes_are_refused(shape, message):
    with pytest.raises(UserError) as error:
        inputs("x", "", shape)
    assert message in str(error.value)
