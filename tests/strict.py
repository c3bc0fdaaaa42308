"""An array that, like CuPy's, is not a NumPy array and never becomes one implicitly.

It stands in for a GPU on machines without one: code that mixes host and device arrays, or gives a device array to a
NumPy function, works on the CPU by accident, but fails here, as it would on a GPU. Inside is a NumPy array; the only
ways in and out are `strict_library.asarray(host_array)` and `array.get()`.
"""

import sys
import types

import numpy as np

SCALARS = (bool, int, float, type(None), slice, type(Ellipsis))


class StrictArray:
    """A NumPy array that NumPy cannot touch."""

    __array_priority__ = 1000
    __hash__ = None
    device = "strict"

    def __init__(self, data):
        self._data = data

    def get(self):
        return self._data.copy()

    def __array__(self, *args, **kwargs):
        raise TypeError("implicit conversion of a device array to a NumPy array is not allowed; use to_host")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        raise TypeError(f"NumPy's {ufunc.__name__} was given a device array; take the function from array_module(x)")

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"NumPy's {function.__name__} was given a device array; take the function from array_module(x)")

    def __array_namespace__(self, api_version=None):
        return strict_library

    shape = property(lambda self: self._data.shape)
    dtype = property(lambda self: self._data.dtype)
    ndim = property(lambda self: self._data.ndim)
    size = property(lambda self: self._data.size)
    flags = property(lambda self: self._data.flags)
    T = property(lambda self: StrictArray(self._data.T))

    def __len__(self):
        return len(self._data)

    def __bool__(self):
        return bool(self._data)

    def __int__(self):
        return int(self._data)

    def __float__(self):
        return float(self._data)

    def __getitem__(self, index):
        return _wrap(self._data[_unwrap(index)])

    def __setitem__(self, index, value):
        self._data[_unwrap(index)] = _unwrap(value)

    def __repr__(self):
        return f"StrictArray({self._data!r})"


def _unwrap(value):
    if isinstance(value, StrictArray):
        return value._data
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(v) for v in value)
    if isinstance(value, np.ndarray):
        raise TypeError(f"a host array of shape {value.shape} met a device array; move it with backend.beside")
    if isinstance(value, (*SCALARS, np.generic, np.dtype, type, str)):
        return value
    raise TypeError(f"a device array met {type(value).__name__}")


def _wrap(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(value))           # a reduction stays on the device, as CuPy's do
    if isinstance(value, tuple):
        return tuple(_wrap(v) for v in value)
    return value


def _operator(name):
    def method(self, *others):
        try:
            others = [_unwrap(other) for other in others]
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        return _wrap(getattr(np.ndarray, name)(self._data, *others))

    return method


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv mod pow rpow matmul rmatmul neg abs invert and rand or ror xor "
    "lt le gt ge eq ne"
).split():
    setattr(StrictArray, f"__{_name}__", _operator(f"__{_name}__"))


def _in_place(name):
    def method(self, other):
        getattr(np.ndarray, name)(self._data, _unwrap(other))
        return self

    return method


for _name in "iadd isub imul itruediv".split():
    setattr(StrictArray, f"__{_name}__", _in_place(f"__{_name}__"))


def _method(name):
    def method(self, *args, **kwargs):
        args = [_unwrap(a) for a in args]
        return _wrap(getattr(self._data, name)(*args, **{k: _unwrap(v) for k, v in kwargs.items()}))

    return method


for _name in "sum mean max min any all reshape swapaxes astype copy argmax cumsum ravel repeat transpose item tolist".split():
    setattr(StrictArray, _name, _method(_name))


class _Library(types.ModuleType):
    """Looks like a module with NumPy's functions, which take strict arrays only."""

    inf, nan, pi = float("inf"), float("nan"), np.pi

    def asarray(self, array):
        return array if isinstance(array, StrictArray) else StrictArray(np.array(array))

    def erf(self, x):
        from scipy.special import erf

        return StrictArray(erf(_unwrap(x)))

    def __getattr__(self, name):
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            return _Ufunc(function)
        if not callable(function) or isinstance(function, type):
            return function

        def strict_function(*args, **kwargs):
            return _wrap(function(*[_unwrap(a) for a in args], **{k: _unwrap(v) for k, v in kwargs.items()}))

        return strict_function


class _Ufunc:
    def __init__(self, ufunc):
        self.ufunc = ufunc

    def __call__(self, *args, out=None):
        return _wrap(self.ufunc(*[_unwrap(a) for a in args], out=_unwrap(out)))

    def at(self, target, ids, values):
        self.ufunc.at(_unwrap(target), _unwrap(ids), _unwrap(values))


strict_library = _Library("strict_library")
sys.modules["strict_library"] = strict_library


def strict(array):
    """A StrictArray with a copy of a host array."""
    return strict_library.asarray(array)
