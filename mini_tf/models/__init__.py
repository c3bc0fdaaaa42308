"""Models: whole networks with a loss.

    loss, backward = model.loss(batch)
    backward()                           # fills .grad of every parameter, and frees its memory on the way
    logits = model.logits(ids)
"""

from mini_tf.models.language_transformer import LanguageTransformer

__all__ = ["LanguageTransformer"]
