"""The site's own app configurations."""

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class SiteConfig(AppConfig):
    """Settings, log-in and the base page."""

    name = "runsight_site"
    default = True

    def ready(self) -> None:
        """Register the system checks and set up logging."""
        from runsight_site import checks, logging  # noqa: F401 - importing checks registers them

        logging.configure()


class RunsightAdminConfig(admin_apps.AdminConfig):
    """Django's admin, served by our own site class."""

    default = False
    default_site = "runsight_site.admin.RunsightAdminSite"
