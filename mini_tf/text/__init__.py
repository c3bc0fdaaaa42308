"""Text: the corpus, its words, how often they meet, and the vectors made of that."""

from mini_tf.text.cooccurrence import cooccurrence
from mini_tf.text.corpus import read_corpus
from mini_tf.text.eigenvectors import eigenvector_embeddings
from mini_tf.text.shakespeare import shakespeare
from mini_tf.text.tokens import Vocabulary, join, tokenize

__all__ = ["Vocabulary", "cooccurrence", "eigenvector_embeddings", "join", "read_corpus", "shakespeare", "tokenize"]
