"""The commands that train: train, compare."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mini_tf.cli import options
from mini_tf.cli.app import app, examples, note, out
from mini_tf.cli.showing import numbers_table
from mini_tf.errors import Terminated, UserError
from mini_tf.files import STANDARD
from mini_tf.parallel.starting import join
from mini_tf.terminal import quoted

import typer
from rich.text import Text

if TYPE_CHECKING:
    from mini_tf.training.classification import LabelledTexts
    from mini_tf.training.language import Corpus, Language
    from mini_tf.training.masking import Passages
    from mini_tf.training.run import Run
    from mini_tf.training.task import Task
    from mini_tf.training.translation import Bitext, Translation

Results = dict[str, Any]


@app.command(short_help="Train a model, by a preset, on Shakespeare or a text of your own.",
             epilog=examples("train", "train --preset gpt --corpus my.txt --set L=4 --run runs/mine"))  # fmt: skip
def train(
    context: typer.Context,
    preset: options.Preset = "quick",
    corpus: options.Corpus = None,
    shakespeare: options.Shakespeare = options.Flavour.lab,
    tokenizer: options.Tokenizer = None,
    pretrained: options.Pretrained = None,
    pairs: options.Pairs = None,
    table: options.Table = None,
    text: options.TextColumn = "text",
    label: options.LabelColumn = "label",
    run: options.Run = None,
    settings: options.Settings = None,
    steps: Annotated[int | None, typer.Option(help="batches to train on [default: the preset's]")] = None,
    seed: Annotated[int, typer.Option(help="of the initial weights, the batches and the sample", min=0)] = 0,
    device: options.Device = "auto",
    tf32: options.TF32 = False,
    gpu_memory: options.Memory = None,
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
    quiet: options.Quiet = False,
) -> None:
    """Train a language model on a text and let it write; a translator on pairs of sentences; a classifier on texts with
    labels; or a model that fills gaps.

    Ctrl-C ends the training early and keeps the best model so far (exit code 0); --resume goes on. The run folder gets
    the model, metrics.csv, curves.png, gradient_flow.png, results.json, and sample.txt, translations.tsv or
    predictions.tsv.
    mpiexec -n N mini-tf train … trains on N processes, each on its share of every batch.
    """
    from mini_tf.training.registry import preset_named, resumed
    from mini_tf.training.run import NullRun, Run
    from mini_tf.training.settings import with_settings

    set_up_gpu(device, tf32, gpu_memory)
    on_one_machine = join().on_one_machine()             # where sharding the optimizer is faster, too
    group = join(on_one_machine if sharded is None else sharded)
    group.preparing = True
    if resume is not None:
        refuse_beside_resume(context)
        with Run.resume(resume) if group.first else NullRun(resume) as folder, resumable(folder):
            folder.rescue = rescue
            if group.broadcast(folder.is_finished()):
                note(f"{resume} is finished: there is nothing to resume. How it went: mini-tf doctor {resume}")
                return
            chosen, folder.command, steps, seed = resumed(resume, group.broadcast(folder.config()))
            train_and_show(folder, chosen, folder.command, steps, seed, device)
        return
    shorthand = [] if tokenizer is None or pretrained else [f"tokenizer={tokenizer}"]
    chosen = with_settings(preset_named(preset), [*(settings or []), *shorthand])
    if pretrained is not None:
        from mini_tf.pretrained.fine_tuning import starting_from

        chosen = starting_from(chosen, pretrained.absolute(), tokenizer and Path(tokenizer).absolute())
    sources: dict[str, tuple[Path | None, dict[str, str]]] = {
        "--corpus": (corpus, {"shakespeare": shakespeare.value}), "--pairs": (pairs, {}),
        "--table": (table, {"text": text, "label": label}),
    }  # fmt: skip
    for option, (path, _) in sources.items():
        if path is not None and option != chosen.takes:
            fitting = {"--pairs": "translate", "--table": "classify", "--corpus": "quick"}[option]
            raise UserError(f"--preset {preset} learns from {chosen.takes} FILE, not from {option}; for {option}: "
                            f"--preset {fitting}")  # fmt: skip
    path, more = sources[chosen.takes]
    if group.size > 1 and str(path) == STANDARD:
        raise UserError(f"{chosen.takes} - with several processes: only rank 0 has standard input; name a file")
    if rescue is not None and not next(path for path in (rescue, *rescue.absolute().parents) if path.exists()).is_dir():
        raise UserError(f"--rescue {rescue} is, or is in, a file; expected a folder")
    if rescue is not None and rescue.exists() and any(rescue.iterdir()):
        raise UserError(f"--rescue {rescue} is not empty, expected a new or an empty folder")
    with Run.new(run, chosen.name) if group.first else NullRun(run) as folder, resumable(folder):
        group.broadcast(None)                            # here the others learn if the folder cannot be made
        named = path if path is None or str(path) == STANDARD else path.absolute()       # --resume may run anywhere
        folder.command = {"path": named and str(named)} | more
        folder.rescue = rescue
        train_and_show(folder, chosen, {"path": path} | more, steps, seed, device)


@app.command(short_help="Train all language models on the same words, and compare them.",
             epilog=examples("compare", "compare --corpus my.txt --steps 100"))  # fmt: skip
def compare(
    corpus: options.Corpus = None,
    shakespeare: options.Shakespeare = options.Flavour.lab,
    run: Annotated[Path, typer.Option(help="the folder for the table and the runs; goes on where it stopped")] = Path(
        "runs/compare"
    ),
    steps: Annotated[int | None, typer.Option(help="batches for each model, for a quick look", min=1)] = None,
    seed: Annotated[int, typer.Option(help="of the initial weights and the order of the batches", min=0)] = 0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
) -> None:
    """Train all models, from counting words to copying them, and compare them on the same test words.

    The folder gets table.csv, table.md and table.png, and a run of each neural model. It takes six to twelve
    minutes on two cores. Models that are trained already are not trained again.
    """
    from mini_tf.backend import use_device
    from mini_tf.experiment.ladder import climb
    from mini_tf.training.task import text_named

    text = text_named({"path": corpus, "shakespeare": shakespeare.value})
    try:
        rungs = climb(
            text, run, seed, use_device(device), steps, say=lambda line: out.print(Text(f"  {line}", "dim")),
            on_rung=lambda rung: out.print(Text(f"{rung.model:<26}{rung.test:>7.3f} nats per word")),
        )  # fmt: skip
    except KeyboardInterrupt:
        note(f"interrupted; the same command goes on, with what is in {run}")
        raise
    columns = ["", "parameters", "seconds", "nats", "perplexity", "known", "new"]
    out.print(numbers_table(columns, [
        [r.model, f"{r.parameters:,}", f"{r.seconds:,.0f}", f"{r.test:.3f}", f"{r.perplexity:,.0f}", f"{r.known:.3f}",
         f"{r.new:.3f}"] for r in rungs
    ]))  # fmt: skip
    out.print(Text(
        "parameters: learned, or counted; seconds: of training; nats: cross-entropy of the\n"
        "test words; known, new: of those that occur before the test part, that do not.\n"
        "N-grams count the validation words, too, which networks do not learn from: what\n"
        "they reach without is in table.md.", "dim"
    ))  # fmt: skip
    out.print(Text(f"Saved in {run}: table.png, table.md (with samples), table.csv, and a run of each neural model"))


def set_up_gpu(device: str, tf32: bool, gigabytes: float | None) -> None:
    """What --tf32 and --gpu-memory ask for, of that device."""
    from mini_tf import gpu  # here, so that --help does not load it
    from mini_tf.backend import use_device

    if tf32 or gigabytes is not None:
        use_device(device)
    if gigabytes is not None:
        gpu.limit_memory(gigabytes)
    if tf32:
        gpu.use_tf32()
        note(gpu.COSTS)


def refuse_beside_resume(context: typer.Context) -> None:
    """Raises UserError if an option was given that --resume takes from the run."""
    allowed = ("resume", "rescue", "device", "tf32", "gpu_memory", "sharded", "quiet")
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if option.name not in allowed and source is not None and source.name == "COMMANDLINE":
            raise UserError(f"{option.opts[0]} was given with --resume, which goes on with the settings of the run: "
                            "leave it out")  # fmt: skip


@contextmanager
def resumable(run: "Run") -> Iterator["Run"]:
    """Inside the block, a training that a signal ends says how to resume it."""
    try:
        yield run
    except (Terminated, KeyboardInterrupt) as end:
        how = "terminated" if isinstance(end, Terminated) else "interrupted"
        if (run.folder / "config.json").exists():
            note(f"{how}: the training is saved, and goes on with: {run.how_to_go_on()}")
        else:
            note(f"{how} before the first step: nothing is saved")
        raise


def train_and_show(
    run: "Run", preset: "Task", command: dict[str, Any], steps: int | None, seed: int, device: str
) -> None:
    """Train the preset's model, on what the command names, into the run; show how good it is, and what to try."""
    from mini_tf.training.runner import train  # here, so that --help loads no models

    data = preset.read(command, seed)
    _, prepared, results = train(preset, data, run, steps, seed, device, say=lambda line: out.print(Text(line)))
    if not results:                                      # of several processes, only rank 0 has them
        return
    files, try_next = SHOW[preset.kind](run, preset, prepared, results)
    out.print(Text(f"Saved in {run.folder}: curves.png, {files}, metrics.csv, the model. Now try"))
    out.print(Text(f"  mini-tf {try_next}"))


