"""A pretrained model with its tokenizer, whatever its format."""

import json
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.models import GPT2, Llama
from mini_tf.pretrained.folder import read_config
from mini_tf.pretrained.gpt2 import load_gpt2
from mini_tf.pretrained.llama import load_llama
from mini_tf.text import Vocabulary
from mini_tf.text.tokenizers import open_tokenizer
from mini_tf.types import PathLike


def is_pretrained(path: PathLike) -> bool:
    """True for a file, and for a folder whose config.json names an architecture: a run folder's does not."""
    path = Path(path)
    if not path.is_dir():
        return path.exists()
    try:
        return "model_type" in json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def open_pretrained(path: PathLike, tokenizer: PathLike | None = None) -> tuple[Llama | GPT2, Vocabulary]:
    """(model, vocabulary) of a .bin file of llama2.c, or of a folder with a Llama or GPT-2 of Hugging Face

    tokenizer: a file; by default the one in the folder
    Raises UserError for what is no such model, and for a tokenizer of another one.
    """
    path = Path(path)
    if path.is_dir():
        architecture = read_config(path)["model_type"]
        model: Llama | GPT2 = load_gpt2(path) if architecture == "gpt2" else load_llama(path)
    else:
        model = load_llama(path)
        if tokenizer is None:
            raise UserError(f"{path} has no tokenizer in it; name its file: --tokenizer tokenizer.bin")
    return model, open_tokenizer(tokenizer or path, model.c)
