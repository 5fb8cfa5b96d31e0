"""The v2 scores of a claim: a naive replica, laws, and examples worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness import scores, scores_v2
from tests.naive import scores as naive_v1
from tests.naive import scores_v2 as naive

FAST = {
    "S": scores_v2.sufficiency_v2,
    "S_log": scores_v2.log_sufficiency,
    "M": scores_v2.minimality_v2,
    "precision_at_3": scores_v2.precision_at_k_v2,
}
REPLICAS = {"S": naive.sufficiency, "S_log": naive.log_sufficiency, "M": naive.minimality}
SHARED = {"F": scores.pearson, "F_log": scores.log_pearson, "spearman": scores.spearman}
# What follows a heavy tail, as measured effects do; half the causes do nothing.
HEAVY_TAIL = np.concatenate([np.exp(np.random.default_rng(0).normal(0, 1.5, 20)), np.zeros(20)])


def vector(values):
    """The values as the scores take them."""
    return np.array(values, dtype=np.float64)


def same(expected, actual):
    """Equal to nine decimals, or undefined both."""
    return pytest.approx(expected, abs=1e-9, nan_ok=True) == actual


def columns(largest, low=1, high=12, count=2):
    """A claim and an effect (and more) of one length, of few distinct whole numbers: ties and zeros are common."""
    number = st.integers(0, largest).map(float)
    lengths = st.integers(low, high)
    return lengths.flatmap(
        lambda n_causes: st.tuples(*[st.lists(number, min_size=n_causes, max_size=n_causes)] * count)
    )


ANY_COLUMNS = st.one_of(columns(1), columns(3), columns(255))
# From the smallest to the largest numbers, a dominating one among them: squares vanish or overflow.
MAGNITUDES = st.sampled_from([0.0, 1e-300, 1e-200, 1e-9, 1.0, 3.0, 1e9, 1e200, 1e300])
SCALES = st.sampled_from([1.0, 1 / 3, 1e-300, 1e-9, 1e12, 1e300])


# --- the replica ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", REPLICAS)
@given(both=ANY_COLUMNS, scale=SCALES)
def test_scores_equal_their_replica_in_any_unit(score, both, scale):
    """Each score of a claim in any unit is what its naive replica gives for whole numbers."""
    claim, effect = both
    assert same(REPLICAS[score](claim, effect), FAST[score](vector(claim) * scale, vector(effect)))


@given(claim=st.lists(MAGNITUDES, min_size=4, max_size=4), effect=columns(255, low=4, high=4, count=1))
def test_one_dominating_claim_loses_no_digits(claim, effect):
    """S is exact where one claim exceeds the others by hundreds of orders of magnitude."""
    assert same(naive.sufficiency(claim, effect[0]), scores_v2.sufficiency_v2(vector(claim), vector(effect[0])))


@given(both=st.one_of(columns(1, high=5), columns(3, high=5)), k=st.integers(1, 6))
def test_precision_is_the_mean_over_all_orders(both, k):
    """precision@k is the mean overlap over every way to break the ties of claim and effect."""
    expected = naive.precision_at_k(*both, k)
    assert same(expected, scores_v2.precision_at_k_v2(vector(both[0]), vector(both[1]), k=k))


@given(all_three=st.one_of(columns(1, count=3), columns(255, count=3)))
def test_faithfulness_across_is_its_replica(all_three):
    """F_cross is F of the causes that are left, undefined where nothing is."""
    claim, effect, drawn = all_three
    own = [value % 3 == 1 for value in drawn]
    expected = naive.cross_pearson(claim, effect, own)
    assert same(expected, scores_v2.cross_pearson(vector(claim), vector(effect), np.array(own)))


# --- laws -----------------------------------------------------------------------------------------------------------


@given(effect=columns(255, low=3, count=1), scale=SCALES)
def test_the_oracle_is_perfect(effect, scale):
    """The true effects in any unit have F = S = S_log = M = 1, wherever those are defined."""
    truth = vector(effect[0])
    assume(not naive_v1.all_equal(effect[0]) and scores.count_movers(truth) > 1)
    names = ("S", "S_log", "M")
    assert dict.fromkeys(names, pytest.approx(1.0, abs=1e-9)) == {
        name: FAST[name](scale * truth, truth) for name in names
    }
    assert same(1.0, scores.pearson(scale * truth, truth))


def test_the_oracle_is_precise_but_for_ties():
    """The true effects have precision 1 where no tie is at the third place."""
    truth = vector([9, 9, 5, 4, 0])
    assert same(1.0, scores_v2.precision_at_k_v2(truth, truth))
    # Two equal causes for the last place: each side takes either, so they meet half the time.
    tied = vector([9, 8, 4, 4, 0])
    assert same((2 + 0.5) / 3, scores_v2.precision_at_k_v2(tied, tied))


@pytest.mark.parametrize("constant", [0.0, 0.1, 7.0, 1e300])
@pytest.mark.parametrize("score", ["S", "S_log", "M"])
def test_a_vanished_claim_has_nothing(score, constant):
    """A constant claim has 0 by definition, though the mean of the others would predict equal effects well."""
    assert 0.0 == FAST[score](np.full(6, constant), vector([5, 5, 5, 5, 5, 4]))


@given(both=ANY_COLUMNS.filter(lambda both: len(both[0]) > 1), data=st.data())
def test_causes_of_equal_effect_are_alike(both, data):
    """Swapping the claims of two causes of the same effect changes no score."""
    claim, effect = vector(both[0]), vector(both[1])
    one, other = data.draw(st.permutations(range(len(claim))))[:2]
    effect[other] = effect[one]
    swapped = claim.copy()
    swapped[[one, other]] = claim[[other, one]]
    for name, score in (FAST | SHARED).items():
        assert same(score(claim, effect), score(swapped, effect)), name


@given(both=ANY_COLUMNS, data=st.data())
def test_the_order_of_causes_does_not_matter(both, data):
    """No v2 score depends on the order in which the causes are listed."""
    order = data.draw(st.permutations(range(len(both[0]))))
    claim, effect = vector(both[0]), vector(both[1])
    for name, score in FAST.items():
        assert same(score(claim, effect), score(claim[order], effect[order])), name


@given(both=ANY_COLUMNS, claim_scale=SCALES, effect_scale=st.sampled_from([1e-9, 1 / 7, 3.0, 1e9]))
def test_units_do_not_matter(both, claim_scale, effect_scale):
    """Claim and effect may be in any unit, also near the smallest and the largest number there is."""
    claim, effect = vector(both[0]), vector(both[1])
    for name, score in FAST.items():
        assert same(score(claim, effect), score(claim_scale * claim, effect_scale * effect)), name


def test_noise_lowers_the_scores():
    """As noise grows, F_log, S_log and M fall in the mean over 200 seeded draws, each time by more than chance."""
    noises = (0.0, 0.1, 0.3, 1.0, 3.0)
    generator = np.random.default_rng(1)
    typical = HEAVY_TAIL.mean()
    for name, score in {"F_log": scores.log_pearson, "S_log": FAST["S_log"], "M": FAST["M"]}.items():
        values = np.array(
            [
                [
                    score(np.abs(HEAVY_TAIL + noise * typical * generator.normal(size=40)), HEAVY_TAIL)
                    for _ in range(200)
                ]
                for noise in noises
            ]
        )
        means, errors = values.mean(axis=1), values.std(axis=1) / math.sqrt(200)
        assert (means[:-1] - means[1:] > 3 * np.hypot(errors[:-1], errors[1:])).all(), (name, means)


# --- worked out by hand ---------------------------------------------------------------------------------------------


def test_sufficiency_by_hand():
    """Each cause is predicted with the slope of the two others."""
    # a = (1, 1, 2), d = (2, 4, 4). Slopes without each: (4 + 8) / 5, (2 + 8) / 5, (2 + 4) / 2; predicted 2.4, 2, 6.
    # Errors 0.4, 2, 2 over 4 + 16 + 16.
    assert same(1 - (0.16 + 4 + 4) / 36, scores_v2.sufficiency_v2(vector([1, 1, 2]), vector([2, 4, 4])))


def test_sufficiency_has_no_offset():
    """Three times the effects have 1; the effects and a constant have less."""
    effect = vector([0, 1, 2])
    assert same(1.0, scores_v2.sufficiency_v2(3 * effect, effect))
    # a = (1, 2, 3): slopes 8/13, 6/10 and 2/5, so 8/13, 1.2 and 1.2 are predicted; the effects squared make 5.
    expected = 1 - ((8 / 13) ** 2 + 0.2**2 + 0.8**2) / 5
    assert same(expected, scores_v2.sufficiency_v2(effect + 1, effect))


def test_naming_a_dead_byte_is_saying_that_nothing_changes():
    """A claim of a single cause that does nothing has S = 0, and so has one of a single mover: no other tells of it."""
    effect = vector([0, 3, 9, 5])
    assert [0.0, 0.0] == [scores_v2.sufficiency_v2(one_hot, effect) for one_hot in (vector([7, 0, 0, 0]), np.eye(4)[2])]


def test_sufficiency_is_no_worse_than_minus_one():
    """A claim that predicts large effects of causes without any is worse than nothing, down to -1."""
    # The other mover's slope is 8, so 80 is predicted for the second: 1 - 72^2 / 128 without the floor.
    assert -1.0 == scores_v2.sufficiency_v2(vector([1, 10, 0]), vector([8, 8, 0]))
    # 16 is predicted of a dead cause by slopes of about 8; a bit above the floor.
    claim, effect = vector([1, 1, 0.6]), vector([8, 8, 0])
    expected = naive.sufficiency(claim.tolist(), effect.tolist())
    assert -1 < expected < 1
    assert same(expected, scores_v2.sufficiency_v2(claim, effect))


@pytest.mark.parametrize("score", ["S", "S_log"])
@pytest.mark.parametrize("claim", [[1, 2, 3], [5, 5, 5]], ids=["claim", "vanished"])
def test_one_mover_is_too_few(score, claim):
    """With one mover nothing tells its size: S is undefined for everyone; with two it is defined."""
    assert same(math.nan, FAST[score](vector(claim), vector([0, 9, 0])))
    assert not math.isnan(FAST[score](vector(claim), vector([0, 9, 1])))


@pytest.mark.parametrize(("m", "k"), [(1, 0), (1, 3), (4, 1), (5, 20)])
def test_wrong_causes_beside_the_true_ones(m, k):
    """The m true causes and k wrong ones of equal weight have M = m / (m + k)."""
    effect = vector([*range(50, 50 + m), *[0] * 30])
    claim = vector([*[2] * (m + k), *[0] * (30 - k)])
    assert same(m / (m + k), scores_v2.minimality_v2(claim, effect))


def test_missing_causes_cost_as_much_as_wrong_ones():
    """One of four true causes has a quarter, whatever is claimed of it; other causes alone have nothing."""
    effect = vector([9, 9, 9, 9, 0])
    assert 0.25 == scores_v2.minimality_v2(vector([0, 3, 0, 0, 0]), effect)
    assert 0.0 == scores_v2.minimality_v2(vector([0, 0, 0, 0, 3]), effect)


def test_a_twentieth_of_the_largest_counts():
    """Exactly a 20th of the largest value is in the set, on both sides and in any unit; less is not."""
    truth = vector([100, 5, 4, 0])
    for unit in (1.0, 1 / 3, 1e-300, 1e300):
        assert 1.0 == scores_v2.minimality_v2(unit * vector([20, 1, 0.9, 0]), truth / 7)


def test_nothing_to_find_has_no_minimality():
    """M is undefined if no cause has an effect, for a vanished claim too."""
    assert [True, True] == [math.isnan(scores_v2.minimality_v2(vector(a), np.zeros(2))) for a in ([1, 0], [1, 1])]


def test_precision_of_a_vanished_claim_is_chance():
    """Three of ten causes drawn blindly hold 3/10 of the three largest, however the effects tie."""
    for effect in (np.arange(10.0), np.array([9.0, *[1.0] * 9])):
        assert same(0.3, scores_v2.precision_at_k_v2(np.zeros(10), effect))


def test_the_own_byte_alone_has_vanished():
    """A claim of the own byte alone has F_cross 0, whatever F is; with all effects elsewhere equal, F_cross is NaN."""
    own = np.array([False, True, False, False])
    claim = vector([0, 8, 0, 0])
    assert 0.0 == scores_v2.cross_pearson(claim, vector([1, 100, 3, 0]), own)
    assert scores.pearson(claim, vector([1, 100, 3, 0])) > 0.99
    for effect in ([2, 100, 2, 2], [0, 100, 0, 0]):
        assert math.isnan(scores_v2.cross_pearson(vector([1, 8, 2, 3]), vector(effect), own))


# --- declarations ---------------------------------------------------------------------------------------------------


def test_every_score_says_what_it_is():
    """Each v2 score is best high and declares title, definition, version, source and range under its own column."""
    table = scores_v2.SCORES_V2
    assert [] == [
        name
        for name, info in table.items()
        if name != info.column
        or info.best != "high"
        or info.unanswered != 0.0
        or "v2" not in info.version
        or not all((info.title, info.definition, info.source))
    ]
    correlations = ("F", "F_log", "F_cross", "F_partial", "spearman", "S", "S_log")
    expected = dict.fromkeys(correlations, (-1, 1)) | dict.fromkeys(("M", "precision_at_3"), (0, 1))
    differences = {"deletion_diff": (-1, math.inf), "insertion_diff": (-math.inf, 1)}
    assert expected | differences == {name: info.range for name, info in table.items()}


def test_shared_scores_are_declared_once():
    """What both versions share is one declaration; what they compute differently is two."""
    both = scores.SCORES.keys() & scores_v2.SCORES_V2.keys()
    shared = {name for name in both if scores.SCORES[name] is scores_v2.SCORES_V2[name]}
    assert {"F", "F_log", "F_partial", "spearman"} == shared
    assert {"S", "M", "precision_at_3"} == both - shared
