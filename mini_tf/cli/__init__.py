"""The command mini-tf: one module for each kind of command, which `app` knows once they are imported."""

import os
import signal
import sys
import warnings

from mini_tf.cli import infer, inspect, resources, teaching, training  # noqa: F401, with the commands
from mini_tf.cli.app import app, err, note, out
from mini_tf.errors import Terminated, UserError
from mini_tf.kernels import FormulaEdited, WithoutNumba
from mini_tf.machine import check_environment, leave_standard_output, refusals_said
from mini_tf.parallel.starting import ending_together, join, rank_given
from mini_tf.terminal import signals_to_end, write_in_any_encoding

from rich.text import Text

__all__ = ["app", "main", "out"]

READER_GONE = 128 + 13               # the exit code that shells give for SIGPIPE
ORDER = [
    "train", "generate", "translate", "classify", "fill", "export", "compare", "gradcheck", "explore", "presets",
    "labs", "grade", "doctor",
]  # fmt: skip
app.registered_commands.sort(key=lambda command: ORDER.index(getattr(command.callback, "__name__", "")))


def main() -> None:
    """Run the command. A UserError is printed in one line, without a traceback; the exit code is then 2.

    Signals that ask it to end raise Terminated, so that files that are being written are removed, and not left
    half-written. Processes that mpiexec started end together, with one message.
    """
    write_in_any_encoding()
    warnings.showwarning = _showing(warnings.showwarning)
    out.quiet, out.stderr, out.failure = False, False, None
    for number in signals_to_end():
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _terminated)
    try:
        with ending_together(), refusals_said():
            check_environment()
            if rank_given() is not None:                 # joining loads what --help does not need
                _print_on_rank_0(join())
            app(prog_name="mini-tf")
    except UserError as error:
        if not rank_given():                             # without MPI, each of several processes ends here
            err.print(Text.assemble(("error: ", "bold red"), str(error)))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as end:
        if not end.code:
            _report_lost_output()
        raise


def _report_lost_output():
    """If something could not be printed, end with an exit code that says so; the work itself is done."""
    if out.failure is None:
        return
    leave_standard_output()
    if isinstance(out.failure, BrokenPipeError):         # whoever stopped reading knows that
        sys.exit(READER_GONE)
    err.print(Text.assemble(("error: ", "bold red"), f"standard output cannot be written: {out.failure.strerror}; "
                            "everything else was done"))  # fmt: skip
    sys.exit(2)


def _showing(before):
    """A way to show warnings: a missing Numba, or an edited formula, as a note; others as before."""

    def show(message, category, *where, **options):
        if issubclass(category, (WithoutNumba, FormulaEdited)):
            note(str(message))
        else:
            before(message, category, *where, **options)

    return show


def _terminated(number, _):
    raise Terminated(number)


def _print_on_rank_0(group):
    """On all processes but rank 0, print nothing: rank 0 says the same."""
    if not group.first:
        out.quiet = err.quiet = True
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, it stays open
