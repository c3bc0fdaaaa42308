"""The commands that show or hand out what mini_tf comes with: presets, labs."""

from pathlib import Path
from typing import Annotated

from mini_tf.cli.app import app, examples, out
from mini_tf.errors import UserError

import typer
from rich.table import Table
from rich.text import Text


@app.command(short_help="List the presets of train, and the options of each.",
             epilog=examples("presets", "presets gpt"))  # fmt: skip
def presets(
    name: Annotated[str | None, typer.Argument(help="a preset: show all its options")] = None,
) -> None:
    """List the presets of mini-tf train; or, with a NAME, all options of one, which --set changes."""
    from mini_tf.training.option_meanings import option_meanings
    from mini_tf.training.registry import PRESETS, preset_named
    from mini_tf.training.settings import options_of

    table = Table(box=None, header_style="bold", pad_edge=False, show_header=name is None)
    if name is None:
        for column in ("preset", "learns from", "what it is"):
            table.add_column(column, overflow="fold")
        for preset in PRESETS.values():
            table.add_row(preset.name, preset.takes, preset.description)
        out.print(table)
        out.print(Text("Options of one, for --set: mini-tf presets NAME", "dim"))
        return
    preset = preset_named(name)
    out.print(Text(f"{preset.name}: {preset.description}"))
    out.print(Text(f"trains a {preset.model_type.__name__}, from {preset.takes}"))
    meanings = option_meanings(preset)
    for option, value in options_of(preset).items():
        shown = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        table.add_row(option, Text(shown, "bold"), meanings.get(option, ""))
    out.print(table)
    some = "L=4" if "L" in options_of(preset) else "steps=100"
    out.print(Text(f"Another value for this run: mini-tf train --preset {preset.name} --set {some}", "dim"))


@app.command(short_help="Put labs and exercises into a folder of your own.",
             epilog=examples("labs my-labs", "labs for-mia --student mia", "labs mia-answers --student mia --answers"))
def labs(
    folder: Annotated[Path, typer.Argument(help="the folder to put them into: a new or an empty one")],
    student: Annotated[
        str | None, typer.Option(help="with blanks, and numbers, sizes and a mistake to find of this student's own")
    ] = None,
    answers: Annotated[bool, typer.Option("--answers", help="the teacher's copy of a student's, solved")] = False,
    without_solutions: Annotated[
        bool, typer.Option("--without-solutions", help="with blanks, and without the exercises' solutions")
    ] = False,
) -> None:
    """Put the labs and the exercises into a folder of your own, to run and to change.

    For teachers: with --student each student gets a copy of their own, the same one for the same name.
    """
    from mini_tf.handout import hand_out
    from mini_tf.terminal import quoted

    if answers and (student is None or without_solutions):
        raise UserError("--answers is the teacher's copy of a student's: give --student, and no --without-solutions")
    if student is not None or without_solutions:
        from mini_tf.teaching.individual import hand_out_to

        hand_out_to(folder, student, answers)
        out.print(Text(f"labs and exercises with blanks are in {folder}" + f", for {student}" * (student is not None)))
        return
    count = hand_out(folder)
    out.print(Text(f"{count} files in {folder}: labs, exercises, README.md with the path through them. Now try"))
    out.print(Text(f"  python {quoted(str(folder / '04_word_embeddings.py'))} --quick"))
    out.print(Text(f"  mini-tf gradcheck {quoted(str(folder / 'exercises' / '01_softmax.py') + '::softmax')}"))
