"""What the command mini-tf explore does."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.explore.comparison import bug_named
from mini_tf.explore.exploration import Exploration, explore_function, explore_model
from mini_tf.explore.readings import reading
from mini_tf.explore.small import SMALL, TEXT, small_model
from mini_tf.gradcheck.examples import EXAMPLES
from mini_tf.gradcheck.learner import is_exercise, load, running
from mini_tf.models import TranslationModel
from mini_tf.pretrained.opening import is_pretrained, open_pretrained
from mini_tf.progress import progress_bar
from mini_tf.training.language import GOES_ON
from mini_tf.training.run import Run
from mini_tf.types import PathLike

import numpy as np

FEW = 13                 # words that a run's model reads by default
FUNCTION_STEPS = 3


def explored(
    what: str | None = None, text: str | None = None, corpus: PathLike | None = None, bugs: Sequence[str] = (),
    shapes: Sequence[str] = (), args: Sequence[str] = (), seed: int = 0, solution: bool = False,
    tokenizer: PathLike | None = None,
) -> Exploration:  # fmt: skip
    """The Exploration of a run folder's model, of a pretrained one, of a learner's function, of an op by its name, or
    of a small model.
    """
    for name in bugs:
        bug_named(name)                                  # before anything takes time
    is_function = what is not None and ("::" in what or what.endswith(".py"))
    if what is not None and (is_function or (what in EXAMPLES and not Path(what).exists())):
        for option, value in (("--text", text), ("--bug", bugs), ("--corpus", corpus), ("--tokenizer", tokenizer)):
            if value:
                raise UserError(f"{option} is for models; {what} is a function: leave it out")
    if is_function:
        return _of_function(what, shapes, args, seed, solution)
    if shapes or args:
        raise UserError("--shape and --arg are for your functions: mini-tf explore my_ops.py::softmax --shape z=2,5")
    if what is None:
        return _of_small_model(text, corpus, bugs, seed)
    if Path(what).exists():
        if corpus is not None:
            raise UserError("--corpus is for the small model; a run has learned from its own text: leave one out")
        return _of_pretrained(what, tokenizer, text, bugs) if is_pretrained(what) else _of_run(what, text, bugs)
    if what not in EXAMPLES:
        raise _unknown(what)
    f, inputs, params = EXAMPLES[what](np.random.default_rng(seed))
    with _steps(FUNCTION_STEPS) as say:
        return explore_function(f, inputs, what, {"params": params}, seed=seed, say=say)


def page_of(what: str | None) -> Path:
    """Where the page goes by default: Attention.html of my_ops.py::Attention, quick.html of runs/quick"""
    if what is None:
        return Path("explore.html")
    _, is_function, name = what.rpartition("::")
    path = Path(what).resolve()
    return Path(f"{name if is_function else path.stem if path.is_file() else path.name}.html")


def _of_function(what, shapes, args, seed, solution):
    if solution and is_exercise(what):
        what = _solution_of(what)
    f, inputs, options = load(what, shapes, seed, args)
    name = what.rpartition("::")[2] or what
    with running(what), _steps(FUNCTION_STEPS) as say:
        return explore_function(f, inputs, name, options, is_exercise(what), seed, say)


def _solution_of(what):
    """Of an exercise, "exercises/solutions/01_softmax.py::softmax" """
    path, colons, name = what.partition("::")
    solution = Path(path).parent / "solutions" / Path(path).name
    if not solution.is_file():
        raise UserError(f"the exercise's solution, {solution}, does not exist; leave --solution out")
    return f"{solution}{colons}{name}"


def _unknown(what):
    near = difflib.get_close_matches(what, EXAMPLES, 3)
    expected = f"did you mean the op {' or '.join(near)}? Expected" if near else "expected"
    return UserError(
        f"{what} is neither a run folder nor the name of an op; {expected} a folder that mini-tf train made, an op "
        "such as layer_norm, a function of yours as in my_ops.py::softmax, or nothing, for a small model"
    )


def _of_small_model(text, corpus, bugs, seed):
    model, vocabulary, moments = small_model(corpus, seed)
    if text is None:
        text = TEXT if corpus is None else " ".join(word for word in vocabulary.words if word != "\n")[:200]
    about = (
        f"A small transformer, trained here for {SMALL.steps} steps: {model.config['L']} layers, "
        f"{model.config['H']} heads, {SMALL.n} columns for a word, {len(vocabulary):,} words."
    )
    return _page(model, vocabulary, text, about, moments, bugs)


def _of_pretrained(path, tokenizer, text, bugs):
    if text is None:
        raise UserError(f"{path} has no text of its own to read; give one: --text \"Once upon a time\"")
    model, vocabulary = open_pretrained(path, tokenizer)
    now = {name: p.data for name, p in model.parameters().items()}
    return _page(model, vocabulary, text, _about(path, model), [("as published", now)], bugs)


def _about(what, model):
    letters = [f"{letter} = {model.config[letter]}" for letter in "TnkLHGmf" if model.config.get(letter)]
    return f"The model of {what}: {', '.join(letters)}, {model.parameter_count():,} trainable parameters."


def _of_run(run, text, bugs):
    run = Run.open(run)
    model, vocabulary = run.load()
    if text is None:
        text = _own_text(run, vocabulary)
    moments = [("before the first step" if step == 0 else f"after step {step}", data) for step, data in run.moments()]
    now = {name: p.data for name, p in model.parameters().items()}
    return _page(model, vocabulary, text, _about(run.folder, model), [*moments, ("at the end", now)], bugs)


def _own_text(run, vocabulary):
    """What a run has written, or translated, for an example"""
    for name, column in (("translations.tsv", 0), ("predictions.tsv", -1), ("sample.txt", None)):
        if (run / name).is_file():
            lines = (run / name).read_text(encoding="utf-8").replace(GOES_ON, "\n").splitlines()
            if column is None:
                words = vocabulary.split(" ".join(lines[:1] if "____" in lines[0] else lines).replace("____", ""))
                return vocabulary.join(words[:FEW])
            return max(lines[1:6], key=len).split("\t")[column]
    raise UserError(f"{run.folder} has no text of its own to read; give one: --text \"…\"")


def _page(model, vocabulary, text, about, moments, bugs):
    read = reading(model, vocabulary, text)
    says = "translates" if isinstance(model, TranslationModel) else "reads"
    title = f"{type(model).__name__} {says} “{' '.join(read.text.split())}”"
    with _steps(max(len(moments), 1) + 2) as say:
        page = explore_model(read, title, about, moments, bugs, say)
    if len(bugs) == 1:
        page.data["chosen"] = 0                          # the page opens with it
    return page


@contextmanager
def _steps(total: int) -> Iterator[Callable[[str], None]]:
    """Gives a function that is told the name of each of so many steps before it begins: they take unequal times."""
    with progress_bar("exploring", total, even=False) as update:
        begun = count()
        yield lambda what: update(next(begun), what)
