"""The run of a process that writes no files, because the first one does."""

from pathlib import Path


class Elsewhere:
    """In place of a `Run`, on all processes but the first: it writes nothing, and has found nothing.

    folder    that of the first process, for messages
    settings  what config.json says
    """

    def __init__(self, folder):
        self.folder, self.command, self.rescue, self.settings = Path(folder or "runs"), {}, None, None

    def begin(self, config, say=None):
        pass

    def save_config(self, config, vocabulary):
        self.settings = {"command": self.command} | config

    def restore(self, training, say=None):
        return None

    def config(self):
        return None

    def is_finished(self):
        return None

    def how_to_go_on(self):
        return f"mini-tf train --resume {self.folder}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
