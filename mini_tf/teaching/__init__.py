"""Grading hand-ins."""
