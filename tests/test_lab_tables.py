"""The table that all labs print with: numbers flush right in their format, texts flush left, nothing for None."""

from _common import table

import numpy as np


def test_numbers_flush_right_and_texts_flush_left(capsys):
    table(("r", "λ", "count", "word"), [(1, 1234.5, 17, "the"), (10, 2, None, "my own")], ("{:,.1f}", "{:,}", "{}"),
          title="Eigenvalues")  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Eigenvalues",
        "   r         λ   count   word",
        "   1   1,234.5      17   the",
        "  10       2.0           my own",
    ]


def test_rows_may_be_a_dictionary_of_arrays_or_of_single_entries(capsys):
    table(("of the loss", 1, 2), {"sum": np.array([1.0, 22.0]), "mean": "none"}, "{:.2f}")
    table(None, {"a": 1_000})
    assert capsys.readouterr().out.splitlines() == [
        "  of the loss      1       2",
        "  sum           1.00   22.00",
        "  mean          none",
        "  a   1,000",
    ]
