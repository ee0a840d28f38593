"""Two evaluations of one suite, case by case: what flipped comes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

WORSE, BETTER, REMOVED, ADDED, SAME = "worse", "better", "removed", "added", "same"
_ORDER = (WORSE, BETTER, REMOVED, ADDED, SAME)


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The result of one case in one evaluation."""

    id: str
    passed: bool
    score: float


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case before and after."""

    id: str
    kind: str
    before: CaseVerdict | None
    after: CaseVerdict | None

    @property
    def score_delta(self) -> float | None:
        return self.after.score - self.before.score if self.before and self.after else None

    def to_dict(self) -> dict[str, Any]:
        sides = {"before": self.before, "after": self.after}
        return {"id": self.id, "kind": self.kind} | {
            name: {"passed": one.passed, "score": one.score} if one else None for name, one in sides.items()
        }


def compare(before: Iterable[CaseVerdict], after: Iterable[CaseVerdict]) -> list[CaseChange]:
    """Every case of either: flips for the worse, for the better, gone, new, and then the unchanged."""
    old = {one.id: one for one in before}
    new = {one.id: one for one in after}
    changes = [
        CaseChange(case_id, _kind(old.get(case_id), new.get(case_id)), old.get(case_id), new.get(case_id))
        for case_id in dict.fromkeys((*new, *old))
    ]
    return sorted(changes, key=lambda change: _ORDER.index(change.kind))


def _kind(before: CaseVerdict | None, after: CaseVerdict | None) -> str:
    if before is None:
        return ADDED
    if after is None:
        return REMOVED
    if before.passed == after.passed:
        return SAME
    return WORSE if before.passed else BETTER
