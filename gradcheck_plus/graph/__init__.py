"""Looking into autograd: what every node of a backward received and returned, replayed and checked one by one."""

from gradcheck_plus.graph.forward import ForwardRecording, record_forward
from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.recording import Recording, record_backward
from gradcheck_plus.graph.running import RunRecording, record_run
from gradcheck_plus.graph.structs import Gradient, NodeCheck, RecordedNode, RecordingData
from gradcheck_plus.graph.tracing import first_divergence, recorded

__all__ = [
    "ForwardRecording",
    "Gradient",
    "Node",
    "NodeCheck",
    "RecordedNode",
    "Recording",
    "RecordingData",
    "RunRecording",
    "first_divergence",
    "record_backward",
    "record_forward",
    "record_run",
    "recorded",
]
