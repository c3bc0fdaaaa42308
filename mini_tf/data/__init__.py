"""Where texts come from: Shakespeare, film reviews, French sentences with their English, and files of your own."""

from mini_tf.data.corpus import read_corpus
from mini_tf.data.french import french_pairs
from mini_tf.data.labelled import MOVIE_REVIEWS, movie_reviews, read_labelled, split_labelled
from mini_tf.data.pairs import read_pairs, split_pairs
from mini_tf.data.shakespeare import FLAVOURS, SHAKESPEARE, shakespeare, spoken_lines
from mini_tf.data.wheels import Wheel, cache_folder, read_member, read_members, where

__all__ = [
    "FLAVOURS", "MOVIE_REVIEWS", "SHAKESPEARE", "Wheel", "cache_folder", "french_pairs", "movie_reviews", "read_corpus",
    "read_labelled", "read_member", "read_members", "read_pairs", "shakespeare", "split_labelled", "split_pairs",
    "spoken_lines", "where",
]  # fmt: skip
