"""The null run: that of a process that writes no files, because only rank 0 does."""

from typing import Any

from mini_tf.training.run import Run
from mini_tf.types import PathLike


class NullRun(Run):
    """In place of a Run, on all processes but rank 0: it writes nothing, and finds nothing."""

    def __init__(self, folder: PathLike | None):
        super().__init__(folder or "runs")               # rank 0's, for messages

    def begin(self, *_: Any) -> None:
        """Nothing is checked: rank 0 does."""

    def restore(self, *_: Any) -> None:
        """Nothing is found: rank 0 sends what it has found."""

    def config(self) -> dict[str, Any]:
        return {}

    def is_finished(self) -> bool:
        return False

    def save_config(self, config: dict[str, Any], vocabulary: Any) -> None:
        self.settings = {"command": self.command} | config
