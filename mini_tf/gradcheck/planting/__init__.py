"""Planted bugs: who checks the checker."""

from mini_tf.gradcheck.planting.editing import edited, planted
from mini_tf.gradcheck.planting.selftest import SelfTest, self_test

__all__ = ["SelfTest", "edited", "planted", "self_test"]
