"""Decoding: from scores to words, and from words to more words."""

from mini_tf.decoding.beam import Hypothesis, beam_search, translations
from mini_tf.decoding.sampling import continuations, generate, greedy, sample

__all__ = ["Hypothesis", "beam_search", "continuations", "generate", "greedy", "sample", "translations"]
