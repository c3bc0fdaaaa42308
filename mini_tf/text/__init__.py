"""Text: its words, characters or pieces; how often words occur near each other, and the word vectors made from that;
passages of plays."""

from mini_tf.data import read_corpus, shakespeare
from mini_tf.text.byte_pairs import BytePairVocabulary
from mini_tf.text.characters import CharacterVocabulary
from mini_tf.text.cooccurrence import cooccurrence
from mini_tf.text.eigenvectors import eigenvector_embeddings
from mini_tf.text.hub import HubVocabulary
from mini_tf.text.llama2c import LlamaVocabulary
from mini_tf.text.passages import Passage, genre_passages, split_plays
from mini_tf.text.sentences import EOS, SOS, UNK, SentenceVocabulary, join_sentence, split_sentence
from mini_tf.text.tokenizers import new_tokenizer, open_tokenizer
from mini_tf.text.tokens import Vocabulary, join, remarks_on, spaced, tokenize

__all__ = [
    "EOS", "SOS", "UNK", "BytePairVocabulary", "CharacterVocabulary", "HubVocabulary", "LlamaVocabulary", "Passage",
    "SentenceVocabulary", "Vocabulary", "cooccurrence", "eigenvector_embeddings", "genre_passages", "join",
    "join_sentence", "new_tokenizer", "open_tokenizer", "read_corpus", "remarks_on", "shakespeare", "spaced",
    "split_plays", "split_sentence", "tokenize",
]  # fmt: skip
