"""How fast a translator trains and translates: mini_tf beside nn.Transformer of PyTorch.

    python tests/bench/translation.py                            mini_tf alone, the preset translate
    python tests/bench/translation.py --peer torch               beside PyTorch: pip install torch==2.13.0
    python tests/bench/translation.py --peer torch --preset translate-hour
    python tests/bench/translation.py --peer torch --only decoding --run runs/translate

Two tables. *training*: one step (loss with label smoothing, backward, Adam; no clipping, no dropout) on random sentences
of 3 to 11 words, in the batches of training. All start from the same weights, read the same batches, and must find the
same losses. PyTorch runs eager and compiled, with Adam's fused form.

*decoding*: translating with beam 1 and beam 5, 128 sentences at a time. Both contenders remember the keys and values of
the words written, compute those of the source once, and stop searching a sentence at the same step. At least 99 % of
their translations must be the same words; rounding breaks near ties. With --run, a run of mini-tf train --preset
translate is the model, and the sentences are those of its translations.tsv. Without, a model of the preset's sizes is
first trained to copy: random vectors never end a sentence, and the time of a translation depends on its length.

A third row has mini_tf's products alone, the multiplications with weights: as long as translating would take if all
else took no time. What PyTorch takes, divided by that, is the most that could be gained.

Every measurement is a process of its own, which warms up first; the contenders take turns.
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path
from unittest.mock import patch

from mini_tf.decoding import translations
from mini_tf.kernels import cpu, recycled_memory
from mini_tf.models import Translator
from mini_tf.text.sentences import SPECIAL, split_sentence
from mini_tf.training.checkpoint import load_checkpoint, save_checkpoint
from mini_tf.training.pair_batches import PairBatches
from mini_tf.training.run import Run
from mini_tf.training.translation import TRANSLATION

import models
import numpy as np
from measuring import (
    in_fresh_process,
    note_settings,
    noting_the_time,
    print_table,
    seconds_of,
    take_turns,
    thread_settings,
)
from models import import_torch, torch_installed, without_zeros
from training_step import PRODUCTS, VARIANTS, check_losses, peers, timed, training_step

WORDS = 8_144, 5_271     # the French and English words of the sentence pairs
LENGTHS = 3, 11          # words of a sentence, the least and the most
BATCH = 128              # sentences translated together
BEAMS = 1, 5
SAME = 0.99              # share of the translations that must be the same words
COPIED = 200             # words that the model without a run learns to copy
EAGER = "PyTorch eager"
FIRST_STEPS = 12         # before timing: after the steps whose losses are compared, compiling may still go on


random_sentences = partial(models.random_sentences, lengths=LENGTHS, first=len(SPECIAL))


def new_model(preset, dropout=0.0):
    """The preset's model, without dropout if it is not given, the same every time, with random weights only."""
    return without_zeros(Translator(*WORDS, **preset.model | {"dropout": dropout}))


def measure_training(method, preset, steps, threads):
    """In the child process: the median seconds of a step, the first losses, and the peak memory."""
    model, rng = new_model(preset), np.random.default_rng(2)
    if method == "mini_tf":
        step = training_step(model, preset, rng=rng)     # dropout is 0, but an rng turns label smoothing on
    else:
        step = import_torch("torch_translator", threads).training_step(model, preset, compiled=VARIANTS[method][0])
    del model
    pairs = [random_sentences(rng, 10_000, words) for words in WORDS]
    return timed(step, list(islice(PairBatches(*pairs, preset.words, seed=1), FIRST_STEPS + steps)), FIRST_STEPS)


def measure_decoding(method, model, sources, beam, threads):
    """In the child process: the seconds of a sentence, and all translations."""
    if method == EAGER:
        peer = import_torch("torch_translator", threads)
        translate = partial(peer.translations, peer.Translator(model).eval(), beam=beam, batch=BATCH)
    else:
        translate = partial(translations, model, beam=beam, batch=BATCH)
    translate(sources[: 2 * BATCH])                      # warm-up
    found, spent = [], []
    with patch.object(cpu, "product", partial(noting_the_time, cpu.product, spent)):
        seconds = seconds_of(lambda: found.extend(translate(sources)))
    seconds = sum(spent) / threads if method == PRODUCTS else seconds
    words = [(one[0] if method == EAGER else one.words).tolist() for one in found]
    return {"seconds": seconds / len(sources), "words": words}


