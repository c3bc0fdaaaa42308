"""The site: everything there is to read, as one folder of HTML that needs no network.

    python -m mini_tf.pages site DIR         # then open DIR/index.html

It starts at README.md and follows the links: Markdown becomes a page, a folder a list of its pages, a picture is
copied, any other file becomes a page that shows its text. The explorer and the reference are added. Nothing is written
before each link has been followed to its file and its heading.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from urllib.parse import unquote

from mini_tf.errors import UserError
from mini_tf.files import PathLike, replacing
from mini_tf.pages import HERE, rendered
from mini_tf.progress import progress_bar

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

ROOT = Path(__file__).parents[2]
NAVIGATION = {
    "README.md": "mini_tf", "labs/README.md": "Labs", "explorer.html": "Explorer",
    "mini_tf/gradcheck/README.md": "Checker", "labs/your_own.md": "Your own", "reference/index.html": "Reference",
    "CONTRIBUTING.md": "Contributing",
}  # fmt: skip
COPIED = (".png", ".svg", ".html")
EXTERNAL = re.compile(r"[a-z]+:")                       # https:, mailto:, data:


def build(folder: PathLike, others: Mapping[str, str], root: PathLike = ROOT) -> None:
    """Write the site of the repository at `root` into a folder: a new one, an empty one, or that of an earlier site.

    others: {path in the site: HTML} of pages that are no files of the repository, the explorer's and the reference's.
    Raises UserError if a link is broken, before anything is written, and NotWritten.
    """
    folder, root = Path(folder), Path(root)
    if not (root / "README.md").is_file():
        raise UserError("the site is made of files that pip does not install: work in a clone of mini_tf's repository")
    if folder.exists() and not _may_be_filled(folder):
        raise UserError(f"{folder} is neither new nor empty nor a site of mini_tf: choose another folder")
    files = Site(root, others).files
    if broken := [f"{link} in {page}" for page, link in broken_links(files)]:
        raise UserError(f"broken links: {', '.join(broken)}")
    with progress_bar("writing", len(files)) as update:
        for done, (path, content) in enumerate(files.items(), 1):
            with replacing(folder / path) as temporary:
                temporary.write_bytes(content if isinstance(content, bytes) else content.encode())
            update(done, path)


def _may_be_filled(folder):
    index = folder / "index.html"
    is_site = index.is_file() and "mini_tf.pages.site" in index.read_text(encoding="utf-8", errors="replace")
    return folder.is_dir() and (is_site or not any(folder.iterdir()))


class Site:
    """The files of a site, not yet written: {path in the site: its HTML, or the bytes of a picture}."""

    def __init__(self, root: Path, others: Mapping[str, str]):
        self.root = root
        self.files: dict[str, str | bytes] = {}
        self.navigation = [path for path in NAVIGATION if path in others or (root / path).exists()]
        self.waiting = [path for path in self.navigation if path not in others]
        for path in self.waiting:                        # it grows: each page adds what it links to
            if _address(path) not in self.files:
                copied = path.endswith(COPIED)
                self.files[_address(path)] = (root / path).read_bytes() if copied else self._page(path)
        self.files |= others

    def _page(self, path):
        text = self._markdown(path)
        tokens = MARKDOWN.parse(text)
        for token in (inline for block in tokens for inline in block.children or ()):
            for name in {"href", "src"} & {*token.attrs}:
                token.attrs[name] = self._followed(path, token.attrs[name])
        siblings = [] if (self.root / path).with_name("README.md").exists() else self._siblings(path)
        return rendered(
            HERE / "site.html.jinja", title=_title(text),
            body=Markup(MARKDOWN.renderer.render(tokens, MARKDOWN.options, {})),
            headings=[(opened.attrs["id"], Markup(MARKDOWN.renderInline(title.content)))
                      for opened, title in pairwise(tokens) if opened.type == "heading_open" and opened.tag == "h2"],
            navigation=[(_link(path, page), NAVIGATION[page], page == path) for page in self.navigation],
            siblings=[(_link(path, page), title, page == path) for page, title in siblings],
        )  # fmt: skip

    def _markdown(self, path):
        """A file's text as Markdown; of the README that a folder lacks, a list of the folder's pages."""
        file, folder = self.root / path, dirname(path)
        if not file.exists():
            pages = (f"- [{title}]({relpath(page, folder)})" for page, title in self._siblings(path))
            return "\n".join([f"# {folder}", "", *pages])
        text = file.read_text(encoding="utf-8")
        return text if path.endswith(".md") else f"# {path}\n\n~~~~{file.suffix[1:]}\n{text}\n~~~~\n"

    def _siblings(self, path):
        """(path, title) of the pages in the folder that has this one, in the order in which they are read."""
        files = sorted((self.root / path).parent.glob("*.md"))
        return [(join(dirname(path), file.name), _title(file.read_text(encoding="utf-8"))) for file in files]

    def _followed(self, path, link):
        """A link of this page as the site has it; what it leads to joins the site. A broken one stays as it is."""
        target, mark, anchor = unquote(link).partition("#")
        target = normpath(join(dirname(path), target))
        if link[0] == "#" or EXTERNAL.match(link) or target.startswith("..") or not (self.root / target).exists():
            return link
        if (self.root / target).is_dir():
            target = join(target, "README.md")
        self.waiting.append(target)
        return _link(path, target) + mark + anchor


def _address(path):
    """Where in the site a file of the repository is."""
    if path.endswith(COPIED):
        return path
    return re.sub(r"README$", "index", path.removesuffix(".md")) + ".html"


def _link(path, other):
    return relpath(_address(other), dirname(_address(path)) or ".")


def _title(markdown):
    return markdown.partition("\n")[0].removeprefix("# ")


def broken_links(files: Mapping[str, str | bytes]) -> Iterator[tuple[str, str]]:
    """(page, link) for each link of a site's pages that leads to no file of the site, or to no heading in it."""
    pages = {path: Links(html) for path, html in files.items() if isinstance(html, str)}
    places = {(path, anchor) for path, page in pages.items() for anchor in page.ids} | {(path, "") for path in files}
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            place = (normpath(join(dirname(path), target)) if target else path), anchor
            if not EXTERNAL.match(link) and place not in places:
                yield path, link


class Links(HTMLParser):
    """The links of a page, and the ids that links may lead to."""

    def __init__(self, html: str):
        super().__init__()
        self.ids: set[str | None] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser for each element."""
        self.ids |= {value for name, value in attrs if name == "id"}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def _code(source, language, _):
    with suppress(ClassNotFound):
        return highlight(source, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    return ""                                            # as it is


def _formula(latex, options):
    return convert(latex, display="block" if options["display_mode"] else "inline")


# Raw HTML stays: the pages are ours. Formulas as on code hosts: "$5 or $6" is none.
MARKDOWN = (
    MarkdownIt("commonmark", {"highlight": _code}).enable("table")
    .use(anchors_plugin, max_level=4)
    .use(dollarmath_plugin, renderer=_formula, allow_space=False, allow_digits=False)
)  # fmt: skip
