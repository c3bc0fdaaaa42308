"""The commands that use a trained model: generate, translate, classify, fill, export."""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from mini_tf.cli import options
from mini_tf.cli.app import app, examples, keep_standard_output_for, note, out
from mini_tf.cli.showing import coloured_words, numbers_table, strongest_words, write_on
from mini_tf.errors import UserError, counted
from mini_tf.files import STANDARD

import typer
from rich.text import Text


@app.command(epilog=examples("generate runs/quick --prompt 'Good morrow, my lord'",
                             "generate stories260K.bin --tokenizer tok512.bin --argmax"))  # fmt: skip
def generate(
    run: Annotated[
        Path,
        typer.Argument(help="a run folder that mini-tf train made; or a pretrained model: a .bin file of llama2.c, or "
                       "a folder with a Llama or GPT-2 of Hugging Face"),
    ],  # fmt: skip
    prompt: Annotated[str, typer.Option(help="the words to go on from; \\n is a line break")] = "",
    words: Annotated[int, typer.Option(help="how many words or other tokens to write", min=1, max=1_000_000)] = 500,
    temperature: Annotated[float, typer.Option(help="below 1 safer, above 1 bolder")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="choose among the k most probable words only", min=1)] = None,
    top_p: Annotated[
        float | None,
        typer.Option(help="choose only among the most probable words, of probability p together, such as 0.9"),
    ] = None,
    argmax: Annotated[bool, typer.Option("--argmax", help="always the most probable word")] = False,
    unknown: Annotated[options.Unknown, typer.Option(help="words the model does not know")] = options.Unknown.error,
    tokenizer: options.PretrainedTokenizer = None,
    seed: Annotated[int, typer.Option(help="of the random choices", min=0)] = 0,
    device: options.Device = "auto",
) -> None:
    """Let a trained model, or a pretrained one, continue a prompt."""
    from mini_tf.backend import use_device
    from mini_tf.decoding import greedy, sample
    from mini_tf.pretrained.opening import is_pretrained, open_pretrained

    import numpy as np

    if not 0 < temperature < float("inf"):
        raise UserError(f"--temperature is {temperature:g}, expected a number above 0; --argmax takes the most "
                        "probable word")  # fmt: skip
    if is_pretrained(run) or tokenizer is not None:
        model, vocabulary = open_pretrained(run, tokenizer)
        model.to(use_device(device))
    else:
        model, vocabulary = opened(run, "generate", device)
    tokens = vocabulary.split(prompt.replace("\\n", "\n"))
    ids = vocabulary.encode(tokens, unknown.value)
    if len(ids) < len(tokens):
        note(f"{counted(len(tokens) - len(ids), f'unknown {vocabulary.unit}')} left out of the prompt")
    if vocabulary.first is not None:                     # this model's texts begin with it
        ids = np.append(vocabulary.first, ids)
    sees = model.reader().T
    if sees is not None and len(ids) > sees:
        note(f"the prompt has {len(ids)} {vocabulary.unit}s; the model sees the last T = {sees} of them")
    rng = np.random.default_rng(seed)
    choose = greedy if argmax else partial(sample, rng=rng, temperature=temperature, top_k=top_k, top_p=top_p)
    write_on(model, vocabulary, ids, words, choose)


@app.command(epilog=examples("translate runs/translate 'je ne vois pas le chat noir .'",
                             "translate runs/translate --beam 1 < sentences.txt"))  # fmt: skip
def translate(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train --preset translate made")],
    sentence: Annotated[str | None, typer.Argument(help="a French sentence [default: lines of standard input]")] = None,
    file: Annotated[Path | None, typer.Option(help="translate this file's lines; - for standard input")] = None,
    beam: Annotated[int, typer.Option(help="hypotheses followed at once; 1: always the most probable word")] = 5,
    length_penalty: Annotated[float, typer.Option(help="α ≥ 0: above 0 longer translations are preferred")] = 0.0,
    attention: Annotated[Path | None, typer.Option(help="draw where each word looks, into this picture")] = None,
    device: options.Device = "auto",
) -> None:
    """Translate French sentences into English, a line for each."""
    from mini_tf.data.corpus import read_text
    from mini_tf.decoding.lines import save_attention, translate_lines

    if sentence is not None and file is not None:
        raise UserError("a sentence and --file were given, expected one of them")
    if attention is not None and sentence is None:
        raise UserError("--attention draws one sentence: give it on the command line, in quotation marks")
    keep_standard_output_for(attention)
    model, vocabularies = opened(run, "translate", device)
    if sentence is not None:
        batches: Iterable[list[str]] = [[sentence]]
    elif file is None and sys.stdin is not None and sys.stdin.isatty():
        batches = ([line] for line in sys.stdin)         # each is translated as soon as it is typed
    else:
        batches = [read_text(file or STANDARD, "a file of sentences", "sentences").splitlines()]
    first = 1
    for lines in batches:
        translated = translate_lines(model, vocabularies, lines, beam, length_penalty, note, first)
        print(*translated, sep="\n", file=out.file)
        first += len(lines)
    if attention is not None and sentence is not None:
        save_attention(attention, model, vocabularies, sentence, translated[0])
        note(f"attention drawn in {attention}")


@app.command(short_help="Say which class a text has, and which words say so.",
             epilog=examples("classify runs/classify 'a moving film' --words",
                             "classify runs/classify --table reviews.csv"))  # fmt: skip
