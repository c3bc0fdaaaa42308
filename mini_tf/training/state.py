"""The state of a training: all that its next step depends on, which can be saved, loaded and continued."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from mini_tf.backend import array_module
from mini_tf.checks import is_number, shown
from mini_tf.errors import UserError
from mini_tf.training.archive import not_finite, read_archive, write_archive
from mini_tf.types import Array, PathLike

if TYPE_CHECKING:
    from mini_tf.training.step import Training

FORM: dict[str, Any] = {             # of the numbers: for each, a value of its type; [x] is a list of such values
    "optimizer": "", "best": [0.0, 0], "step": 0, "seconds": 0.0, "counts": {"": {"": 0}},
    "since": {"losses": [0.0], "words": 0, "seconds": 0.0}, "rows": [{"step": 0, "validation_loss": 0.0}],
}  # fmt: skip
PROGRESS = "step", "seconds", "since", "rows"            # of a Training, besides the best: what a state keeps of it


def state_of(training: "Training") -> tuple[dict[str, Array], dict[str, Any]]:
    """See `Training.state`."""
    training.settle()
    if not hasattr(training.batches, "state"):
        raise UserError(f"the batches are a {type(training.batches).__name__}, whose position cannot be saved: give "
                        "them .state() and .restore(state), as RandomWindows has")  # fmt: skip
    loss, step, best = training.best
    memory = training.memory()
    last = {name: parameter.data for name, parameter in training.parameters.items()} | (training.last or {})
    arrays = {f"parameters/{name}": data for name, data in last.items()}
    arrays |= {f"best/{name}": data for name, data in best.items()}
    for which, of in memory.items():
        arrays |= {f"optimizer/{which}/{name}": x for name, x in of.items() if _is_array(x)}
    numbers = {
        "optimizer": type(training.optimizer).__name__, "best": [loss, step],
        **{name: getattr(training, name) for name in PROGRESS},
        "counts": {which: of for which, of in memory.items() if not any(map(_is_array, of.values()))},
        "batches": training.batches.state(), "rng": training.rng and training.rng.bit_generator.state,
    }  # fmt: skip
    arrays |= {f"model/{name}": x for name, x in training.model.state().items()}
    return arrays, numbers


def restore(training: "Training", arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
    """See `Training.restore`."""
    training.deferred = None
    rng = training.rng and training.rng.bit_generator.state
    form = FORM | {"batches": training.batches.state(), "rng": rng if numbers["rng"] and rng else numbers["rng"]}
    _check_form("numbers", numbers, form)
    for row in numbers["rows"]:                          # "" is what was not measured
        _check_form("numbers.rows", {name: 0 if x == "" else x for name, x in row.items()}, {"": 0.0})
    groups: dict[str, dict[str, Array]] = {}
    for name, x in arrays.items():
        kind, _, rest = name.partition("/")
        groups.setdefault(kind, {})[rest] = x
    expected = {name: (p.data.shape, p.data.dtype) for name, p in training.parameters.items()}
    found = {name: (x.shape, x.dtype) for name, x in groups.get("parameters", {}).items()}
    if expected != found:
        odd = min(name for name in {*expected, *found} if expected.get(name) != found.get(name))
        raise UserError(f"the training's state is of another model: {odd} is {found.get(odd, 'not in it')}, "
                        f"expected {expected.get(odd, 'no such parameter')}")  # fmt: skip
    if numbers["optimizer"] != type(training.optimizer).__name__:
        raise UserError(f"the training's state is of the optimizer {numbers['optimizer']}, expected "
                        f"{type(training.optimizer).__name__}: make the training with it")  # fmt: skip
    if (numbers["rng"] is None) != (training.rng is None):
        which = "has no" if numbers["rng"] is None else "has a"
        raise UserError(f"the training's state {which} generator for dropout, unlike this training; change rng")
    parameters = {name: parameter.data for name, parameter in training.parameters.items()}
    for name, x in groups["parameters"].items():
        parameters[name][...] = _copy_to_device_of(parameters[name], x)
    training.last = None
    best = {name: _copy_to_device_of(parameters[name], x) for name, x in groups.get("best", {}).items()}
    for name in PROGRESS:
        setattr(training, name, deepcopy(numbers[name]))
    training.best = *numbers["best"], best
    training.optimizer.memory = deepcopy(numbers["counts"])
    for path, x in groups.get("optimizer", {}).items():
        which, _, name = path.partition("/")
        training.optimizer.memory.setdefault(which, {})[name] = _copy_to_device_of(parameters[name], x)
    training.batches.restore(numbers["batches"])
    if training.rng is not None:
        training.rng.bit_generator.state = numbers["rng"]
    training.model.restore(groups.get("model", {}))


def save_training(path: PathLike, training: "Training", **about: Any) -> None:
    """Write the training's state, and what else is to be kept with it, to `path`, a .safetensors file."""
    arrays, numbers = training.state()
    write_archive(path, "training", arrays, {"numbers": numbers, **about})


