"""One check at a time: threads take turns.

A check gives parameters other arrays, functions other code and modules other functions, for a while. Two checks at once
would put back what they took from each other.
"""

from threading import RLock

turn = RLock()           # re-entrant: a check of a model checks its steps
