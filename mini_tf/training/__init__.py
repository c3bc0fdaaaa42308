"""Training: batches in, better parameters out, and a folder that keeps what happened."""

from mini_tf.models.windows import windows_ending_at
from mini_tf.training.batches import consecutive_windows, random_windows, split_words
from mini_tf.training.checkpoint import load_checkpoint, save_checkpoint
from mini_tf.training.loop import History, fit, mean_loss
from mini_tf.training.optimizers import SGD, Adam, AdamW, clip_gradients

__all__ = [
    "SGD", "Adam", "AdamW", "History", "clip_gradients", "consecutive_windows", "fit", "load_checkpoint", "mean_loss",
    "random_windows", "save_checkpoint", "split_words", "windows_ending_at",
]  # fmt: skip
