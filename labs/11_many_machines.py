# %% [markdown]
# # Lab 11: many machines
#
# - **Goals:** say why weighted gradients of shares add up to a batch's; write a ring all-reduce; train on several
#   processes with the losses of one, and shard an optimizer's memory.
# - **Before it:** stochastic gradient descent, Adam (Lab 07b). **Work:** about 4 hours.
# - **Hand in:** `share_weights`, `in_shares.backward`, `reduce_scatter`, `all_gather`; answers to its three questions.
#
# Sources: Patarasuk, Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
# <https://doi.org/10.1016/j.jpdc.2008.09.002> (the ring); Li et al. 2020, <https://arxiv.org/abs/2006.15704> (data
# parallel training); Rajbhandari et al. 2020, <https://arxiv.org/abs/1910.02054> (sharding the optimizer's memory).
#
# How is a single model trained on several processes, on the cores of one machine or on many machines?
#
# It runs as one process, which then simulates several, or under MPI:
#
#     python labs/11_many_machines.py
#     mpiexec -n 2 python labs/11_many_machines.py
#
# It runs in a few seconds on one CPU core, with or without `--quick`. How far this scales, up to 1,024 machines, is in
# `scaling.md`.
#
# Letters: **N** processes, numbered r = 0 … N − 1; **B** rows of a batch; $C_r$ predictions in the share of process r;
# **p** the number of parameters.

# %%
import queue
from concurrent.futures import ThreadPoolExecutor

from _common import quick_mode, show
from _drawing import lab_11
from _expect import about, above, at_most, expect
from mini_tf import ops
from mini_tf.gradcheck import judge
from mini_tf.models import LanguageTransformer
from mini_tf.ops.updates import adam
from mini_tf.parallel import join
from mini_tf.parallel.shares import rows_of
from mini_tf.training import Adam, RandomWindows, Training

import numpy as np

QUICK = quick_mode("Lab 11: training on many machines")
group = join(sharded=True)                               # of one process, if no mpiexec has started this


def silent(*_, **__):
    pass


say, expect = (print, expect) if group.first else (silent, silent)    # of several processes, only rank 0 prints

# %% [markdown]
# ## 1. The gradient of a batch is a sum over its shares
#
# The loss of a batch is a mean over its predictions. Cut the batch into N shares with $C_0$, $C_1$, … predictions. Then
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
# With the weights $w_r$, **expect** the loss of the whole batch; with the plain mean of the three, a different loss;
# and PASS for both: the second backward is right, too, but for another function.


# %%
def share_weights(targets, N):
    """w_r = C_r/Σ_s C_s, where C_r counts the targets of share r that are not −1:  targets (B,)  →  (N,)

    Share r has the rows rows_of(r, N, B), a slice.
    """
    C = np.array([(targets[rows_of(r, N, len(targets))] >= 0).sum() for r in range(N)])
    return C / C.sum()


def in_shares(x, W, targets, weights):
    """loss = Σ_r w_r·loss_r of a linear layer with cross-entropy;  x (B, n), W (n, c), targets (B,), weights (N,)"""
    B, losses, backwards = len(x), [], []
    shares = [rows_of(r, len(weights), B) for r in range(len(weights))]
    for rows in shares:
        logits, linear_backward = ops.linear(x[rows], W)
        loss, loss_backward = ops.cross_entropy(logits, targets[rows], ignore=-1)
        losses.append(loss)
        backwards.append((linear_backward, loss_backward))

    def backward(dloss=1.0):
        """dx (B, n), dW (n, c): each share's gradient, times its weight; dW is a sum over the shares"""
        dx, dW = np.zeros_like(x), np.zeros_like(W)
        for rows, w, (linear_backward, loss_backward) in zip(shares, weights, backwards):
            dlogits, _ = loss_backward(dloss * w)
            dx[rows], dW_r, _ = linear_backward(dlogits)
            dW += dW_r                                   # this sum is what the processes exchange
        return dx, dW

    return sum(w * loss for w, loss in zip(weights, losses)), backward


# %%
rng = np.random.default_rng(0)
x, W = rng.standard_normal((8, 5)), rng.standard_normal((5, 4))
targets = np.array([0, 3, 1, -1, -1, 2, -1, 1])
whole, _ = ops.cross_entropy(ops.linear(x, W)[0], targets, ignore=-1)
by_counts, equal = share_weights(targets, 3), np.full(3, 1 / 3)

say("1. One batch of 8 rows in three shares, with 2, 1 and 2 predictions; its loss:", f"{whole:.6f}")
for name, weights, off in (("C_r/Σ C", by_counts, at_most(1e-12)), ("1/3 each", equal, above(0.001))):
    loss, _ = in_shares(x, W, targets, weights)
    report = judge(lambda x, W, weights=weights: in_shares(x, W, targets, weights), x, W)
    expect(f"weights {name}: the loss is off by", off, abs(loss - whole))
    expect(f"weights {name}: the checker's verdict", "PASS", report.verdict)

