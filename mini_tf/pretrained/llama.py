"""Llama in Hugging Face's format, read and written; and `load_llama`, which reads llama2.c's files, too.

Hugging Face's weights are (out, in), the transpose of ours. Its rotary positions pair the entries i and i + m/2 of a
head, ours 2i and 2i + 1, so the columns of the query and key weights are in another order.
"""

from pathlib import Path
from typing import Any

from mini_tf.backend import to_host
from mini_tf.checks import is_number, shown
from mini_tf.errors import UserError
from mini_tf.layers import Linear, Parameter
from mini_tf.models import Llama
from mini_tf.pretrained.folder import PREFIXES, Arrays, check_sizes, read_config, write_folder
from mini_tf.pretrained.llama2c import load_llama2c
from mini_tf.types import Array, PathLike

import numpy as np

SIZES = (
    "vocab_size", "max_position_embeddings", "hidden_size", "intermediate_size", "num_hidden_layers",
    "num_attention_heads",
)  # fmt: skip
FIXED: dict[str, Any] = {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False}       # all that Llama has
NAMES = {                                                # of a layer's arrays
    "input_layernorm": "attention_norm", "self_attn.q_proj": "attention.query", "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value", "self_attn.o_proj": "attention.output",
    "post_attention_layernorm": "feed_forward_norm", "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.inner", "mlp.down_proj": "feed_forward.outer",
}  # fmt: skip
TURNED = "q_proj.weight", "k_proj.weight"                # the weights of what is rotated by positions


def load_llama(path: PathLike) -> Llama:
    """The Llama in a .bin file of llama2.c, or in a folder that Hugging Face's transformers has written, in float32.

    Raises UserError for what is neither, for a file that is cut off or missing, and for options that our Llama lacks.
    """
    if not Path(path).is_dir():
        return load_llama2c(path)
    config = read_config(path, "llama")
    options, c, n = _options(path, config)
    arrays = Arrays(path, PREFIXES["llama"])
    arrays.check_fits(Llama, options, c, n)
    model = Llama(arrays.of_shape("embed_tokens.weight", (c, n), padded=True), **options)
    parameters = _parameters(model)
    arrays.check_no_others({"embed_tokens.weight", "lm_head.weight", *parameters})
    for name, parameter in parameters.items():
        shape = parameter.data.shape
        x = arrays.of_shape(name, shape[::-1], padded=name == "lm_head.weight").T
        parameter.data = np.ascontiguousarray(_neighbours(x, options["m"]) if name.endswith(TURNED) else x)
    return model


def export_llama(model: Llama, folder: PathLike) -> None:
    """Write the model as a folder that Hugging Face's transformers can read: config.json and model.safetensors.

    Raises NotWritten.
    """
    options, (c, n) = model.config, model.trunk.embedding.table.data.shape
    sizes = dict(zip(SIZES, (c, options["T"], n, options["f"], options["L"], options["H"])))
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "dtype": "float32", **sizes, **FIXED,
        "num_key_value_heads": options["G"] or options["H"], "head_dim": options["m"], "rope_theta": options["base"],
        "rms_norm_eps": options["eps"], "tie_word_embeddings": options["tied"], "bos_token_id": None,
        "eos_token_id": None,
    }  # fmt: skip
    arrays = {"embed_tokens.weight": to_host(model.trunk.embedding.table.data)}
    for name, parameter in _parameters(model).items():
        x = to_host(parameter.data)
        arrays[name] = (_halves(x, options["m"]) if name.endswith(TURNED) else x).T
    named = {name if name == "lm_head.weight" else PREFIXES["llama"] + name: x for name, x in arrays.items()}
    named = {name: np.ascontiguousarray(x, np.float32) for name, x in named.items()}
    write_folder(folder, config, named)


def _options(folder: PathLike, config: dict[str, Any]) -> tuple[dict[str, Any], int, int]:
    """From config.json: Llama's options, the size of the vocabulary, the embedding dimension"""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    wanted = FIXED | {"rope_type": "default"}
    kind = rope.get("rope_type", rope.get("type", "default")) if isinstance(rope, dict) else rope
    for name, value in (config | {"rope_type": kind}).items():
        if value != wanted.get(name, value):
            raise UserError(f"{folder}: its config.json says {name} = {shown(value)}, expected {shown(wanted[name])}")
    sizes: dict[str, Any] = {name: config.get(name) for name in SIZES}
    check_sizes(folder, **sizes)
    c, T, n, f, L, H = sizes.values()
    G, m = config.get("num_key_value_heads", H), config.get("head_dim", n // H)
    check_sizes(folder, num_key_value_heads=G, head_dim=m)
    base, eps = rope.get("rope_theta", config.get("rope_theta", 10000.0)), config.get("rms_norm_eps", 1e-6)
    for name, value in (("rope_theta", base), ("rms_norm_eps", eps)):
        if not is_number(value) or value <= 0:
            raise UserError(f"{folder}: its config.json says {name} = {shown(value)}, expected a number above 0")
    if H % G or m % 2:
        raise UserError(f"{folder}: its config.json says that {G} heads of keys serve {H} of queries, each with {m} "
                        "numbers, which does not fit")  # fmt: skip
    tied = bool(config.get("tie_word_embeddings", False))
    return {"T": T, "L": L, "H": H, "G": G, "m": m, "f": f, "tied": tied, "base": float(base), "eps": float(eps)}, c, n


def _parameters(model: Llama) -> dict[str, Parameter]:
    """{Hugging Face's name of an array: our parameter}, without the word vectors"""
    ours = model.parameters()
    found = {
        f"layers.{i}.{theirs}.weight": ours[f"trunk.layers.{i}.{name}.{'gamma' if name.endswith('norm') else 'W'}"]
        for i in range(model.config["L"])
        for theirs, name in NAMES.items()
    }
    found["norm.weight"] = ours["trunk.norm.gamma"]
    return found | ({"lm_head.weight": model.A.W} if isinstance(model.A, Linear) else {})


def _neighbours(W: Array, m: int) -> Array:
    """W (n, H·m) with the columns i and i + m/2 of each head next to each other"""
    return W.reshape(len(W), -1, 2, m // 2).swapaxes(2, 3).reshape(W.shape)


def _halves(W: Array, m: int) -> Array:
    """The inverse of _neighbours"""
    return W.reshape(len(W), -1, m // 2, 2).swapaxes(2, 3).reshape(W.shape)
