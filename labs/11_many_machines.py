# %% [markdown]
# # Lab 11: many machines
#
# Sources: Patarasuk, Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (the ring);
# Li et al. 2020, arXiv:2006.15704 (data parallel training); Rajbhandari et al. 2020, arXiv:1910.02054 (dividing the
# optimizer's memory).
#
# One laptop is where learners begin; a class has a cluster. This lab shows what it takes to train one model on several
# processes: on the cores of one machine, or on many machines. You will
#
# - see that the gradient of a batch is a weighted sum of the gradients of its shares, and why the weights are counts,
# - write the ring all-reduce, by which N processes add up arrays, in a dozen lines, and watch it,
# - train on several processes and get the losses of one,
# - see what it saves to divide the optimizer's memory.
#
# It runs as one process, which then plays several, and under MPI:
#
#     python labs/11_many_machines.py
#     mpiexec -n 2 python labs/11_many_machines.py
#
# It takes a few seconds on one CPU core, with or without `--quick`. How far all this goes, up to 1,024 machines, is in
# `scaling.md`.
#
# Letters: **N** processes, numbered r = 0 … N − 1; **B** rows of a batch; p the numbers of all parameters together.

# %%
import queue
from concurrent.futures import ThreadPoolExecutor

from _common import quick_mode, show
from _drawing import lab_11
from mini_tf import ops
from mini_tf.gradcheck import gradcheck
from mini_tf.models import LanguageTransformer
from mini_tf.parallel import ALONE, join
from mini_tf.parallel.shares import rows_of
from mini_tf.training import Adam, RandomWindows, Training

import numpy as np

QUICK = quick_mode("Lab 11: training on many machines")
team = join(sliced=True)                                 # ALONE, if no mpiexec has started this
say = print if team.first else lambda *_: None           # of several processes, the first one speaks

# %% [markdown]
# ## 1. The gradient of a batch is a sum over its shares
#
# The loss of a batch is a mean over its predictions. Cut the batch into shares with $C_0$, $C_1$, … predictions. Then
#
# $$
# \text{loss} = \sum_r w_r \cdot \text{loss}_r, \qquad w_r = \frac{C_r}{\sum_s C_s}
# $$
#
# and so
#
# $$
# dW = \sum_r w_r \cdot dW_r
# $$
#
# because the derivative of a sum is the sum of the derivatives. Nothing is approximated. Here it is for one linear
# layer with cross-entropy, whose rows are cut into three shares. Some targets are −1: padding, which is not predicted.
#
# **Expect** PASS for the weights $w_r$, and the loss of the whole batch to the last digits. With the plain mean of the
# three losses, the backward is right for *that* function (PASS, too), but it is another function: another loss.


# %%
def in_shares(x, W, targets, weights):
    """loss = Σ_r w_r·loss_r for a linear layer;  x (B, n), W (n, c), targets (B,)"""
    B, losses, backwards = len(x), [], []
    shares = [rows_of(r, len(weights), B) for r in range(len(weights))]
    for rows in shares:
        logits, linear_backward = ops.linear(x[rows], W)
        loss, loss_backward = ops.cross_entropy(logits, targets[rows], ignore=-1)
        losses.append(loss)
        backwards.append((linear_backward, loss_backward))

    def backward(dloss=1.0):
        dx, dW = np.zeros_like(x), np.zeros_like(W)
        for rows, w, (linear_backward, loss_backward) in zip(shares, weights, backwards):
            dlogits, _ = loss_backward(dloss * w)
            dx[rows], dW_r, _ = linear_backward(dlogits)
            dW += dW_r                                   # this sum is what the processes exchange
        return dx, dW

    return sum(w * loss for w, loss in zip(weights, losses)), backward


rng = np.random.default_rng(0)
x, W = rng.standard_normal((8, 5)), rng.standard_normal((5, 4))
targets = np.array([0, 3, 1, -1, -1, 2, -1, 1])
counts = np.array([(targets[rows_of(r, 3, 8)] >= 0).sum() for r in range(3)])
whole, _ = ops.cross_entropy(ops.linear(x, W)[0], targets, ignore=-1)
weighted, _ = in_shares(x, W, targets, counts / counts.sum())
plain, _ = in_shares(x, W, targets, np.full(3, 1 / 3))

