"""The v1 scores: published values, a naive replica, laws, and examples worked out by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness import scores
from tests.naive import scores as naive

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "published_scores.json").read_text(encoding="utf-8"))

FAST = {
    "F": scores.pearson,
    "F_log": scores.log_pearson,
    "spearman": scores.spearman,
    "S": lambda claim, effect: scores.sufficiency_v1(claim, effect, seed=0),
    "M": scores.minimality_v1,
    "precision_at_3": scores.precision_at_k,
}
REPLICAS = {
    "F": naive.pearson,
    "F_log": naive.log_pearson,
    "spearman": naive.spearman,
    "M": naive.minimality,
    "precision_at_3": naive.precision_at_3,
}


def vector(values):
    """The values as the scores take them."""
    return np.array(values, dtype=np.float64)


def same(expected, actual):
    """Equal to nine decimals, or undefined both."""
    return pytest.approx(expected, abs=1e-9, nan_ok=True) == actual


def columns(largest, low=1, high=12):
    """Pairs of a claim and an effect of one length, of few distinct whole numbers: ties and zeros are common."""
    number = st.integers(0, largest).map(float)
    lengths = st.integers(low, high)
    return lengths.flatmap(lambda n_causes: st.tuples(*[st.lists(number, min_size=n_causes, max_size=n_causes)] * 2))


ANY_COLUMNS = st.one_of(columns(1), columns(3), columns(255))
RANKED_COLUMNS = ANY_COLUMNS.filter(lambda both: not naive.all_equal(both[1]))


def permuted(draw_from, values):
    """The values in the order of a permutation of their indices."""
    return [values[index] for index in draw_from]


# --- published values and the replica -------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["F", "spearman", "precision_at_3", "S", "M"])
@pytest.mark.parametrize("record", PUBLISHED, ids=lambda each: f"{each['method']}-{each['game']}-{each['regime']}")
def test_published_scores_are_reproduced(record, score):
    """Every published score comes out to nine decimals, and is undefined where it was published as undefined."""
    expected = math.nan if record[score] is None else record[score]
    assert same(expected, FAST[score](vector(record["claim"]), vector(record["effect"])))


def test_published_records_hold_undefined_scores():
    """The published records have both kinds of scores: M is undefined for three claims of zeros."""
    assert ["guided_backprop", "extremal_perturbation", "integrated_gradients"] == [
        record["method"] for record in PUBLISHED if record["M"] is None
    ]


@pytest.mark.parametrize("score", REPLICAS)
@given(both=ANY_COLUMNS, claim_scale=st.sampled_from([1.0, 1 / 3, 1e-300, 1e-9, 1e12, 1e300]))
def test_scores_equal_their_replica(score, both, claim_scale):
    """Each score equals its naive replica on ties, zeros, constants, and claims of any magnitude."""
    claim, effect = [value * claim_scale for value in both[0]], both[1]
    assert same(REPLICAS[score](claim, effect), FAST[score](vector(claim), vector(effect)))


@given(
    both=ANY_COLUMNS,
    claim_scale=st.sampled_from([1.0, 1 / 3, 1e-100, 1e100]),
    effect_scale=st.sampled_from([1.0, 1 / 7, 1e-9, 1e9]),
    seed=st.integers(0, 30),
)
def test_sufficiency_equals_its_replica(both, claim_scale, effect_scale, seed):
    """S equals its naive replica for any seed, wherever rounding does not decide on which side of the tolerance."""
    claim, effect = [value * claim_scale for value in both[0]], [value * effect_scale for value in both[1]]
    assume(naive.sufficiency_is_clear(claim, effect, seed))
    expected = naive.sufficiency(claim, effect, seed)
    assert same(expected, scores.sufficiency_v1(vector(claim), vector(effect), seed=seed))


@given(both=columns(255, low=2), shift=st.sampled_from([0, -100]), scale=st.sampled_from([1.0, 1e-12, 1e12]))
def test_areas_equal_their_replica(both, shift, scale):
    """Both areas equal their naive replica, also where y is negative, and for curves of any length."""
    curves = [[(y + shift) * scale for y in curve] for curve in both]
    expected, actual = naive.areas(*curves), scores.curve_aucs(*(vector(curve) for curve in curves))
    assert same(expected[0], actual[0])
    assert same(expected[1], actual[1])


# --- laws -----------------------------------------------------------------------------------------------------------


@given(effect=st.lists(st.integers(0, 255).map(float), min_size=4, max_size=20))
def test_the_oracle_is_perfect_against_itself(effect):
    """The true effects as a claim have 1 in every score, if the calibration causes differ at all."""
    assume(not naive.all_equal(effect[0::2]))
    truth = vector(effect)
    expected = {"F": 1.0, "F_log": 1.0, "spearman": 1.0, "S": 1.0, "M": 1.0, "precision_at_3": 1.0}
    assert {name: pytest.approx(value, abs=1e-9) for name, value in expected.items()} == {
        name: score(truth, truth) for name, score in FAST.items()
    }


def test_the_oracle_is_not_sufficient_where_calibration_sees_nothing():
    """Under v1 even the true effects have S = 0 if all calibration causes are alike."""
    # Calibration [0, 0] gives the line 0; the held-out 5 and 7 are further off than max(0.5, 0.7).
    truth = vector([0, 5, 0, 7])
    assert 0.0 == scores.sufficiency_v1(truth, truth, seed=0)


@given(both=ANY_COLUMNS, data=st.data())
def test_permuting_causes_changes_no_correlation(both, data):
    """F, its logarithmic sister, Spearman and M do not depend on the order of the causes."""
    order = data.draw(st.permutations(range(len(both[0]))))
    claim, effect = (vector(permuted(order, column)) for column in both)
    for name in ("F", "F_log", "spearman", "M"):
        assert same(FAST[name](vector(both[0]), vector(both[1])), FAST[name](claim, effect)), name


@given(both=RANKED_COLUMNS, scale=st.sampled_from([1e-6, 0.3, 7.0, 1e6]), shift=st.integers(0, 1000))
def test_faithfulness_ignores_scale_and_offset(both, scale, shift):
    """F is the same for a claim in other units or with an offset, and of the opposite sign for the reversed claim."""
    claim, effect = vector(both[0]), vector(both[1])
    expected = scores.pearson(claim, effect)
    assert same(expected, scores.pearson(scale * (claim + shift), effect))
    assert same(expected, scores.pearson(claim, scale * (effect + shift)))
    assert same(-expected, scores.pearson(claim.max() - claim, effect))


@given(both=RANKED_COLUMNS)
def test_rank_correlation_sees_the_order_only(both):
    """Spearman is the same after a transformation that keeps the order; F of such a claim is not."""
    claim, effect = vector(both[0]), vector(both[1])
    assert same(scores.spearman(claim, effect), scores.spearman(np.expm1(claim / 8), effect**3))


# Near the smallest and the largest number there is, and where squares vanish or overflow.
@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-9, 1e9, 1e170, 2e307])
@pytest.mark.parametrize("score", FAST)
def test_the_size_of_a_claim_does_not_matter(score, size):
    """Every score of a claim in other units is the score of the claim, however small or large its numbers become."""
    claim, effect = vector([0, 1, 4, 2, 2, 7]), vector([0, 3, 9, 5, 0, 16])
    assert same(FAST[score](claim, effect), FAST[score](claim * size, effect))


@given(both=columns(255, low=4), seed=st.integers(0, 40))
def test_the_seed_rotates_the_calibration_causes(both, seed):
    """S with seed s is S with seed 0 of the columns rotated by s; a whole turn changes nothing."""
    claim, effect = vector(both[0]), vector(both[1])
    rotated = scores.sufficiency_v1(np.roll(claim, -seed), np.roll(effect, -seed), seed=0)
    assert rotated == scores.sufficiency_v1(claim, effect, seed=seed)
    assert rotated == scores.sufficiency_v1(claim, effect, seed=seed + len(claim))


def test_the_seed_swaps_calibration_and_held_out():
    """With an even number of causes, seed 1 calibrates on those that seed 0 holds out."""
    # Claim = effect on the 1st and 3rd, nothing claimed of the 2nd and 4th.
    claim, effect = vector([1, 0, 2, 0]), vector([1, 8, 2, 9])
    # Seed 0: the line is d = a; 0 is predicted for 8 and 9, off by more than 0.9.
    assert 0.0 == scores.sufficiency_v1(claim, effect, seed=0)
    # Seed 1: constant claims, so 8.5 is predicted for 2 and 1: off by more than 0.5.
    assert 0.0 == scores.sufficiency_v1(claim, effect, seed=1)
    # With 8 and 9 as effects of the 1st and 3rd, they are predicted exactly by seed 1's constant 8.5, within 0.9.
    assert 1.0 == scores.sufficiency_v1(claim, vector([8, 8, 9, 9]), seed=1)
    # By seed 0 the line is d = 7 + a: 7 is predicted for 8 and 9, and neither is within 0.9.
    assert 0.0 == scores.sufficiency_v1(claim, vector([8, 8, 9, 9]), seed=0)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1])
def test_a_vanished_claim_has_no_faithfulness_and_no_minimality(constant):
    """A claim that is the same for all causes has F, F_log and Spearman 0, and M is undefined."""
    claim, effect = np.full(7, constant), vector([0, 3, 9, 5, 0, 16, 1])
    expected = {"F": 0.0, "F_log": 0.0, "spearman": 0.0, "M": pytest.approx(math.nan, nan_ok=True)}
    assert expected == {name: FAST[name](claim, effect) for name in expected}


@pytest.mark.parametrize("constant", [0.0, 12.0])
@pytest.mark.parametrize("score", ["F", "F_log", "spearman"])
@pytest.mark.parametrize("claim", [[1, 2, 3, 4], [5, 5, 5, 5]], ids=["claim", "vanished"])
def test_a_degenerate_task_has_no_correlations(claim, score, constant):
    """Where all effects are equal there is nothing to rank: undefined, not 0, also for a vanished claim."""
    assert same(math.nan, FAST[score](vector(claim), np.full(4, constant)))


def test_without_movers_there_is_no_minimality():
    """M is undefined if no cause has an effect."""
    assert same(math.nan, scores.minimality_v1(vector([1, 2, 0]), vector([0, 0, 0])))


def test_three_causes_are_too_few_for_sufficiency():
    """S is undefined for three causes, and defined for four."""
    assert same(math.nan, scores.sufficiency_v1(vector([1, 2, 3]), vector([1, 2, 3]), seed=0))
    # Calibration 1st and 3rd: the line is d = a, which meets the other two.
    assert 1.0 == scores.sufficiency_v1(vector([1, 2, 3, 4]), vector([1, 2, 3, 4]), seed=0)


# --- worked out by hand ---------------------------------------------------------------------------------------------


def test_faithfulness_by_hand():
    """F is Pearson's correlation of the raw numbers."""
    # Deviations (-1, 0, 1) and (-2, -1, 3): 5 / sqrt(2 * 14).
    assert same(5 / math.sqrt(28), scores.pearson(vector([1, 2, 3]), vector([0, 1, 5])))


