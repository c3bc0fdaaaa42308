"""Every planted bug is found, and the words about it are right: their author had not seen the patterns."""

import importlib
import re

from mini_tf import ops
from mini_tf.gradcheck import gradcheck
from mini_tf.gradcheck.planting.bugs import BUGS
from tests.gradcheck.planted import report_on

import numpy as np
import pytest

# What the report has to say about each planted bug, read and judged one by one. None: no words and no repair.
# LINE: no words, but the one change that makes it right.
LINE = "One change makes it right"
WORDS = {
    "linear: dW is a mean": "6 × too small. Perhaps 6 is the number of rows of x: a mean where a sum belongs",
    "linear: batch counted twice": "2 × too large. Perhaps 2 is the size of axis 0 of x: .* a sum taken twice",
    "linear: sign of dx": "The sign is wrong",
    "linear: W not transposed": "gradient for W transposed",
    "linear: dW transposed": "the right gradient transposed",
    "linear: dx and dW swapped": "dx and dW are exchanged",
    "linear: db is a mean": "6 × too small. Perhaps 6 is the number of rows of x: a mean where a sum belongs",
    "linear: db of the first example": "Only the first of the 2 along axis 0 of dy comes back",
    "linear: one dx for all rows": "It is constant along axis 0, and the right one is not",
    "linear: one number for db": "All entries are the same number, .* Perhaps a sum or mean has no axis",
    "linear: one entry of dW": r"A single entry is wrong, \[3, 2\]",
    "relu: pattern lost": "where the function is switched off",
    "relu: pattern of dy": "not linear in dy",
    "relu: leaks": "where the function is switched off",
    "relu: threshold elsewhere": "where the function is switched off",
    "residual_relu: skip path lost": "dx is zero everywhere",
    "residual_relu: pattern lost": "where the function is switched off",
    "residual_relu: pattern on both ways": "your derivative of it is wrong: .* Yours is the pattern y > 0",
    "residual_relu: pattern of x": "Yours is the pattern x > 0, the right one the pattern y > 0",
    "residual_relu: swapped": "dx and dy are exchanged",
    "tanh: 1 − y": "Yours is 1 − y, the right one 1 − y²",
    "tanh: 1 − x²": "Yours is 1 − x², the right one 1 − y²",
    "tanh: left out": "dy is passed on unchanged",
    "sigmoid: y for y(1 − y)": r"Yours is y, the right one y·\(1 − y\)",
    "sigmoid: tanh's derivative": r"Yours is 1 − y², the right one y·\(1 − y\)",
    "sigmoid: derivative twice": "your derivative of it is wrong",
    "gelu: no product rule": r"Yours is Φ\(x\), the right one Φ\(x\) \+ x·φ\(x\)",
    "gelu: density not normalized": "your derivative of it is wrong",
    "gelu: approximate backward": "your derivative of it is wrong",
    "gelu, by tanh: 3 forgotten": "your derivative of it is wrong",
    "gelu, by tanh: inner derivative lost": "your derivative of it is wrong",
    "softmax: diagonal only": "the diagonal of the Jacobian only",
    "softmax: sum left out": "−y·Σ_j y_j·dy_j, by which the entries of a softmax depend on one another, is missing or wrong",
    "softmax: dy passed on": "dy is passed on unchanged",
    "softmax: wrong axis": LINE,
    "softmax: mean for sum": "−y·Σ_j y_j·dy_j, by which the entries of a softmax depend on one another, is missing or wrong",
    "masked_softmax: y forgotten": LINE,
    "masked_softmax: a leak": LINE,
    "masked_softmax: a constant added": "for dy = 0 it should give zeros, and gives .*no factor dy",
    "masked_softmax: NaN where nothing is allowed": "entries are NaN or infinite. Perhaps there is a division by zero",
    "masked_softmax: wrong axis": LINE,
    "masked_softmax: plus for minus": "−y·Σ_j y_j·dy_j, by which the entries of a softmax depend on one another, is missing or wrong",
    "layer_norm: mean(g) left out": r"but for the gradient through x.mean\(-1, keepdims=True\) from line \d+ \(centred = .*: that is missing",
    "layer_norm: x̂·mean(g·x̂) left out": r"but for the gradient through r \(line \d+\): that is missing",
    "layer_norm: both means left out": r"but for the gradient through r \(line \d+\) and through x.mean\(-1, keepdims=True\) .* both are missing",
    "layer_norm: γ forgotten": "gradient for gamma = 1. Perhaps gamma is forgotten",
    "layer_norm: γ after the means": "It is J·d[yY]",
    "layer_norm: divided by γ": "gradient for 1/gamma. Perhaps there is a division",
    "layer_norm: r left out": "Every row is the right one times a number of its own .*1/σ in layer norm",
    "layer_norm: sum for mean(g)": r"but for the gradient through x.mean\(-1, keepdims=True\) from line \d+ .*: that counts 4 times",
    "layer_norm: n − 1": r"but for the gradient through r \(line \d+\): that counts 1.333 times",
    "layer_norm: mean over words": LINE,
    "layer_norm: plus for minus": r"but for the gradient through r \(line \d+\): that has the wrong sign",
    "layer_norm: ε misplaced": r"Every row is the right one times a number of its own \(0.9999.*1/σ in layer norm",
    "layer_norm: dγ of x − μ": r"It is Σ dy·\(x − mean\) over the rows; right is Σ dy·x̂",
    "layer_norm: dγ of y": "It is Σ dy·y over the rows; right is Σ dy·x̂",
    "layer_norm: dγ and dβ swapped": "dgamma and dbeta are exchanged",
    "layer_norm: one number for dβ": "All entries are the same number, .* Perhaps a sum or mean has no axis",
    "layer_norm: dβ of the last word": "Only the last of the 3 along axis 1 of dy comes back",
    "attention: scale forgotten in dquery": "too large. Perhaps a factor scale is missing",
    "attention: scale twice in dkey": "too small. Perhaps .* there is a factor scale too many",
    "attention: scale in dvalue": "too small. Perhaps .* there is a factor scale too many",
    "attention: dquery and dkey swapped": "dquery and dkey are exchanged",
    "attention: A not transposed": "It is J·dY",
    "attention: dS not transposed": LINE,
    "attention: value not transposed": "gradient for value transposed",
    "attention: softmax's Jacobian left out": None,
    "attention: softmax skipped": None,
    "attention: mask not applied": "mask is not applied on the way back",
    "attention: last key's value": "Wrong only at index 3 of axis 2 of dvalue, where it is 0",
    "attention: one entry of dvalue": r"A single entry is wrong, \[0, 0, 1, 1\]",
    "attention: query's gradient from the query": LINE,
    "cross_entropy: sum for mean": "6 × too large. Perhaps 6 is the number of rows of logits: a mean is missing",
    "cross_entropy: dloss ignored": "dloss, the upstream gradient, is not used",
    "cross_entropy: one-hot not taken off": r"the term −onehot\(targets\) is missing or wrong",
    "cross_entropy: one-hot added": r"the term −onehot\(targets\) is missing or wrong",
    "cross_entropy: target's softmax overwritten": "Wrong only at the entry that targets names",
    "cross_entropy: sign": "The sign is wrong",
    "cross_entropy: not normalized": r"off by a multiple of softmax\(logits\). Perhaps that term is missing or wrong",
    "cross_entropy: ignored rows not zeroed": "Wrong only in rows of logits that do not count",
    "cross_entropy: divided by all rows": "6/4, and 4 is the number of rows of logits that count, 6 is the number of rows",
    "cross_entropy: first row only": "wrong entries are 0, the others are right",
    "mse: factor 2 forgotten": "2 × too small. Perhaps the 2 of a square is missing",
    "mse: mean over words": "4 × too large. Perhaps 4 is the size of axis 1 of prediction: a mean is missing",
    "mse: sign of dtarget": "The sign is wrong",
    "mse: dtarget zero": "dtarget is zero everywhere",
    "mse: dloss ignored": "dloss, the upstream gradient, is not used",
    "mse: sign of the difference": "Right but for the sign of",
    "embedding: repeats overwritten": "wrong for those it names more often, where the gradients of all places must add up",
    "embedding: repeats dropped by +=": r"must add up. Perhaps some are dropped .`G\[ids\] \+= d` keeps only the last",
    "embedding: divided by frequency": "the gradients of all places must add up.* or they are averaged",
    "mean_pool: not divided": "3 × too large. Perhaps 3 is the size of axis 1 of x: a mean is missing",
    "mean_pool: mask not applied": "mask is not applied on the way back",
    "mean_pool: first word only": "Wrong only at index 1, 2 of axis 1 of dx, where it is 0",
    "copied: everywhere": "each of the 4 places should get its own",
    "mixture: all the readout's": "what each row as a whole is multiplied by",
    "mixture: gate the other way": "The sign is wrong",
    "mixture: share of copying forgotten": LINE,
    "sum_pool: a mean": "3 × too small. Perhaps 3 is the size of axis 1 of x: a mean where a sum belongs",
    "dropout: not raised": r"too small. Perhaps a factor 1/\(1 − rate\) is missing",
    "dropout: raised twice": "too large. Perhaps .* there is a factor raised too many",
    "dropout: mask lost": "keep is not applied on the way back",
    "dropout: mask inverted": "the opposite of keep. Perhaps True and False are exchanged",
    "rnn: no time": r"but for the gradient of states\[-1\] from line \d+ \(states.append\(.*: that is missing",
    "rnn: truncated": "Only the first of the 3 along axis 1 of dh comes back",
    "rnn: derivative off by one": LINE,
    "rnn: dWh of the same step": LINE,
    "rnn: Wh not transposed": "what comes back from later steps is missing or wrong .in a recurrent network: da_{t.1}·Whᵀ",
    "rnn: Wx not transposed": LINE,
    "rnn: dWh transposed": "the right gradient transposed",
    "rnn: tanh forgotten": None,
    "rnn: dh0 halved": "2 × too small. Perhaps .* there is a factor 0.5 too many",
    "rnn: dh0 zero": "dh0 is zero everywhere",
    "rnn: dWx of the first example": "Only the first of the 2 along axis 0 of dh comes back",
    "rnn: dWh is a mean": "2 × too small. Perhaps 2 is the size of axis 0 of x: a mean where a sum belongs",
    "rnn: db of the last step": LINE,
    "sum_to: mean for sum": "8 × too small. Perhaps 8 is the number of rows of x: a mean where a sum belongs",
    "sum_to: leading axes not counted": None,
    "sum_to: first for sum": None,
    "MultiHeadAttention: key's way back forgotten": "no gradient for key.W: backward added none to it",
    "MultiHeadAttention: value's gradient not added": "lacks exactly what Linear gives back .called at .*attention.py:58.. Perhaps that is left out",
    "MultiHeadAttention: query counted twice": "exactly what MultiHeadAttention.across gives back .* too much. Perhaps that is added twice",
    "MultiHeadAttention: heads not joined": LINE,
    "MultiHeadAttention: heads not split": None,
    "MultiHeadAttention: query and key swapped": None,
    "attention across: gradients swapped": "dx and dz are exchanged",
    "TransformerLayer: residual path forgotten": "lacks exactly what TransformerLayer.after gives back .* Perhaps that is left out",
    "TransformerLayer: attention's way not added": "lacks exactly what TransformerLayer.before gives back .* Perhaps that is left out",
    "TransformerLayer: norm skipped": "dz is passed on unchanged",
    "TransformerLayer: dropout skipped": r"too small. Perhaps a factor 1/\(1 − rate\) is missing",
    "DecoderLayer: skip connection past the encoder forgotten": None,
    "Decoder: only one layer's gradient reaches the encoder": "lacks exactly what DecoderLayer gives back .* Perhaps that is left out",
    "Dropout: backward skipped": "dy is passed on unchanged",
    "embedding: absent words get a gradient": "Wrong only in rows of table that do not count",
    "Linear: bias forgotten": "no gradient for b: backward added none to it",
    "Linear: W replaced": "the gradient of W did not add up over two backwards",
    "LayerNorm: γ and β swapped": "dgamma and dbeta are exchanged",
    "LayerNorm: γ's gradient not divided": "2 × too large. Perhaps 2 is the size of axis 0 of x: .* a sum taken twice",
    "PositionalEncoding: P added to the gradient": "for dy = 0 it should give zeros, and gives .*no factor dy",
    "Parameter: overwrites": "the gradient of W did not add up over two backwards",
    "Parameter: adds in place": "backward wrote into dy",
    "tied readout: not accumulated": "no gradient for table: backward added none to it",
    "tied readout: replaced": "the gradient of table did not add up over two backwards",
    "tied readout: not transposed": "the right gradient transposed",
    "vec readout: axes exchanged": "the right numbers in wrong places. Perhaps an index, or the order in which axes are merged",
    "Trunk: layers in forward order": None,
    "Trunk: embeddings forgotten": "no gradient for embedding.table: backward added none to it",
    "LanguageTransformer: dloss ignored": "dloss, the upstream gradient, is not used",
    "LearnedPositions: forgotten": "no gradient for P: backward added none to it",
    "LearnedPositions: of the first text": "Only the first of the 2 along axis 0 of dy comes back",
    "LearnedPositions: a mean": "2 × too small. Perhaps 2 is the size of axis 0 of x: a mean where a sum belongs",
    "ClassWord: forgotten": "no gradient for v: backward added none to it",
    "ClassWord: of the first text": "Only the first of the 2 along axis 0 of dy comes back",
    "ClassWord: last word for the first": LINE,
    "Classifier: padding counts in the mean": None,
    "Classifier: last word for [CLS]": None,
    "Classifier: every word for [CLS]": None,
    "Classifier: [CLS] forgotten": "no gradient for cls.v: backward added none to it",
    "Classifier: residual path forgotten": None,
    "Classifier: dropout skipped": None,
    "MaskedWordModel: words that are not hidden": None,
    "MaskedWordModel: axes exchanged": None,
    "MaskedWordModel: first hidden word only": None,
    "Trunk: positions forgotten": "no gradient for positions.P: backward added none to it",
    "Trunk: scale forgotten": r"2 × too small. Perhaps a factor scale is missing.* \(scale = 2\)",
    "Trunk: last norm forgotten": "no gradient for norm.gamma: backward added none to it",
    "OneAttention: positions and attention exchanged": None,
}

