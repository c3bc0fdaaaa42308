"""A corpus of your own: any text file in UTF-8."""

import sys
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.files import STANDARD, PathLike


def read_corpus(path: PathLike) -> str:
    """The text of the file `path`, as one string with "\\n" between lines. "-" is standard input.

    A byte order mark at the start is dropped, and Windows line endings (CR LF) become "\\n", so that a line
    break is the same word whichever system wrote the file. Raises UserError for a missing file, a folder, a file
    that cannot be read, one that is not UTF-8, and one with nothing but white space.
    """
    return read_text(path, "a corpus", "words")


def read_text(path: PathLike, kind: str, needs: str) -> str:
    """As `read_corpus`, for any kind of text; the messages say that `kind` ("a corpus") needs `needs` ("words")."""
    name, data = ("standard input", _standard_input(kind)) if str(path) == STANDARD else (path, _content(path, kind))
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        if b"\0" in data and not is_utf16:
            raise UserError(f"{name} is not a text: it has bytes of value 0, as pictures and archives have; {kind} is "
                            "a text file in UTF-8, so name one") from None           # fmt: skip
        line, encoding = data.count(b"\n", 0, error.start) + 1, "UTF-16" if is_utf16 else "LATIN1"      # most likely
        raise UserError(
            f"{name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}, in line {line}, does not "
            f"fit; save the file as UTF-8, e.g. with `iconv -f {encoding} -t UTF-8`"
        ) from None
    if not text.strip():
        what = "has nothing but white space" if text else "is empty"
        raise UserError(f"{name} {what}; {kind} needs {needs}, so name a file that has some")
    return text.replace("\r\n", "\n")


def _standard_input(kind):
    """The bytes of standard input, to its end. Raises UserError if nothing is piped into it."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError(f"{kind} was to come from standard input, and nothing is sent there: add `< FILE`, or name the "
                        "file")  # fmt: skip
    return sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode("utf-8")


def _content(path, kind):
    """The bytes of a file, or of a pipe."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}; {kind} is a text file in UTF-8, so check the name and the folder"
                        ) from None  # fmt: skip
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); {kind} is one text file in UTF-8, so check its "
                        "name and its permissions") from error  # fmt: skip
