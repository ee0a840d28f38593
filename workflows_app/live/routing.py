"""Websocket paths."""

from django.urls import path, re_path

from workflows_app.live.consumers import LiveConsumer, RunConsumer, RunsConsumer, WorkflowConsumer

websocket_urlpatterns = [
    path("ws/runs/<uuid:run_id>/", RunConsumer.as_asgi()),
    path("ws/workflows/<slug:slug>/", WorkflowConsumer.as_asgi()),
    path("ws/dashboard/", RunsConsumer.as_asgi()),
    re_path(r"", LiveConsumer.as_asgi()),  # refuses whatever else is asked for
]
