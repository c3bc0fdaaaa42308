"""Training: batches in, better parameters out, and a folder that keeps what happened.

    training = Training(model, RandomWindows(ids, T, batch=64), Adam(1e-3), rng=np.random.default_rng(0))
    history = fit(training, steps=1000, validate=lambda: mean_loss(model, validation))
"""

from mini_tf.models.text_model import TextModel
from mini_tf.models.windows import windows_ending_at
from mini_tf.training.batches import ConsecutiveWindows, RandomWindows, split_words
from mini_tf.training.checkpoint import load_checkpoint, save_checkpoint
from mini_tf.training.loop import History, Watcher, fit
from mini_tf.training.optimizers import SGD, Adam, AdamW, Schedule, clip_gradients
from mini_tf.training.pair_batches import PairBatches, SentenceBatch, sentence_batch
from mini_tf.training.state import load_training, save_training
from mini_tf.training.step import Training

mean_loss = TextModel.mean_loss      # mean_loss(model, ids)

__all__ = [
    "SGD", "Adam", "AdamW", "ConsecutiveWindows", "History", "PairBatches", "RandomWindows", "Schedule",
    "SentenceBatch", "Training", "Watcher", "clip_gradients", "fit", "load_checkpoint", "load_training", "mean_loss",
    "save_checkpoint", "save_training", "sentence_batch", "split_words", "windows_ending_at",
]  # fmt: skip
