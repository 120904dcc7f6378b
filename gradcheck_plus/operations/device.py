"""What CUDA needs to compute the same bits every time; said without torch, since repros print it."""

from gradcheck_plus.case import Case
from gradcheck_plus.operations import CATALOGUE

#: What cuBLAS must find in the environment if sums are to be taken in the same order every time, and the value to write there.
WORKSPACE = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def suits_cudnn(case: Case) -> bool:
    """May a case use cuDNN? It has no backward of recurrent layers in eval mode, and torch raises there."""
    return case.environment.train or not any("recurrent" in CATALOGUE[s.operation].traits for s in case.program.statements)
