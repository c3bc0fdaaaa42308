"""labs/your_own.md: its blocks run as one session and print what it says; its table of errors is what is raised."""

import io
import re
from contextlib import redirect_stdout

from tests.reader import LABS

import pytest

PAGE = (LABS / "your_own.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d+(?:\.\d+)?")

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def session(lab_text):
    """The names that the page has defined at its end, once all that it prints has been compared.

    It needs Shakespeare's text, and is skipped where that cannot be had.
    """
    names, printed = {}, ""
    for language, text in FENCE.findall(PAGE):
        if language == "text":
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", text)
            numbers = [[float(one) for one in NUMBER.findall(some)] for some in (printed, text)]
            assert numbers[0] == pytest.approx(numbers[1], rel=0.03)     # what is trained depends a little on BLAS
        elif language == "python":
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(text, "labs/your_own.md", "exec"), names)
            printed = out.getvalue()
    return names


def test_it_prints_what_it_says(session):
    assert {"swish", "Swish", "Curve", "sums", "vocabulary"} <= session.keys()


def errors():
    """[(code, message)] of the page's table."""
    table = PAGE[PAGE.index("## When something is wrong") :]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", table, re.M)


@pytest.mark.parametrize(("code", "message"), errors(), ids=lambda text: text[:40])
def test_errors_say_what_the_table_says(session, code, message):
    with pytest.raises(Exception) as raised:
        exec(code, dict(session))
    assert str(raised.value) == message