def test_a_heavy_cause_weighs_less_in_logarithms():
    """F_log is the correlation of log(1 + x / mean x)."""
    # Means 1 and 2: log1p gives (0, ln 2, ln 3) and (0, 0, ln 4); the third is 3/3 of the effects.
    left, right = (0.0, math.log(2), math.log(3)), (0.0, 0.0, math.log(4))
    expected = naive.pearson(left, right)
    assert same(expected, scores.log_pearson(vector([0, 1, 2]), vector([0, 0, 6])))


def test_equal_values_share_their_rank():
    """Spearman takes the average rank of equal values."""
    # Ranks (1.5, 1.5, 3) and (1, 2, 3): deviations (-.5, -.5, 1) and (-1, 0, 1): 1.5 / sqrt(1.5 * 2).
    assert same(1.5 / math.sqrt(3), scores.spearman(vector([4, 4, 9]), vector([0, 1, 2])))


def test_ties_go_to_the_lower_index():
    """Of equal claims, and of equal effects, the first count as the largest."""
    # Claims: 1st, 2nd, 3rd. Effects: 6th, then 2nd and 3rd of the four fives. Two in common.
    assert same(2 / 3, scores.precision_at_k(vector([1, 1, 1, 1, 1, 1]), vector([0, 5, 5, 5, 5, 9])))
    assert [1, 0, 2, 3] == scores.descending_order(vector([1, 2, 1, 0])).tolist()


