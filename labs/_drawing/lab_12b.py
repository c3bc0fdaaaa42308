"""Figures of lab 12b, bytes and memory."""

from _drawing import BLUE, COLOURS, GREY, RED, bars, curves, level, panels

import numpy as np


def cache(rows, bytes_per_token):
    """rows {tokens so far: (ms without, ms with a cache, …)}; {G: bytes of the cache per token}"""
    figure, (left, right) = panels(1, 2, (9.5, 3.6))
    again, kept, *_ = np.array(list(rows.values())).T
    curves(left, list(rows), {"all is read again": again, "KV cache": kept}, "o-", (RED, BLUE))
    left.set(xscale="log", yscale="log", xlabel="tokens so far", ylabel="milliseconds per token",
             title="What the cache saves")  # fmt: skip
    left.set_xticks(list(rows), map(str, rows))
    left.minorticks_off()
    names = [f"G = {G}" for G in bytes_per_token]
    bars(right, names, {"": [size / 1024 for size in bytes_per_token.values()]}, "%.0f", 0.6, [BLUE])
    right.set(ylabel="KiB per token", title="What it costs, for H = 8 heads of queries")
    return figure


def fine_tuning(steps, losses, before):
    """losses {name: (7, 2)}: nats per character on the new text and on the old one; before: those of the old model"""
    figure, (left, right) = panels(1, 2, (10, 4))
    curves(left, steps, {name: rows[:, 0] for name, rows in losses.items()}, "o-")
    left.set(xlabel="step", ylabel="nats per character", title="Film reviews, which are learned", ylim=(None, 2.65))
    old = {name: rows[:, 1] for name, rows in losses.items() if name != "from random weights"}
    colours = [colour for name, colour in zip(losses, COLOURS) if name in old]
    curves(right, steps, old, "o-", colours, legend=None)
    level(right, before, "before fine-tuning", place=1, shift=(-4, 4), color=GREY)
    right.set(xlabel="step", title="Shakespeare, which is forgotten")
    return figure
