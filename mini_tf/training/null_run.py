"""The null run: that of a process that writes no files, because only rank 0 does."""

from pathlib import Path
from typing import Any

from mini_tf.types import PathLike


class NullRun:
    """In place of a `Run`, on all processes but rank 0: it writes nothing, and has found nothing.

    folder    that of rank 0, for messages
    settings  what config.json says
    """

    def __init__(self, folder: PathLike | None):
        self.folder, self.command, self.rescue, self.settings = Path(folder or "runs"), {}, None, None

    def _nothing(self, *_) -> None:
        pass

    begin = restore = config = is_finished = __exit__ = _nothing

    def __enter__(self):
        return self

    def save_config(self, config: dict[str, Any], vocabulary: Any) -> None:
        self.settings = {"command": self.command} | config

    def how_to_go_on(self) -> str:
        return f"mini-tf train --resume {self.folder}"
