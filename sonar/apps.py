"""The Django app of the registry, the probes and the results."""

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db.models.signals import post_migrate, pre_migrate


def issuer_answers(**options: object) -> list[Error]:
    """Let `check --deploy` ask the issuer; only then are the libraries for that loaded."""
    from sonar.people import issuer

    return issuer.check(**options)


def notifications_leave(**options: object) -> list[CheckMessage]:
    """Let `check --deploy` name the settings without which no notification is sent."""
    if not settings.SONAR_URL:
        sentence = "SONAR_URL is not set: neither notifications nor reports are sent."
        hint = (
            "Set SONAR_URL to the address of the front page, for example https://sonar.example.org."
        )
        return [CheckWarning(sentence, hint=hint, id="sonar.W003")]
    if not settings.EMAIL_HOST:
        sentence = "SONAR_SMTP_HOST is not set: no e-mail is sent."
        hint = (
            "Set SONAR_SMTP_HOST and SONAR_MAIL_FROM, unless all subscriptions use other channels."
        )
        return [Info(sentence, hint=hint, id="sonar.I001")]
    return []


def note_full_disk() -> None:
    from sonar.processes import full_disk  # which loads redis-py

    full_disk.note()


class SonarConfig(AppConfig):
    name = "sonar"
    verbose_name = "Sonar"

    def ready(self) -> None:
        from sonar.database import sessions, tables
        from sonar.people import accounts, roles

        register(tables.check, Tags.database)
        register(accounts.check, Tags.database)
        register(issuer_answers, deploy=True)
        register(notifications_leave, deploy=True)

        sessions.when_disk_full[:] = [note_full_disk]
        pre_migrate.connect(
            tables.refuse_to_go_back, sender=self, dispatch_uid="sonar.database.tables"
        )
        post_migrate.connect(roles.ensure_operators, sender=self, dispatch_uid="sonar.people.roles")
