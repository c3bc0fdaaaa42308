"""The health of gradients: how large they are in each layer, what they change, and which ReLUs are dead."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from mini_tf import ops
from mini_tf.layers import Parameter
from mini_tf.ops.op import watching
from mini_tf.ops.updates import sum_of_squares
from mini_tf.types import Array

NORM = "gradient_norm"
VANISHES = 1e-3          # a layer's gradient, as a share of the largest in its stack
EXPLODES = 100           # times the median norm so far
DEAD = 0.9               # of the ReLUs
SAMPLED = 100_000        # entries of a parameter whose update is measured
LARGE_UPDATE = 0.1       # of the weights' norm, in one step


class Health:
    """What one step shows of a model's health, with row() as its columns in metrics.csv.

    gradient_norm          ‖g‖ of all gradients together, before clipping
    gradient_norm LAYER    ‖g‖ of one layer's parameters, see `layer_of`
    update_ratio           ‖Δp‖/‖p‖ of all parameters together: what the step changes of them; of a parameter with more
                           than SAMPLED entries, measured on so many of them
    dead_relus             share of the ReLUs that are 0 in every place of the batch; their weights get no gradient

    health = Health(parameters)          # before the step
    with health.watching_relus():
        …                                # the forward
    …                                    # the backward, the update
    health.row(squares)                  # {name of the parameter: Σ g²}
    """

    def __init__(self, parameters: dict[str, Parameter]):
        self.parameters = parameters
        self.before = {name: _some(p.data).copy() for name, p in parameters.items() if p.trainable}
        self.alive: list[Array] = []                     # of each ReLU's call, which of them are not 0 everywhere

    @contextmanager
    def watching_relus(self) -> Iterator[None]:
        """Count ReLUs, and the dead ones, in all that runs inside the block."""
        with watching(self._look):
            yield

    def _look(self, op, run, *inputs, **options):
        result = run(*inputs, **options)
        a = None                                         # what the ReLU of this op is applied to, or gives
        if op is ops.relu:
            a = inputs[0]
        elif op is ops.residual_relu:
            a = inputs[1]
        elif op is ops.rnn and options.get("activation") == "relu":
            a = result[0]
        if a is not None and a.size:
            self.alive.append((a.reshape(-1, a.shape[-1]) > 0).any(0))
        return result

    def row(self, squares: dict[str, float]) -> dict[str, Any]:
        """The columns of this step: {name: number}; "" for the dead ReLUs of a model without any."""
        relus = sum(mask.size for mask in self.alive)
        dead = relus - sum(int(mask.sum()) for mask in self.alive)
        layers = dict.fromkeys(map(layer_of, self.before), 0.0)
        for name, square in squares.items():
            layers[layer_of(name)] += square
        change = size = 0.0
        for name, before in self.before.items():
            after = self.parameters[name].data
            entries_for_one = after.size / before.size
            size += entries_for_one * sum_of_squares(before)
            change += entries_for_one * sum_of_squares(_some(after) - before)
        return {
            NORM: math.sqrt(sum(squares.values())),
            "update_ratio": math.sqrt(change / size) if size else 0.0,
            "dead_relus": dead / relus if relus else "",
            **{f"{NORM} {layer}": math.sqrt(square) for layer, square in layers.items()},
        }


def _some(x):
    """Up to SAMPLED entries of an array, at equal distances"""
    return x.reshape(-1)[:: max(1, math.ceil(x.size / SAMPLED))]


def layer_of(name: str) -> str:
    """The layer that a parameter belongs to: "trunk.layers.0" of "trunk.layers.0.attention.W", "readout" of "readout.W"
    """
    numbered = re.match(r".*?\.\d+(?=\.)", name)
    return numbered[0] if numbered else name.rpartition(".")[0] or name


def layers_of(row: dict[str, Any]) -> dict[str, Any]:
    """{layer: gradient norm} of a row of metrics.csv"""
    return {name.removeprefix(f"{NORM} "): value for name, value in row.items() if name.startswith(f"{NORM} ")}


def complaints(rows: list[dict[str, Any]]) -> dict[str, str]:
    """{what is wrong: a sentence} of the last of these rows; empty if nothing is."""
    row = rows[-1]
    found: dict[str, str] = {}
    if not row.get(NORM):
        return found
    for layers in _stacks(layers_of(row)):
        weak, strong = min(layers, key=layers.get), max(layers, key=layers.get)
        if layers[weak] < VANISHES * layers[strong]:
            found["vanishes"] = (f"the gradient vanishes: its norm is {layers[weak]:.1g} in {weak}, "
                                 f"{layers[strong]:.1g} in {strong}; layer norm or residual paths help")  # fmt: skip
    usual = median(earlier[NORM] for earlier in rows[:-1] if earlier.get(NORM)) if len(rows) > 3 else math.inf
    if row[NORM] > EXPLODES * usual:
        found["explodes"] = (f"the gradient explodes: its norm is {row[NORM]:.3g}, its median so far {usual:.3g}; "
                             "a smaller learning rate or clip=1 helps")  # fmt: skip
    if row["dead_relus"] != "" and row["dead_relus"] > DEAD:
        found["dead"] = (f"{row['dead_relus']:.0%} of the ReLUs are 0 for the whole batch, and learn nothing; "
                         "a smaller learning rate or smaller initial weights help")  # fmt: skip
    if row["update_ratio"] > LARGE_UPDATE:
        found["update"] = (f"one step changes the weights by {row['update_ratio']:.0%} of their norm; about 0.1 % is "
                           "usual: try a smaller learning rate")  # fmt: skip
    return found


def _stacks(layers):
    """The layers of each stack, {"trunk.layers.0": …, "trunk.layers.1": …}: only their norms can be compared."""
    stacks = {}
    for name, norm in layers.items():
        stack, _, number = name.rpartition(".")
        if number.isdigit():
            stacks.setdefault(stack, {})[name] = norm
    return [stack for stack in stacks.values() if len(stack) > 1]
