"""A kind of row of the registry: what the calls for it need to know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from matrix.api.registry.deserialise import Values
from matrix.api.registry.ordering import BY_NAME, Order
from matrix.api.registry.rendering import Json
from matrix.api.schema.schemas import Body
from matrix.http.permissions import allow
from sonar.models import Credential, Endpoint, Site
from sonar.roles import Anyone

Row = TypeVar("Row", bound=Model)


class Kind(ABC, Generic[Row]):
    """One kind. Its methods get rows, values as `reading` has checked them, and who asks."""

    model: type[Row]
    plural: str
    # How a row is found: by `name`, or by `id` for those that have none.
    key: str = "name"
    missing = "No {word} “{key}” is registered."
    order: Order = BY_NAME
    new: type[Body]
    change: type[Body]
    # Those of CSV.
    columns: Sequence[str]
    # Those of its list that choose among rows.
    parameters: Sequence[OpenApiParameter] = ()
    # Fields that name another row; an empty name stands for none.
    references: ClassVar[Mapping[str, type[Site] | type[Endpoint] | type[Credential]]] = {}
    # The field that a rule about several fields is said to be broken by.
    field_of: ClassVar[Mapping[str, str]] = {}
    checks_constraints = True

    @property
    def word(self) -> str:
        return str(self.model._meta.verbose_name)

    def rows(self) -> QuerySet[Row]:
        """Return all rows, with what a record needs of other tables."""
        return self.model._default_manager.select_related(*self.references)

    def visible_to(self, reader: Anyone) -> Q:
        """Return what holds for the rows that somebody may know of."""
        return Q()

    def chosen(self, params: QueryDict) -> Q:
        """Return what the parameters choose by; raise BadQueryError."""
        return Q()

    @abstractmethod
    def record(self, row: Row, request: Request) -> Json:
        """Return a row as it is answered, as far as the reader may see it."""

    def told(self, row: Row, values: Values) -> Json:
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

    def hang(self, row: Row, values: Values) -> None:
        """Write what is kept elsewhere, once the row is there; raise BadQueryError."""

    def check(self, row: Row) -> None:
        """Raise BadQueryError for what a row on its own cannot tell."""

    def allow_change(self, request: Request, row: Row, values: Values) -> None:
        """Raise the error for who may not change this; the row is as it was, or as it will be."""
        self.allow(request, "change", row)

    def allow(self, request: Request, verb: str, row: Row) -> None:
        allow(request, self.permission(verb), self.sites(row))

    def permission(self, verb: str) -> str:
        return f"sonar.{verb}_{self.model._meta.model_name}"

    def refuse_removal(self, row: Row) -> None:
        """Raise Conflict if something needs the row."""
