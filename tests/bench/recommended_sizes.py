"""Tasks 6.13 and 6.14 at the sizes that Task 6.5 recommends: the tables, texts and picture of labs/recommended_sizes.md

    python tests/bench/recommended_sizes.py VEC SHARED [--picture FILE]

VEC, SHARED: run folders of the literal model, whose readout reads vec(Φ(X)), and of one whose readout is shared by all
positions. That page has the commands that trained them.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from mini_tf.decoding import generate, greedy, sample
from mini_tf.palette import COLOURS
from mini_tf.text import shakespeare, tokenize
from mini_tf.training import split_words
from mini_tf.training.figures import save_figure
from mini_tf.training.run import Run

import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[2] / "labs"))
from _common import loop_length

PROMPTS = (0, 1, 2, 4, 8, 16, 32, 64)        # words
WRITTEN = 500                                # words of Task 6.9
WAYS = {
    "argmax": lambda: greedy,
    "temperature 0.7": lambda: partial(sample, temperature=0.7, rng=np.random.default_rng(7)),
    "random": lambda: partial(sample, rng=np.random.default_rng(7)),
}


def flatness(logits):
    """exp(entropy of π): how many equally likely words would be as hard to guess"""
    logits = logits - logits.max()
    pi = np.exp(logits) / np.exp(logits).sum()
    return float(np.exp(-(pi * np.log(np.maximum(pi, 1e-30))).sum()))


def in_one_line(vocabulary, ids):
    return " / ".join(vocabulary.decode(ids).split("\n")).strip()


def print_trainings(runs):
    print("| | T | parameters | steps | minutes | validation | test |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, (run, model, _) in runs.items():
        rows, results = run.metrics(), run.read_json("results.json")
        best = min(row["validation_loss"] for row in rows)
        print(f"| {name} | {model.T} | {model.parameter_count():,} | {rows[-1]['step']:.0f} "
              f"| {rows[-1]['seconds'] / 60:.0f} | {best:.2f} | {results['test']:.2f} |")  # fmt: skip


def print_prompts(runs, text):
    """How sure each model is after the last T′ words of a prompt, and how it goes on."""
    for name, (_, model, vocabulary) in runs.items():
        print(f"\n| {name}: words | π is as flat as for | the end of the prompt → what it writes |\n| --- | --- | --- |")
        for length in PROMPTS:
            if length > model.T:
                continue
            prompt = text[64 - length : 64]
            flat = flatness(model.logits(prompt[None]))
            written = list(generate(model, prompt, 12, WAYS["temperature 0.7"]()))
            end = in_one_line(vocabulary, prompt[-5:])
            print(f"| {length} | {flat:,.0f} | {end} → {in_one_line(vocabulary, written)} |")


def write(runs, text):
    """{(model, way): 500 words}, from the same prompt, of as many words as each model can read"""
    return {
        (name, way): [int(i) for i in generate(model, text[64 - model.T : 64], WRITTEN, choose())]
        for name, (_, model, _) in runs.items()
        for way, choose in WAYS.items()
    }


def print_texts(texts, runs, train, text):
    known = set(zip(train.tolist(), train[1:].tolist()))
    print(f"\n| {WRITTEN} words | different | a loop of | pairs known |\n| --- | --- | --- | --- |")
    for label, ids in [*texts.items(), (("Shakespeare", ""), text[64 : 64 + WRITTEN].tolist())]:
        loop = loop_length(np.array(ids))
        pairs = np.mean([pair in known for pair in zip(ids, ids[1:])])
        print(f"| {', '.join(filter(None, label))} | {len(set(ids))} | {f'{loop} words' if loop else 'none'} "
              f"| {pairs:.0%} |")  # fmt: skip
    for (name, way), ids in texts.items():
        if way == "temperature 0.7":
            vocabulary = runs[name][2]
            print(f"\n{name}, {way}:\n\n```\n{vocabulary.decode(ids[:150]).strip()}\n```")


def picture(runs):
    """The validation losses, against the training words read"""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for colour, (name, (run, _, _)) in zip(COLOURS, runs.items()):
        rows = run.metrics()
        axes.plot([row["step"] for row in rows], [row["validation_loss"] for row in rows], "o-", color=colour, label=name,
                  markersize=4)  # fmt: skip
    axes.set(title="Task 6.13 at the recommended sizes", xlabel="steps", ylabel="validation loss, nats per word")
    axes.legend(frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vec", type=Path)
    parser.add_argument("shared", type=Path)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    runs = {}
    for name, folder in (("vec(Φ(X))", given.vec), ("shared readout", given.shared)):
        run = Run.open(folder)
        runs[name] = run, *run.load()
    _, _, vocabulary = runs["shared readout"]
    assert vocabulary.words == runs["vec(Φ(X))"][2].words, "the two runs have different vocabularies"
    ids = vocabulary.encode(tokenize(shakespeare()))
    train, _, test = split_words(ids, 64)
    text = test[64:]
    print_trainings(runs)
    print_prompts(runs, text)
    print_texts(write(runs, text), runs, train, text)
    if given.picture:
        save_figure(given.picture, picture(runs), dpi=110)


if __name__ == "__main__":
    main()
