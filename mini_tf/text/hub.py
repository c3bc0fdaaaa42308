"""tokenizer.json, the file with a Hugging Face model's tokenizer, read by the package `tokenizers`."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from mini_tf.checks import shown
from mini_tf.errors import UserError
from mini_tf.text.merging import utf8
from mini_tf.text.tokens import Vocabulary

ENDS = "</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>"           # the usual names of the token that ends a text


class HubVocabulary(Vocabulary):
    """The tokens of a tokenizer.json, and how it cuts a text into them.

    `first` is the token that it puts before a text, if any, and `end` the one that ends a text.

    text    the content of the file
    end     the token that ends a text, from tokenizer_config.json; by default the first of ENDS that the file has
    Raises UserError for any other text, and where the package `tokenizers` is not installed.
    """

    kind: ClassVar[str] = "tokenizer.json"
    unit: ClassVar[str] = "token"

    def __init__(self, text: str, end: str | None = None):
        try:
            import tokenizers
        except ImportError:
            raise UserError("tokenizer.json is read by a package that is not installed: "
                            "pip install 'mini-tf[hub]'") from None  # fmt: skip
        try:
            self.tokenizer = tokenizers.Tokenizer.from_str(text)
        except Exception as error:                       # `tokenizers` raises nothing more specific
            raise UserError(f"it is no tokenizer.json ({error})") from None
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        ids = self.tokenizer.get_vocab(with_added_tokens=True)
        names = {i: token for token, i in ids.items()}
        super().__init__(names.get(i, f"[unused {i}]") for i in range(max(names, default=-1) + 1))
        self.first = next(iter(self.tokenizer.encode("").ids), None)
        self.end = next((ids[token] for token in ([end] if end else ENDS) if token in ids), None)

    @property
    def content(self) -> Any:
        end = None if self.end is None else self.words[self.end]
        return {"tokenizer": json.loads(self.tokenizer.to_str()), "end": end}

    @classmethod
    def of(cls, content: Any) -> Self:
        """The vocabulary whose `.content` this is. Raises UserError for anything else."""
        if not isinstance(content, dict) or content.keys() != {"tokenizer", "end"}:
            raise UserError(f"the tokenizer is {shown(content)}, expected what tokenizer.json says")
        return cls(json.dumps(content["tokenizer"]), content["end"])

    def split(self, text: str) -> list[str]:
        """The tokens of a text, without those for its start and its end"""
        text = utf8(text).decode(errors="replace")       # `tokenizers` refuses half a surrogate pair
        return self.tokenizer.encode(text, add_special_tokens=False).tokens

    def stream(self, tokens: Iterable[str]) -> Iterator[str]:
        """What each token adds to the text"""
        from tokenizers.decoders import DecodeStream

        written = DecodeStream(skip_special_tokens=True)
        for token in tokens:
            yield written.step(self.tokenizer, self.index[token]) or ""

    def join(self, tokens: Iterable[str]) -> str:
        """The text of tokens"""
        return self.tokenizer.decode([self.index[token] for token in tokens])
