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
from mini_tf.pages.reference.docstrings import as_html
from mini_tf.pages.site import broken_links

BUILT = ["mini_tf.gradcheck", "mini_tf.layers", "mini_tf.metrics", "mini_tf.ops", "mini_tf.trace", "mini_tf.training"]


@pytest.fixture(scope="module")
def built():
    """{name of the page: its HTML} of some packages"""
    return {path.removesuffix(".html"): html for path, html in reference.rendered_pages(BUILT).items()}


def text_of(html):
    return unescape(re.sub(r"<[^>]*>", "", html))


def section(page, name):
    """The part of a page about one name."""
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.S)
    assert found, name
    return found[0]


def public_docstrings():
    """(name, docstring) of every public function, class and method, and of the packages"""
    for package in map(import_module, reference.PACKAGES):
        yield package.__name__, package.__doc__.strip()
        for name in getattr(package, "__all__", vars(package)):
            thing = getattr(package, name)
            if not callable(thing) or not getattr(thing, "__module__", "").startswith("mini_tf"):
                continue
            inside = vars(thing).items() if inspect.isclass(thing) else ()
            for path, each in [(name, thing), *((f"{name}.{n}", each) for n, each in inside)]:
                if docstring := callable(each) and inspect.getdoc(each):
                    yield f"{package.__name__}.{path}", docstring


def test_a_formula_and_columns_stand_as_they_are_and_prose_is_reflowed():
    assert as_html("y = x·W,   b_i < 0\nx (…, in)  →  y") == "<pre>y = x·W,   b_i &lt; 0\nx (…, in)  →  y</pre>"
    assert as_html("window  in words\nteam    several,\n        of processes").count("\n") == 2
    prose = as_html("Has *stars*, snake_case and `code_like(*this)`,\nin two lines.\nSource: arXiv:1607.06450")
    assert prose == (
        "<p>Has *stars*, snake_case and <code>code_like(*this)</code>,\nin two lines.<br>\n"
        'Source: <a href="https://arxiv.org/abs/1607.06450">arXiv:1607.06450</a></p>'
    )


def test_indented_python_is_highlighted():
    assert as_html("    for x in words:\n        …").startswith('<pre><span class="k">for</span>')
    assert as_html("    r·g   through x") == "<pre>r·g   through x</pre>"


def test_no_character_means_anything_in_html():
    assert as_html("<script>`<b>`</script>") == "<p>&lt;script&gt;<code>&lt;b&gt;</code>&lt;/script&gt;</p>"


def test_nothing_of_any_docstring_is_lost_or_changed():
    found = 0
    for name, docstring in public_docstrings():
        shown = re.sub(r"[\s`]", "", text_of(as_html(docstring)))
        assert shown == re.sub(r"[\s`]", "", docstring), name
        found += 1
    assert found > 300


def test_the_formulas_of_an_op_stand_as_they_are(built):
    shown = text_of(section(built["mini_tf/ops"], "layer_norm"))
    assert "\nx (…, n), gamma (n,), beta (n,)  →  y (…, n)\n" in shown.replace(">", ">\n")
    assert "y = γ·x̂ + β,   x̂ = (x − μ)·r,   r = 1/√(σ² + ε)" in shown


@pytest.mark.parametrize("name", ops.__all__)
def test_every_op_is_a_function_with_its_formulas_and_its_source(built, name):
    html = section(built["mini_tf/ops"], name)
    assert f'<span class="def">def</span>\n        <span class="name">{name}</span>' in html
    assert '<div class="docstring"><pre>' in html
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
    assert '<section id="as_matrix">' not in built["mini_tf/ops"]
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
