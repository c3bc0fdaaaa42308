"""GPT-2 from Hugging Face's folders and back: the same logits, loss and gradients as in transformers."""

import json

from mini_tf.errors import UserError
from mini_tf.models import GPT2
from mini_tf.pretrained import export_gpt2, load_gpt2
from mini_tf.pretrained.folder import read_config
from mini_tf.pretrained.gpt2 import _parameters
from mini_tf.training.checkpoint import load_checkpoint
from tests.pretrained.comparing import same

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

c, n, T, L, H = 23, 12, 9, 2, 3
SIZES = {"T": T, "L": L, "H": H, "m": n // H, "f": 20}


def a_model(rng, **options):
    """A GPT2 none of whose parameters is 0 or 1"""
    model = GPT2(0.5 * rng.standard_normal((c, n)).astype("f4"), **SIZES | options)
    for p in model.parameters().values():
        if p.trainable:
            p.data = (p.data + 0.3 * rng.standard_normal(p.data.shape)).astype(np.float32)
    return model


@pytest.fixture
def folder(tmp_path, rng):
    export_gpt2(a_model(rng), tmp_path)
    return tmp_path


def rewrite(folder, change=lambda arrays: arrays, **options):
    """Change the folder's arrays, a dict of them, and options of its config.json; None leaves an option out."""
    arrays = load_file(folder / "model.safetensors")
    save_file(change(arrays) or arrays, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text()) | options
    (folder / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value is not None}))


# With transformers as oracle ----------------------------------------------------------------------------------------


def oracle(transformers, **options):
    """A GPT2LMHeadModel with random weights, none of them 0 or 1"""
    import torch

    sizes = {"vocab_size": c, "n_positions": T, "n_embd": n, "n_layer": L, "n_head": H, "n_inner": 20}
    tokens = {"bos_token_id": None, "eos_token_id": None}
    torch.manual_seed(3)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | tokens | options)).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return theirs


def their_logits(theirs, ids):
    import torch

    with torch.no_grad():
        return theirs(torch.from_numpy(ids)).logits.numpy()


@pytest.mark.parametrize("options", [{}, {"n_inner": None}, {"activation_function": "gelu_pytorch_tanh"}])
def test_logits_are_those_of_transformers(tmp_path, rng, transformers, options):
    theirs, ids = oracle(transformers, **options), rng.integers(0, c, (4, T))
    theirs.save_pretrained(tmp_path)
    ours = load_gpt2(tmp_path)
    np.testing.assert_allclose(ours.logits_after_each(ids), their_logits(theirs, ids), rtol=0, atol=1e-5)


