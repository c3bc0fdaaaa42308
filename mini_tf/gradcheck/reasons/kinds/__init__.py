"""The kinds of small changes: see `reasons.changes`."""
