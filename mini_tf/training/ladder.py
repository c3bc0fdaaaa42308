"""The ladder of language models: all models of the project on the same words, from counting to copying."""

import csv
import io
import json
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter

from mini_tf.decoding import generate, sample
from mini_tf.errors import UserError
from mini_tf.files import replacing, write_text
from mini_tf.metrics import perplexity
from mini_tf.models import NGramModel
from mini_tf.text import Vocabulary, join, tokenize
from mini_tf.training.batches import split_words
from mini_tf.training.language import GIVEN_WORDS, train_language_model
from mini_tf.training.presets import preset_named
from mini_tf.training.progress import progress_bar
from mini_tf.training.run import Run

import numpy as np

BAR = "Kneser-Ney, order 3"      # what a neural model has to beat, before it has learned more than counting does
TOLD = "the same, told new words"
NEURAL = {                       # {preset: how the table calls it}, from the oldest to the best
    "window": "fixed window, 4 words",
    "recurrent": "recurrent network",
    "quick": "transformer, quick",
    "pointer": "transformer that copies",
}
MIXED = "the same, and Kneser-Ney"
DISCOUNTS = np.arange(0.5, 1, 0.05)
CONTEXT = 1024                   # words that a model may read before the first word that counts
SAMPLE = 40


@dataclass
class Rung:
    """One model's line of the table. Losses are in nats per word, on words that no model has learned from.

    test         all test words;  known, new: those of them that occur in the training text, and those that do not
    parameters   numbers that are learned or counted
    seconds      of training, on this machine
    about        settings that were chosen on the validation words, or what to know about the model
    """

    model: str
    parameters: int
    seconds: float
    validation: float
    test: float
    known: float
    new: float
    about: str
    sample: str

    @property
    def perplexity(self):
        return perplexity(self.test)


class Words:
    """The text's words in the three parts that all models share, and how they are scored."""

    def __init__(self, text):
        self.vocabulary = Vocabulary(tokenize(text))
        self.ids = self.vocabulary.encode(tokenize(text))
        train, validation, test = split_words(self.ids, T=1)             # the parts that every T gives
        self.test_start = len(self.ids) - len(test) + 1
        self.validation_start = self.test_start - len(validation) + 1
        self.train, self.before_test = train, self.ids[: self.test_start]
        self.is_new = ~np.isin(self.ids[self.test_start :], self.before_test)

    def score(self, model, part, on_batch=None):
        """ln p of each word of the validation or the test part."""
        start, stop = {
            "validation": (self.validation_start, self.test_start), "test": (self.test_start, len(self.ids))
        }[part]  # fmt: skip
        first = max(start - CONTEXT, 0)
        options = {} if on_batch is None else {"on_batch": on_batch}
        return model.log_probabilities(self.ids[first:stop], start - first, **options)

    def rung(self, name, parameters, seconds, validation, test, about, sample):
        """From ln p of the words of two parts to a line of the table."""
        new = -float(test[self.is_new].mean()) if self.is_new.any() else float("nan")
        known = -float(test[~self.is_new].mean())
        return Rung(name, int(parameters), float(seconds), -float(validation.mean()), -float(test.mean()), known, new,
                    about, sample)  # fmt: skip

    def written_by(self, model, seed):
        """SAMPLE words that the model writes after the first words of the test part."""
        prompt = self.ids[self.test_start : self.test_start + GIVEN_WORDS]
        choose = partial(sample, rng=np.random.default_rng(seed))
        return join([self.vocabulary.words[i] for i in generate(model, prompt, SAMPLE, choose)])


