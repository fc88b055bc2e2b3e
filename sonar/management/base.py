"""What all commands of Sonar's own have in common."""

from django.core.management.base import BaseCommand


class QuickCommand(BaseCommand):
    """A command that begins without Django's checks: for those it would load every page.

    They are no more than `manage.py check` says, and take three quarters of its start.
    """

    requires_system_checks: tuple[str, ...] = ()
