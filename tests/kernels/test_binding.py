"""A twin is bound to the text of its formula: what you read is what runs."""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import mini_tf
from mini_tf import kernels, ops
from mini_tf.errors import UserError
from mini_tf.kernels import binding
from mini_tf.kernels.decode_layer import DECODING
from mini_tf.ops import updates
from mini_tf.ops.op import all_ops, op

import numpy as np
import pytest

PACKAGE = Path(mini_tf.__file__).parent
OPS = [one for one in all_ops() if binding.bound(one)]


def test_every_twin_is_bound_to_its_formula_as_it_stands():
    """If this fails, a formula was edited: mini-tf gradcheck --bind-twins compares its twin and binds it again."""
    assert {op.name for op in OPS} == {
        "adam", "attention", "cross_entropy", "dropout", "embedding", "gelu", "gru", "layer_norm", "linear", "lstm",
        "masked_softmax", "mean_pool", "relu", "residual_relu", "rms_norm", "rotary", "silu", "softmax", "sum_of_squares", "swiglu",
    }  # fmt: skip
    assert {op.name: binding.edited(op) for op in OPS} == {op.name: None for op in OPS}
    assert binding.edited(DECODING) is None
    assert set(binding.FINGERPRINTS) == {binding.name_of(op) for op in [*OPS, DECODING]}


def test_fingerprints_include_what_a_formula_uses():
    assert set(binding.fingerprints(ops.attention)) == {"attention", "largest", "softmax", "masked_softmax", "sum_to", "transpose"}
    assert set(binding.fingerprints(ops.gelu)) == {"gelu", "erf"}
    assert set(binding.fingerprints(updates.adam)) == {"adam"}


BEFORE = """
def f(x, y):
    '''Says something.'''
    a = x + y  # a sum
    if a < 0:
        raise ValueError(f"{a} is bad")
    return a
"""
SAME = [
    BEFORE.replace("Says something.", "Says something else."), BEFORE.replace("# a sum", "# and another comment"),
    BEFORE.replace("x + y", "x   +   y"), BEFORE.replace("a = x + y", "a = (\n        x + y\n    )"), BEFORE.replace("is bad", "is not good"),
    BEFORE.replace("    a = x", "\n\n    a = x"),
]
OTHER = [
    BEFORE.replace("x + y", "x - y"), BEFORE.replace("a < 0", "a <= 0"), BEFORE.replace("return a", "return -a"), BEFORE.replace("0", "0.0"),
    BEFORE.replace("x + y", "x + y + 0 * x"), BEFORE.replace("(x, y)", "(x, y=1)"),
]  # fmt: skip


def fingerprint(text, tmp_path):
    file = tmp_path / f"written_{abs(hash(text))}.py"
    file.write_text(text)
    scope = {}
    exec(compile(text, file, "exec"), scope)
    return binding._fingerprint(scope["f"].__code__)


def test_what_changes_a_fingerprint(tmp_path):
    before = fingerprint(BEFORE, tmp_path)
    assert len(before) == 16
    assert {fingerprint(text, tmp_path) for text in SAME} == {before}
    others = {fingerprint(text, tmp_path) for text in OTHER}
    assert len(others) == len(OTHER)
    assert before not in others


TRAIN = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    from mini_tf.models import LanguageTransformer
    from mini_tf.training import Adam, RandomWindows, Training
    table = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    model = LanguageTransformer(table, T=4, L=1, H=2, m=4, layer_norm=True, readout="shared", causal=True, seed=1)
    training = Training(model, RandomWindows(np.arange(60) % 20, 4, 5), Adam(0.01))
    losses = [training.one_step()[0] for _ in range(4)]
    from mini_tf import kernels, ops
    twins = sorted(name for name in ops.__all__ if kernels.twin_of(getattr(ops, name)))
