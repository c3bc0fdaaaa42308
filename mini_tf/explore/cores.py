"""One core for the explorer's many small products of matrices.

A second thread gains nothing for arrays of this size, and on a busy machine every product waits for the other core.
"""

from threadpoolctl import threadpool_limits

on_one_core = threadpool_limits.wrap(limits=1, user_api="blas")
