"""The calls of a resource, made from its description: views, their routes, and what they write.

Values become a row that is checked and kept, all or nothing, one write after the other.
"""

import logging
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Model, ProtectedError, QuerySet
from django.http import Http404, HttpResponse
from django.urls import URLPattern, path
from psycopg.errors import DeadlockDetected
from rest_framework.request import Request

from matrix.api.base import ApiView
from matrix.api.parameters import PAGING, PageRequest, following, wrong
from matrix.api.registry.resource import Resource
from matrix.api.registry.values import Values, values_of
from matrix.api.rendering import as_json, as_rows, file_name
from matrix.api.schema.describe import described
from matrix.api.schema.parameters import paging
from matrix.api.schema.schemas import Listed
from matrix.http.exceptions import Conflict
from matrix.http.negotiation import LIST, asked_format
from matrix.http.permissions import reader_of
from matrix.query import addresses
from matrix.query.forms import BadQueryError, check_names
from matrix.store import keyset
from sonar.models import Version
from sonar.models.fields import TAKEN
from sonar.notation.enumeration import not_registered
from sonar.people.roles import Anyone

Handler = Callable[..., HttpResponse]
Row = TypeVar("Row", bound=Model)
Result = TypeVar("Result")
log = logging.getLogger(__name__)

REFUSED = (
    "Another change to the registry conflicts with this request. Read the object again, then retry."
)


class ResourceView(ApiView):
    """A list, or one row of it. What a subclass answers itself is not made anew."""

    resource: ClassVar[Resource[Any]]


def routes(
    resource: Resource[Any], lists: type[ApiView] = ResourceView, rows: type[ApiView] = ResourceView
) -> list[URLPattern]:
    """Return `v1/size-classes/` and `v1/size-classes/<str:name>/`, named `api-size-class(es)`.

    Their views have the methods of ``lists`` and ``rows``, and those that the resource describes.
    """
    place = f"v1/{resource.slug}/"
    row = f"{place}<{'str' if resource.key == 'name' else 'int'}:{resource.key}>/"
    return [
        path(place, view(resource, lists, LIST_CALLS).as_view(), name=resource.route),
        path(row, view(resource, rows, ROW_CALLS).as_view(), name=resource.row_route),
    ]


def view(
    resource: Resource[Any], base: type[ApiView], calls: dict[str, tuple[str, Handler]]
) -> type[ApiView]:
    methods = {
        verb: method(resource, verb, name, handler)
        for verb, (name, handler) in calls.items()
        if name in resource.calls
    }
    needs = {
        verb.upper(): resource.permission(WRITES[name])
        for verb, (name, _) in calls.items()
        if name in WRITES
    }
    attributes = {"resource": resource, "needs": needs, **methods}
    view_class: type[ApiView] = type(base.__name__, (base,), attributes)
    return view_class


def method(resource: Resource[Any], verb: str, name: str, handler: Handler) -> Handler:
    """Make the method of a view that calls a handler, and say for the schema what it does."""

    def answer(view: ApiView, request: Request, **key: object) -> HttpResponse:
        return handler(resource, request, *key.values())

    call = resource.calls[name]
    answer.__name__, answer.__doc__ = verb, call.text
    return described(call.summary, tag="registry", **facts_of(resource, name))(answer)


def facts_of(resource: Resource[Any], name: str) -> dict[str, Any]:
    """Say of a call what is sent and what comes back."""
    if name == "list":
        choosing = [schema for parameter in resource.parameters for schema in parameter.schema]
        return {
            "answer": Listed(resource.field, resource.answer),
            "parameters": [*choosing, *paging()],
            "formats": LIST,
        }
    if name == "show":
        return {"answer": resource.answer, "errors": (404,)}
    if name == "remove":
        return {"answer": None, "status": 204, "errors": (404, 409)}
    is_new = name == "add"
    return {
        "answer": resource.written or resource.answer,
        "body": resource.new if is_new else resource.change,
        "status": 201 if is_new else 200,
        "errors": (409,) if is_new else (404, 409),
    }


