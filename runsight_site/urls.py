"""Every path of the site; the apps bring their own."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import include, path

from runsight_site.pages import views
from runsight_site.serving import health, login_links
from runsight_site.serving.log_in import LogIn
from runsight_site.serving.metrics import Metrics

handler404 = views.not_found
urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", Metrics.as_view(), name="metrics"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("login/", LogIn.as_view(), name="login"),
    path("login/once/<str:token>/", login_links.log_in_once, name="login-once"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("password/", views.ChangePassword.as_view(), name="password"),
    path("styleguide/", views.styleguide, name="styleguide"),
    path("admin/", admin.site.urls),
    path("api/", include("runsight_site.api_urls")),
    path("", include("evals_app.urls")),
    path("", include("workflows_app.urls")),
]
