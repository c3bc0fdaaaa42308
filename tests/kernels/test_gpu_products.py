"""cuBLAS is called as BLAS is defined: for matrices in Fortran order, where ours are in C order."""

import ctypes
from types import SimpleNamespace

from mini_tf.kernels.gpu import launching

import numpy as np
import pytest


class OnDevice(np.ndarray):
    """An array whose `data` has a pointer, as CuPy's have"""

    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))


def sgemm(handle, A_transposed, B_transposed, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    """C = α·op(A)·op(B) + β·C for matrices in Fortran order, by the definition of BLAS"""

    def matrix(pointer, rows, columns, step):
        assert step >= max(rows, 1)
        numbers = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (step * columns,))
        return numbers.reshape(columns, step).T[:rows]

    A = matrix(A, k, m, lda).T if A_transposed else matrix(A, m, k, lda)
    B = matrix(B, n, k, ldb).T if B_transposed else matrix(B, k, n, ldb)
    alpha, beta = (float(matrix(pointer, 1, 1, 1)[0, 0]) for pointer in (alpha, beta))
    assert (handle, alpha, beta) == (7, 1, 0)
    matrix(C, m, n, ldc)[:] = A @ B


@pytest.mark.parametrize("B_transposed", [False, True])
@pytest.mark.parametrize("A_transposed", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(3, 4, 5), (1, 4, 1), (3, 1, 2), (3, 0, 2), (0, 2, 3), (2, 3, 0)])
def test_products(m, k, n, A_transposed, B_transposed, monkeypatch, rng):
    monkeypatch.setattr(launching, "empty", lambda shape: np.full(shape, np.nan, np.float32).view(OnDevice))
    monkeypatch.setattr(launching, "_cublas", lambda: SimpleNamespace(sgemm=sgemm))
    monkeypatch.setattr(launching, "_handle", lambda: 7)
    A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    given = [np.ascontiguousarray(X.T if turned else X).view(OnDevice) for X, turned in ((A, A_transposed), (B, B_transposed))]
    np.testing.assert_allclose(launching.product(*given, A_transposed, B_transposed), A @ B, rtol=1e-6)


@pytest.mark.gpu
def test_products_on_a_gpu(rng):
    import cupy

    A, B = rng.standard_normal((33, 70), np.float32), rng.standard_normal((70, 5), np.float32)
    for A_transposed in (False, True):
        for B_transposed in (False, True):
            given = [cupy.asarray(np.ascontiguousarray(X.T if turned else X)) for X, turned in ((A, A_transposed), (B, B_transposed))]
            found = launching.product(*given, A_transposed, B_transposed)
            assert found.flags.c_contiguous
            np.testing.assert_allclose(found.get(), A @ B, rtol=1e-4, atol=1e-4)
