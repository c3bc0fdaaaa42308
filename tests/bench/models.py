"""The models whose training and writing is timed, the words that they are given, and the way to the same in PyTorch.

The word vectors and the words are random: neither changes how long a step takes. The sizes are those of the lab's text.
"""

from functools import partial
from importlib.util import find_spec

from mini_tf import kernels
from mini_tf.layers import Embedding, LayerNorm, PositionalEncoding, PreNormLayer, TiedReadout, walk_back
from mini_tf.layers.layer import Layer
from mini_tf.models import LanguageTransformer
from mini_tf.training.presets import PRESETS, Preset

import numpy as np

WORDS = 14_295           # c, the vocabulary of the lab's nine plays

GPT = Preset(
    name="gpt",
    description="a small GPT over words",
    model_class="WordGPT",
    n=128,
    model={"T": 64, "L": 2, "H": 4, "m": 32, "f": 512},
    vectors="random",
    embedding_scale=128**-0.5,
    learning_rate=1e-3,
    batch=32,
    steps=1000,
    every=100,
)

MODELS = {"lab": PRESETS["lab"], "quick": PRESETS["quick"], "gpt": GPT}


class WordGPT(Layer):
    """Pre-norm layers, each with a feed-forward part, a last layer norm, and a readout tied to the trained word vectors

    It learns at every position, as LanguageTransformer does with the readout "shared".
    """

    def __init__(self, embeddings, *, T, L, H, m, f, seed=0):
        rng = np.random.default_rng(seed)
        n = embeddings.shape[1]
        self.T, self.mask = T, np.tri(T, dtype=bool)
        self.embedding = Embedding(embeddings)
        self.positions = PositionalEncoding(T, n, scale=n**-0.5)         # as large as the word vectors
        self.layers = [PreNormLayer(n, H, m, f, rng, scale=m**-0.5, activation="gelu") for _ in range(L)]
        self.norm = LayerNorm(n)
        self.A = TiedReadout(self.embedding)

    def loss(self, windows):
        """The mean cross-entropy after every word of windows (B, T + 1) but the last, and its backward."""
        x, following = windows[:, :-1], windows[:, 1:]
        layers = [partial(layer, mask=self.mask) for layer in self.layers]
        backwards = []
        for step in [self.embedding, self.positions, *layers, self.norm, self.A]:
            x, step_backward = step(x)
            backwards.append(step_backward)
        loss, loss_backward = kernels.cross_entropy(x, following)
        backward = walk_back([*backwards, lambda dloss: loss_backward(dloss)[0]])
        return loss, lambda: backward(1.0)


def new_model(preset):
    """The preset's model, untrained, over random word vectors as large as the preset's; the same every time.

    Weights that start at 0 are random too, with variance 1/in: so already the first loss tells of every part of the
    model, and two implementations that find the same one do the same arithmetic.
    """
    embeddings = np.random.default_rng(1).standard_normal((WORDS, preset.n), dtype=np.float32)
    if preset.vectors == "eigenvectors":
        embeddings *= WORDS**-0.5                                        # n columns of length 1
    embeddings *= np.float32(preset.embedding_scale)
    model_class = WordGPT if preset is GPT else LanguageTransformer
    model = model_class(embeddings, **preset.model)
    rng = np.random.default_rng(3)
    for parameter in model.parameters().values():
        if parameter.data.ndim == 2 and not parameter.data.any():
            rng.standard_normal(out=parameter.data, dtype=np.float32)
            parameter.data *= len(parameter.data) ** -0.5
    return model


def random_words(*shape):
    """Word ids whose frequencies fall as 1/rank, as those of a text do (Zipf); the same every time."""
    shares = 1 / np.arange(1, WORDS + 1)
    return np.random.default_rng(2).choice(WORDS, shape, p=shares / shares.sum())


def matrix_operations(model, batch):
    """Multiplications and additions in the matrix products of one training step, counted from the weights' shapes.

    A weight W (in, out) takes 2·rows·in·out in each of three products: y = x·W, dx = dy·Wᵀ, dW = xᵀ·dy. No one asks for
    the dx of the first layer's query, key and value if the word vectors are fixed. Attention has six products of
    2·T·T·m in each head, two forward and four backward; those that a causal mask could save are counted.
    """
    rows = batch * model.T
    once_a_history = getattr(model, "readout", None) == "vec"            # A has a row of T·n for each history
    operations = 0
    for name, parameter in model.parameters().items():
        if parameter.data.ndim == 2 and (name != "embedding.table" or isinstance(model.A, TiedReadout)):
            operations += 3 * 2 * (batch if name == "A.W" and once_a_history else rows) * parameter.data.size
    if not model.embedding.table.trainable:
        attention = model.layers[0].attention
        operations -= 2 * rows * sum(part.W.data.size for part in (attention.query, attention.key, attention.value))
    for layer in model.layers:
        operations += 6 * 2 * rows * model.T * layer.attention.H * layer.attention.m
    return operations


def torch_installed():
    """Whether PyTorch is; says so if it is not."""
    if find_spec("torch"):
        return True
    print("PyTorch is not installed (pip install torch==2.13.0): mini_tf alone is measured.")
    return False


def import_peer(threads):
    """The module torch_models."""
    import torch
    import torch_models

    torch.set_num_threads(threads)
    return torch_models
