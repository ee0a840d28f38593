"""Pages and API of the evaluations."""

from typing import Any

from django.urls import path

from evals_app.pages.compare import views as compare
from evals_app.pages.dashboard import views as dashboard
from evals_app.pages.editor import views as workflow_editor
from evals_app.pages.evals import views as evals
from evals_app.pages.lab import views as lab
from evals_app.pages.run import views as run
from evals_app.pages.runs import views as runs
from evals_app.pages.souls import views as souls
from evals_app.pages.workflow import actions as workflow_actions
from evals_app.pages.workflow import views as workflows

urlpatterns: list[Any] = [
    path("runs/", runs.run_list, name="run-list"),
    path("runs/rows/", runs.run_rows, name="run-rows"),
    path("runs/export.csv", runs.run_export_file, {"kind": "csv"}, name="run-export-csv"),
    path("runs/export.jsonl", runs.run_export_file, {"kind": "jsonl"}, name="run-export-jsonl"),
    path("runs/compare/", runs.compare_selected, name="run-compare-selected"),
    path("runs/<uuid:run_id>/", run.run_page, name="run"),
    path("runs/<uuid:run_id>/live/", run.run_fragments, name="run-live"),
    path("runs/<uuid:run_id>/nodes/<int:pk>/", run.node_page, name="run-node"),
    path("runs/<uuid:run_id>/nodes/<int:pk>/<slug:what>.txt", run.node_text, name="run-node-text"),
    path("runs/<uuid:run_id>/inputs.json", run.run_values, {"what": "inputs"}, name="run-inputs"),
    path("runs/<uuid:run_id>/outputs.json", run.run_values, {"what": "outputs"}, name="run-outputs"),
    path("runs/<uuid:run_id>/workflow.yaml", run.run_yaml, name="run-yaml"),
    path("runs/<uuid:run_id>/case.yaml", run.run_case, name="run-case"),
    path("runs/<uuid:run_id>/cancel/", run.cancel, name="run-cancel"),
    path("runs/<uuid:run_id>/rerun/", run.rerun, name="run-rerun"),
    path("runs/<uuid:run_id>/compare/<uuid:other_id>/", compare.compare_runs, name="run-compare"),
    path("assertions/", lab.lab, name="lab"),
    path("assertions/blocks/", lab.lab_blocks, name="lab-blocks"),
    path("assertions/backtest/", lab.lab_backtest, name="lab-backtest"),
    path("", dashboard.dashboard, name="dashboard"),
    path("dashboard/figures/", dashboard.figures, name="dashboard-figures"),
    path("dashboard/now/", dashboard.now, name="dashboard-now"),
    path("start/", workflow_editor.start, name="workflow-start"),
    path("start/check/", workflow_editor.check, name="workflow-check"),
    path("workflows/", workflows.workflow_list, name="workflow-list"),
    path("workflows/<slug:slug>/", workflows.workflow_page, name="workflow"),
    path("workflows/<slug:slug>/trend/", workflows.workflow_trend, name="workflow-trend"),
    path("workflows/<slug:slug>/runs/<int:number>/", workflows.numbered_run, name="workflow-run-number"),
    path("workflows/<slug:slug>/now/", workflows.workflow_now, name="workflow-now"),
    path("workflows/<slug:slug>/run/", workflow_actions.run, name="workflow-run"),
    path("workflows/<slug:slug>/edit/", workflow_editor.edit, name="workflow-edit"),
    path("workflows/<slug:slug>/baseline/", workflow_actions.pin_baseline, name="workflow-baseline"),
    path("workflows/<slug:slug>/versions/<int:number>/", workflows.version_page, name="workflow-version"),
    path(
        "workflows/<slug:slug>/versions/<int:number>/workflow.yaml",
        workflows.version_yaml,
        name="workflow-version-yaml",
    ),
    path("regressions/<uuid:pk>/acknowledge/", workflow_actions.acknowledge, name="regression-acknowledge"),
    path("regressions/<uuid:pk>/resolve/", workflow_actions.resolve, name="regression-resolve"),
    path("souls/", souls.soul_list, name="soul-list"),
    path("souls/<slug:slug>/", souls.soul_page, name="soul"),
    path("souls/<slug:slug>/prompt.txt", souls.soul_prompt, name="soul-prompt"),
    path("souls/<slug:slug>/versions/<slug:version>/", souls.version_page, name="soul-version"),
    path("souls/<slug:slug>/versions/<slug:version>/soul.txt", souls.version_text, name="soul-version-text"),
    path("evals/", evals.suite_list, name="eval-suites"),
    path("evals/runs/<uuid:run_id>/", evals.suite_run, name="eval-run"),
    path("evals/runs/<uuid:run_id>/compare/<uuid:other_id>/", evals.compare, name="eval-compare"),
    path("evals/<slug:slug>/", evals.suite, name="eval-suite"),
    path("evals/<slug:slug>/start/", evals.start, name="eval-start"),
    path("evals/<slug:slug>/compare/", evals.compare_chosen, name="eval-compare-chosen"),
    path("runs/<uuid:run_id>/nodes/<int:pk>/case/", evals.make_case, name="make-case"),
]
