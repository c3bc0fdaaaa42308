"""The commands that train: train, compare."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mini_tf.cli.app import app, note, out
from mini_tf.cli.options import (
    CorpusOption,
    DeviceOption,
    Flavour,
    FlavourOption,
    LabelOption,
    MemoryOption,
    PairsOption,
    PresetOption,
    QuietOption,
    RunOption,
    SettingsOption,
    TableOption,
    TextOption,
    TF32Option,
)
from mini_tf.cli.showing import comparison_table, loss_table
from mini_tf.errors import Terminated, UserError
from mini_tf.files import STANDARD
from mini_tf.parallel.starting import join
from mini_tf.terminal import quoted

import typer
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mini_tf.training.classification import LabelledTexts
    from mini_tf.training.language import Corpus
    from mini_tf.training.masking import Passages
    from mini_tf.training.run import Run
    from mini_tf.training.task import Task
    from mini_tf.training.translation import Bitext


@app.command(short_help="Train a model, by a preset, on Shakespeare or a text of your own.")
def train(
    context: typer.Context,
    preset: PresetOption = "quick",
    corpus: CorpusOption = None,
    shakespeare: FlavourOption = Flavour.lab,
    pairs: PairsOption = None,
    table: TableOption = None,
    text: TextOption = "text",
    label: LabelOption = "label",
    run: RunOption = None,
    settings: SettingsOption = None,
    steps: Annotated[int | None, typer.Option(help="batches to train on [default: the preset's]")] = None,
    seed: Annotated[int, typer.Option(help="of the initial weights, the batches and the sample", min=0)] = 0,
    device: DeviceOption = "auto",
    tf32: TF32Option = False,
    gpu_memory: MemoryOption = None,
    resume: Annotated[
        Path | None, typer.Option(help="go on with the training in this run folder, exactly where it stopped")
    ] = None,
    rescue: Annotated[
        Path | None,
        typer.Option(help="a folder on another disk, for what is learned if the run's own can no longer be written"),
    ] = None,
    sharded: Annotated[
        bool | None,
        typer.Option(
            "--sharded/--no-sharded",
            help="under mpiexec: each process keeps and updates its share of the optimizer's memory only "
            "[default: if all of them are on one machine]",
        ),
    ] = None,
    quiet: QuietOption = False,
) -> None:
    """Train a language model on a text and let it write; a translator on pairs of sentences; a classifier on texts with
    labels; or a model that fills gaps.

    Ctrl-C ends the training early and keeps the best model so far (exit code 0); --resume goes on. The run folder gets
    the model, metrics.csv, curves.png, gradient_flow.png, results.json, and sample.txt, translations.tsv or
    predictions.tsv.
    mpiexec -n N mini-tf train … trains on N processes, each on its share of every batch.
    """
    from mini_tf.training.null_run import NullRun
    from mini_tf.training.registry import preset_named, resumed
    from mini_tf.training.run import Run
    from mini_tf.training.settings import with_settings

    set_up_gpu(tf32, gpu_memory)
    one_machine = join().on_one_machine()                # where sharing the update is faster, too
    group = join(one_machine if sharded is None else sharded)
    group.preparing = True
    if resume is not None:
        given = [option.opts[0] for option in context.command.params
                 if option.name not in ("resume", "rescue", "device", "tf32", "gpu_memory", "sharded", "quiet")
                 and context.get_parameter_source(option.name).name == "COMMANDLINE"]  # fmt: skip
        if given:
            raise UserError(f"{given[0]} was given with --resume, which goes on with the settings of the run: leave "
                            "it out")  # fmt: skip
        with Run.resume(resume) if group.first else NullRun(resume) as folder, kept(folder):
            folder.rescue = rescue
            if group.of_first(folder.is_finished()):
                note(f"{resume} is finished; there is nothing to go on with. How it went: mini-tf doctor {resume}")
                return
            chosen, folder.command, steps, seed = resumed(resume, group.of_first(folder.config()))
            trained(folder, chosen, folder.command, steps, seed, device)
        return
    chosen = with_settings(preset_named(preset), settings or [])
    sources = {"--corpus": corpus, "--pairs": pairs, "--table": table}
    takes = chosen.takes
    given = next((option for option, path in sources.items() if path is not None and option != takes), None)
    if given is not None:
        for_it = {"--pairs": "translate", "--table": "classify", "--corpus": "quick"}[given]
        raise UserError(f"--preset {preset} learns from {takes} FILE, not from {given}; for {given}: --preset {for_it}")
    path = sources[takes]
    if group.size > 1 and str(path) == STANDARD:
        raise UserError(f"{takes} - with several processes: only rank 0 has standard input; name a file")
    options = {"--corpus": {"shakespeare": shakespeare.value}, "--pairs": {}, "--table": {"text": text, "label": label}}
    if rescue is not None and rescue.exists() and not (rescue.is_dir() and not any(rescue.iterdir())):
        raise UserError(f"--rescue {rescue} is there and is no empty folder, expected a new or an empty one")
    with Run.new(run, chosen.name) if group.first else NullRun(run) as folder, kept(folder):
        group.of_first(None)                              # here the others hear of it if the folder cannot be made
        folder.command = {"path": as_kept(path)} | options[takes]
        folder.rescue = rescue
        trained(folder, chosen, {"path": path} | options[takes], steps, seed, device)


@app.command(short_help="Train all language models on the same words, and compare them.")
def compare(
    corpus: CorpusOption = None,
    shakespeare: FlavourOption = Flavour.lab,
    run: Annotated[Path, typer.Option(help="the folder for the table and the runs; goes on where it stopped")] = Path(
        "runs/compare"
    ),
    steps: Annotated[int | None, typer.Option(help="batches for each model, for a quick look")] = None,
    seed: Annotated[int, typer.Option(help="of the initial weights and the order of the batches", min=0)] = 0,
    device: DeviceOption = "auto",
    quiet: QuietOption = False,
) -> None:
    """Train all models, from counting words to copying them, and compare them on the same test words.

    The folder gets table.csv, table.md and table.png, and a run of each neural model. It takes six to twelve
    minutes on two cores. Models that are trained already are not trained again.
    """
    from mini_tf.backend import resolve_device
    from mini_tf.experiment.ladder import climb
    from mini_tf.training.task import text_named

    if steps is not None and steps < 1:
        raise UserError(f"--steps is {steps}, expected at least 1")
    text = text_named({"path": corpus, "shakespeare": shakespeare.value})
    try:
        rungs = climb(
            text, run, seed, resolve_device(device), steps, say=lambda line: out.print(Text(f"  {line}", "dim")),
            on_rung=lambda rung: out.print(Text(f"{rung.model:<26}{rung.test:>7.3f} nats per word")),
        )  # fmt: skip
    except KeyboardInterrupt:
        note(f"interrupted; the same command goes on, with what is in {run}")
        raise
    out.print(comparison_table(rungs))
    for line in (
        "numbers: learned, or counted; seconds: of training; nats: cross-entropy of the",
        "test words; known, new: of those that occur before the test part, that do not.",
        "N-grams count the validation words, too, which networks do not learn from: what",
        "they reach without is in table.md.",
    ):
        out.print(Text(line, "dim"))
    out.print(Text(f"Kept in {run}: table.png, table.md (with samples), table.csv, and a run of each neural model"))


def set_up_gpu(tf32: bool, gigabytes: float | None) -> None:
    """What --tf32 and --gpu-memory ask for."""
    from mini_tf import gpu

    if gigabytes is not None:
        gpu.limit_memory(gigabytes)
    if tf32:
        gpu.use_tf32()
        note(gpu.COSTS)


def as_kept(path: Path | None) -> str | None:
    """How a run's config.json names the file that it learns from: by its full name; "-" is standard input."""
    return None if path is None else STANDARD if str(path) == STANDARD else str(path.absolute())


