"""Right backpropagation as people write it, each piece with wrong copies: the right one passes, and each bug fails."""

import inspect
import linecache
import sys
from itertools import count
from textwrap import dedent

from mini_tf.gradcheck import judge

import numpy as np

NUMBERS = count(1)


def edited(thing, *changes):
    """A copy of a function or a class, with places of its source changed: old, new, old, new, …"""
    source, path = dedent(inspect.getsource(thing)), f"edited_{next(NUMBERS)}.py"
    for old, new in zip(changes[::2], changes[1::2]):
        assert source.count(old) == 1, f"{old!r} is there {source.count(old)} times"
        source = source.replace(old, new)
    linecache.cache[path] = len(source), None, source.splitlines(True), path
    namespace = dict(vars(sys.modules[thing.__module__]))
    exec(compile(source, path, "exec"), namespace)
    return namespace[thing.__name__]


def verdicts(report):
    return {t.name: t.verdict for t in report.tensors}


def check(thing, call, judged, *bugs):
    """call(thing) is the Report on something right: it passes, with these tensors. With each bug, it fails.

    bugs: (old, new, the tensors that then fail; or, if a finding says it, its beginning)
    """
    report = call(thing)
    assert report.verdict == "PASS", report
    assert verdicts(report) == dict.fromkeys(judged.split(), "PASS")
    for old, new, wrong in bugs:
        report = call(edited(thing, old, new))
        assert report.verdict == "FAIL", report
        if report.findings:
            assert report.findings[0].startswith(wrong)
        else:
            assert [name for name, verdict in verdicts(report).items() if verdict == "FAIL"] == wrong.split()


def normal(*shapes, seed=7):
    """Arrays of these shapes, drawn normal; one alone if there is one shape"""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    return arrays if len(arrays) > 1 else arrays[0]


__all__ = ["check", "edited", "judge", "normal", "verdicts"]
