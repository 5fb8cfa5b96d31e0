"""Score and lives evidence by hand: every run from the cartridge on, with nothing but the emulator."""

from oracle.emulator import Emulator


def ended(game, trace, address, value, n_frames):
    """Reward and lives after a byte was given a value at f* and so many frames were played; None leaves the byte."""
    machine = Emulator(game)
    for action in trace.actions[: trace.frame]:
        machine.act(action)
    if value is not None:
        machine.write_ram(address, value)
    reward = 0.0
    for action in trace.actions[trace.frame : trace.frame + n_frames]:
        reward += machine.act(action)
    return reward, machine.lives()


def counts(game, trace, address, present, values):
    """After how many runs the reward differs, and after how many the lives: two pokes of 8, then the do-values."""
    horizon = len(trace.actions) - trace.frame
    runs = [((present + 8) % 256, 2), ((present - 8) % 256, 2), *((value, horizon) for value in values)]
    reference = {n_frames: ended(game, trace, address, None, n_frames) for n_frames in (2, horizon)}
    n_score = n_lives = 0
    for value, n_frames in runs:
        reward, lives = ended(game, trace, address, value, n_frames)
        expected_reward, expected_lives = reference[n_frames]
        n_score += reward != expected_reward
        n_lives += lives != expected_lives
    return n_score, n_lives
