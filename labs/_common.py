"""What every lab needs: the --quick switch and a place for figures."""

import argparse
from pathlib import Path

FIGURES = Path(__file__).parent / "figures"


def quick_mode(description):
    """True with --quick: smaller models and fewer steps, under a minute, to see that all works."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="smaller and shorter, under a minute")
    known, _ = parser.parse_known_args()                 # a notebook's kernel has arguments of its own
    return known.quick


def show(figure, name):
    """Save a figure as labs/figures/NAME.png; in a notebook, show it too."""
    from mini_tf.files import replacing

    path = FIGURES / f"{name}.png"
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=110)
    print(f"figure: {path.parent.parent.name}/{path.parent.name}/{path.name}")
    try:
        from IPython import get_ipython
        from IPython.display import Image, display
    except ImportError:
        return
    if get_ipython() is not None:
        display(Image(filename=str(path)))
