"""Merging pairs, against the plainest way to do it; and bytes as text that comes in parts."""

from mini_tf.text.merging import merge, text_of, utf8

from hypothesis import given
from hypothesis import strategies as st

LETTERS = st.text("ab", min_size=1, max_size=4)


def merge_plainly(pieces, rank):
    """Look at all pairs, merge the best one, begin again."""
    pieces = list(pieces)
    while True:
        ranks = [(r, i) for i in range(len(pieces) - 1) if (r := rank(pieces[i], pieces[i + 1])) is not None]
        if not ranks:
            return pieces
        _, i = min(ranks)
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]


def test_pairs_are_merged_in_the_order_of_their_ranks():
    ranks = {("l", "o"): 0, ("lo", "w"): 1, ("e", "r"): 2, ("w", "e"): 3}
    assert merge(list("lower"), lambda *pair: ranks.get(pair)) == ["low", "er"]
    assert merge([], lambda *pair: 0) == []
    assert merge(list("aaaaa"), lambda left, right: 0 if left == right == "a" else None) == ["aa", "aa", "a"]


@given(st.lists(LETTERS, max_size=25), st.dictionaries(LETTERS, st.integers(-3, 3)))
def test_the_heap_merges_what_looking_at_all_pairs_does(pieces, ranks):
    """Also with ranks that tie, or that get lower as pieces grow."""

    def rank(left, right):
        return ranks.get(left + right)

    assert merge(pieces, rank) == merge_plainly(pieces, rank)


def test_a_million_pieces_take_seconds():
    """Not the hours that looking at all pairs again and again would."""
    assert len(merge(list("a" * 300_000), lambda left, right: 0 if left == right and len(left) < 8 else None)) == 37_500


@given(st.text(), st.integers(1, 4))
def test_text_comes_with_the_last_byte_of_each_character(text, size):
    data = utf8(text)
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    assert "".join(text_of(parts)) == text
    written = ""
    for count, some in enumerate(text_of(parts), 1):
        written += some
        assert written == data[: count * size].decode(errors="ignore")


def test_what_is_no_utf8_is_read_as_a_replacement_character():
    assert list(text_of([b"a\xf0\x9f", b"\x98", b"b", b"\xff", b"\xe2\x82"])) == ["a", "", "�b", "�", "", "�"]
    assert "".join(text_of([utf8("a\ud800b")])) == "a���b"
