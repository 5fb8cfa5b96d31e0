"""`veritari methods check` finds out each way of breaking the contract, and no method gets to see an effect."""

import os
import signal
import time

import pytest

from games.catalog import game
from harness.check import ANSWERS, COUNTED, DRAWS, SAME, UNCHANGED, UNTOUCHED, check_method
from harness.pool import Limits
from harness.trial import Trial
from oracle.effects import measure
from oracle.protocol import protocol
from tests.harness.commands import finish, plugin, start, wait_for_end_of_group

pytestmark = pytest.mark.ale

LIMITS = Limits(workers=1, timeout_seconds=60.0, memory_gib=4.0)
LOADS = "loads and describes itself"
MACHINE = ("pong ram[54]", "pong changed_pixels")
NETWORK = ("pong network readout[13]", "pong network readout[51]")


def broken(spec):
    """What is not kept, with its reason, by task and requirement."""
    found = check_method(spec, Trial("ram-v1", "pong", seed=0), LIMITS)
    return {(each.requirement, each.task): each.detail for each in found.verdicts if not each.kept}


def says(requirement, detail, tasks=MACHINE):
    """One requirement that is broken on every task, for the same reason."""
    return {(requirement, task): detail for task in tasks}


TASK = "task: expected its {} as they were, got changed ones; work on a copy"
GENERATORS = "global generators: expected them untouched, got other states of {}; draw from `generator`"
FAULTS = {
    "changes_ram": (UNCHANGED, TASK.format("RAM and reference pool"), MACHINE),
    "changes_pool": (UNCHANGED, TASK.format("RAM and reference pool"), MACHINE),
    "changes_causes": (UNCHANGED, TASK.format("causes"), MACHINE),
    "changes_frames": (UNCHANGED, TASK.format("frames"), NETWORK),
    "changes_weights": (
        UNCHANGED,
        "network: expected its weights as they were, got others in head.weight; put them back",
        NETWORK,
    ),
    "hooks_read": (
        UNCHANGED,
        "read: expected no hooks left, got some on CountedRead; remove them in a finally",
        MACHINE,
    ),
    "hooks_everything": (
        UNCHANGED,
        "read: expected no hooks left, got some on all modules; remove them in a finally",
        MACHINE,
    ),
    "hooks_everything(kind='full_backward_pre_hook')": (
        UNCHANGED,
        "read: expected no hooks left, got some on all modules; remove them in a finally",
        MACHINE,
    ),
    "hooks_network": (
        UNCHANGED,
        "network: expected no hooks left, got some on head; remove them in a finally",
        NETWORK,
    ),
    "seeds_globals(which='torch')": (UNTOUCHED, GENERATORS.format("torch"), MACHINE),
    "seeds_globals(which='numpy.random')": (UNTOUCHED, GENERATORS.format("numpy.random"), MACHINE),
    "seeds_globals(which='random')": (UNTOUCHED, GENERATORS.format("random"), MACHINE),
    "asks_the_clock": (SAME, "two answers differ: draw from `generator` only", MACHINE),
    "asks_the_kernel": (SAME, "two answers differ: draw from `generator` only", MACHINE),
    "draws": (
        DRAWS,
        "another seed gives another answer: declare seeded=True, so that --seeds asks it with several",
        MACHINE,
    ),
    "measures_undeclared": (
        COUNTED,
        "rollouts: expected at most 0 per task, got one more; declare access='world' to use rollouts",
        MACHINE,
    ),
    "measures_too_much": (
        COUNTED,
        "rollouts: expected at most 4096 per task, got one more; ask for fewer",
        MACHINE[:1],
    ),
    "mistakes_its_domain": (
        ANSWERS,
        "attribution: expected shape (128,), got (18,); return one number each",
        MACHINE,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_as_what_it_is(name):
    """A method that breaks one requirement has that one broken on each task, with a reason, and no other."""
    assert says(*FAULTS[name]) == broken(plugin(f"cheating:{name}"))


@pytest.mark.parametrize(
    ("name", "other"),
    [("hesitates", "not_applicable (not in the mood)"), ("hesitates(fails=True)", "failed (ValueError: what?)")],
)
def test_one_answer_of_two_is_found_out(name, other):
    """A method that answers once and once has nothing to say, or fails, does not give the same answer twice."""
    # The second time, questions come in another order.
    content, position = f"one answer is {other}, the other ok", f"one answer is ok, the other {other}"
    assert {(SAME, MACHINE[0]): content, (SAME, MACHINE[1]): position} == broken(plugin(f"cheating:{name}"))


@pytest.mark.parametrize("name", ["declares_too_much", "smoothgrad"])
def test_a_method_that_says_it_draws_may(name):
    """Nothing is wrong with a declaration of `seeded`, whether the method draws or not."""
    assert {} == broken(plugin(f"cheating:{name}") if name == "declares_too_much" else name)


def test_a_wrong_shape_is_found_out():
    """One number too few is no answer."""
    expected = "attribution: expected shape (128,), got (127,); return one number each"
    assert says(ANSWERS, expected) == broken(plugin("answering:returns_wrong_shape"))


def test_a_machine_that_is_reached_round_the_counter_is_noticed():
    """Rollouts that were run and not counted are a broken budget; the first builds a machine, which runs one more."""
    found = broken(plugin("cheating:measures_uncounted"))
    assert set(says(COUNTED, "")) == set(found)
    first, second = (found[COUNTED, task].partition("but ")[2] for task in MACHINE)
    advice = "measure with task.rollout and access='world'"
    assert (f"the machine ran 2; {advice}", f"the machine ran 1; {advice}") == (first, second)


def test_a_machine_of_its_own_is_noticed():
    """Frames that were played outside of every rollout are a broken budget too: 90 of the prefix, 15 of the tail."""
    found = broken(plugin("cheating:replays"))
    expected = "but 105 frames were played outside of rollouts; measure with task.rollout and access='world'"
    assert set(says(COUNTED, "")) == set(found)
    assert {expected} == {"but " + detail.partition("but ")[2] for detail in found.values()}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wrong_family", "family: Input should be 'gradient', 'cam', 'perturbation', 'surrogate', 'counterfactual'"),
        ("wrong_domain", "domain: Input should be 'ram', 'cause' or 'pixels', got 'bytes'"),
        ("wrong_place", "domain: expected ram or cause for the machine, got pixels; it has none"),
    ],
)
def test_a_wrong_declaration_is_found_out(name, reason):
    """A family, a domain or a domain for a subject that there is not is told when the method loads."""
    [(where, detail)] = broken(plugin(f"{name}:{name}")).items()
    assert (LOADS, "") == where
    assert f"{name}.py: expected something that imports, got BadMethod: {name}: {reason}" in detail


