"""Formulas of docstrings as MathML: all that ops compute is typeset, what the grammar refuses stays as it is."""

import ast
import inspect
import random
import re
from xml.etree import ElementTree

from mini_tf import layers
from mini_tf.explore.formulas import explained
from mini_tf.explore.mathml import Names, mathml
from mini_tf.explore.sheets import written_code
from mini_tf.ops.op import all_ops

import pytest

OPS = {op.name: op for op in all_ops() if op.formula.__module__.startswith("mini_tf.ops")}
TYPESET = {  # lines, and formulas in them
    "adam": (1, 1), "additive_attention": (6, 15), "attention": (5, 12), "copied": (2, 2), "cross_entropy": (2, 4),
    "dropout": (2, 2), "embedding": (2, 3), "gelu": (4, 7), "grouped_attention": (1, 2), "gru": (8, 20),
    "layer_norm": (6, 13), "linear": (2, 4), "lstm": (7, 23), "masked_softmax": (2, 2), "max_pool": (2, 2),
    "mean_pool": (2, 2), "mixture_cross_entropy": (3, 7), "mse": (2, 3), "product_pool": (2, 2), "relu": (2, 2),
    "residual_relu": (2, 4), "rms_norm": (2, 6), "rnn": (4, 11), "rotary": (1, 2), "sigmoid": (2, 2), "silu": (2, 3),
    "softmax": (2, 3), "sum_of_squares": (0, 0), "sum_pool": (2, 2), "swiglu": (2, 3), "tanh": (2, 2),
}  # fmt: skip
D, T, APPLIED = '<mi mathvariant="normal">d</mi>', '<mi mathvariant="normal">T</mi>', "<mo>&#x2061;</mo>"
OPEN, CLOSE = '<mo stretchy="false">(</mo>', '<mo stretchy="false">)</mo>'


def inner(formula, *names, **more):
    """The MathML of a formula, without the element around it"""
    math = mathml(formula, Names(names, **more))
    assert math is not None
    return re.fullmatch(r"<math [^>]*>(.*)</math>", math)[1]


@pytest.mark.parametrize("op", OPS)
def test_all_formulas_of_an_op_are_typeset(op):
    found = explained(inspect.getdoc(OPS[op].formula))
    assert (len(found.formulas), sum(line.count("<math") for line in found.formulas)) == TYPESET[op]
    assert not re.search(r"^\s*\S+ ([+−]?=|←) ", found.text, flags=re.M)
    for line in found.formulas:
        ElementTree.fromstring(line.replace("&nbsp;", " "))          # its elements are nested rightly


