"""Methods that answer with something that is no attribution."""

import torch

from methods.method import method

SHARED = {"domain": "ram", "family": "gradient", "access": "read", "source": "none"}


@method("returns_wrong_shape", **SHARED)
def returns_wrong_shape(task, *, generator):
    """One number too few."""
    return torch.ones(127)


@method("returns_matrix", **SHARED)
def returns_matrix(task, *, generator):
    """The right count of numbers, in two dimensions."""
    return torch.ones(2, 64)


@method("returns_nan", **SHARED)
def returns_nan(task, *, generator):
    """One number that is none."""
    answer = torch.ones(128)
    answer[5] = torch.nan
    return answer


@method("returns_infinity", **SHARED)
def returns_infinity(task, *, generator):
    """Numbers beyond all others."""
    return torch.full((128,), -torch.inf)


@method("returns_list", **SHARED)
def returns_list(task, *, generator):
    """The right numbers in the wrong type."""
    return [0.0] * 128


@method("returns_array", **SHARED)
def returns_array(task, *, generator):
    """The right numbers, of numpy."""
    return task.ram.numpy()


@method("returns_nothing", **SHARED)
def returns_nothing(task, *, generator):
    """A forgotten return."""


@method("returns_complex", **SHARED)
def returns_complex(task, *, generator):
    """Numbers without an order."""
    return torch.ones(128, dtype=torch.complex64)


@method("returns_sparse", **SHARED)
def returns_sparse(task, *, generator):
    """A tensor that many operations do not take."""
    return torch.ones(128).to_sparse()


@method("returns_meta", **SHARED)
def returns_meta(task, *, generator):
    """A tensor without content."""
    return torch.ones(128, device="meta")


class Impostor(torch.Tensor):
    """A tensor whose content is decided when it is looked at."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """Whatever is asked, the answer is no."""
        raise RuntimeError(f"no {function.__name__} today")


@method("returns_impostor", **SHARED)
def returns_impostor(task, *, generator):
    """A tensor that raises when it is checked."""
    return torch.ones(128).as_subclass(Impostor)
