"""What a checkpoint needs of a model: its class, by name, and its options, to build it again."""

from collections.abc import Mapping
from inspect import signature
from math import prod
from typing import Any, Self

from mini_tf.errors import UserError
from mini_tf.models.options import check_embeddings, check_sizes
from mini_tf.types import Array

import numpy as np

SIZES = (
    "T", "L", "H", "m", "n", "f", "k", "lora", "blocks", "hidden_layers", "classes", "source_words", "target_words",
)  # fmt: skip


class SavedModel:
    """Base of models that can be saved. A model's `config` has the options that it was built with."""

    registry: dict[str, type["SavedModel"]] = {}                          # by name, which a checkpoint has

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        SavedModel.registry[cls.__name__] = cls

    @classmethod
    def from_config(cls, config: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """A model with these options, untrained, that has room for the parameters {name: array}.

        Raises KeyError or TypeError if the options or the parameters are not this class's, and UserError for options
        that do not fit: before it allocates anything, if they are too large for these parameters.
        """
        cls.check_fits(config, arrays)
        return cls(**config)

    @classmethod
    def check_fits(cls, config: dict[str, Any], arrays: Mapping[str, Any], **more: int) -> None:
        """Raises UserError for sizes in the configuration that are too large for the parameters {name: array}, or
        {name: anything with a .size}.

        more: sizes that are not in the configuration. Few parameters depend on T: `check_sizes` has a limit for it.
        """
        if not isinstance(config, dict):
            raise TypeError(f"the configuration is a {type(config).__name__}, expected a dict of options")
        options = _with_defaults(cls, config | more)
        check_sizes(least=0, **{name: options[name] for name in SIZES if name in options})
        limits: dict[tuple[str, ...], int] = {(name,): len(arrays) for name in ("L", "blocks", "hidden_layers")}
        limits |= dict.fromkeys(_products(options), sum(array.size for array in arrays.values()))
        for names, most in limits.items():
            if names[0] in options and prod(options[name] for name in names) > most:
                raise UserError(f"the configuration says {_listed(names, options)}: too large for the {len(arrays)} "
                                "arrays of parameters; the file is damaged")  # fmt: skip

    @classmethod
    def least_parameters(cls, options: dict[str, Any]) -> tuple[int, str]:
        """(number, why): a model with these options has at least so many parameters, because of the sizes in `why`."""
        options = _with_defaults(cls, options)
        names = max(_products(options), key=lambda names: prod(options[name] for name in names))
        return prod(options[name] for name in names), _listed(names, options)


def _with_defaults(model_type: type, options: dict[str, Any]) -> dict[str, Any]:
    defaults = {p.name: p.default for p in signature(model_type).parameters.values() if p.default is not p.empty}
    return defaults | options


def _products(options: dict[str, Any]) -> list[tuple[str, ...]]:
    """The names of sizes whose product is at most the number of parameters of a model with these options"""
    products: list[tuple[str, ...]] = [
        ("L", "n", "H", "m"), ("L", "n", "f"), ("L", "n", "lora"), ("n", "c"), ("n", "classes"), ("n", "source_words"),
        ("n", "target_words"), ("blocks", "n", "k") if "blocks" in options else ("c", "k"),
    ]  # fmt: skip
    if "target_words" in options:
        products.append(("L", "k", "k"))
    if options.get("readout") == "vec":
        products.append(("T", "n", "c"))
    if options.get("composition") == "concatenation":
        products.append(("T", "n", "k"))
    return [names for names in products if all(name in options for name in names)]


def _listed(names: tuple[str, ...], sizes: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {sizes[name]:,}" for name in names)


class EmbeddingModel(SavedModel):
    """A model whose first argument is the table of initial word vectors (c, n), which is then among its parameters."""

    @classmethod
    def from_config(cls, config: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """See SavedModel."""
        table = arrays.get("embedding.table", arrays.get("trunk.embedding.table"))
        if table is None:
            raise KeyError("embedding.table")
        check_embeddings(table)
        cls.check_fits(config, arrays, c=table.shape[0], n=table.shape[1])
        return cls(np.zeros_like(table), **config)  # type: ignore[call-arg]  # subclasses take the table first
