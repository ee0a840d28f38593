"""A failed assertion in a few words, the same in every report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from evals_app.assertion_words import kind_of, limit, number_text, shorten
from evals_app.cases.results import BlockScore, CaseResult, Check


@dataclass(frozen=True)
class Failure:
    """One failed assertion of a case, or, without a check, a block that has no output."""

    case: CaseResult
    block: BlockScore
    check: Check | None

    @property
    def line(self) -> int | None:
        return self.check.line if self.check else self.case.line

    @property
    def reason(self) -> str:
        return self.check.result.reason if self.check else f"{self.block.error}"

    def expected(self, longest: int) -> str:
        """What the assertion wants: `contains "Ada"`, `$.total equals 119`, `cost at most $0.05`."""
        if self.check is None:
            return "an output"
        config = self.check.config
        parts = [str(config.get("transform") or "").removeprefix("json_path:"), str(config.get("type", "?"))]
        if "value" in config and kind_of(config) != "word-count":  # the limit has its words
            parts.append(json.dumps(config["value"], ensure_ascii=False, default=str))
        return shorten(" ".join([*parts, limit(config)]), longest)

    def measured(self, longest: int) -> str:
        """What was found instead: the number behind the verdict, else the output."""
        if self.check is None:
            return "no output"
        if self.check.result.error:
            return "could not be checked"
        if self.check.result.measured is not None:
            return number_text(kind_of(self.check.config), self.check.result.measured)
        return shorten(json.dumps(self.block.output or "", ensure_ascii=False), longest)


def failures_of(cases: Iterable[CaseResult]) -> list[Failure]:
    """Every failed assertion of these cases."""
    return [Failure(case, block, check) for case in cases for block, check in case.failing()]
