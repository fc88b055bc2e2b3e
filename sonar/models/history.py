"""Who changed what of the registry, of accounts and of their rights, and what it was before."""

from django.db import models


class HistoryEntry(models.Model):
    """One thing as one statement changed it. Triggers write it, whoever sends the statement.

    It is in the transaction of the change (migration 0042), and refers to nothing: what it tells
    of may be gone. ``changes`` has by field the value before and the value since.
    """

    class Channel(models.TextChoices):
        """How the change was made; `sonar.database.actor` passes it to the triggers."""

        PAGE = "page"
        API = "API"
        ADMIN = "admin"
        FILE = "file"
        COMMAND = "command"
        REFRESH = "refresh"
        LOG_IN = "log-in"
        DATABASE = "database"

    class Kind(models.TextChoices):
        SITE = "site"
        ENDPOINT = "endpoint"
        CREDENTIAL = "credential"
        MESH = "mesh"
        SIZE_CLASS = "size class"
        CRITERIA_SET = "criteria set"
        DOWNTIME = "downtime"
        ALIAS = "alias"
        TOPOLOGY_SOURCE = "topology source"
        TARGET = "target"
        SUBSCRIPTION = "subscription"
        BASELINE = "baseline"
        ALL_TESTS = "all tests"
        TEST = "test"
        ACCOUNT = "account"
        GROUP = "group"
        TOKEN = "token"  # noqa: S105 - what it is, not one

    class Action(models.TextChoices):
        ADDED = "added"
        CHANGED = "changed"
        REMOVED = "removed"

    at = models.DateTimeField(help_text="Time when the change was made.")
    channel = models.CharField(max_length=10, choices=Channel)
    who = models.TextField(
        help_text="Account or process that made the change. Empty if no user was logged in."
    )
    token = models.TextField(
        help_text="Name of the API token that was used. Empty if there was none."
    )
    kind = models.CharField(max_length=20, choices=Kind)
    key = models.BigIntegerField(help_text="Id of the changed object, unique within its kind.")
    name = models.TextField(help_text="Name of the changed object at the time of the change.")
    site = models.BigIntegerField(
        null=True,
        help_text="Id of the site that the changed object belonged to. Empty if it had none.",
    )
    action = models.CharField(max_length=7, choices=Action)
    changes = models.JSONField()

    class Meta:
        verbose_name_plural = "history entries"
        indexes = [
            # Lists: the newest first.
            models.Index(fields=["-at", "-id"], name="history_newest_first"),
            # What a page of a site or an endpoint shows: its last change.
            models.Index(fields=["kind", "key", "-at", "-id"], name="history_of_a_thing"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.action} {self.at:%Y-%m-%d %H:%M}"
