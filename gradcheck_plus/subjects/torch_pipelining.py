"""torch's stage backward, called as ``stage_backward(stage_output, output_grads, input_values)``, and the one in two passes."""

from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def stage_backward(stage_output: Any, output_grads: Any, input_values: Any) -> Any:
    """Call `torch.distributed.pipelining._backward.stage_backward`."""
    from gradcheck_plus.compat import stage_backward as implementation

    return implementation(stage_output, output_grads, input_values)


def stage_backward_input(stage_outputs_or_loss: Any, output_grads: Any, input_values: Any, weights: Any) -> Any:
    """Call `torch.distributed.pipelining._backward.stage_backward_input`."""
    from gradcheck_plus.compat import split_backward as implementation

    return implementation()[0](stage_outputs_or_loss, output_grads, input_values, weights)


def stage_backward_weight(weights: Any, param_groups: Any, retain_graph: Any = False) -> Any:  # noqa: FBT002 - as torch's
    """Call `torch.distributed.pipelining._backward.stage_backward_weight`."""
    from gradcheck_plus.compat import split_backward as implementation

    return implementation()[1](weights, param_groups, retain_graph)


split_backward = (stage_backward_input, stage_backward_weight)

SUBJECTS.add(
    BuiltIn(
        "torch-stage-backward",
        "stage-backward",
        stage_backward,
        "stage-backward",
        "torch.distributed.pipelining's stage_backward",
        compared=True,
    )
)
SUBJECTS.add(
    BuiltIn(
        "torch-split-backward",
        "split-backward",
        split_backward,
        "split-backward",
        "torch.distributed.pipelining's stage_backward_input and stage_backward_weight",
        compared=True,
        target=f"{__name__}:split_backward",
    )
)
