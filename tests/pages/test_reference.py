"""The API reference: what our docstrings become, and that every public name is there."""

import inspect
import re
from configparser import ConfigParser
from html import unescape
from importlib import import_module
from pathlib import Path

from mini_tf import ops

import pytest

pytest.importorskip("pdoc", reason="pdoc is not installed: pip install 'mini-tf[docs]'")
from mini_tf.pages import reference
from mini_tf.pages.reference.docstrings import as_html, blocks
from mini_tf.pages.site import broken_links

BUILT = ["mini_tf.gradcheck", "mini_tf.layers", "mini_tf.metrics", "mini_tf.ops", "mini_tf.trace", "mini_tf.training"]


@pytest.fixture(scope="module")
def built():
    """{name of the page: its HTML} of some packages"""
    return {path.removesuffix(".html"): html for path, html in reference.made(BUILT).items()}


def text_of(html):
    return unescape(re.sub(r"<[^>]*>", "", html))


def formulas(html):
    """The text of each formula's line, its parts joined by single spaces"""
    return [" ".join(text_of(line).split()) for line in re.findall(r'<div class="formula">(.*?)</div>', html, re.S)]


def section(page, name):
    """The part of a page about one name."""
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.S)
    assert found, name
    return found[0]


def public_docstrings():
    """(name, docstring, indent) of every public function, class and method, and of the packages"""
    for package in map(import_module, reference.PACKAGES):
        yield package.__name__, package.__doc__.strip(), 0
        for name in getattr(package, "__all__", vars(package)):
            thing = getattr(package, name)
            if not callable(thing) or not getattr(thing, "__module__", "").startswith("mini_tf"):
                continue
            inside = vars(thing).items() if inspect.isclass(thing) else ()
            for path, each, indent in [(name, thing, 4), *((f"{name}.{n}", each, 8) for n, each in inside)]:
                if docstring := callable(each) and inspect.getdoc(each):
                    yield f"{package.__name__}.{path}", docstring, indent


DOCSTRING = '''\
y = x·W + b,   b_i < 0;   Σ over all rows
x (…, in), W (in, out)  →  y (…, out)
dx = dy·Wᵀ;   None for the mask

Prose has *stars* and snake_case_names in it, and is wrapped where a line of the source would be longer than it may be,
so that it is one paragraph. `code_like(*this)` and a|b are what they are.
mask: bool, True where a query may see a key
window  in words
team    several processes,
        which share the text

    for x in words:
        print(x)                 # two  spaces

flavour   plays   what it is
lab           9   the lab's
clean        11   ours
Raises ValueError for x < 0.
Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450
Szegedy et al. 2015
'''


def test_a_docstring_keeps_its_lines():
    assert blocks(DOCSTRING) == [
        ("formula", [("y = x·W + b,", True), ("b_i < 0;", False), ("Σ over all rows", False)]),
        ("formula", [("x (…, in), W (in, out)  →  y (…, out)", True)]),
        ("formula", [("dx = dy·Wᵀ;", True), ("None for the mask", False)]),
        ("prose", "Prose has *stars* and snake_case_names in it, and is wrapped where a line of the source would be "
         "longer than it may be, so that it is one paragraph. `code_like(*this)` and a|b are what they are."),
        ("line", "mask: bool, True where a query may see a key"),
        ("names", [("window", "in words"), ("team", "several processes, which share the text")]),
        ("code", "for x in words:\n    print(x)                 # two  spaces"),
        ("table", [["flavour", "plays", "what it is"], ["lab", "9", "the lab's"], ["clean", "11", "ours"]]),
        ("raises", "Raises ValueError for x < 0."),
        ("source", "Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450"),
        ("source", "Szegedy et al. 2015"),
    ]  # fmt: skip


