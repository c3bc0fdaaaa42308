"""A pretrained model and its tokenizer, opened and written, whatever the format."""

import json
from collections.abc import Iterator
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.models import GPT2, Llama, TextModel
from mini_tf.pretrained.folder import read_config
from mini_tf.pretrained.gpt2 import export_gpt2, load_gpt2
from mini_tf.pretrained.llama import export_llama, load_llama
from mini_tf.pretrained.llama2c import export_llama2c
from mini_tf.text import LlamaVocabulary, Vocabulary
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
    Raises UserError for what is no such model, and for another model's tokenizer.
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


def export_model(model: TextModel, vocabulary: Vocabulary, target: PathLike) -> Iterator[Path]:
    """Write a Llama, its LoRA merged, as a .bin file of llama2.c, or a Llama or a GPT2 as a folder of Hugging Face.
    Yields the files; beside a .bin file there is a tokenizer.bin, if the vocabulary came from one.

    Raises UserError for other models, and for what the format cannot express; and NotWritten.
    """
    target = Path(target)
    if isinstance(model, Llama) and model.config["lora"]:
        model = model.merged()
    if target.suffix == ".bin" and isinstance(model, Llama):
        export_llama2c(model, target)
        yield target
        if isinstance(vocabulary, LlamaVocabulary):
            vocabulary.save(target.with_name("tokenizer.bin"))
            yield target.with_name("tokenizer.bin")
        return
    if target.suffix == ".bin" or not isinstance(model, (Llama, GPT2)):
        raise UserError(f"{target} would hold a {type(model).__name__}, expected a Llama for a .bin file, a Llama or a "
                        "GPT2 for a folder")  # fmt: skip
    export_gpt2(model, target) if isinstance(model, GPT2) else export_llama(model, target)
    yield from (target / name for name in ("config.json", "model.safetensors"))
