"""A domain that there is not."""

from methods.method import method


@method("wrong_domain", domain="bytes", family="gradient", access="read", source="none")
def wrong_domain(task, *, generator):
    """Never asked."""
