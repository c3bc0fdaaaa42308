"""The command mini-tf: train | generate | translate | classify | fill | compare | gradcheck | explore | doctor."""

import os
import signal
import sys
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

import mini_tf
from mini_tf.errors import Terminated, UserError
from mini_tf.parallel.starting import ending_together, join, mpi_here, rank_given
from mini_tf.progress import console as out

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="A transformer engine whose gradients are written by hand.",
)  # fmt: skip
err = Console(stderr=True, highlight=False, soft_wrap=True)


class Flavour(StrEnum):
    lab = "lab"
    clean = "clean"
    complete = "complete"


PresetOption = Annotated[
    str, typer.Option(help="quick (a minute or two), window, recurrent, gpt, pointer (the best), lab (hours on a CPU); "
                      "translate (French to English, minutes) or translate-hour; classify, classify-bag (texts with "
                      "labels, a minute); fill (words hidden in a text, minutes)")
]  # fmt: skip
PairsOption = Annotated[
    Path | None,
    typer.Option(help="for translate: lines English<TAB>French, as Tatoeba's [default: a grammar's sentences]"),
]
TableOption = Annotated[
    Path | None,
    typer.Option(help="for classify: a CSV file with texts and labels [default: sentences of film reviews]"),
]
TextOption = Annotated[str, typer.Option("--text", help="the table's column of texts")]
LabelOption = Annotated[str, typer.Option("--label", help="the table's column of labels")]
CorpusOption = Annotated[Path | None, typer.Option(help="any UTF-8 text [default: Lab 6's Shakespeare]")]
FlavourOption = Annotated[
    Flavour, typer.Option(help="lab: nine plays as Lab 6 has them; clean: nothing lost of them; complete: all 38")
]
RunOption = Annotated[Path | None, typer.Option(help="the run folder to make [default: runs/PRESET, runs/PRESET-2, …]")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, gpu, or gpu:1 for the second GPU")]
ShapeOption = Annotated[
    list[str] | None, typer.Option(help="of your function's arguments: x=3,4 or 'ids=2,3 int<7' or 'mask=3,3 bool'")
]


class Unknown(StrEnum):
    error = "error"
    skip = "skip"


@app.callback()
def main_options(context: typer.Context):
    team = join()
    if team.size > 1 and context.invoked_subcommand not in ("train", "doctor"):
        raise UserError(f"mini-tf {context.invoked_subcommand} runs on one process, and mpiexec started {team.size}: "
                        "leave mpiexec out; mini-tf train can use several")  # fmt: skip


@app.command()
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
    steps: Annotated[int | None, typer.Option(help="batches to train on [default: the preset's]")] = None,
    seed: Annotated[int, typer.Option(help="of the initial weights, the batches and the sample", min=0)] = 0,
    device: DeviceOption = "auto",
    resume: Annotated[
        Path | None, typer.Option(help="go on with the training in this run folder, exactly where it stopped")
    ] = None,
    rescue: Annotated[
        Path | None,
        typer.Option(help="a folder on another disk, for what is learned if the run's own can no longer be written"),
    ] = None,
    sharded: Annotated[
        bool, typer.Option("--sharded", help="under mpiexec: each process keeps its share of the optimizer's memory")
    ] = False,
):
    """Train a language model on a text and let it write; a translator on pairs of sentences; a classifier on texts with
    labels; or a model that fills gaps.

    Ctrl-C ends the training and keeps the best model so far; --resume goes on. The run folder gets the model,
    metrics.csv, curves.png, gradient_flow.png, results.json, and sample.txt, translations.tsv or predictions.tsv.
    mpiexec -n N mini-tf train … trains on N processes, each on its share of every batch.
    """
    from mini_tf.training.elsewhere import Elsewhere
    from mini_tf.training.every_kind import learns_from, preset_named, resumed
    from mini_tf.training.run import Run

    team = join(sharded)
    team.preparing = True
    if resume is not None:
        given = [name for name in context.params if name not in ("resume", "rescue", "device", "sharded")
                 and context.get_parameter_source(name).name == "COMMANDLINE"]  # fmt: skip
        if given:
            raise UserError(f"--{given[0]} was given with --resume, which goes on with the settings of the run: leave "
                            "it out")  # fmt: skip
        with Run.resume(resume) if team.first else Elsewhere(resume) as folder, kept(folder):
            folder.rescue = rescue
            if team.of_first(folder.is_finished()):
                note(f"{resume} is finished; there is nothing to go on with. How it went: mini-tf doctor {resume}")
                return
            chosen, folder.command, steps, seed = resumed(resume, team.of_first(folder.config()))
            trained(folder, chosen, folder.command, steps, seed, device)
        return
    chosen = preset_named(preset)
    sources = {"--corpus": corpus, "--pairs": pairs, "--table": table}
    takes = learns_from(chosen)
    given = next((option for option, path in sources.items() if path is not None and option != takes), None)
    if given is not None:
        for_it = {"--pairs": "translate", "--table": "classify", "--corpus": "quick"}[given]
        raise UserError(f"--preset {preset} learns from {takes} FILE, not from {given}; for {given}: --preset {for_it}")
    path = sources[takes]
    options = {"--corpus": {"shakespeare": shakespeare.value}, "--pairs": {}, "--table": {"text": text, "label": label}}
    if rescue is not None and rescue.exists() and not (rescue.is_dir() and not any(rescue.iterdir())):
        raise UserError(f"--rescue {rescue} is there and is no empty folder, expected a new or an empty one")
    with Run.new(run, chosen.name) if team.first else Elsewhere(run) as folder, kept(folder):
        team.of_first(None)                              # here the others hear of it if the folder cannot be made
        folder.command = {"path": path and str(path.absolute())} | options[takes]
        folder.rescue = rescue
        trained(folder, chosen, {"path": path} | options[takes], steps, seed, device)