# Those for which the change is looked for.
CHANGED = [bug for bug in BUGS if WORDS[bug.name] is LINE or bug.target in (ops.softmax, ops.rnn, ops.layer_norm)]


def in_words(report):
    """The diagnoses and broken promises: those of the first wrong step, if there is one."""
    if report.wrong_step:
        broken = [line for line in report.wrong_step.words if line.startswith("  FAIL") and "judged" not in line]
        return report.wrong_step.diagnoses + broken
    said = [" Perhaps ".join(filter(None, (t.diagnosis, t.perhaps))) for t in report.tensors if t.diagnosis]
    return said + report.findings


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_every_bug_is_found_and_the_words_are_the_right_ones(bug):
    report = report_on(bug.name, change=bug in CHANGED)
    assert not report, report
    if not report.findings:                              # a wrong number shows at each of the two points
        assert {c.point for t in report.tensors for c in t.comparisons if c.wrong} == {"given", "generic"}
    words, expected = in_words(report), WORDS[bug.name]
    if expected is None:
        assert not words
    elif expected is LINE:
        assert not words
        assert LINE in report.explain()
    else:
        assert re.search(expected, " ".join(words)), words


def test_how_many_get_right_words():
    """The figures in the checker's README."""
    assert WORDS.keys() == {bug.name for bug in BUGS}
    said = list(WORDS.values())
    assert (len(said), said.count(None), said.count(LINE)) == (167, 18, 14)


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", ["layer_norm: γ forgotten", "attention: mask not applied", "softmax: diagonal only"])
def test_the_words_do_not_depend_on_the_numbers(name, seed):
    assert re.search(WORDS[name], " ".join(in_words(report_on(name, seed))))


