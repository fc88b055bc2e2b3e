"""What all commands of Sonar's own have in common, and tables in a terminal."""

from collections.abc import Sequence

from django.core.management.base import BaseCommand


class QuickCommand(BaseCommand):
    """A command that begins without Django's checks: for those it would load every page.

    They are no more than `manage.py check` says, and take three quarters of its start.
    """

    requires_system_checks: tuple[str, ...] = ()


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Write rows below each other, each column as wide as what it holds."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
