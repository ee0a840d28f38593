"""Every path of the API."""

from django.urls import include, path, re_path

from runsight_site import api_docs

urlpatterns = [
    path("", api_docs.Root.as_view(), name="api-root"),
    path("schema/", api_docs.Schema.as_view(), name="api-schema"),
    path("docs/", api_docs.Docs.as_view(), name="api-docs"),
    path("docs/try/", api_docs.Explorer.as_view(url_name="api-schema"), name="api-explorer"),
    path("", include("evals_app.api_urls")),
    path("", include("workflows_app.api_urls")),
    re_path("", api_docs.NoSuchPath.as_view(), name="api-unknown"),
]
