"""The in-flight file: which case is being run, for whoever finds the process hanging or dead."""

import os
import time
from pathlib import Path


class Inflight:
    """A small file that says which case is being run, for whoever finds the process hanging or dead."""

    def __init__(self, path: str | None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600) if path else None

    def write(self, phase: str, block: int, number: int) -> None:
        """Say that this case begins."""
        if self._file is not None:
            os.pwrite(self._file, f"{phase} {block} {number} {time.monotonic():.3f}".ljust(60).encode(), 0)

    @staticmethod
    def read(path: Path) -> tuple[str, int, int] | None:
        """Return (phase, block, number) of the case that was begun last, None if none was."""
        parts = path.read_text(encoding="utf-8").split() if path.exists() else []
        return (parts[0], int(parts[1]), int(parts[2])) if len(parts) >= 3 else None
