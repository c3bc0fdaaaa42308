"""Text: its words, how often they occur near each other, and the word vectors made from that; passages of plays."""

from mini_tf.data import read_corpus, shakespeare
from mini_tf.text.cooccurrence import cooccurrence
from mini_tf.text.eigenvectors import eigenvector_embeddings
from mini_tf.text.passages import Passage, genre_passages, split_plays
from mini_tf.text.sentences import EOS, SOS, UNK, SentenceVocabulary, join_sentence, split_sentence
from mini_tf.text.tokens import Vocabulary, join, remarks_on, spaced, tokenize

__all__ = [
    "EOS", "SOS", "UNK", "Passage", "SentenceVocabulary", "Vocabulary", "cooccurrence", "eigenvector_embeddings",
    "genre_passages", "join", "join_sentence", "read_corpus", "remarks_on", "shakespeare", "spaced", "split_plays",
    "split_sentence", "tokenize",
]  # fmt: skip