def test_loss_and_gradients_are_those_of_transformers(tmp_path, rng, transformers):
    import torch

    theirs, windows = oracle(transformers), rng.integers(0, c, (5, T + 1))
    theirs.save_pretrained(tmp_path)
    ours, theirs = load_gpt2(tmp_path), theirs.double()
    for p in ours.parameters().values():                 # in float64, a small wrong term cannot hide
        p.data = p.data.astype(np.float64)
    loss, backward = ours.loss(windows)
    backward()
    logits = theirs(torch.from_numpy(windows[:, :-1])).logits
    expected = torch.nn.functional.cross_entropy(logits.reshape(-1, c), torch.from_numpy(windows[:, 1:]).reshape(-1))
    expected.backward()
    np.testing.assert_allclose(loss, expected.item(), rtol=1e-12)
    found = {f"transformer.{name}": parts for name, parts in _parameters(ours).items()}
    found["transformer.wte.weight"] = [ours.trunk.embedding.table]
    names = dict(theirs.named_parameters())
    assert set(names) == set(found)
    for name, parts in found.items():
        gradient = np.concatenate([p.grad for p in parts], axis=-1)
        assert abs(gradient).max() > 1e-5, name
        np.testing.assert_allclose(gradient, names[name].grad.numpy(), rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_and_shards(tmp_path, rng, transformers, dtype):
    import torch

    theirs, ids = oracle(transformers).to(getattr(torch, dtype)), rng.integers(0, c, (4, T))
    theirs.save_pretrained(tmp_path, max_shard_size="3KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    assert not (tmp_path / "model.safetensors").exists()
    expected = their_logits(theirs.float(), ids)         # the rounded weights, in float32
    np.testing.assert_allclose(load_gpt2(tmp_path).logits_after_each(ids), expected, rtol=0, atol=1e-5)


def test_a_model_without_a_readout_has_names_without_prefix(tmp_path, rng, transformers):
    theirs, ids = oracle(transformers), rng.integers(0, c, (4, T))
    theirs.transformer.save_pretrained(tmp_path)
    assert "wte.weight" in load_file(tmp_path / "model.safetensors")
    np.testing.assert_allclose(load_gpt2(tmp_path).logits_after_each(ids), their_logits(theirs, ids), rtol=0, atol=1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_transformers_reads_what_is_exported(tmp_path, rng, transformers, bias):
    ours, ids = a_model(rng, bias=bias), rng.integers(0, c, (4, T))
    export_gpt2(ours, tmp_path)
    theirs, about = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(about.values())                       # no array is missing, none is left over
    assert type(theirs).__name__ == "GPT2LMHeadModel"
    np.testing.assert_allclose(their_logits(theirs.eval(), ids), ours.logits_after_each(ids), rtol=0, atol=1e-5)


# Without it ---------------------------------------------------------------------------------------------------------


def test_what_is_exported_is_loaded_again(tmp_path, rng):
    model = a_model(rng)
    export_gpt2(model, tmp_path)
    same(load_gpt2(tmp_path), model)


def test_zeros_are_exported_for_biases_that_a_model_does_not_have(tmp_path, rng):
    model, ids = a_model(rng, bias=False), rng.integers(0, c, (4, T))
    export_gpt2(model, tmp_path)
    again = load_gpt2(tmp_path)
    assert again.config == model.config | {"bias": True}
    np.testing.assert_array_equal(again.logits_after_each(ids), model.logits_after_each(ids))


def test_double_precision_is_exported_as_float32(tmp_path, rng):
    model = a_model(rng)
    export_gpt2(model, tmp_path / "single")
    for p in model.parameters().values():
        p.data = p.data.astype(np.float64)
    export_gpt2(model, tmp_path / "double")
    same(load_gpt2(tmp_path / "single"), load_gpt2(tmp_path / "double"))


def test_rows_beyond_the_vocabulary_are_padding(folder):
    before = load_gpt2(folder)

    def pad(arrays):
        arrays["transformer.wte.weight"] = np.pad(arrays["transformer.wte.weight"], ((0, 9), (0, 0)))

    rewrite(folder, pad)
    same(load_gpt2(folder), before)


def test_a_readout_of_its_own(folder):
    before = load_gpt2(folder)

    def equal(arrays):
        arrays["lm_head.weight"] = arrays["transformer.wte.weight"].copy()

    def other(arrays):
        arrays["lm_head.weight"] = arrays["transformer.wte.weight"] + 1

    rewrite(folder, equal)
    same(load_gpt2(folder), before)
    rewrite(folder, other)
    with pytest.raises(UserError, match="lm_head.weight is not wte.weight"):
        load_gpt2(folder)


def test_causal_masks_of_old_files_are_passed_over(folder):
    before = load_gpt2(folder)
    masks = {f"transformer.h.{layer}.attn.bias": np.tri(T, dtype=bool)[None, None] for layer in range(L)}
    rewrite(folder, lambda arrays: arrays | masks | {"transformer.h.0.attn.masked_bias": np.float32([-1e4])})
    same(load_gpt2(folder), before)


@pytest.mark.parametrize("name", ["wte.weight", "wpe.weight", "h.1.ln_2.bias", "h.0.attn.c_attn.weight", "ln_f.weight"])
def test_arrays_that_are_missing_or_have_another_shape(folder, name):
    whole = load_file(folder / "model.safetensors")
    rewrite(folder, lambda arrays: {key: x for key, x in arrays.items() if key != f"transformer.{name}"})
    with pytest.raises(UserError, match=f"has no array {name}, which its config.json asks for"):
        load_gpt2(folder)
    for cut in (lambda x: x[:-1], lambda x: x[..., :-1], lambda x: x[None]):
        rewrite(folder, lambda _, cut=cut: whole | {f"transformer.{name}": np.ascontiguousarray(cut(whole[f"transformer.{name}"]))})
        with pytest.raises(UserError, match=rf"the array {name} has shape \(.*\), by its config.json it has \("):
            load_gpt2(folder)


def test_an_array_too_many(folder):
    rewrite(folder, lambda arrays: arrays | {"transformer.h.2.ln_1.weight": np.ones(n, "f4")})
    with pytest.raises(UserError, match="has an array h.2.ln_1.weight, which a model of its config.json does not have"):
        load_gpt2(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_embd": None}, "n_embd is None, expected a whole number"),
        ({"n_layer": "2"}, "n_layer is '2', expected a whole number"),
        ({"n_positions": 0}, "n_positions is 0, expected a whole number of at least 1"),
        ({"n_inner": 2.5}, "n_inner is 2.5, expected a whole number"),
        ({"n_head": 5}, "n_embd = 12, which n_head = 5 heads cannot share"),
        ({"n_layer": 10**9}, "L is 1000000000, expected at most 1,000"),
        ({"n_layer": 100}, "L = 100: too large for the"),
        ({"n_inner": 10**8}, "f = 100,000,000: too large for the"),
        ({"n_embd": 3 * 10**9}, "n = 3,000,000,000: too large for the|expected at most"),
        ({"vocab_size": 24}, r"wte.weight has shape \(23, 12\), by its config.json it has \(24, 12\)"),
        ({"activation_function": "relu"}, "activation_function = 'relu', expected gelu_new"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon = 1e-06, expected 1e-05"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True, expected False"),
        ({"add_cross_attention": [True]}, "add_cross_attention = .True., expected False"),
        ({"model_type": "llama"}, "the architecture 'llama', expected gpt2"),
    ],
)
def test_configurations_that_are_refused(folder, options, message):
    rewrite(folder, **options)
    with pytest.raises(UserError, match=message):
        load_gpt2(folder)


def test_heads_that_the_format_cannot_have(tmp_path, rng):
    with pytest.raises(UserError, match="the 3 heads of m = 5 have 15 numbers: GPT-2's format expects n = 12"):
        export_gpt2(a_model(rng, m=5), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_export_is_no_checkpoint(folder):
    assert read_config(folder)["model_type"] == "gpt2"
    with pytest.raises(UserError, match="has a model exported for other programs in it, expected a model"):
        load_checkpoint(folder / "model.safetensors")
