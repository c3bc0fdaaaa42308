"""Transformer and recurrent networks, with attention and without: which translates better after the same time?

    OPENBLAS_NUM_THREADS=1 python tests/bench/translators.py FOLDER [--seconds 300] [--rates 2e-3 8e-3] [--picture FILE]

All learn from the same sentences of the grammar in the same order, by the same optimizer. They are as the presets
`translate` and `translate-rnn` have them, or scaled to another n; k is chosen so that each has as many parameters as the
transformer. What a step of training costs is measured first, in CPU time, while all models take turns: of each, the
fastest step counts, because other programs on the machine can only add to the time. Each model trains for as many steps
as the seconds pay for, with a learning rate that falls to its end.

FOLDER gets costs.json and a file for each model, learning rate and seed; what is there already is not measured again.
Several of these programs, each with some --models, may fill one FOLDER. Table and picture show what is there: of each
model, the learning rate whose validation loss ends lowest.
"""

import argparse
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from time import process_time

from mini_tf.files import write_text
from mini_tf.kernels import recycled_memory
from mini_tf.palette import COLOURS
from mini_tf.progress import progress_bar
from mini_tf.training.figures import save_figure
from mini_tf.training.translation import TRANSLATION, batches_in_order, bleu_of, mean_loss, same_source, translated

import numpy as np
from matplotlib.figure import Figure

TRANSFORMER = "transformer"
MODELS = {                           # options of RecurrentTranslator
    TRANSFORMER: None,
    "recurrent, multiplicative": {"attention": "multiplicative"},
    "recurrent, additive": {"attention": "additive"},
    "recurrent, no attention": {"attention": "none"},
}
LENGTHS = {"1–6": (1, 6), "7–9": (7, 9), "10–12": (10, 12), "13+": (13, 99)}     # words of the source, "." included
TRIAL = 16                           # steps to find out what one costs
MEASURED = 12                        # validation losses of a training