def test_ten_formulas():
    assert inner("y = x·W + b", "x") == (
        '<mrow><mi>y</mi><mo>=</mo><mrow><mrow><mi data-name="x">x</mi><mo>·</mo><mi>W</mi></mrow><mo>+</mo><mi>b</mi></mrow></mrow>')
    assert inner("dγ = Σ dy·x̂", "dgamma", "dy") == (
        f'<mrow><mrow data-name="dgamma">{D}<mi>γ</mi></mrow><mo>=</mo><mrow><mo>∑</mo><mrow><mrow data-name="dy">{D}<mi>y</mi></mrow>'
        "<mo>·</mo><mover><mi>x</mi><mo>^</mo></mover></mrow></mrow></mrow>")
    assert inner("r = 1/√(σ² + ε)") == (
        "<mrow><mi>r</mi><mo>=</mo><mfrac><mn>1</mn><msqrt><mrow><msup><mi>σ</mi><mn>2</mn></msup><mo>+</mo><mi>ε</mi></mrow></msqrt></mfrac></mrow>")
    assert inner("dW = xᵀ·dy") == (
        f"<mrow><mrow>{D}<mi>W</mi></mrow><mo>=</mo><mrow><msup><mi>x</mi>{T}</msup><mo>·</mo><mrow>{D}<mi>y</mi></mrow></mrow></mrow>")
    assert inner("y_i = exp(z_i) / Σ_j e_j") == (
        f"<mrow><msub><mi>y</mi><mi>i</mi></msub><mo>=</mo><mfrac><mrow><mi>exp</mi>{APPLIED}<mrow>{OPEN}<msub><mi>z</mi><mi>i</mi></msub>{CLOSE}</mrow></mrow>"
        "<mrow><munder><mo>∑</mo><mi>j</mi></munder><msub><mi>e</mi><mi>j</mi></msub></mrow></mfrac></mrow>")
    assert inner("h = −‖x_{t−1}‖²") == (
        '<mrow><mi>h</mi><mo>=</mo><mrow><mo form="prefix">−</mo><msup><mrow><mo stretchy="false">‖</mo><msub><mi>x</mi><mrow><mi>t</mi><mo>−</mo>'
        '<mn>1</mn></mrow></msub><mo stretchy="false">‖</mo></mrow><mn>2</mn></msup></mrow></mrow>')
    assert inner("dx = dy where x > 0, else 0") == (
        f"<mrow><mrow><mrow>{D}<mi>x</mi></mrow><mo>=</mo><mrow>{D}<mi>y</mi></mrow></mrow><mtext>&nbsp;where&nbsp;</mtext>"
        "<mrow><mi>x</mi><mo>&gt;</mo><mn>0</mn></mrow><mtext>,&nbsp;else&nbsp;</mtext><mn>0</mn></mrow>")
    assert inner("φ = t·base^(−2i/m)") == (
        '<mrow><mi>φ</mi><mo>=</mo><mrow><mi>t</mi><mo>·</mo><msup><mi class="word">base</mi><mrow><mo form="prefix">−</mo><mrow>'
        "<mrow><mn>2</mn><mo>&#x2062;</mo><mi>i</mi></mrow><mo>/</mo><mi>m</mi></mrow></mrow></msup></mrow></mrow>")
    assert inner("∂r/∂x_j = −r") == (
        "<mrow><mfrac><mrow><mi>∂</mi><mi>r</mi></mrow><mrow><mi>∂</mi><msub><mi>x</mi><mi>j</mi></msub></mrow></mfrac><mo>=</mo>"
        '<mrow><mo form="prefix">−</mo><mi>r</mi></mrow></mrow>')
    assert inner("u = tanh² x·Whᵀ") == (
        f'<mrow><mi>u</mi><mo>=</mo><mrow><mrow><msup><mi>tanh</mi><mn>2</mn></msup>{APPLIED}<mspace width=".17em"></mspace><mi>x</mi></mrow>'
        f"<mo>·</mo><msubsup><mi>W</mi><mi>h</mi>{T}</msubsup></mrow></mrow>")


@pytest.mark.parametrize("words", [
    "", "x (…, n), W (n, m)  →  y (…, m)", "y = max over the words of a history", "mean(x)", "x − 1", "y = x W", "y = (x", "y = x)",
    "y = f(", "y = x, the input", "y = x_", "y = √", "y = Σ", "Raises ValueError for T = 0.", "y == x", "y = 1 2", "y = [→h, ←h]",
    "y = " + 5000 * "(", "GPT(T=4)", "<b> = x", "y = <img src=x>",
])  # fmt: skip
def test_what_the_grammar_does_not_take_whole_is_refused(words):
    assert mathml(words, Names()) is None


def test_no_text_makes_the_grammar_fail():
    pieces = "x dγ Wx 12 = + − · / √ Σ Π ∂ _ ^ { } ( ) [ ] ‖ ᵀ ² ′ , . where else max log … ½ x̂ &".split() + [" "] * 20
    choose, found = random.Random(0), 0
    for _ in range(3000):
        math = mathml("y = " + "".join(choose.choices(pieces, k=choose.randint(1, 9))), Names(["x"]))
        if math is not None:
            ElementTree.fromstring(math.replace("&nbsp;", " "))
            found += 1
    assert found > 100


def test_a_line_is_typeset_with_the_words_after_its_formulas_or_not_at_all():
    found = explained("y = x·σ(x),   σ(x) = 1/(1 + exp(−x)), the sigmoid\n\nx (…)  →  y (…)\nz = x,   y = what is left")
    [line] = found.formulas
    assert line.count("<math") == 2
    assert line.endswith(',</span> <span class="words">the sigmoid</span></p>')
    assert found.text == "x (…)  →  y (…)\nz = x,   y = what is left"
    assert explained("loss = mean over rows of −ln p").formulas == []
    assert explained("After a word that never occurs,\np = p_0 stays.").formulas == []           # a sentence goes on
    assert explained("y = x + 1, which is\nmore than x").formulas == []
    found = explained("Going back:\ndy = dx")
    assert found.formulas[0] == '<p><span class="words">Going back:</span></p>'
    assert len(found.formulas) == 2
    assert found.text == ""


