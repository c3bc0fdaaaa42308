"""The choice of a tokenizer: one learned from a text, or a pretrained model's, from a file of another program."""

import json
import re
from pathlib import Path

from mini_tf.checks import check_whole, shown
from mini_tf.errors import UserError
from mini_tf.files import check_readable
from mini_tf.text.byte_pairs import LEAST_PIECES, MOST_PIECES, BytePairVocabulary
from mini_tf.text.characters import CharacterVocabulary
from mini_tf.text.hub import HubVocabulary
from mini_tf.text.llama2c import LlamaVocabulary
from mini_tf.text.tokens import Vocabulary
from mini_tf.types import PathLike

NEEDED = "a tokenizer is llama2.c's tokenizer.bin or Hugging Face's tokenizer.json"

WHOLE = {each.kind: each for each in (Vocabulary, CharacterVocabulary)}          # made from the whole text
BPE = re.compile(r"bpe:(\d{1,9})")


def check_tokenizer(name: str) -> None:
    """Raises UserError unless it is "words", "characters", "bpe:N" for a number N of pieces, or a tokenizer's file."""
    if is_file(name):
        return
    found = BPE.fullmatch(str(name))
    if found:
        check_whole(LEAST_PIECES, MOST_PIECES, **{"the N of tokenizer=bpe:N": int(found[1])})
    elif name not in WHOLE:
        raise UserError(f"tokenizer is {shown(name)}, expected {', '.join(WHOLE)}, a file or, with a number of pieces, "
                        "bpe:512")  # fmt: skip


def is_file(name: str) -> bool:
    """True for the path of a pretrained model's tokenizer: a file, or a folder that has one"""
    if not isinstance(name, str) or not name or name in WHOLE or BPE.fullmatch(name):
        return False
    return Path(name).is_file() or (Path(name) / "tokenizer.json").is_file()


def unit_of(name: str) -> str:
    """What that tokenizer's tokens are called: "word", "character" or "piece"."""
    return (WHOLE.get(name) or BytePairVocabulary).unit


def new_tokenizer(name: str, text: str, training: str) -> Vocabulary:
    """The vocabulary by a tokenizer's name: the "words" or "characters" of a text, "bpe:512", 512 pieces learned from
    `training`, or the one in a file, whatever the text.

    training: the part of the text that the model is trained on
    Raises UserError for another name.
    """
    check_tokenizer(name)
    if is_file(name):
        return open_tokenizer(name)
    if found := BPE.fullmatch(name):
        return BytePairVocabulary.learn(training, int(found[1]))
    vocabulary = WHOLE[name]([])
    return WHOLE[name](vocabulary.split(text))


def open_tokenizer(path: PathLike, size: int | None = None) -> Vocabulary:
    """The tokenizer in a file: llama2.c's tokenizer.bin, or Hugging Face's tokenizer.json, also in a model's folder.

    size: the number of tokens that the model knows
    Raises UserError if there is none at the path, if it cannot be read, or if it has another number of tokens.
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
        check_readable(path)
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {path}; {NEEDED}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise UserError(f"the tokenizer {path} cannot be read: {reason}; {NEEDED}")


def _hub(path, data):
    """The vocabulary of a tokenizer.json; tokenizer_config.json, beside it, says which token ends a text."""
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
