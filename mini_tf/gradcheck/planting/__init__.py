"""Planted bugs: who checks the checker."""
