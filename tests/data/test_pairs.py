"""Sentence pairs from a file, and pairs held out that share no sentence with the others."""

from pathlib import Path

from mini_tf.data import read_pairs, split_pairs
from mini_tf.errors import UserError

import pytest

TATOEBA = Path(__file__).parents[2].parent / "shared" / "data" / "tatoeba-eng-fra.tsv"


def written(tmp_path, text):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "Go.\tVa !\nRun!\tCours\u202f!\n",
        "Go.\tVa !\tCC-BY 2.0 (France) Attribution: tatoeba.org\t\nRun!\tCours\u202f!\t1\t2",
        "12\tGo.\t7\tVa !\n13\tRun!\t8\tCours\u202f!",
        "\ufeffGo.\tVa !\r\nRun!\tCours\u202f!\r\n",
        "\n\nGo.\tVa !\n \n Run! \t Cours\u202f! \n\n",
    ],
    ids=["plain", "further columns", "Tatoeba's own export", "from Windows", "empty lines and spaces"],
)
def test_pairs_are_read_french_first(tmp_path, text):
    assert read_pairs(written(tmp_path, text)) == [("Va !", "Go."), ("Cours\u202f!", "Run!")]


def test_only_a_line_feed_ends_a_line(tmp_path):
    assert read_pairs(written(tmp_path, "a\u2028b\tc\x85d\n")) == [("c\x85d", "a\u2028b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Go.\tVa !\n\nRun! Cours !\n", r"pairs.tsv, line 3: 'Run! Cours !' has no French, expected English<TAB>French; write both"),
        ("Go.\tVa !\n\tCours !\n", r"line 2: '\\tCours !' has no English, expected .* or take the line out"),
        ("Go.\t \tCC-BY\n", r"line 1: 'Go.\\t \\tCC-BY' has no French"),
        ("Go.\tVa !\n\t\n", r"line 2: '\\t' has no English"),
        ("word " * 30, r"line 1: 'word word wor?\.\.\.[word ]+' has no French"),
        ("", r"is empty; a file of sentence pairs needs lines"),
        (b"Go.\tVa !\nStop!\t\xc7a suffit !\n", r"byte 0xc7 at offset 15, in line 2, does not fit; save the file as UTF-8"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read_pairs(written(tmp_path, text))


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(UserError, match="there is no file .*nowhere.tsv; a file of sentence pairs is a text file"):
        read_pairs(tmp_path / "nowhere.tsv")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory\); a file of sentence pairs is one text file"):
        read_pairs(tmp_path)


def spellings(pairs, side):
    return {" ".join(pair[side].lower().split()) for pair in pairs}


def some_pairs(rng, count, sentences):
    return [(f"Phrase {i}", f"Sentence {j}") for i, j in rng.integers(0, sentences, (count, 2))]


def test_no_sentence_is_on_both_sides(rng):
    for sentences in (40, 90, 300):
        pairs = some_pairs(rng, 100, sentences)
        train, held_out = split_pairs(pairs, 0.2)
        assert sorted(train + held_out) == sorted(pairs)
        for side in (0, 1):
            assert not spellings(train, side) & spellings(held_out, side)


def test_what_hangs_together_over_many_steps_stays_together():
    chain = [(f"f{(i + 1) // 2}", f"e{i // 2}") for i in range(20)]      # f0 e0, f1 e0, f1 e1, f2 e1, …
    alone = [(f"seul {i}", f"alone {i}") for i in range(80)]
    sides = [split_pairs(chain + alone, 0.5, seed) for seed in range(8)]
    assert {len(set(chain) & set(held_out)) for _, held_out in sides} == {0, 20}
    for seed in range(8):
        train, held_out = split_pairs(chain + alone, 0.1, seed)          # the chain is larger than the share
        assert set(chain) <= set(train)
        assert len(held_out) == 10


def test_spellings_of_one_sentence_stay_together():
    same = [("J’y vais !", "I go"), ("j'y  vais\u202f!", "I'm going"), ("J'Y VAIS!", "I do go")]
    others = [(f"seul {i}", f"alone {i}") for i in range(3)]
    for seed in range(8):
        _, held_out = split_pairs(same + others, 0.5, seed)
        assert len(held_out) == 3
        assert len(set(held_out) & set(same)) in (0, 3)


def test_a_french_and_an_english_sentence_that_look_alike_are_two():
    _, held_out = split_pairs([("Non", "No"), ("No", "Nope")], 0.5)
    assert len(held_out) == 1


def test_the_seed_decides(rng):
    pairs = some_pairs(rng, 200, 1000)
    assert split_pairs(pairs, seed=3) == split_pairs(pairs, seed=3)
    assert split_pairs(pairs, seed=3) != split_pairs(pairs, seed=4)
    train, held_out = split_pairs(pairs, seed=3)
    assert len(held_out) == 20
    assert train != [pair for pair in pairs if pair in train]            # in random order


@pytest.mark.parametrize(
    ("pairs", "share", "message"),
    [
        ([("a", "b")] * 3, 0, "share is 0, expected more than 0 and less than 1"),
        ([("a", "b")] * 3, 1, "share is 1, expected"),
        ([], 0.1, r"too few pairs: 0, expected at least 2"),
        ([("a", "b")], 0.1, r"too few pairs: 1, expected at least 2"),
        ([("a", "b"), ("a", "c"), ("d", "c")], 0.5, r"the 3 pairs fall into 1 group .* the largest of 3 pairs: 0.5 of the pairs cannot"),
    ],
)
def test_a_side_must_not_be_empty(pairs, share, message):
    with pytest.raises(UserError, match=message):
        split_pairs(pairs, share)


def test_two_pairs_are_enough():
    for share in (0.01, 0.5, 0.99):
        train, held_out = split_pairs([("a", "b"), ("c", "d")], share)
        assert len(train) == len(held_out) == 1


def test_a_real_file():
    if not TATOEBA.exists():
        pytest.skip(f"Tatoeba's sentence pairs are not here ({TATOEBA})")
    pairs = read_pairs(TATOEBA)
    assert len(pairs) == 73_008
    assert pairs[1] == ("Cours\u202f!", "Run!")
    train, held_out = split_pairs(pairs)
    assert (len(train), len(held_out)) == (65_707, 7_301)
    for side in (0, 1):
        assert not spellings(train, side) & spellings(held_out, side)
