"""Reasons: what is wrong with a gradient in words, in which lines, in which step of a model, and what would mend it."""