def load_training(path: PathLike, training: "Training", **about: Any) -> "Training":
    """Put the state in `path` into `training`, which must be built like the saved one; returns it.

    Raises UserError when the file is missing, damaged or not a training's state (see `read_archive`), when it is that
    of another training, and when it was saved with another `about`.
    """
    restore_from(path, training, **about)
    return training


def restore_from(path: PathLike, training: "Training", **about: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """The same; returns the state, (arrays, numbers)."""
    arrays, found = read_archive(path, "training")
    for name, value in about.items():
        if found.get(name) != value:
            raise UserError(f"{path} was saved with {name} {found.get(name)!r}, expected {value!r}")
    try:
        _check_arrays(training, arrays)
        training.restore(arrays, found["numbers"])
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UserError(f"{path} was written by another version of mini_tf, or edited: {error}") from None
    return arrays, found["numbers"]


def _check_arrays(training, arrays):
    """Raises UserError unless all arrays are finite, and the best parameters and the optimizer's have the parameters'
    shapes. Here, because a process whose optimizer is sharded restores parts of them.
    """
    expected = {name: (p.data.shape, p.data.dtype) for name, p in training.parameters.items()}
    for name, x in arrays.items():
        kind, _, rest = name.partition("/")
        like = expected.get(rest.partition("/")[2] if kind == "optimizer" else rest)
        if kind in ("best", "optimizer") and like is not None and (x.shape, x.dtype) != like:
            raise UserError(f"the training's state has {name} of {x.shape}, {x.dtype}, expected "
                            f"{like[0]}, {like[1]}: it was edited")  # fmt: skip
    if (odd := not_finite(arrays)) is not None:
        raise UserError(f"the training's state has numbers in {odd} that are not finite: it was edited")


def _check_form(where, found, form):
    """Raises UserError unless `found`, which was read from a file, has the form of `form`, part by part."""
    fits = is_number(found) if is_number(form) else isinstance(found, type(form))
    if isinstance(form, dict) and fits:
        keys = found.keys() if "" in form else form.keys()           # "": any keys
        for key in keys:
            _check_form(f"{where}.{key}", found.get(key), form.get(key, form.get("")))
    elif isinstance(form, list) and fits and len(form) in (1, len(found)):
        for position, part in enumerate(found):
            _check_form(f"{where}[{position}]", part, form[min(position, len(form) - 1)])
    elif not fits or isinstance(form, list) or (type(form) is int and not (isinstance(found, int) and found >= 0)):
        raise UserError(f"the training's state has {shown(found)} for {where}: it was edited, or written by another "
                        "version of mini_tf")  # fmt: skip


def _is_array(x):
    return hasattr(x, "shape")


def _copy_to_device_of(reference, x):
    """A copy of the host array x on the device of `reference`"""
    return array_module(reference).array(x)
