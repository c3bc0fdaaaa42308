"""Encodings, quoting and signals, which differ from one terminal to the next."""

import io
import os
import signal
import sys

from mini_tf import terminal
from mini_tf.terminal import quoted, signals_to_end, write_in_any_encoding

import pytest


def stream(encoding):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


@pytest.mark.parametrize(("encoding", "asked_for", "written"), [
    ("utf-8", True, "Σ → ok"), ("cp1252", True, "sum -> ok"), ("ascii", True, "sum -> ok"), ("cp1252", False, "Σ → ok"),
])  # fmt: skip
def test_what_an_encoding_lacks_is_written_in_another_way(monkeypatch, encoding, asked_for, written):
    """Into a pipe or a file it is UTF-8, unless PYTHONIOENCODING asks for something else."""
    out = stream(encoding)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("PYTHONIOENCODING", encoding if asked_for else "")
    write_in_any_encoding()
    print("Σ → ok", end="", flush=True)
    assert out.buffer.getvalue().decode(out.encoding) == written


def test_a_letter_without_a_stand_in_is_written_as_its_number(monkeypatch):
    out = stream("ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    write_in_any_encoding()
    print("γ\udcff", end="", flush=True)                 # also half of a character, from a name that is not UTF-8
    assert out.buffer.getvalue() == rb"\u03b3\udcff"


def test_streams_that_cannot_be_told_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", None)
    write_in_any_encoding()


def test_every_stand_in_is_ascii():
    assert all(text.isascii() and not character.isascii() for character, text in terminal.STAND_INS.items())


def test_a_word_is_quoted_as_its_terminal_needs_it(monkeypatch):
    assert quoted("runs/quick") == "runs/quick"
    assert quoted("my runs") == "'my runs'"
    monkeypatch.setattr(os, "name", "nt")
    assert quoted(r"C:\my runs\quick") == r'"C:\my runs\quick"'


def test_the_signals_that_end_a_program():
    assert signal.SIGTERM in signals_to_end()
    assert signal.SIGINT not in signals_to_end()         # Ctrl-C is another thing
    if os.name == "posix":
        assert signal.SIGHUP in signals_to_end()
