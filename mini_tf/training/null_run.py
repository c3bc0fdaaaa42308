"""The null run: that of a process that writes no files, because only rank 0 does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mini_tf.text import Vocabulary
from mini_tf.text.sentences import SentenceVocabulary
from mini_tf.training.state import Training
from mini_tf.types import PathLike


class NullRun:
    """In place of a `Run`, on all processes but rank 0: it writes nothing, and has found nothing.

    folder    that of rank 0, for messages
    settings  what config.json says
    """

    def __init__(self, folder: PathLike | None):
        self.folder, self.command, self.rescue, self.settings = Path(folder or "runs"), {}, None, None

    def begin(self, config: dict[str, Any], say: Callable[[str], None] | None = None) -> None:
        pass

    def save_config(
        self, config: dict[str, Any], vocabulary: Vocabulary | tuple[SentenceVocabulary, SentenceVocabulary]
    ) -> None:
        self.settings = {"command": self.command} | config

    def restore(self, training: Training, say: Callable[[str], None] | None = None) -> None:
        return None

    def config(self) -> None:
        return None

    def is_finished(self) -> None:
        return None

    def how_to_go_on(self) -> str:
        return f"mini-tf train --resume {self.folder}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
