"""Ready settings for the language transformer."""

from dataclasses import dataclass

from mini_tf.errors import UserError


@dataclass(frozen=True)
class Preset:
    """Everything that decides a training run, except the text and the seed."""

    name: str
    description: str
    n: int                       # embedding dimension: so many eigenvectors
    model: dict                  # options of LanguageTransformer
    embedding_scale: float       # the eigenvector embeddings are multiplied by this
    learning_rate: float
    batch: int                   # windows in a batch
    steps: int
    every: int                   # steps between two measurements of the validation loss
    patience: int = 5            # measurements without a better one before training stops
    warm_up: int = 20            # steps over which the learning rate rises
    W: int = 10                  # co-occurrence window
    validation_words: int = 2000     # words of the validation part in a measurement
    sample_words: int = 500


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            name="quick",
            description="small, learns at every position, trains its word vectors too: a minute or two on a laptop",
            n=64,
            model={
                "T": 32, "L": 2, "H": 4, "m": 16, "readout": "shared", "causal": True, "layer_norm": True,
                "positions": "geometric", "scaled_attention": True, "train_embeddings": True,
            },
            embedding_scale=8.0,
            learning_rate=6e-3,
            batch=64,
            steps=300,
            every=50,
        ),
        Preset(
            name="lab",
            description="the transformer of ESE-2000 Lab 6, Task 6.13, in the sizes that Task 6.5 recommends",
            n=256,
            model={
                "T": 32, "L": 6, "H": 8, "m": 64, "readout": "vec", "causal": True, "layer_norm": True,
                "positions": "geometric", "position_scale": 0.06,
            },
            embedding_scale=1.0,
            learning_rate=3e-4,
            batch=64,
            steps=2000,
            every=100,
        ),
    )
}  # fmt: skip


def preset_named(name):
    """The preset of that name. Raises UserError that names those there are."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is unknown, expected one of {', '.join(PRESETS)}")
    return PRESETS[name]