# %% [markdown]
# Equal weights are a bug that no gradient check can find, because the backward matches its forward. It happens in
# practice, as soon as shares have different numbers of words. A comparison with a single process finds it.
#
# ## 2. Summing the gradients: the ring all-reduce
#
# Every process has an array of p numbers, and every process needs the sum of all arrays. If all sent theirs to one,
# that one would receive $(N - 1) \cdot p$ numbers and send as many. In a **ring**, each process communicates only with
# its two neighbours. The array is cut into N pieces. In N − 1 steps, each process sends a piece to its right neighbour,
# and adds the one that arrives from the left to its own: then process r has piece r of the sum. In N − 1 more steps the
# finished pieces go around the ring.
#
# Each process sends $2 \cdot (N - 1)/N \cdot p$ numbers: **less than 2p, however many processes there are.**


# %%
def reduce_scatter(comm, x):
    """First round of the ring: process r ends with piece r of the sum of all x (p,); its other pieces are partial sums.

    Piece r is x[rows_of(r, N, p)]. comm: Get_size() → N, Get_rank() → r, Sendrecv(sent, dest=, recvbuf=, source=)
    """
    N, r = comm.Get_size(), comm.Get_rank()
    pieces = [x[rows_of(i, N, len(x))] for i in range(N)]            # views
    for step in range(N - 1):
        sent, received = pieces[(r - step - 1) % N], pieces[(r - step - 2) % N]
        arriving = np.empty_like(received)
        comm.Sendrecv(sent, dest=(r + 1) % N, recvbuf=arriving, source=(r - 1) % N)
        received += arriving


def all_gather(comm, x):
    """Second round of the ring: process r begins with the complete piece r of x (p,), and ends with all of them."""
    N, r = comm.Get_size(), comm.Get_rank()
    pieces = [x[rows_of(i, N, len(x))] for i in range(N)]
    for step in range(N - 1):
        sent, received = pieces[(r - step) % N], pieces[(r - step - 1) % N]
        arriving = np.empty_like(received)
        comm.Sendrecv(sent, dest=(r + 1) % N, recvbuf=arriving, source=(r - 1) % N)
        received[...] = arriving


def ring_all_reduce(comm, x):
    """Make x (p,) the sum of the x of all processes, on each of them."""
    reduce_scatter(comm, x)
    all_gather(comm, x)


# %% [markdown]
# In one process we simulate four: four threads, with a queue from each to the next. Under MPI the same function gets
# MPI's communicator.
#
# **Expect** the sum on every process, and 12 numbers sent by each: $2 \cdot \frac{3}{4}$ of its 8. Under MPI, expect
# only rounding differences from `Allreduce`: a ring adds in another order.


# %%
class Simulated:
    """Process r of N, simulated by threads: Sendrecv by queues. It records x before each step."""

    def __init__(self, r, queues, x):
        self.r, self.queues, self.x, self.sent, self.seen = r, queues, x, 0, []

    def Get_rank(self):
        return self.r

    def Get_size(self):
        return len(self.queues)

    def Sendrecv(self, sent, dest, recvbuf, source):
        self.seen.append(self.x.copy())
        self.sent += len(sent)
        self.queues[dest].put(sent.copy())
        recvbuf[...] = self.queues[self.r].get(timeout=100)          # seconds: far longer than needed


def simulate(work, arrays):
    """work(comm, array) on one simulated process for each array. Returns their communicators."""
    queues = [queue.Queue() for _ in arrays]
    comms = [Simulated(r, queues, x) for r, x in enumerate(arrays)]
    with ThreadPoolExecutor(len(arrays)) as pool:
        list(pool.map(work, comms, arrays))
    return comms


# %%
N, p = 4, 8
arrays = [np.array([10.0**-r] * p) for r in range(N)]                # the digits show who has been added
comms = simulate(ring_all_reduce, arrays)
history = np.array([[*comm.seen, comm.x] for comm in comms]).swapaxes(0, 1)          # (steps, N, p)

say("\n2. The ring, four simulated processes, 8 numbers each; process r begins with 10⁻ʳ")
for step, arrays_then in enumerate(history):
    say(f"  after step {step}: process 0 has", " ".join(f"{value:.3f}" for value in arrays_then[0]))
expect("largest difference from the sum 1.111 on any", at_most(1e-12), max(abs(x - 1.111).max() for x in arrays))
expect("numbers sent by each process", 12, max(comm.sent for comm in comms))
if group.first:
    show(lab_11.ring(history), "11_ring")
if group.size > 1:
    ours = np.random.default_rng(group.rank).standard_normal(1001)
    sums = np.empty_like(ours)
    group.comm.Allreduce(ours, sums)
    ring_all_reduce(group.comm, ours)
    expect(f"MPI, N = {group.size}: difference from Allreduce", at_most(1e-12), abs(ours - sums).max())
else:
    say("  (under mpiexec, the ring is compared with MPI's own Allreduce here)")

# %% [markdown]
# In the figure, each column is a process and each row one of its pieces; the number, and the darkness of the blue, says
# how many processes' values have been added up in it. The first three steps complete piece r on process r; the last
# three pass it on to all.
#
# ## 3. The same losses
#
# Now a whole model, in double precision. Every process has the same model and draws the same batches; it takes its rows
# of each, and `group` adds up the gradients while the backward is still running. (See `mini_tf/parallel/buckets.py`;
# with one process, there is nothing to add.) For comparison, each process also trains on the whole batches alone.
#
# **Expect** the same losses up to rounding, $10^{-12}$; with one process, to the last bit. (With one process that is
# trivial, as nothing is added up: run it under `mpiexec -n 2`, or more, to put the claim to the test.)


