"""Methods under names that belong to others."""

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}


@method("oracle", **SHARED)
def control(task, *, generator):
    """Named like a control."""
    return task.ram


@method("vanilla_gradient", **SHARED)
def builtin(task, *, generator):
    """Named like a method of ours."""
    return task.ram
