"""A resource of the registry: the one description that its calls, schema, CSV and rights follow."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import ClassVar, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from matrix.api.parameters import named, one_of, text_of, wrong
from matrix.api.registry.values import Values, change_of
from matrix.api.rendering import Json
from matrix.api.schema import parameters as schema
from matrix.api.schema.records import moment
from matrix.api.schema.schemas import Answer, Body
from matrix.http.permissions import allow, refused, sees
from matrix.query.forms import Moment
from matrix.store.keyset import Place
from sonar.models.fields import NAME
from sonar.people import roles
from sonar.people.roles import Anyone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Order:
    """By columns that no two rows share; ``pattern`` is what a cursor looks like."""

    fields: tuple[str, ...]
    pattern: str

    def read(self, cursor: str) -> Place:
        """Return the place that a cursor says; raise ValueError for what is no cursor."""
        match = re.fullmatch(self.pattern, cursor)
        if match is None:
            raise ValueError(cursor)
        return self.place(match)

    def place(self, match: re.Match[str]) -> Place:
        return (match[0],)

    def write(self, place: Place) -> str:
        return str(place[0])


class ByStart(Order):
    def place(self, match: re.Match[str]) -> Place:
        return EPOCH + int(match[1]) * MICROSECOND, int(match[2])

    def write(self, place: Place) -> str:
        start, key = place
        return f"{(start - EPOCH) // MICROSECOND}.{key}"


BY_NAME = Order(("name",), NAME)
BY_ID = Order(("id",), "[0-9]{1,19}")
BY_SIZE = Order(("from_bytes",), "[0-9]{1,19}")
NEWEST_FIRST = ByStart(("-starts_at", "-id"), r"(-?[0-9]{1,18})\.([0-9]{1,19})")


Row = TypeVar("Row", bound=Model)
YES_OR_NO = ("true", "false")
LONGEST = 80  # characters


@dataclass(frozen=True)
class Parameter:
    """What chooses among rows: parameters as the schema has them, and how they are read.

    ``read`` raises BadQueryError.
    """

    schema: tuple[OpenApiParameter, ...]
    read: Callable[[QueryDict], Q]


def of_row(
    name: str,
    description: str,
    example: str,
    model: type[Row],
    where: Callable[[Row], Q] | None = None,
) -> Parameter:
    """The name of a registered row, which ``where`` makes a condition of; else a field has it."""

    def read(params: QueryDict) -> Q:
        row = named(params, name, model)
        return Q() if row is None else where(row) if where else Q((name, row))

    return Parameter((schema.text(name, description, example),), read)


def of_words(name: str, description: str, example: str, *columns: str) -> Parameter:
    """A text, which may be any, and which one of these columns has."""

    def read(params: QueryDict) -> Q:
        value = text_of(params, name)
        if len(value) > LONGEST or not value.isprintable():
            raise wrong(name, f"“{name}” must be at most {LONGEST} printable characters.")
        # A list of texts contains a list.
        conditions = (
            Q((column, [value] if column.endswith("__contains") else value)) for column in columns
        )
        return reduce(or_, conditions) if value else Q()

    return Parameter((schema.text(name, description, example),), read)


def yes_or_no(name: str, description: str, where: Callable[[], Q]) -> Parameter:
    """Those for which ``where`` holds, or only others."""

    def read(params: QueryDict) -> Q:
        value = one_of(params, name, YES_OR_NO)
        return Q() if not value else where() if value == "true" else ~where()

    return Parameter((schema.choice(name, YES_OR_NO, description),), read)


def at_present() -> Q:
    """Return what holds for rows whose time is now."""
    now = timezone.now()
    return Q(starts_at__lte=now) & (Q(ends_at__isnull=True) | Q(ends_at__gt=now))


def holding(params: QueryDict) -> Q:
    """Return what holds for rows whose time has something of that from `from` to `to`."""
    start, end = time_of(params, "from"), time_of(params, "to")
    if start and end and start >= end:
        raise wrong("from", "“from” must be before “to”.")
    before_end = Q(starts_at__lt=end) if end else Q()
    return before_end & (Q(ends_at__isnull=True) | Q(ends_at__gt=start)) if start else before_end


def time_of(params: QueryDict, name: str) -> datetime | None:
    try:
        value: datetime | None = Moment(name).clean(text_of(params, name))
    except ValidationError as error:
        raise wrong(name, error.messages[0]) from error
    return value


BOUNDS = Parameter(
    tuple(
        schema.text(name, sentence, example)
        for name, sentence, example in (
            (
                "from",
                "Return only objects whose period ends after this time (ISO 8601). Default: no "
                "limit.",
                "2026-11-20T00:00:00Z",
            ),
            (
                "to",
                "Return only objects whose period begins before this time (ISO 8601). Default: no "
                "limit.",
                "2026-11-21T00:00:00Z",
            ),
        )
    ),
    holding,
)


@dataclass(frozen=True)
class CallText:
    """What a call does: in a few words, and what else there is to know."""

    summary: str
    text: str = ""


class Resource(Generic[Row]):
    """What one module says of one resource. `views.routes` makes its calls and their URLs.

    Names come from the model: `size class` is at size-classes/, listed as `size_classes`, its
    body to change one is SizeClassChange, and its permissions are sonar.add_sizeclass and so on.
    Fields that name another row are the foreign keys of the model among those of ``new``.
    """

    model: type[Row]
    # The body that makes a row; in the one that changes it no field is required.
    new: type[Body]
    # A row as it is answered, whose fields are the columns of CSV; and the answer to a write.
    answer: type[Answer]
    written: type[Answer] | None = None
    # By `list`, `add`, `show`, `change` and `remove`: those that there are.
    calls: Mapping[str, CallText]
    missing = "No {word} “{key}” is registered."
    order: Order = BY_NAME
    # Those of the list that choose among rows.
    parameters: Sequence[Parameter] = ()
    # The field that a rule about several fields is said to be broken by.
    field_of: ClassVar[Mapping[str, str]] = {}
    checks_constraints = True
    # What an admin of its site may change of a row; empty for all of it.
    site_fields: Sequence[str] = ()
    # The fields of a record that are only for who may view the row in the admin.
    internal: Collection[str] = ()

    # What follows of these. A row is found by its name, or by its id if it has none, or if a
    # resource says so, as others may have the same name.
    word: str
    plural: str
    slug: str
    field: str
    route: str
    row_route: str
    key: str
    change: type[Body]
    # The fields that name another row, and of which model.
    references: Mapping[str, type[Model]]

    def __init_subclass__(cls) -> None:
        """Derive the names, the body of a change, and which fields name another row."""
        names = cls.model._meta
        # A resource whose routes have another word than pages says it itself.
        cls.word = vars(cls).get("word") or str(names.verbose_name)
        cls.plural = vars(cls).get("plural") or str(names.verbose_name_plural)
        cls.slug, cls.field = cls.plural.replace(" ", "-"), cls.plural.replace(" ", "_")
        cls.route, cls.row_route = f"api-{cls.slug}", f"api-{cls.word.replace(' ', '-')}"
        cls.key = vars(cls).get("key") or ("name" if "name" in cls.new.model_fields else "id")
        cls.change = change_of(cls.new, f"{cls.model.__name__}Change")
        cls.references = {
            column.name: column.related_model
            for column in names.get_fields()
            if column.name in cls.new.model_fields
            and column.many_to_one
            and isinstance(column.related_model, type)
        }

    def rows(self) -> QuerySet[Row]:
        """Return all rows, with what a record needs of other tables."""
        return self.model._default_manager.select_related(*self.references)

    def visible_to(self, reader: Anyone) -> Q:
        """Return what holds for the rows that somebody may know of."""
        return Q()

    def records(self, rows: Iterable[Row], request: Request) -> list[Json]:
        """Return rows as they are answered; what all of them need is read once."""
        return [self.record(row, request) for row in rows]

    def record(self, row: Row, request: Request) -> Json:
        """Return a row as it is answered, as far as the reader may see it."""
        hidden, others = self.hidden(row, request), self.others(row)
        record = {}
        for name in self.answer.model_fields:
            if name in hidden:
                continue
            value = others[name] if name in others else getattr(row, name)
            if isinstance(value, Model):
                value = str(value)  # its name
            record[name] = moment(value) if isinstance(value, datetime) else value
        return record

    def others(self, row: Row) -> Json:
        """Return fields of a record that are no columns of the row, or written otherwise."""
        return {}

    def hidden(self, row: Row, request: Request) -> Collection[str]:
        """Name the fields of a record that the reader may not see."""
        may_see = not self.internal or sees(request, self.permission("view"), self.sites(row))
        return () if may_see else self.internal

    def remarks(self, row: Row, values: Values) -> Json:
        """Return what the answer to a write says besides the row."""
        return {}

    def sites(self, row: Row) -> Collection[int]:
        """Return the ids of the sites that a row concerns, whose admins may write it."""
        return ()

    def begin(self, request: Request) -> Row:
        return self.model()

    def columns_of(self, row: Row, values: Values) -> Values:
        """Return values by column of the model; those that are kept elsewhere are left out."""
        return values

    def signature(self, row: Row, columns: Values, request: Request) -> Values:
        """Return columns that say who wrote: of a row as it was, and ``columns`` to be set."""
        return {}

    def save_related(self, row: Row, values: Values) -> None:
        """Write what is kept elsewhere, once the row is there; raise BadQueryError."""

    def check(self, row: Row) -> None:
        """Raise BadQueryError for what a row on its own cannot tell."""

    def allow_change(self, request: Request, row: Row, values: Values) -> None:
        """Raise the error for who may not change this; the row is as it was, or as it will be."""
        self.allow(request, "change", row)
        beyond = [name for name in values if self.site_fields and name not in self.site_fields]
        if beyond and not roles.may(request.user, self.permission("change")):
            allowed = ", ".join(f"“{name}”" for name in self.site_fields)
            sentence = f"Admins of the site can change {allowed}, but not “{beyond[0]}”."
            raise refused(request, sentence)

    def allow(self, request: Request, verb: str, row: Row) -> None:
        allow(request, self.permission(verb), self.sites(row))

    def permission(self, verb: str) -> str:
        return f"sonar.{verb}_{self.model._meta.model_name}"

    def refuse_removal(self, row: Row) -> None:
        """Raise Conflict if something needs the row."""
