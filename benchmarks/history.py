"""A history in which nothing is missing that a page can show, and in which everything grows with the runs."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import models
from fill import BLOCKS, Copies, analyze, fill

from evals_app.models import EvalCaseResult, EvalSuiteRun, Regression
from evals_app.suites import running as suites
from workflows_app import executors, services
from workflows_app.models import AuditEntry, Soul, Workflow

SOULS = {"b2": "analyst", "b4": "analyst", "b6": "critic"}  # of the library, by the block that asks them
CASES = 20
# Of what comes less often than runs: some anyhow, because a page with more on it takes longer, and the rest with the runs.
ROWS_ANYHOW = 100
RUNS_A_ROW = 100


class History:
    """A workflow that has really run, asked two versions of its souls, was evaluated and became worse; and its past."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.workflow = self._ran()
        self.suite_run = suites.begin(self.workflow, user)
        suites.execute_suite(self.suite_run)
        self.regression = Regression.objects.create(
            workflow=self.workflow, node_id="b2", kind="quality_drop", since_number=2, since_run_number=2,
            found_run_number=3, before={"count": 100, "mean": 1.0}, after={"count": 20, "mean": 0.5}, evidence=9.0,
            suspected={"workflow_version": 1, "soul_version": Soul.objects.get(slug="analyst").version},
        )  # fmt: skip
        self.entry = AuditEntry.objects.create(user=user, action="eval.start", target=self.workflow.slug)

    def _ran(self) -> Workflow:
        self._save_souls("Say it.")
        workflow = services.save_version("stored", document(), author=self.user).workflow
        self._run(workflow)
        self._save_souls("Say it in one line.")
        for _ in range(2):
            self._run(workflow)
        executors.service().stop()
        return workflow

    def _save_souls(self, system_prompt: str) -> None:
        for slug in sorted({*SOULS.values()}):
            soul = Soul.objects.filter(slug=slug).first() or Soul(slug=slug, role="Analyst")
            soul.system_prompt = system_prompt
            services.save_soul(soul, author=self.user)

    def _run(self, workflow: Workflow) -> None:
        executors.service().execute(services.start_run(workflow, {}).pk)

    def fill(self, runs: int) -> None:
        """Once: let there be so many runs, by both versions of the souls, and as much of the rest as comes with them."""
        fill(self.workflow, runs, originals=2)
        count = ROWS_ANYHOW + runs // RUNS_A_ROW
        copies = self._copies(self.suite_run, count)
        copies.insert(EvalSuiteRun, "id", id=copies.key())
        copies.insert(EvalCaseResult, "suite_run_id", suite_run_id=copies.key())
        copies = self._copies(self.regression, count)  # all but the original are over
        copies.insert(
            Regression, "id", id=copies.key(), state="'resolved'", resolved_at="m.found_at",
            found_run_id=copies.key("n.i + 3"), found_run_number="n.i + 3",
        )  # fmt: skip
        self._copies(self.entry, count).insert(AuditEntry, "id")
        analyze()

    def _copies(self, original: models.Model, count: int) -> Copies:
        return Copies(self.workflow, [original], 2, count, minutes=RUNS_A_ROW)


def document() -> str:
    """Ten blocks in a row, some of which ask a soul, and cases with frozen answers, of which one fails."""
    lines = ['version: "1.0"', "blocks:"]
    for n, name in enumerate(BLOCKS):
        lines.append(f"  {name}:")
        if name in SOULS:
            lines += ["    type: llm", f"    soul_ref: {SOULS[name]}", f"    prompt: Say ok {name}"]
            lines += ["    assertions:", "      - {type: word-count, value: {min: 1}}"]
        else:
            lines += [
                "    type: code",
                "    code: |",
                "      def main(data):",
                f"          return 'ok {name}'",
            ]
            lines += ["    assertions:", "      - {type: contains, value: ok}"]
        if n:
            lines.append(f"    depends: {BLOCKS[n - 1]}")
    lines += ["eval:", "  threshold: 0.9", "  cases:"]
    for number in range(CASES):
        lines += [f"    - id: case-{number}", f"      fixtures: {{b0: said {number}.}}", "      expected:"]
        lines.append(f"        b0: [{{type: contains, value: 'said {min(number, CASES - 2)}.'}}]")
    return "\n".join(lines) + "\n"
