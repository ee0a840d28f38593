"""What axe-core says about a page."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe


def serious_findings(page: Any) -> list[str]:
    """Every finding of impact serious or critical, with the first element it is about."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{finding['id']} ({finding['impact']}, {len(finding['nodes'])} elements): {finding['nodes'][0]['html'][:200]}"
        for finding in violations
        if finding["impact"] in ("serious", "critical")
    ]
