"""Captum on a task: a batch of one, without its warnings, and with nothing left on the modules that it hooks."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from jaxtyping import Float

from methods.method import NotApplicable
from methods.reads import LARGEST_BATCH

# What Captum's DeepLift can hook; its GuidedBackprop hooks the first of them only.
HOOKED = (
    torch.nn.ReLU,
    *(torch.nn.ELU, torch.nn.LeakyReLU, torch.nn.Sigmoid, torch.nn.Tanh, torch.nn.Softplus, torch.nn.Softmax),
    *(torch.nn.MaxPool1d, torch.nn.MaxPool2d, torch.nn.MaxPool3d),
)
# Outputs of all rows of a batch.
LARGEST_TABLE = 2**15
# DeepLift keeps what an activation was given and gave in attributes of the module; an error leaves them there.
KEPT = ("input", "output")


def captum_rows(
    explain: Callable[[torch.Tensor, int], torch.Tensor],
    read: torch.nn.Module,
    point: Float[torch.Tensor, "*input"],
) -> Float[torch.Tensor, "output *input"]:
    """What `explain` says of each output of `read`: it is given a batch of one, which is its own, and the output."""
    batch = point.detach().unsqueeze(0)
    n_outputs = read(batch).shape[-1]
    return torch.cat([explain(batch.clone().requires_grad_(), output).detach() for output in range(n_outputs)])


def captum_batches(
    explain: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    read: torch.nn.Module,
    point: Float[torch.Tensor, "*input"],
) -> Float[torch.Tensor, "output *input"]:
    """As `captum_rows`, of what takes rows of a batch apart: it is given a row of its own for each of many outputs."""
    outputs = torch.arange(read(point.detach().unsqueeze(0)).shape[-1])
    # Every row computes all outputs: of a sprite with thousands of pixels few rows fit into memory.
    n_rows = max(1, min(LARGEST_BATCH, LARGEST_TABLE // len(outputs)))
    rows = [
        explain(point.detach().expand(len(batch), *point.shape).clone().requires_grad_(), batch).detach()
        for batch in outputs.split(n_rows)
    ]
    return torch.cat(rows)


@contextmanager
def hookable(read: torch.nn.Module, *, once: bool = False) -> Iterator[None]:
    """Inside, Captum's hooks on activations of `read` see what they should; afterwards nothing of them is left.

    Captum replaces the gradient of the tensor that goes into an activation. Where that tensor goes elsewhere as well,
    as beside a residual connection, it would replace, in silence, what comes back from there too. So each activation
    is given a copy that is its own. An activation that works in place is harmless then.

    Raises:
        NotApplicable: with `once`, when a run uses an activation a second time; Captum could not tell the uses apart.
    """
    used: set[torch.nn.Module] = set()

    def give_own_copy(module: torch.nn.Module, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        if once and module in used:
            raise NotApplicable(f"the network uses one {type(module).__name__} module twice; give each use its own")
        used.add(module)
        return tuple(argument.clone() for argument in arguments)

    def forget_uses(_read: torch.nn.Module, _arguments: object) -> None:
        used.clear()

    activations = [module for module in read.modules() if isinstance(module, HOOKED)]
    with ExitStack() as stack:
        stack.callback(_forget, activations)
        stack.callback(read.register_forward_pre_hook(forget_uses).remove)
        for module in activations:
            stack.callback(module.register_forward_pre_hook(give_own_copy).remove)
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message="Setting (forward, )?backward hooks")
        yield


def _forget(activations: Iterable[torch.nn.Module]) -> None:
    for module in activations:
        for name in KEPT:
            vars(module).pop(name, None)


def require_relu_modules(read: torch.nn.Module, point: Float[torch.Tensor, "*input"]) -> None:
    """Refuse a network whose ReLUs can't all be hooked.

    Raises:
        NotApplicable: it has no `torch.nn.ReLU`, or some of its ReLUs are functions.
    """
    modules = [module for module in read.modules() if isinstance(module, torch.nn.ReLU)]
    if not modules:
        raise NotApplicable("the network has no torch.nn.ReLU module, whose gradient it would change")
    of_modules = set()

    def keep(_module: torch.nn.Module, _arguments: object, output: torch.Tensor) -> None:
        of_modules.add(output.grad_fn)

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_hook(keep).remove)
        value = read(point.detach().unsqueeze(0).requires_grad_())
    n_loose = len(_rectifications(value) - of_modules)
    if n_loose:
        raise NotApplicable(f"{n_loose} of the network's ReLUs are functions; make each a torch.nn.ReLU module")


def _rectifications(value: torch.Tensor) -> set[torch.autograd.graph.Node]:
    """All ReLUs, of modules and functions, that `value` was computed with."""
    seen, waiting = set(), [value.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return {node for node in seen if node.name() == "ReluBackward0"}
