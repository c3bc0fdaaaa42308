"""Pretrained models: read from the files in which others publish them, and written back."""
