"""Measuring slopes: what is checked, at which points, how steep it is, and how well that is known."""
