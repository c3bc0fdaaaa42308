"""From a text to a trained language model: tasks 6.1 to 6.3 of ESE-2000 Lab 6, and the presets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

from mini_tf.decoding import generate, sample
from mini_tf.errors import UserError
from mini_tf.files import write_text
from mini_tf.metrics import LossPart, mean_of, uniform_cross_entropy, unigram_cross_entropy
from mini_tf.models import CarriedState, TextModel
from mini_tf.models.options import check_choice
from mini_tf.progress import progress_bar
from mini_tf.text import Vocabulary, cooccurrence, eigenvector_embeddings, new_tokenizer, remarks_on, tokenize
from mini_tf.text.tokenizers import unit_of
from mini_tf.training.batches import ConsecutiveWindows, RandomWindows, cuts, parts_from, split_words
from mini_tf.training.task import Task, named, random_vectors, text_named
from mini_tf.types import Array, Progress, Say, silent

import numpy as np

if TYPE_CHECKING:
    from mini_tf.training.run import Run

PROMPT_WORDS = 16        # of the test text, from which the sample goes on
GOES_ON = "\n\n[the model goes on:]\n\n"


@dataclass(frozen=True, kw_only=True)
class Language(Task):
    """The task of predicting the next word of a text."""

    kind: ClassVar[str] = "language"
    takes: ClassVar[str] = "--corpus"

    n: int                       # embedding dimension
    embedding_scale: float       # factor on the word vectors
    batch: int                   # windows in a batch
    model_class: str = "LanguageTransformer"
    tokenizer: str = "words"     # what the text is cut into: words, characters, or pieces that are learned: bpe:512
    vectors: str = "eigenvectors"    # of the whole text's co-occurrences, the lab's way; "training"; "random"
    batches: str = "random"      # windows; "apart": side by side; "consecutive": each goes on where the last ended
    anew: int = 64               # of consecutive batches, every so many-th starts from h_0
    betas: tuple[float, float] = (0.9, 0.999)  # of Adam
    clip: float | None = None    # largest norm of all gradients together
    warm_up: int = 20            # steps in which the learning rate rises
    W: int = 10                  # co-occurrence window
    full_history: bool = True    # losses of words that have T words before them; False: in windows side by side, faster
    validation_words: int = 2000     # validation words per measurement
    sample_words: int = 500      # that the trained model writes

    def words_in_batch(self) -> int:
        return self.batch * int(self.model["T"])

    @property
    def model_type(self) -> type[TextModel]:
        models = {name: model for name, model in TextModel.registry.items() if issubclass(model, TextModel)}
        check_choice("model_class", self.model_class, sorted(models))
        return models[self.model_class]

    @property
    def unit(self) -> str:
        return f"nats per {unit_of(self.tokenizer)}"

    def read(self, command: dict[str, Any], seed: int) -> str:
        return text_named(command)

    def prepare(self, data: str, seed: int, say: Say) -> "Corpus":
        T = self.model["T"]
        corpus = prepare(data, self.n, T, self.W, say, self.vectors, seed, self.tokenizer)
        windows = (len(corpus.train) - T - 1) // (T if self.batches == "apart" else 1) + 1
        if self.batches != "consecutive" and self.batch > windows:
            say(f"note: batch is {self.batch:,}, but the training {corpus.vocabulary.unit}s have {windows:,} windows: "
                "each batch has them all")  # fmt: skip
        return corpus

    def new_model(self, prepared: "Corpus", seed: int) -> TextModel:
        kind: Any = self.model_type
        frequencies = {"frequencies": prepared.counts} if "frequencies" in signature(kind).parameters else {}
        return kind(prepared.embeddings * np.float32(self.embedding_scale), seed=seed, **frequencies, **self.model)

    def facts(self, data: str, prepared: "Corpus") -> dict[str, dict[str, int]]:
        return {"text": {f"{prepared.vocabulary.unit}s": len(prepared.ids), "vocabulary": len(prepared.vocabulary)}}

    def in_training(self, model: Any) -> Any:
        """The model itself, or a CarriedState of it for consecutive batches."""
        return CarriedState(model, anew=self.anew) if self.batches == "consecutive" else model

    def training_batches(self, prepared: "Corpus", seed: list[int]) -> Iterator[Array]:
        """Windows of the training words."""
        T, words = self.model["T"], prepared.train
        if self.batches == "consecutive":
            return ConsecutiveWindows(words, T, self.batch)
        return RandomWindows(words, T, self.batch, seed, apart=T if self.batches == "apart" else 1)

    def loss_parts(self, model: TextModel, prepared: "Corpus") -> list[LossPart]:
        return self.measured(model, prepared.validation, self.validation_words)

    def measured(
        self, model: Any, ids: Array, most: int | None = None, on_batch: Progress = None
    ) -> list[LossPart]:
        """The parts of the mean loss of the words of ids from the T-th on, or of `most` of them"""
        return (model.loss_parts if self.full_history else model.window_loss_parts)(ids, most, on_batch)

    def report(self, run: "Run", model: TextModel, prepared: "Corpus", seed: int) -> dict[str, Any]:
        """"uniform", "unigram", "train" and "test" losses in nats per token; "per_character" is "test" in nats per
        character of the test text, which compares models with different tokenizers.
        """
        corpus, c, T = prepared, len(prepared.vocabulary), model.T
        results = {
            "uniform": uniform_cross_entropy(c),
            "unigram": unigram_cross_entropy(corpus.ids[: T - len(corpus.test)], corpus.test[T:], c),
            "train": mean_of(self.measured(model, corpus.train, self.validation_words)),
        }
        with progress_bar("testing", len(corpus.test) - T) as update:
            results["test"] = mean_of(self.measured(model, corpus.test, on_batch=lambda done, _: update(done)))
        characters = len(corpus.vocabulary.decode(corpus.test[T:]))
        results["per_character"] = results["test"] * (len(corpus.test) - T) / characters
        prompt = corpus.test[T : T + PROMPT_WORDS]       # the first words that the model has never seen
        with progress_bar("writing a sample", self.sample_words) as update:
            written = []
            for word in generate(model, prompt, self.sample_words, partial(sample, rng=np.random.default_rng(seed))):
                written.append(word)
                update(len(written))
        texts = (corpus.vocabulary.decode(ids).strip("\n") for ids in (prompt, written))
        write_text(run / "sample.txt", GOES_ON.join(texts) + "\n")
        return results


LANGUAGE = named(
    Language(
        name="quick",
        description="small, learns at every position, trains its word vectors too: half a minute on two idle cores",
        n=64,
        model={
            "T": 32, "L": 2, "H": 4, "m": 16, "readout": "shared", "causal": True, "layer_norm": True,
            "positions": "geometric", "scaled_attention": True, "train_embeddings": True,
        },
        embedding_scale=8.0,
        learning_rate=6e-3,
        batch=64,
        steps=300,
        every=50,
    ),
    Language(
        name="lab",
        description="the transformer of ESE-2000 Lab 6, Task 6.13, in the sizes that Task 6.5 recommends",
        n=256,
        model={
            "T": 32, "L": 6, "H": 8, "m": 64, "readout": "vec", "causal": True, "layer_norm": True,
            "positions": "geometric", "position_scale": 0.06,
        },
        embedding_scale=1.0,
        learning_rate=3e-4,
        batch=64,
        steps=2000,
        every=100,
        patience=10,                                 # its loss may stand still for 700 steps before it falls
    ),
    Language(
        name="window",
        description="the fixed-window model of Bengio et al. 2003: four words side by side, one hidden layer",
        model_class="FixedWindowModel",
        n=64,
        model={"T": 4, "k": 128, "dropout": 0.3},
        vectors="random",
        embedding_scale=0.1,
        learning_rate=3e-3,
        batch=512,
        steps=1500,
        every=100,
        clip=1.0,
    ),
    Language(
        name="recurrent",
        description="a recurrent network, read through the whole text with its state carried on",
        model_class="RecurrentModel",
        n=128,
        model={"T": 32, "k": 256, "dropout": 0.3},
        vectors="random",
        embedding_scale=0.3,
        batches="consecutive",
        learning_rate=3e-3,
        batch=32,
        steps=1000,
        every=100,
        clip=1.0,
        validation_words=20_000,
    ),
    Language(
        name="gpt",
        description="a small GPT over words, its readout tied to the word vectors",
        model_class="GPT",
        n=128,
        model={"T": 64, "L": 2, "H": 4, "m": 32, "f": 512, "dropout": 0.2},
        vectors="random",
        embedding_scale=128**-0.5,
        batches="apart",
        learning_rate=1e-3,
        batch=32,
        steps=600,
        every=60,
        warm_up=60,
        clip=1.0,
    ),
    Language(
        name="char",
        description="a small GPT-2 over characters: nanoGPT's shakespeare_char in its CPU setting",
        model_class="GPT2",
        tokenizer="characters",
        n=128,
        model={"T": 64, "L": 4, "H": 4, "m": 32, "f": 512, "bias": False},
        vectors="random",
        embedding_scale=0.02,
        learning_rate=1e-3,
        last_rate=0.1,
        betas=(0.9, 0.99),
        weight_decay=0.1,
        batch=12,
        full_history=False,
        validation_words=20_000,
        steps=2000,
        every=250,
        warm_up=100,
        clip=1.0,
    ),
)  # fmt: skip


@dataclass
class Corpus:
    """A text as integers, in three parts, with the initial word vectors."""

    vocabulary: Vocabulary
    ids: np.ndarray              # all words; the last len(test) − T of them are the test words
    train: np.ndarray
    validation: np.ndarray       # begins, as `test` does, with T words of the part before: its first history
    test: np.ndarray
    embeddings: np.ndarray       # (c, n), float32: see `prepare`

    @property
    def counts(self) -> Array:
        """How often each word occurs in the training words: (c,)"""
        return np.bincount(self.train, minlength=len(self.vocabulary))


def prepare(
    text: str, n: int, T: int, W: int = 10, say: Say = silent, vectors: str = "eigenvectors", seed: int = 0,
    tokenizer: str | Vocabulary = "words",
) -> Corpus:  # fmt: skip
    """Tasks 6.1 to 6.3: words, split, co-occurrences, eigenvectors. Returns a Corpus.

    The vectors come from the whole text, as in the lab: they know the test words' co-occurrences, but not their order.
    With vectors="training" they come from the training words only, and are zero for words that do not occur there.
    With vectors="random" they are normal with variance 1, and know nothing of the text.
    tokenizer: see `new_tokenizer`, or a vocabulary; then all this holds for characters, or pieces, instead of words.
    `say` is called with a line about each step. Raises UserError for a text too short for T, W or n.
    """
    vocabulary, ids, (train, validation, test) = tokenized(text, T, tokenizer)
    say(f"{len(ids):,} {vocabulary.unit}s, {len(vocabulary):,} different: {len(train):,} to train on, "
        f"{len(test) - T:,} to test")  # fmt: skip
    if tokenizer == "words":
        for remark in remarks_on(text, [vocabulary.words[i] for i in ids]):
            say(remark)
    if vectors == "random":
        return Corpus(vocabulary, ids, train, validation, test, random_vectors(len(vocabulary), n, seed))
    if len(ids) < W + 1:
        raise UserError(f"the corpus has {len(ids)} {vocabulary.unit}s, expected more than the co-occurrence window "
                        f"W = {W}")  # fmt: skip
    if n >= len(vocabulary):
        raise UserError(f"n is {n}, of {len(vocabulary)} {vocabulary.unit}s; expected n < {len(vocabulary)}, because "
                        "there are no more eigenvectors: try a smaller n (mini-tf train --set n=…), or random vectors "
                        "(--set vectors=random)")  # fmt: skip
    C = cooccurrence(train if vectors == "training" else ids, len(vocabulary), W)
    say(f"co-occurrences within {W // 2} {vocabulary.unit}s: {C.nnz:,} different pairs")
    values, V = eigenvector_embeddings(C, n)
    say(f"word vectors: {n} eigenvectors, eigenvalues {values[0]:,.0f} to {values[-1]:,.0f}")
    return Corpus(vocabulary, ids, train, validation, test, V.astype(np.float32))


def tokenized(
    text: str, T: int, tokenizer: str | Vocabulary = "words"
) -> tuple[Vocabulary, Array, tuple[Array, Array, Array]]:  # fmt: skip
    """(vocabulary, ids, (train, validation, test)) of a text; see `split_words` for the parts.

    Words are counted as in the lab: the last tenth of them is the test. With other tokenizers, the last tenth of the
    characters is, so that all of them are tested on the same text; pieces are learned from the training part.
    Raises UserError for a text that is too short.
    """
    if tokenizer == "words":
        tokens = tokenize(text)
        if not tokens:
            raise UserError("the corpus has no words in it; give a text with letters")
        vocabulary = Vocabulary(tokens)
        ids = vocabulary.encode(tokens)
        return vocabulary, ids, split_words(ids, T)
    first_validation, first_test = cuts(len(text))
    sections = text[:first_validation], text[first_validation:first_test], text[first_test:]
    vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else new_tokenizer(tokenizer, text, sections[0])
    train, validation, test = (vocabulary.encode(vocabulary.split(section)) for section in sections)
    ids = np.concatenate([train, validation, test])
    return vocabulary, ids, parts_from(ids, T, len(train), len(train) + len(validation), vocabulary.unit)
