"""Reasons: what is wrong with a gradient, in which lines, in which step of a model, and what would repair it."""
