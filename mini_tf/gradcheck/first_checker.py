"""Your first gradient checker: python mini_tf/gradcheck/first_checker.py"""

from collections.abc import Callable
from typing import Any

import numpy as np


def slopes(phi: Callable[[], float], x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """How fast phi() grows with each entry of x, an array that it reads"""
    measured = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        before = x[i]
        x[i] = before + h
        above = phi()
        x[i] = before - h
        measured[i] = (above - phi()) / (2 * h)
        x[i] = before
    return measured


def is_right(f: Callable[..., Any], *inputs: np.ndarray) -> bool:
    """Whether y, backward = f(*inputs) gives the slopes of Σ y, a gradient for each input"""
    y, backward = f(*inputs)
    gradients = backward(np.ones_like(y))
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    measured = [slopes(lambda: f(*inputs)[0].sum(), x) for x in inputs]
    return all(np.allclose(dx, slope, atol=1e-4) for dx, slope in zip(gradients, measured))


if __name__ == "__main__":
    for c in 2, 1:
        print(f"dx = {c}·x·dy:", is_right(lambda x, c=c: (x * x, lambda dy: c * x * dy), np.arange(3.0)))
