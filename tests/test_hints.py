"""Every public function and method says what goes in and what comes out, so that an editor can show it."""

import ast
import inspect
from pathlib import Path

import mini_tf
from mini_tf import ops
from mini_tf.types import Array, Backward

import pytest

PACKAGE = Path(mini_tf.__file__).parent
CALLED_BY_OTHERS = ("__init__", "__call__")


def _is_private(name):
    return name.startswith("_") and not name.startswith("__")


FILES = [
    path for path in sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    if not any(map(_is_private, path.parts))
]  # fmt: skip


def public_functions(tree, inside=""):
    """(dotted name, syntax tree) of every public function and method; not of functions inside functions

    Nor of loops that Numba compiles: their types are in what decorates them.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            if any(ast.unparse(decorator).startswith(("compiled(", "njit")) for decorator in node.decorator_list):
                continue
            if not node.name.startswith("_") or node.name in CALLED_BY_OTHERS:
                yield inside + node.name, node
        elif isinstance(node, ast.ClassDef):
            if not node.name.startswith("_"):
                yield from public_functions(node, f"{inside}{node.name}.")
        else:
            yield from public_functions(node, inside)    # what is inside an `if` or a `try`


def without_hints(source):
    """["layer_norm: x, return", …]: the functions that lack hints, and for what. *args and **kwargs need none."""
    found = []
    for name, function in public_functions(ast.parse(source)):
        given = function.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        missing = [p.arg for p in parameters if p.annotation is None and p.arg not in ("self", "cls")]
        if function.returns is None and function.name != "__init__":
            missing.append("return")
        if missing:
            found.append(f"{name}: {', '.join(missing)}")
    return found


@pytest.mark.parametrize("path", FILES, ids=[path.as_posix() for path in FILES])
def test_public_functions_have_hints(path):
    assert without_hints((PACKAGE / path).read_text(encoding="utf-8")) == []


def test_a_function_without_hints_is_found():
    source = """
def bare(x, *, y: int = 0, **options): ...
def returns_something(x: int): ...
def hinted(x: int, *more) -> int:
    def backward(dy): ...
def _private(x): ...
class Model:
    def __init__(self, n): ...
    def __call__(self, x: int): ...
    def __len__(self): ...
    @classmethod
    def of(cls, words) -> "Model": ...
    @property
    def c(self): ...
class _Private:
    def read(self, new): ...
if True:
    def in_a_block(x) -> None: ...
"""
    assert without_hints(source) == [
        "bare: x, return", "returns_something: return", "Model.__init__: n", "Model.__call__: return",
        "Model.of: words", "Model.c: return", "in_a_block: x",
    ]  # fmt: skip


def test_the_ops_and_their_layers_are_among_the_files():
    assert {Path("ops/softmax.py"), Path("layers/attention.py"), Path("__init__.py")} <= set(FILES)


def test_an_op_shows_the_signature_of_its_formula():
    signature = inspect.signature(ops.layer_norm)
    assert {name: p.annotation for name, p in signature.parameters.items()} == {
        "x": Array, "gamma": Array, "beta": Array, "eps": float,
    }  # fmt: skip
    assert signature.return_annotation == tuple[Array, Backward]
