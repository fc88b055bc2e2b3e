"""A resource of the registry: the one description that its calls, schema, CSV and rights follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from rest_framework.request import Request

from matrix.api.registry.deserialise import Values, change_of
from matrix.api.registry.ordering import BY_NAME, Order
from matrix.api.registry.parameters import Parameter
from matrix.api.registry.rendering import Json, moment
from matrix.api.schema.schemas import Answer, Body
from matrix.http.permissions import allow, refused
from sonar.people import roles
from sonar.people.roles import Anyone

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class CallText:
    """What a call does: in a few words, and what else there is to know."""

    summary: str
    text: str = ""


@dataclass(frozen=True)
class Examples:
    """A row as everybody reads it, a body that makes it, and one that changes it.

    ``added`` and ``changed`` are what the answers to these bodies have that the row has not.
    """

    row: Json
    new: Json
    change: Json
    added: Json = field(default_factory=dict)
    changed: Json = field(default_factory=dict)


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
    examples: Examples
    missing = "No {word} “{key}” is registered."
    order: Order = BY_NAME
    # Those of the list that choose among rows.
    parameters: Sequence[Parameter] = ()
    # The field that a rule about several fields is said to be broken by.
    field_of: ClassVar[Mapping[str, str]] = {}
    checks_constraints = True
    # What an admin of its site may change of a row; empty for all of it.
    site_fields: Sequence[str] = ()

    # What follows of these. A row is found by its name, or by its id if it has none.
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
        cls.key = "name" if "name" in cls.new.model_fields else "id"
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
        return ()

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

    def hang(self, row: Row, values: Values) -> None:
        """Write what is kept elsewhere, once the row is there; raise BadQueryError."""

    def check(self, row: Row) -> None:
        """Raise BadQueryError for what a row on its own cannot tell."""

    def allow_change(self, request: Request, row: Row, values: Values) -> None:
        """Raise the error for who may not change this; the row is as it was, or as it will be."""
        self.allow(request, "change", row)
        beyond = [name for name in values if self.site_fields and name not in self.site_fields]
        if beyond and not roles.may(request.user, self.permission("change")):
            allowed = ", ".join(self.site_fields)
            raise refused(
                request, f"An admin of the site may change {allowed}, but not {beyond[0]}."
            )

    def allow(self, request: Request, verb: str, row: Row) -> None:
        allow(request, self.permission(verb), self.sites(row))

    def permission(self, verb: str) -> str:
        return f"sonar.{verb}_{self.model._meta.model_name}"

    def refuse_removal(self, row: Row) -> None:
        """Raise Conflict if something needs the row."""
