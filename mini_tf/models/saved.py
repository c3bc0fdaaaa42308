"""What a checkpoint needs of a model: its class, by name, and its options, to build it again."""

from inspect import signature
from math import prod
from typing import Any, Self

from mini_tf.errors import UserError
from mini_tf.models.options import check_embeddings, check_sizes
from mini_tf.types import Array

import numpy as np

# Sizes whose product is at most the number of parameters, for any model that has them
PRODUCTS: list[tuple[str, ...]] = [
    ("L", "n", "H", "m"), ("L", "n", "f"), ("n", "classes"), ("n", "source_words"), ("n", "target_words"),
]  # fmt: skip
SIZES = ("T", "L", "H", "m", "n", "f", "k", "blocks", "hidden_layers", "classes", "source_words", "target_words")


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
    def check_fits(cls, config: dict[str, Any], arrays: dict[str, Array], **more: int) -> None:
        """Raises UserError for sizes in the configuration that are too large for the parameters {name: array}.

        more: sizes that are not in the configuration. Few parameters depend on T: `check_sizes` has a limit for it.
        """
        if not isinstance(config, dict):
            raise TypeError(f"the configuration is a {type(config).__name__}, expected a dict of options")
        defaults = {p.name: p.default for p in signature(cls).parameters.values() if p.default is not p.empty}
        options = defaults | config
        sizes = {name: options[name] for name in SIZES if name in options} | more
        check_sizes(least=0, **sizes)

        products = [*PRODUCTS, ("blocks", "n", "k") if "blocks" in sizes else ("c", "k")]
        if "target_words" in sizes:
            products.append(("L", "k", "k"))
        if options.get("readout") == "vec":
            products.append(("T", "n", "c"))
        if options.get("composition") == "concatenation":
            products.append(("T", "n", "k"))
        in_arrays = ("L",), ("blocks",), ("hidden_layers",)              # each layer has its arrays
        limits: dict[tuple[str, ...], int] = dict.fromkeys(in_arrays, len(arrays))
        limits |= dict.fromkeys(products, sum(array.size for array in arrays.values()))
        for names, most in limits.items():
            if all(name in sizes for name in names) and prod(sizes[name] for name in names) > most:
                listed = ", ".join(f"{name} = {sizes[name]:,}" for name in names)
                raise UserError(f"the configuration says {listed}: too large for the {len(arrays)} arrays of "
                                "parameters; the file is damaged")  # fmt: skip


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
