"""Functions in other styles: their mistakes are caught, their right versions pass, and no words mislead."""

import inspect

from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.judge import judge
from tests.gradcheck import other_styles

import pytest

CASES = other_styles.CASES
each = pytest.mark.parametrize("case", CASES, ids=[name for name, *_ in CASES])


@each
def test_the_mistake_is_caught(case):
    name, function, inputs, mistake, _ = case
    report = judge(function, inputs, {}, name)
    assert report.verdict == "FAIL", mistake
    assert not report.findings


@each
def test_the_right_version_passes(case):
    name, function, inputs, _, fix = case
    source = inspect.getsource(function)
    source = source[source.index("\ndef ") :]
    for old, new in fix:
        assert source.count(old) == 1
        source = source.replace(old, new)
    namespace = dict(vars(other_styles))
    exec(source, namespace)
    report = judge(namespace[name], inputs, {}, name)
    assert report, report


# What was once said about these was misleading.
WORDS = {
    "rms_norm": "right but for the gradient through rinv (line 127): that counts 5 times",
    "rmsnorm_power": "off by a multiple of x",
    "cosine": "off by a multiple of a",
    "linear_overwrites": "Only the last of the 4 along axis 0 of dy comes back",
    "simple_rnn": "right but for the gradient of hs[-1] from line 580 (",
    "inverted_dropout": "a factor 1/0.75 is missing",
    "batch_norm_const_stats": "through mu (line 155) and through s (line 155): both are missing",
}


@pytest.mark.parametrize("name", WORDS)
def test_words_that_were_misleading_once(name):
    _, function, inputs, _, _ = next(case for case in CASES if case[0] == name)
    report = gradcheck(function, *inputs)
    assert WORDS[name] in report.explain()
    assert "not linear in dy" not in report.explain()
    if "off by a multiple of" in WORDS[name]:            # and of the reason
        assert any(t.perhaps.startswith("the term that the length of the row gives back") for t in report.tensors)


def test_a_line_of_right_and_wrong_gradients_is_not_shown_as_wrong():
    _, function, inputs, _, _ = next(case for case in CASES if case[0] == "mse_sign")
    suspects = "\n".join(gradcheck(function, *inputs).suspects)
    assert "return g, g  (number 2 of what it returns)" in suspects
    assert "err.size" not in suspects                    # right ones come from it, too
