"""Why a gradient is wrong: the first wrong step, one change that makes it right, words, lines."""

from mini_tf.gradcheck.explain.reasons import add_reasons

__all__ = ["add_reasons"]
