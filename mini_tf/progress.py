"""Lines of text, and progress bars, which show on a terminal and in a notebook only and vanish when done."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

from mini_tf import kernels

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text


class Output(Console):
    """A console whose failure ends no work: from then on nothing is printed, and `failure` is the error.

    It fails when the disk of a redirected output is full, or when the reader of a pipe has gone.
    """

    failure: OSError | None = None

    def _check_buffer(self):                             # where rich writes
        try:
            super()._check_buffer()
        except (OSError, SystemExit) as error:           # rich ends the program when the reader of a pipe has gone
            self.failure = error if isinstance(error, OSError) else BrokenPipeError()
            self.quiet = True
            del self._buffer[:]


# One console for lines and bars: rich keeps them apart only if both go through the same one.
console = Output(highlight=False, soft_wrap=True, markup=False, emoji=False)


class TimeLeftColumn(TimeRemainingColumn):
    """ "· 0:00:12 left"; nothing until it can be estimated"""

    def render(self, task: Task) -> Text:
        if task.time_remaining is None:
            return Text("")
        return Text.assemble("· ", super().render(task), " left")


@contextmanager
def progress_bar(what: str, total: int, even: bool = True) -> Iterator[Callable]:
    """Yields a function update(done, note=""), to be called as the work goes on.

    with progress_bar("training", steps) as update:
        for step in range(steps):
            …
            update(step + 1, f"loss {loss:.3f}")

    even: the steps take about as long, so that the time that is left can be estimated
    """
    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False), TimeElapsedColumn(),
    ]  # fmt: skip
    if even:
        columns.append(TimeLeftColumn(table_column=Column(no_wrap=True)))
    # In a notebook, rich draws bars with widgets: pip install ipywidgets.
    seen = console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
    with Progress(*columns, console=console, transient=True, disable=console.quiet or not seen) as progress:
        task = progress.add_task(what, total=total, note="")
        yield lambda done, note="": progress.update(task, completed=done, note=note)


@contextmanager
def training_progress(steps: int, words_per_step: float | None = None, done: int = 0) -> Iterator[Callable]:
    """Yields an on_step for a Watcher of `fit`: a bar with the loss, tokens per second, if known, and the time left.

    done: steps of the training before this one
    """
    start = time.perf_counter()
    loss_mean = None

    with progress_bar("training", steps) as update:

        def on_step(step, loss):
            nonlocal loss_mean
            loss_mean = loss if loss_mean is None else 0.9 * loss_mean + 0.1 * loss
            note = f"loss {loss_mean:.3f}"
            if words_per_step is not None:
                note += f" · {(step - done) * words_per_step / (time.perf_counter() - start):,.0f} tokens/s"
            update(step, note)

        yield on_step


def prepare_kernels(say: Callable = console.print) -> None:
    """Compile or load the kernels. Compiling, on the first run on a machine, is announced."""
    if not kernels.switched_on():
        return
    loops, update = kernels.every_loop(), None
    with ExitStack() as stack:
        for done, loop in enumerate(loops, start=1):
            if loop.compile() and update is None:
                say(f"compiling {len(loops)} kernels: this takes about half a minute, on the first run only")
                update = stack.enter_context(progress_bar("compiling", len(loops)))
            if update:
                update(done)
