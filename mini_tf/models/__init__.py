"""Models: whole networks with a loss.

    loss, backward = model.loss(batch)
    backward()                           # fills .grad of every parameter, and frees its memory on the way
    logits = model.logits(ids)
"""

from mini_tf.models.language_transformer import LanguageTransformer
from mini_tf.models.ngram import NGramModel, markov_chain

__all__ = ["LanguageTransformer", "NGramModel", "markov_chain"]
