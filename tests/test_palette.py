"""One palette for all pictures, whose colours everybody can tell apart."""

import re
from itertools import combinations
from pathlib import Path

import mini_tf
from mini_tf.gradcheck.page import NEGATIVE, POSITIVE
from mini_tf.palette import COLOURS

import numpy as np
import pytest

# Of linear RGB, at full severity. Source: Machado, Oliveira and Fernandes 2009, doi:10.1109/TVCG.2009.113
SEEN_AS = {
    "by most people": np.eye(3),
    "without red cones": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "without green cones": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "without blue cones": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])
WHITE = TO_XYZ.sum(1)
PACKAGE = Path(mini_tf.__file__).parent
ROOT = PACKAGE.parent


def linear(colour):
    """Linear RGB of "#0072B2", each from 0 to 1."""
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB: distances in it are differences as seen; about 2 can just be noticed."""
    t = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one, other, eyes):
    return np.linalg.norm(lab(np.array(eyes) @ linear(one)) - lab(np.array(eyes) @ linear(other)))


def contrast(one, other):
    """As WCAG 2 defines it: 4.5 is enough for small text."""
    bright, dark = sorted((linear(c) @ TO_XYZ[1] for c in (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("who", SEEN_AS)
def test_any_two_colours_can_be_told_apart(who):
    for one, other in combinations(COLOURS, 2):
        assert difference(one, other, SEEN_AS[who]) > 15, (one, other)


def test_the_simulation_knows_red_and_green():
    """Those of the pages before: 100 apart for most people, and less than 20 for one man in twelve."""
    red, green = "#b3261e", "#1a7f37"
    assert difference(red, green, SEEN_AS["by most people"]) > 90
    assert difference(red, green, SEEN_AS["without green cones"]) < 20


def test_right_and_wrong_differ_on_the_pages_in_light_and_dark():
    css = (PACKAGE / "pages" / "base.css").read_text(encoding="utf-8")
    themes = [dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block)) for block in re.findall(r"\{([^{}]*--paper:[^{}]*)\}", css)]
    assert len(themes) == 3
    for theme in themes:
        for who in SEEN_AS.values():
            assert difference(theme["good"], theme["bad"], who) > 40
        for name in ("good", "bad", "warn"):
            for ground in ("paper", "card"):
                assert contrast(theme[name], theme[ground]) > 4.5, (name, ground)
    ends = ["#{:02x}{:02x}{:02x}".format(*end) for end in (NEGATIVE, POSITIVE)]
    assert f"--negative: {ends[0]}; --positive: {ends[1]};" in css
    for who in SEEN_AS.values():
        assert difference(*ends, who) > 40


def test_no_picture_has_colours_of_its_own():
    """Matplotlib's own names and numbers of colours, "tab:red" and "C1", are in no code that draws."""
    drawing = [*PACKAGE.rglob("*.py"), *(ROOT / "labs").glob("**/*.py"), *(ROOT / "tests" / "bench").glob("*.py")]
    for path in drawing:
        found = re.findall(r'''"(?:tab:\w+|C\d)"|f"C\{''', path.read_text(encoding="utf-8"))
        assert not found, (path, found)
