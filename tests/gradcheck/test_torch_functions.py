"""People's torch.autograd.Functions: twelve that are right pass, 24 that are wrong fail, and most get the change that mends them.

    pytest tests/gradcheck/test_torch_functions.py --all
"""

from contextlib import suppress
from warnings import catch_warnings

from mini_tf.gradcheck import gradcheck, judge
from mini_tf.gradcheck.adapters import TorchFunction
from tests.cases import cases
from tests.gradcheck.contracts import edited, normal, verdicts
from tests.gradcheck.explain import mended

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
functions = pytest.importorskip("tests.gradcheck.torch_functions")
torch.set_num_threads(1)

# Not mended by one change: that says what is wrong in words, and the other names the promise that is broken.
WITHOUT_A_CHANGE = {"the norm as a constant", "writes into a saved tensor"}
QUICK = {"asks whether another needs one", "ignored rows", "repeated ids overwrite", "the wrong sign", "sum for mean",
         "turned the wrong way", "writes into grad_output", "nothing carried back"}          # fmt: skip
MENDED_QUICKLY = {"the wrong sign"}


def mistakes(quick):
    """All of them; those that are not quick with --all only"""
    return cases([one for one in functions.MISTAKES if one[0] in quick],
                 [(one,) for one in functions.MISTAKES if one[0] not in quick])              # fmt: skip


def run(check, thing, seed=1):
    inputs, options = functions.INPUTS[thing.__name__](seed)
    return check(thing, *inputs, **options, seed=seed)


@pytest.mark.parametrize(("name", "seeds"), cases([(name, (1,)) for name in functions.INPUTS],
                                                  [(name, range(2, 22)) for name in functions.INPUTS]))   # fmt: skip
def test_no_alarm(name, seeds):
    for seed in seeds:
        report = run(judge, getattr(functions, name), seed)
        assert report.verdict == "PASS", report
        assert {*verdicts(report).values()} == {"PASS"}
        assert report.judged
        assert report.notes == []


@pytest.mark.parametrize("mistake", mistakes(QUICK), ids=lambda mistake: mistake[0])
def test_alarm(mistake):
    _, name, old, new, wrong = mistake
    report = run(judge, edited(getattr(functions, name), old, new))
    assert report.verdict == "FAIL", report
    failed = [name for name, verdict in verdicts(report).items() if verdict == "FAIL"]
    assert failed == wrong.split() or report.findings[0].startswith(wrong), report


@pytest.mark.parametrize("mistake", mistakes(MENDED_QUICKLY), ids=lambda mistake: mistake[0])
def test_one_change_mends_it(mistake):
    """22 of the 24. Carried out, it is right at another seed, too."""
    what, name, old, new, _ = mistake
    wrong = edited(getattr(functions, name), old, new)
    report = run(gradcheck, wrong)
    assert (report.repair is None) == (what in WITHOUT_A_CHANGE), report
    if report.repair:
        assert run(judge, mended(wrong, report.repair), 2), report


@pytest.mark.exhaustive
def test_what_torchs_own_gradcheck_says():
    """The counts of labs/autograd_functions.md"""
    def passes(function):
        inputs, options = functions.INPUTS[function.__name__](1)
        tensors = [torch.tensor(x, requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in inputs]
        constants = [torch.tensor(options[name]) for name in ("cos", "sin") if options]

        def start(x, *more):
            return function.apply(x.clone(), *more)      # which LeakyReLU writes into

        with catch_warnings(action="ignore"), suppress(RuntimeError):    # of a saved tensor that was written into
            return torch.autograd.gradcheck(start, [*tensors, *constants], raise_exception=False)
        return False

    assert all(passes(getattr(functions, name)) for name in functions.INPUTS)
    missed = {what for what, name, old, new, _ in functions.MISTAKES if passes(edited(getattr(functions, name), old, new))}
    assert missed == {"asks whether another needs one", "a float32 in between", "writes into grad_output"}


@pytest.mark.parametrize("seed", cases([1], range(2, 12)))
def test_float32_inside(seed):
    inputs = normal((4, 5), (5,), seed=seed)
    assert judge(functions.UpcastRMSNorm, *inputs, seed=seed)
    for wrong, old, new in (("x", "(gw * n).mean", "(gw * n).sum"), ("weight", "(g * n)", "(1.0003 * g * n)")):
        report = judge(edited(functions.UpcastRMSNorm, old, new), *inputs, seed=seed)
        assert [name for name, verdict in verdicts(report).items() if verdict == "FAIL"] == [wrong], report
    assert judge(edited(functions.UpcastRMSNorm, "(g * n)", "(1.00003 * g * n)"), *inputs, seed=seed)       # goes unseen


def test_a_function_that_raises_is_not_tested():
    wrong = edited(functions.WeightNorm, "return grad_v, grad_g", "return grad_v.t(), grad_g")
    assert run(judge, wrong).verdict == "NOT TESTED"
    assert run(judge, functions.WeightNorm).place.startswith("tests/gradcheck/torch_functions.py:")


def test_on_another_device(monkeypatch):
    """Tensors are made on PyTorch's default device."""
    seen = []
    with pytest.raises(NotImplementedError), torch.device("meta"):
        adapter = TorchFunction(functions.Normalize, [np.ones((2, 3))])
        monkeypatch.setattr(functions.Normalize, "apply", lambda x: seen.append(x.device.type) or x)
        adapter.call(None, [np.ones((2, 3))], {})
    assert seen == ["meta"]


def test_writing_into_inputs():
    forward = edited(functions.Normalize, "norm = x.norm(dim=-1, keepdim=True)", "x *= 1.5; norm = x.norm(dim=-1, keepdim=True)")
    assert run(judge, forward).findings[0].startswith("the forward wrote into x")
    backward = edited(functions.Normalize, "size = norm + ctx.eps", "size = norm + ctx.eps; x *= 1.5")
    assert "backward wrote into x; another op may hold the same array" in run(judge, backward).findings
