"""Our numbers are those of nltk and rouge-score, where those define them."""

from __future__ import annotations

import tracemalloc
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rapidfuzz.distance import Levenshtein
from rouge_score.rouge_scorer import RougeScorer

from evals_app.assertions import AssertionContext, run_assertion

SMOOTHING = SmoothingFunction().method2
SCORER = RougeScorer(["rouge1"])
SENTENCES = st.lists(
    st.sampled_from(["the", "cat", "Sat", "on", "a", "mat,", "dog", "2"]), min_size=1, max_size=14
).map(" ".join)


def score(type_, reference, output):
    return run_assertion({"type": type_, "value": reference}, AssertionContext(output)).score


@given(SENTENCES, SENTENCES)
def test_bleu_is_nltks_method2(reference, output):
    one, other = reference.lower().split(), output.lower().split()
    if one == other:
        assert score("bleu", reference, output) == 1.0
    else:
        expected = sentence_bleu([one], other, smoothing_function=SMOOTHING)
        assert score("bleu", reference, output) == pytest.approx(expected, abs=1e-12)


@given(SENTENCES, SENTENCES | st.text(alphabet="ab_-.,' \n", max_size=20))
def test_rouge_is_that_of_rouge_score(reference, output):
    expected = SCORER.score(reference, output)["rouge1"].fmeasure
    assert score("rouge-n", reference, output) == pytest.approx(expected, abs=1e-12)


@given(st.text(max_size=30))
def test_identical_texts_score_one(text):
    for type_ in ("bleu", "rouge-n"):
        result = run_assertion({"type": type_, "value": text}, AssertionContext(text))
        assert result.error or result.score == 1.0


def test_bleu_ignores_case_and_white_space():
    assert score("bleu", "The  Cat\nsat", "the cat SAT") == 1.0


def test_japanese_that_differs_a_little_scores_a_little_less():
    assert 0.8 < score("rouge-n", "吾輩は猫である", "吾輩は犬である") < 1.0


@given(st.text(alphabet="abc", max_size=15), st.text(alphabet="abc", max_size=15), st.integers(0, 10))
def test_distance_decides(reference, output, threshold):
    config = {"type": "levenshtein", "value": reference, "threshold": threshold}
    result = run_assertion(config, AssertionContext(output))
    distance = Levenshtein.distance(reference, output)
    assert result.measured == distance
    assert result.passed is (distance <= threshold)


@pytest.mark.parametrize(("edits", "passed"), [(0, True), (5, True), (6, False)])
def test_distance_of_long_texts_is_exact_up_to_the_threshold(edits, passed):
    reference = "abcdefghij" * 500
    output = "X" * edits + reference[edits:]
    result = run_assertion({"type": "levenshtein", "value": reference}, AssertionContext(output))
    assert result.passed is passed
    assert result.measured == (edits if passed else None)


@pytest.mark.parametrize("type_", ["bleu", "rouge-n"])
@pytest.mark.parametrize("text", ["a b " * 1_000_000, "日本" * 1_000_000])
def test_huge_output_is_compared_within_its_limits(type_, text):
    config = {"type": type_, "value": "a b c 日 本"}
    run_assertion(config, AssertionContext("a"))  # imports are no part of it
    tracemalloc.start()
    try:
        run_assertion(config, AssertionContext(text))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000_000


@pytest.mark.parametrize("type_", ["bleu", "rouge-n"])
@given(
    st.lists(st.sampled_from(["a", "b", "Σ", "日本", "c d"]), max_size=12),
    st.lists(st.sampled_from(["a", "b", "Σ", "日", "c d"]), min_size=1, max_size=12),
)
def test_cutting_an_output_into_pieces_changes_no_score(type_, output, reference):
    config, context = {"type": type_, "value": " ".join(reference)}, AssertionContext(" ".join(output))
    whole = run_assertion(config, context)
    for length in (0, 1, 3):
        with mock.patch("evals_app.assertions.types.similarity._PIECE", length):
            assert run_assertion(config, context) == whole
