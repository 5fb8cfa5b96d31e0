"""The judge: evaluation, scores, runs, statistics, leaderboard and command line."""