say("1. One batch of 8 rows in three shares, with", *counts, "predictions")
for name, weights, loss in (("C_r / Σ C", counts / counts.sum(), weighted), ("1/3 each", np.full(3, 1 / 3), plain)):
    report = gradcheck(lambda x, W, weights=weights: in_shares(x, W, targets, weights), x, W)
    say(f"  weights {name:<10} loss {loss:.6f}   the whole batch's {whole:.6f}   difference {abs(loss - whole):.1e}   "
        f"gradcheck: {'PASS' if report else 'FAIL'}")

# %% [markdown]
# The second line is a bug that no gradient check can find: the backward fits its forward. It happens in practice, as
# soon as shares have different numbers of words. What finds it is a comparison with one process.
#
# ## 2. Adding up: the ring
#
# Every process has an array of p numbers; every process needs their sum. If all sent theirs to one, that one would
# receive $(N - 1) \cdot p$ numbers and send as many. In a **ring**, each process talks to its two neighbours only. The
# array is cut into N pieces. In N − 1 steps each process passes a piece on to the right, and adds the one that comes
# from the left to its own: then each has one piece of the sum. In N − 1 more steps the finished pieces go round.
#
# Each process sends $2 \cdot (N - 1)/N \cdot p$ numbers: **less than 2p, however many processes there are.**


# %%
def ring_all_reduce(comm, x, watch=lambda step, x: None):
    """Make x (p,) the sum of the x of all processes, on each of them."""
    N, r = comm.Get_size(), comm.Get_rank()
    right, left = (r + 1) % N, (r - 1) % N
    piece = [x[rows_of(k, N, len(x))] for k in range(N)]             # views
    watch(0, x)
    for step in range(2 * (N - 1)):
        sent, received = piece[(r - step) % N], piece[(r - step - 1) % N]
        arriving = np.empty_like(received)
        comm.Sendrecv(sent, dest=right, recvbuf=arriving, source=left)
        if step < N - 1:
            received += arriving                         # first round: add up
        else:
            received[...] = arriving                     # second round: hand on what is complete
        watch(step + 1, x)


# %% [markdown]
# As one process we play four: four threads, with a queue from each to the next. Under MPI the same function gets MPI's
# communicator.
#
# **Expect** the sum on every process; and under MPI no difference from `Allreduce`, except for rounding: a ring adds up
# in another order.


# %%
class Played:
    """Process r of N that are threads of one: Sendrecv by queues"""

    def __init__(self, r, queues):
        self.r, self.queues = r, queues

    def Get_rank(self):
        return self.r

    def Get_size(self):
        return len(self.queues)

    def Sendrecv(self, sent, dest, recvbuf, source):
        self.queues[dest].put(sent.copy())
        recvbuf[...] = self.queues[self.r].get()


# %%
N, p = 4, 8
queues = [queue.Queue() for _ in range(N)]
arrays = [np.array([10.0**-r] * p) for r in range(N)]                # the digits show who has been added
history = np.zeros((2 * N - 1, N, p))


def play(r):
    ring_all_reduce(Played(r, queues), arrays[r], lambda step, x: history[step].__setitem__(r, x))


with ThreadPoolExecutor(N) as pool:
    list(pool.map(play, range(N)))

say("\n2. The ring, four processes played, 8 numbers each; process r begins with 10⁻ʳ")
for step in range(2 * N - 1):
    say(f"  after step {step}: process 0 has", " ".join(f"{value:.3f}" for value in history[step, 0]))
say(f"  largest difference from the sum 1.111 on any of them: {max(abs(x - 1.111).max() for x in arrays):.1e}")
if team.first:
    show(lab_11.ring(history), "11_ring")
