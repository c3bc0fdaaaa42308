"""What the options of a preset mean, read from where they are defined, so that nothing has to be said twice."""

import inspect
import re
from collections.abc import Iterator

from mini_tf.training.task import Task

# Of a model's docstring: names, a shape perhaps, a meaning, and the lines that continue it
ENTRY = re.compile(r"^ {4}(\w+(?:, \w+)*)(?: \([^)]*\))? {2,}(\S.*(?:\n {9}.*)*)", re.MULTILINE)
FIELD = re.compile(r" {4}(\w+): .*?[^\"]# ?(\S.*)")         # of a Task: a comment behind it


def option_meanings(preset: Task) -> dict[str, str]:
    """{option: what it means}, of the model's options and of those of its training"""
    found = dict(_in_docstring(preset.model_type))
    for kind in reversed(type(preset).mro()):
        if issubclass(kind, Task):
            found |= {match[1]: match[2] for match in map(FIELD.match, inspect.getsource(kind).split("\n")) if match}
    return found


def _in_docstring(model_type: type) -> Iterator[tuple[str, str]]:
    """(option, meaning), from the lines `    T, L    words of a history, layers` of the class's docstring

    Several names, with as many meanings between commas or semicolons, get one each; a line without a name continues
    the last meaning.
    """
    for entry in ENTRY.finditer(model_type.__doc__ or ""):
        names, meaning = entry[1].split(", "), " ".join(map(str.strip, entry[2].split("\n")))
        parts = [meaning.split(sign) for sign in ("; ", ", ")]
        each = next((some for some in parts if len(some) == len(names)), [meaning] * len(names))
        yield from ((name, part.removeprefix("and ")) for name, part in zip(names, each))
