"""The task and the preset for training a Llama, from random weights or from pretrained ones."""

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

SIZES = "L", "H", "G", "m", "f", "tied", "base", "eps"   # options taken from the pretrained Llama


@dataclass(frozen=True, kw_only=True)
class LlamaLanguage(Language):
    """The task of predicting the next piece of a text, by a new Llama or by a pretrained one."""

    pretrained: str = ""         # the file or folder of the Llama to start from; "": random weights

    def new_model(self, prepared: Corpus, seed: int) -> TextModel:
        if not self.pretrained:
            return super().new_model(prepared, seed)
        pretrained = load_llama(self.pretrained)
        model = Llama(pretrained.trunk.embedding.table.data, **self.model, seed=seed)
        ours = model.parameters()
        for name, parameter in pretrained.parameters().items():
            ours[name].data = parameter.data
        return model

    def report(self, run: "Run", model: TextModel, prepared: Corpus, seed: int) -> dict[str, Any]:
        """The losses; and the pretrained model's test loss, "before" and "before_per_character"."""
        results = super().report(run, model, prepared, seed)
        if not self.pretrained:
            return results
        before = mean_of(self.measured(self.new_model(prepared, seed), prepared.test))
        return results | {"before": before, "before_per_character": before / results["test"] * results["per_character"]}


def starting_from(preset: Task, path: PathLike, tokenizer: PathLike | None = None) -> LlamaLanguage:
    """The preset, changed to start from the weights of a pretrained Llama, with its sizes and its tokenizer.

    tokenizer: its file; by default the one in the model's folder
    Raises UserError for a preset of another model, for what is not a Llama, for another model's tokenizer, and for a T
    above the pretrained model's.
    """
    if not isinstance(preset, LlamaLanguage):
        raise UserError(f"--from starts from the weights of a Llama; preset {preset.name} trains another model, "
                        "expected --preset llama")  # fmt: skip
    model = load_llama(path)
    open_tokenizer(tokenizer or path, model.c)           # it has as many pieces as the model
    if preset.model["T"] > model.T:
        raise UserError(f"T is {preset.model['T']}, expected at most {model.T}, the T of {path}")
    sizes = {name: model.config[name] for name in SIZES}
    return replace(preset, model=preset.model | sizes, n=model.trunk.embedding.table.data.shape[1],
                   pretrained=str(path), tokenizer=str(tokenizer or path))  # fmt: skip


LLAMA = LlamaLanguage(
    name="llama",
    description="a Llama over pieces of words, in the sizes of stories260K; --from fine-tunes a pretrained one",
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
