"""A family that there is not."""

from methods.method import method


@method("wrong_family", domain="ram", family="magic", access="read", source="none")
def wrong_family(task, *, generator):
    """Never asked."""
