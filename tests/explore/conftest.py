"""A tiny model with a text, its exploration, and the page's arrays as NumPy's."""

import base64

from mini_tf.explore.exploration import explore_model
from mini_tf.explore.readings import reading
from mini_tf.models import LanguageTransformer
from mini_tf.text import Vocabulary

import numpy as np
import pytest

WORDS = "the cat sat on a mat and saw what it had done to my hat".split()
TEXT = "the cat sat on the mat"


def tiny_model(seed=0, **options):
    rng = np.random.default_rng(seed)
    options = {
        "T": 7, "L": 2, "H": 2, "m": 3, "readout": "shared", "causal": True, "layer_norm": True,
        "positions": "geometric", "scaled_attention": True, "train_embeddings": True,
    } | options  # fmt: skip
    model = LanguageTransformer(rng.standard_normal((len(WORDS), 8)).astype(np.float32), **options)
    for p in model.parameters().values():                # generic: γ is not 1, nothing is 0
        p.data = p.data + (0.3 * rng.standard_normal(p.data.shape)).astype(np.float32)
    return model


def tiny_reading(text=TEXT, **options):
    return reading(tiny_model(**options), Vocabulary(WORDS), text)


def decoded(about):
    """A page's array as NumPy's: the part that it holds"""
    shape = [size if shown is None else len(shown) for size, shown in
             zip(about["shape"], about.get("shown") or [None] * len(about["shape"]))]  # fmt: skip
    if about["form"] == "f2":
        return np.frombuffer(base64.b64decode(about["data"]), "<f2").astype(float).reshape(shape) * about["scale"]
    return np.frombuffer(base64.b64decode(about["data"]), f"<{about['form']}").reshape(shape)


@pytest.fixture(scope="session")
def exploration():
    """The Exploration of the tiny model, with one planted bug, and of two moments. Read only."""
    read = tiny_reading()
    now = {name: p.data for name, p in read.model.parameters().items()}
    earlier = {name: np.asarray(0.5 * data, data.dtype) for name, data in now.items()}
    moments = [("earlier", earlier), ("now", now)]
    return explore_model(read, "a tiny model", "for tests", moments, bugs=["layer_norm: γ forgotten"])


@pytest.fixture
def opened(chromium, tmp_path):
    """opened(exploration, **options) → the page in the browser; it fails for errors, and for requests that leave it"""
    pages, troubles = [], []

    def open_page(exploration, quiet=True, **options):
        path = tmp_path / "page.html"
        exploration.write(path)
        page = chromium.new_page(**{"viewport": {"width": 1280, "height": 800}} | options)
        page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append(f"a dialog: {dialog.message}"))
        page.on("request", lambda request: troubles.append(request.url) if request.url != address else None)
        address = path.as_uri()
        page.goto(address + "#quiet" * quiet)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == [], troubles
