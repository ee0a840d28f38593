"""The site's own app configurations."""

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin import apps as admin_apps

NAMES = {"auth": "People", "axes": "Log-in attempts"}  # others' apps, as the admin calls them


class SiteConfig(AppConfig):
    """Settings, log-in and the base page."""

    name = "runsight_site"
    default = True

    def ready(self) -> None:
        """Register the system checks, set up logging, name others' apps, and say which broker messages go to."""
        from runsight_site import checks, logging  # noqa: F401 - importing checks registers them

        logging.configure()
        for label, name in NAMES.items():
            apps.get_app_config(label).verbose_name = name
        if settings.RUNSIGHT_EXECUTOR == "celery":
            from runsight_site.celery import app

            app.set_default()  # for every thread; without it tasks go to whatever listens on Celery's usual port


class RunsightAdminConfig(admin_apps.AdminConfig):
    """Django's admin, served by our own site class."""

    default = False
    default_site = "runsight_site.admin.RunsightAdminSite"
