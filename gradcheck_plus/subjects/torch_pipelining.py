"""torch's stage backward, called as ``stage_backward(stage_output, output_grads, input_values)``."""

from typing import Any

from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn


def stage_backward(stage_output: Any, output_grads: Any, input_values: Any) -> Any:
    """Call `torch.distributed.pipelining._backward.stage_backward`."""
    from gradcheck_plus.compat import stage_backward as implementation

    return implementation(stage_output, output_grads, input_values)


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
