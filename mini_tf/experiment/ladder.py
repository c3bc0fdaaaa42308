"""The ladder of language models: all models of the project on the same words, from counting to copying."""

import csv
import io
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from time import perf_counter

from mini_tf.decoding import generate, sample
from mini_tf.errors import UserError
from mini_tf.experiment.figures import draw_ladder
from mini_tf.files import FolderLock, sweep, write_text
from mini_tf.metrics import perplexity, uniform_cross_entropy
from mini_tf.models import NGramModel, TextModel
from mini_tf.progress import progress_bar
from mini_tf.text import Vocabulary, join, tokenize
from mini_tf.training.batches import ConsecutiveWindows, split_words
from mini_tf.training.figures import save_figure
from mini_tf.training.language import PROMPT_WORDS
from mini_tf.training.registry import PRESETS
from mini_tf.training.run import Run
from mini_tf.training.runner import about as about_run
from mini_tf.training.runner import train
from mini_tf.types import Array, PathLike

import numpy as np

BAR = "Kneser-Ney, order 3"      # a neural model has to beat it to show that it learned more than counting does
ORACLE = "the same, told new words"
NEURAL = {                       # {preset: how the table calls it}, from the oldest to the best
    "window": "fixed window, 4 words",
    "recurrent": "recurrent network",
    "quick": "transformer, quick",
    "pointer": "transformer that copies",
}
MIXED = "it, mixed with counts"
ORACLE_SHARE = 0.99              # of p_0 for the new words, if a model is told which they are; not tuned
DISCOUNTS = np.arange(0.5, 1, 0.05)
CONTEXT = 1024                   # words that a model may read before the first one that is scored
SAMPLE = 40


@dataclass
class Rung:
    """One model's row of the table. Losses are in nats per word, of words that no model was trained to predict.

    test         all test words;  known, new: those that occur before the test part, and those that do not. A network
                 does not learn from the validation part, so some of the known ones are new to it, too
    parameters   how many numbers are learned or counted
    seconds      of training, on this machine
    about        settings chosen on the validation words, or other facts about the model
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
    def perplexity(self) -> float:
        return perplexity(self.test)

    @property
    def learns(self) -> bool:
        """True if it learns by gradients, False if by counting."""
        return self.model in (*NEURAL.values(), MIXED)


class Words:
    """The text's words in the three parts that all models share, and how they are scored."""

    def __init__(self, text: str):
        tokens = tokenize(text)
        self.vocabulary = Vocabulary(tokens)
        self.ids = self.vocabulary.encode(tokens)
        self.train, validation, _ = split_words(self.ids, T=1)           # the same words as with any other T
        self.validation_start = len(self.train)
        self.test_start = self.validation_start + len(validation) - 1    # validation begins with 1 word of train
        self.before_test = self.ids[: self.test_start]
        self.is_new = ~np.isin(self.ids[self.test_start :], self.before_test)

    def score(self, model: TextModel, part: str, on_batch: Callable[[int, int], None] | None = None) -> Array:
        """ln p of each word of the validation or the test part."""
        start, stop = {
            "validation": (self.validation_start, self.test_start), "test": (self.test_start, len(self.ids))
        }[part]  # fmt: skip
        first = max(start - CONTEXT, 0)
        return model.log_probabilities(self.ids[first:stop], start - first, on_batch)

    def written_by(self, model: TextModel, seed: int) -> str:
        """SAMPLE words, written by the model after the first words of the test part."""
        prompt = self.ids[self.test_start : self.test_start + PROMPT_WORDS]
        choose = partial(sample, rng=np.random.default_rng(seed))
        return join([self.vocabulary.words[i] for i in generate(model, prompt, SAMPLE, choose)])


def climb(
    text: str, folder: PathLike, seed: int = 0, device: str = "auto", steps: int | None = None,
    say: Callable[[str], None] = lambda line: None, on_rung: Callable[[Rung], None] = lambda rung: None,
) -> list[Rung]:  # fmt: skip
    """Train and measure every model. Returns the Rungs; writes them as table.csv, table.md and table.png to `folder`.

    Each neural model is trained by its preset into folder/PRESET. One that is there already is not trained again, and
    one whose training was stopped goes on exactly there, so an interrupted comparison can go on.
    All choices are made on the validation words; the test words are only scored. For the choices, counting models are
    fitted on the training words; then again on all words before the test. Neural models never learn from the validation
    words. The vocabulary is that of the whole text, for all models.
    steps: batches for each model in place of the presets' numbers, for a quick look.
    Raises UserError when `folder` holds anything else, or runs of another text or with other settings.
    """
    folder, words = Path(folder), Words(text)
    _check_folder(folder)
    presets = {name: _preset(name, steps) for name in NEURAL}
    for preset in presets.values():
        _check_text(words, preset)
    folder.mkdir(parents=True, exist_ok=True)
    with FolderLock(folder):
        sweep(folder)
        return _climb(text, words, folder, presets, seed, device, say, on_rung)