if team.size > 1:
    ours = np.random.default_rng(team.rank).standard_normal(1001)
    expected = np.empty_like(ours)
    team.comm.Allreduce(ours, expected)
    ring_all_reduce(team.comm, ours)
    difference = abs(ours - expected).max()
    say(f"  MPI, {team.size} processes, 1,001 numbers: largest difference from Allreduce {difference:.1e}")
else:
    say("  (under mpiexec, it is compared with MPI's own Allreduce here)")

# %% [markdown]
# In the picture, each column is a process and each row one of its pieces; the darker, the more processes have been
# added up in it. The first three steps make one dark piece on each process, the last three spread them.
#
# ## 3. The same losses
#
# Now a whole model, in double precision. Every process has the same model and draws the same batches; it takes its rows
# of each, and `team` adds up the gradients, while the backward is still running. (`mini_tf/parallel/buckets.py`; with
# one process, there is nothing to add.) Each process also trains the whole batches alone, for comparison.
#
# **Expect** differences in the sixteenth digit, not more.


# %%
def training_of(team):
    """A small language transformer's Training on random words"""
    draw = np.random.default_rng(1)
    words = draw.integers(0, 60, 2_000)
    model = LanguageTransformer(draw.standard_normal((60, 16)), T=8, L=2, H=2, m=8, readout="shared", causal=True,
                                layer_norm=True, train_embeddings=True, seed=2)  # fmt: skip
    return Training(model, RandomWindows(words, 8, 15, seed=3), Adam(1e-2, eps=1e-6), clip=1.0, team=team)


steps = 10 if QUICK else 40
together, alone = training_of(team), training_of(ALONE)
losses = np.array([[training.one_step()[0] for training in (together, alone)] for _ in range(steps)])
shares = [len(range(15)[rows_of(r, team.size, 15)]) for r in range(team.size)]
say(f"\n3. {steps} steps on batches of 15 rows, of which the {team.size} process(es) take", *shares)
for step in (0, 1, steps - 1):
    say(f"  step {step + 1:>3}: loss together {losses[step, 0]:.15f}   alone {losses[step, 1]:.15f}")
say(f"  largest difference in {steps} steps: {abs(losses[:, 0] - losses[:, 1]).max():.1e}")

# %% [markdown]
# ## 4. Dividing the optimizer's memory
#
# Adam keeps two numbers for each parameter: with the parameter and its gradient that makes four. The parameters are
# needed everywhere, but nobody needs *all* of Adam's. So let process r update only the r-th of N slices: it needs the
# summed gradient of that slice (the first round of the ring), and Adam's numbers for it; then it sends its new
# parameters round (the second round). **The same traffic, and 2p numbers of memory become 2p/N.**
#
# **Expect** $2p/N$ numbers in this process's Adam, and $4p \to (2 + 2/N) \cdot p$ in all: half, in the limit.

# %%
numbers = together.model.numbers_to_learn()
kept = sum(array.size for of in ("m", "v") for array in together.optimizer.memory[of].values())
say(f"\n4. {numbers:,} numbers to learn; this process's Adam keeps {kept:,} = {kept / numbers:.3f} p, expected 2/N = "
    f"{2 / team.size:.3f}")
say("   N     parameters  gradients  Adam    together, in p")
for processes in (1, 2, 4, 8, 64):
    say(f"  {processes:>3}{1:>12}{1:>11}{2 / processes:>9.3f}{2 + 2 / processes:>12.3f}")
if team.first:
    show(lab_11.memory([1, 2, 4, 8, 16, 32, 64]), "11_memory")

# %% [markdown]
# ## Questions
#
# 1. In section 1, which weights make the loss the mean over *sentences* instead of words? When would you want that?
# 2. A ring of N = 1,024 takes 2,046 steps. Each costs a latency of, say, 20 µs. For which p is that more than the time
#    for the numbers themselves, at 10 Gbit/s? (`scaling.md` has the answer.)
# 3. Let one process of section 3 draw other batches (another seed). What happens to the loss, and why does no check
#    inside `Training` see it at the first step?
