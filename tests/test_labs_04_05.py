"""Labs 04 and 05, run as a reader would: they end well, say the numbers that are known, and draw their figures."""

import re
import time
from functools import cache
from pathlib import Path

from tests.reader import LABS, run_lab

import numpy as np
import pytest
from matplotlib.image import imread

EMBEDDINGS, REGRESSION = "04_word_embeddings", "05_next_word_regression"

pytestmark = [pytest.mark.lab, pytest.mark.exhaustive]


@cache
def run(name):
    """(what the lab printed, when it was started)"""
    started = time.time()
    return run_lab(name, Path(__file__).parent), started


KNOWN = {
    REGRESSION: (
        "292,072 words, 14,295 different",
        "PASS: gradients of the loss of Task 6.5",
    ),
}
FIGURES = {
    EMBEDDINGS: ("two_quotations", "zipf", "cooccurrences", "eigenvalues", "energy", "pca_coefficients"),
    REGRESSION: ("architecture", "training", "distances", "predictions"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_says_the_numbers_that_are_known(name):
    printed, _ = run(name)
    assert [words for words in KNOWN[name] if words not in printed] == []


@pytest.mark.parametrize("name", KNOWN)
def test_prints_lines_that_fit_a_terminal(name):
    printed, _ = run(name)
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize(("name", "figure"), [(name, figure) for name in FIGURES for figure in FIGURES[name]])
def test_draws_its_figures(name, figure):
    printed, started = run(name)
    path = LABS / "figures" / f"{name[:2]}_{figure}.png"
    assert f"figure: labs/figures/{path.name}" in printed
    assert path.stat().st_mtime >= started - 1           # a file system may round
    image = imread(path)                                 # (height, width, 4)
    assert min(image.shape[:2]) > 300
    assert image[..., :3].std() > 0.02                   # a white page has 0
    assert len(np.unique(image[::5, ::5].reshape(-1, 4), axis=0)) > 10


def test_offsets_and_ppmi():
    printed, _ = run(EMBEDDINGS)
    assert "✗" not in printed
    for kind, pairs in (("gender", 12), ("tense", 20), ("capitals", 2)):
        numbers = list(map(int, re.findall(r"\d+", re.search(rf"^  {kind} .*", printed, re.MULTILINE)[0])))
        assert numbers[0] == 2 * pairs * (pairs - 1)
        assert len(numbers) == 7


def test_a_small_error_explains_nothing():
    """What lab 05 claims of its own model: it explains no more than a constant, and does not see the order of words."""
    printed, _ = run(REGRESSION)
    assert "✗" not in printed
    in_order, shuffled = map(float, re.search(r"in order ([\d.]+)   shuffled ([\d.]+)", printed).groups())
    assert in_order == pytest.approx(shuffled, abs=2e-6)