@app.command()
def generate(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train made")],
    prompt: Annotated[str, typer.Option(help="the words to go on from; \\n is a line break")] = "",
    words: Annotated[int, typer.Option(help="how many words to write")] = 500,
    temperature: Annotated[float, typer.Option(help="below 1 safer, above 1 bolder")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="choose among the k most probable words only")] = None,
    argmax: Annotated[bool, typer.Option("--argmax", help="always the most probable word")] = False,
    unknown: Annotated[Unknown, typer.Option(help="words that the model does not know")] = Unknown.error,
    seed: Annotated[int, typer.Option(help="of the random choices", min=0)] = 0,
    device: DeviceOption = "auto",
):
    """Let a trained model continue a prompt."""
    from mini_tf.backend import resolve_device
    from mini_tf.decoding import greedy, sample
    from mini_tf.text import tokenize

    device = resolve_device(device)
    if words < 1:
        raise UserError(f"--words is {words}, expected at least 1")
    model, vocabulary = opened(run, "generate")
    tokens = tokenize(prompt.replace("\\n", "\n"))
    ids = vocabulary.encode(tokens, unknown.value)
    if len(ids) < len(tokens):
        note(f"{len(tokens) - len(ids)} unknown word(s) left out of the prompt")
    sees = model.reader().T
    if sees is not None and len(ids) > sees:
        note(f"the prompt has {len(ids)} words; the model sees the last T = {sees} of them")
    import numpy as np

    rng = np.random.default_rng(seed)
    choose = greedy if argmax else partial(sample, rng=rng, temperature=temperature, top_k=top_k)
    write_on(model.to(device), vocabulary, ids, words, choose)


