"""The Django app of the registry, the probes and the results."""

from django.apps import AppConfig
from django.core.checks import Error, Tags, register
from django.db.models.signals import post_migrate, pre_migrate


def issuer_answers(**options: object) -> list[Error]:
    """Let `check --deploy` ask the issuer; only then are the libraries for that loaded."""
    from sonar.people import issuer

    return issuer.check(**options)


class SonarConfig(AppConfig):
    name = "sonar"
    verbose_name = "Sonar"

    def ready(self) -> None:
        from sonar.database import sessions, tables
        from sonar.people import accounts, roles
        from sonar.processes import heartbeats

        register(tables.check, Tags.database)
        register(accounts.check, Tags.database)
        register(issuer_answers, deploy=True)

        sessions.when_disk_full[:] = [heartbeats.note_full_disk]
        pre_migrate.connect(
            tables.refuse_to_go_back, sender=self, dispatch_uid="sonar.database.tables"
        )
        post_migrate.connect(roles.ensure_operators, sender=self, dispatch_uid="sonar.people.roles")
