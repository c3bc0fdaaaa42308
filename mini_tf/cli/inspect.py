"""The commands that look at gradients, at runs and at the machine: gradcheck, explore, doctor."""

import os
from pathlib import Path
from typing import Annotated

import mini_tf
from mini_tf.cli import options
from mini_tf.cli.app import app, examples, keep_standard_output_for, out
from mini_tf.errors import UserError
from mini_tf.files import is_stream
from mini_tf.parallel.starting import mpi_here
from mini_tf.progress import progress_bar

import typer
from rich.table import Table
from rich.text import Text


@app.command(short_help="Check hand-written gradients: mini_tf's, or your own.",
             epilog=examples("gradcheck softmax", "gradcheck my_ops.py::softmax --shape z=3,4"))  # fmt: skip
def gradcheck(
    names: Annotated[list[str] | None, typer.Argument(help="names, or how they begin; or file.py::function")] = None,
    seed: Annotated[int, typer.Option(help="of the random numbers", min=0)] = 0,
    shape: options.Shape = None,
    arg: Annotated[
        list[str] | None, typer.Option(help="a value for an argument of your function or class: stride=2, W=randn(3,2)")
    ] = None,
    constants: Annotated[
        list[str] | None, typer.Option(help="an array that gets no gradient, of your function or object: pe")
    ] = None,
    params: Annotated[
        list[str] | None, typer.Option(help="a weight, which may be a variable of your file: Wxh, or W=layers.0.W")
    ] = None,
    grads: Annotated[
        list[str] | None, typer.Option(help="where a weight's gradient is: W=path.to.its.gradient")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="what your class calls its forward and backward: go,come_back")
    ] = None,
    solution: Annotated[
        bool, typer.Option("--solution", help="of an exercise: show the line put right, if one change does it")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="write a page with pictures, as one self-contained file; - for standard output")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="write all numbers to this file; - for standard output")] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="plant bugs in these backwards, and see if the check finds them")
    ] = False,
    bind_twins: Annotated[
        bool, typer.Option("--bind-twins", help="after changing a formula and its twin: compare all twins")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Check hand-written gradients against measured slopes: mini_tf's, or your own.

    Exit code 1: one is wrong. Exit code 2: one could not be tested; the report says what to add.
    """
    from mini_tf.gradcheck import command

    if self_test and (html or json):
        raise UserError("--self-test writes no file; leave out --html and --json")
    if bind_twins:
        command.bind_twins(seed)
        return
    keep_standard_output_for(html, json)
    options = command.checker_options(methods, constants=constants or [], params=params or [], grads=grads or [])
    subjects = command.chosen(names or [], shape or [], seed, arg or [], options)
    if self_test:
        raise typer.Exit(command.plant_in_all(subjects, seed))
    raise typer.Exit(command.check_all(subjects, seed, html, json, solution))


@app.command(short_help="Write a page that shows a backward pass line by line.",
             epilog=examples("explore runs/quick --text 'my good lord'",
                             "explore my_ops.py::softmax --shape z=3,4"))  # fmt: skip
def explore(
    what: Annotated[
        str | None,
        typer.Argument(help="a run folder, a pretrained model as for generate, file.py::function, or an op's name "
                       "[default: a small model, trained now]"),
    ] = None,  # fmt: skip
    text: Annotated[str | None, typer.Option(help="what the model reads")] = None,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", help="the page to write; - for standard output [default: named after what is explored, "
                     "as layer_norm.html; of the small model explore.html]"),
    ] = None,  # fmt: skip
    bug: Annotated[
        list[str] | None,
        typer.Option(help="a planted bug to compare with; may be repeated [default: some that matter]"),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="the text that the small model learns from; - for standard input")
    ] = None,
    tokenizer: options.PretrainedTokenizer = None,
    shape: options.Shape = None,
    arg: Annotated[list[str] | None, typer.Option(help="a value for an argument of your function: stride=2")] = None,
    solution: Annotated[bool, typer.Option("--solution", help="for an exercise: show its solution")] = False,
    seed: Annotated[int, typer.Option(help="seed of the random numbers", min=0)] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Write a page that shows the backward pass line by line, with its numbers."""
    from mini_tf.explore.command import explored, page_of

    keep_standard_output_for(out_file)
    page = explored(what, text, corpus, bug or [], shape or [], arg or [], seed, solution, tokenizer)
    out_file = out_file or page_of(what)
    with progress_bar("writing the page", 1):
        page.write(out_file)
    if not is_stream(out_file):
        out.print(Text(f"written: {out_file} ({out_file.stat().st_size / 1e6:.1f} MB); open it in a browser"))


@app.command(short_help="Look at this machine, or at a run.", epilog=examples("doctor", "doctor runs/quick"))
def doctor(
    run: Annotated[Path | None, typer.Argument(help="a run folder: look at it instead of at this machine")] = None,
) -> None:
    """Show versions, threads, the GPU or why there is none, and where the text comes from; or how a run is.

    Of a run: whether its files are whole, whether it is finished, and whether its losses and gradients are normal. Exit
    code 1: something is wrong with it.
    """
    if run is not None:
        raise typer.Exit(0 if examined(run) else 1)
    import platform
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    from mini_tf import kernels
    from mini_tf.backend import gpu_count
    from mini_tf.data import SHAKESPEARE, where
    from mini_tf.kernels.compiling import why_uncompiled
    from mini_tf.kernels.threads import cores

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
            what = "the formulas run without their faster twins; " if package == "numba" else ""
            table.add_row(package, Text("missing", "red"), f"{what}pip install {package}")
    blas = np.show_config("dicts")["Build Dependencies"]["blas"]
    table.add_row("BLAS", str(blas.get("version", "")), str(blas.get("name", "")))
    fewer = "BLAS and Numba use all; set OPENBLAS_NUM_THREADS, NUMBA_NUM_THREADS for fewer"
    table.add_row("cores", str(cores()), fewer)
    timeout = os.environ.get("OPENBLAS_THREAD_TIMEOUT", "")
    table.add_row("OPENBLAS_THREAD_TIMEOUT", timeout, "keeps BLAS's idle threads from taking a core")
    if held_to := os.environ.get("OPENBLAS_CORETYPE"):
        table.add_row("OPENBLAS_CORETYPE", held_to, "BLAS does no more than this kind of processor can; unset it")
    on = kernels.switched_on() and not why_uncompiled()
    table.add_row("kernels", "on" if on else "off", "MINI_TF_KERNELS=off runs the plain formulas of mini_tf/ops" if on
                  else "the plain formulas of mini_tf/ops run; with Numba, and without MINI_TF_KERNELS=off, their "
                  "fused twins would")  # fmt: skip
    gpus, why_not = gpu_count()
    cupy = "; with a CUDA GPU: pip install 'mini-tf[gpu13]', or gpu12" if find_spec("cupy") is None else ""
    table.add_row("GPU", str(gpus), why_not + cupy)
    table.add_row("MPI", *mpi_here())
    found, place = where(SHAKESPEARE)
    table.add_row("Shakespeare", "here" if found else "not yet here", place)
    out.print(table)


def examined(folder: Path) -> bool:
    """Show what `report_of` finds in a run folder. Returns True if nothing is wrong."""
    from mini_tf.training.run import Run
    from mini_tf.training.run_report import report_of

    table = Table(box=None, show_header=False, pad_edge=False)
    for column in ("what", "verdict", "more"):
        table.add_column(column, overflow="fold")
    found = report_of(Run.find(folder))
    for what, verdict, more in found:
        sign = {"good": Text("✓", "green"), "bad": Text("✗", "bold red"), "": Text("·", "dim")}[verdict]
        table.add_row(Text(what), sign, Text(more))
    out.print(table)
    return all(verdict != "bad" for _, verdict, _ in found)
