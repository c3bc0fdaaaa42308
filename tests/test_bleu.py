"""BLEU by hand, and against sacrebleu."""

import math

from mini_tf.errors import UserError
from mini_tf.metrics import Bleu, bleu, corpus_bleu

import pytest
import sacrebleu

TARGET, PREDICTION = "the fat cat ate the fat rat".split(), "the fat cat ate the cat".split()


def test_the_recitations_example_by_hand():
    whole = corpus_bleu([PREDICTION], [TARGET], max_n=3)
    assert whole.precisions == (5 / 6, 4 / 5, 3 / 4)     # the product is 3/6, as the slide prints
    assert whole.matches == (5, 4, 3)
    assert whole.totals == (6, 5, 4)
    assert (whole.length, whole.reference_length) == (6, 7)
    assert whole.brevity_penalty == pytest.approx(math.exp(1 - 7 / 6))
    assert whole.score == pytest.approx(math.exp(-1 / 6) * 0.5 ** (1 / 3))
    assert bleu(PREDICTION, TARGET, max_n=3) == whole.score == pytest.approx(0.672, abs=5e-4)


def test_it_prints_its_precisions_and_lengths():
    assert str(corpus_bleu([PREDICTION], [TARGET], max_n=3)) == (
        "BLEU 0.672: P_1 = 5/6 = 0.833, P_2 = 4/5 = 0.800, P_3 = 3/4 = 0.750; 6 words for 7 of the references, "
        "brevity penalty 0.846"
    )


def test_a_word_counts_as_often_as_one_reference_has_it():
    # Papineni et al., section 2.1: seven times "the", which one reference has twice and the other once
    references = ["the cat is on the mat".split(), "there is a cat on the mat".split()]
    assert corpus_bleu([["the"] * 7], [references], max_n=1).precisions == (2 / 7,)


def test_the_closest_reference_decides_the_penalty():
    def lengths(*references):
        return corpus_bleu([["a"] * 5], [[["a"] * r for r in references]]).reference_length

    assert lengths(9, 6, 3) == 6
    assert lengths(7, 3) == lengths(3, 7) == 3           # as close: the shorter
    assert bleu(["a"] * 5, [["a"] * 9, ["a"] * 5]) == 1


def test_scores_of_0_and_1():
    assert bleu(TARGET, TARGET) == bleu(TARGET, [PREDICTION, TARGET]) == 1
    assert bleu([], TARGET) == bleu([], [[]]) == 0
    assert bleu("the fat rat".split(), "the fat rat".split()) == 0       # no 4-gram
    assert bleu("the fat rat".split(), "the fat rat".split(), max_n=3) == 1
    assert bleu("the rat fat cat".split(), TARGET, max_n=3) == 0         # no 3-gram matches
    assert corpus_bleu([[]], [TARGET]) == Bleu((0,) * 4, (0,) * 4, 0, 7)
    assert corpus_bleu([[]], [TARGET]).brevity_penalty == 0


def test_a_corpus_sums_before_it_divides():
    both = corpus_bleu([PREDICTION, ["rat"]], [TARGET, ["rat"]])
    assert both.matches == (6, 4, 3, 2)
    assert both.totals == (7, 5, 4, 3)
    assert both.score > bleu(PREDICTION, TARGET) / 2


def of_sacrebleu(predictions, references, max_n):
    columns = max(map(len, references))                  # sacrebleu wants the k-th references of all sentences together
    streams = [[" ".join(r[k]) if k < len(r) else None for r in references] for k in range(columns)]
    metric = sacrebleu.BLEU(max_ngram_order=max_n, tokenize="none", smooth_method="none", force=True)
    return metric.corpus_score([" ".join(words) for words in predictions], streams)


def sentences(rng, count, least=0, words=4):
    return [[f"w{i}" for i in rng.integers(0, words, rng.integers(least, 16))] for _ in range(count)]


@pytest.mark.parametrize("max_n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("most", [1, 3], ids=["one reference", "one to three references"])
def test_it_is_sacrebleus(rng, max_n, most):
    positive = 0
    for round_ in range(60):
        count = int(rng.integers(1, 8))
        predictions = sentences(rng, count, words=2 + round_ % 3)
        references = [sentences(rng, int(rng.integers(1, most + 1)), words=2 + round_ % 3) for _ in range(count)]
        ours, theirs = corpus_bleu(predictions, references, max_n), of_sacrebleu(predictions, references, max_n)
        assert ours.score == pytest.approx(theirs.score / 100, abs=1e-9)
        assert ours.precisions == pytest.approx([P / 100 for P in theirs.precisions], abs=1e-9)
        assert ours.brevity_penalty == pytest.approx(theirs.bp, abs=1e-9)
        assert (list(ours.matches), list(ours.totals)) == (theirs.counts, theirs.totals)
        assert (ours.length, ours.reference_length) == (theirs.sys_len, theirs.ref_len)
        positive += ours.score > 0
    assert positive > 5


def test_the_call_that_the_docstring_names(rng):
    predictions, references = sentences(rng, 30), sentences(rng, 30, least=1)
    theirs = sacrebleu.corpus_bleu([" ".join(words) for words in predictions], [[" ".join(words) for words in references]],
                                   tokenize="none", smooth_method="none", force=True)  # fmt: skip
    assert corpus_bleu(predictions, references).score == pytest.approx(theirs.score / 100, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    {
        "no predictions": (([], []), "there are no predictions"),
        "another number": (([["a"]], [["a"], ["b"]]), "1 predictions and references for 2 sentences, expected as many"),
        "max_n of 0": (([["a"]], [["a"]], 0), "max_n is 0, expected a whole number of at least 1"),
        "no reference": (([["a"], ["b"]], [["a"], []]), "prediction 1 has no reference"),
        "a text as prediction": ((["a b"], [["a"]]), "prediction 0 is 'a b', expected a list of words: split a text"),
        "a text as reference": (([["a"]], ["a b"]), "a reference of prediction 0 is 'a b'"),
        "a text among references": (([["a"]], [[["a"], "a b"]]), "a reference of prediction 0 is 'a b'"),
        "a text as predictions": (("a", ["a"]), "prediction 0 is 'a', expected a list of words"),
        "a text as references": (([["a"]], "a"), "a reference of prediction 0 is 'a', expected a list of words"),
        "ids": (([[1, 2]], [["a"]]), r"prediction 0 is \[1, 2\], expected a list of words: .* decode ids"),
        "nothing": (([["a"]], [None]), "a reference of prediction 0 is None, expected a list of words"),
    }.values(),
)  # fmt: skip
def test_bad_input_is_named(arguments, message):
    with pytest.raises(UserError, match=message):
        corpus_bleu(*arguments)


def test_bleu_of_a_text_is_refused():
    with pytest.raises(UserError, match="prediction 0 is 'the cat'"):
        bleu("the cat", ["the", "cat"])
