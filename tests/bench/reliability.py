"""What reliability costs: norms of all gradients in every step, a look at their health and a saved state now and then.

    python tests/bench/reliability.py [quick gpt pointer lab] [--rounds 15]

Steps with and without the look take turns. The last columns are shares of the time that a preset trains between two
measurements; a state is saved after each, flushed to the disk.
"""

import argparse
import tempfile
from statistics import median
from time import perf_counter

from mini_tf.kernels import recycled_memory
from mini_tf.text import shakespeare
from mini_tf.training.language import prepare
from mini_tf.training.optimizers import squared_norms
from mini_tf.training.registry import PRESETS
from mini_tf.training.run import Run

from measuring import note_settings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=["quick", "gpt", "pointer", "lab"])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    note_settings()
    print("preset    step   norms    look    state   of it: norms  look  state   a state")
    for name in options.presets:
        print(row(name, PRESETS[name], options.rounds), flush=True)


def row(name, preset, rounds):
    corpus = prepare(shakespeare(), preset.n, preset.model["T"], preset.W, vectors="random")
    training = preset.training(preset.new_model(corpus, 0), corpus, preset.steps, 0)
    plain, looked, norms, states = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, recycled_memory():
        run = Run(folder)
        training.one_step(observe=True)
        for _ in range(rounds):
            plain.append(seconds(training.one_step))
            looked.append(seconds(lambda: training.one_step(observe=True)))
            norms.append(seconds(lambda: squared_norms(training.parameters)))
        training.measured(1.0)
        for _ in range(min(rounds, 5)):
            states.append(seconds(lambda: run.save_state(training)))
            training.step += 1
        size = run.states()[-1][1].stat().st_size
    step, norm, state = median(plain), median(norms), median(states)
    look = median(b - a for a, b in zip(plain, looked))
    between = preset.every * step
    return (f"{name:<8}{1000 * step:6.0f} {1000 * norm:7.2f} {1000 * look:7.1f} {1000 * state:8.0f} ms"
            f" {norm / step:9.2%} {look / between:6.2%} {state / between:6.2%} {size / 1e6:7.0f} MB")  # fmt: skip


def seconds(work):
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    main()
