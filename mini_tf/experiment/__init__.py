"""The project's experiment: how far can a language model get on these words, from counting to copying?

`ladder.py` trains and measures all models on the same words (`mini-tf compare`); `pointer_transformer.py` and
`new_words.py` are the model and the training batches of the best of them. `labs/ladder.md` tells the story.
"""

from mini_tf.experiment.new_words import NewWords
from mini_tf.experiment.pointer_transformer import PointerTransformer

__all__ = ["NewWords", "PointerTransformer"]
