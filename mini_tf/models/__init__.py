"""Models: whole networks with a loss, and the counting models that they have to beat.

    loss, backward = model.loss(batch)
    backward()                           # fills .grad of every parameter, and frees memory on the way
    logits = model.logits(ids)           # (B, c), scores of the word that follows each history
    log_p = model.log_probabilities(ids, start)      # of each word from `start` on, given the words before it

A Classifier predicts a text's class and a MaskedWordModel its hidden words; their batches are of other types.

A transformer is a trunk (from words to vectors, `mini_tf/layers/trunk.py`), a head (from vectors to predictions) and
an objective (the loss of the predictions, `objectives.py`). The interface of language models is in `text_model.py`.
"""

from mini_tf.models.classifier import Classifier
from mini_tf.models.fixed_window import FixedWindowModel
from mini_tf.models.gpt import GPT
from mini_tf.models.gpt2 import GPT2
from mini_tf.models.language_transformer import LanguageTransformer
from mini_tf.models.llama import Llama
from mini_tf.models.masked import MaskedWordModel
from mini_tf.models.ngram import NGramModel, markov_chain
from mini_tf.models.one_attention import OneAttention
from mini_tf.models.recurrent import CarriedState, RecurrentModel
from mini_tf.models.recurrent_translator import RecurrentTranslator
from mini_tf.models.text_model import TextModel
from mini_tf.models.translation_model import TranslationModel
from mini_tf.models.translator import Translator

__all__ = [
    "CarriedState", "Classifier", "FixedWindowModel", "GPT", "GPT2", "LanguageTransformer", "Llama", "MaskedWordModel",
    "NGramModel", "OneAttention", "RecurrentModel", "RecurrentTranslator", "TextModel", "TranslationModel",
    "Translator", "markov_chain",
]  # fmt: skip
