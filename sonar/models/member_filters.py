"""The columns that say by a filter which endpoints a mesh tests, or a criteria set judges."""

from django.db import models
from django.db.models import Value

ENDS = ("sources", "destinations")


def filter_column(end: str) -> str:
    """Return the column with the filter of an end: `sources_filter`."""
    return f"{end}_filter"


def filter_field(end: str) -> models.JSONField:
    """Return the column of a filter (sonar.notation.endpoint_filters); {} for none."""
    return models.JSONField(
        f"filter for {end}",
        blank=True,
        default=dict,
        db_default=Value({}, models.JSONField()),
        help_text="Use the same syntax as in the URL of the matrix: "
        "cloud=UK&label=DATADISK&tag=!tape. Endpoints that match the filter later are included "
        "automatically.",
    )


class MemberFilters(models.Model):
    """The filters of a row; a mesh names no endpoints at an end that has one."""

    sources_filter = filter_field(ENDS[0])
    destinations_filter = filter_field(ENDS[1])

    class Meta:
        abstract = True

    def filter_of(self, end: str) -> dict[str, list[str]]:
        """Return the filter of its `sources` or `destinations`, empty if it has none there."""
        chosen: dict[str, list[str]] = getattr(self, filter_column(end))
        return chosen
