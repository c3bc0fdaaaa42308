"""The site: every page of the repository is in it, its links lead somewhere, and it fits a phone."""

import re
import sys
from configparser import ConfigParser

from mini_tf.errors import UserError
from mini_tf.pages import __main__ as command
from mini_tf.pages.site import ROOT, build
from tests.cases import cases

import pytest

OTHERS = {"explorer.html": "<p>the explorer", "reference/index.html": "<p>the reference"}       # which take their time


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, with other pages for the explorer and the reference"""
    folder = tmp_path_factory.mktemp("site")
    build(folder, OTHERS)
    return folder


@pytest.fixture
def small(tmp_path):
    """small({path: text}) → the folder of a site of these files"""

    def made(files):
        for path, text in files.items():
            (tmp_path / "repository" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "repository" / path).write_text(text, encoding="utf-8")
        build(tmp_path / "site", {}, tmp_path / "repository")
        return tmp_path / "site"

    return made


def read(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("pattern", ["*.md", "labs/*.md", "labs/exercises/*.md", "labs/pages/*.md", "mini_tf/gradcheck/*.md"])
def test_every_page_of_the_repository_is_in_it(site, pattern):
    for path in ROOT.glob(pattern):
        page = site / path.relative_to(ROOT).with_name("index.html" if path.stem == "README" else f"{path.stem}.html")
        assert page.is_file(), path
        assert read(page).count("</h2>") == len(re.findall("^## ", re.sub("```.*?```", "", read(path), flags=re.S), re.M)), path


def test_pictures_are_copied_and_other_pages_stand_as_they_are(site):
    assert (site / "labs/pictures/explorer.png").read_bytes() == (ROOT / "labs/pictures/explorer.png").read_bytes()
    assert read(site / "explorer.html") == OTHERS["explorer.html"]


def test_every_formula_is_typeset(site):
    formulas = 0
    for page in (site / "labs/pages").glob("*.html"):
        text = re.sub(r"<(pre|code|style)\b.*?</\1>", "", read(page), flags=re.S)
        formulas += text.count("<math")
        assert "$" not in text, page
        assert "\\" not in text, page
    assert formulas > 500


def test_nothing_is_fetched(site):
    for page in site.rglob("*.html"):
        assert not re.search(r"<script|@import|src=\"http|<link[^>]*http|url\(", read(page)), page


def test_links_lead_to_pages_source_and_lists(small):
    site = small({
        "README.md": "# Start\n\n[a](many) [b](code.py) [c](many/b.md#two-words)\n\n```python\ndef f(): pass\n```\n",
        "code.py": "x = 1 < 2\n", "many/a.md": "# First\n", "many/b.md": "# Second\n\n## Two *words*\n\n[up](../README.md)",
    })  # fmt: skip
    start = read(site / "index.html")
    assert re.findall(r'<p><a href="(.*?)".*? href="(.*?)".*? href="(.*?)"', start) == \
        [("many/index.html", "code.py.html", "many/b.html#two-words")]  # fmt: skip
    assert '<span class="k">def</span>' in start
    assert "1</span> <span class=\"o\">&lt;" in read(site / "code.py.html")
    assert '<a href="b.html">Second</a>' in read(site / "many/index.html")
    assert '<a href="../index.html">up</a>' in read(site / "many/b.html")
    assert '<a href="a.html" rel="prev">← First</a>' in read(site / "many/b.html")
    assert 'rel="next"' not in read(site / "many/b.html")


@pytest.mark.parametrize("link", ["[x](gone.md)", "[x](#gone)", "[x](other.md#gone)", "![x](gone.png)", "[x](../gone/a.md)"])
def test_a_broken_link_is_an_error_that_names_page_and_link(small, tmp_path, link):
    right = {"README.md": "# Start\n\n[x](#start) [y](other.md#there) [z](https://example.org/gone)", "other.md": "## There"}
    small(right)
    with pytest.raises(UserError, match=re.escape(f"broken links: {link[4:-1].lstrip('(').replace('.md#', '.html#')} in index.html")):
        small(right | {"README.md": f"# Start\n\n{link}"})
    assert "example.org" in read(tmp_path / "site/index.html")               # nothing was written


def test_a_folder_with_other_things_is_left_alone(small, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/mine.txt").touch()
    with pytest.raises(UserError, match="site is neither new nor empty nor a site of mini_tf"):
        small({"README.md": "# Start\n"})
    (tmp_path / "site/mine.txt").rename(tmp_path / "mine.txt")
    small({"README.md": "# Start\n"})
    assert "# Again" in read(small({"README.md": "# Start\n\n`# Again`\n"}) / "index.html")
    with pytest.raises(UserError, match="mine.txt is neither new nor empty"):
        build(tmp_path / "mine.txt", {})
    with pytest.raises(UserError, match="work in a clone of mini_tf's repository"):
        build(tmp_path / "site", {}, tmp_path / "nowhere")


def test_the_command_says_what_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["pages", "site", str(tmp_path)])
    monkeypatch.delitem(sys.modules, "mini_tf.pages.site")
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    with pytest.raises(SystemExit) as end:
        command.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: latex2mathml.converter is not installed: pip install -e '.[docs]'\n"


def test_the_extras_have_what_it_needs():
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    for extra in ("docs", "test"):
        for name in ("pdoc", "markdown-it-py", "mdit-py-plugins", "latex2mathml"):
            assert f"{name}>=" in config["options.extras_require"][extra]


@pytest.mark.browser
@pytest.mark.parametrize("width", cases([420], [1280]))
@pytest.mark.parametrize("page", cases(["index.html"], ["labs/index.html", "labs/pages/04_word_embeddings.html"]))
def test_it_fits_the_window(site, chromium, page, width):
    window, asked = chromium.new_page(viewport={"width": width, "height": 800}), []
    window.on("request", lambda request: asked.append(request.url))
    window.goto((site / page).as_uri())
    assert window.evaluate("document.documentElement.scrollWidth") == width
    assert window.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert all(url.startswith(("file:", "data:")) for url in asked)
    for link in window.locator("nav.site a").all():
        assert link.bounding_box()["x"] + link.bounding_box()["width"] <= width
    window.close()
