"""When to say "worse": sequential evidence, per block, that something has lastingly changed."""

from evals_app.evidence.block import BlockEvidence
from evals_app.evidence.measures import normal_of
from evals_app.evidence.model import (
    METRICS,
    REGRESSION_KINDS,
    Baseline,
    Change,
    Level,
    Observed,
    Settings,
    Suspect,
    Verdict,
)
from evals_app.evidence.series import WINDOW

__all__ = [
    "METRICS",
    "REGRESSION_KINDS",
    "WINDOW",
    "Baseline",
    "BlockEvidence",
    "Change",
    "Level",
    "Observed",
    "Settings",
    "Suspect",
    "Verdict",
    "normal_of",
]
