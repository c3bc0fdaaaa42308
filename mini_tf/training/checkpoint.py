"""Checkpoints: a model in one file that opens on any machine, with or without a GPU."""

from contextlib import suppress
from importlib import import_module
from typing import Any

from mini_tf.checks import first_difference, shown
from mini_tf.errors import UserError
from mini_tf.layers.layer import Layer
from mini_tf.models.saved import SavedModel
from mini_tf.training.archive import plain, read_archive, write_archive
from mini_tf.types import PathLike


def save_checkpoint(path: PathLike, model: Any, vocabulary: str | None = None) -> None:
    """Write the parameters of a model or layer, and a model's configuration, to `path` (.safetensors), whole or not
    at all.

    vocabulary: a hash of the words that the model's ids stand for, which `load_checkpoint` can compare.
    Raises UserError for what is no Layer or has no parameters, and NotWritten.
    """
    if isinstance(model, type):
        raise UserError(f"the class {model.__name__} was to be saved, expected one of its layers: {model.__name__}(…)")
    if not isinstance(model, Layer):
        name = type(model).__name__
        raise UserError(f"a {name} was to be saved, expected a Layer: class {name}(Layer)")
    arrays = {name: p.data for name, p in model.parameters().items()}
    if not arrays:
        raise UserError(f"this {type(model).__name__} has no parameters to save; they are found in its attributes: "
                        "self.W = Parameter(…), Layers, lists and dicts of them")  # fmt: skip
    config, kind = getattr(model, "config", None) if isinstance(model, SavedModel) else None, type(model)
    about = {"model": kind.__name__, "module": kind.__module__, "config": config, "vocabulary": vocabulary}
    write_archive(path, "model", arrays, about)


def load_checkpoint(path: PathLike, model: Any = None, vocabulary: str | None = None) -> Any:
    """The model that `save_checkpoint` wrote, on the CPU; or `model`, with its parameters replaced by those in `path`.

    A Layer of your own has no configuration by which it could be built: build it, and give it as `model`.
    Raises UserError when the file is missing, damaged or not a checkpoint (see `read_archive`), when `model` has
    another configuration, and when the model was saved with another vocabulary than `vocabulary`, a hash.
    """
    if model is not None and not isinstance(model, Layer):
        raise UserError(f"model is {shown(model)}, expected a Layer to load into, such as MyModel(…)")
    arrays, about = read_archive(path, "model")
    if vocabulary is not None and about["vocabulary"] not in (None, vocabulary):
        raise UserError(f"{path} belongs to another vocabulary: either file was damaged or replaced; train again")
    name, config, kind = about["model"], about["config"], _class_of(about)
    if model is None and config is None:
        raise UserError(f"{path} holds a {name}, a layer of your own: build it as it was, model = {name}(…), and give "
                        f"it: load_checkpoint({str(path)!r}, model)")  # fmt: skip
    if model is None and kind is None:
        raise UserError(f"{path} holds a {name}: import the module that defines it first, {about['module']}")
    if model is None:
        try:
            model = kind.from_config(config, arrays)
        except (KeyError, TypeError) as error:
            raise UserError(f"{path} was written by another version of mini_tf: {error}") from None
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
    elif config is not None:
        name, saved, here = first_difference("config", config, plain(getattr(model, "config", {})))
        if saved != here:
            raise UserError(f"{path} holds a model of another configuration: {name} = {saved!r} there, {here!r} here; "
                            "load it without a model to get the one it describes")  # fmt: skip
    parameters = model.parameters()
    if set(arrays) != set(parameters):
        odd = min(set(arrays) ^ set(parameters))
        raise UserError(f"{path} does not fit the model: {odd!r} is in only one of them")
    for name, parameter in parameters.items():
        if parameter.data.shape != arrays[name].shape:
            raise UserError(f"{path} does not fit: {name} is {arrays[name].shape}, expected {parameter.data.shape}")
    for name, parameter in parameters.items():           # all fit, or none is replaced
        parameter.data, parameter.grad = arrays[name], None
    return model


def _class_of(about):
    """The class of a saved model; None if it is not known here. Yours may have the name of one of mini_tf's."""
    ours = about["module"].startswith("mini_tf.")
    if ours:                                             # the classes of models register when they are defined
        with suppress(ImportError):
            return getattr(import_module(about["module"]), about["model"], None)
    kind = SavedModel.registry.get(about["model"])
    return None if kind is None or kind.__module__.startswith("mini_tf.") != ours else kind
