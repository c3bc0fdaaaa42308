"""Fingerprints of the formulas that have twins, written by `mini-tf gradcheck --bind-twins`."""

HELD = {}
