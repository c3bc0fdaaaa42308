"""vocabulary.json of a run folder: the words, or other tokens, of each kind of model, as JSON holds them."""

from typing import Any

from mini_tf.models import Classifier, TranslationModel
from mini_tf.text import BytePairVocabulary, CharacterVocabulary, HubVocabulary, LlamaVocabulary, Vocabulary
from mini_tf.text.classes import ClassVocabulary
from mini_tf.text.sentences import SentenceVocabulary

SIDES = "source", "target"           # of a translator
OTHERS: dict[str, type[Vocabulary]] = {
    each.kind: each for each in (CharacterVocabulary, BytePairVocabulary, LlamaVocabulary, HubVocabulary)
}
AnyVocabulary = Vocabulary | tuple[SentenceVocabulary, SentenceVocabulary]     # a translator's: (source, target)


def words_of(vocabulary: AnyVocabulary) -> Any:
    """What vocabulary.json says of a vocabulary, or of a translator's two"""
    if isinstance(vocabulary, tuple):
        return {side: {"words": v.words, "names": sorted(v.names)} for side, v in zip(SIDES, vocabulary)}
    if isinstance(vocabulary, ClassVocabulary):
        return {"words": vocabulary.words, "classes": list(vocabulary.classes)}
    return vocabulary.content if vocabulary.kind == Vocabulary.kind else {vocabulary.kind: vocabulary.content}


def vocabulary_of(model: Any, words: Any) -> tuple[AnyVocabulary, Any, Any]:
    """(vocabulary, its sizes, the sizes that the model expects), from what vocabulary.json says

    Raises KeyError, TypeError or UserError if it says what no such vocabulary is.
    """
    if isinstance(model, TranslationModel):
        french, english = (SentenceVocabulary.of(words[side]["words"], words[side]["names"]) for side in SIDES)
        return (french, english), (len(french), len(english)), model.sizes
    if isinstance(model, Classifier):
        classes = ClassVocabulary.of(words["words"], words["classes"])
        return classes, (len(classes), len(classes.classes)), (model.c, model.classes)
    kind, content = next(iter(words.items())) if isinstance(words, dict) else (Vocabulary.kind, words)
    vocabulary = OTHERS.get(kind, Vocabulary).of(content)
    return vocabulary, len(vocabulary), model.c
