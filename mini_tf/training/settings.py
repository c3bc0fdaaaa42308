"""Other values for the options of a preset: `mini-tf train --set L=4 --set learning_rate=0.003`."""

import difflib
from contextlib import suppress
from dataclasses import fields, replace
from inspect import signature
from typing import Any

from mini_tf.checks import check_whole, is_number, shown
from mini_tf.errors import UserError
from mini_tf.models.options import NO_OPTIONS, check_choice, check_flags, check_rates
from mini_tf.text.tokenizers import check_tokenizer
from mini_tf.training.task import AnyTask, Task

FROM_DATA = (*NO_OPTIONS, "source_words", "target_words", "classes", "dtype")    # of models: not for the user to choose
NOT_SET = ("name", "description", "model", "model_class", "pretrained")
CHOICES = {"vectors": ("eigenvectors", "training", "random"), "batches": ("random", "apart", "consecutive")}
YES_OR_NO = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
FROM_0 = ("warm_up", "sample_words")
RATES = {"last_rate": 1, "weight_decay": float("inf")}       # from 0 to less than this
MOST = {"sample_words": 100_000}     # minutes of writing


def options_of(preset: Task) -> dict[str, Any]:
    """{name: value} of everything that can be set: first the model's options, then those of its training."""
    parameters = signature(preset.model_type).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.name not in FROM_DATA}
    training = {field.name: getattr(preset, field.name) for field in fields(preset) if field.name not in NOT_SET}
    return defaults | preset.model | training


def with_settings(preset: AnyTask, settings: list[str]) -> AnyTask:
    """The preset with other values for some options, each given as "name=value".

    Raises UserError for an option that the preset does not have, and for a value that the option cannot have.
    """
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        options = options_of(preset)
        if not equals:
            raise UserError(f"--set {setting}: expected an option and its value, as in --set L=4")
        if name not in options:
            near = difflib.get_close_matches(name, options, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise UserError(f"--set {setting}: {preset.name} has no option {name}; {hint}`mini-tf presets "
                            f"{preset.name}` shows all it has")  # fmt: skip
        in_training = name in {field.name for field in fields(preset)}
        is_none = value.lower() == "none" and _may_be_none(preset, name)
        read = None if is_none else _value(setting, name, value, options[name])
        preset = replace(preset, **({name: read} if in_training else {"model": preset.model | {name: read}}))
    check(preset)
    return preset


def _may_be_none(preset, name):
    """True if the option can be None, by its annotation; "none" may also be a word among an option's choices."""
    types = {p.name: p.annotation for p in signature(preset.model_type).parameters.values()}
    types |= {field.name: field.type for field in fields(preset)}
    return "None" in str(types[name])


def _value(setting, name, text, now):
    """The value that a text stands for: of the type that the option has now."""
    try:
        if isinstance(now, bool):
            return YES_OR_NO[text.lower()]
        if isinstance(now, tuple):
            return tuple(float(number) for number in text.split(","))
        if isinstance(now, (int, float)):
            return type(now)(text)
    except (KeyError, ValueError):
        expected = {
            bool: f"{name}=true or {name}=false", int: f"a whole number, as in {name}={now}",
            float: f"a number, as in {name}={now}", tuple: f"two numbers, as in {name}=0.9,0.999",
        }  # fmt: skip
        raise UserError(f"--set {setting}: expected {expected[type(now)]}") from None
    for kind in (int, float) if now is None else ():     # what may be None is a number or a word
        with suppress(ValueError):
            return kind(text)
    return text


def check(preset: Task) -> None:
    """Raises UserError for an invalid option of the training; the model checks its own when it is made."""
    for field in fields(preset):
        name, value = field.name, getattr(preset, field.name)
        if name in NOT_SET or (value is None and "None" in str(field.type)):
            continue
        if name in CHOICES:
            check_choice(name, value, CHOICES[name])
        elif name == "tokenizer":
            check_tokenizer(value)
        elif name == "betas":
            if len(value) != 2 or not all(is_number(beta) and 0 <= beta < 1 for beta in value):
                raise UserError(f"betas is {shown(value)}, expected two numbers from 0 to less than 1, as in 0.9,0.999")
        elif name in ("held_out", "validation", "test", "share", "new_words") and field.type is not int:
            if not is_number(value) or not 0 < value < 1:
                raise UserError(f"{name} is {shown(value)}, expected more than 0 and less than 1: a share")
        elif field.type is bool:
            check_flags(**{name: value})
        elif field.type is int or "int" in str(field.type):
            check_whole(0 if name in FROM_0 else 1, MOST.get(name), **{name: value})
        elif name in RATES:
            check_rates(RATES[name], **{name: value})
        elif not is_number(value) or not 0 < value < float("inf"):
            raise UserError(f"{name} is {shown(value)}, expected a number above 0")