def test_precision_counts_against_k():
    """With another k the overlap is counted among k, also where there are fewer causes."""
    assert 1.0 == scores.precision_at_k(vector([1, 3, 2]), vector([0, 9, 1]), k=1)
    # The two causes there are agree; a third is missing.
    assert same(2 / 3, scores.precision_at_k(vector([1, 2]), vector([1, 2])))


def test_the_tolerance_is_half_a_unit_for_small_effects():
    """S forgives an error of 0.5, and no more, where the effects spread over less than 5."""
    # Nothing is claimed: the calibration mean 1 is predicted. 1.5 is off by 0.5, 1.75 by more.
    assert 0.5 == scores.sufficiency_v1(vector([0, 0, 0, 0]), vector([1, 1.5, 1, 1.75]), seed=0)


def test_the_tolerance_is_a_tenth_of_the_spread_for_large_effects():
    """S forgives a tenth of the held-out effects' range, which always includes 0."""
    # 100 is predicted; the range is 0..110 though no held-out effect is 0, so 90 and 110 are within 11 (and not 88).
    assert 1.0 == scores.sufficiency_v1(vector([0, 0, 0, 0]), vector([100, 90, 100, 110]), seed=0)
    assert 0.5 == scores.sufficiency_v1(vector([0, 0, 0, 0]), vector([100, 88, 100, 110]), seed=0)


