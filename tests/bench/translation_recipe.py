"""What is each ingredient of a translator's recipe worth? The same training, with other choices.

    python tests/bench/translation_recipe.py --pairs FILE

All variants learn from the same pairs for the same number of steps, with a schedule that ends there. Decoding is varied
with the whole recipe's model: it needs no other training. Every BLEU is that of all test sentences.
"""

import argparse
from dataclasses import replace

from mini_tf.data import read_pairs
from mini_tf.kernels import recycled_memory
from mini_tf.models import Translator
from mini_tf.training.translation import (
    TRANSLATION,
    batches_in_order,
    bleu_of,
    bleu_of_each_pair,
    mean_loss,
    same_source,
    translated,
)

RECIPE = "the whole recipe"
SMOOTHED, BEFORE = {"smoothing": 0.1}, {"norm": "before"}
VARIANTS = {                                             # options of the Translator
    RECIPE: {},
    "labels smoothed": SMOOTHED,
    "norm before": BEFORE,
    "labels smoothed, norm before": SMOOTHED | BEFORE,
    "labels smoothed, norm before, no dropout": SMOOTHED | BEFORE | {"dropout": 0.0},
    "labels smoothed, norm before, not tied": SMOOTHED | BEFORE | {"tied": "none"},
    "labels smoothed, dropout 0.2": SMOOTHED | {"dropout": 0.2},
}
DECODING = {"greedy": (1, 0.0), "beam 5": (5, 0.0), "beam 5, length penalty 1": (5, 1.0), "beam 10": (10, 0.0)}


def trained(preset, bitext, steps):
    """A model trained for so many steps."""
    model = Translator(len(bitext.french), len(bitext.english), seed=0, **preset.model)
    training = preset.training(model, bitext, steps, seed=0)
    with recycled_memory():
        while training.step < steps:
            training.one_step()
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="a file of lines English<TAB>French")
    parser.add_argument("--preset", choices=TRANSLATION, default="translate", help="the recipe (default: translate)")
    parser.add_argument("--steps", type=int, default=2500, help="of each training (default: 2500)")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="which trainings")
    options = parser.parse_args()
    recipe = TRANSLATION[options.preset]
    bitext = recipe.prepare(read_pairs(options.pairs))
    examples = same_source(bitext.test)
    print(f"{options.preset}, {options.steps:,} steps\n{'':<44}{'test loss':>10}{'BLEU':>7}{'one reference':>15}")
    for name in options.variants:
        model = trained(replace(recipe, model=recipe.model | VARIANTS[name]), bitext, options.steps)
        loss = mean_loss(model, batches_in_order(*bitext.ids(bitext.test), recipe.words))
        for how, settings in (DECODING if name == RECIPE else {"beam 5": DECODING["beam 5"]}).items():
            written = translated(model, bitext, examples, *settings)
            score, alone = bleu_of(examples, written), bleu_of_each_pair(examples, written)
            label = f"{name}, {how}" if name == RECIPE else name
            print(f"{label:<44}{loss:>10.3f}{score:>7.1f}{alone:>15.1f}", flush=True)


if __name__ == "__main__":
    main()
