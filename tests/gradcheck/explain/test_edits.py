"""How a change is written: brackets where they are needed only, and the rest as the author wrote it."""

import ast

from mini_tf.gradcheck.explain.edits import Kind, of_syntax, replacing
from mini_tf.gradcheck.explain.sites import Site
from mini_tf.gradcheck.hooks import nodes_of
from mini_tf.gradcheck.source import source_of as parsed

import pytest


def lines(dy, W, b, x):
    a = dy @ W
    c = (dy) * b
    d = dy - b
    e = -dy ** 2
    f = dy[0, :2]
    g = dy . sum( axis = 0 )
    return a, c, d, e, f, g, x


def site_of(name):
    source = parsed(lines)
    statement = next(s for s in source.node.body if isinstance(s, ast.Assign) and s.targets[0].id == name)
    return Site(source, statement, statement.value, [source.node], True)


@pytest.mark.parametrize(("name", "part", "new", "after"), [
    ("a", "dy", "dy * b", "a = dy * b @ W"),
    ("a", "W", "W.T", "a = dy @ W.T"),
    ("a", "dy @ W", "dy + b", "a = dy + b"),
    ("c", "dy", "dy + b", "c = (dy + b) * b"),
    ("c", "dy", "x", "c = x * b"),
    ("d", "b", "b - x", "d = dy - (b - x)"),
    ("d", "dy", "dy - x", "d = dy - x - b"),
    ("e", "dy", "-dy", "e = -(-dy) ** 2"),
    ("f", "dy", "dy + b", "f = (dy + b)[0, :2]"),
    ("g", "dy", "dy.T", "g = dy.T . sum( axis = 0 )"),
])  # fmt: skip
def test_brackets(name, part, new, after):
    site = site_of(name)
    node = next(n for n in nodes_of(site.node) if site.source.file.of(n) == part)
    edit = replacing(site, node, new, Kind.VALUE)
    assert edit.after == after
    assert "\n" not in edit.new


def test_the_authors_text_is_kept():
    count = 0
    for name in "acdefg":
        site = site_of(name)
        for node in nodes_of(site.node):
            for kind, new in of_syntax(node, site.text_of):
                ast.parse(replacing(site, node, new, kind).after)
                count += 1
    assert count > 40
    assert "dy / b" in texts(site_of("c"))
    assert "dy . mean(axis=0)" in texts(site_of("g"))


def texts(site):
    """What small changes of a whole expression make of it"""
    return [new for _, new in of_syntax(site.node, site.text_of)]


def test_the_letters_of_an_einsum_in_the_authors_quotes():
    node = ast.parse("np.einsum('ij,jk->ik', a, b)", mode="eval").body.args[0]
    assert {new for _, new in of_syntax(node, ast.unparse)} == {"'ji,jk->ik'", "'ij,kj->ik'", "'ij,jk->ki'"}
