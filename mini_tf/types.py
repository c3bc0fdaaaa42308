"""The types used in hints: arrays, gradients, backwards."""

import os
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]                                     # or CuPy's, whose arrays have the same methods
Gradients = tuple[Array | None, ...]                     # one for each array argument; None for ids and masks
Backward = Callable[..., Any]                            # dy → dx, or Gradients
Progress = Callable[[int, int], None] | None             # on_batch(done, of), for a progress bar
PathLike = str | os.PathLike[str]                        # what Path() takes
Options = dict[str, Any]                                 # {name: value}, which a model was built with
Say = Callable[[str], None]                              # is called with each line that there is to print


def silent(line: str) -> None:
    """The Say that prints nothing"""
