"""What all tests share: a seeded generator, Lab 6's corpus, and skipping GPU tests where there is no GPU."""

from mini_tf.backend import gpu_count
from mini_tf.errors import UserError
from mini_tf.text import Vocabulary, shakespeare, tokenize

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def lab_text():
    """The text of Lab 6's corpus; the test is skipped if it is not here and cannot be fetched."""
    try:
        return shakespeare()
    except UserError as error:
        if "has to be fetched" not in str(error):
            raise                                        # a wrong text is a failure
        return pytest.skip(str(error))


@pytest.fixture(scope="session")
def lab_corpus(lab_text):
    """(tokens, vocabulary, ids) of Lab 6's corpus."""
    tokens = tokenize(lab_text)
    vocabulary = Vocabulary(tokens)
    return tokens, vocabulary, vocabulary.encode(tokens)


def pytest_collection_modifyitems(items):
    gpus, why_not = gpu_count()
    if gpus:
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {why_not}"))
