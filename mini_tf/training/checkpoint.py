"""Checkpoints: a model in one file that opens on any machine, with or without a GPU."""

from contextlib import suppress
from importlib import import_module
from typing import Any

from mini_tf.checks import first_difference, shown
from mini_tf.errors import UserError
from mini_tf.layers.layer import Layer
from mini_tf.models.saved import SavedModel
from mini_tf.training.archive import not_finite, plain, read_archive, write_archive
from mini_tf.types import PathLike

import numpy as np

OURS = "mini_tf.models.", "mini_tf.experiment.pointer_transformer"   # the modules that define models


def save_checkpoint(path: PathLike, model: Any, vocabulary: str | None = None, run: str | None = None) -> None:
    """Write the parameters of a model or layer, and a model's configuration, to `path` (.safetensors), whole or not
    at all.

    vocabulary, run: hashes of the words that the model's ids stand for, and of the settings and data of its training,
    which `load_checkpoint` can compare.
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
    about = {"model": kind.__name__, "module": kind.__module__, "config": config, "vocabulary": vocabulary,
             "run": run}  # fmt: skip
    write_archive(path, "model", arrays, about)


def load_checkpoint(path: PathLike, model: Any = None, vocabulary: str | None = None, run: str | None = None) -> Any:
    """The model that `save_checkpoint` wrote, on the CPU; or `model`, with its parameters replaced by those in `path`.

    A Layer of your own has no configuration by which it could be built: build it, and give it as `model`.
    Raises UserError when the file is missing, damaged or not a checkpoint (see `read_archive`), when `model` has
    another configuration, when the model was saved with another vocabulary or in another run, by their hashes, and when
    its parameters are not all finite, or not all of one dtype.
    """
    if model is not None and not isinstance(model, Layer):
        raise UserError(f"model is {shown(model)}, expected a Layer to load into, such as MyModel(…)")
    arrays, about = read_archive(path, "model")
    for what, expected in {"vocabulary": vocabulary, "run": run}.items():
        if expected is not None and about.get(what) not in (None, expected):
            raise UserError(f"{path} belongs to another {what}: either file was damaged or replaced; train again")
    _check_arrays(path, arrays)
    name, config, kind = about.get("model"), about.get("config"), _class_of(about)
    if model is None and config is None:
        raise UserError(f"{path} holds a {name}, a layer of your own: build it as it was, model = {name}(…), and give "
                        f"it: load_checkpoint({str(path)!r}, model)")  # fmt: skip
    if model is None and kind is None:
        raise UserError(f"{path} holds a {name}: import the module that defines it first, {about.get('module')}")
    if model is None:
        try:
            model = kind.from_config(config, arrays)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise UserError(f"{path} was written by another version of mini_tf, or edited: {error}") from None
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


def _check_arrays(path, arrays):
    """Raises UserError unless all parameters are finite and of the same precision."""
    dtypes = {x.dtype for x in arrays.values()}
    if len(dtypes) > 1 or not dtypes <= {np.dtype("float32"), np.dtype("float64")}:
        raise UserError(f"{path} has parameters of type {', '.join(sorted(map(str, dtypes)))}, expected all of them in "
                        "float32, or all in float64")  # fmt: skip
    if (odd := not_finite(arrays)) is not None:
        raise UserError(f"{path} has a parameter that is not finite, {odd}: restore a copy, or train again")


def _class_of(about):
    """The class of a saved model; None if it is not known here. Yours may have the name of one of mini_tf's."""
    name, module = str(about.get("model")), str(about.get("module"))
    if module.startswith(OURS):                          # the classes of models register when they are defined
        with suppress(ImportError):
            kind = vars(import_module(module)).get(name)
            return kind if isinstance(kind, type) and issubclass(kind, SavedModel) else None
    kind = SavedModel.registry.get(name)
    return None if kind is None or kind.__module__.startswith("mini_tf.") else kind
