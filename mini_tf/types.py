"""The types that hints name: what an array is, what a backward is."""

import os
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]                                     # or CuPy's, whose arrays have the same methods
Backward = Callable[..., Any]                            # dy → dx, or a tuple with a gradient for each array argument
PathLike = str | os.PathLike[str]                        # what Path() takes
Say = Callable[[str], None]                              # is called with each line that there is to print


def silent(line: str) -> None:
    """The Say that prints nothing"""
