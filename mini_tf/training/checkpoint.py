"""Checkpoints: a model in one file that opens on any machine, with or without a GPU."""

import json
from contextlib import suppress
from importlib import import_module

from mini_tf.backend import to_host
from mini_tf.errors import UserError
from mini_tf.files import replacing
from mini_tf.models.saved import SavedModel

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file


def save_checkpoint(path, model):
    """Write the model's parameters and configuration to `path` (.safetensors), whole or not at all."""
    # safetensors 0.8.0 scrambles arrays that are not C-contiguous, without an error.
    arrays = {name: np.ascontiguousarray(to_host(p.data)) for name, p in model.parameters().items()}
    # One entry of metadata: several would come in any order, and the same model should give the same bytes.
    made = type(model)
    about = json.dumps({"model": made.__name__, "module": made.__module__, "config": _plain(model.config)})
    with replacing(path) as temporary:
        save_file(arrays, temporary, {"mini_tf": about})


def load_checkpoint(path, model=None):
    """The model that `save_checkpoint` wrote, on the CPU; or `model`, with its parameters replaced by those in `path`.

    Raises UserError when the file is missing or not a checkpoint, and when `model` has another configuration.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("mini_tf", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint {path}; train a model first: mini-tf train") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} cannot be read as a checkpoint ({error}); it may be damaged: train again") from None
    if str(about.get("module")).startswith("mini_tf."):  # the classes of models register when they are defined
        with suppress(ImportError):
            import_module(about["module"])
    made = SavedModel.classes.get(about.get("model"))
    if made is None:
        raise UserError(f"{path} is a safetensors file, but not a checkpoint of mini_tf")
    config = about["config"]
    if model is None:
        try:
            model = made.rebuilt(config, arrays)
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} was written by another version of mini_tf: {error}") from None
    else:
        _same_config(path, config, _plain(model.config))
    parameters = model.parameters()
    if set(arrays) != set(parameters):
        odd = sorted(set(arrays) ^ set(parameters))[0]
        raise UserError(f"{path} does not fit the model: {odd!r} is in only one of them")
    for name, parameter in parameters.items():
        if parameter.data.shape != arrays[name].shape:
            raise UserError(f"{path} does not fit: {name} is {arrays[name].shape}, expected {parameter.data.shape}")
        parameter.data, parameter.grad = arrays[name], None
    return model


def _same_config(path, saved, wanted):
    for name in sorted(set(saved) | set(wanted)):
        if saved.get(name) != wanted.get(name):
            raise UserError(
                f"{path} holds a model of another configuration: {name} = {saved.get(name)!r} there, "
                f"{wanted.get(name)!r} here; load it without a model to get the one it describes"
            )


def _plain(config):
    """The configuration as JSON gives it back: lists for arrays and tuples."""
    return json.loads(json.dumps(config, default=lambda array: np.asarray(array).tolist()))
