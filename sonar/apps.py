"""The Django app of the registry, the probes and the results."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import Tags, register
from django.db.models.signals import post_migrate


class SonarConfig(AppConfig):
    name = "sonar"
    verbose_name = "Sonar"

    def ready(self) -> None:
        from sonar import accounts, encodings, issuer, roles

        register(encodings.check, Tags.database)
        register(accounts.check, Tags.database)
        register(issuer.check, deploy=True)

        post_migrate.connect(roles.ensure_operators, sender=self, dispatch_uid="sonar.roles")
