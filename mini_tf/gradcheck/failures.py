"""What a learner's function may raise."""

FAILURES = Exception, SystemExit         # sys.exit is no Exception: uncaught, it ends the checker without a word
