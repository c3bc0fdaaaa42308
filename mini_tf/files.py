"""Files that are never half-written."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path):
    """Yield a temporary path beside `path`; if the block succeeds, the file there replaces `path`.

    with replacing("run/curves.png") as temporary:
        figure.savefig(temporary)

    A reader sees the old file or the new one, never part of one. If the block raises, or the process is
    interrupted, the temporary file is removed and `path` stays as it was. The suffix is kept, because
    many libraries choose the format by it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(temporary)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())     # mkstemp makes files private; these are the user's to share
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path, text):
    """Write `text` to `path` as UTF-8, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
