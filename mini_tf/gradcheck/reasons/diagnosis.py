"""What is wrong with a gradient, in words.

A wrong gradient is often the right one of something else: of another tensor, of a function without the mask, of γ = 1.
Or it is off by a factor or a term that can be recognized. Each pattern asks one such question of the numbers, and
answers with `Words` (what was measured, and what may be the reason) or with None. The first answer is taken: the
sharpest questions come first, and the last only say where the wrong entries are. The answer is yes only if all entries
fit, to a part in a million, and if the same pattern fits wherever else the gradient was found to be wrong: at the other
point, and with larger arrays (`measuring/elsewhere.py`).

How good the words are: `tests/gradcheck/reasons/test_diagnosis.py` plants the bugs of `planting/bugs.py` and compares
each answer with what was planted; `tests/gradcheck/other_styles.py` has bugs of another author. The checker's README
has the figures.
"""

import re

from mini_tf.gradcheck.measuring.elsewhere import elsewhere, other_draws
from mini_tf.gradcheck.measuring.evidence import FEW, Evidence
from mini_tf.gradcheck.reasons import factors, paths, places, resemblances, terms
from mini_tf.gradcheck.reasons.words import Words

import numpy as np

ANYWHERE = factors.constant_factor, places.where_nothing_should_be, terms.part_left_out      # need no other point
PATTERNS = [
    resemblances.not_finite, factors.constant_factor, resemblances.exchanged, places.repeated_ids,
    places.where_nothing_should_be, terms.part_left_out, terms.dy_passed_on, resemblances.not_linear,
    resemblances.rearranged, resemblances.all_alike, resemblances.other_inputs, resemblances.other_option,
    resemblances.sent_forward, resemblances.part_of_the_batch,
    terms.sum_of_products, terms.other_slope, paths.one_path, terms.off_by_a_number, terms.penalty,
    terms.multiple_in_every_row, factors.factor_in_every_row, places.stops_in_time, places.where_zero_is_right,
    places.place_of_the_wrong,
]  # fmt: skip


def diagnose(evidence: Evidence) -> dict[str, Words]:
    """{name: Words} for the wrong gradients that a pattern fits."""
    evidence.back_to_the_point()
    with np.errstate(all="ignore"):
        found = {name: _first_answer(evidence, name) for name in evidence.wrong}
    if len(evidence.subject.tensors) > 2 * FEW and len(set(found.values())) > 1:
        return {}                                        # a model: different words for its many tensors are a guess
    return {name: words for name, words in found.items() if words}


def _first_answer(evidence, name):
    answers = ((pattern, pattern(evidence, name)) for pattern in PATTERNS)
    return next((words for pattern, words in answers if words and _confirmed(evidence, name, pattern, words)), None)


def _confirmed(evidence, name, pattern, words):
    """True if the pattern says the same, but for numbers, wherever else all of a wrong gradient was measured."""
    if pattern in ANYWHERE:                              # they have looked there, or what they say depends on numbers
        return True
    if pattern is places.place_of_the_wrong:             # which of the entries that ids name are wrong may differ
        everywhere = words.measured.startswith("Wrong only at index")    # not what another number hides
        same = (_in_the_same_places(evidence, other, name, everywhere) for other in elsewhere(evidence))
        return " names" in words.measured or all(same)
    if pattern is places.repeated_ids and any(_at(e, places.named_once_and_wrong, name) for e in other_draws(evidence)):
        return False
    said = _without_numbers(words)
    for other in elsewhere(evidence):
        if pattern is places.repeated_ids and other.sizes != evidence.sizes:
            continue                                     # there, perhaps, every row is named more than once
        if name in other.wrong and name in other.gradients and not np.isnan(other.slopes[name]).any():
            if np.shape(other.gradients[name]) != other.slopes[name].shape:
                return False
            again = _at(other, pattern, name)
            evidence.back_to_the_point()
            if again is None or _without_numbers(again) != said:
                return False
    return True


def _at(evidence, pattern, name):
    evidence.back_to_the_point()
    return pattern(evidence, name)


def _in_the_same_places(evidence, other, name, with_other_numbers):
    """True if the same entries are wrong there, or if it cannot be compared: with other sizes, or another stride.

    with_other_numbers: compare those with another margin=0.5, too
    """
    another = other.option != evidence.option
    another = another and not (with_other_numbers and isinstance((other.option or evidence.option)[1], float))
    if other.sizes != evidence.sizes or another or name not in other.wrong:
        return True
    if np.shape(other.gradients.get(name)) != other.slopes[name].shape:
        return False
    known = evidence.pair(name)[2] & other.pair(name)[2]
    return np.array_equal(evidence.wrong_entries(name)[known], other.wrong_entries(name)[known])


def _without_numbers(words):
    return [re.sub(r"[-−]?\d[\d.,e+-]*|inf|nan", "#", sentence) for sentence in words]
