"""The Django app of the registry, the probes and the results."""

from __future__ import annotations

from django.apps import AppConfig


class SonarConfig(AppConfig):
    name = "sonar"
    verbose_name = "Sonar"