said = [str(w.message) for w in caught if w.category.__name__ == "FormulaEdited"]
print(json.dumps([losses, said, twins]))
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the package, for a learner to edit."""
    folder = tmp_path_factory.mktemp("learner")
    shutil.copytree(PACKAGE, folder / "mini_tf", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def trained(folder, file=None, find="", replace=""):
    """(losses of four steps, warnings, names of the ops with twins) after an edit of one file, which is then undone."""
    if file is not None:
        path = folder / "mini_tf" / file
        text = path.read_text()
        assert text.count(find) == 1
        path.write_text(text.replace(find, replace))
    try:
        output = subprocess.run([sys.executable, "-B", "-c", TRAIN], cwd=folder, capture_output=True, text=True, check=True).stdout
    finally:
        if file is not None:
            path.write_text(text)
    return json.loads(output)


@pytest.fixture(scope="module")
def unedited(copied):
    """What `trained` returns of the package as it is"""
    return trained(copied)


def test_a_learners_edit_shows_in_training(copied, unedited):
    losses, said, twins = unedited
    assert said == []
    assert len(twins) == 18
    norm = "ops/normalization.py"
    mean = "g - g.mean(-1, keepdims=True)"
    wrong, said, fewer = trained(copied, norm, mean, "0 * g + g.mean(-1, keepdims=True)")
    assert wrong[0] == losses[0]                         # the same forward
    assert np.abs(np.subtract(wrong[1:], losses[1:])).max() > 1e-4
    assert said == ["layer_norm was edited: the formula runs, not its faster twin (mini-tf gradcheck checks it)"]
    assert set(twins) - set(fewer) == {"layer_norm"}
    right, said, _ = trained(copied, norm, mean, "-g.mean(-1, keepdims=True) + g")
    np.testing.assert_allclose(right, losses, rtol=1e-5)
    assert len(said) == 1
    assert trained(copied, norm, "# keeps normal, r, gamma\n        g = dy * gamma\n        dx = r * (g - g", "#\n        g = dy * gamma\n        dx = r * (g - g")[:2] == [losses, []]


def test_an_edit_of_a_function_that_a_formula_uses_shows_too(copied, unedited):
    losses, _, twins = unedited
    wrong, said, fewer = trained(copied, "ops/softmax.py", "e = xp.exp(xp.where(mask, z - top", "e = xp.exp(xp.where(mask, 2 * z - top")
    assert abs(wrong[0] - losses[0]) > 1e-6 or np.abs(np.subtract(wrong, losses)).max() > 1e-6
    assert said == ["attention uses masked_softmax, which was edited: the formula runs, not its faster twin (mini-tf gradcheck checks it)",
                    "masked_softmax was edited: the formula runs, not its faster twin (mini-tf gradcheck checks it)"]  # fmt: skip
    assert set(twins) - set(fewer) == {"attention", "masked_softmax"}


def test_an_edit_of_adam_shows(copied, unedited):
    losses, _, _ = unedited
    other, said, _ = trained(copied, "ops/updates.py", "p -= learning_rate * m_hat", "p -= 2 * learning_rate * m_hat")
    assert other[1] != losses[1]
    assert said == ["adam was edited: the formula runs, not its faster twin (mini-tf gradcheck checks it)"]


def test_twins_of_edited_formulas_run_on_request_only(monkeypatch):
    monkeypatch.setitem(binding.FINGERPRINTS, "ops.activations.relu", {"relu": "another"})
    kernels.forget(ops.relu)
    try:
        with pytest.warns(kernels.FormulaEdited, match="relu was edited: the formula runs"):
            assert kernels.twin_of(ops.relu) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kernels.twin_of(ops.relu) is None     # said once
        with kernels.with_twins(even_if_edited=True):
            assert kernels.twin_of(ops.relu) is not None
        with pytest.warns(kernels.FormulaEdited):
            assert kernels.twin_of(ops.relu) is None
    finally:
        kernels.forget(ops.relu)


def test_a_users_op_has_no_twin_whatever_its_name():
    @op("z (…, k)")
    def softmax(z):
        return z, None

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kernels.twin_of(softmax) is None
        with kernels.with_twins(even_if_edited=True):
            assert kernels.twin_of(softmax) is None


@pytest.fixture
def few_examples(monkeypatch):
    """--bind-twins, with two examples, and a dict in place of fingerprints.py."""
    from mini_tf.gradcheck import command, examples
    from mini_tf.gradcheck.examples import EXAMPLES

    written = {}
    monkeypatch.setattr(examples, "EXAMPLES", {name: EXAMPLES[name] for name in ("layer_norm", "LayerNorm")})
    monkeypatch.setattr(binding, "FINGERPRINTS", dict(binding.FINGERPRINTS))
    monkeypatch.setattr(binding, "write_text", lambda path, text: written.update({path.name: text}))
    yield command, written
    kernels.forget(ops.layer_norm)


def test_bind_twins_writes_what_was_compared(few_examples, monkeypatch):
    command, written = few_examples
    monkeypatch.setitem(binding.FINGERPRINTS, "ops.normalization.layer_norm", {"layer_norm": "as it was before"})
    kernels.forget(ops.layer_norm)
    command.bind_twins(seed=0)
    scope = {}
    exec(written["fingerprints.py"], scope)
    assert scope["FINGERPRINTS"] == binding.FINGERPRINTS
    assert binding.edited(ops.layer_norm) is None
    assert kernels.twin_of(ops.layer_norm) is not None


def test_bind_twins_refuses_a_twin_that_disagrees(few_examples, monkeypatch, capsys):
    from mini_tf.kernels import cpu

    command, written = few_examples
    right = cpu.layer_norm
    monkeypatch.setattr(cpu, "layer_norm", lambda x, gamma, beta, eps=1e-5: right(x, gamma, beta, 2 * eps + 1e-3))
    with pytest.raises(UserError, match="not all are right, see above; nothing was bound"):
        command.bind_twins(seed=0)
    assert "with the twins of layer_norm in mini_tf/kernels" in capsys.readouterr().out
    assert not written
