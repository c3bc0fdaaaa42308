"""An array that, like CuPy's, is not a NumPy array and never becomes one implicitly.

It stands in for a GPU on machines without one: code that mixes host and device arrays, or gives a device array to a
NumPy function, works on the CPU by accident, but fails here, as it would on a GPU. Inside is a NumPy array; the only
ways in and out are `strict_library.asarray(host_array)` and `array.get()`.

It counts what takes a step's time on a GPU, see `counting`:

    launches    calls that fill an array, new or old. A view costs nothing: basic indexing, reshape without a copy
    waits       reads of a number or an array, bool(x), float(x), x.get(), and boolean indexing, whose result's shape
                the host has to learn first
    copies      arrays from the host, which are sent without waiting
"""

import sys
import types
from collections import Counter
from contextlib import contextmanager

import numpy as np

SCALARS = (bool, int, float, type(None), slice, type(Ellipsis))
VIEWS = {"reshape", "swapaxes", "ravel", "transpose", "squeeze", "expand_dims", "broadcast_to", "moveaxis", "split"}
FREE = {"empty", "empty_like", "result_type", "finfo", "iinfo", "dtype", "shares_memory"}
_counts = Counter()


@contextmanager
def counting():
    """Inside the block, launches, waits and copies are counted from 0, in the Counter that is yielded."""
    before = _counts.copy()
    _counts.clear()
    found = Counter()
    try:
        yield found
    finally:
        found.update(_counts)
        _counts.clear()
        _counts.update(before)


def launched(many=1):
    """Count launches, as of a kernel that a test runs in place of the device."""
    _counts["launches"] += many


def _waited():
    _counts["waits"] += 1


class StrictArray:
    """A NumPy array that NumPy cannot touch."""

    __array_priority__ = 1000
    __hash__ = None
    device = "strict"

    def __init__(self, data):
        self._data = data

    def get(self):
        _waited()
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
    strides = property(lambda self: self._data.strides)
    itemsize = property(lambda self: self._data.itemsize)
    data = property(lambda self: types.SimpleNamespace(ptr=self._data.ctypes.data))
    T = property(lambda self: StrictArray(self._data.T))

    def __len__(self):
        return len(self._data)

    def __bool__(self):
        _waited()
        return bool(self._data)

    def __int__(self):
        _waited()
        return int(self._data)

    def __float__(self):
        _waited()
        return float(self._data)

    def __getitem__(self, index):
        _count_index(index)
        return _wrap(self._data[_unwrap(index)])

    def __setitem__(self, index, value):
        _count_index(index)
        launched(0 if _advanced(index) else 1)
        self._data[_unwrap(index)] = _unwrap(value)

    def __repr__(self):
        return f"StrictArray({self._data!r})"


def _advanced(index):
    """The device arrays in an index: with one, indexing is a launch."""
    return [part for part in (index if isinstance(index, tuple) else (index,)) if isinstance(part, StrictArray)]


def _count_index(index):
    arrays = _advanced(index)
    if arrays:
        launched()
    if any(part.dtype == bool for part in arrays):
        _waited()


def _unwrap(value):
    if isinstance(value, StrictArray):
        return value._data
    if isinstance(value, (tuple, list)):
        return type(value)(_unwrap(v) for v in value)
    if isinstance(value, np.ndarray):
        raise TypeError(f"a host array of shape {value.shape} met a device array; move it with backend.to_device_of")
    if isinstance(value, (*SCALARS, np.generic, np.dtype, type, str)):
        return value
    raise TypeError(f"a device array met {type(value).__name__}")


def _wrap(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(value))           # a reduction stays on the device, as CuPy's do
    if isinstance(value, (tuple, list)):
        return type(value)(_wrap(v) for v in value)
    return value


def _operator(name):
    def method(self, *others):
        try:
            others = [_unwrap(other) for other in others]
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        launched()
        return _wrap(getattr(np.ndarray, name)(self._data, *others))

    return method


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv mod pow rpow matmul rmatmul neg abs invert and rand or ror xor "
    "lt le gt ge eq ne"
).split():
    setattr(StrictArray, f"__{_name}__", _operator(f"__{_name}__"))


def _in_place(name):
    def method(self, other):
        launched()
        getattr(np.ndarray, name)(self._data, _unwrap(other))
        return self

    return method


for _name in "iadd isub imul itruediv".split():
    setattr(StrictArray, f"__{_name}__", _in_place(f"__{_name}__"))


def _method(name):
    def method(self, *args, **kwargs):
        args = [_unwrap(a) for a in args]
        result = getattr(self._data, name)(*args, **{k: _unwrap(v) for k, v in kwargs.items()})
        if name in ("item", "tolist"):
            _waited()
            return result
        launched(0 if name in VIEWS and np.shares_memory(result, self._data) else 1)
        return _wrap(result)

    return method


for _name in "sum mean max min any all reshape swapaxes astype copy argmax cumsum ravel repeat transpose fill item tolist".split():
    setattr(StrictArray, _name, _method(_name))


class _Library(types.ModuleType):
    """Looks like a module with NumPy's functions, which take strict arrays only."""

    inf, nan, pi = float("inf"), float("nan"), np.pi

    def asarray(self, array):
        if isinstance(array, StrictArray):
            return array
        _counts["copies"] += 1
        return StrictArray(np.array(array))

    def erf(self, x):
        from scipy.special import erf

        launched()
        return StrictArray(erf(_unwrap(x)))

    def repeat(self, array, repeats, axis):
        launched(array.shape[axis])                      # CuPy copies one slice after the other
        return StrictArray(np.repeat(_unwrap(array), repeats, axis))

    def __getattr__(self, name):
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            return _Ufunc(function)
        if not callable(function) or isinstance(function, type):
            return function

        def strict_function(*args, **kwargs):
            launched(0 if name in VIEWS | FREE else 1)
            if name in ("nonzero", "flatnonzero", "unique"):
                _waited()
            return _wrap(function(*[_unwrap(a) for a in args], **{k: _unwrap(v) for k, v in kwargs.items()}))

        return strict_function


class _Ufunc:
    def __init__(self, ufunc):
        self.ufunc = ufunc

    def __call__(self, *args, out=None):
        launched()
        return _wrap(self.ufunc(*[_unwrap(a) for a in args], out=_unwrap(out)))

    def at(self, target, ids, values):
        launched()
        self.ufunc.at(_unwrap(target), _unwrap(ids), _unwrap(values))


strict_library = _Library("strict_library")
strict_library.ndarray = StrictArray
sys.modules["strict_library"] = strict_library


def strict(array):
    """A StrictArray with a copy of a host array."""
    return strict_library.asarray(array)
