"""Who changed what: the question of the page and the call, the entries of it, and their words."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django import forms
from django.db.models import Q, QuerySet

from matrix.query.forms import (
    BadQueryError,
    Moment,
    OneOf,
    ParameterField,
    check_names,
    check_once,
    sentences_of,
)
from sonar.credentials.redacted import without_tokens
from sonar.models import HistoryEntry
from sonar.notation.units import exact_bytes, exact_duration
from sonar.notation.windows import format_bound, format_time
from sonar.people import roles
from sonar.people.roles import Anyone
from sonar.registry import redacted

SEE = "sonar.view_historyentry"
ORDER = ("-at", "-id")
# What an admin of a site sees of it: the rest names what only operators may see.
OF_SITES = (HistoryEntry.Kind.SITE, HistoryEntry.Kind.ENDPOINT, HistoryEntry.Kind.DOWNTIME)
CHOICES = {"kind": HistoryEntry.Kind.values, "channel": HistoryEntry.Channel.values}
TEXTS = ("name", "who")
LONGEST = 400
FIELDS = ("kind", "name", "who", "channel")
PARAMETERS = (*FIELDS, "from", "to")
CHANNEL_WORDS = {
    HistoryEntry.Channel.PAGE: "on a page",
    HistoryEntry.Channel.API: "through the API",
    HistoryEntry.Channel.ADMIN: "in the admin interface",
    HistoryEntry.Channel.FILE: "from a file",
    HistoryEntry.Channel.COMMAND: "by a command",
    HistoryEntry.Channel.REFRESH: "by a refresh",
    HistoryEntry.Channel.LOG_IN: "during log-in",
    HistoryEntry.Channel.DATABASE: "directly in the database",
}
# What columns are called in no place but here.
LABELS = {
    "base_url": "base URL",
    "is_active": "active",
    "is_staff": "may use the admin",
    "is_superuser": "administrator",
    "wan_gbit_s": "WAN capacity in Gbit/s",
    "floor_mb_s": "minimum rate in MB/s",
    "rate_mb_s": "rate in MB/s",
}
# What a thing is called stands beside what became of it.
NAMES = ("name", "username")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)\S*")
# So many members of a list are written out; of more only those that came or went.
MOST_MEMBERS = 6
# And so many changes in the sentence on the last one.
MOST_CHANGES = 3


class PlainText(ParameterField):
    def to_python(self, value: str | None) -> str:
        text = (value or "").strip()
        if len(text) > LONGEST or not text.isprintable():
            raise forms.ValidationError(
                f"{self.parameter} must be at most {LONGEST} printable characters."
            )
        return text


class QuestionForm(forms.Form):
    def __init__(self, params: Mapping[str, Sequence[str]]) -> None:
        super().__init__({name: next(iter(texts), "") for name, texts in params.items()})
        self.fields |= {name: OneOf(name, allowed) for name, allowed in CHOICES.items()}
        self.fields |= {name: PlainText(name) for name in TEXTS}
        self.fields |= {name: Moment(name) for name in ("from", "to")}
        self.params = params

    def clean(self) -> dict[str, Any]:
        check_once(self, self.params, PARAMETERS)
        start, end = self.cleaned_data.get("from"), self.cleaned_data.get("to")
        if start and end and start >= end:
            self.add_error("from", "“from” must be before “to”.")
        return self.cleaned_data


@dataclass(frozen=True)
class HistoryQuestion:
    """Which entries: those of a thing, of who changed it, through which channel, and when."""

    kind: str = ""
    name: str = ""
    who: str = ""
    channel: str = ""
    start: datetime | None = None
    end: datetime | None = None

    @classmethod
    def read(cls, params: Mapping[str, Sequence[str]], others: Iterable[str] = ()) -> Self:
        """Read the parameters; raise BadQueryError."""
        check_names(params, (*PARAMETERS, *others))
        form = QuestionForm(params)
        if not form.is_valid():
            raise BadQueryError(sentences_of(form))
        values = form.cleaned_data
        texts = {name: values[name] for name in FIELDS}
        return cls(**texts, start=values["from"], end=values["to"])

    def to_params(self) -> dict[str, list[str]]:
        times = {"from": self.start, "to": self.end}
        texts = {name: getattr(self, name) for name in FIELDS}
        written = {name: format_time(time) for name, time in times.items() if time}
        return {name: [text] for name, text in (texts | written).items() if text}

    @property
    def bounds(self) -> dict[str, str]:
        """Return the times as the fields of a form have them."""
        times = {"from": self.start, "to": self.end}
        return {name: format_bound(time) if time else "" for name, time in times.items()}

    def rows(self, reader: Anyone) -> QuerySet[HistoryEntry]:
        texts = {name: getattr(self, name) for name in FIELDS}
        chosen = Q(**{name: text for name, text in texts.items() if text})
        if self.start:
            chosen &= Q(at__gte=self.start)
        if self.end:
            chosen &= Q(at__lt=self.end)
        return visible_to(reader).filter(chosen)


def visible_to(reader: Anyone) -> QuerySet[HistoryEntry]:
    """Return the entries that somebody may see: all, or those of the own sites. No SQL query."""
    if roles.may(reader, SEE):
        return HistoryEntry.objects.all()
    return HistoryEntry.objects.filter(site__in=roles.sites_of(reader), kind__in=OF_SITES)


@dataclass(frozen=True)
class FieldChange:
    """What a field was and is, as it is kept: null for nothing."""

    field: str
    old: Any
    new: Any

    @property
    def label(self) -> str:
        return LABELS.get(self.field) or self.field.replace(".", " of ").replace("_", " ")

    @property
    def words(self) -> str:
        return f"{self.label}: {self.old_words} → {self.new_words}"

    @property
    def old_words(self) -> str:
        return words_of(self.field, self.old, self.new)

    @property
    def new_words(self) -> str:
        return words_of(self.field, self.new, self.old)


@dataclass(frozen=True)
class HistoryLine:
    entry: HistoryEntry
    changes: tuple[FieldChange, ...]

    @property
    def who_words(self) -> str:
        """Say who it was: `anna, with the token cron-at-ral`."""
        who = self.entry.who or "a user who was not logged in"
        return f"{who}, with the token {self.entry.token}" if self.entry.token else who

    @property
    def channel_words(self) -> str:
        return CHANNEL_WORDS[HistoryEntry.Channel(self.entry.channel)]

    @property
    def by_words(self) -> str:
        """Say who it was, and how unless that was on a page."""
        is_usual = self.entry.channel == HistoryEntry.Channel.PAGE
        return self.who_words if is_usual else f"{self.who_words} {self.channel_words}"

    @property
    def words(self) -> str:
        return "; ".join(change.words for change in self.changes)

    @property
    def facts(self) -> list[FieldChange]:
        """Return what a page says of it; the name of a new thing stands there already."""
        is_changed = self.entry.action == HistoryEntry.Action.CHANGED
        return [change for change in self.changes if is_changed or change.field not in NAMES]

    @property
    def sentence(self) -> str:
        """Say what became of it: `inbound cap: 4 → 8`."""
        if self.entry.action != HistoryEntry.Action.CHANGED:
            return self.entry.action
        more = len(self.changes) - MOST_CHANGES
        words = "; ".join(change.words for change in self.changes[:MOST_CHANGES])
        return f"{words}; and {more} more" if more > 0 else words


def lines_of(entries: Iterable[HistoryEntry]) -> Iterator[HistoryLine]:
    """Yield entries with what is known to be secret taken out. One SQL query, seldom more."""
    redacted.servers()  # lets `without_tokens` know of secrets that were uploaded
    for entry in entries:
        changes = (
            FieldChange(field, _redacted(old), _redacted(new))
            for field, (old, new) in sorted(entry.changes.items())
        )
        yield HistoryLine(entry, tuple(changes))


def last_of(kind: HistoryEntry.Kind, key: int, reader: Anyone) -> HistoryLine | None:
    """Return the last change of a thing that somebody may see. Two SQL queries, seldom more."""
    entry = visible_to(reader).filter(kind=kind, key=key).order_by(*ORDER).first()
    return next(lines_of([entry])) if entry else None


def _redacted(value: Any) -> Any:  # noqa: ANN401 - as JSON has it
    if isinstance(value, str):
        return without_tokens(value)
    if isinstance(value, list):
        return [_redacted(each) for each in value]
    if isinstance(value, dict):
        return {name: _redacted(each) for name, each in value.items()}
    return value


def words_of(field: str, value: Any, other: Any = None) -> str:  # noqa: ANN401 - as JSON has it
    """Write a value of a field, for people; of a long list what the ``other`` one lacks."""
    if value is None or value == []:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number_words(field, value)
    if isinstance(value, list):
        return list_words(value, other if isinstance(other, list) else [])
    if isinstance(value, dict):
        return "&".join(f"{name}={','.join(map(str, texts))}" for name, texts in value.items())
    match = MOMENT.fullmatch(str(value))
    return f"{match[1]} {match[2].removesuffix(':00')} UTC" if match else str(value)


def number_words(field: str, value: int) -> str:
    if "bytes" in field:
        return exact_bytes(value)
    return exact_duration(value) if "seconds" in field or "intervals" in field else str(value)


def list_words(members: Sequence[Any], others: Sequence[Any]) -> str:
    if len(members) <= MOST_MEMBERS:
        return ", ".join(map(str, members))
    apart = [str(member) for member in members if member not in others]
    rest = len(members) - len(apart)
    return ", ".join([*apart, f"{rest} others"] if rest else apart)
