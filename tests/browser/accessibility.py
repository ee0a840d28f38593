"""What axe-core says about a page."""

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe

SERIOUS = ("serious", "critical")
ALL = ("minor", "moderate", *SERIOUS)
# The rules that a theme can break; everything else is the same by night.
OF_COLOUR = ("color-contrast", "link-in-text-block")


def findings(page: Any, *, impacts: Sequence[str] = ALL, rules: Sequence[str] = ()) -> list[str]:
    """Every finding of these impacts (by these rules, if some are named), with the first element it is about."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    violations = Axe().run(page, options=options).response["violations"]
    return [
        f"{finding['id']} ({finding['impact']}, {len(finding['nodes'])} elements): {finding['nodes'][0]['html'][:200]}"
        for finding in violations
        if finding["impact"] in impacts
    ]


def serious_findings(page: Any) -> list[str]:
    return findings(page, impacts=SERIOUS)
