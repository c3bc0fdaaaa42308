"""Ready settings for the language models that are trained."""

from dataclasses import dataclass

from mini_tf.errors import UserError


@dataclass(frozen=True)
class Preset:
    """Everything that decides a training run, except the text and the seed."""

    name: str
    description: str
    n: int                       # embedding dimension
    model: dict                  # options of the model
    embedding_scale: float       # the word vectors are multiplied by this
    learning_rate: float
    batch: int                   # windows in a batch
    steps: int
    every: int                   # steps between two measurements of the validation loss
    model_class: str = "LanguageTransformer"
    vectors: str = "eigenvectors"    # of the whole text's co-occurrences, the lab's way; "training"; "random"
    batches: str = "random"      # windows; "apart": side by side; "consecutive": each goes on where the last one ended
    anew: int = 64               # consecutive batches from one that starts from h_0 to the next
    new_words: float = 0         # share of NewWords, which make rare words new ones
    betas: tuple = (0.9, 0.999)  # of Adam
    clip: float | None = None    # the most that the norm of all gradients may be
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
        Preset(
            name="window",
            description="the fixed-window model of Bengio et al. 2003: four words side by side, one hidden layer",
            model_class="FixedWindowModel",
            n=64,
            model={"T": 4, "k": 128, "dropout": 0.3},
            vectors="random",
            embedding_scale=0.1,
            learning_rate=3e-3,
            batch=512,
            steps=1500,
            every=100,
            clip=1.0,
        ),
        Preset(
            name="recurrent",
            description="a recurrent network, read through the whole text with its state carried on",
            model_class="RecurrentModel",
            n=128,
            model={"T": 32, "k": 256, "dropout": 0.3},
            vectors="random",
            embedding_scale=0.3,
            batches="consecutive",
            learning_rate=3e-3,
            batch=32,
            steps=1000,
            every=100,
            clip=1.0,
            validation_words=20_000,
        ),
        Preset(
            name="pointer",
            description="the best of ours: a transformer that can copy words and expects new ones",
            model_class="PointerTransformer",
            n=192,
            model={"T": 128, "L": 3, "H": 4, "m": 48, "f": 384, "dropout": 0.2},
            vectors="random",
            embedding_scale=192**-0.5,
            batches="apart",
            new_words=0.6,
            learning_rate=2e-3,
            betas=(0.9, 0.99),
            batch=8,
            steps=1944,
            every=243,
            warm_up=97,
            clip=1.0,
            validation_words=20_000,
        ),
    )
}  # fmt: skip


def preset_named(name):
    """The preset of that name. Raises UserError that names those there are."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is unknown, expected one of {', '.join(PRESETS)}")
    return PRESETS[name]