@app.command()
def translate(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train --preset translate made")],
    sentence: Annotated[str | None, typer.Argument(help="a French sentence [default: lines of standard input]")] = None,
    file: Annotated[Path | None, typer.Option(help="translate this file's lines")] = None,
    beam: Annotated[int, typer.Option(help="hypotheses followed at once; 1: always the most probable word")] = 5,
    length_penalty: Annotated[float, typer.Option(help="α ≥ 0: above 0 longer translations are preferred")] = 0.0,
    attention: Annotated[Path | None, typer.Option(help="draw where each word looks, into this picture")] = None,
    device: DeviceOption = "auto",
):
    """Translate French sentences into English, a line for each."""
    from mini_tf.backend import resolve_device
    from mini_tf.data.corpus import read_text
    from mini_tf.decoding.lines import save_attention, translate_lines

    device = resolve_device(device)
    if sentence is not None and file is not None:
        raise UserError("a sentence and --file were given, expected one of them")
    if attention is not None and sentence is None:
        raise UserError("--attention draws one sentence: give it on the command line, in quotation marks")
    model, vocabularies = opened(run, "translate")
    model.to(device)
    if sentence is not None:
        batches = [[sentence]]
    elif file is not None:
        batches = [read_text(file, "a file of sentences", "sentences").splitlines()]
    elif sys.stdin.isatty():
        batches = ([line] for line in sys.stdin)         # each is translated as soon as it is typed
    else:
        batches = [sys.stdin.read().splitlines()]
    first = 1
    for lines in batches:
        translated = translate_lines(model, vocabularies, lines, beam, length_penalty, note, first)
        print(*translated, sep="\n")
        first += len(lines)
    if attention is not None:
        save_attention(attention, model, vocabularies, sentence, translated[0])
        note(f"attention drawn in {attention}")


@app.command()
def classify(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train --preset classify made")],
    text: Annotated[str | None, typer.Argument(help="a text, in quotation marks")] = None,
    words: Annotated[bool, typer.Option("--words", help="colour each word by what the gradient says of it")] = False,
    picture: Annotated[Path | None, typer.Option(help="draw attention and gradient of each word into it")] = None,
    table: Annotated[Path | None, typer.Option(help="instead of a text: classify a table's texts and count")] = None,
    text_column: TextOption = "text",
    label: LabelOption = "label",
    device: DeviceOption = "auto",
):
    """Say how probable each class of a text is, and which words speak for it; or test a classifier on a table."""
    from mini_tf.backend import resolve_device
    from mini_tf.decoding import texts

    device = resolve_device(device)
    if (text is None) == (table is None):
        raise UserError("expected a text in quotation marks, or --table FILE, and not both")
    if text is None and (words or picture):
        raise UserError("--words and --picture show one text: give it on the command line, in quotation marks")
    model, vocabulary = opened(run, "classify")
    model.to(device)
    if table is not None:
        from mini_tf.data import read_labelled

        found = texts.classify_table(model, vocabulary, read_labelled(table, text_column, label), note)
        out.print(confusion_table(found, vocabulary.classes))
        out.print(Text(f"right: {found.trace():,} of {found.sum():,}, {found.trace() / found.sum():.1%}"))
        return
    read, found = texts.classify_text(model, vocabulary, text, note)
    for k in found.log_p.argsort()[::-1]:
        p = float(found.p[k])
        out.print(Text.assemble((f"{vocabulary.classes[k]:<20}", "bold" if k == found.chosen else ""), f"{p:6.3f}  ",
                                ("█" * round(40 * p), "blue" if k == found.chosen else "dim")))  # fmt: skip
    if words:
        out.print(coloured_words(read, found))
        out.print(Text("the stronger the colour, the larger the gradient dx; most dx·x:", "dim"))
        out.print(Text(strongest_words(read, found, vocabulary.classes[found.chosen])))
    if picture is not None:
        texts.save_words(picture, model, vocabulary, read, found)
        note(f"attention and gradient drawn in {picture}")


@app.command()
def fill(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train --preset fill made")],
    text: Annotated[str, typer.Argument(help="a line with ____ for each word to be filled in")],
    guesses: Annotated[int, typer.Option(help="how many to show for each gap", min=1)] = 5,
    device: DeviceOption = "auto",
):
    """Fill the gaps of a text with the most probable words."""
    from mini_tf.backend import resolve_device
    from mini_tf.decoding.texts import fill_gaps

    device = resolve_device(device)
    model, vocabulary = opened(run, "fill")
    filled, gaps = fill_gaps(model.to(device), vocabulary, text, guesses)
    out.print(Text(filled))
    for number, gap in enumerate(gaps, 1):
        out.print(Text(f"gap {number}:", "bold") if len(gaps) > 1 else "", end="\n" if len(gaps) > 1 else "")
        for word, p in gap:
            out.print(Text.assemble(f"  {word!r:<20}{p:6.3f}  ", ("█" * round(40 * p), "dim")))