def test_words_are_escaped():
    [line] = explained('y = x;   "&lt;b" & `code`').formulas
    assert '<span class="words">&quot;&amp;lt;b&quot; &amp; <code>code</code></span>' in line
    assert explained("y = x;   <script>alert(1)</script>").formulas == []        # a relation in its words: it stays text


@pytest.mark.parametrize(("letters", "code", "names"), [
    ("γ", "gamma", ["gamma"]), ("dγ", "dgamma", ["dgamma"]), ("Φ", "Phi", ["Phi", "phi"]), ("φ", "phi", ["Phi", "phi"]),
    ("x", "x", ["x", "self.x"]), ("W", "self.W", ["self.W"]), ("Q", "query", ["query"]), ("dQ", "dquery", ["dquery"]),
    ("x̂", "normal", ["normal"]), ("g", None, ["gamma"]), ("x", None, ["dx"]),
])  # fmt: skip
def test_letters_and_the_names_of_the_code(letters, code, names):
    assert Names(names, {"Q": "query", "x̂": "normal"}).code(letters) == code


def test_a_docstring_says_which_letter_is_which_name():
    found = explained("dS = A·dA;   S, A are `scores`, `weights`\n\ny = x̂;   x̂ is `normal`", ["dscores", "weights", "normal"])
    first, second = found.formulas
    assert re.findall('data-(?:name|makes)="(.*?)"', first) == ["dscores", "dscores", "weights"]
    assert 'data-name="normal"' in second


def test_a_subscript_may_belong_to_the_name():
    html = inner("b_g = b + du_gᵀ", "b", "b_g", "du_g")
    assert html.startswith('<mrow><msub data-name="b_g"><mi>b</mi><mi>g</mi></msub><mo>=</mo>')
    assert f'<msubsup data-name="du_g"><mrow>{D}<mi>u</mi></mrow><mi>g</mi>{T}</msubsup>' in html
    assert inner("h_t = h", "h").startswith('<mrow><msub><mi data-name="h">h</mi><mi>t</mi></msub>')


def test_every_formula_can_be_read_aloud():
    """Its text without markup; math elements themselves are read by screen readers."""
    for op in OPS.values():
        doc = inspect.getdoc(op.formula)
        for math in re.findall("<math.*?</math>", "".join(explained(doc).formulas)):
            said = ElementTree.fromstring(math.replace("&nbsp;", " ")).get("alttext")
            assert said in doc


@pytest.mark.parametrize(("layer", "formula"), [
    (layers.Linear, "y = x·W + b"), (layers.LayerNorm, "y = γ·x̂ + β"), (layers.MultiHeadAttention, "y = Σ_h A^h·V^h·W^h"),
])  # fmt: skip
def test_a_layers_sheet_has_the_formula_of_its_class(layer, formula):
    sheet = written_code(layer.__call__.__code__).sheet
    assert f'alttext="{formula}"' in sheet.formulas[0]
    names = re.findall('data-name="(.*?)"', sheet.formulas[0])
    assert {"y", "x"} <= set(names) or "self.gamma" in names


def test_a_method_that_computes_something_else_does_not():
    assert written_code(layers.MultiHeadAttention.across.__code__).sheet.formulas != []
    split = written_code(layers.MultiHeadAttention.split.__code__).sheet
    assert split.formulas == []
    assert split.text == "(B, T, H·m) → (B, H, T, m): one matrix for each head"


def test_names_in_formulas_are_names_of_the_code():
    for op in OPS.values():
        sheet = written_code(op.formula.__code__).sheet
        source = {one.id for one in ast.walk(sheet.node) if isinstance(one, ast.Name)}
        marked = set(re.findall('data-name="(.*?)"', "".join(sheet.formulas)))
        unknown = {name for name in marked - source if name not in sheet.names}
        assert unknown == set()
        assert not sheet.formulas or marked, op.name