def test_a_repair_is_one_that_was_tried():
    """The repair that is shown is at the planted place and makes the gradient right."""
    repaired = 0
    for bug in CHANGED:
        report = report_on(bug.name, change=True)
        if report.repair:
            repaired += 1
            place, words, before, after = report.repair
            assert before != after
            assert words
            assert place.endswith(f"{bug.place[0].rpartition('/')[2]}:{bug.place[1]}")
    assert repaired >= 20


def test_lines_that_only_wrong_gradients_come_from():
    report = report_on("attention: softmax skipped")
    assert any("dscores" in line for line in report.suspects)
    assert not any("dvalue" in line for line in report.suspects)


def test_a_variable_that_was_never_set_is_no_traceback(rng):
    """gelu's backward encloses tanh_u, which only the approximation sets."""

    def twice_too_large(x):
        y, backward = ops.gelu(x)
        return y, lambda dy: 2 * backward(dy)            # the 2 is looked for in all that the lambda encloses

    assert "2 × too large" in gradcheck(twice_too_large, rng.standard_normal((2, 3))).explain()


def test_a_wrong_derivative_is_not_taken_for_a_lost_residual_path(rng):
    """tanh's dx = dy·(1 − y²) without the 1 is off by dy, like a residual block without its skip connection."""

    def tanh(x):
        y = np.tanh(x)
        return y, lambda dy: -dy * y * y

    words = gradcheck(tanh, rng.standard_normal((2, 3))).explain()
    assert "your derivative of it is wrong" in words
    assert "residual" not in words