# %%
def training_of(made):
    """The Training of a small language transformer on random words"""
    draw = np.random.default_rng(1)
    words = draw.integers(0, 60, 2_000)
    model = LanguageTransformer(draw.standard_normal((60, 16)), T=8, L=2, H=2, m=8, readout="shared", causal=True,
                                layer_norm=True, train_embeddings=True, seed=2)  # fmt: skip
    return made(model, RandomWindows(words, 8, 15, seed=3), Adam(1e-2, eps=1e-6), clip=1.0)


steps = 10 if QUICK else 40
together, alone = training_of(group.training), training_of(Training)
losses = np.array([[training.one_step()[0] for training in (together, alone)] for _ in range(steps)])
shares = [len(range(15)[rows_of(r, group.size, 15)]) for r in range(group.size)]
say(f"\n3. {steps} steps on batches of 15 rows, of which the processes take", *shares)
for step in (0, 1, steps - 1):
    say(f"  step {step + 1:>3}: loss together {losses[step, 0]:.15f}   alone {losses[step, 1]:.15f}")
difference = abs(losses[:, 0] - losses[:, 1]).max()
expect("largest difference in all steps", at_most(1e-12) if group.size > 1 else 0, difference)

# %% [markdown]
# ## 4. Sharding the optimizer's memory
#
# Adam keeps two numbers for each parameter, m and v: with the parameter and its gradient that makes four. The
# parameters are needed everywhere, but nobody needs *all* of Adam's. So let process r update only piece r. It needs the
# summed gradient of that piece, which is the first round of the ring, and Adam's numbers for it. Then the new
# parameters go around, which is the second round. **The traffic is the same, and 2p numbers of memory become 2p/N.**
#
# **Expect** each of four processes to keep half a number per parameter instead of two, and to have, after ten steps,
# the same parameters as one process with all of Adam's memory.


# %%
ADAM = {"learning_rate": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "decay": 1.0}


def sharded_adam(comm, parameters, dparameters, m, v, t):
    """The t-th step of Adam, from each process's own dparameters (p,); it has m and v of its piece only."""
    mine = rows_of(comm.Get_rank(), comm.Get_size(), len(parameters))
    reduce_scatter(comm, dparameters)
    adam(parameters[mine], dparameters[mine], m, v, t, **ADAM)
    all_gather(comm, parameters)


N, p, steps = 4, 1000, 10
gradients = np.random.default_rng(4).standard_normal((steps, N, p))


def ten_steps(comm, parameters):
    memory = np.zeros((2, len(range(p)[rows_of(comm.Get_rank(), N, p)])))            # m and v
    for t in range(1, steps + 1):
        sharded_adam(comm, parameters, gradients[t - 1, comm.Get_rank()].copy(), *memory, t)
    comm.kept = memory.size


arrays, alone, memory = [np.zeros(p) for _ in range(N)], np.zeros(p), np.zeros((2, p))
comms = simulate(ten_steps, arrays)
for t in range(1, steps + 1):
    adam(alone, gradients[t - 1].sum(0), *memory, t, **ADAM)
say("\n4. Adam's memory, sharded among four simulated processes")
expect("Adam's numbers on each process, per parameter", 0.5, max(comm.kept for comm in comms) / p)
expect("parameters, largest difference from one Adam", at_most(1e-12), max(abs(x - alone).max() for x in arrays))
expect("numbers sent by each process and step, in p", 1.5, comms[0].sent / steps / p)

# %% [markdown]
# mini_tf does the same (`join(sharded=True)` above; `mini-tf train` does so on one machine, and with `--sharded` on
# several). In all, each process keeps $(2 + 2/N) \cdot p$ numbers instead of 4p, in the limit half as many.
#
# **Expect** section 3's Adam to keep 2/N numbers per parameter.

# %%
numbers = together.model.parameter_count()
kept = sum(array.size for of in ("m", "v") for array in together.optimizer.memory[of].values())
say(f"\nThe model of section 3: {numbers:,} trainable parameters; this process's Adam keeps {kept:,}")
expect("Adam's numbers on this process, per parameter", about(2 / group.size, within=0.01), kept / numbers)
if group.first:
    show(lab_11.memory([1, 2, 4, 8, 16, 32, 64]), "11_memory")

# %% [markdown]
# ## Questions
#
# 1. In section 1, which weights make the loss the mean over *sentences* instead of words? When would you want that?
# 2. A ring of N = 1,024 takes 2,046 steps. Each costs a latency of, say, 20 µs: 41 ms in all. For which p is that more
#    than the time for the numbers themselves, in single precision at 10 Gbit/s? (Below 6.4 million.)
# 3. Let each process of section 3 draw batches of its own (another seed). Why do all processes still have the same
#    model after each step, and from which batch does such a step learn?
