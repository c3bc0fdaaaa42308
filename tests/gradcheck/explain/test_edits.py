"""How a change is written: brackets where they are needed only, and the rest as the author wrote it."""

import ast

from mini_tf.gradcheck.explain.edits import Kind, of_syntax, replacing, written
from mini_tf.gradcheck.explain.expressions import nodes_of
from mini_tf.gradcheck.explain.sites import Site
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
    assert edit.text.count("\n") == site.source.file.text.count("\n")


def test_the_authors_text_is_kept_and_the_shared_tree_unchanged():
    source = parsed(lines)
    before, count = ast.dump(source.node), 0
    for name in "acdefg":
        site = site_of(name)
        for node in nodes_of(site.node):
            for kind, new in of_syntax(node):
                edit = replacing(site, node, written(new, source), kind)
                count += 1
                ast.parse(edit.text)
    assert count > 40
    assert ast.dump(source.node) == before


def test_what_is_kept_is_kept_as_written():
    site = site_of("c")
    turned = next(new for _, new in of_syntax(site.node) if isinstance(new, ast.BinOp) and isinstance(new.op, ast.Div))
    assert written(turned, site.source) == "dy / b"
    site = site_of("g")
    assert written(site.node, site.source) == "dy . sum( axis = 0 )"
    mean = next(new for _, new in of_syntax(site.node) if isinstance(new, ast.Call) and new.func.attr == "mean")
    assert written(mean, site.source).replace(" ", "") == "dy.mean(axis=0)"