def test_sufficiency_fits_slope_and_intercept():
    """S predicts with the least-squares line through the calibration causes."""
    # Calibration a = (0, 1, 2), d = (0, 6, 6): slope 3, intercept 1. Held out a = (1, 3, 0): 4, 10, 1 are predicted;
    # the effects 4, 10.9 and 2.5 spread over 10.9, so errors up to 1.09 are forgiven: the last, 1.5, is not.
    claim, effect = vector([0, 1, 1, 3, 2, 0]), vector([0, 4, 6, 10.9, 6, 2.5])
    assert same(2 / 3, scores.sufficiency_v1(claim, effect, seed=0))


def test_minimality_by_hand():
    """M is movers over named causes, never above 1."""
    # Two movers, four named.
    assert 0.5 == scores.minimality_v1(vector([4, 3, 2, 1, 0]), vector([5, 0, 0, 1, 0]))
    # Four movers, one named: no more than 1.
    assert 1.0 == scores.minimality_v1(vector([4, 0, 0, 0, 0]), vector([5, 1, 1, 1, 0]))


def test_a_millionth_of_the_largest_claim_names_nothing():
    """A cause is named if its claim is above a millionth of the largest one; exactly a millionth is not enough."""
    assert 2 == scores.count_named(vector([1.0, 1e-6, 1.01e-6, 0.0]))
    assert 0 == scores.count_named(vector([0.0, 0.0]))


def test_any_effect_makes_a_mover():
    """A mover is a cause with an effect, however small."""
    assert 2 == scores.count_movers(vector([0.0, 1e-300, 255.0]))


def test_what_is_constant():
    """Values are constant if none differs, and if there are none; a difference in the last bit is a difference."""
    assert [True, True, True, False] == [
        scores.is_constant(vector(values)) for values in ([], [3], [0.1, 0.1], [1.0, 1.0 + 2**-52])
    ]