@app.command()
def compare(
    corpus: CorpusOption = None,
    shakespeare: FlavourOption = Flavour.lab,
    run: Annotated[Path, typer.Option(help="the folder for the table and the runs; goes on where it stopped")] = Path(
        "runs/compare"
    ),
    steps: Annotated[int | None, typer.Option(help="batches for each model, for a quick look")] = None,
    seed: Annotated[int, typer.Option(help="of the initial weights and the order of the batches", min=0)] = 0,
    device: DeviceOption = "auto",
):
    """Train all models, from counting words to copying them, and compare them on the same test words.

    The folder gets table.csv, table.md and table.png, and a run of each neural model. It takes half an hour on two
    cores. Models that are trained already are not trained again.
    """
    from mini_tf.backend import resolve_device
    from mini_tf.experiment.ladder import climb

    if steps is not None and steps < 1:
        raise UserError(f"--steps is {steps}, expected at least 1")
    text = chosen_text(corpus, shakespeare.value)
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


@app.command()
def gradcheck(
    names: Annotated[list[str] | None, typer.Argument(help="names, or how they begin; or file.py::function")] = None,
    seed: Annotated[int, typer.Option(help="of the random numbers", min=0)] = 0,
    shape: ShapeOption = None,
    arg: Annotated[
        list[str] | None, typer.Option(help="a value for an argument of your function or class: stride=2")
    ] = None,
    solution: Annotated[
        bool, typer.Option("--solution", help="of an exercise: show the line put right, if one change does it")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="write a page with pictures, as one self-contained file")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="write all numbers to this file")] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="plant bugs in these backwards, and see if the check finds them")
    ] = False,
    bind_twins: Annotated[
        bool, typer.Option("--bind-twins", help="after changing a formula and its twin: compare all twins")
    ] = False,
):
    """Check hand-written gradients against finite differences: mini_tf's, or your own. Exit code 1: one is wrong."""
    from mini_tf.gradcheck import command

    if self_test and (html or json):
        raise UserError("--self-test writes no file; leave out --html and --json")
    if bind_twins:
        command.bind_twins(seed)
        return
    subjects = command.chosen(names or [], shape or [], seed, arg or [])
    if self_test:
        right = command.plant_in_all(subjects, seed)
    else:
        right = command.check_all(subjects, seed, html, json, solution)
    raise typer.Exit(0 if right else 1)


@app.command()
def explore(
    what: Annotated[
        str | None,
        typer.Argument(help="a run folder, file.py::function, or an op's name [default: a small model, trained now]"),
    ] = None,
    text: Annotated[str | None, typer.Option(help="what the model reads")] = None,
    out_file: Annotated[Path, typer.Option("--out", help="the page to write")] = Path("explore.html"),
    bug: Annotated[
        list[str] | None,
        typer.Option(help="a planted bug to compare with; may be repeated [default: some that matter]"),
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="the text that the small model learns from")] = None,
    shape: ShapeOption = None,
    arg: Annotated[list[str] | None, typer.Option(help="a value for an argument of your function: stride=2")] = None,
    solution: Annotated[bool, typer.Option("--solution", help="for an exercise: show its solution")] = False,
    seed: Annotated[int, typer.Option(help="seed of the random numbers", min=0)] = 0,
):
    """Write a page that shows the backward pass line by line, with its numbers."""
    from mini_tf.explore.command import explored

    explored(what, text, corpus, bug or [], shape or [], arg or [], seed, solution).write(out_file)
    out.print(Text(f"written: {out_file} ({out_file.stat().st_size / 1e6:.1f} MB); open it in a browser"))