def listed(resource: Resource[Any], request: Request) -> HttpResponse:
    params, order = request.query_params, resource.order
    names = [schema.name for parameter in resource.parameters for schema in parameter.schema]
    check_names(params, (*names, *PAGING, "format"))
    form = asked_format(request, LIST)
    page = PageRequest.read(request, form, order.read)
    rows = resource.rows().filter(resource.visible_to(reader_of(request)))
    for parameter in resource.parameters:
        rows = rows.filter(parameter.read(params))
    if form == "json":
        page_rows, last = keyset.page(rows, order.fields, page.size, page.after)
        records = resource.records(page_rows, request)
        next_page = following(request, order.write(last) if last else None)
        return as_json({resource.field: records, "next": next_page})
    records = resource.records(rows.order_by(*order.fields), request)
    return as_rows(records, form, tuple(resource.answer.model_fields), file_name(resource.slug))


def add(resource: Resource[Any], request: Request) -> HttpResponse:
    refuse_parameters(request)
    values = values_of(resource.new, request)

    def write() -> HttpResponse:
        row = resource.begin(request)
        fill(resource, row, values, request)
        resource.allow(request, "add", row)
        check(resource, row)
        row.save(force_insert=True)
        resource.save_related(row, values)
        response = recorded(resource, row.pk, request, values, status=201)
        address = addresses.address(resource.row_route, getattr(row, resource.key))
        response["Location"] = request.build_absolute_uri(address)
        return response

    return in_turn(request, write)


def show(resource: Resource[Any], request: Request, key: object) -> HttpResponse:
    check_names(request.query_params, ("format",))
    asked_format(request, ("json",))
    row = visible(resource, resource.rows(), key, reader_of(request))
    (record,) = resource.records([row], request)
    return as_json(record)


def change(resource: Resource[Any], request: Request, key: object) -> HttpResponse:
    """Change a row; one that stays as it was is not written, so that no cache is cleared."""
    allow(resource, "change", key, request)
    refuse_parameters(request)
    values = values_of(resource.change, request)

    def write() -> HttpResponse:
        row = locked(resource, key, request)
        resource.allow_change(request, row, values)
        changed = fill(resource, row, values, request)
        resource.allow_change(request, row, values)
        if changed:
            check(resource, row)
            row.save(update_fields=changed)
        resource.save_related(row, values)
        return recorded(resource, row.pk, request, values)

    return in_turn(request, write)


def remove(resource: Resource[Any], request: Request, key: object) -> HttpResponse:
    allow(resource, "delete", key, request)
    refuse_parameters(request)

    def write() -> None:
        row = locked(resource, key, request)
        resource.allow(request, "delete", row)
        resource.refuse_removal(row)
        row.delete()

    in_turn(request, write)
    return HttpResponse(status=204)


def refuse_parameters(request: Request) -> None:
    """Raise BadQueryError for a parameter: what is written stands in the body."""
    for name in request.query_params:
        raise wrong(name, f"There is no parameter “{name}”: send fields in the body.")


def recorded(
    resource: Resource[Any], pk: object, request: Request, values: Values, status: int = 200
) -> HttpResponse:
    """Answer with a row as it was written, and with what there is to say about this write.

    Within its transaction: after that the row may be gone.
    """
    row = resource.rows().get(pk=pk)
    (record,) = resource.records([row], request)
    return as_json(record | resource.remarks(row, values), status)


def in_turn(request: Request, write: Callable[[], Result]) -> Result:
    """Write in one transaction, after those that are writing the registry now.

    Every change of the registry raises its version, so its row makes them queue. Whoever writes
    without asking for it first (the admin, a registry file) may still be in the way later on. Then
    it is done once again, which finds in the ordinary way what stands against it.
    """
    for _ in range(2):
        try:
            with transaction.atomic():
                Version.lock_registry()
                return write()
        except (IntegrityError, ProtectedError) as error:
            # By its route: a path may name what somebody sent.
            route = f" /{request.resolver_match.route}" if request.resolver_match else ""
            log.warning("%s prevented %s%s.", rule(error), request.method, route)
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
    raise Conflict({"registry": [REFUSED]})


