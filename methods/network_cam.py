"""Class activation maps as claims on the network of a task."""

import itertools

import torch
from jaxtyping import Float

from methods.activations import find_module
from methods.cam import Kind, class_activation_map
from methods.method import NotApplicable
from oracle.task import Task

# With fewer rows or columns an input has its channels last, and its last axes are no picture.
LEAST_SIDE = 8


def network_claim(task: Task, kind: Kind, layer: str) -> Float[torch.Tensor, "*input"]:
    """The heatmap of the explained output, one number per number of the input: channels share their frame's.

    Raises:
        NotApplicable: the network has no convolution and no layer is named, or its input is no image.
        ValueError, RuntimeError: see `class_activation_map`.
    """
    network, frames = task.network, task.frames
    if network is None or frames is None:
        raise NotApplicable(f"it explains networks, not {task.subject}")
    if frames.ndim not in (3, 4) or min(frames.shape[-2:]) < LEAST_SIDE:
        raise NotApplicable(f"it explains inputs (C, H, W) or (T, C, H, W), not {tuple(frames.shape)}")
    convolutions = [module for module in network.modules() if isinstance(module, torch.nn.Conv2d)]
    if not layer and not convolutions:
        raise NotApplicable("the network has no Conv2d; name a layer")
    wanted = [find_module(network, name) for name in layer.split("+")] if layer else None
    if wanted is None and kind == "gradcam++":
        wanted = rectified(network, convolutions[-1])
    heatmaps = class_activation_map(task.read, frames.unsqueeze(0), kind=kind, modules=wanted, output=0)
    return heatmaps[0].unsqueeze(-3).expand_as(frames) if frames.ndim == 4 else heatmaps[0].expand_as(frames)


def rectified(network: torch.nn.Module, convolution: torch.nn.Module) -> list[torch.nn.Module] | None:
    """The ReLU right behind a convolution in the same `Sequential`, whose maps are not negative; None if none is there.

    >>> network = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.ReLU(), torch.nn.Flatten())
    >>> rectified(network, network[0])
    [ReLU()]
    """
    for parent in network.modules():
        if isinstance(parent, torch.nn.Sequential):
            for step, following in itertools.pairwise(parent):
                if step is convolution and isinstance(following, torch.nn.ReLU):
                    return [following]
    return None
