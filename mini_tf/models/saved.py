"""What a checkpoint needs of a model: to find its class by name, and to build it again."""

import numpy as np


class SavedModel:
    """Base of models that can be saved. A model's `config` has the options that it was built with."""

    classes = {}                     # name -> class of all models: a checkpoint names its own

    def __init_subclass__(cls):
        super().__init_subclass__()
        SavedModel.classes[cls.__name__] = cls

    @classmethod
    def rebuilt(cls, config, arrays):
        """A model with these options, for parameters {name: array}, which are still to be put into it.

        Raises KeyError or TypeError if the options or the parameters are not this class's.
        """
        return cls(**config)


class MadeOfWordVectors(SavedModel):
    """A model whose first argument is the table of initial word vectors (c, n), which is then among its parameters."""

    @classmethod
    def rebuilt(cls, config, arrays):
        """See SavedModel."""
        table = arrays.get("embedding.table", arrays.get("trunk.embedding.table"))
        if table is None:
            raise KeyError("embedding.table")
        return cls(np.zeros_like(table), **config)
