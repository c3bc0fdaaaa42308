"""The report as a page: its sentences, the pictures of wrong gradients, the source beside them."""

import re
from html.parser import HTMLParser

from mini_tf.gradcheck import judge
from mini_tf.gradcheck.page import COLUMNS, ROWS, pictures, sources, write_page
from mini_tf.gradcheck.report import RIGHT, WRONG, Change, Comparison, Report, Step

import numpy as np
import pytest


def wrong_tanh(x, W):
    y = np.tanh(x @ W)

    def backward(dy):
        dz = dy * (
            1 - y)
        return dz @ W.T, x.T @ dz

    return y, backward


LINE = wrong_tanh.__code__.co_firstlineno + 4            # of `dz = …`
PLACE = f"{__file__}:{LINE}"


@pytest.fixture
def wrong(rng):
    return judge(wrong_tanh, rng.standard_normal((2, 3)), rng.standard_normal((3, 4)))


@pytest.fixture
def page(tmp_path):
    def written(*reports):
        write_page(tmp_path / "report.html", reports)
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return written


def words_of(page):
    """What a reader sees, in one line"""
    reader, words = HTMLParser(), []
    reader.handle_data = words.append
    reader.feed(page)
    return " ".join("".join(words).replace("\N{NO-BREAK SPACE}", " ").split())


def compared(gradient, slopes, index):
    off = np.isfinite(slopes).sum()
    return Comparison("given", np.size(slopes), off, 0, 0, off, 2.0, index, 1.0, 2.0, 1e-9, np.asarray(gradient),
                      np.asarray(slopes, float))  # fmt: skip


def test_the_page_needs_nothing_else(page, wrong):
    text = page(wrong)
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>")
    assert not re.findall(r"https?:|<script|<link|<img|url\(|@import| src=", text)


def test_it_says_what_the_terminal_says(page, wrong):
    wrong.changes = [Change(PLACE, LINE, "dz = dy * (1 - y)", "dz = dy * (1 - y * y)", "another factor", ["x", "W"])]
    wrong.tensors[0].diagnosis = wrong.tensors[1].diagnosis = "The factor `1 - y` is <not> the slope of tanh."
    wrong.notes = ["its file has changed"]
    seen = words_of(page(wrong))
    for line in wrong.explain().splitlines()[1:]:
        for part in re.split(r"\s{2,}|: |→|`", line):
            assert part.strip() in seen
    wrong.give_hints_only()
    assert "dz = dy * (1 - y * y)" not in words_of(page(wrong))


def test_a_wrong_gradient_has_three_pictures_on_one_scale(page, wrong):
    shown = pictures(wrong.tensor("W").worst)
    assert list(shown["maps"]) == ["yours", "measured", "difference"]
    cells = [cell for rows in shown["maps"].values() for row in rows for cell in row]
    by_size = sorted((float(cell["value"]), cell["colour"]) for cell in cells)
    assert all(one[1] == other[1] for one, other in zip(by_size, by_size[1:]) if one[0] == other[0])
    assert max(abs(by_size[0][0]), by_size[-1][0]) == pytest.approx(float(shown["most"]), rel=1e-2)
    text = page(wrong)
    assert text.count("<figure>") == 6
    assert len(re.findall(r'role="img" aria-label="[^"]+"', text)) == text.count("<svg") == 8
    assert text.count("<details>") == 2                  # of the step sizes


def test_a_right_gradient_is_a_row_of_a_table(page, rng):
    text = page(judge(lambda x: (x * x, lambda dy: 2 * dy * x), rng.standard_normal((2, 3))))
    assert not re.findall("<svg|<pre|<details", text)
    assert "right in 12 entries at two points" in text


def test_what_could_not_be_tested_is_said_with_what_to_add(page):
    text = page(Report("Net", refusals=["no gradient of pe was found. Is `pe` a constant? constants=['pe']"]))
    assert "constants=[&#39;pe&#39;]" in text.split('class="refusal"')[1]


@pytest.mark.parametrize(("shape", "index", "size", "caption"), [
    ((), (), (1, 1), ""), ((5,), (2,), (1, 5), ""), ((2, 3, 4), (1, 2, 0), (6, 4), "(2, 3, 4) shown as (6, 4)"),
    ((100, 40), (60, 39), (ROWS, COLUMNS), "rows 52 to 67 of 100; columns 16 to 39 of 40"),
])  # fmt: skip
def test_every_shape_becomes_a_matrix_with_the_worst_entry_in_it(shape, index, size, caption, rng):
    shown = pictures(compared(rng.standard_normal(shape), rng.standard_normal(shape), index))
    rows = shown["maps"]["yours"]
    assert (len(rows), len(rows[0])) == size
    assert "; ".join(shown["captions"]) == caption
    assert [cell["at"] for row in rows for cell in row if cell["worst"]] == [str(list(index))]


def test_the_functions_lines_near_the_changes_or_suspects_are_shown_and_these_marked(wrong):
    wrong.suspects = [f"{PLACE}  dz = dy * (…)", f"{__file__}:{LINE + 2}  return dz @ W.T, x.T @ dz"]
    (shown,) = sources(wrong)
    assert [number for number, _, _ in shown["lines"]] == [*range(LINE - 4, LINE + 5)]         # of wrong_tanh, no more
    assert [number for number, _, marked in shown["lines"] if marked] == [LINE, LINE + 2]
    assert sources(Report("f", place="nowhere.py:3")) == []


def test_several_reports_have_a_table_of_contents(page, wrong):
    wrong.name = "<b>tanh"
    text = page(Report("refused"), wrong)
    assert re.findall(r'href="#(r\d)">([^<]+)<', text) == [("r1", "&lt;b&gt;tanh"), ("r2", "refused")]
    assert re.findall(r'<section id="(r\d)">', text) == ["r1", "r2"]


def test_the_first_wrong_step_brings_its_own_report(page, wrong):
    model = Report("Net.loss", steps=[Step("mse", "a.py:1", "b.py:2", RIGHT), Step("tanh", "a.py:3", PLACE, WRONG, wrong)])
    model.tensor("E", (2,)).comparisons = [compared([1.0, 1.0], [2.0, 2.0], (0,))]
    text = page(model)
    assert wrong.tensors[0].sentence in words_of(text.split('class="nested"')[1])
    assert text.count("<figure>") == 6                   # of the step's two tensors; after it, all are wrong
