"""What goes into a sandboxed run of code and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["ok", "error", "timeout", "cancelled", "limit"]
_MB = 1024 * 1024


@dataclass(frozen=True)
class CodeLimits:
    """What one block may use; time is an argument of its own."""

    memory_bytes: int = 512 * _MB
    processes: int = 16
    open_files: int = 64
    file_bytes: int = 16 * _MB
    folder_bytes: int = 64 * _MB
    stdout_bytes: int = 64 * 1024
    output_bytes: int = _MB


@dataclass(frozen=True)
class CodeResult:
    """How a block's process ended; `output` is what main returned, as JSON gives it back."""

    status: Status
    output: Any = None
    stdout: str = ""
    error_type: str | None = None
    error_message: str | None = None
    line: int | None = None
    source_line: str = ""
    duration_ms: float = 0.0
    max_rss_kb: int = 0

    @property
    def error(self) -> str | None:
        """The failure in one sentence, with the line in the user's code where there is one."""
        if self.status == "ok":
            return None
        where = f" (line {self.line}: {self.source_line})" if self.line else ""
        return f"{self.error_type}: {self.error_message}{where}"
