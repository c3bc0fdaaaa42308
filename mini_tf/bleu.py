"""BLEU: how many n-grams a translation shares with human translations."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mini_tf.checks import check_whole, shown
from mini_tf.errors import UserError


@dataclass(frozen=True)
class Bleu:
    """BLEU of a corpus, and what it is made of. `str()` shows it with its n-gram precisions and lengths.

    matches           for n = 1, 2, …: the n-grams of the predictions that are in a reference, too
    totals            for n = 1, 2, …: all n-grams of the predictions
    length            l, the words of the predictions
    reference_length  r, the words of the references: of each sentence, the one closest in length to the prediction
    """

    matches: tuple[int, ...]
    totals: tuple[int, ...]
    length: int
    reference_length: int

    @property
    def precisions(self) -> tuple[float, ...]:
        """(P_1, P_2, …), P_n = matches/totals; 0 where no prediction has n words."""
        return tuple(match / total if total else 0.0 for match, total in zip(self.matches, self.totals))

    @property
    def brevity_penalty(self) -> float:
        """exp(1 − r/l) if l < r, else 1; 0 without any predicted word. Short predictions have high precisions."""
        l, r = self.length, self.reference_length
        if l >= r:
            return 1.0
        return math.exp(1 - r / l) if l else 0.0

    @property
    def score(self) -> float:
        """penalty·(P_1 ⋯ P_max_n)^(1/max_n), in 0 … 1; 0 if a precision is."""
        if not all(self.precisions):
            return 0.0
        return self.brevity_penalty * math.exp(sum(map(math.log, self.precisions)) / len(self.precisions))

    def __str__(self) -> str:
        counts = zip(self.matches, self.totals, self.precisions)
        parts = [f"P_{n} = {match}/{total} = {P:.3f}" for n, (match, total, P) in enumerate(counts, 1)]
        return (
            f"BLEU {self.score:.3f}: {', '.join(parts)}; {self.length} words for {self.reference_length} "
            f"of the references, brevity penalty {self.brevity_penalty:.3f}"
        )


def bleu(prediction: list[str], references: list[str] | list[list[str]], max_n: int = 4) -> float:
    """BLEU of one sentence, in 0 … 1:  penalty·(P_1 ⋯ P_max_n)^(1/max_n)

    prediction   a list of words
    references   a list of words, or several such lists: other right translations of the sentence

    P_n = Σ_x min(count of x in the prediction, its largest count in any one reference) / (l − n + 1), where x runs
    over the distinct n-grams of the prediction, which has l words. The penalty is exp(1 − r/l) if l < r, else 1; r is
    the length of the reference that is closest in length, the shorter of two as close. A prediction of fewer than
    max_n words, or without a matching n-gram for one n, scores 0: nothing is smoothed.

    bleu("the fat cat ate the cat".split(), "the fat cat ate the fat rat".split(), max_n=3)      # 0.672
    Raises UserError as `corpus_bleu`, of which this is the score for a corpus of one sentence.
    Source: Papineni et al. 2002, "BLEU: a method for automatic evaluation of machine translation"; CMU 10-417/617 HW3a
    """
    return corpus_bleu([prediction], [references], max_n).score


def corpus_bleu(
    predictions: Sequence[list[str]], references: Sequence[list[str] | list[list[str]]], max_n: int = 4
) -> Bleu:
    """BLEU of many sentences, a `Bleu`: matches, totals and lengths are summed over the corpus, then divided.

    predictions  a list of words for each sentence; it may be empty
    references   for each sentence a list of words, or several: not every sentence needs the same number

    So it is not the mean of the sentences' scores, and a sentence without a matching 4-gram does no harm by itself.
    It agrees with sacrebleu's `corpus_bleu(…, tokenize="none", smooth_method="none")`, which counts up to 100, also at
    the edges: a precision without any n-gram is 0, and so is the score then (effective_order=False); a prediction
    without words adds only its reference's length; a reference may be without words. By default, sacrebleu tokenizes
    in its own way and smooths, and gives other numbers.
    Raises UserError for no predictions, another number of references, a prediction without reference, words that are
    not in a list, and max_n < 1.
    Source: Papineni et al. 2002, section 2.3; CMU 10-417/617 HW3a
    """
    check_whole(max_n=max_n)
    if not len(predictions):
        raise UserError("there are no predictions, expected at least one list of words")
    if len(predictions) != len(references):
        raise UserError(f"there are {len(predictions)} predictions and references for {len(references)} sentences, "
                        "expected as many: put several references for one sentence into one list")  # fmt: skip
    matches, totals, length, reference_length = [0] * max_n, [0] * max_n, 0, 0
    for i, prediction in enumerate(predictions):
        _check_words(prediction, f"prediction {i}")
        several = _several(references[i], i)
        length += len(prediction)
        reference_length += min((len(one) for one in several), key=lambda r: (abs(r - len(prediction)), r))
        for n in range(1, max_n + 1):
            count, largest = _ngrams(prediction, n), Counter[tuple[str, ...]]()
            for reference in several:
                largest |= _ngrams(reference, n)                         # | takes the larger count of each n-gram
            matches[n - 1] += (count & largest).total()                  # & the smaller
            totals[n - 1] += count.total()
    return Bleu(tuple(matches), tuple(totals), length, reference_length)


def _ngrams(words, n):
    return Counter(zip(*(words[i:] for i in range(n))))


def _several(references, i):
    """The references of sentence i as a list of lists of words."""
    if isinstance(references, (list, tuple)) and not references:
        raise UserError(f"prediction {i} has no reference, expected at least one list of words; "
                        "a reference without words is [[]]")  # fmt: skip
    if not isinstance(references, (list, tuple)) or not any(isinstance(one, (list, tuple)) for one in references):
        references = [references]
    for one in references:
        _check_words(one, f"a reference of prediction {i}")
    return references


def _check_words(words, name):
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise UserError(f"{name} is {shown(words)}, expected a list of words: split a text first, and decode ids")
