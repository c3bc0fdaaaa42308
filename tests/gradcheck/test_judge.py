"""The verdict: three of them, with exit codes; where the numbers come from; and that hardly anything has to be imported."""

import ast
import subprocess
import sys
from pathlib import Path

from mini_tf import gradcheck as package
from mini_tf.gradcheck import Report, judge
from mini_tf.layers import Linear
from mini_tf.models import LanguageTransformer

import numpy as np
import pytest

from .contracts import normal

HERE = Path(package.__file__).parent
CORE = [*HERE.glob("measure/*.py"), *(HERE / f"{name}.py" for name in (
    "adapters", "errors", "verdict", "needs", "ownership", "program", "report", "source", "subject", "weights"))]  # fmt: skip
ABOVE = "planting", "explain", "check", "selftest", "examples", "learner", "command"


def right(x):
    return x * x, lambda dy: 2 * x * dy


def wrong(x):
    return x * x, lambda dy: x * dy


def blank(x):
    return x * x, lambda dy: ...


@pytest.mark.parametrize(("f", "verdict", "code"), [(right, "PASS", 0), (wrong, "FAIL", 1), (blank, "NOT TESTED", 2)])
def test_three_verdicts(f, verdict, code):
    report = judge(f, normal((2, 3)))
    assert isinstance(report, Report)
    assert (report.verdict, report.exit_code, report.ok, bool(report)) == (verdict, code, code == 0, code == 0)
    assert str(report).startswith(f"{verdict}: gradients of {f.__name__}")
    assert (report.changes, report.suspects, report.steps) == ([], [], [])       # reasons are not for judge


def test_a_wrong_gradient_outweighs_what_is_not_tested():
    report = judge(lambda x, z: (x * x + z, lambda dy: (x * dy, ...)), *normal((2, 3), (2, 3)))
    assert (report.verdict, report.refusals) == ("FAIL", ["dz is still `...`: a blank to fill"])
    assert Report("f", refusals=["something"]).verdict == "NOT TESTED"
    assert Report("f").verdict == "NOT TESTED"           # nothing judged


def test_the_seed_decides_and_the_same_seed_gives_the_same_numbers():
    numbers = [judge(wrong, normal((2, 3)), seed=seed).tensor("x").comparisons[0].yours for seed in (0, 0, 1)]
    assert numbers[0] == numbers[1] != numbers[2]
    assert judge(wrong, normal((2, 3)), name="my square").name == "my square"


def test_a_models_parameters_are_found_from_its_loss():
    rng = np.random.default_rng(0)
    model = LanguageTransformer(rng.standard_normal((7, 4)), T=3, L=1, H=2, m=3, train_embeddings=True)
    windows = rng.integers(0, 7, (2, 4))
    for f, inputs in ((model.loss, [windows]), (lambda: model.loss(windows), [])):
        report = judge(f, *inputs, budget=5)
        assert report.verdict == "PASS", report
        assert {tensor.name for tensor in report.tensors} == set(model.parameters())


def test_layers_that_a_function_names_are_checked():
    rng = np.random.default_rng(0)
    first, second = Linear(3, 2, rng), Linear(2, 2, rng)

    def both(x, factor=1.0):
        h, first_backward = first(x)
        y, second_backward = second(h)
        return y, lambda dy: first_backward(factor * second_backward(dy))

    x = normal((4, 3))
    names = ["x", "first.W", "first.b", "second.W", "second.b"]
    assert [t.name for t in judge(both, x).tensors] == names
    assert [t.verdict for t in judge(both, x, factor=2.0).tensors] == ["FAIL"] * 3 + ["PASS"] * 2
    assert [t.name for t in judge(both, x, params=["first.W"]).tensors] == ["x", "first.W"]
    report = judge(first, x, params={"W": first.W, "other": second.W})
    assert report.verdict == "PASS"
    assert "y does not depend on other" in report.notes


def imported(path):
    """The modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level                        # relative imports would not be seen
            yield node.module


@pytest.mark.parametrize("path", CORE, ids=[path.stem for path in CORE])
def test_the_core_imports_nothing_from_above(path):
    names = [*imported(path)]
    assert not [name for name in names if name.startswith(tuple(f"mini_tf.gradcheck.{room}" for room in ABOVE))]


def test_a_file_that_uses_nothing_of_mini_tf_needs_numpy_alone(tmp_path):
    program = (
        "import sys\n"
        "for name in ('scipy', 'numba', 'rich', 'typer', 'matplotlib', 'jinja2', 'safetensors', 'threadpoolctl'):\n"
        "    sys.modules[name] = None\n"
        "import numpy as np\n"
        "from mini_tf.gradcheck import judge\n"
        "report = judge(lambda x: (x * x, lambda dy: 2 * x * dy), np.arange(3.0))\n"
        "assert report, report\n"
        "assert 'mini_tf.ops' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