def test_areas_by_hand():
    """Both areas are trapezoids over steps of equal width, with y scaled by the range over both curves."""
    # Range 2..10. Deletion (1, 1/4, 0): (1/2 + 1/4 + 0) / 2. Insertion (0, 3/4, 1): (0 + 3/4 + 1/2) / 2.
    assert (0.375, 0.625) == scores.curve_aucs(vector([10, 4, 2]), vector([2, 8, 10]))


def test_a_step_at_once_and_a_step_at_last():
    """The best curves fall, or rise, with the first of n causes: areas 1/(2n) and 1 - 1/(2n)."""
    assert (0.125, 0.875) == scores.curve_aucs(vector([9, 0, 0, 0, 0]), vector([0, 9, 9, 9, 9]))


def test_curves_that_never_change_have_no_area():
    """If y is the same at all steps of both curves, both areas are undefined."""
    deletion, insertion = scores.curve_aucs(vector([113, 113, 113]), vector([113, 113, 113]))
    assert same(math.nan, deletion)
    assert same(math.nan, insertion)


def test_a_flat_curve_has_an_area_beside_one_that_moves():
    """The range is over both curves: a curve that stands still beside one that moves has an area."""
    assert (1.0, 0.5) == scores.curve_aucs(vector([4, 4]), vector([0, 4]))


# --- declarations ---------------------------------------------------------------------------------------------------


def test_only_a_deletion_area_is_better_low():
    """All scores are better high but the deletion area."""
    assert ["deletion_auc"] == [name for name, info in scores.SCORES.items() if info.best == "low"]


def test_every_score_says_what_it_is():
    """Each score declares title, definition, version and source, its range, and its column under its own name."""
    incomplete = [
        name
        for name, info in scores.SCORES.items()
        if name != info.column or not all((info.title, info.definition, info.version, info.source))
    ]
    assert [] == incomplete
    correlations = {"F", "F_log", "F_partial", "spearman"}
    shares = {"S", "M", "precision_at_3", "deletion_auc", "insertion_auc"}
    assert dict.fromkeys(correlations, (-1, 1)) | dict.fromkeys(shares, (0, 1)) == {
        name: info.range for name, info in scores.SCORES.items()
    }


# --- beyond size ----------------------------------------------------------------------------------------------------


def three_columns(largest):
    """A claim, an effect and a size, of few distinct whole numbers."""
    number = st.integers(0, largest).map(float)
    lengths = st.integers(1, 10)
    return lengths.flatmap(lambda n_causes: st.tuples(*[st.lists(number, min_size=n_causes, max_size=n_causes)] * 3))


@given(st.one_of(three_columns(2), three_columns(9), three_columns(255)))
def test_partial_faithfulness_is_the_replica(all_three):
    """F_partial is the naive computation in exact fractions, undefined where that is."""
    claim, effect, size = all_three
    assert same(naive.partial_pearson(claim, effect, size), scores.partial_pearson(*map(vector, all_three)))


@given(three_columns(255), st.integers(1, 9), st.integers(-9, 9))
def test_size_itself_is_worth_nothing(all_three, scale, offset):
    """A claim that follows from the size alone has F_partial 0, whatever its F."""
    _, effect, size = all_three
    expected = naive.partial_pearson(size, effect, size)
    assert same(expected, scores.partial_pearson(scale * vector(size) + offset, vector(effect), vector(size)))
    assert math.isnan(expected) or expected == 0.0


@given(three_columns(255), st.integers(-9, 9))
def test_what_size_explains_does_not_count(all_three, share):
    """Adding any multiple of the size to a claim leaves F_partial as it is."""
    claim, effect, size = map(vector, all_three)
    assume(not naive.all_equal(naive._residuals(claim.tolist(), size.tolist())))
    assert same(scores.partial_pearson(claim, effect, size), scores.partial_pearson(claim + share * size, effect, size))


def test_partial_faithfulness_of_a_size_that_says_nothing():
    """Where all causes move the input alike, F_partial is F."""
    claim, effect = vector([1, 5, 2, 8]), vector([2, 4, 3, 9])
    assert same(scores.pearson(claim, effect), scores.partial_pearson(claim, effect, vector([3, 3, 3, 3])))