def _climb(text, words, folder, presets, seed, device, say, on_rung):
    """`climb`, in a folder that no other process writes to."""
    rungs, scores = {}, {}

    def add(name, parameters, seconds, validation, test, about="", sample=""):
        new = -test[words.is_new].mean() if words.is_new.any() else np.nan
        losses = map(float, (-validation.mean(), -test.mean(), -test[~words.is_new].mean(), new))
        rungs[name] = Rung(name, int(parameters), float(seconds), *losses, about, sample)
        scores[name] = validation, test
        save(rungs.values(), folder)
        on_rung(rungs[name])

    uniform = np.full(len(words.ids), -uniform_cross_entropy(len(words.vocabulary)))
    add("every word alike", 0, 0, uniform[words.validation_start : words.test_start], uniform[words.test_start :])
    counting = counting_models(words)
    for name, (fit, about) in counting.items():
        start = perf_counter()
        model = fit(words.before_test)
        seconds, chosen = perf_counter() - start, fit(words.train)
        fewer = -words.score(chosen, "test").mean()
        add(name, sum(model.grams), seconds, words.score(chosen, "validation"), words.score(model, "test"),
            f"{about}{fewer:.3f} without the validation words", words.written_by(model, seed))  # fmt: skip
    for key, name in NEURAL.items():
        model, parameters, results = _trained(text, presets[key], folder / key, seed, device, say)
        with progress_bar(f"scoring {key}", len(words.is_new)) as update:
            validation, test = words.score(model, "validation"), words.score(model, "test", lambda n, _: update(n))
        about = ", word vectors from the training words only" if presets[key].vectors == "training" else ""
        add(name, parameters, results["training_seconds"], validation, test,
            f"preset {key}{about}, best of {results['steps']:,} steps at {results['best_step']:,}",
            words.written_by(model, seed))  # fmt: skip

    pointer, counted = NEURAL["pointer"], max(counting, key=lambda name: scores[name][0].mean())
    share = best_share(scores[pointer][0], scores[counted][0])
    mixed = [mixture(share, p, q) for p, q in zip(scores[pointer], scores[counted])]
    one, other = rungs[pointer], rungs[counted]
    add(MIXED, one.parameters + other.parameters, one.seconds + other.seconds, *mixed,
        f"{share:.2f}·p + {1 - share:.2f}·p of {counted}")  # fmt: skip
    save_figure(folder / "table.png", draw_ladder(list(rungs.values()), BAR))
    return list(rungs.values())


def counting_models(words: Words) -> dict[str, tuple[Callable[[Array], NGramModel], str]]:
    """{name: (fit, about)} of the n-gram models; fit(ids) counts. Discounts are chosen on the validation words."""
    c = len(words.vocabulary)

    def fit(order, ids, p_0=lambda ids: None, **options):
        return NGramModel(order, c, p_0=p_0(ids), **options).fit(ids)

    models: dict[str, tuple[Callable[[Array], NGramModel], str]] = {}
    for order in (1, 2, 3, 5):
        fits = {D: partial(fit, order, discount=float(D)) for D in DISCOUNTS}
        best = max(fits, key=lambda D: words.score(fits[D](words.train), "validation").mean())
        models[f"Kneser-Ney, order {order}"] = fits[best], f"D = {best:.2f}, "
    modified = partial(fit, smoothing="modified-kneser-ney")
    for order in (3, 5):
        models[f"modified, order {order}"] = partial(modified, order), ""
    models[ORACLE] = partial(modified, 5, p_0=lambda ids: oracle_prior(ids, c)), ""
    return models