def presets(n, pairs, bitext_of):
    """({model: its preset, with as many parameters as the transformer's}, the Bitext)"""
    sizes = {"n": n, "m": n // 4, "f": 4 * n}
    transformer = TRANSLATION["translate"]
    found = {TRANSFORMER: replace(transformer, model=transformer.model | sizes, pairs=pairs)}
    bitext = bitext_of(found[TRANSFORMER])
    parameters = found[TRANSFORMER].new_model(bitext, 0).parameter_count()
    recurrent = TRANSLATION["translate-rnn"]
    for name, options in MODELS.items():
        if options is not None:
            preset = replace(recurrent, model=recurrent.model | options | {"n": n}, pairs=pairs)
            found[name] = with_parameters(preset, bitext, parameters)
    return found, bitext


def with_parameters(preset, bitext, parameters):
    """The preset with the even k that gives about so many parameters, at most 3 % more or less."""

    def sized(k):
        return replace(preset, model=preset.model | {"k": k})

    def excess(k):
        return sized(k).new_model(bitext, 0).parameter_count() - parameters

    low, high = 2, 1024
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    k = min((low, high), key=lambda k: abs(excess(k)))
    assert abs(excess(k)) < 0.03 * parameters
    return sized(k)


def step_costs(found, bitext):
    """{model: CPU seconds of a training step}: all take turns, with the same batches."""
    trainings = {name: preset.training(preset.new_model(bitext, 0), bitext, 1000, 0) for name, preset in found.items()}
    per_word, words = {name: [] for name in found}, []
    with recycled_memory(), progress_bar("what a step costs", TRIAL) as update:
        for trial in range(TRIAL):
            for name, training in trainings.items():
                start = process_time()
                _, read = training.one_step()
                per_word[name].append((process_time() - start) / read)
                words.append(read)
            update(trial + 1)
    return {name: min(costs) * mean(words) for name, costs in per_word.items()}


def measured(name, preset, bitext, steps, seed, tested):
    """What is to be known of a model: trained for so many steps, then tested."""
    model = preset.new_model(bitext, seed)
    training = preset.training(model, bitext, steps, seed)
    validation = batches_in_order(*bitext.ids(bitext.validation), preset.words)
    marks = {round(steps * share) for share in np.linspace(0, 1, MEASURED + 1)}
    losses, seconds, words = [[0, mean_loss(model, validation)]], 0.0, 0
    with recycled_memory(), progress_bar(f"{name}, seed {seed}", steps) as update:
        while training.step < steps:
            start = process_time()
            loss, read = training.one_step()
            seconds, words = seconds + process_time() - start, words + read
            update(training.step, f"loss {loss:.3f}")
            if training.step in marks:
                losses.append([training.step, mean_loss(model, validation)])
    training.end()
    examples = same_source(bitext.test)
    found = {"parameters": model.parameter_count(), "k": preset.model.get("k"), "learning_rate": preset.learning_rate,
             "steps": steps, "seconds": seconds, "words_per_second": words / seconds, "losses": losses}  # fmt: skip
    for beam in (1, preset.beam):
        start = process_time()
        written = translated(model, bitext, examples[:tested], beam)
        taken = process_time() - start
        found[f"bleu_{beam}"] = bleu_of(examples[:tested], written)
        found[f"written_per_second_{beam}"] = sum(map(len, written)) / taken
    found["by_length"] = {}
    for group, (least, most) in LENGTHS.items():
        those = [example for example in examples if least <= len(example[0]) <= most][: tested // 2]
        found["by_length"][group] = bleu_of(those, translated(model, bitext, those, preset.beam))
    return found


def results_in(folder):
    """{model: [what was measured, for each seed]} of a folder, with the best learning rate of each"""
    found = {}
    for name in MODELS:
        by_rate = {}
        for path in sorted(folder.glob(f"{name} *.json")):
            run = json.loads(path.read_text(encoding="utf-8"))
            by_rate.setdefault(run["learning_rate"], []).append(run)
        if by_rate:
            found[name] = min(by_rate.values(), key=lambda runs: mean(run["losses"][-1][1] for run in runs))
    return found


def print_table(results):
    titles = ["seeds", "parameters", "k", "rate", "steps", "CPU s", "words/s", "loss", "BLEU 1", "BLEU 5", "written/s 1", "5"]
    print("| |", " | ".join([*titles, *LENGTHS]), "|")
    print("|", " | ".join(["---"] * (1 + len(titles) + len(LENGTHS))), "|")
    for name, runs in results.items():
        def average(get, runs=runs):
            return mean(map(get, runs))

        first = runs[0]
        cells = [
            f"{len(runs)}", f"{first['parameters']:,}", str(first["k"] or ""),
            f"{first['learning_rate']:g}", f"{first['steps']:,}",
            f"{average(lambda run: run['seconds']):.0f}", f"{average(lambda run: run['words_per_second']):,.0f}",
            f"{average(lambda run: run['losses'][-1][1]):.3f}",
            *(f"{average(lambda run, beam=beam: run[f'bleu_{beam}']):.1f}" for beam in (1, 5)),
            *(f"{average(lambda run, beam=beam: run[f'written_per_second_{beam}']):,.0f}" for beam in (1, 5)),
            *(f"{average(lambda run, group=group: run['by_length'][group]):.1f}" for group in LENGTHS),
        ]  # fmt: skip
        print(f"| {name} |", " | ".join(cells), "|")


def draw(results, costs):
    """Left: validation loss over CPU seconds; right: BLEU by the length of the source sentence."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    curves, lengths = figure.subplots(1, 2)
    for (name, runs), colour in zip(results.items(), COLOURS):
        steps = np.array([step for step, _ in runs[0]["losses"]])
        losses = np.mean([[loss for _, loss in run["losses"]] for run in runs], axis=0)
        curves.plot(steps * costs[name], losses, "o-", markersize=4, color=colour, label=name)
        bleu = [mean(run["by_length"][group] for run in runs) for group in LENGTHS]
        lengths.plot(list(LENGTHS), bleu, "o-", color=colour)
    curves.set(title="how fast each learns", xlabel="seconds of training, CPU time",
               ylabel="validation loss in nats per word", ylim=(0, None))  # fmt: skip
    curves.legend()
    lengths.set(title="what length costs", xlabel="words of the French sentence",
                ylabel="BLEU, beam 5")  # fmt: skip
    for axes in (curves, lengths):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=300, help="CPU time of each training (default: 300)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--n", type=int, default=128, help="columns of a word's vector (default: 128)")
    parser.add_argument("--rates", type=float, nargs="+", default=[2e-3], help="learning rates (default: 0.002)")
    parser.add_argument("--pairs", type=int, default=200_000, help="of the grammar (default: 200,000)")
    parser.add_argument("--tested", type=int, default=1000, help="sentences; half as many of each length (default: 1000)")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS), help="those to train")
    parser.add_argument("--picture", type=Path, help="draw the results")
    options = parser.parse_args()
    found, bitext = presets(options.n, options.pairs,
                            lambda preset: preset.prepare(preset.read({"path": None}, 0)))  # fmt: skip
    options.folder.mkdir(parents=True, exist_ok=True)
    costs_file = options.folder / "costs.json"
    if not costs_file.exists():
        write_text(costs_file, json.dumps(step_costs(found, bitext)))
    costs = json.loads(costs_file.read_text())
    for seed, rate, name in product(options.seeds, options.rates, options.models):
        path = options.folder / f"{name} {rate:g} {seed}.json"
        if not path.exists():
            preset, steps = replace(found[name], learning_rate=rate), round(options.seconds / costs[name])
            write_text(path, json.dumps(measured(name, preset, bitext, steps, seed, options.tested), indent=1))
    results = results_in(options.folder)
    print_table(results)
    if options.picture:
        save_figure(options.picture, draw(results, costs))


if __name__ == "__main__":
    main()
