"""Why a check could not judge, and what a learner's code may raise."""

FAILURES = Exception, SystemExit         # sys.exit is no Exception: uncaught, it would end the checker without a word


class Refused(Exception):
    """It cannot be judged: NOT TESTED. The message says what was found, and the argument that makes it work."""


class Broken(Exception):
    """A promise of the contract was broken, so that nothing can be measured: FAIL. The message is the finding."""
