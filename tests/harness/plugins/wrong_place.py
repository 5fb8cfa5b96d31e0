"""A domain that the machine does not have."""

from methods.method import method


@method("wrong_place", domain="pixels", family="gradient", subjects=("machine",), access="read", source="none")
def wrong_place(task, *, generator):
    """Never asked."""
