"""The blanks of lab 11: the gradient of a batch from its shares, and the two rounds of the ring."""

import queue
from concurrent.futures import ThreadPoolExecutor

from _blanks import Blank, gradients, same
from mini_tf.parallel.shares import rows_of

import numpy as np

TARGETS = np.array([2, -1, 0, 1, 3, -1, -1, 1, 0])
PATIENCE = 20.0                         # seconds that a process waits for its neighbour


class Neighbours:
    """A communicator of N threads, with a queue from each to each"""

    def __init__(self, r, N, queues):
        self.r, self.N, self.queues = r, N, queues

    def Get_rank(self):
        return self.r

    def Get_size(self):
        return self.N

    def Sendrecv(self, sent, dest, recvbuf, source):
        self.queues[self.r, dest].put(np.array(sent))
        try:
            recvbuf[...] = self.queues[source, self.r].get(timeout=PATIENCE)
        except queue.Empty:
            raise RuntimeError(f"process {self.r} waited for numbers that process {source} never sent") from None


def shares_of(function):
    """in_shares as a function of x and W, with weights that are neither equal nor those of the counts"""
    rng = np.random.default_rng(1)
    x, W = rng.standard_normal((9, 4)), rng.standard_normal((4, 5))
    weights = np.array([0.5, 0.2, 0.3])
    return lambda x, W: function(x, W, TARGETS, weights), x, W


def weights(targets, N):
    """By a histogram: the share that each row is in, counted where the row has a target"""
    share = np.concatenate([np.full(len(range(len(targets))[rows_of(r, N, len(targets))]), r) for r in range(N)])
    counts = np.bincount(share[targets != -1], minlength=N)
    return counts / sum(targets != -1)


def ring(check, start):
    """A check of one round of the ring, simulated by threads: N processes, arrays of p numbers

    start(total, mine, rows): the array that a process starts with;  check: which rows have to be the sum's
    """

    def check_round(function):
        for N, p in ((2, 4), (4, 8), (5, 13), (3, 2)):
            arrays = np.random.default_rng(p).standard_normal((N, p))
            total, queues = arrays.sum(0), {(a, b): queue.Queue() for a in range(N) for b in range(N)}
            pieces = [rows_of(r, N, p) for r in range(N)]
            results = [start(total, array.copy(), rows) for array, rows in zip(arrays, pieces)]
            with ThreadPoolExecutor(N) as pool:
                list(pool.map(function, [Neighbours(r, N, queues) for r in range(N)], results))
            for r, (array, rows) in enumerate(zip(results, pieces)):
                wanted = check(rows, p)
                if not np.allclose(array[wanted], total[wanted], rtol=0, atol=1e-12):
                    print(f"FAIL  {function.__name__}: with N = {N} processes and p = {p} numbers, process {r} has "
                          f"{np.round(array[wanted], 3)}, expected {np.round(total[wanted], 3)}")  # fmt: skip
                    return False
        print(f"PASS  {function.__name__}: right for 4 rings")
        return True

    return check_round


def only_own_piece(total, mine, rows):
    array = np.full_like(mine, np.nan)                   # what is never received stays NaN
    array[rows] = total[rows]
    return array


BLANKS = [
    Blank("share_weights", [
        "The loss of the batch is a mean over predictions, so a share counts as much as it has predictions.",
        "A row predicts unless its target is −1; rows_of(r, N, B) are the rows of share r.",
        "Divide the counts by their sum: the weights then sum to 1.",
    ], same(weights, (TARGETS, 3), (TARGETS, 2), (np.array([1, -1, -1, 2, 0]), 5))),
    Blank("in_shares.backward", [
        "The loss is Σ_r w_r·loss_r. What is the slope of the loss with respect to one loss_r?",
        "Walk each share backwards, the loss first: loss_backward(…) gives dlogits (and None, for the targets), "
        "linear_backward(…) gives dx, dW and db of the share.",
        "A row of x is in one share, so its gradient is written to that share's rows. W is in all of them, so its "
        "gradients add up.",
    ], gradients(shares_of)),
    Blank("reduce_scatter", [
        "Cut x into N views, one for each piece. In each of N − 1 steps, send one piece to the right neighbour and add "
        "what comes from the left one to another piece.",
        "What you add to in one step you send in the next: it holds one process more each time.",
        "Think from the end: the last piece that you add to is piece r. The one before it was piece r + 1, so the "
        "numbers fall by one per step. Which one do you send first?",
        "Receive into an array of its own (np.empty_like of the piece), then add: += works on the view, and so on x.",
    ], ring(lambda rows, p: rows, lambda total, mine, rows: mine)),
    Blank("all_gather", [
        "The same N − 1 steps to the right, but what arrives is complete: it replaces a piece.",
        "You begin by sending the only piece that you have, piece r; then always the one that has just arrived.",
        "Your left neighbour begins with its own piece, r − 1: that is where the first arrival belongs.",
        "piece = arriving would only rename; [...] writes into the view.",
    ], ring(lambda rows, p: slice(0, p), only_own_piece)),
]  # fmt: skip
