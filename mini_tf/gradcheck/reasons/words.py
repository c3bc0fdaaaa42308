"""What a pattern says of a wrong gradient: what was measured, and, kept apart from it, what may be the reason."""

from typing import NamedTuple


class Words(NamedTuple):
    """measured: a sentence that all entries confirm.   perhaps: a reason for it; there may be another one"""

    measured: str
    perhaps: str = ""
