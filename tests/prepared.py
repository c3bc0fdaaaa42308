"""Imported by a process that others are forked from: they have the compiled kernels then, and start in no time."""

from mini_tf.progress import prepare_kernels

prepare_kernels()
