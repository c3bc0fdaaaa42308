"""Pages: HTML files that need nothing else, made of templates, styles and scripts that are files of their own.

    write_page("report.html", Path(__file__).with_name("report.html.jinja"), title="…", …)

All of them (the explorer's, the checker's report, the site's) share `base.css`, with its colours in light and dark, and
the highlighting of code.
"""

import json
from functools import lru_cache, partial
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
def _environment(folder: Path) -> Environment:
    """For the templates of a folder. What a template is given is escaped: a text full of <script> stays text."""
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals |= {"included": partial(included, folder), "as_json": as_json}
    return environment


def rendered(template: Path, **values) -> str:
    """A template's HTML, as a string."""
    return _environment(template.parent).get_template(template.name).render(**values)


def write_page(path: PathLike, template: Path, **values) -> None:
    """Write a template's HTML to `path`, whole or not at all."""
    write_text(path, rendered(template, **values))


def included(folder: Path, *names: str) -> Markup:
    """The text of style sheets or scripts from the template's folder, or from this one, to stand inside the page."""
    files = (folder / name if (folder / name).exists() else HERE / name for name in names)
    return Markup("\n".join(file.read_text(encoding="utf-8") for file in files))


def as_json(value: Any) -> Markup:
    """A value as JSON that may stand in a <script>: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def highlighted(source: str) -> list[str]:
    """Python source as a list of lines of HTML, with Pygments' classes, which base.css colours."""
    html = highlight(source, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    return html.removesuffix("\n").split("\n")
