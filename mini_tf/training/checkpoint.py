"""Checkpoints: a model in one file that opens on any machine, with or without a GPU."""

import json
from contextlib import suppress
from importlib import import_module

from mini_tf.errors import UserError
from mini_tf.models.saved import SavedModel
from mini_tf.training.archive import read_archive, write_archive

import numpy as np


def save_checkpoint(path, model, vocabulary=None):
    """Write the model's parameters and configuration to `path` (.safetensors), whole or not at all.

    vocabulary: a hash of the words that the model's ids stand for, which `load_checkpoint` can compare.
    Raises NotWritten.
    """
    made = type(model)
    about = {"model": made.__name__, "module": made.__module__, "config": _plain(model.config)}
    about["vocabulary"] = vocabulary
    write_archive(path, "model", {name: p.data for name, p in model.parameters().items()}, about)


def load_checkpoint(path, model=None, vocabulary=None):
    """The model that `save_checkpoint` wrote, on the CPU; or `model`, with its parameters replaced by those in `path`.

    Raises UserError when the file is missing, damaged or not a checkpoint (see `read_archive`), when `model` has
    another configuration, and when the model was saved with another vocabulary than `vocabulary`, a hash.
    """
    arrays, about = read_archive(path, "model")
    if vocabulary is not None and about["vocabulary"] not in (None, vocabulary):
        raise UserError(f"{path} belongs to another vocabulary: either file was damaged or replaced; train again")
    if about["module"].startswith("mini_tf."):           # the classes of models register when they are defined
        with suppress(ImportError):
            import_module(about["module"])
    made = SavedModel.classes.get(about["model"])
    if made is None:
        raise UserError(f"{path} holds a {about['model']}, expected one of {', '.join(sorted(SavedModel.classes))}: "
                        "import the module that defines it first")  # fmt: skip
    config = about["config"]
    if model is None:
        try:
            model = made.rebuilt(config, arrays)
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} was written by another version of mini_tf: {error}") from None
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
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