def show_writing(run: "Run", preset: "Language", corpus: "Corpus", results: Results) -> tuple[str, str]:
    """Show the losses of a language model, and what it writes. Returns the files it made, and a command to try."""
    from mini_tf.metrics import perplexity
    from mini_tf.training.language import GOES_ON, PROMPT_WORDS

    vocabulary, unit = corpus.vocabulary, corpus.vocabulary.unit
    names = {
        "uniform": f"guessing any of {len(vocabulary):,} {unit}s", "unigram": f"guessing by {unit} frequency",
        "train": f"model, training {unit}s", "validation": f"model, validation {unit}s", "test": f"model, test {unit}s",
    }  # fmt: skip
    rows = [[what, f"{results[key]:.3f}", f"{perplexity(results[key]):,.0f}"] for key, what in names.items()]
    out.print(numbers_table(["", preset.unit, "perplexity"], rows, bold=-1))
    if unit != "character":
        was = f"; before, {results['before_per_character']:.3f}" if "before_per_character" in results else ""
        out.print(Text(f"On the test text, that is {results['per_character']:.3f} nats per character{was}", "dim"))
    prompt, _, text = (run / "sample.txt").read_text(encoding="utf-8").partition(GOES_ON)
    written = vocabulary.split(text)
    out.print(Text(f"{PROMPT_WORDS} {unit}s of the test text:", style="bold"))
    out.print(Text(prompt, style="dim"))
    out.print(Text("The model goes on:", style="bold"))
    out.print(Text(vocabulary.join(written[: 100 if unit == "word" else 300])))
    lines = [line.split() for line in vocabulary.join(written).split("\n")]
    prompt = " ".join([word for word in max(lines[:10], key=len) if "'" not in word][:4])      # words that it knows
    written_in = f"sample.txt ({preset.sample_words} {unit}s)"
    return written_in, f"generate {quoted(str(run.folder))} --prompt {quoted(prompt)}"


