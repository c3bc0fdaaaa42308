"""From a text to a trained language model: the tasks of ESE-2000 Lab 6 in sequence."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mini_tf.decoding import generate, sample
from mini_tf.errors import UserError
from mini_tf.files import write_text
from mini_tf.metrics import uniform_cross_entropy, unigram_cross_entropy
from mini_tf.models import TextModel
from mini_tf.parallel import join
from mini_tf.progress import progress_bar
from mini_tf.text import Vocabulary, cooccurrence, eigenvector_embeddings, tokenize
from mini_tf.training.batches import split_words
from mini_tf.training.by_preset import (
    about,
    how_it_went,
    introduce,
    kept_safe,
    new_training,
    random_vectors,
    ready_to_train,
    train_into,
)
from mini_tf.training.elsewhere import Elsewhere
from mini_tf.training.loop import mean_loss
from mini_tf.training.presets import Preset
from mini_tf.training.run import Run
from mini_tf.training.state import Training
from mini_tf.types import Array

import numpy as np

GIVEN_WORDS = 16         # of the test text, from which the sample goes on


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
    text: str, n: int, T: int, W: int = 10, say: Callable[[str], None] = lambda line: None,
    vectors: str = "eigenvectors", seed: int = 0,
) -> Corpus:  # fmt: skip
    """Tasks 6.1 to 6.3: words, split, co-occurrences, eigenvectors. Returns a Corpus.

    The vectors come from the whole text, as in the lab: they know the test words' co-occurrences, but not their order.
    With vectors="training" they come from the training words only, and are zero for words that do not occur there.
    With vectors="random" they are normal with variance 1, and know nothing of the text.
    `say` is called with a line about each step. Raises UserError for a text too short for T, W or n.
    """
    tokens = tokenize(text)
    if not tokens:
        raise UserError("the corpus has no words in it; give a text with letters")
    vocabulary = Vocabulary(tokens)
    ids = vocabulary.encode(tokens)
    train, validation, test = split_words(ids, T)
    say(f"{len(ids):,} words, {len(vocabulary):,} different: {len(train):,} to train on, {len(test) - T:,} to test")
    if vectors == "random":
        return Corpus(vocabulary, ids, train, validation, test, random_vectors(len(vocabulary), n, seed))
    if len(ids) < W + 1:
        raise UserError(f"the corpus has {len(ids)} words, expected more than the co-occurrence window W = {W}")
    C = cooccurrence(train if vectors == "training" else ids, len(vocabulary), W)
    say(f"co-occurrences within {W // 2} words: {C.nnz:,} different pairs")
    values, V = eigenvector_embeddings(C, n)
    say(f"word vectors: {n} eigenvectors, eigenvalues {values[0]:,.0f} to {values[-1]:,.0f}")
    return Corpus(vocabulary, ids, train, validation, test, V.astype(np.float32))


def train_language_model(
    text: str, preset: Preset, run: Run | Elsewhere, steps: int | None = None, seed: int = 0, device: str = "auto",
    say: Callable[[str], None] = lambda line: None,
) -> tuple[TextModel, Corpus, dict[str, Any]]:  # fmt: skip
    """Train the preset's model on the text, into the run folder. Returns (model, corpus, results).

    results: {"uniform", "unigram", "validation", "train", "test"} losses in nats per word, "stopped", "seconds", …
    Ctrl-C ends the training; the best model so far is kept and tested.
    """
    device, steps = ready_to_train(preset, steps, device, say)
    T = preset.model["T"]
    config = about(preset, steps, seed, device, text)
    join().check_rows(preset.batch)
    run.begin(config, say)
    corpus = prepare(text, preset.n, T, preset.W, say, preset.vectors, seed)
    c = len(corpus.vocabulary)
    model = preset.new_model(corpus, seed).to(device)
    learned = introduce(model, describe(preset), device, say)

    baselines = {
        "uniform": uniform_cross_entropy(c),
        "unigram": unigram_cross_entropy(corpus.ids[: T - len(corpus.test)], corpus.test[T:], c),
    }
    numbers = {"words": len(corpus.ids), "vocabulary": c, "parameters": learned}
    run.save_config(config | {"text": numbers}, corpus.vocabulary)
    training = preset_training(preset, model, corpus, steps, seed)
    validate = partial(mean_loss, model, corpus.validation, preset.validation_words, team=training.team)
    with kept_safe(run, training, model):
        history = train_into(run, training, model, preset, steps, validate, preset.batch * T, say)
        if not training.team.first:
            return model, corpus, {}

        results = baselines | {
            "validation": history.best_validation_loss,
            "train": mean_loss(model, corpus.train, most=preset.validation_words),
        }
        with progress_bar("testing", len(corpus.test) - T) as update:
            results["test"] = mean_loss(model, corpus.test, on_batch=lambda done, _: update(done))
        results |= how_it_went(history)
        run.write_json("results.json", results)
        run.save_curves(history.rows, {name: results[name] for name in ("uniform", "unigram", "test")})
        prompt = corpus.test[T : T + GIVEN_WORDS]            # the first words that the model has never seen
        with progress_bar("writing a sample", preset.sample_words) as update:
            written = []
            for word in generate(model, prompt, preset.sample_words, partial(sample, rng=np.random.default_rng(seed))):
                written.append(word)
                update(len(written))
        write_text(run / "sample.txt", corpus.vocabulary.decode([*prompt, *written]).strip("\n") + "\n")
        run.finished(history)
    return model, corpus, results


def preset_training(preset: Preset, model: TextModel, corpus: Corpus, steps: int, seed: int) -> Training:
    """The preset's Training on the corpus. Batches and dropout have a generator each, both derived from the seed."""
    batches = preset.training_batches(corpus, [seed, 2])
    return new_training(preset, preset.in_training(model), batches, steps, seed)


def describe(preset: Preset) -> str:
    """The sizes and options of a preset in a line: "T=32 n=64 L=2 H=4 m=16, readout shared, …"."""
    options = {"n": preset.n} | preset.model
    letters = " ".join(f"{letter}={options[letter]}" for letter in "TnLHmkf" if letter in options)
    switches = [name.replace("_", " ") for name, value in preset.model.items() if value is True]
    words = [f"{name} {options[name]}" for name in ("readout", "dropout") if name in options]
    return ", ".join([letters, *words, *switches])
