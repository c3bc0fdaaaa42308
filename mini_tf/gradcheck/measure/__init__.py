"""Slopes by finite differences, the points at which they are measured, and what else a gradient promises."""
