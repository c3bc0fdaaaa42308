"""Draws Lab 6's transformer, a GPT and a Llama of the same sizes, for the README: labs/pictures/architecture.png.

    python tests/bench/architecture.py
"""

import sys
from pathlib import Path

from mini_tf.models import GPT, LanguageTransformer, Llama
from mini_tf.training.figures import save_figure

import numpy as np

LABS = Path(__file__).parent.parent.parent / "labs"
sys.path.append(str(LABS))

from _drawing.architecture import architecture  # noqa: E402, of the labs


def main():
    vectors = np.random.default_rng(0).standard_normal((14_295, 128)).astype(np.float32)
    sizes = {"T": 64, "L": 2, "H": 4, "m": 32}           # those of the preset gpt
    models = LanguageTransformer(vectors, **sizes, readout="vec"), GPT(vectors, **sizes, f=512), Llama(vectors, **sizes, G=2)
    figure = architecture(*models)
    save_figure(LABS / "pictures" / "architecture.png", figure, dpi=120)


if __name__ == "__main__":
    main()