@app.command()
def doctor(
    run: Annotated[Path | None, typer.Argument(help="a run folder: look at it instead of at this machine")] = None,
):
    """Show versions, threads, the GPU or why there is none, and where the text comes from; or how a run is.

    Of a run: whether its files are whole, whether it is finished, and whether its losses and gradients are normal. Exit
    code 1: something is wrong with it.
    """
    if run is not None:
        raise typer.Exit(0 if examined(run) else 1)
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from mini_tf import kernels
    from mini_tf.backend import gpu_count
    from mini_tf.data import SHAKESPEARE, where

    import numpy as np

    table = Table(box=None, show_header=False)
    for column in ("what", "which", "more"):
        table.add_column(column, overflow="fold")
    table.add_row("mini_tf", mini_tf.__version__, str(Path(mini_tf.__file__).parent))
    table.add_row("Python", platform.python_version(), f"{platform.system()} {platform.machine()}")
    for package in ("numpy", "scipy", "numba", "safetensors", "matplotlib", "typer", "rich"):
        try:
            table.add_row(package, version(package), "")
        except PackageNotFoundError:
            table.add_row(package, Text("missing", "red"), "pip install -e .")
    blas = np.show_config("dicts")["Build Dependencies"]["blas"]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    table.add_row("BLAS", str(blas.get("version", "")), str(blas.get("name", "")))
    table.add_row("cores", str(cores), "BLAS and Numba use all; set OPENBLAS_NUM_THREADS, NUMBA_NUM_THREADS for fewer")
    timeout = os.environ.get("OPENBLAS_THREAD_TIMEOUT", "")
    table.add_row("OPENBLAS_THREAD_TIMEOUT", timeout, "keeps BLAS's idle threads from taking a core")
    if held_to := os.environ.get("OPENBLAS_CORETYPE"):
        table.add_row("OPENBLAS_CORETYPE", held_to, "BLAS does no more than this kind of processor can; unset it")
    on = kernels.switched_on()
    table.add_row("kernels", "on" if on else "off", "MINI_TF_KERNELS=off runs the plain formulas of mini_tf/ops" if on
                  else "the plain formulas of mini_tf/ops run; without MINI_TF_KERNELS=off, their fused twins would")
    gpus, why_not = gpu_count()
    table.add_row("GPU", str(gpus), why_not)
    table.add_row("MPI", *mpi_here())
    found, place = where(SHAKESPEARE)
    table.add_row("Shakespeare", "here" if found else "not yet here", place)
    out.print(table)


def examined(folder):
    """Show what `checkup` finds in a run folder. Returns True if nothing is wrong."""
    from mini_tf.training.checkup import checkup
    from mini_tf.training.run import Run

    table = Table(box=None, show_header=False, pad_edge=False)
    for column in ("what", "verdict", "more"):
        table.add_column(column, overflow="fold")
    found = checkup(Run.look(folder))
    for what, verdict, more in found:
        sign = {"good": Text("✓", "green"), "bad": Text("✗", "bold red"), "": Text("·", "dim")}[verdict]
        table.add_row(Text(what), sign, Text(more))
    out.print(table)
    return all(verdict != "bad" for _, verdict, _ in found)


@contextmanager
def kept(run):
    """Inside the block, a training that is ended by a signal says how to go on with it."""
    try:
        yield run
    except (Terminated, KeyboardInterrupt) as end:
        if (run.folder / "config.json").exists():
            how = "terminated" if isinstance(end, Terminated) else "interrupted"
            note(f"{how}: the training is kept, and goes on with: {run.how_to_go_on()}")
        raise


def trained(run, preset, command, steps, seed, device):
    """Train what the preset is for, on what the command names, into the run; show how good it is, and what to try."""
    from mini_tf.training.every_kind import learns_from
    from mini_tf.training.masking import MaskingPreset

    if learns_from(preset) == "--pairs":
        train_to_translate(run, preset, command["path"], steps, seed, device)
    elif learns_from(preset) == "--table":
        train_to_classify(run, preset, command, steps, seed, device)
    else:
        text = chosen_text(command["path"], command["shakespeare"])
        train = train_to_fill_gaps if isinstance(preset, MaskingPreset) else train_to_write
        train(run, preset, text, steps, seed, device)


def train_to_write(run, preset, text, steps, seed, device):
    """Train a language model on a text, and show its losses and what it writes."""
    from mini_tf.text import join, tokenize
    from mini_tf.training.language import GIVEN_WORDS, train_language_model

    _, prepared, results = train_language_model(
        text, preset, run, steps, seed, device, say=lambda line: out.print(Text(line))
    )
    if not results:                                      # of several processes, the first shows them
        return
    out.print(loss_table(results, len(prepared.vocabulary)))
    written = tokenize((run / "sample.txt").read_text(encoding="utf-8"))
    out.print(Text(f"The model writes on from {GIVEN_WORDS} words of the test text:", style="bold"))
    out.print(Text(join(written[: GIVEN_WORDS + 100])))
    out.print(Text(f"Kept in {run.folder}: curves.png, sample.txt (500 words), metrics.csv, the model. Now try"))
    out.print(Text(f"  mini-tf generate {quote(str(run.folder))} --prompt 'Good morrow, my lord'"))


