"""Options that several commands share: `device: options.Device = "auto"`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from mini_tf.cli.app import hush

import typer


class Flavour(StrEnum):
    lab = "lab"
    clean = "clean"
    complete = "complete"


class Unknown(StrEnum):
    error = "error"
    skip = "skip"


def _presets(beginning: str) -> list[tuple[str, str]]:
    """For the shell's completion of a preset's name."""
    from mini_tf.training.registry import PRESETS  # here, so that --help loads no models

    return [(name, preset.description) for name, preset in PRESETS.items() if name.startswith(beginning)]


Preset = Annotated[
    str, typer.Option(help="quick (half a minute), window, recurrent, gpt, char, llama, pointer (the best), lab (up to "
                      "an hour); translate (French to English, minutes), translate-rnn or translate-hour; classify, "
                      "classify-bag (texts with labels, seconds); fill (words hidden in a text, minutes): see "
                      "mini-tf presets",
                      autocompletion=_presets)
]  # fmt: skip
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="another value for an option of the preset, such as L=4 or learning_rate=0.003; may be "
                 "repeated; mini-tf presets NAME lists them all"),
]  # fmt: skip
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print nothing but notes and errors", callback=hush)]
Pairs = Annotated[
    Path | None,
    typer.Option(help="for translate: lines English<TAB>French, as Tatoeba's; - for standard input [default: a "
                 "grammar's sentences]"),
]  # fmt: skip
Table = Annotated[
    Path | None,
    typer.Option(help="for classify: a CSV file with texts and labels; - for standard input [default: sentences of "
                 "film reviews]"),
]  # fmt: skip
TextColumn = Annotated[str, typer.Option("--text", help="the table's column of texts")]
LabelColumn = Annotated[str, typer.Option("--label", help="the table's column of labels")]
Corpus = Annotated[
    Path | None, typer.Option(help="any UTF-8 text; - for standard input [default: Lab 6's Shakespeare]")
]
Tokenizer = Annotated[
    str | None,
    typer.Option(help="what a language model reads: words, characters, or bpe:512, 512 pieces of words learned from "
                 "the text; short for --set tokenizer=… [default: words]"),
]  # fmt: skip
PretrainedTokenizer = Annotated[
    Path | None,
    typer.Option("--tokenizer", help="of a pretrained model: tokenizer.bin of llama2.c, or tokenizer.json [default: "
                 "the one in the model's folder]"),
]  # fmt: skip
Pretrained = Annotated[
    Path | None,
    typer.Option("--from", help="for llama: start from these pretrained weights, a .bin file of llama2.c or a folder "
                 "of Hugging Face; --tokenizer names its tokenizer's file, if the folder has none"),
]  # fmt: skip
Shakespeare = Annotated[
    Flavour, typer.Option(help="lab: nine plays as Lab 6 has them; clean: nothing lost of them; complete: all 38")
]
Run = Annotated[Path | None, typer.Option(help="the run folder to make [default: runs/PRESET, runs/PRESET-2, …]")]
Device = Annotated[str, typer.Option(help="auto, cpu, gpu, or gpu:1 for the second GPU")]
TF32 = Annotated[
    bool, typer.Option("--tf32", help="on a GPU: faster products, of factors with 3 decimal digits in place of 7")
]
Memory = Annotated[float | None, typer.Option(help="the most GB of a GPU's memory to use [default: all]")]
Shape = Annotated[
    list[str] | None,
    typer.Option(help="of your function's arguments: x=3,4 or 'ids=2,3 int<7' or 'mask=3,3 bool' or y=onehot(4,5)"),
]  # fmt: skip