def rule(error: IntegrityError | ProtectedError) -> str:
    """Name what the database holds against a write; its own words have values in them."""
    if isinstance(error, ProtectedError):
        return "Rows that refer to this row"
    diagnosis = getattr(error.__cause__, "diag", None)
    name = diagnosis and (diagnosis.constraint_name or diagnosis.table_name)
    return f"The database constraint {name or type(error.__cause__).__name__}"


def allow(resource: Resource[Any], verb: str, key: object, request: Request) -> None:
    """Raise the error for who may not write this row, before the body is read. One SQL query.

    What is written decides once more, by the row as it is then and as it becomes.
    """
    resource.allow(request, verb, visible(resource, resource.rows(), key, request.user))


def visible(resource: Resource[Row], rows: QuerySet[Row], key: object, reader: Anyone) -> Row:
    """Return the row of this name or id; raise Http404 if there is none that the reader may see."""
    row = rows.filter(resource.visible_to(reader), **{resource.key: key}).first()
    if row is None:
        raise Http404(resource.missing.format(word=resource.word, key=key))
    return row


def locked(resource: Resource[Row], key: object, request: Request) -> Row:
    rows = resource.rows().select_for_update(of=("self",))
    return visible(resource, rows, key, request.user)


def fill(resource: Resource[Row], row: Row, values: Values, request: Request) -> list[str]:
    """Set the columns of a row and return the names of those that changed."""
    columns = resource.columns_of(row, values | referred(resource, values))
    columns |= resource.signature(row, columns, request)
    changed = [name for name, value in columns.items() if getattr(row, name, None) != value]
    for name in changed:
        setattr(row, name, columns[name])
    return changed


def referred(resource: Resource[Row], values: Values) -> Values:
    """Return the rows that values name; raise BadQueryError for names that are not registered."""
    rows: Values = {}
    for field, model in resource.references.items():
        if (name := values.get(field)) is None:
            continue
        rows[field] = model._default_manager.filter(name=name).first() if name else None
        if name and rows[field] is None:
            other = model._meta.verbose_name
            raise BadQueryError({field: [f"{not_registered(field, name, str(other))}."]})
    return rows


def check(resource: Resource[Row], row: Row) -> None:
    """Raise BadQueryError for a row that breaks a rule, Conflict for one whose name is taken."""
    try:
        row.full_clean(validate_constraints=resource.checks_constraints)
    except ValidationError as error:
        raise refusal(resource, error) from error
    resource.check(row)


def refusal(resource: Resource[Row], error: ValidationError) -> Exception:
    # The fields that rules about several are said to be broken by.
    fields = {
        constraint.get_violation_error_message(): resource.field_of.get(constraint.name)
        for constraint in resource.model._meta.constraints
    }
    broken: dict[str, list[str]] = {}
    conflicts: dict[str, list[str]] = {}
    for name, faults in error.error_dict.items():
        for fault in faults:
            sentence = fault.messages[0]
            field = name if name != "__all__" else fields.get(sentence) or resource.word
            if fault.code == "unique":
                sentence = f"The value of “{field}” is already used by another {resource.word}."
                conflicts[field] = [sentence]
            elif fault.code == TAKEN:
                conflicts[field] = [sentence]
            else:
                broken.setdefault(field, []).append(sentence)
    return BadQueryError(broken) if broken else Conflict(conflicts)


# What a permission calls them.
WRITES = {"add": "add", "change": "change", "remove": "delete"}
# By method: what a resource calls it, and what answers it.
LIST_CALLS: dict[str, tuple[str, Handler]] = {"get": ("list", listed), "post": ("add", add)}
ROW_CALLS: dict[str, tuple[str, Handler]] = {
    "get": ("show", show),
    "patch": ("change", change),
    "delete": ("remove", remove),
}
