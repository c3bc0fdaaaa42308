"""How fast a classifier and the model of masked words train: mini_tf beside PyTorch.

    python tests/bench/classification.py                         mini_tf alone, the preset classify
    python tests/bench/classification.py --peer torch            beside PyTorch: pip install torch==2.13.0
    python tests/bench/classification.py --peer torch --preset classify-bag
    python tests/bench/classification.py --peer torch --preset fill
    python tests/bench/classification.py --peer torch --busy 1          while another program keeps a core busy

One step (loss, backward, Adam; no clipping, no dropout) on random sentences of 3 to 40 words, in the batches of
training. All start from the same weights, read the same batches, and must find the same losses. PyTorch runs eager and
compiled, with Adam's fused form. Every measurement is a process of its own, which warms up first; the contenders take
turns.

"The batch whole" is mini_tf without halves of the batch for each of two cores (mini_tf/parallel/two_cores.py). The last row
has its products alone, the multiplications with weights, forward and backward: as long as a step would take if all else
took no time. What PyTorch takes, divided by that, is the most that could be gained.
"""

import argparse
import json
from itertools import islice

from mini_tf.models import Classifier, MaskedWordModel
from mini_tf.text.sentences import SPECIAL
from mini_tf.training.classification import CLASSIFICATION
from mini_tf.training.masking import MASKING, MaskedPassages
from mini_tf.training.text_batches import TextBatches

import numpy as np
from measuring import (
    busy_programs,
    in_fresh_process,
    note_settings,
    print_table,
    seconds_of,
    take_turns,
    thread_settings,
)
from models import WORDS, import_torch, random_sentences, without_zeros
from training_step import PRODUCTS, VARIANTS, WHOLE, check_losses, peers, seconds_in_products, timed, training_step

PRESETS = CLASSIFICATION | MASKING
REVIEW_WORDS = 8_000     # c, the vocabulary of the film reviews
CLASSES = 2
LENGTHS = 3, 40          # words of a sentence, the least and the most
SENTENCES = 10_000
OURS = "mini_tf", WHOLE, PRODUCTS
FIRST_STEPS = 12         # before timing: after the steps whose losses are compared, compiling may still go on


def new_model(preset, dropout=0.0):
    """The preset's model, without dropout if it is not given, over random word vectors, the same every time."""
    c = WORDS + 1 if preset.name in MASKING else REVIEW_WORDS            # and [MASK]
    vectors = np.random.default_rng(1).standard_normal((c, preset.n), dtype=np.float32) * np.float32(preset.n**-0.5)
    options = preset.model | {"dropout": dropout}
    model = MaskedWordModel(vectors, **options) if preset.name in MASKING else Classifier(
        vectors, classes=CLASSES, **options)  # fmt: skip
    return without_zeros(model)


def random_batches(preset, c):
    """The endless batches of training of random sentences, and labels or hidden words; the same every time"""
    rng = np.random.default_rng(2)
    if preset.name in MASKING:
        return MaskedPassages(random_sentences(rng, SENTENCES, c, LENGTHS, first=1), c, preset.words, preset.share)
    sentences = random_sentences(rng, SENTENCES, c, LENGTHS, first=len(SPECIAL))
    return TextBatches(sentences, rng.integers(CLASSES, size=SENTENCES), preset.words)


def measure(method, preset, steps, threads):
    """In the child process: the median seconds of a step, the first losses, and the peak memory."""
    model = new_model(preset)
    batches = list(islice(random_batches(preset, model.c), FIRST_STEPS + steps))
    if method in OURS:
        step = training_step(model, preset, whole=method != "mini_tf")
    else:
        step = import_torch("torch_classifier", threads).training_step(model, preset, compiled=VARIANTS[method][0])
    del model
    return timed(step, batches, FIRST_STEPS, seconds_in_products if method == PRODUCTS else seconds_of)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["torch"], help="measure it, too")
    parser.add_argument("--preset", choices=PRESETS, default="classify", help="the model (default: classify)")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contender (default: 5)")
    parser.add_argument("--steps", type=int, default=100, help="timed steps in a process (default: 100)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--busy", type=int, default=0, help="other programs that keep a core busy (default: 0)")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()
    preset, steps, threads = PRESETS[options.preset], options.steps, options.threads

    if options.measure:
        print(json.dumps(measure(options.measure, preset, steps, threads)))
        return

    def in_child(method):
        _, more = VARIANTS.get(method, (False, {}))
        return in_fresh_process(__file__, method, "--preset", preset.name, "--steps", steps, "--threads", threads,
                                **thread_settings(threads), **more)  # fmt: skip

    sizes = ", ".join(f"{name} = {size}" for name, size in {"n": preset.n, **preset.model}.items() if name in "nLHmfk")
    note_settings()
    print(f"One training step of {preset.name!r}: {sizes}, {preset.words} words in a batch; {threads} threads, "
          f"{options.rounds} rounds of {steps} steps, beside {options.busy} busy programs")  # fmt: skip
    methods = ["mini_tf", WHOLE, *(peers() if options.peer else []), PRODUCTS]
    with busy_programs(options.busy):
        runs = take_turns(methods, options.rounds, in_child)
    check_losses(runs)
    print_table(runs, unit="ms")
    print("All found the same losses.")


if __name__ == "__main__":
    main()