def climb(text, folder, seed=0, device="auto", steps=None, say=lambda line: None, on_rung=lambda rung: None):
    """Train and measure every model. Returns the Rungs, which `folder` gets as table.csv, table.md and table.png.

    Each neural model is trained by its preset into folder/PRESET; one that is there already is not trained again, so an
    interrupted comparison can go on. Everything is chosen on the validation words; the test words are only scored.
    Counting models are fitted on the training words for that, and anew on all words before the test; neural models
    never learn from the validation words. steps: batches for each model in place of the presets', for a quick look.
    Raises UserError when `folder` has something else in it, or runs of other settings.
    """
    folder, words = Path(folder), Words(text)
    _check_folder(folder)
    for preset in NEURAL:
        split_words(words.ids, preset_named(preset).model["T"])          # too short a text is told before any work
    rungs, scores = [], {}

    def add(name, parameters, seconds, validation, test, about, sample):
        rungs.append(words.rung(name, parameters, seconds, validation, test, about, sample))
        scores[name] = validation, test
        save(rungs, folder)
        on_rung(rungs[-1])

    uniform = -np.log(len(words.vocabulary))
    add("every word alike", 0, 0, np.full(words.test_start - words.validation_start, uniform),
        np.full(len(words.is_new), uniform), "", "")  # fmt: skip
    counted = list(counting_models(words))
    for name, options in counted:
        start = perf_counter()
        model = NGramModel(size=len(words.vocabulary), **options, **told(words, name, words.before_test))
        model.fit(words.before_test)
        seconds = perf_counter() - start
        chosen = NGramModel(size=len(words.vocabulary), **options, **told(words, name, words.train)).fit(words.train)
        fewer = -words.score(chosen, "test").mean()
        about = [f"D = {options['discount']:.2f}"] if "discount" in options else []
        about.append(f"{fewer:.3f} without the validation words")
        add(name, sum(model.grams), seconds, words.score(chosen, "validation"), words.score(model, "test"),
            ", ".join(about), words.written_by(model, seed))  # fmt: skip
    for preset, name in NEURAL.items():
        model, parameters, results = _trained(text, preset, folder / preset, seed, device, steps, say)
        with progress_bar(f"scoring {preset}", len(words.is_new)) as update:
            validation, test = words.score(model, "validation"), words.score(model, "test", lambda n, _: update(n))
        add(name, parameters, results["training_seconds"], validation, test,
            f"preset {preset}, best of {results['steps']:,} steps at {results['best_step']:,}",
            words.written_by(model, seed))  # fmt: skip
    best = max((name for name, _ in counted), key=lambda name: scores[name][0].mean())
    share = best_share(scores[name][0], scores[best][0])
    both = [np.logaddexp(np.log(share) + own, np.log(1 - share) + other)
            for own, other in zip(scores[name], scores[best])]  # fmt: skip
    add(MIXED, rungs[-1].parameters + next(r.parameters for r in rungs if r.model == best), rungs[-1].seconds,
        *both, f"{share:.2f}·p + {1 - share:.2f}·p of {best}", "")  # fmt: skip
    with replacing(folder / "table.png") as temporary:
        draw(rungs).savefig(temporary, dpi=120)
    return rungs


def counting_models(words):
    """(name, options of NGramModel) of the n-gram models, the discount of each chosen on the validation words."""
    for order in (1, 2, 3, 5):
        yield f"Kneser-Ney, order {order}", {"order": order, "discount": _best_discount(words, order)}
    for order in (3, 5):
        yield f"modified, order {order}", {"order": order, "smoothing": "modified-kneser-ney"}
    yield TOLD, {"order": 5, "smoothing": "modified-kneser-ney"}


def told(words, name, train):
    """For the model that is told: p_0 nearly all for the words that never occur in its training text."""
    if name != TOLD:
        return {}
    c = len(words.vocabulary)
    new = np.bincount(train, minlength=c) == 0
    p_0 = 0.99 * new / max(new.sum(), 1) + 0.01 / c
    return {"p_0": p_0 / p_0.sum()}


def best_share(own, counted):
    """The λ in 0.01, 0.02, …, 0.99 for which λ·p + (1 − λ)·q fits the words best; from their ln p and ln q."""
    shares = np.arange(1, 100) / 100
    return max(shares, key=lambda share: np.logaddexp(np.log(share) + own, np.log(1 - share) + counted).mean())


