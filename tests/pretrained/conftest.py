"""What the tests of pretrained models share."""

import pytest


@pytest.fixture
def transformers():
    pytest.importorskip("torch", reason="PyTorch is not installed; it is only a peer")
    return pytest.importorskip("transformers", reason="transformers is not installed; it is only an oracle")
