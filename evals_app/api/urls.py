"""Paths of the API of evaluations and monitoring."""

from django.urls import path

from evals_app.api import evaluation, monitoring

urlpatterns = [
    path("workflows/schema/", evaluation.DocumentSchema.as_view(), name="api-document-schema"),
    path("workflows/<slug:slug>/trends/", monitoring.Trends.as_view(), name="api-trends"),
    path(
        "workflows/<slug:slug>/regressions/",
        monitoring.WorkflowRegressions.as_view(),
        name="api-workflow-regressions",
    ),
    path("workflows/<slug:slug>/baseline/", monitoring.Baseline.as_view(), name="api-baseline"),
    path("runs/ingest/", evaluation.Ingest.as_view(), name="api-ingest"),
    path("runs/<uuid:pk>/eval/", evaluation.RunEval.as_view(), name="api-run-eval"),
    path("runs/<uuid:pk>/regressions/", monitoring.RunRegressions.as_view(), name="api-run-regressions"),
    path("souls/<slug:slug>/history/", monitoring.SoulHistory.as_view(), name="api-soul-history"),
    path("evaluate/", evaluation.Evaluate.as_view(), name="api-evaluate"),
    path("evaluate/backtest/", evaluation.Backtest.as_view(), name="api-backtest"),
    path("assertion-types/", evaluation.AssertionTypes.as_view(), name="api-assertion-types"),
    path("regressions/", monitoring.RegressionList.as_view(), name="api-regressions"),
    path("regressions/<uuid:pk>/", monitoring.RegressionDetail.as_view(), name="api-regression"),
    path("regressions/<uuid:pk>/acknowledge/", monitoring.Acknowledge.as_view(), name="api-acknowledge"),
    path("regressions/<uuid:pk>/resolve/", monitoring.Resolve.as_view(), name="api-resolve"),
    path("dashboard/", monitoring.Dashboard.as_view(), name="api-dashboard"),
    path("dashboard/attention/", monitoring.Attention.as_view(), name="api-attention"),
]
