"""Models: whole networks with a loss, and the counting models that they have to beat.

    loss, backward = model.loss(batch)
    backward()                           # fills .grad of every parameter, and frees its memory on the way
    logits = model.logits(ids)
    log_p = model.log_probabilities(ids, start)      # of each word from `start` on, given those before it
"""

from mini_tf.models.fixed_window import FixedWindowModel
from mini_tf.models.language_transformer import LanguageTransformer
from mini_tf.models.ngram import NGramModel, markov_chain
from mini_tf.models.pointer_transformer import PointerTransformer
from mini_tf.models.recurrent import CarriedState, RecurrentModel

__all__ = [
    "CarriedState", "FixedWindowModel", "LanguageTransformer", "NGramModel", "PointerTransformer", "RecurrentModel",
    "markov_chain",
]  # fmt: skip
