"""What is wrong with a gradient, in words.

A wrong gradient often is a right one of something else: of another tensor, of a function without the mask, of γ = 1; or
it is off by a number, or by a term, that can be recognized. Each pattern is a question put to the numbers; it answers
with a sentence, or with None. The first that answers is believed: the sharpest questions come first, and the last ones
only say where the wrong entries are. A question is answered with yes when all entries fit, to a part in a million.

How good it is: `tests/gradcheck/reasons/test_diagnosis.py` plants the bugs of `planting/bugs.py`, whose author had not
seen the patterns, and holds each answer against what was planted. The README of the checker has the figures.
"""

from mini_tf.gradcheck.measuring.evidence import FEW
from mini_tf.gradcheck.reasons import places, resemblances, terms

import numpy as np

PATTERNS = [
    resemblances.not_a_number, resemblances.nothing, resemblances.constant_factor, resemblances.exchanged,
    places.repeated_ids, resemblances.ignores_mask, places.where_nothing_should_be, places.signs_only,
    terms.part_left_out, terms.dy_passed_on, resemblances.not_linear, resemblances.turned, resemblances.all_alike,
    resemblances.another_ones, resemblances.ignores_a_tensor, resemblances.part_of_the_batch, terms.sum_of_products,
    terms.other_slope, terms.diagonal_only, terms.multiple_in_every_row, terms.inside_attention, places.targets_only,
    terms.factor_entry_by_entry, terms.factor_in_every_row, resemblances.right_numbers, places.stops_in_time,
    places.only_zeros, places.place_of_the_wrong,
]  # fmt: skip


def diagnose(evidence):
    """{name: a sentence or two} for those of the wrong gradients that a pattern fits."""
    evidence.back_to_the_point()
    with np.errstate(all="ignore"):
        found = {name: _first_answer(evidence, name) for name in evidence.wrong}
    if len(evidence.subject.tensors) > 2 * FEW and len(set(found.values())) > 1:
        return {}                                        # a model: what its parts have in common is not to be guessed
    return {name: words for name, words in found.items() if words}


def _first_answer(evidence, name):
    return next(filter(None, (pattern(evidence, name) for pattern in PATTERNS)), None)