def copying_model(preset, steps=300):
    """A model of the preset's sizes that has learned to copy sentences of few words: good enough to end them."""
    rng, model = np.random.default_rng(4), new_model(preset)
    sentences = random_sentences(rng, 10_000, COPIED)
    batches, step = PairBatches(sentences, sentences, 400, seed=1), training_step(model, preset, rng=rng)
    with recycled_memory():
        for _ in range(steps):
            step(next(batches))
    return model


def sentences_of(run, vocabulary, many):
    """The first `many` French sentences of the run's translations.tsv, as ids"""
    lines = (run / "translations.tsv").read_text(encoding="utf-8").splitlines()[1 : many + 1]
    return [vocabulary.encode(split_sentence(line.split("\t")[0], "french")) for line in lines]


def write_task(folder, preset, run, many):
    """Writes what decoding is measured with, the model and the sentences, into the folder, for the child processes."""
    if run:
        model, (french, _) = Run.open(run).load()
        sources = sentences_of(Path(run), french, many)
    else:
        model, sources = copying_model(preset), random_sentences(np.random.default_rng(5), many, COPIED)
    save_checkpoint(folder / "model.safetensors", model)
    (folder / "sources.json").write_text(json.dumps([ids.tolist() for ids in sources]))
    config = model.config
    sizes = ", ".join(f"{name} = {config[name]}" for name in "nLHmf")
    print(f"Translating {len(sources)} sentences, {BATCH} at a time: {sizes}, {model.sizes[1]:,} words, "
          f"{'trained on sentence pairs' if run else 'trained to copy'}")  # fmt: skip


def read_task(folder):
    sources = json.loads((folder / "sources.json").read_text())
    return load_checkpoint(folder / "model.safetensors"), [np.array(ids, dtype=np.int64) for ids in sources]


def check_translations(runs):
    """Ends the program unless all translations but 1 % are the same; prints how many are."""
    ours, *others = (run["words"] for measured in runs.values() for run in measured)
    same = min(sum(a == b for a, b in zip(ours, other)) for other in others)
    length = sum(map(len, ours)) / len(ours)
    print(f"{same} of {len(ours)} translations are the same words; they have {length:.1f} words in the mean.")
    if same < SAME * len(ours):
        sys.exit(f"the contenders do not agree: less than {SAME:.0%} of the translations are the same")


def per_second(run, median):
    return f"{1 / median:9.0f} sentences a second"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["torch"], help="measure it, too")
    parser.add_argument("--preset", choices=TRANSLATION, default="translate", help="the model (default: translate)")
    parser.add_argument("--only", choices=["training", "decoding"], help="one of the two tables")
    parser.add_argument("--run", metavar="FOLDER", help="decode with its model, and its sentences")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences to translate (default: 1000)")
    parser.add_argument("--steps", type=int, default=20, help="timed training steps in a process (default: 20)")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contender (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    parser.add_argument("--task", type=Path, help=argparse.SUPPRESS)                 # its model and sentences
    parser.add_argument("--beam", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    preset, steps, threads = TRANSLATION[options.preset], options.steps, options.threads

    if options.measure:
        run = (measure_decoding(options.measure, *read_task(options.task), options.beam, threads) if options.task else
               measure_training(options.measure, preset, steps, threads))  # fmt: skip
        print(json.dumps(run))
        return

    def in_turns(methods, *arguments):
        return take_turns(methods, options.rounds, lambda method: in_fresh_process(
            __file__, method, "--preset", preset.name, "--steps", steps, "--threads", threads, *arguments,
            **thread_settings(threads), **VARIANTS.get(method, (False, {}))[1]))  # fmt: skip

    note_settings()
    print(f"{threads} threads, {options.rounds} rounds")
    if options.only != "decoding":
        sizes = ", ".join(f"{name} = {preset.model[name]}" for name in "nLHmf")
        print(f"One training step of {preset.name!r}: {sizes}, {preset.words} words in a batch; {steps} steps a round")
        runs = in_turns(["mini_tf", *(peers() if options.peer else [])])
        check_losses(runs)
        print_table(runs)
        if len(runs) > 1:
            print("All found the same losses.")
    if options.only != "training":
        methods = ["mini_tf", PRODUCTS, *[EAGER] * bool(options.peer and torch_installed())]
        with tempfile.TemporaryDirectory() as folder:
            write_task(Path(folder), preset, options.run, options.sentences)
            for beam in BEAMS:
                runs = in_turns(methods, "--task", folder, "--beam", beam)
                print(f"Beam {beam}, for each sentence:")
                print_table(runs, per_second, unit="ms")
                if len(methods) > 1:
                    check_translations(runs)


if __name__ == "__main__":
    main()
