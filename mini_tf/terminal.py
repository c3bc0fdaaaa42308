"""How terminals differ: in their encoding, in how they quote a word, in the signals by which they end a program."""

import codecs
import os
import shlex
import signal
import subprocess
import sys

# What is printed for a character that the terminal's encoding lacks; of others, their number: \u03b3
STAND_INS = {
    "→": "->", "←": "<-", "▲": "^", "▼": "v", "−": "-", "–": "-", "—": "-", "·": "*", "×": "x", "…": "...", "≤": "<=",
    "≥": ">=", "≠": "!=", "≈": "~", "±": "+-", "✓": "+", "✗": "x", "█": "#", "━": "-", "─": "-", "│": "|", "‖": "||",
    "’": "'", "‘": "'", "“": '"', "”": '"', "√": "sqrt", "∞": "inf", "Σ": "sum", "∂": "d",
}  # fmt: skip


def write_in_any_encoding() -> None:
    """From here on, printing never fails for a character that the output's encoding lacks: a stand-in is printed.

    If no encoding was asked for, by PYTHONIOENCODING, then what goes to a file or a pipe is UTF-8, as all files of
    mini_tf are: on Windows it would be an encoding that has neither "→" nor Greek letters.
    """
    codecs.register_error("mini_tf", _stand_in)
    for stream in (sys.stdout, sys.stderr):
        if not hasattr(stream, "reconfigure"):           # a notebook's, or pythonw's None
            continue
        asked_for = os.environ.get("PYTHONIOENCODING") or stream.isatty()
        stream.reconfigure(encoding=None if asked_for else "utf-8", errors="mini_tf")


def _stand_in(error):
    """The error handler: the text for the characters that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = "".join(STAND_INS.get(c) or c.encode("ascii", "backslashreplace").decode()
                   for c in error.object[error.start : error.end])  # fmt: skip
    return text, error.end


def quoted(word: str) -> str:
    """A word as it can be typed into the terminal: in quotation marks if it needs them."""
    return subprocess.list2cmdline([word]) if os.name == "nt" else shlex.quote(word)


def signals_to_end() -> list[int]:
    """The signals that ask a program to end: SIGTERM, SIGHUP when its window is closed, Ctrl-Break on Windows."""
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