def test_a_function_without_source_gets_no_lines():
    namespace = {"np": np}
    exec("def double(x):\n    def backward(dy):\n        return 3 * dy\n    return 2 * x, backward", namespace)
    report = gradcheck(namespace["double"], np.ones(3))
    assert report.suspects == []
    assert report.repair == []
    assert "1.5 × too large" in report.explain()


def scaled_attention(query, key, value):
    """Both scales are forgotten: two mistakes, and neither is in a line that all wrong gradients come from."""
    scale = query.shape[-1] ** -0.5
    A, softmax_backward = ops.softmax(scale * query @ key.swapaxes(-1, -2))

    def backward(dy):
        dA = dy @ value.swapaxes(-1, -2)
        dvalue = A.swapaxes(-1, -2) @ dy
        dscores = softmax_backward(dA)
        dquery = dscores @ key
        dkey = dscores.swapaxes(-1, -2) @ query
        return dquery, dkey, dvalue

    return A @ value, backward


def test_the_lines_have_every_mistake_and_no_repair_is_right_by_chance(rng):
    report = gradcheck(scaled_attention, *(rng.standard_normal(s) for s in ((2, 3, 4), (2, 5, 4), (2, 5, 6))))
    lines = "\n".join(report.suspects)
    assert "dquery = dscores @ key" in lines
    assert "dkey = dscores.swapaxes(-1, -2) @ query" in lines
    assert "dvalue" not in lines
    assert "0.5 *" not in " ".join(report.repair)        # √4 is 2, but a 2 is not what is missing


