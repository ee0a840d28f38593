"""Paths of the API that need no evaluation data."""

from django.urls import path

from workflows_app.api import runs, souls, workflows
from workflows_app.api.start import workflow_runs

urlpatterns = [
    path("workflows/", workflows.WorkflowList.as_view(), name="api-workflows"),
    path("workflows/validate/", workflows.Validate.as_view(), name="api-validate"),
    path("workflows/<slug:slug>/", workflows.WorkflowDetail.as_view(), name="api-workflow"),
    path("workflows/<slug:slug>/versions/", workflows.VersionList.as_view(), name="api-versions"),
    path(
        "workflows/<slug:slug>/versions/<int:number>/", workflows.VersionDetail.as_view(), name="api-version"
    ),
    path("workflows/<slug:slug>/validate/", workflows.ValidateFor.as_view(), name="api-validate-for"),
    path("workflows/<slug:slug>/runs/", workflow_runs, name="api-workflow-runs"),
    path("runs/", runs.RunList.as_view(), name="api-runs"),
    path("runs/<uuid:pk>/", runs.RunDetail.as_view(), name="api-run"),
    path("runs/<uuid:pk>/nodes/", runs.RunNodes.as_view(), name="api-run-nodes"),
    path("runs/<uuid:pk>/events/", runs.RunEvents.as_view(), name="api-run-events"),
    path("runs/<uuid:pk>/cancel/", runs.CancelRun.as_view(), name="api-run-cancel"),
    path("runs/<uuid:pk>/rerun/", runs.Rerun.as_view(), name="api-run-rerun"),
    path("souls/", souls.SoulList.as_view(), name="api-souls"),
    path("souls/<slug:slug>/", souls.SoulDetail.as_view(), name="api-soul"),
]
