"""Each lab's head: its goals, what to know before, working time, what to hand in; and the plans made of them."""

import re

from mini_tf.gradcheck.planting.bugs import BUGS
from mini_tf.teaching.grading import grade
from tests.reader import LABS

import pytest
import student

PATHS = sorted(LABS.glob("[01]*.py"))
EXERCISES = sorted(LABS.glob("exercises/0*.py"))
HEAD = re.compile(
    r"\n# - \*\*Goals:\*\* .*?\.\n# - \*\*Before it:\*\* .*?\. \*\*Work:\*\* about ([\d.]+) hours\.\n"
    r"# - \*\*Hand in:\*\* (.*?)\.\n#\n", re.DOTALL,
)  # fmt: skip
each = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def head_of(path):
    """The match of a lab's head, in its first cell, with its lines joined where they are only wrapped"""
    first = path.read_text(encoding="utf-8").partition("\n\n# %%")[0]
    found = HEAD.search(re.sub(r"\n#   ", " ", first))
    assert found, "its head is not in the form of the others"
    return found


def hours_of(path):
    """The rule of labs/teaching.md"""
    blanks = student.blanks_of(path)
    if path in EXERCISES:
        return 0.25 + 0.25 * sum(len(blank.hints) for blank in blanks)
    backwards = sum(blank.name.endswith(".backward") for blank in blanks)
    lines = len(path.read_text(encoding="utf-8").splitlines())
    return lines / 200 + (len(blanks) - backwards) / 3 + backwards * 0.75 + 0.5


@each
def test_what_is_handed_in_is_the_blanks(path):
    assert re.findall(r"`(.+?)`", head_of(path)[2]) == [blank.name for blank in student.blanks_of(path)]


@each
def test_a_head_is_short_and_its_hours_are_the_rules(path):
    first = path.read_text(encoding="utf-8").partition("\n\n# %%")[0]
    assert re.search(r"\n# - \*\*Goals.*?\n#\n", first, re.DOTALL)[0].count("\n") <= 1 + 8 + 1
    assert float(head_of(path)[1]) == pytest.approx(hours_of(path), abs=0.5)


def test_hours_and_points_of_the_plans_add_up(tmp_path):
    files = {path.stem.split("_")[0]: path for path in PATHS}
    exercises = {path.stem[:2]: path for path in EXERCISES}
    page = (LABS / "teaching.md").read_text(encoding="utf-8")
    in_all = sum(float(head_of(path)[1]) for path in PATHS)
    assert f"{in_all:g} hours for all {len(PATHS)} labs" in page.replace("\n", " ")
    for weeks in (3, 8):
        plan = page[page.index(f"## {weeks} weeks") :].split("\n\n## ")[0]
        rows = re.findall(r"^\| (\d) \| (.+?) \| ([\d.]+) \| (\d+) \|", plan, re.MULTILINE)
        assert [int(week) for week, *_ in rows] == list(range(1, weeks + 1))
        for _, work, hours, points in rows:
            parts = re.findall(r"(exercise|lab)s? ([\d, a-d]+)", work)
            numbers = {kind: re.findall(r"\d\d[a-d]?\b", part) for kind, part in parts}
            done = [exercises[number] for number in numbers.get("exercise", [])]
            labs = [files[number] for number in numbers["lab"]]
            assert sum(map(hours_of, done)) + sum(float(head_of(lab)[1]) for lab in labs) == float(hours), work
            assert grade(tmp_path, [path.stem for path in (*done, *labs)]).most == int(points), work
        total = re.search(r"^\| all \| \| ([\d.]+) \| (\d+) \|", plan, re.MULTILINE)
        assert sum(float(row[2]) for row in rows) == float(total[1])
        assert sum(int(row[3]) for row in rows) == int(total[2])


def test_the_catalogue_is_counted_as_it_is():
    page = (LABS / "teaching.md").read_text(encoding="utf-8")
    table = page[page.index("| kind |") :].split("\n\n")[0]
    counts = [int(count) for count in re.findall(r"^\| [^|]+ \| (\d+) \|", table, re.MULTILINE)]
    assert len(counts) == 12
    assert f"has {len(BUGS)} mistakes" in page
    assert f"cover {sum(counts)} of them" in page
    assert len(BUGS) - sum(counts) == 4                  # "The other four"
