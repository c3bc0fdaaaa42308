"""The command mini-tf, also as `python -m mini_tf`."""

import sys


def main() -> None:
    """Load and run the command; Ctrl-C while it is still loading is no error of the program either."""
    try:
        from mini_tf import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
