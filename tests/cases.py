"""Cases of a test: by default some run that stand for all, with `pytest --all` the others, too."""

import pytest


def cases(default, exhaustive):
    """The values for pytest.mark.parametrize: those of the default, and those that run with --all only."""
    others = [case if isinstance(case, tuple) else (case,) for case in exhaustive]
    return [*default, *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in others)]