def test_lines_that_do_not_run_are_not_suspects(rng):
    def two_ways(x, exact=True):
        def backward(dy):
            dx = 3 * dy
            if not exact:
                dx = 5 * dy
            return dx

        return 2 * x, backward

    report = gradcheck(two_ways, rng.standard_normal(4))
    assert [line.partition("  ")[2] for line in report.suspects] == ["dx = 3 * dy", "return dx"]


def test_a_file_that_has_changed_since_its_import_is_named(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text("def twice(x):\n    def backward(dy):\n        return 3 * dy\n\n    return 2 * x, backward\n")
    monkeypatch.syspath_prepend(tmp_path)
    mine = importlib.import_module("mine")
    report = gradcheck(mine.twice, np.ones(3))
    assert "return 3 * dy" not in report.notes
    assert report.suspects
    assert not report.notes
    path.write_text(path.read_text().replace("3 * dy", "2 * dy"))
    report = gradcheck(mine.twice, np.ones(3))
    assert not report
    assert "its file has changed since it was imported" in report.explain()
    assert report.suspects == []
    assert report.repair == []


def test_functions_that_share_a_line_are_not_taken_for_changed_ones():
    report = gradcheck(lambda x: (2 * x, lambda dy: 3 * dy), np.ones(3))
    assert not report
    assert report.notes == []