def train_to_translate(run, preset, path, steps, seed, device):
    """Train a translator on the pairs of a file, or on those of the grammar, and show what it can do."""
    from mini_tf.data import french_pairs, read_pairs
    from mini_tf.training.translation import train_translator

    pairs = french_pairs(preset.pairs, seed) if path is None else read_pairs(path)
    _, _, results = train_translator(
        pairs, preset, run, steps, seed, device, say=lambda line: out.print(Text(line))
    )
    if not results:                                      # of several processes, the first shows them
        return
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
    out.print(Text(f'  mini-tf translate {quote(str(run.folder))} "{example}" --attention attention.png'))


def train_to_classify(run, preset, command, steps, seed, device):
    """Train a classifier on the texts of a table, or on film reviews, and show how good it is."""
    from mini_tf.data import movie_reviews, read_labelled
    from mini_tf.training.classification import train_classifier

    path = command["path"]
    examples = movie_reviews() if path is None else read_labelled(path, command["text"], command["label"])
    _, prepared, results = train_classifier(
        examples, preset, run, steps, seed, device, say=lambda line: out.print(Text(line))
    )
    if not results:                                      # of several processes, the first shows them
        return
    table = Table("", "accuracy", box=None, header_style="bold")
    table.columns[1].justify = "right"
    names = {
        "largest": "always the largest class", "bayes": "naive Bayes on word counts",
        "logistic": "logistic regression on word counts",
        "accuracy": f"{preset.name}, on {len(prepared.test_texts):,} new texts",
    }  # fmt: skip
    for key, name in names.items():
        table.add_row(name, f"{results[key]:.1%}", style="bold" if key == "accuracy" else None)
    out.print(table)
    example = min(prepared.test_texts, key=lambda text: abs(len(text) - 60)).replace('"', "'")
    out.print(Text(f"Kept in {run.folder}: curves.png, confusion.png, predictions.tsv, the model. Now try"))
    out.print(Text(f'  mini-tf classify {quote(str(run.folder))} "{example}" --words'))


def train_to_fill_gaps(run, preset, text, steps, seed, device):
    """Train a model on a text whose words are hidden in turns, and show what it puts into gaps."""
    from mini_tf.training.masking import train_to_fill

    _, _, results = train_to_fill(text, preset, run, steps, seed, device, say=lambda line: out.print(Text(line)))
    if not results:                                      # of several processes, the first shows them
        return
    table = Table("", "nats per hidden word", box=None, header_style="bold")
    table.columns[1].justify = "right"
    for key, name in (("unigram", "by how often a word occurs"), ("test", "model, test lines")):
        table.add_row(name, f"{results[key]:.3f}", style="bold" if key == "test" else None)
    out.print(table)
    shown = (run / "sample.txt").read_text(encoding="utf-8").splitlines()
    out.print(Text("\n".join(shown[:12])))
    out.print(Text(f"Kept in {run.folder}: curves.png, sample.txt, metrics.csv, the model. Now try"))
    example = next((line for line in shown if "____" in line), "____")
    out.print(Text(f'  mini-tf fill {quote(str(run.folder))} "{example}"'))


def opened(run, command):
    """(model, vocabulary) of a run. Raises UserError if it is not for this command, and says what it is for."""
    from mini_tf.models import Classifier, MaskedWordModel, TextModel, Translator
    from mini_tf.training.run import Run

    kinds = {
        "generate": (TextModel, "a language model; to let it write", ""),
        "translate": (Translator, "a translator; to translate with it", " 'je suis content .'"),
        "classify": (Classifier, "a classifier; to classify with it", " 'a text'"),
        "fill": (MaskedWordModel, "a model that fills gaps; to fill one", " 'To be or not to ____'"),
    }  # fmt: skip
    model, vocabulary = Run.open(run).load()
    if not isinstance(model, kinds[command][0]):
        right, (_, what, example) = next(item for item in kinds.items() if isinstance(model, item[1][0]))
        raise UserError(f"{run} holds {what}: mini-tf {right} {run}{example}")
    return model, vocabulary


