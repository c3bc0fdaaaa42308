"""What measures stands by itself; what explains, and what plants bugs, stands above it."""

import ast
from pathlib import Path

from mini_tf import gradcheck

import pytest

HERE = Path(gradcheck.__file__).parent
CORE = [*HERE.glob("measuring/*.py"), *(HERE / f"{name}.py" for name in ("judge", "report", "verdicts", "page"))]
ABOVE = ("mini_tf.gradcheck.planting", "mini_tf.gradcheck.reasons", "mini_tf.gradcheck.check", "mini_tf.training")


def imported(path):
    """The modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level                        # relative imports would not be seen
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", CORE, ids=[path.stem for path in CORE])
def test_the_core_imports_nothing_from_above(path):
    names = [*imported(path)]
    assert not [name for name in names if f"{name}.".startswith(tuple(f"{room}." for room in ABOVE))]
