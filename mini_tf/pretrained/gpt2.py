"""GPT-2 in Hugging Face's format: read into a GPT2, and written.

Its weights are (in, out), as ours are. Each array holds the weights, or the biases, of one of our layers, but those of
c_attn hold three, query, key and value side by side. The readout is the table of word vectors, wte.
"""

from typing import Any

from mini_tf.backend import to_host
from mini_tf.checks import shown
from mini_tf.errors import UserError
from mini_tf.layers import LayerNorm, Linear, Parameter
from mini_tf.models import GPT2
from mini_tf.pretrained.folder import PREFIXES, Arrays, check_sizes, read_config, write_folder
from mini_tf.types import Array, PathLike

import numpy as np

SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
FIXED: dict[str, tuple[Any, ...]] = {                    # values of options that GPT2 lacks; it writes the first
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"), "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,), "add_cross_attention": (False,),
}  # fmt: skip
NOT_LEARNED = "attn.bias", "attn.masked_bias"            # causal masks, which old files have for each layer


def load_gpt2(folder: PathLike) -> GPT2:
    """The GPT2 in a folder that Hugging Face's transformers has written, in float32, without dropout.

    Raises UserError for a folder that does not hold a GPT-2 (see `folder.py`), for options that our GPT2 lacks, for
    arrays that are missing, unknown, or of another shape, and for a readout that is not the word vectors.
    """
    config = read_config(folder, "gpt2")
    options, c, n = _options(folder, config)
    arrays = Arrays(folder, PREFIXES["gpt2"])
    arrays.check_fits(GPT2, options, c, n)
    table = arrays.of_shape("wte.weight", (c, n), padded=True)
    if "lm_head.weight" in arrays and not np.array_equal(arrays.of_shape("lm_head.weight", (c, n), True), table):
        raise UserError(f"{folder}: lm_head.weight is not wte.weight, expected a readout that is the word vectors")
    model = GPT2(table, **options)
    parameters = _parameters(model)
    masks = [f"h.{layer}.{name}" for layer in range(options["L"]) for name in NOT_LEARNED]
    arrays.check_no_others({"wte.weight", "lm_head.weight", *parameters, *masks})
    for name, parts in parameters.items():
        *rows, columns = parts[0].data.shape
        x = arrays.of_shape(name, (*rows, len(parts) * columns))
        for parameter, part in zip(parts, np.split(x, len(parts), axis=-1)):
            parameter.data = np.ascontiguousarray(part)
    return model


def export_gpt2(model: GPT2, folder: PathLike) -> None:
    """Write the model as a folder that Hugging Face's transformers can read: config.json and model.safetensors.

    Biases that the model does not have are written as zeros, because the format has no option for their absence.
    Raises UserError unless H·m = n, and NotWritten.
    """
    options, (c, n) = model.config, model.trunk.embedding.table.data.shape
    if options["H"] * options["m"] != n:
        raise UserError(f"the {options['H']} heads of m = {options['m']} have {options['H'] * options['m']} numbers: "
                        f"GPT-2's format expects n = {n}")  # fmt: skip
    config = {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "dtype": "float32", "tie_word_embeddings": True,
        "vocab_size": c, "n_positions": options["T"], "n_embd": n, "n_layer": options["L"], "n_head": options["H"],
        "n_inner": options["f"], "embd_pdrop": options["dropout"], "resid_pdrop": options["dropout"],
        "attn_pdrop": 0.0, "bos_token_id": None, "eos_token_id": None,
    } | {name: usual for name, (usual, *_) in FIXED.items()}  # fmt: skip
    found = {"wte.weight": [model.trunk.embedding.table], **_parameters(model)}
    arrays = {f"{PREFIXES['gpt2']}{name}": _side_by_side(parts) for name, parts in found.items()}
    write_folder(folder, config, arrays)


def _options(folder: PathLike, config: dict[str, Any]) -> tuple[dict[str, Any], int, int]:
    """From config.json: GPT2's options, the size of the vocabulary, the embedding dimension"""
    for name, (usual, *more) in FIXED.items():
        if (value := config.get(name, usual)) not in (usual, *more):
            raise UserError(f"{folder}: its config.json says {name} = {shown(value)}, expected {usual}")
    sizes: dict[str, Any] = {name: config.get(name) for name in SIZES}
    if (hidden := config.get("n_inner")) is not None:
        sizes["n_inner"] = hidden
    check_sizes(folder, **sizes)
    c, T, n, L, H = (sizes[name] for name in SIZES)
    if n % H:
        raise UserError(f"{folder}: its config.json says n_embd = {n}, which n_head = {H} heads cannot share")
    return {"T": T, "L": L, "H": H, "m": n // H, "f": 4 * n if hidden is None else hidden}, c, n


def _parameters(model: GPT2) -> dict[str, list[Parameter]]:
    """{Hugging Face's name of an array: our parameters that are side by side in it}, without the word vectors"""
    trunk: Any = model.trunk
    parts: dict[str, list[Any]] = {}
    for i, layer in enumerate(trunk.layers):
        attention, feed_forward = layer.attention, layer.feed_forward
        parts |= {
            f"h.{i}.ln_1": [layer.attention_norm],
            f"h.{i}.attn.c_attn": [attention.query, attention.key, attention.value],
            f"h.{i}.attn.c_proj": [attention.output],
            f"h.{i}.ln_2": [layer.feed_forward_norm],
            f"h.{i}.mlp.c_fc": [feed_forward.inner],
            f"h.{i}.mlp.c_proj": [feed_forward.outer],
        }
    parts["ln_f"] = [trunk.norm]
    found = {"wpe.weight": [trunk.positions.P]}
    for name, layers in parts.items():
        pairs = [_weight_and_bias(layer) for layer in layers]
        found[f"{name}.weight"], found[f"{name}.bias"] = [W for W, _ in pairs], [b for _, b in pairs]
    return found


def _weight_and_bias(layer: Linear | LayerNorm) -> tuple[Parameter, Parameter]:
    """A Linear's W and b, or zeros if it has no b; or a LayerNorm's γ and β"""
    if isinstance(layer, LayerNorm):
        return layer.gamma, layer.beta
    return layer.W, Parameter(np.zeros(layer.W.data.shape[1], np.float32)) if layer.b is None else layer.b


def _side_by_side(parts: list[Parameter]) -> Array:
    return np.concatenate([to_host(parameter.data) for parameter in parts], axis=-1).astype(np.float32, copy=False)
