"""Websocket paths."""

from django.urls import path, re_path

from workflows_app.consumers import DashboardConsumer, RunConsumer, UnknownConsumer, WorkflowConsumer

websocket_urlpatterns = [
    path("ws/runs/<uuid:run_id>/", RunConsumer.as_asgi()),
    path("ws/workflows/<slug:slug>/", WorkflowConsumer.as_asgi()),
    path("ws/dashboard/", DashboardConsumer.as_asgi()),
    re_path(r"", UnknownConsumer.as_asgi()),
]
