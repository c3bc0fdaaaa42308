"""The registry of presets of all kinds of tasks, and how to go on with a run of any of them."""

from typing import Any

from mini_tf.errors import UserError
from mini_tf.experiment.presets import POINTER
from mini_tf.pretrained.fine_tuning import LLAMA
from mini_tf.training.classification import CLASSIFICATION
from mini_tf.training.language import LANGUAGE
from mini_tf.training.masking import MASKING
from mini_tf.training.task import Task
from mini_tf.training.translation import TRANSLATION
from mini_tf.types import PathLike

PRESETS: dict[str, Task] = {
    **LANGUAGE, POINTER.name: POINTER, LLAMA.name: LLAMA, **TRANSLATION, **CLASSIFICATION, **MASKING,
}  # fmt: skip


def preset_named(name: str) -> Task:
    """The preset of that name. Raises UserError, which lists them, for any other name."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is unknown, expected one of {', '.join(PRESETS)}")
    return PRESETS[name]


def resumed(folder: PathLike, config: dict[str, Any]) -> tuple[Task, dict[str, Any], int, int]:
    """(preset, command, steps, seed) of a run that goes on: as they were when it was begun, whatever the preset is now.

    config: what its config.json says
    Raises UserError if the run was not made by `mini-tf train`, or by a version with other settings.
    """
    if not config["command"]:
        raise UserError(f"{folder} was not made by mini-tf train: resume it as it was begun, by mini-tf compare or by "
                        "your own script")  # fmt: skip
    settings = dict(config["settings"])
    steps, seed = settings["steps"], settings.pop("seed")
    kind = type(preset_named(settings["name"]))
    try:
        return kind(**settings | {"betas": tuple(settings["betas"])}), config["command"], steps, seed
    except TypeError as error:
        raise UserError(f"{folder} was begun by another version of mini_tf: {error}") from None