@pytest.fixture(scope="module")
def effects():
    """The measured effects on Pong, one list per output."""
    return measure(protocol("ram-v1"), game("pong"), 0).effects


def peeks(effects, planted):
    """The specification of a method that looks for these effects."""
    # Only those that are not 0, since a label has an end.
    negated = [{int(cause): -int(row[cause]) for cause in row.nonzero()[0]} for row in effects]
    return plugin("peeking:peeks") + f"(negated={negated},planted={planted!r})"


def test_no_effect_is_within_reach(effects):
    """Neither what the task refers to, closures and globals included, nor the whole process holds the effects."""
    assert {} == broken(peeks(effects, ""))


@pytest.mark.parametrize("planted", ["attribute", "array", "closure", "bytes"])
def test_the_search_for_effects_finds_them(effects, planted):
    """The control: effects that are hidden in an attribute, an array, a closure or in bytes are found."""
    found = broken(peeks(effects, planted))
    assert {(ANSWERS, task) for task in MACHINE} == set(found)
    assert {"FoundError: the effects are in"} == {detail[:30] for detail in found.values()}


# --- interrupted ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_leaves_nothing(tmp_path, stop):
    """Ctrl-C or SIGTERM while a method is asked is one line and exits with 130; no process and no file is left."""
    arguments = ("methods", "check", plugin("hanging:ignores_signals"), "--subject", "machine")
    process = start(*arguments, TMPDIR=str(tmp_path))
    # Beside the folder of the questions there is that of the answers once the method is asked.
    while not (list(tmp_path.glob("*/machine.npz")) and list(tmp_path.glob("*/0.pid"))) and process.poll() is None:
        time.sleep(0.01)
    # A terminal sends Ctrl-C to all processes of the command.
    os.killpg(process.pid, stop) if stop == signal.SIGINT else process.send_signal(stop)
    finished = finish(process)
    assert (130, "", ["error: interrupted"]) == (finished.code, finished.out, finished.complaints)
    assert [] == list(tmp_path.iterdir())
    with pytest.raises(ProcessLookupError, match="No such process"):
        wait_for_end_of_group(process.pid)
