"""What teachers use: grade."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mini_tf.cli import options
from mini_tf.cli.app import app, examples, keep_standard_output_for, out

import typer
from rich.table import Column, Table
from rich.text import Text

if TYPE_CHECKING:
    from mini_tf.teaching.grading import Grades


@app.command(short_help="Grade a student's exercises and labs.",
             epilog=examples("grade hand-in", "grade hand-in --task 01_softmax --json grades.json"))     # fmt: skip
def grade(
    folder: Annotated[Path, typer.Argument(help="a student's exercises and labs")],
    task: Annotated[
        list[str] | None, typer.Option(help="what was to be handed in, as 01_softmax; by default what is there")
    ] = None,
    student: Annotated[str | None, typer.Option(help="whose it is, to grade their own “find and mend”, too")] = None,
    seconds: Annotated[float, typer.Option(help="for each answer of the student's code", min=0.1)] = 20,
    json: Annotated[Path | None, typer.Option(help="write all of it to this file; - for standard output")] = None,
    gradescope: Annotated[Path | None, typer.Option(help="write Gradescope's results.json to this file")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Grade a student's exercises, a point for each gradient, and the blanks of labs, a point for each.

    The student's code runs in a process of its own, without other files, processes or the network.
    Exit code 1: something is not right yet. Exit code 2: there is nothing to grade.
    """
    from mini_tf.teaching import records
    from mini_tf.teaching.grading import grade as graded

    keep_standard_output_for(json, gradescope)
    grades = graded(folder, task or (), seconds, student)
    for file in grades.files:
        for words in (file.words, *(part.words for part in file.parts if not part.points)):
            if words and file.points < len(file.parts):
                out.print(Text(f"{file.task}\n{words}\n"))
    out.print(table_of(grades))
    for path, write in ((json, records.write_json), (gradescope, records.write_gradescope)):
        if path is not None:
            write(grades, path)
    raise typer.Exit(int(grades.points < grades.most))


def table_of(grades: "Grades") -> Table:
    """A row for each file: its points, and the parts that are not right yet"""
    found = Table("", Column("points", justify="right"), "not yet", box=None)
    for file in grades.files:
        missing = ", ".join(part.name for part in file.parts if not part.points)
        found.add_row(file.task, f"{file.points} of {len(file.parts)}", missing or "–")
    found.add_row("all", f"{grades.points} of {grades.most}", "", style="bold")
    return found
