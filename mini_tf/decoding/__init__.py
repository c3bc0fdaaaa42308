"""Decoding: from scores to words, and from words to more words."""

from mini_tf.decoding.sampling import generate, greedy, sample

__all__ = ["generate", "greedy", "sample"]
