"""python -m mini_tf.pages site DIR: write the site."""

import argparse
import sys
from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.terminal import write_in_any_encoding


def main() -> None:
    """Write the site. An error of the user's is printed in one line; the exit code is then 2."""
    write_in_any_encoding()
    parser = argparse.ArgumentParser(prog="python -m mini_tf.pages", description="Write the site.")
    parser.add_argument("what", choices=["site"])
    parser.add_argument("folder", metavar="DIR", type=Path, help="where to write it; index.html is the first page")
    folder = parser.parse_args().folder
    try:
        from mini_tf.explore.command import explored  # here, because what these need may be missing
        from mini_tf.pages import reference
        from mini_tf.pages.site import build

        pages = {f"reference/{path}": html for path, html in reference.rendered_pages().items()}
        build(folder, pages | {"explorer.html": explored().html()})
    except ModuleNotFoundError as error:
        _end(f"{error.name} is not installed: pip install -e '.[docs]'")
    except UserError as error:
        _end(error)
    print(f"written: {folder / 'index.html'}")


def _end(reason):
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
