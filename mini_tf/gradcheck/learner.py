"""Your own code, in a file of your own: load it, and choose its arguments (`arguments.py` says how).

    my_ops.py::affine           a function, or affine_forward with affine_backward
    my_ops.py::MLP              an object of a class; MLP.loss is its method loss
    net/layers.py::Hidden       in a file of a package
"""

import importlib
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_tf.errors import UserError
from mini_tf.gradcheck.adapters import is_torch_function, partner_of
from mini_tf.gradcheck.arguments import constructed, inputs_for, values_of
from mini_tf.gradcheck.errors import FAILURES
from mini_tf.gradcheck.measure.promises import told
from mini_tf.gradcheck.verdict import check_lock
from mini_tf.places import is_theirs

import numpy as np

Loaded = tuple[Any, list[Any], dict[str, Any]]           # what gradcheck takes: f, *inputs, **options


def load(target: str, shapes: Sequence[str] = (), seed: int = 0, args: Sequence[str] = (), **more: Any) -> Loaded:
    """The function, or an object of the class, of "file.py::name", with inputs drawn at random.

    shapes   as the options have them: ["x=3,4", "ids=2,3 int<7", "y=onehot(4,5)"]; without them, the docstring's
    args     values of arguments, for which no array is drawn: ["stride=2", "W=randn(3,2)"]
    more     gradcheck's own arguments: methods=("go", "come_back"), constants=["pe"]

    Raises UserError for a file that cannot be loaded, with the line, and where a shape or a value is missing.
    """
    path, _, name = target.partition("::")
    rng, pair = np.random.default_rng(seed), more.get("methods", ("forward", "backward"))
    f, method = _chosen(Path(path), name, pair)
    values = values_of(args, rng)
    with running(target), _in_words():
        if inspect.isclass(f) and not is_torch_function(f):
            f, values = constructed(f, values, seed)
            f = getattr(f, method) if method else f
        inputs, options = inputs_for(f, shapes, values, rng, pair[0])
    return f, inputs, options | more | {"constants": [*options["constants"], *more.get("constants", ())]}


def is_exercise(target: str) -> bool:
    """True for a file that begins with the word Exercise, and that is not its solution."""
    path = Path(target.partition("::")[0]).resolve()
    return path.is_file() and path.parent.name != "solutions" and path.read_bytes().startswith(b'"""Exercise ')


def running(target: str) -> AbstractContextManager[None]:
    """While a function of "file.py::function" runs, imports inside it find what lies beside its file."""
    file = target.partition("::")[0]
    return _importing_beside(Path(file).resolve()) if file.endswith(".py") else nullcontext()


def _chosen(path: Path, name: str, pair: Sequence[str]) -> tuple[Any, str]:
    """(the function or class of that name, the name of its method or ""); without a name, the only one there is"""
    module = _executed(path)
    there = {n: x for n, x in vars(module).items() if _can_be_checked(x, pair)}
    cls, _, method = name.partition(".")
    if method and callable(getattr(getattr(module, cls, None), method, None)):
        return getattr(module, cls), method
    for one in (name, f"{name}_forward", f"forward_{name}"):
        if one in there:
            return there[one], ""
    own = [n for n, x in there.items() if x.__module__ == module.__name__]
    own = [n for n in own if there[n] not in [partner_of(there[one]) for one in own]]
    if not name and len(own) == 1:
        return there[own[0]], ""
    absent = (f"it has no function {name}, and no class {name} with {' and '.join(pair)} (another method is "
              f"{cls}.loss; other names are --methods go,come_back)")    # fmt: skip
    known = f"there are: {', '.join(own)}" if own else "it defines none"
    raise UserError(f"{path}: {absent if name else 'which function or class'}; {known}")


def _can_be_checked(x: Any, pair: Sequence[str]) -> bool:
    """True for a function, an op, and a class whose objects can be called, or have this pair of methods"""
    if inspect.isclass(x):
        return "__call__" in dir(x) or all(callable(getattr(x, name, None)) for name in pair)
    return inspect.isfunction(x) or hasattr(x, "formula")


def _executed(path: Path) -> ModuleType:
    """The file as a new module; of a package, if there is __init__.py beside it: `from .other import …` works"""
    if not path.is_file() or path.suffix != ".py":
        came = "is not a .py file" if path.exists() else "is not there"
        raise UserError(f"{path} {came}, expected a Python file and a function of it, as in my_ops.py::softmax")
    path = path.resolve()
    package = ".".join(path.parent.relative_to(_root(path)).parts)
    module = ModuleType(f"{package}.{path.stem}" if package else f"learner_{path.stem}")
    module.__file__, module.__package__ = str(path), package
    with _importing_beside(path), _in_words():
        if package:
            importlib.import_module(package)
        sys.modules[module.__name__] = module            # dataclasses look for their module there
        # Compiled anew each time: Python's own cache misses a change within the same second.
        exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)
    return module


def _root(path: Path) -> Path:
    """The nearest folder above without __init__.py: packages are imported from there."""
    return next(folder for folder in path.parents if not (folder / "__init__.py").exists())


@contextmanager
def _importing_beside(path: Path) -> Iterator[None]:
    """Let imports find what lies at a file's root, in the current folder and beside the file; forget it afterwards."""
    folders = list(dict.fromkeys([_root(path), Path.cwd(), path.parent]))
    with check_lock:
        modules, before, bytecode = dict(sys.modules), sys.path[:], sys.dont_write_bytecode
        sys.path[:0] = map(str, folders)
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path[:], sys.dont_write_bytecode = before, bytecode
            for name in [n for n, one in sys.modules.items() if n not in modules and _is_theirs(one)]:
                del sys.modules[name]
            sys.modules.update(modules)                  # the file itself may have replaced its module


def _is_theirs(module: ModuleType) -> bool:
    own = getattr(module, "__dict__", {})                # torch.classes has whatever attribute it is asked for
    return any(is_theirs(one) for one in (own.get("__file__"), *own.get("__path__", ())) if one)


@contextmanager
def _in_words() -> Iterator[None]:
    """An error in the learner's file, or in one that it imports, becomes a UserError that says where and what."""
    try:
        yield
    except UserError:
        raise
    except FAILURES as error:
        raise UserError(told(error)) from error
