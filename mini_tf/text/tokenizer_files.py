"""Tokenizers of pretrained models, in files that other programs made."""

import json
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.files import MOST, kind_of
from mini_tf.text.hub import HubVocabulary
from mini_tf.text.llama2c import LlamaVocabulary
from mini_tf.text.tokens import Vocabulary
from mini_tf.types import PathLike

NEEDED = "a tokenizer is llama2.c's tokenizer.bin or Hugging Face's tokenizer.json"


def open_tokenizer(path: PathLike, size: int | None = None) -> Vocabulary:
    """The tokenizer in a file: llama2.c's tokenizer.bin, or Hugging Face's tokenizer.json, also in a model's folder.

    size: the number of tokens that the model knows
    Raises UserError if there is none at the path, if it cannot be read, and if it has another number of tokens.
    """
    path = Path(path)
    if path.is_dir():
        path /= "tokenizer.json"
    data = _content(path)
    try:
        vocabulary = _hub(path, data) if path.suffix == ".json" else LlamaVocabulary.read(data)
    except UserError as error:
        raise UserError(f"the tokenizer {path} cannot be read: {error}") from None
    if size is not None and len(vocabulary) != size:
        raise UserError(f"the tokenizer {path} has {len(vocabulary):,} tokens and the model {size:,}, expected as "
                        "many: it is another model's, or truncated")  # fmt: skip
    return vocabulary


def _content(path):
    try:
        if (kind := kind_of(path)) != "a file":
            reason = f"it is {kind}, expected a file"
        elif (size := path.stat().st_size) > MOST:
            reason = f"it has {size:,} bytes, expected at most {MOST:,}"
        else:
            return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}; {NEEDED}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"the tokenizer {path} cannot be read: {reason}; {NEEDED}")


def _hub(path, data):
    """The vocabulary of a tokenizer.json; the file tokenizer_config.json beside it says which token ends a text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"it is no tokenizer.json ({error})") from None
    try:
        end = json.loads(_content(path.with_name("tokenizer_config.json")))["eos_token"]
    except (UserError, ValueError, TypeError, KeyError):
        end = None
    end = end.get("content") if isinstance(end, dict) else end
    return HubVocabulary(text, end if isinstance(end, str) else None)
