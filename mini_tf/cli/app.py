"""The command mini-tf itself: what all its commands share.

Each command imports what it runs when it runs, so that `mini-tf --help` and wrong options answer at once.
"""

from typing import Annotated

import mini_tf
from mini_tf.errors import UserError
from mini_tf.parallel.starting import join
from mini_tf.progress import Output
from mini_tf.progress import console as out

import typer
from rich.text import Text

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A transformer engine whose gradients are written by hand.",
    epilog="Exit codes: 0, done (a training that Ctrl-C ended early is kept, and done); 1, something is wrong with a "
           "gradient or a run; 2, invalid input, and the message says what to change; 130, 143, "
           "129: interrupted, terminated, the terminal was closed.",
)  # fmt: skip
err = Output(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def examples(*commands: str) -> str:
    """The end of a command's --help: commands to try, a line each."""
    return "\n".join(["\b", "Examples:", *(f"  mini-tf {command}" for command in commands)])


def _show_version(asked: bool) -> None:
    if asked:
        out.print(f"mini-tf {mini_tf.__version__}")
        raise typer.Exit


@app.callback()
def main_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    group = join()
    if group.size > 1 and context.invoked_subcommand not in ("train", "doctor"):
        raise UserError(f"mini-tf {context.invoked_subcommand} runs on one process, and mpiexec started {group.size}: "
                        "leave mpiexec out; mini-tf train can use several")  # fmt: skip


def note(line: str) -> None:
    """A remark on standard error, in yellow: "note: …"."""
    err.print(Text(f"note: {line}", style="yellow"))


def hush(quiet: bool) -> bool:
    """For the option --quiet: from here on nothing is printed but notes and errors."""
    out.quiet = out.quiet or quiet
    return quiet


def keep_standard_output_for(*files) -> None:
    """If one of these files is standard output, everything else is printed on standard error."""
    from mini_tf.files import is_standard_output

    to_standard_output = [file for file in files if file is not None and is_standard_output(file)]
    if len(to_standard_output) > 1:
        raise UserError("two files were to go to standard output, expected one: give the other a name")
    if to_standard_output:
        out.stderr = True
