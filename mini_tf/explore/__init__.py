"""See the backward pass: a page with every line of a computation, and the arrays that it computed.

    from mini_tf.explore import explore

    explore(ops.layer_norm, x, gamma, beta)              # in a notebook: the page is the cell's value
    explore(model, batch).write("step.html")             # or as a file
"""

from collections.abc import Sequence
from typing import Any

from mini_tf.explore.exploration import Exploration, explore_function, explore_model
from mini_tf.explore.readings import of_batch
from mini_tf.layers import Layer

__all__ = ["Exploration", "explore"]


def explore(
    f: Any, *inputs, words: Sequence[str] = (), name: str | None = None, bugs: Sequence[str] = (), seed: int = 0,
    **options: Any,
) -> Exploration:  # fmt: skip
    """The Exploration of y, backward = f(*inputs), or of a model's loss of a batch: explore(model, batch).

    f        an op, a layer, your own function, pair or object, as `gradcheck` takes them, or a model
    inputs   its arguments; of a model, one batch
    words    labels for the words of a batch with one text
    bugs     names of planted bugs to compare a model's right backward with; by default some that matter
    seed     of dy
    options  as for gradcheck: params, grads, constants, methods, and more arguments of f by name
    """
    if not inputs:
        raise TypeError("explore(f) has nothing to call f with, expected explore(f, *inputs), or explore(model, batch)")
    if isinstance(f, Layer) and callable(getattr(f, "loss", None)) and len(inputs) == 1:
        if options:
            raise TypeError(f"explore(model, batch) takes no {', '.join(options)}: only functions do")
        about = "The loss of one batch, forward and backward."
        return explore_model(of_batch(f, inputs[0], words), name or type(f).__name__, about, bugs=bugs)
    if bugs:
        raise TypeError("bugs are planted in models, by explore(model, batch, bugs=…); leave them out for a function")
    return explore_function(f, inputs, name, options, seed=seed)