@contextmanager
def kept(run: "Run") -> Iterator["Run"]:
    """Inside the block, a training that is ended by a signal says how to go on with it."""
    try:
        yield run
    except (Terminated, KeyboardInterrupt) as end:
        if (run.folder / "config.json").exists():
            how = "terminated" if isinstance(end, Terminated) else "interrupted"
            note(f"{how}: the training is kept, and goes on with: {run.how_to_go_on()}")
        raise


def trained(run: "Run", preset: "Task", command: dict, steps: int | None, seed: int, device: str) -> None:
    """Train the preset's model, on what the command names, into the run; show how good it is, and what to try."""
    from mini_tf.training.runner import train

    data = preset.read(command, seed)
    _, prepared, results = train(preset, data, run, steps, seed, device, say=lambda line: out.print(Text(line)))
    if results:                                          # of several processes, only rank 0 has them
        SHOW[preset.kind](run, preset, prepared, results)


def show_writing(run: "Run", preset: "Task", corpus: "Corpus", results: dict) -> None:
    """The losses of a language model, and what it writes."""
    from mini_tf.text import join as join_words
    from mini_tf.text import tokenize
    from mini_tf.training.presets import GIVEN_WORDS

    out.print(loss_table(results, len(corpus.vocabulary)))
    written = tokenize((run / "sample.txt").read_text(encoding="utf-8"))
    out.print(Text(f"The model writes on from {GIVEN_WORDS} words of the test text:", style="bold"))
    out.print(Text(join_words(written[: GIVEN_WORDS + 100])))
    out.print(Text(f"Kept in {run.folder}: curves.png, sample.txt (500 words), metrics.csv, the model. Now try"))
    lines = [line.split() for line in join_words(written).split("\n")]
    prompt = " ".join(max(lines[:10], key=len)[:4])      # words that it knows
    out.print(Text(f"  mini-tf generate {quoted(str(run.folder))} --prompt {quoted(prompt)}"))