def show_translating(run: "Run", preset: "Translation", bitext: "Bitext", results: Results) -> tuple[str, str]:
    """Show how good a translator is, and some translations. Returns as `show_writing`."""
    rows = [
        ["validation, test loss, in nats per word", f"{results['validation']:.3f}, {results['test']:.3f}"],
        [f"BLEU of {results['tested']:,} new sentences, greedy", f"{results['bleu_greedy']:.1f}"],
        [f"BLEU, beam {preset.beam}", f"{results['bleu']:.1f}"],
    ]
    out.print(numbers_table(["", ""], rows, bold=-1))
    examples = (run / "translations.tsv").read_text(encoding="utf-8").splitlines()[1:9]
    for french, english, reference in (line.split("\t") for line in examples):
        right = "" if english == reference else f"  (reference: {reference})"
        out.print(Text.assemble((f"{french}  → ", "dim"), english, (right, "dim")))
    example = examples[0].split("\t")[0]
    drawn = "" if preset.model.get("attention") == "none" else " --attention attention.png"
    return "translations.tsv", f'translate {quoted(str(run.folder))} "{example}"{drawn}'


def show_classifying(run: "Run", preset: "Task", texts: "LabelledTexts", results: Results) -> tuple[str, str]:
    """Show how good a classifier is. Returns as `show_writing`."""
    names = {
        "largest": "always the largest class", "bayes": "naive Bayes on word counts",
        "logistic": "logistic regression on word counts",
        "accuracy": f"{preset.name}, on {len(texts.test_texts):,} new texts",
    }  # fmt: skip
    out.print(numbers_table(["", "accuracy"], [[what, f"{results[key]:.1%}"] for key, what in names.items()], bold=-1))
    example = min(texts.test_texts, key=lambda text: abs(len(text) - 60)).replace('"', "'")
    return "confusion.png, predictions.tsv", f'classify {quoted(str(run.folder))} "{example}" --words'


def show_filling(run: "Run", preset: "Task", passages: "Passages", results: Results) -> tuple[str, str]:
    """Show the losses of a model of masked words, and what it puts into gaps. Returns as `show_writing`."""
    names = {"unigram": "guessing by word frequency", "test": "model, test lines"}
    rows = [[what, f"{results[key]:.3f}"] for key, what in names.items()]
    out.print(numbers_table(["", "nats per hidden word"], rows, bold=-1))
    shown = (run / "sample.txt").read_text(encoding="utf-8").splitlines()
    out.print(Text("\n".join(shown[:12])))
    example = next((line for line in shown if "____" in line), "____")
    return "sample.txt", f'fill {quoted(str(run.folder))} "{example}"'


SHOW: dict[str, Callable[..., tuple[str, str]]] = {
    "language": show_writing, "translation": show_translating, "classification": show_classifying,
    "masking": show_filling,
}  # fmt: skip