def chosen_text(corpus, flavour):
    """The text of a file, or Shakespeare's."""
    from mini_tf.text import read_corpus, shakespeare

    return shakespeare(flavour) if corpus is None else read_corpus(corpus)


def comparison_table(rungs):
    """The models of a comparison: size, time, and the loss on all, on known and on new test words."""
    columns = "", "numbers", "seconds", "nats", "perplexity", "known", "new"
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.no_wrap, column.justify = True, "right"
    table.columns[0].justify = "left"
    for r in rungs:
        table.add_row(
            r.model, f"{r.parameters:,}", f"{r.seconds:,.0f}", f"{r.test:.3f}", f"{r.perplexity:,.0f}",
            f"{r.known:.3f}", f"{r.new:.3f}",
        )  # fmt: skip
    return table


def loss_table(results, c):
    """The losses of a run, beside those of guessing."""
    from mini_tf.metrics import perplexity

    table = Table("", "nats per word", "perplexity", box=None, header_style="bold")
    table.columns[1].justify = table.columns[2].justify = "right"
    names = {
        "uniform": f"every one of {c:,} words alike", "unigram": "by how often a word occurs",
        "train": "model, training words", "validation": "model, validation words", "test": "model, test words",
    }  # fmt: skip
    for key, name in names.items():
        loss = results[key]
        table.add_row(name, f"{loss:.3f}", f"{perplexity(loss):,.0f}", style="bold" if key == "test" else None)
    return table


def confusion_table(confusion, classes):
    """How often a classifier took each class for each."""
    table = Table("it is", *(f"says {name}" for name in classes), box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in zip(classes, confusion):
        table.add_row(name, *(f"{count:,}" for count in row))
    return table


def coloured_words(words, found):
    """A text's words on blue for those that speak for the class, orange for those against it; see `Saliency`."""
    line = Text()
    for word, norm, contribution in zip(words, found.norm / (found.norm.max() or 1), found.contribution):
        full = (90, 160, 255) if contribution > 0 else (255, 150, 50)
        faded = ",".join(str(round(255 - (255 - value) * float(norm))) for value in full)
        line.append(f"{word}", style=f"black on rgb({faded})").append(" ")
    return line


def strongest_words(words, found, name, most=4):
    """Two lines: the words that speak most for the class, and most against it, with their contributions."""
    order = found.contribution.argsort()
    sides = {
        f"blue, for {name}": [t for t in order[::-1][:most] if found.contribution[t] > 0],
        f"orange, against {name}": [t for t in order[:most] if found.contribution[t] < 0],
    }
    return "\n".join(
        f"{side}: {', '.join(f'{words[t]} {found.contribution[t]:+.3f}' for t in some) or 'none'}"
        for side, some in sides.items()
    )


def write_on(model, vocabulary, prompt, words, choose):
    """Print the prompt, dimmed, and then each word as the model chooses it."""
    from itertools import chain, islice

    from mini_tf.decoding import generate
    from mini_tf.text import spaced

    pieces = spaced(vocabulary.words[i] for i in chain(prompt, generate(model, prompt, words, choose)))
    out.print(Text("".join(islice(pieces, len(prompt))), style="dim"), end="")
    for piece in pieces:
        out.print(Text(piece), end="")
    out.print()


def note(line):
    err.print(Text(f"note: {line}", style="yellow"))


def _terminated(*_):
    raise Terminated


def _speak_alone(team):
    """On all processes but the first, print nothing: the first says the same."""
    if not team.first:
        out.quiet = err.quiet = True
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, it stays open


def main():
    """Run the command. A UserError is printed in one line, without a traceback; the exit code is then 2.

    SIGTERM raises Terminated, so that files that are being written are removed, and not left half-written.
    Processes that mpiexec started end together, with one message.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        with ending_together():
            _speak_alone(join())
            app()
    except UserError as error:
        if not rank_given():                             # without MPI, each of several processes ends here
            err.print(Text.assemble(("error: ", "bold red"), str(error)))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
