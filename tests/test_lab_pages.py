"""The labs' pages: each lab has one, with its current prose and code, and its pictures, whose alt texts say what is seen."""

import re

from tests.reader import LABS

import pytest
import render

PATHS = sorted(LABS.glob("[01]*.py"))


def page_of(path):
    """The text of a lab's page."""
    if not render.page_of(path).is_file():
        pytest.skip(f"it has no page yet: python labs/render.py {path.stem.split('_')[0]}")
    return render.page_of(path).read_text(encoding="utf-8")


each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


@each
def test_lab_and_page_say_the_same(path):
    text, page = path.read_text(encoding="utf-8"), page_of(path)
    command = f"python labs/render.py {path.stem.split('_')[0]}"
    assert render.code_in(page) == render.code_of(text), f"the code has changed: {command}"
    again = render.page(path.stem, text, *render.parts_of(page))
    assert again == page, f"the prose has changed: {command} --text"


@each
def test_a_page_has_its_date_its_pictures_and_no_mark(path):
    page = page_of(path)
    assert re.search(r"\*This page is `labs/.*\d{4}.* cores .* NumPy \d", page)
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", page)
    assert pictures
    assert all(len(alt.split()) > 5 for alt in render.alts_in(page).values())
    assert sorted(pictures) == sorted(
        picture.relative_to(render.PAGES).as_posix() for picture in (render.PAGES / path.stem).iterdir()
    )
    assert "✗" not in page
    met, judged = re.search(r"(\d+) of its (\d+) expectations were met", page).groups()
    assert met == judged


def test_there_is_no_page_without_a_lab():
    assert {page.stem for page in render.PAGES.glob("*.md")} <= {path.stem for path in PATHS}


def test_cells_go_into_a_page_and_come_out_again():
    lab = "# %% [markdown]\n# # Title\n#\n# $a$\n\n# %%\nx = 1\n\nprint(x)\n\n# %%\ny = 2\n\n# %% [markdown]\n# end\n"
    blocks = [render.block("one\nfigure: labs/figures/a.png\n```\n", ["l/01_a_b.png"]), ""]
    page = render.page("l", lab, "*This page is made.*", blocks)
    assert render.code_in(page) == render.code_of(lab) == ["x = 1\n\nprint(x)", "y = 2"]
    assert render.parts_of(page) == ("*This page is made.*", blocks)
    assert "````text\none\n```\n````" in page
    assert "figure:" not in page
    kept = render.block("figure: labs/figures/a.png", ["l/01_a_b.png"], render.alts_in("![A line that falls](l/01_a_b.png)"))
    assert kept == "![A line that falls](l/01_a_b.png)"