def classify(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train --preset classify made")],
    text: Annotated[str | None, typer.Argument(help="a text, in quotation marks")] = None,
    words: Annotated[bool, typer.Option("--words", help="colour each word by what the gradient says of it")] = False,
    picture: Annotated[Path | None, typer.Option(help="draw attention and gradient of each word into it")] = None,
    table: Annotated[Path | None, typer.Option(help="instead of a text: classify a table's texts and count")] = None,
    text_column: options.TextColumn = "text",
    label: options.LabelColumn = "label",
    device: options.Device = "auto",
) -> None:
    """Say how probable each class of a text is, and which words speak for it; or test a classifier on a table."""
    from mini_tf.decoding import texts

    if (text is None) == (table is None):
        raise UserError("expected a text in quotation marks, or --table FILE, and not both")
    if text is None and (words or picture):
        raise UserError("--words and --picture show one text: give it on the command line, in quotation marks")
    keep_standard_output_for(picture)
    model, vocabulary = opened(run, "classify", device)
    if table is not None:
        from mini_tf.data import read_labelled

        counts = texts.classify_table(model, vocabulary, read_labelled(table, text_column, label), note)
        columns = ["label", *(f"predicted {name}" for name in vocabulary.classes)]
        rows = [[name, *(f"{count:,}" for count in row)] for name, row in zip(vocabulary.classes, counts)]
        out.print(numbers_table(columns, rows))
        out.print(Text(f"right: {counts.trace():,} of {counts.sum():,}, {counts.trace() / counts.sum():.1%}"))
        return
    assert text is not None                              # or there would be a table
    read, found = texts.classify_text(model, vocabulary, text, note)
    for k in found.log_p.argsort()[::-1]:
        p = float(found.p[k])
        out.print(Text.assemble((f"{vocabulary.classes[k]:<20}", "bold" if k == found.chosen else ""), f"{p:6.3f}  ",
                                ("█" * round(40 * p), "blue" if k == found.chosen else "dim")))  # fmt: skip
    if words:
        out.print(coloured_words(read, found))
        out.print(Text("the stronger the colour, the larger the gradient dx; most dx·x:", "dim"))
        out.print(Text(strongest_words(read, found, vocabulary.classes[found.chosen])))
        out.print(Text("dx·x is a linear approximation of what a word contributes. It misleads where words act\n"
                       "together, as in \"not bad\": leave a word out and compare", "dim"))  # fmt: skip
    if picture is not None:
        texts.save_words(picture, model, vocabulary, read, found)
        note(f"attention and gradient drawn in {picture}")


@app.command(epilog=examples("fill runs/fill 'To be or not to ____'",
                             "fill runs/fill '____ is the winter' --guesses 10"))  # fmt: skip
def fill(
    run: Annotated[Path, typer.Argument(help="a run folder that mini-tf train --preset fill made")],
    text: Annotated[str, typer.Argument(help="a line with ____ for each word to be filled in")],
    guesses: Annotated[int, typer.Option(help="how many to show for each gap", min=1)] = 5,
    device: options.Device = "auto",
) -> None:
    """Fill the gaps of a text with the most probable words."""
    from mini_tf.decoding.texts import fill_gaps

    model, vocabulary = opened(run, "fill", device)
    filled, gaps = fill_gaps(model, vocabulary, text, guesses)
    out.print(Text(filled))
    for number, gap in enumerate(gaps, 1):
        out.print(Text(f"gap {number}:", "bold") if len(gaps) > 1 else "", end="\n" if len(gaps) > 1 else "")
        for word, p in gap:
            out.print(Text.assemble(f"  {word!r:<20}{p:6.3f}  ", ("█" * round(40 * p), "dim")))


@app.command(epilog=examples("export runs/llama mine.bin", "export runs/llama my-llama"))
def export(
    run: Annotated[Path, typer.Argument(help="a run folder with a Llama or a GPT2")],
    target: Annotated[Path, typer.Argument(help="a .bin file, for llama2.c; or a folder, for Hugging Face")],
) -> None:
    """Write a trained Llama or GPT2 in the format of another program."""
    from mini_tf.pretrained.opening import export_model

    model, vocabulary = opened(run, "generate", "cpu")
    for path in export_model(model, vocabulary, target):
        out.print(Text(f"written: {path}"))


def opened(run: Path, command: str, device: str) -> tuple[Any, Any]:
    """(model, vocabulary) of a run, the model on the device. Raises UserError if it is for another command."""
    from mini_tf.backend import use_device
    from mini_tf.models import Classifier, MaskedWordModel, TextModel, TranslationModel
    from mini_tf.training.run import Run

    kinds: list[tuple[str, type, str, str]] = [
        ("generate", TextModel, "a language model; to let it write", ""),
        ("translate", TranslationModel, "a translator; to translate with it", " 'je suis content .'"),
        ("classify", Classifier, "a classifier; to classify with it", " 'a text'"),
        ("fill", MaskedWordModel, "a model that fills gaps; to fill one", " 'To be or not to ____'"),
    ]
    device = use_device(device)
    preset = "" if command == "generate" else f" --preset {command}"
    model, vocabulary = Run.open(run, f"mini-tf train{preset}").load()
    right, _, what, example = next(kind for kind in kinds if isinstance(model, kind[1]))
    if command != right:
        raise UserError(f"{run} holds {what}: mini-tf {right} {run}{example}")
    return model.to(device), vocabulary
