"""Plain autograd in the place of a stage backward, as repros print it. Nothing imports this file; it is read as text."""

import torch


def plain(stage_output, output_grads, input_values):
    """One backward over the stage's graph, then the `.grad` of its inputs, which it clears."""
    pairs = [(o, g) for o, g in leaves(stage_output, output_grads) if o.requires_grad and (g is not None or o.numel() == 1)]
    if pairs:
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
    grads = [v.grad if torch.is_tensor(v) else None for v in input_values]
    for v in input_values:
        if torch.is_tensor(v):
            v.grad = None
    return tuple(grads)


def leaves(output, grad):
    """The tensors of an output, each with its cotangent."""
    if torch.is_tensor(output):
        return [(output, grad)]
    keys = output if isinstance(output, dict) else range(len(output)) if isinstance(output, (tuple, list)) else ()
    return [pair for key in keys for pair in leaves(output[key], None if grad is None else grad[key])]
