"""python -m mini_tf.pages.reference DIR: write the API reference."""

import argparse
import sys
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.pages.reference import build
from mini_tf.terminal import write_in_any_encoding


def main() -> None:
    """Write the reference. A UserError is printed in one line; the exit code is then 2."""
    write_in_any_encoding()
    parser = argparse.ArgumentParser(prog="python -m mini_tf.pages.reference", description="Write the API reference.")
    parser.add_argument("folder", metavar="DIR", type=Path, help="where to write it; index.html is the first page")
    folder = parser.parse_args().folder
    try:
        build(folder)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"written: {folder / 'index.html'}")


if __name__ == "__main__":
    main()