def test_no_character_means_anything_in_html():
    html = as_html(DOCSTRING)
    assert '<span class="words">b_i &lt; 0;</span>' in html
    assert "*stars* and snake_case_names" in html
    assert "<code>code_like(*this)</code> and a|b" in html
    assert '<p class="line"><code>mask</code>: bool' in html
    assert '<a href="https://arxiv.org/abs/1607.06450">arXiv:1607.06450</a>' in html
    assert '<td class="number">11</td>' in html
    assert as_html("<script>`<b>`</script>") == \
        '<p class="prose">&lt;script&gt;<code>&lt;b&gt;</code>&lt;/script&gt;</p>'  # fmt: skip


def test_nothing_of_any_docstring_is_lost_or_changed():
    found = 0
    for name, docstring, indent in public_docstrings():
        shown = re.sub(r"[\s`]", "", text_of(as_html(docstring, indent)))
        assert shown == re.sub(r"[\s`]", "", docstring), name
        found += 1
    assert found > 300


def test_the_formulas_of_an_op_are_lines_of_their_own(built):
    html = section(built["mini_tf/ops"], "layer_norm")
    assert formulas(html) == [
        "y = γ·x̂ + β, x̂ = (x − μ)·r, r = 1/√(σ² + ε); μ and σ² are mean and variance over the last axis",
        "x (…, n), gamma (n,), beta (n,) → y (…, n)",
        "With g = dy·γ, the gradient of x̂: dx = r·g − r·mean(g) − r·x̂·mean(g·x̂)",
        "dγ = Σ dy·x̂ and dβ = Σ dy differentiate y = γ·x̂ + β; Σ over the leading axes",
    ]
    assert '<p class="source">Source: Ba, Kiros, Hinton 2016' in html
    assert formulas(section(built["mini_tf/layers"], "Dropout")) == [
        "y = x·keep/(1 − rate) while training, y = x otherwise; x (…) → y (…)"
    ]


@pytest.mark.parametrize("name", ops.__all__)
def test_every_op_is_a_function_with_its_formulas_and_its_source(built, name):
    html = section(built["mini_tf/ops"], name)
    assert f'<span class="def">def</span>\n        <span class="name">{name}</span>' in html
    assert len(formulas(html)) >= 2
    source = text_of(re.search(r"</summary>\s*<pre>(.*?)</pre>\s*</details>", html, re.S)[1])
    assert source.startswith("@op(")
    assert "def backward(" in source
    assert '"""' not in source                           # the docstring stands above it
    assert "numpy.ndarray" not in html


def test_public_names_are_there_and_private_ones_are_not(built):
    for package in BUILT:
        module = import_module(package)
        for name in getattr(module, "__all__", []):
            assert f'<section id="{name}">' in built[package.replace(".", "/")], name
            assert f'.html#{name}"' in built["index"], name
    assert '<section id="rows_of">' not in built["mini_tf/ops"]
    assert '<section id="bleu">' in built["mini_tf/metrics"]             # imported to be offered
    assert 'id="Linear.__call__"' in built["mini_tf/layers"]
    assert 'id="Adam.step"' in built["mini_tf/training"]                 # its base is not public
    assert 'href="#Layer.parameters"' in section(built["mini_tf/layers"], "Linear")
    assert "layers.layer.Layer" not in text_of(built["mini_tf/layers"])
    assert str(Path.cwd()) not in "".join(built.values())


def test_links_lead_somewhere_and_nothing_is_fetched(built):
    site = {f"reference/{page}.html": html for page, html in built.items()} | {"index.html": ""}
    assert list(broken_links(site)) == []
    for html in built.values():
        assert not re.search(r"<script|<link|@import|src=\"http|url\(['\"]?http", html)


def test_the_extras_have_pdoc_and_the_package_its_templates():
    config = ConfigParser()
    config.read(Path(reference.__file__).parents[3] / "setup.cfg")
    assert "pdoc" in config["options.extras_require"]["docs"]
    assert "*.jinja2" in config["options.package_data"]["*"]
