"""Sentences with their translations, from a file of your own."""

import math

from mini_tf.checks import generator, is_number, shown
from mini_tf.data.corpus import read_text
from mini_tf.errors import UserError, counted
from mini_tf.files import PathLike


def read_pairs(path: PathLike) -> list[tuple[str, str]]:
    """[(french, english), …]: the sentence pairs of the file `path`, a line `English<TAB>French` for each.

    This is the form of the Tatoeba project's Anki exports; further columns, such as their attributions, are ignored. Of
    Tatoeba's own exports, `id<TAB>English<TAB>id<TAB>French`, the sentences are taken.
    A byte order mark at the start, Windows line endings, empty lines and white space around a sentence are dropped.
    Raises UserError as `read_corpus` does, and for a line without one of its sides, by its number.
    """
    pairs = []
    for number, line in enumerate(read_text(path, "a file of sentence pairs", "lines").split("\n"), 1):
        if line.strip() or "\t" in line:
            columns = [column.strip() for column in [*line.split("\t"), ""]]
            if len(columns) > 4 and columns[0].isdecimal() and columns[2].isdecimal():   # Tatoeba's own export
                columns = columns[1:4:2]
            english, french, *_ = columns
            if not english or not french:
                raise UserError(
                    f"{path}, line {number}: {shown(line)} has no {'French' if english else 'English'}, expected "
                    "English<TAB>French; write both sentences with a tab between them, or take the line out"
                )
            pairs.append((french, english))
    return pairs


def split_pairs(
    pairs: list[tuple[str, str]], share: float = 0.1, seed: int = 0
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(train, held_out): about `share` of the pairs, drawn at random, are held out, none with a sentence of the others.

    A file has many sentences in several pairs: "Run!" is "Cours !" and "Courez !", which are "You run!" as well. All
    pairs that are connected in this way stay on one side, so no French and no English sentence is on both, whatever
    its capitals, spaces and apostrophes. Such groups are held out in random order while they fit.

    pairs  a list of pairs of strings;  the same seed gives the same lists, each in random order
    Raises UserError for a share that is not between 0 and 1, and when one side would be empty.
    """
    import numpy as np  # here, so that reading data needs neither NumPy nor SciPy
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    check_share(share)
    if len(pairs) < 2:
        raise UserError(f"too few pairs: {len(pairs)}, expected at least 2: one to train on and one to hold out")

    # A graph whose nodes are sentences and whose edges are pairs: a group is a connected component.
    number: dict[tuple[int, str], int] = {}
    first, second = (
        np.array([number.setdefault((side, normalized(pair[side])), len(number)) for pair in pairs]) for side in (0, 1)
    )
    graph = coo_array((np.ones(len(pairs)), (first, second)), shape=(len(number), len(number)))
    groups, group_of_sentence = connected_components(graph, directed=False)
    group = group_of_sentence[first]                     # of each pair
    sizes = np.bincount(group, minlength=groups)

    rng = generator(seed)
    wanted = min(math.ceil(share * len(pairs)), len(pairs) - 1)
    held_out = np.zeros(groups, bool)
    for g in rng.permutation(groups):
        held_out[g] = sizes[g] <= wanted
        wanted -= sizes[g] if held_out[g] else 0
    if held_out.all() or not held_out.any():
        raise UserError(
            f"the {len(pairs):,} pairs fall into {counted(groups, 'group')} without a sentence in common, the largest "
            f"of {sizes.max():,} pairs: {share:g} of the pairs cannot be held out; give more pairs, or another share"
        )
    order = rng.permutation(len(pairs))
    return [pairs[i] for i in order if not held_out[group[i]]], [pairs[i] for i in order if held_out[group[i]]]


def normalized(text: str) -> str:
    """The text in lower case, without spaces: the same for "J’y vais !" and "j'y vais!"."""
    return "".join(text.lower().replace("’", "'").split())


def check_share(share: float) -> None:
    """Raises UserError unless 0 < share < 1."""
    if not is_number(share) or not 0 < share < 1:
        raise UserError(f"share is {shown(share)}, expected more than 0 and less than 1: 0.1 holds out a tenth")
