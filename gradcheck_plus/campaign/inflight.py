"""The in-flight file: which case is being run, for whoever finds the process hanging or dead."""

import os
import time
from pathlib import Path


class Inflight:
    """A small file that says which case is being run, for whoever finds the process hanging or dead.

    With a file beside it whoever watches says that no further case is wanted.
    """

    def __init__(self, path: str | None) -> None:
        self._stop = stop_file(Path(path)) if path else None
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600) if path else None

    def write(self, phase: str, block: int, number: int) -> None:
        """Say that this case begins."""
        if self._file is not None:
            os.pwrite(self._file, f"{phase} {block} {number} {time.monotonic():.3f}".ljust(60).encode(), 0)

    @property
    def stopped(self) -> bool:
        """Is no further case wanted?"""
        return self._stop is not None and self._stop.exists()

    @staticmethod
    def read(path: Path) -> tuple[str, int, int] | None:
        """Return (phase, block, number) of the case that was begun last, None if none was."""
        parts = path.read_text(encoding="utf-8").split() if path.exists() else []
        return (parts[0], int(parts[1]), int(parts[2])) if len(parts) >= 3 else None


def stop_file(path: Path) -> Path:
    """Return the file that stops a block, by the path of its in-flight file."""
    return path.with_name(f"{path.name}.stop")
