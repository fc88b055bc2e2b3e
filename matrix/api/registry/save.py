"""Values -> a row that is checked and kept, all or nothing, one write after the other."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Model, ProtectedError, QuerySet
from django.http import Http404
from psycopg.errors import DeadlockDetected
from rest_framework.request import Request

from matrix.api.registry.resource import Resource
from matrix.api.registry.values import Values
from matrix.http.exceptions import Conflict
from matrix.query.forms import BadQueryError
from sonar.models import Version
from sonar.models.fields import TAKEN
from sonar.people.roles import Anyone

Row = TypeVar("Row", bound=Model)
Result = TypeVar("Result")
log = logging.getLogger(__name__)

REFUSED = "The registry has changed and no longer allows this: look at it, and send this again."


def in_turn(request: Request, write: Callable[[], Result]) -> Result:
    """Write in one transaction, after those that are writing the registry now.

    Every change of the registry raises its version, so its row makes them queue. Whoever writes
    without asking for it first (the admin, a registry file) may still be in the way later on. Then
    it is done once again, which finds in the ordinary way what stands against it.
    """
    for _ in range(2):
        try:
            with transaction.atomic():
                Version.objects.select_for_update().filter(name="registry").first()
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
        return "Rows that refer to it"
    diagnosis = getattr(error.__cause__, "diag", None)
    name = diagnosis and (diagnosis.constraint_name or diagnosis.table_name)
    return f"The database's rule {name or type(error.__cause__).__name__}"


def allow(resource: Resource[Any], verb: str, key: object, request: Request) -> None:
    """Raise the error for who may not write this row, before the body is read. One SQL query.

    What is written decides once more, by the row as it is then and as it becomes.
    """
    resource.allow(request, verb, visible(resource, resource.rows(), key, request.user))


def make(resource: Resource[Row], values: Values, request: Request) -> Row:
    row = resource.begin(request)
    fill(resource, row, values, request)
    resource.allow(request, "add", row)
    check(resource, row)
    row.save(force_insert=True)
    resource.save_related(row, values)
    return row


def change(resource: Resource[Row], key: object, values: Values, request: Request) -> Row:
    """Change a row; one that stays as it was is not written, so that no cache is cleared."""
    rows = resource.rows().select_for_update(of=("self",))
    row = visible(resource, rows, key, request.user)
    resource.allow_change(request, row, values)
    changed = fill(resource, row, values, request)
    resource.allow_change(request, row, values)
    if changed:
        check(resource, row)
        row.save(update_fields=changed)
    resource.save_related(row, values)
    return row


def remove(resource: Resource[Row], key: object, request: Request) -> None:
    rows = resource.rows().select_for_update(of=("self",))
    row = visible(resource, rows, key, request.user)
    resource.allow(request, "delete", row)
    resource.refuse_removal(row)
    row.delete()


def visible(resource: Resource[Row], rows: QuerySet[Row], key: object, reader: Anyone) -> Row:
    """Return the row of this name or id; raise Http404 if there is none that the reader may see."""
    row = rows.filter(resource.visible_to(reader), **{resource.key: key}).first()
    if row is None:
        raise Http404(resource.missing.format(word=resource.word, key=key))
    return row


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
            sentence = f"{field} “{name}” is not known: use the name of a registered {other}."
            raise BadQueryError({field: [sentence]})
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
                conflicts[field] = [f"{field} is taken: another {resource.word} has it."]
            elif fault.code == TAKEN:
                conflicts[field] = [sentence]
            else:
                broken.setdefault(field, []).append(sentence)
    return BadQueryError(broken) if broken else Conflict(conflicts)
