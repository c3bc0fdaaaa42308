"""Docstrings as HTML. They are not Markdown: in formulas, shapes, columns and code, lines and spaces mean something.

A paragraph that has any of these is shown as it stands in the source; all others are prose, which is reflowed.
"""

import ast
import re
from textwrap import dedent

from mini_tf.pages import highlighted

from markupsafe import Markup, escape

# A formula, shapes with an arrow between them, parts separated by two or more spaces, an indented line
AS_WRITTEN = re.compile(r" [=→] | {2}|^ ", re.MULTILINE)
NEW_LINE = re.compile(r"\n(?=Source: |Raises? [A-Z])")   # the only lines of prose that do not join the one above


def as_html(docstring: str) -> Markup:
    """The docstring as HTML: a <pre> or <p> for each paragraph"""
    return Markup("\n").join(map(_paragraph, docstring.strip("\n").split("\n\n")))


def _paragraph(text):
    if _is_code(text):
        return Markup("<pre>{}</pre>").format(Markup("\n".join(highlighted(dedent(text)))))
    if AS_WRITTEN.search(text):
        return Markup("<pre>{}</pre>").format(_inline(dedent(text)))
    return Markup("<p>{}</p>").format(Markup("<br>\n").join(map(_inline, NEW_LINE.split(text))))


def _is_code(text):
    """True for indented Python, "…" allowed"""
    try:
        return text.startswith("    ") and bool(ast.parse(dedent(text).replace("…", "_")))
    except SyntaxError:
        return False


def _inline(text):
    """Text with `code` and the numbers of papers in it"""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"arXiv:(\d{4}\.\d{4,5})", r'<a href="https://arxiv.org/abs/\1">arXiv:\1</a>', html))
