"""Files are whole or not there."""

import os

from mini_tf.files import replacing, write_text

import pytest


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "one\n")
    write_text(path, "two\n")
    assert path.read_bytes() == b"two\n"
    assert os.listdir(path.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(error), replacing(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_suffix_is_kept_and_the_file_is_readable_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        with replacing(tmp_path / "figure.png") as temporary:
            assert temporary.suffix == ".png"
            temporary.write_bytes(b"png")
    finally:
        os.umask(before)
    assert (tmp_path / "figure.png").stat().st_mode & 0o777 == 0o644
