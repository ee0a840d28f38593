"""Every path of the API."""

from django.urls import include, path, re_path
from django.views.generic import RedirectView

from runsight_site.pages import api_docs

urlpatterns = [
    path("", api_docs.Root.as_view(), name="api-root"),
    path("schema/", api_docs.Schema.as_view(), name="api-schema"),
    path("docs/", api_docs.Docs.as_view(url_name="api-schema"), name="api-docs"),
    path("docs/try/", RedirectView.as_view(pattern_name="api-docs", permanent=True)),
    path("", include("evals_app.api.urls")),
    path("", include("workflows_app.api.urls")),
    re_path("", api_docs.NoSuchPath.as_view(), name="api-unknown"),
]