def oracle_prior(ids: Array, c: int) -> Array:
    """A p_0 that gives nearly all probability to the words of the vocabulary that do not occur in ids.

    The closed vocabulary gives them away: words that do not occur before the test part must be the new words in it.
    """
    new = np.bincount(ids, minlength=c) == 0
    p_0 = ORACLE_SHARE * new / max(new.sum(), 1) + (1 - ORACLE_SHARE) / c
    return p_0 / p_0.sum()


def mixture(share: float, ln_p: Array, ln_q: Array) -> Array:
    """ln(λ·p + (1 − λ)·q) from ln p and ln q"""
    return np.logaddexp(np.log(share) + ln_p, np.log(1 - share) + ln_q)


def best_share(own: Array, counted: Array) -> float:
    """The λ in 0.01, 0.02, …, 0.99 for which λ·p + (1 − λ)·q has the lowest loss, from ln p and ln q."""
    shares = np.arange(1, 100) / 100
    return max(shares, key=lambda share: mixture(share, own, counted).mean())


def save(rungs: Collection[Rung], folder: Path) -> None:
    """Write the table so far as table.csv and table.md, each whole or not at all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Rung)] + ["perplexity"])
    writer.writerows([*asdict(rung).values(), rung.perplexity] for rung in rungs)
    write_text(folder / "table.csv", text.getvalue())
    write_text(folder / "table.md", markdown(rungs))


def markdown(rungs: Collection[Rung]) -> str:
    """The table, followed by a sample of what each model writes."""
    lines = [
        "| model | parameters | training, s | test, nats per word | perplexity | known words | new words | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for r in rungs:
        new = "–" if np.isnan(r.new) else f"{r.new:.3f}"
        lines.append(f"| {r.model} | {r.parameters:,} | {r.seconds:,.1f} | {r.test:.3f} | {r.perplexity:,.0f} "
                     f"| {r.known:.3f} | {new} | {r.about} |")  # fmt: skip
    lines += ["", "What they write after the first words of the test text:", ""]
    for r in rungs:
        if r.sample:
            lines += [f"**{r.model}**", "", *(f"> {line}  " for line in r.sample.strip().split("\n")), ""]
    return "\n".join(lines)


def _preset(name, steps):
    """The preset, with other steps if given, and never with word vectors computed from the test words."""
    preset = PRESETS[name]
    vectors = "training" if preset.vectors == "eigenvectors" else preset.vectors
    return replace(preset, vectors=vectors, steps=preset.steps if steps is None else steps)


def _trained(text, preset, folder, seed, device, say):
    """(model, parameters, results) of the run in `folder`; it is trained, or goes on, unless it is finished."""
    begun = (folder / "config.json").is_file()
    with Run.resume(folder) if begun else Run.new(folder) as run:
        if run.is_finished():
            run.begin(about_run(preset, preset.steps, seed, device, text), say)
            say(f"{preset.name}: trained before, in {folder}")
        else:
            say(f"{preset.name}: {preset.description}")
            _, _, results = train(preset, text, run, seed=seed, device=device, say=say)
            if results["stopped"] == "interrupted":
                raise KeyboardInterrupt                  # never compare a partly trained model
        results, config = run.read_json("results.json"), run.config()
        if not isinstance(results, dict) or not {"training_seconds", "steps", "best_step"} <= set(results):
            raise UserError(f"{run / 'results.json'} is damaged: delete the folder {folder}, to train again")
        return run.load()[0].to(device), config["text"]["parameters"], results


def _check_text(words, preset):
    """Raise UserError, before any work, if the text has too few words, or too few different ones, for the preset."""
    T, c = preset.model["T"], len(words.vocabulary)
    split_words(words.ids, T)
    if preset.batches == "consecutive":
        ConsecutiveWindows(words.train, T, preset.batch)
    if preset.vectors != "random" and c <= preset.n:
        raise UserError(f"the text has {c} different words, expected more than {preset.n} for the preset "
                        f"{preset.name}, whose word vectors have so many entries; give a longer text")  # fmt: skip


def _check_folder(folder):
    """Raise UserError when the folder holds anything but a comparison."""
    ours = {"table.csv", "table.md", "table.png", *NEURAL}
    if any(path.is_file() for path in (folder, *folder.parents)):
        raise UserError(f"{folder} is a file, or in one; expected a folder for the comparison; choose another --run")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    other = [name for name in names if name not in ours and not name.startswith(".")]
    if other:
        raise UserError(f"the folder {folder} has {other[0]} in it, which is not of a comparison; choose another --run")
