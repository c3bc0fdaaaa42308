"""The cores of one process: on a machine with two, a thread on each takes half of every batch.

If BLAS divides each product between two cores, they wait for each other in each, and what is no product is done by one
of them. With half of the batch for each they meet once in a step, when losses and gradients are added up. With more
cores it is the other way round: a product is large enough for all of them, and so many threads would wait for Python's
lock for longer than they compute.
"""

from copy import deepcopy
from functools import cached_property
from typing import Any

from mini_tf import cores
from mini_tf.backend import device_of
from mini_tf.layers import Layer, Linear, TiedReadout
from mini_tf.layers.layer import separate_gradients
from mini_tf.ops.op import watched
from mini_tf.parallel.shares import loss_of_share, predictions, rows_of, weight_of
from mini_tf.training.step import Training
from mini_tf.types import Backward

import numpy as np

TWO = 2                      # threads: half a batch each is 10 % faster; a quarter for each of four is 5 % slower
LEAST_WORK = 1 << 26         # multiplications with weights in a forward, below which waking the threads takes longer
MOST_PARAMETERS = 10_000     # for each word of a batch, above which adding up the gradients takes longer


class TwoCoreTraining(Training):
    """If BLAS has two threads, and there is enough to do, each of two cores takes half of a batch.

    The loss and the gradients are those of the whole batch, up to rounding: sums over the halves, as on several
    processes, always in the same order. Dropout draws the same numbers.
    """

    def loss(self, batch: Any) -> tuple[float, Backward]:
        shares = self.shares(batch)
        if len(shares) < 2:
            return super().loss(batch)
        draws = [self.rng, *(deepcopy(self.rng) for _ in shares[1:])]    # each skips what the others draw

        def work(k):
            rows, weight = shares[k]
            loss, backward = loss_of_share(self.model, batch, rows, draws[k])
            with separate_gradients() as gradients:
                backward(weight)
            return float(loss) * weight, gradients

        losses, gradients_of_shares = zip(*cores.all_at_once(work, range(len(shares))))

        def backward():                                                  # what takes long is done already
            for gradients in gradients_of_shares:
                for parameter, gradient in gradients.items():
                    parameter.accumulate(gradient)

        return sum(losses), backward

    def shares(self, batch: Any) -> list[tuple[slice, float]]:
        """[(rows, weight) for each thread]: its rows of the batch, and what part of the batch's predictions is in them.

        One share if that is faster, and while ops are watched or replaced: watchers see one call at a time.
        """
        if len(batch) >= TWO == cores.blas_threads() and not watched() and self.worth_it(np.size(batch)):
            counts = predictions(batch)
            shares = [rows_of(k, TWO, len(counts)) for k in range(TWO)]
            weights = [weight_of(rows, counts) for rows in shares]
            if all(weights):
                return list(zip(shares, weights))
        return [(slice(None), 1.0)]

    def worth_it(self, words: int) -> bool:
        """True if dividing so many words is faster, and if the model carries no state from batch to batch."""
        weights, parameters = self.sizes
        return (
            weights * words >= LEAST_WORK and parameters <= MOST_PARAMETERS * words
            and type(self.model).state is Layer.state
            and all(device_of(parameter.data) == "cpu" for parameter in self.parameters.values())
        )  # fmt: skip

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """(entries of the model's weights, its trainable parameters); it takes a while to find them"""
        layers = [layer for _, layer in self.model.members()]
        weights = [layer.W for layer in layers if isinstance(layer, Linear)]
        weights += [layer.table for layer in layers if isinstance(layer, TiedReadout)]
        return sum(weight.data.size for weight in weights), self.model.parameter_count()
