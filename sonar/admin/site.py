"""The front page of the admin: its tables by what people come for, not by application."""

from importlib import import_module
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest

# Tables of a section, as their models are called, the one that is asked for most first.
SECTIONS = {
    "Registry": ("Site", "Endpoint", "Mesh", "SizeClass", "Credential"),
    "Downtimes and notes": ("Downtime", "Annotation"),
    "Tests": ("Probe", "Transfer", "Leftover"),
    "Accounts": ("User", "Group"),
}


class SonarAdminSite(AdminSite):
    site_header = index_title = "Administration"
    site_title = "Sonar"
    # The trail of links above a page leads to the other tables.
    enable_nav_sidebar = False

    def get_app_list(
        self, request: HttpRequest, app_label: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the sections that have a table for who asks, or the tables of one application."""
        apps: list[dict[str, Any]] = super().get_app_list(request, app_label)
        if app_label:
            return apps
        tables = {table["object_name"]: table for app in apps for table in app["models"]}
        sections = [
            {"name": name, "models": [tables[model] for model in models if model in tables]}
            for name, models in SECTIONS.items()
        ]
        return [section for section in sections if section["models"]]


class SonarAdminConfig(AdminConfig):
    default_site = "sonar.admin.site.SonarAdminSite"

    def ready(self) -> None:
        super().ready()
        for name in ("accounts", "registry", "results"):
            import_module(f"sonar.admin.{name}")
