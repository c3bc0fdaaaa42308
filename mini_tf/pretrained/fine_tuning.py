"""The task and the preset of training a Llama: from random weights, or further, from pretrained ones."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mini_tf.errors import UserError
from mini_tf.metrics import mean_of
from mini_tf.models import Llama, TextModel
from mini_tf.pretrained.llama import load_llama
from mini_tf.text.tokenizers import open_tokenizer
from mini_tf.training.language import Corpus, Language
from mini_tf.training.task import Task
from mini_tf.types import PathLike

if TYPE_CHECKING:
    from mini_tf.training.run import Run

SIZES = "L", "H", "G", "m", "f", "tied", "base", "eps"   # options of a Llama that its pretrained weights decide


@dataclass(frozen=True, kw_only=True)
class LlamaLanguage(Language):
    """The task of predicting the next piece of a text, perhaps by a model that has learned from other texts before."""

    pretrained: str = ""         # the file or folder of the Llama to begin with; "": random weights

    def new_model(self, prepared: Corpus, seed: int) -> TextModel:
        if not self.pretrained:
            return super().new_model(prepared, seed)
        begun = load_llama(self.pretrained)
        model = Llama(begun.trunk.embedding.table.data, **self.model, seed=seed)
        ours = model.parameters()
        for name, parameter in begun.parameters().items():
            ours[name].data = parameter.data
        return model

    def report(self, run: "Run", model: TextModel, prepared: Corpus, seed: int) -> dict[str, Any]:
        """The losses, also of the pretrained model: "before" and "before_per_character"."""
        results = super().report(run, model, prepared, seed)
        if not self.pretrained:
            return results
        before = mean_of(self.measured(self.new_model(prepared, seed), prepared.test))
        return results | {"before": before, "before_per_character": before / results["test"] * results["per_character"]}


def starting_from(preset: Task, path: PathLike, tokenizer: PathLike | None = None) -> LlamaLanguage:
    """The preset with the sizes of a pretrained Llama, from whose weights it begins, and with its tokenizer.

    tokenizer: its file; by default the one in the model's folder
    Raises UserError for a preset of another model, for what is no Llama, and for another model's tokenizer.
    """
    if not isinstance(preset, LlamaLanguage):
        raise UserError(f"--from begins with the weights of a Llama; preset {preset.name} trains another model, "
                        "expected --preset llama")  # fmt: skip
    model = load_llama(path)
    open_tokenizer(tokenizer or path, model.c)           # it is this model's
    if preset.model["T"] > model.T:
        raise UserError(f"T is {preset.model['T']}, expected at most {model.T}, which {path} has learned")
    sizes = {name: model.config[name] for name in SIZES}
    return replace(preset, model=preset.model | sizes, n=model.trunk.embedding.table.data.shape[1],
                   pretrained=str(path), tokenizer=str(tokenizer or path))  # fmt: skip


LLAMA = LlamaLanguage(
    name="llama",
    description="a Llama over pieces of words, in the sizes of stories260K; --from goes on with pretrained weights",
    model_class="Llama",
    tokenizer="bpe:512",
    n=64,
    model={"T": 128, "L": 5, "H": 8, "G": 4, "m": 8, "f": 172, "lora": 0},
    vectors="random",
    full_history=False,
    embedding_scale=64**-0.5,
    learning_rate=2e-3,
    betas=(0.9, 0.99),
    batch=16,
    steps=600,
    every=100,
    warm_up=50,
    clip=1.0,
)
