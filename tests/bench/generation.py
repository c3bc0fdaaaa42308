"""How long a model takes to write a word: mini_tf beside the same model in PyTorch.

    python tests/bench/generation.py                             mini_tf alone, the quick preset
    python tests/bench/generation.py --peer torch                beside PyTorch: pip install torch==2.13.0
    python tests/bench/generation.py --preset lab --words 20

One text is written (batch 1), always the most probable word, after a prompt of T words. The lab's model finds each word
from T words, read anew. A causal model remembers keys and values, and computes the new word only; when T words are
full, it forgets the older half. PyTorch is given the same histories, and reads them anew. Every measurement is a process
of its own, which warms up and gives the mean time of a word, because reading half a history anew belongs to it; the
contenders take turns. They have the same weights, and must write the same words.
"""

import argparse
import json
import sys
import time
from statistics import mean

from mini_tf.decoding import generate, greedy

import numpy as np
from measuring import in_fresh_process, note_settings, print_table, take_turns, thread_settings
from models import MODELS, import_torch, new_model, random_words, torch_installed

WARM_UP = 5              # words
AGREED = 1e-3            # difference of scores, which are of size 1
PEER = "PyTorch eager"


def measure(method, preset, words, threads):
    """In the child process: the median seconds of a word, the words, and all scores for the first of them."""
    model, prompt = new_model(preset), random_words(preset.model["T"])
    if method == "mini_tf":
        scores = model.logits(prompt[None])
        writing = generate(model, prompt, WARM_UP + words, greedy)
    else:
        peer = import_torch("torch_models", threads)
        model = peer.Transformer(model)
        scores = peer.scores(model, prompt)
        writing = peer.generate(model, prompt, WARM_UP + words)
    written, clock = [], [time.perf_counter()]
    for word in writing:
        written.append(word)
        clock.append(time.perf_counter())
    return {"seconds": mean(np.diff(clock)[WARM_UP:]), "words": written, "scores": scores[0].tolist()}


def check_words(runs):
    """End the program unless all wrote the same words, or their first scores agree: rounding breaks ties."""
    ours, *others = (run for measured in runs.values() for run in measured)
    if all(other["words"] == ours["words"] for other in others):
        print("All wrote the same words.")
    elif all(np.allclose(other["scores"], ours["scores"], rtol=0, atol=AGREED) for other in others):
        print(f"Not all wrote the same words, but their first scores differ by less than {AGREED}: it was a near tie.")
    else:
        sys.exit("the contenders do not agree: they wrote other words, and the scores of the first differ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["torch"], help="measure it, too")
    parser.add_argument("--preset", choices=["lab", "quick", "gpt"], default="quick", help="the model (default: quick)")
    parser.add_argument("--words", type=int, default=200, help="timed words in a process (default: 200)")
    parser.add_argument("--rounds", type=int, default=5, help="processes for each contender (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()
    preset, words, threads = MODELS[options.preset], options.words, options.threads

    if options.measure:
        print(json.dumps(measure(options.measure, preset, words, threads)))
        return

    methods = ["mini_tf", PEER] if options.peer and torch_installed() else ["mini_tf"]
    note_settings()
    print(f"Writing one word with {preset.name!r} after T = {preset.model['T']} words; {threads} threads, "
          f"{options.rounds} rounds of {words} words")
    runs = take_turns(methods, options.rounds, lambda method: in_fresh_process(
        __file__, method, "--preset", preset.name, "--words", words, "--threads", threads, **thread_settings(threads)))
    print_table(runs, unit="ms")
    if len(methods) > 1:
        check_words(runs)


if __name__ == "__main__":
    main()
