"""The models that the benchmarks time, the words that they read, and the import of their PyTorch versions.

The word vectors and the words are random: neither changes how long a step takes. The sizes are those of the lab's text.
"""

from importlib import import_module
from importlib.util import find_spec

from mini_tf.layers import TiedReadout
from mini_tf.models import TextModel
from mini_tf.training.registry import PRESETS

import numpy as np

WORDS = 14_295           # c, the vocabulary of the lab's nine plays

MODELS = {name: PRESETS[name] for name in ("lab", "quick", "gpt")}


def new_model(preset, dropout=0.0):
    """The preset's model, untrained, over random word vectors as large as the preset's; the same every time."""
    embeddings = np.random.default_rng(1).standard_normal((WORDS, preset.n), dtype=np.float32)
    if preset.vectors == "eigenvectors":
        embeddings *= WORDS**-0.5                                        # n columns of length 1
    embeddings *= np.float32(preset.embedding_scale)
    return without_zeros(TextModel.registry[preset.model_class](embeddings, **preset.model | {"dropout": dropout}))


def without_zeros(model):
    """The model, its weights that would start at 0 made random, too, with variance 1/in; the same every time.

    So even the first loss depends on every part of the model, and two implementations with the same loss do the same
    arithmetic.
    """
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


def random_sentences(rng, many, words, lengths, first=0):
    """Lists of the ids first … words − 1, whose frequencies fall as 1/rank (Zipf)

    lengths: of a sentence, the least and the most; all are equally frequent
    """
    shares = 1 / np.arange(1, words - first + 1)
    sizes = rng.integers(lengths[0], lengths[1] + 1, many)
    ids = first + rng.choice(len(shares), sizes.sum(), p=shares / shares.sum())
    return np.split(ids, np.cumsum(sizes)[:-1])


def matrix_operations(model, batch):
    """Multiplications and additions in the matrix products of one training step, counted from the weights' shapes.

    A weight W (in, out) takes 2·rows·in·out in each of three products: y = x·W, dx = dy·Wᵀ, dW = xᵀ·dy. The dx of the
    first layer's query, key and value is not needed if the word vectors are fixed. Attention has six products of 2·T·T·m
    in each head, two forward and four backward; what a causal mask could save is counted, too.
    """
    rows = batch * model.T
    once_a_history = getattr(model, "readout", None) == "vec"            # A has a row of T·n for each history
    operations = 0
    for name, parameter in model.parameters().items():
        if parameter.data.ndim == 2 and (name != "trunk.embedding.table" or isinstance(model.A, TiedReadout)):
            operations += 3 * 2 * (batch if name == "A.W" and once_a_history else rows) * parameter.data.size
    if not model.trunk.embedding.table.trainable:
        attention = model.trunk.layers[0].attention
        operations -= 2 * rows * sum(part.W.data.size for part in (attention.query, attention.key, attention.value))
    for layer in model.trunk.layers:
        operations += 6 * 2 * rows * model.T * layer.attention.H * layer.attention.m
    return operations


def torch_installed():
    """True if PyTorch is installed; prints a line if it is not."""
    if find_spec("torch"):
        return True
    print("PyTorch is not installed (pip install torch==2.13.0): mini_tf alone is measured.")
    return False


def import_torch(module, threads):
    """The module torch_models, torch_classifier or torch_translator, with PyTorch set to that number of threads."""
    import torch

    torch.set_num_threads(threads)
    return import_module(module)
