"""Tests, one folder per package; `tests.toy` is the machine they share, `tests.naive` the second implementations."""