def save(rungs, folder):
    """Write the table so far as table.csv and table.md, each whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Rung)] + ["perplexity"])
    writer.writerows([*asdict(rung).values(), rung.perplexity] for rung in rungs)
    write_text(folder / "table.csv", text.getvalue())
    write_text(folder / "table.md", markdown(rungs))


def markdown(rungs):
    """The table, and below it what each model writes."""
    lines = [
        "| model | parameters | training, s | test, nats per word | perplexity | known words | new words | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in rungs:
        lines.append(f"| {r.model} | {r.parameters:,} | {r.seconds:,.1f} | {r.test:.3f} | {r.perplexity:,.0f} "
                     f"| {r.known:.3f} | {r.new:.3f} | {r.about} |".replace(" nan ", " – "))  # fmt: skip
    lines += ["", "What they write after the first words of the test text:", ""]
    for r in rungs:
        if r.sample:
            lines += [f"**{r.model}**", "", *(f"> {line}  " for line in r.sample.strip().split("\n")), ""]
    return "\n".join(lines)


def draw(rungs):
    """Each model's loss as a point, left or right of the bar that a neural model has to clear."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.4 * len(rungs) + 1.4), layout="constrained")
    axes = figure.add_subplot()
    shown = [rung for rung in rungs if rung.parameters]                  # all but "every word alike", which is far off
    bar = next((rung.test for rung in shown if rung.model == BAR), shown[0].test)
    axes.axvline(bar, color="0.3", linestyle="--", linewidth=1)
    axes.annotate(f"the bar: {BAR}, {bar:.2f}", (bar, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
                  textcoords="offset points", ha="center", fontsize=9, color="0.3")  # fmt: skip
    for height, rung in enumerate(reversed(shown)):
        color = "tab:orange" if rung.model in (*NEURAL.values(), MIXED) else "tab:blue"
        axes.plot([bar, rung.test], [height, height], color=color, linewidth=2)
        axes.plot(rung.test, height, "o", color=color, markersize=8)
        axes.plot(rung.known, height, "o", color=color, markersize=6, markerfacecolor="white")
        axes.annotate(f"{rung.test:.3f}", (max(rung.test, bar), height), xytext=(9, 0), textcoords="offset points",
                      va="center", fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(shown)), [rung.model for rung in reversed(shown)])
    axes.set_xlabel("cross-entropy of the test words, in nats per word (left is better)")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.1, y=0.04)
    for label, color, face in (
        ("counts", "tab:blue", "tab:blue"), ("learns by gradients", "tab:orange", "tab:orange"),
        ("only words that occur in training", "0.4", "white"),
    ):  # fmt: skip
        axes.plot([], [], "o", color=color, markerfacecolor=face, label=label)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    return figure


def _trained(text, preset, folder, seed, device, steps, say):
    """(model, numbers to learn, results) of the run in `folder`, trained now unless it is finished."""
    settings = preset_named(preset)
    wanted = {"steps": settings.steps if steps is None else steps, "seed": seed}
    run = Run(folder)
    if (run / "results.json").is_file():
        made = json.loads((run / "config.json").read_text(encoding="utf-8"))
        other = [name for name in wanted if made["settings"][name] != wanted[name]]
        if other:
            raise UserError(f"{folder} was trained with {other[0]} = {made['settings'][other[0]]}, expected "
                            f"{wanted[other[0]]}; choose another --run")  # fmt: skip
        say(f"{preset}: trained before, in {folder}")
    else:
        for left in islice(folder.glob("*"), 20):        # of a training that was killed
            left.unlink()
        say(f"{preset}: {settings.description}")
        train_language_model(text, settings, run, wanted["steps"], seed, device, say)
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    parameters = json.loads((run / "config.json").read_text(encoding="utf-8"))["text"]["parameters"]
    return run.load()[0].to(device), parameters, results | wanted


def _best_discount(words, order):
    def loss(discount):
        model = NGramModel(order, len(words.vocabulary), discount=discount).fit(words.train)
        return -words.score(model, "validation").mean()

    return float(min(DISCOUNTS, key=loss))


def _check_folder(folder):
    """Raise UserError when the folder holds anything but a comparison."""
    ours = {"table.csv", "table.md", "table.png", *NEURAL}
    if folder.is_file():
        raise UserError(f"{folder} is a file, expected a folder for the comparison; choose another --run")
    other = sorted(path.name for path in folder.glob("*") if path.name not in ours) if folder.exists() else []
    if other:
        raise UserError(f"the folder {folder} has {other[0]} in it, which is not of a comparison; choose another --run")
