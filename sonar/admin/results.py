"""What Sonar writes itself: tests, results, and files that could not be deleted."""

from django.contrib import admin

from sonar.admin.rows import OnlyLookedAt
from sonar.models import Leftover, Probe, Transfer
from sonar.notation.units import format_bytes, format_rate, three_digits


@admin.register(Probe)
class TestAdmin(OnlyLookedAt):
    list_display = ["id", "source", "destination", "size_class", "state", "started_at", "worker"]
    list_filter = ["state", "size_class"]
    list_select_related = ["source", "destination", "size_class"]
    first = ["source", "destination", "size_class", "size", "state", "started_at", "waits_because"]
    shown_with_unit = ["bytes"]

    @admin.display(description="file size")
    def size(self, probe: Probe) -> str:
        return format_bytes(probe.bytes)


@admin.register(Transfer)
class ResultAdmin(OnlyLookedAt):
    list_display = ["started_at", "source", "destination", "size", "rate", "state", "error_where"]
    list_filter = ["state", "error_where", "size_class"]
    list_select_related = ["source", "destination"]
    search_fields = ["source__name", "destination__name", "error"]
    ordering = ["-started_at"]
    show_full_result_count = False  # counting all results costs a full scan
    first = [
        *("started_at", "source", "destination", "size_class"),
        *("size", "duration", "rate", "state", "error_where", "error"),
    ]
    shown_with_unit = ["bytes", "seconds"]

    @admin.display(description="file size")
    def size(self, transfer: Transfer) -> str:
        return format_bytes(transfer.bytes)

    @admin.display(description="duration")
    def duration(self, transfer: Transfer) -> str:
        return f"{three_digits(transfer.seconds)} s"

    @admin.display(description="rate")
    def rate(self, transfer: Transfer) -> str:
        done = transfer.state == Transfer.State.DONE
        return format_rate(transfer.bytes / transfer.seconds) if done else ""


@admin.register(Leftover)
class LeftoverAdmin(OnlyLookedAt):
    list_display = ["path", "endpoint", "since", "tries", "next_try", "error"]
    list_select_related = ["endpoint"]
    first = ["path", "endpoint", "since", "tries", "next_try", "error"]