def show_translating(run: "Run", preset: "Task", bitext: "Bitext", results: dict) -> None:
    """How good a translator is, and some translations."""
    table = Table("", "", box=None, show_header=False)
    table.columns[1].justify = "right"
    table.add_row("validation, test loss, in nats per word", f"{results['validation']:.3f}, {results['test']:.3f}")
    table.add_row(f"BLEU of {results['tested']:,} new sentences, greedy", f"{results['bleu_greedy']:.1f}")
    table.add_row(f"BLEU, beam {preset.beam}", f"{results['bleu']:.1f}", style="bold")
    table.add_row("the same, each reference alone", f"{results['bleu_one_reference']:.1f}")
    out.print(table)
    examples = (run / "translations.tsv").read_text(encoding="utf-8").splitlines()[1:9]
    for french, english, reference in (line.split("\t") for line in examples):
        right = "" if english == reference else f"  (reference: {reference})"
        out.print(Text.assemble((f"{french}  → ", "dim"), english, (right, "dim")))
    example = examples[0].split("\t")[0]
    out.print(Text(f"Kept in {run.folder}: curves.png, translations.tsv, metrics.csv, the model. Now try"))
    out.print(Text(f'  mini-tf translate {quoted(str(run.folder))} "{example}" --attention attention.png'))


def show_classifying(run: "Run", preset: "Task", texts: "LabelledTexts", results: dict) -> None:
    """How good a classifier is."""
    table = Table("", "accuracy", box=None, header_style="bold")
    table.columns[1].justify = "right"
    names = {
        "largest": "always the largest class", "bayes": "naive Bayes on word counts",
        "logistic": "logistic regression on word counts",
        "accuracy": f"{preset.name}, on {len(texts.test_texts):,} new texts",
    }  # fmt: skip
    for key, name in names.items():
        table.add_row(name, f"{results[key]:.1%}", style="bold" if key == "accuracy" else None)
    out.print(table)
    example = min(texts.test_texts, key=lambda text: abs(len(text) - 60)).replace('"', "'")
    out.print(Text(f"Kept in {run.folder}: curves.png, confusion.png, predictions.tsv, the model. Now try"))
    out.print(Text(f'  mini-tf classify {quoted(str(run.folder))} "{example}" --words'))


def show_filling(run: "Run", preset: "Task", passages: "Passages", results: dict) -> None:
    """The losses of a model of masked words, and what it puts into gaps."""
    table = Table("", "nats per hidden word", box=None, header_style="bold")
    table.columns[1].justify = "right"
    for key, name in (("unigram", "by how often a word occurs"), ("test", "model, test lines")):
        table.add_row(name, f"{results[key]:.3f}", style="bold" if key == "test" else None)
    out.print(table)
    shown = (run / "sample.txt").read_text(encoding="utf-8").splitlines()
    out.print(Text("\n".join(shown[:12])))
    out.print(Text(f"Kept in {run.folder}: curves.png, sample.txt, metrics.csv, the model. Now try"))
    example = next((line for line in shown if "____" in line), "____")
    out.print(Text(f'  mini-tf fill {quoted(str(run.folder))} "{example}"'))


SHOW = {
    "language": show_writing, "translation": show_translating, "classification": show_classifying,
    "masking": show_filling,
}  # fmt: skip
