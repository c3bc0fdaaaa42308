"""Pictures: whole or not there, in the format of their name."""

from mini_tf.errors import UserError
from mini_tf.training.figures import between, draw_curves, save_figure

import pytest
from matplotlib.figure import Figure

BEGINS = {"a.png": b"\x89PNG", "a.PNG": b"\x89PNG", "no_ending": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}


@pytest.mark.parametrize("name", BEGINS)
def test_a_picture_has_the_format_of_its_name(tmp_path, name):
    save_figure(tmp_path / name, Figure())
    assert (tmp_path / name).read_bytes().startswith(BEGINS[name])
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_other_endings_are_refused_in_one_sentence(tmp_path):
    with pytest.raises(UserError, match=r"a.docx ends in .docx, expected the name of a picture, such as a.png; there are "):
        save_figure(tmp_path / "a.docx", Figure())
    assert not list(tmp_path.iterdir())


def test_a_mean_is_drawn_where_it_was_taken():
    """A training loss is the mean since the measurement before: its place is half-way between the two."""
    assert between([50, 100, 130]) == [25, 75, 115]
    rows = [{"step": step, "train_loss": 9 - step / 50, "validation_loss": 9 - step / 60} for step in (50, 100, 130)]
    training, validation, *_ = draw_curves(rows, {"uniform": 9.5}).axes[0].get_lines()
    assert list(training.get_xdata()) == [25, 75, 115]
    assert list(validation.get_xdata()) == [50, 100, 130]
