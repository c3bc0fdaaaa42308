"""How fast n-gram models count, compared with a Counter of tuples.

    python tests/bench/ngram.py [--order 5] [--words 263000] [--rounds 3]

mini_tf counts grams of all orders up to the highest and turns the counts into probabilities; the Counter counts the
grams of the highest order alone. The text is Lab 6's; beyond its 292 thousand words it is repeated and shuffled, which
gives more distinct grams than a real text of that length has.
"""

import argparse
from collections import Counter
from statistics import median

from mini_tf.models import NGramModel
from mini_tf.text import Vocabulary, shakespeare, tokenize

import numpy as np
from measuring import seconds_of


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--words", type=int, default=263_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    tokens = tokenize(shakespeare())
    vocabulary = Vocabulary(tokens)
    ids = vocabulary.encode(tokens)
    if options.words > len(ids):
        ids = np.random.default_rng(0).permutation(np.tile(ids, -(-options.words // len(ids))))
    ids = ids[: options.words]
    model = NGramModel(options.order, len(vocabulary))
    words = ids.tolist()
    contenders = {
        "mini_tf": lambda: model.fit(ids),
        "Counter": lambda: Counter(zip(*(words[k:] for k in range(options.order)))),
        "mini_tf, log probabilities": lambda: model.log_probabilities(ids),
    }
    times = {name: [] for name in contenders}
    for _ in range(options.rounds):
        for name, work in contenders.items():
            times[name].append(seconds_of(work))
    print(f"order {options.order}, {len(ids):,} words, {sum(model.grams):,} different grams, {options.rounds} rounds")
    print(f"{'':<28}{'median s':>10}{'min':>8}{'max':>8}")
    for name, some in times.items():
        print(f"{name:<28}{median(some):>10.3f}{min(some):>8.3f}{max(some):>8.3f}")
    print(f"mini_tf / Counter: {median(times['mini_tf']) / median(times['Counter']):.2f} of its time, for all orders")


if __name__ == "__main__":
    main()
