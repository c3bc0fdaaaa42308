"""Training on several processes at once, on one machine or on many, connected by MPI.

    mpiexec -n 4 mini-tf train --preset quick

or, in a script that mpiexec starts,

    with ending_together():
        training = join().training(model, batches, optimizer)
        fit(training, steps, validate)

Data parallelism, in four lines. Every process has the whole model. Of each batch it takes its share:

    loss = Σ_r w_r·loss_r,   w_r = predictions in share r / predictions in the batch
    dp   = Σ_r w_r·dp_r      for each parameter p, because a derivative of a sum is the sum of the derivatives

so the processes add up their gradients, and all of them take the same step. (This holds for a loss that is a mean over
the examples.) A single process with two cores does the same with two threads. In the order to read:

    shares.py           cutting a batch, and its random numbers, into shares
    single_process.py   what a process group is asked, and the answers of a single process
    two_cores.py        half of the batch for each of two cores
    process_group.py    the answers of several processes
    distributed.py      a training on several processes
    buckets.py          adding up gradients, while the backward goes on
    sharded.py          the optimizer's memory, divided among the processes
    starting.py         which processes there are, and how they end together

Source: Li et al. 2020, arXiv:2006.15704 (buckets, overlap); Rajbhandari et al. 2020, arXiv:1910.02054 (shards)
"""

from mini_tf.parallel.single_process import SINGLE, SingleProcess
from mini_tf.parallel.starting import ending_together, join

__all__ = ["SINGLE", "SingleProcess", "ending_together", "join"]
