"""Pages: HTML files that need nothing else, made of templates, styles and scripts that are files of their own.

    write_page("report.html", "report.html.jinja", title="…", …)

The explorer (`mini_tf/explore`) and the checker's report (`mini_tf/gradcheck/page.py`) are one family: they share
`base.css`, its colours in light and dark, and the highlighting of code.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from mini_tf.files import write_text
from mini_tf.types import PathLike

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

HERE = Path(__file__).parent


@lru_cache
def templates() -> Environment:
    """The Jinja environment. Whatever a template is given is escaped: a text full of <script> stays text."""
    folders = [HERE, HERE.parent / "explore" / "web", HERE.parent / "gradcheck"]
    made = Environment(
        loader=FileSystemLoader(folders), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.globals |= {"included": included, "as_json": as_json}
    return made


def rendered(template: str, **values) -> str:
    """A template's HTML, as a string."""
    return templates().get_template(template).render(**values)


def write_page(path: PathLike, template: str, **values) -> None:
    """Write a template's HTML to `path`, whole or not at all."""
    write_text(path, rendered(template, **values))


def included(*names: str) -> Markup:
    """The text of style sheets or scripts, to stand inside the page."""
    environment = templates()
    return Markup("\n".join(environment.loader.get_source(environment, name)[0] for name in names))


def as_json(value: Any) -> Markup:
    """A value as JSON that may stand in a <script>: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def highlighted(source: str) -> list[str]:
    """Python source as a list of lines of HTML, with Pygments' classes, which base.css colours."""
    html = highlight(source, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    return html.removesuffix("\n").split("\n")
