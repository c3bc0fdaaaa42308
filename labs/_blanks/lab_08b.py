"""The blanks of lab 08b: decoding, and BLEU."""

from types import SimpleNamespace

from _blanks import Blank, same
from mini_tf.decoding import beam_search
from mini_tf.metrics import bleu
from mini_tf.text.sentences import EOS, SOS

import numpy as np


def chain(T):
    """A model whose next word depends on the last one, see SCORES; the source's number is added to [EOS]'s score"""

    def logits(source, target):
        scores = SCORES[target].astype(float)
        scores[..., EOS] += source.sum()
        return scores

    return SimpleNamespace(T=T, logits=logits)


SCORES = np.array([      # of [SOS], [EOS], [UNK], 3, 4, 5, after …
    [0, 1, 9, 2, 5, 4],  # [SOS]: 4, as [UNK] is never written
    [0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0],
    [1, 2, 3, 0, 1, 4],  # 3: 5, or the end if the source adds 3 to it
    [8, 0, 1, 6, 2, 3],  # 4: 3, as [SOS] is never written
    [1, 4, 5, 3, 0, 2],  # 5: the end
])  # fmt: skip
KNOWN = {(8, 0): [4, 3, 5], (8, 3): [4, 3], (2, 0): [4, 3]}       # by T and source, read off by eye


def known_sentence(model, source):
    return KNOWN[model.T, int(source.sum())]


class TableWriter:
    """The interface that mini_tf's beam_search needs of a model, from follow(words)"""

    sentences = 1

    def __init__(self, follow, words):
        self.follow, self.words, self.prefixes = follow, ["[SOS]", "[EOS]", "[UNK]", *words], [()]

    def read(self, words):
        self.prefixes = [(*begin, self.words[i]) for begin, i in zip(self.prefixes, words[0]) if i != SOS] or [()]
        with np.errstate(divide="ignore"):
            return np.log([[[self.follow(begin).get(word, 0.0) for word in self.words] for begin in self.prefixes]])

    def choose(self, sentences, hypotheses):
        self.prefixes = [self.prefixes[i] for i in hypotheses[0]]


def chances(words):
    """{word: probability} after a prefix, the same each time, as from a model"""
    p = np.random.default_rng([len(words), *(ord(word[0]) for word in words)]).dirichlet([0.7] * 4)
    return dict(zip(("a", "b", "c", "[EOS]"), p))


EARLY_END = {
    (): {"a": 0.8, "[EOS]": 0.2},
    ("a",): {"b": 0.6, "c": 0.4},
    ("a", "b"): {"a": 0.5, "b": 0.3, "c": 0.2},
    ("a", "c"): {"a": 0.9, "b": 0.1},
}


def early_end(words):
    """A tree in which [EOS] takes a place in the beam at the first step"""
    return EARLY_END.get(words, {"[EOS]": 1.0})


def found_by_mini_tf(follow, width, longest):
    hypothesis = beam_search(TableWriter(follow, ["a", "b", "c"]), width, longest)[0]
    words = [("a", "b", "c")[i - 3] for i in hypothesis.words] + ["[EOS]"] * hypothesis.ended
    return tuple(words), hypothesis.log_probability


def in_one_text(function):
    """The words that a search finds as one text, so that a check can show them"""

    def f(follow, width, longest):
        words, ln_p = function(follow, width, longest)
        return " ".join(words), ln_p

    f.__name__ = function.__name__
    return f


def finds_the_same(function):
    """A check: what mini_tf's beam search finds, for widths and lengths"""
    cases = [(chances, width, longest) for width in (1, 2, 3, 5) for longest in (1, 2, 4, 6)]
    cases += [(early_end, width, 5) for width in (1, 2, 3)]
    return same(in_one_text(found_by_mini_tf), *cases)(in_one_text(function))


def shared(prediction, target, order, clipped=True):
    """P_K by crossing out: each n-gram of the target can be matched once, if clipped"""

    def runs(words):
        return [words[i : i + order] for i in range(len(words) - order + 1)]

    left, matches = runs(target), 0
    for run in runs(prediction):
        if run in left:
            matches += 1
            if clipped:
                left.remove(run)
    return matches, len(prediction) - order + 1


CAT, FAT = "the fat cat ate the cat".split(), "the fat cat ate the fat rat".split()
DOG, HAPPY = "the dog is a happy dog".split(), ["happy"] * 5

BLANKS = [
    Blank(
        "greedy_by_hand",
        [
            "Begin with an empty list of words. Ask the model for the scores after [SOS] and the words so far, take "
            "the best word, add it, and go on: at most model.T times.",
            "model.logits wants batches: source[None], and an array with one row, SOS first. Of its result, only "
            "the last position of sentence 0 matters: [0, -1], c scores.",
            "Set the scores of SOS and UNK to −∞, in a copy, before you take the argmax. At EOS, return without it.",
        ],
        same(known_sentence, (chain(8), np.array([0])), (chain(8), np.array([3])), (chain(2), np.array([0]))),
    ),
    Blank(
        "beam_by_hand",
        [
            "Keep two lists of pairs (words, ln p): the live prefixes, at first only ((), 0.0), and the final "
            "candidates, at first none.",
            "A step: continue every live prefix by every word that follow(words) names. ln p grows by the "
            "logarithm of the word's probability. Sort the longer ones by ln p and keep the first `width`.",
            "Of those kept, the ones whose last word is [EOS] are final; the others are live. Subtract the number of "
            "new final ones from width: their places are taken.",
            "After the last step, final and live ones compete together, by ln p alone: max with a key.",
        ],
        finds_the_same,
    ),
    Blank(
        "precision",
        [
            "ngrams(words, order) gives a Counter: how often each n-gram occurs, 0 for one that does not.",
            "Go through the distinct n-grams of the prediction with their counts. Not clipped, each counts as often as "
            "it is predicted, if it is in the target at all.",
            "Clipped, it counts at most as often as the target has it: the smaller of two counts.",
        ],
        same(shared, (CAT, FAT, 1), (CAT, FAT, 2), (CAT, FAT, 3), (HAPPY, DOG, 1), (HAPPY, DOG, 1, False),
             (DOG, HAPPY, 1, False), (["happy"], DOG, 3)),
    ),
    Blank(
        "bleu_by_hand",
        [
            "precision(prediction, target, order) gives the two numbers of a fraction, for order = 1 … up_to.",
            "If any fraction has no matches, or nothing to count (a second number below 1), the score is 0.",
            "Otherwise: the geometric mean is the product to the power 1/up_to; brevity_penalty(prediction, target) "
            "multiplies it once, outside of the root.",
        ],
        same(lambda prediction, target, up_to: bleu(prediction, target, up_to), (CAT, FAT, 3), (CAT, FAT, 4),
             (["happy"], DOG, 1), (["happy"], DOG, 2), (HAPPY, DOG, 1), (DOG, DOG, 4)),
    ),
]  # fmt: skip
