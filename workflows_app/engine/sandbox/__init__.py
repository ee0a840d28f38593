"""Runs the `code` of a block in a process of its own, cut off from everything the kernel lets us cut off."""

from .client import Sandbox, SandboxUnavailable, harden_parent
from .lint import CodeFault, check_code
from .report import Layer, isolation_report
from .results import CodeLimits, CodeResult

__all__ = [
    "CodeFault",
    "CodeLimits",
    "CodeResult",
    "Layer",
    "Sandbox",
    "SandboxUnavailable",
    "check_code",
    "harden_parent",
    "isolation_report",
]
