"""labs/sources.md: each place that answers a task of a source is there."""

import re
from pathlib import Path

LABS = Path(__file__).parent.parent / "labs"
ROW = re.compile(r"^\| (?!asked|---|source)(.+?) \| (.+) \|$")


def headings(number):
    """The headings of a lab's script, without their level"""
    (script,) = LABS.glob(f"{number}_*.py")
    return re.findall(r"^# #+ (.+)$", script.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_task_is_answered_where_the_table_says():
    page = (LABS / "sources.md").read_text(encoding="utf-8")
    table = page[page.index("## Every task") : page.index("## Papers")]
    rows = [match for match in map(ROW.match, table.splitlines()) if match]
    assert len(rows) >= 50
    for task, places in (row.groups() for row in rows):
        named = re.findall(r"\b(\d\d[a-d]?), \*(.+?)\*(?=[;,.|]|$| at )", places)
        assert named or "`" in places or "](" in places or places.startswith("nowhere: "), task
        for number, heading in named:
            assert heading in headings(number), (task, number, heading)
