"""/api/v1/size-classes/: ranges of file sizes, which are checked together."""

from datetime import datetime
from typing import Annotated

from django.utils.text import capfirst

from matrix.api.registry.resource import BY_SIZE, CallText, Resource
from matrix.api.registry.values import Values, own_name, record_of, whole
from matrix.api.schema.records import Json, moment
from matrix.api.schema.schemas import Body
from matrix.query.forms import BadQueryError
from sonar.models import SizeClass
from sonar.notation.units import MOST_BYTES
from sonar.registry import compatibility
from sonar.results import reclass

DAY = 86_400


class NewSizeClass(Body):
    """A size class to add; it ends where the next one begins."""

    name: Annotated[str, own_name()]
    from_bytes: Annotated[int, whole(0, MOST_BYTES, "the first size that belongs to it")]
    test_bytes: Annotated[int, whole(1, MOST_BYTES, "the size of its test file, in its range")]
    timeout_seconds: Annotated[int, whole(1, 30 * DAY, "a test that takes longer has failed")] = (
        3600
    )


class SizeClasses(Resource[SizeClass]):
    model = SizeClass
    new = NewSizeClass
    answer = record_of(NewSizeClass, "A size class.")
    written = record_of(
        NewSizeClass,
        "A size class as it was stored.\n\n"
        "Only if from_bytes was changed and results now lie outside the bounds of their class,\n"
        "`results_outside` is their number: of all, or of those since `results_outside_since` if "
        "there\nwas no time to check more. It is null if there was no time at all. `notice` says "
        "what to do.",
        name="SizeClassWritten",
        results_outside=(int | None, None),
        results_outside_since=(datetime | None, None),
        notice=(str, ""),
    )
    order = BY_SIZE
    # `sizes` says the same of all of them in better words.
    checks_constraints = False
    calls = {
        "list": CallText("All size classes", "Smallest first."),
        "add": CallText(
            "Add a size class",
            "The first class begins at 0 bytes, and each test size lies in its own class.",
        ),
        "show": CallText("One size class"),
        "change": CallText(
            "Change a size class",
            "Fields that are left out stay as they are. Results keep the class they were stored\n"
            "with until `manage.py reclass_results` moves them; the response says how many.",
        ),
    }

    def check(self, row: SizeClass) -> None:
        others = SizeClass.objects.exclude(pk=row.pk)
        if problems := compatibility.size_class_problems([*others, row]):
            sentences = [f"{capfirst(problem)}." for problem in problems]
            raise BadQueryError({"from_bytes": sentences})

    def remarks(self, row: SizeClass, values: Values) -> Json:
        if "from_bytes" not in values:
            return {}
        outside = reclass.outside()
        if not (notice := reclass.notice(outside)):
            return {}
        none_seen = outside.since is None
        return {
            "results_outside": None if none_seen else outside.results,
            "results_outside_since": None if outside.is_complete else moment(outside.since),
            "notice": notice,
        }


SIZE_CLASSES = SizeClasses()
