"""Decoding: from scores to words, and from words to more words."""

from mini_tf.decoding.sampling import continuations, generate, greedy, sample

__all__ = ["continuations", "generate", "greedy", "sample"]
