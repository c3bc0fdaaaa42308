"""What is known about a function at one point, and what can still be asked."""

from mini_tf.gradcheck.measuring.slopes import Phi, slopes_of_entries

import numpy as np

CLOSE = 1e-6             # relative to the largest entry: measured slopes are better known than that
AFFORDABLE = 600         # a tensor with more entries is not measured again under other circumstances, and neither is
FEW = 5                  # one of a function with more tensors than this: a layer of many parts, a model


class Evidence:
    """The subject as it was at the point, y, dy, the gradients from its backward, and the measured slopes."""

    def __init__(self, subject, y, backward, dy, gradients, patterns):
        self.subject, self.y, self.backward, self.dy = subject, y, backward, dy
        self.gradients, self.patterns = gradients, patterns
        self.slopes = {}                                 # NaN where not known
        self.wrong, self.right = [], []                  # names of the gradients that are so
        self.each = {}                                   # of `slopes_of_each`, measured once
        self.everything = dict(zip(subject.names, subject.inputs)) | subject.tensors

    def back_to_the_point(self, copies=False):
        """Put the subject's arrays back to what they were here, or copies of them, which may be spoiled."""
        for name, array in self.everything.items():
            self.subject.replace(name, np.array(array) if copies and isinstance(array, np.ndarray) else array)

    def pair(self, name):
        """(your gradient, the measured one, where the measured one is known)"""
        slopes = self.slopes[name]
        return np.asarray(self.gradients[name]), np.nan_to_num(slopes), ~np.isnan(slopes)

    def wrong_entries(self, name):
        """bool, the shape of the tensor"""
        yours, right, known = self.pair(name)
        return known & (np.abs(yours - right) > CLOSE * max(np.abs(right).max(initial=0), 1e-300))

    def agrees(self, name, gradient):
        """Whether a gradient is the measured one, wherever that is known."""
        slopes = self.slopes[name]
        if np.shape(gradient) != slopes.shape or not np.isfinite(gradient).all():
            return False
        size = np.nanmax(np.abs(slopes), initial=1e-300)
        return bool((np.nan_to_num(np.abs(gradient - slopes)) <= CLOSE * size).all())

    def measured(self, name, dy=None, **others):
        """The gradient measured once more, with another dy or other arrays in the place of inputs.

        None where that costs too much, and where the function refuses what is tried.
        """
        if self.subject.tensors[name].size > AFFORDABLE or len(self.subject.tensors) > FEW:
            return None
        try:
            for other, array in others.items():
                self.subject.replace(other, np.array(array))
            phi = Phi(self.subject, self.dy if dy is None else dy, self.patterns)
            x = self.subject.tensors[name]
            return slopes_of_entries(phi, x, np.arange(x.size)).slope.reshape(x.shape)
        except Exception:
            return None
        finally:
            for other in others:
                self.subject.replace(other, self.everything[other])


def close(a, b, known):
    """Whether a and b agree at all entries where the measurement is known, and there is something to agree on."""
    if a is None or b is None or np.shape(a) != np.shape(b) or known.sum() < 2:
        return False
    a, b = np.asarray(a)[known], np.asarray(b)[known]
    size = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(size > 0 and (np.abs(a - b) <= CLOSE * size).all())


def fitted(a, shape):
    """a broadcast to the shape; None if it does not fit."""
    try:
        return np.broadcast_to(a, shape)
    except ValueError:
        return None


def entry_by_entry(e, name):
    """`slopes_of_each`, if the function acts on every entry by itself; else None."""
    _, right, known = e.pair(name)
    slopes = slopes_of_each(e, name)
    return slopes if slopes is not None and close(right, e.dy * slopes, known) else None


def slopes_of_each(e, name):
    """∂y_i/∂x_i of all entries, measured; None where y has another shape than x, or it costs too much."""
    x = e.subject.tensors[name]
    if e.y.shape != x.shape or x.size > AFFORDABLE // 4 or not x.ndim:
        return None
    if name not in e.each:
        each = np.zeros(x.size)
        for i in range(x.size):
            one = np.zeros(x.shape)
            one.flat[i] = 1.0
            each[i] = slopes_of_entries(Phi(e.subject, one, e.patterns), x, np.array([i])).slope[0]
        e.each[name] = each.reshape(x.shape)
    return e.each[name]
