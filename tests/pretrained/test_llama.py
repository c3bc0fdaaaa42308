"""Llama from Hugging Face's folders and back: the same logits, loss and gradients as in transformers."""

import json

from mini_tf.errors import UserError
from mini_tf.models import Llama
from mini_tf.pretrained import export_llama, load_llama
from tests.pretrained.comparing import same

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

c, n, T = 23, 12, 9
SIZES = {"T": T, "L": 2, "H": 4, "G": 2, "m": 6, "f": 20}


def a_model(rng, **options):
    """A Llama none of whose parameters is 0 or 1"""
    model = Llama(0.5 * rng.standard_normal((c, n)).astype("f4"), **SIZES | options)
    for p in model.parameters().values():
        p.data = (p.data + 0.3 * rng.standard_normal(p.data.shape)).astype(np.float32)
    return model


@pytest.mark.parametrize("options", [{}, {"tied": False, "G": 4, "base": 500.0, "eps": 1e-6}])
def test_a_model_comes_back_from_its_folder(options, tmp_path, rng):
    model = a_model(rng, **options)
    export_llama(model, tmp_path / "llama")
    same(load_llama(tmp_path / "llama"), model)


# With transformers as oracle ----------------------------------------------------------------------------------------


def oracle(transformers, **options):
    """A LlamaForCausalLM with random weights, none of them 0 or 1"""
    import torch

    sizes = {
        "vocab_size": c, "max_position_embeddings": T, "hidden_size": n, "intermediate_size": 20, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "bos_token_id": None, "eos_token_id": None,
    }  # fmt: skip
    torch.manual_seed(3)
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes | options)).eval()
    with torch.no_grad():
        for p in theirs.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return theirs


VARIANTS = [
    {}, {"tie_word_embeddings": True}, {"num_key_value_heads": 1, "rms_norm_eps": 1e-5}, {"head_dim": None, "num_attention_heads": 6},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0}},
]  # fmt: skip


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_loss_and_gradients_are_those_of_transformers(options, tmp_path, rng, transformers):
    import torch

    theirs, windows = oracle(transformers, **options), rng.integers(0, c, (5, T + 1))
    theirs.save_pretrained(tmp_path)
    ours = load_llama(tmp_path)
    with torch.no_grad():
        logits = theirs(torch.from_numpy(windows[:, :-1])).logits.numpy()
    np.testing.assert_allclose(ours.logits_after_each(windows[:, :-1]), logits, rtol=0, atol=1e-5)

    for p in ours.parameters().values():
        p.data = p.data.astype(np.float64)
    loss, backward = ours.loss(windows)
    backward()
    logits = theirs.double()(torch.from_numpy(windows[:, :-1])).logits
    expected = torch.nn.functional.cross_entropy(logits.reshape(-1, c), torch.from_numpy(windows[:, 1:]).reshape(-1))
    expected.backward()
    np.testing.assert_allclose(loss, expected.item(), rtol=1e-6)         # transformers turns and norms in float32
    for p in ours.parameters().values():
        p.data = p.grad.astype(np.float32)
    export_llama(ours, tmp_path / "gradients")           # its arrays are now ours: gradients, by their names
    found = load_file(tmp_path / "gradients" / "model.safetensors")
    names = dict(theirs.named_parameters())
    assert set(names) == set(found)
    for name, p in names.items():
        assert p.grad.abs().max() > 1e-4, name
        np.testing.assert_allclose(found[name], p.grad.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


def test_transformers_reads_what_is_exported(tmp_path, rng, transformers):
    import torch

    for options in ({}, {"tied": False, "base": 77.0}):
        model, ids = a_model(rng, **options), rng.integers(0, c, (4, T))
        export_llama(model, tmp_path / str(options))
        theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path / str(options)).eval()
        with torch.no_grad():
            logits = theirs(torch.from_numpy(ids)).logits.numpy()
        np.testing.assert_allclose(model.logits_after_each(ids), logits, rtol=0, atol=2e-5)


# Bad input ----------------------------------------------------------------------------------------------------------

REFUSED = {
    "another architecture": ({"model_type": "bert"}, "architecture 'bert', expected llama"),
    "biases": ({"attention_bias": True}, "attention_bias = True, expected False"),
    "another activation": ({"hidden_act": "gelu"}, "hidden_act = 'gelu', expected 'silu'"),
    "stretched positions": ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "rope_type = 'llama3', expected 'default'"),
    "positions by a word": ({"rope_scaling": "yarn"}, "rope_type = 'yarn', expected 'default'"),
    "heads that do not fit": ({"num_key_value_heads": 3}, "3 heads of keys serve 4 of queries"),
    "no size": ({"hidden_size": None}, "hidden_size is None, expected a whole number"),
    "no base": ({"rope_theta": "many"}, "rope_theta = 'many', expected a number above 0"),
    "too many layers": ({"num_hidden_layers": 900}, "L = 900"),
    "another width": ({"intermediate_size": 19}, "has shape"),
    "fewer layers": ({"num_hidden_layers": 1}, "which a model of its config.json does not have"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, tmp_path, rng):
    changes, sentence = REFUSED[case]
    export_llama(a_model(rng), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=sentence) as error:
        load_llama(tmp_path)
    assert str(tmp_path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_array_is_missing(tmp_path, rng):
    export_llama(a_model(rng), tmp_path)
    arrays = load_file(tmp_path / "model.safetensors")
    del arrays["model.layers.1.mlp.up_proj.weight"]
    save_file(arrays, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"has no array layers\.1\.mlp\.up_proj\.weight"):
        load_llama(tmp_path)
