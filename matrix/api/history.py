"""GET /api/v1/history/: who changed what of the registry, accounts and rights, newest first."""

from typing import Annotated, Any, Literal, TypeAlias

from django.http.response import HttpResponseBase
from rest_framework.request import Request

from matrix.answers import registry_history
from matrix.answers.registry_history import CHOICES, SEE, HistoryQuestion
from matrix.api.base import ApiView
from matrix.api.parameters import OF_TRANSFERS, PAGING, PageRequest, following
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import choice, paging, text
from matrix.api.schema.records import At, Moment, Text, record
from matrix.api.schema.schemas import Answer, Listed, word_of
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import MaySee
from matrix.store import keyset
from matrix.store.keyset import Cursor

Value: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None


class FieldOfHistory(Answer):
    """A field with its value before and after a change."""

    field: str
    old: Value
    new: Value


class EntryOfHistory(Answer):
    """A change to a registry object, an account, a group or a token."""

    id: Annotated[int, At("entry.id")]
    at: Annotated[Moment, At("entry.at")]
    who: Annotated[Text, At("entry.who")]
    token: Annotated[Text, At("entry.token")]
    channel: Annotated[str, word_of(CHOICES["channel"]), At("entry.channel")]
    kind: Annotated[str, word_of(CHOICES["kind"]), At("entry.kind")]
    name: Annotated[str, At("entry.name")]
    action: Annotated[Literal["added", "changed", "removed"], At("entry.action")]
    changes: list[FieldOfHistory]


# All of some years, in one CSV.
MOST_ROWS = 100_000

HISTORY = described(
    "List changes to the registry, accounts and rights",
    answer=Listed("history", EntryOfHistory),
    parameters=[
        choice("kind", CHOICES["kind"], "Only changes to objects of this kind. Default: all."),
        text(
            "name",
            "Only changes to the object that had this name at the time of the change.",
            "GLASGOW_DATADISK",
        ),
        text("who", "Only changes that this account or process made.", "anna"),
        choice(
            "channel",
            CHOICES["channel"],
            "Only changes that were made through this channel. Default: all.",
        ),
        text("from", "Only changes at or after this time, ISO 8601.", "2026-11-20T00:00:00Z"),
        text("to", "Only changes before this time, ISO 8601.", "2026-11-21T00:00:00Z"),
        *paging(OF_TRANSFERS),
    ],
    formats=LIST,
    tag="registry",
)


class HistoryView(ApiView):
    permission_classes = [MaySee.of(SEE)]

    @HISTORY
    def get(self, request: Request) -> HttpResponseBase:
        """Returns changes, newest first, each with its account and the old and new values.

        Operators see all changes; site admins see the changes to their sites and endpoints.
        In CSV, `changes` is a sentence.
        """
        question = HistoryQuestion.read(dict(request.query_params.lists()), (*PAGING, "format"))
        form = asked_format(request, LIST)
        page = PageRequest.read(request, form, Cursor.parse_numbered, OF_TRANSFERS)
        size = page.size if form == "json" else MOST_ROWS
        rows = question.rows(request.user)
        entries, last = keyset.page_by_time(rows, registry_history.ORDER, size, page.after)
        lines = registry_history.lines_of(entries)
        records = [
            record(EntryOfHistory, line) | ({"changes": line.words} if form == "csv" else {})
            for line in lines
        ]
        if form != "json":
            return as_rows(records, form, tuple(EntryOfHistory.model_fields), file_name("history"))
        return as_json({"history": records, "next": following(request, last)})
