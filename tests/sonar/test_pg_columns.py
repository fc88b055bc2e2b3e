"""Columns of a queryset as arrays, against the rows that Django gives of it."""

from operator import attrgetter

import numpy as np
import pytest
from django.db.models import F, Q

from sonar.database import pg_columns
from sonar.models import Transfer
from sonar.notation.windows import unix_ms
from tests.matrix import world

FIELDS = {
    "source_id": pg_columns.INTEGER,
    "id": pg_columns.UUID,
    "started_at": pg_columns.TIME,
    "seconds": pg_columns.FLOAT,
    "streams": pg_columns.SHORTEST,
    "ok": pg_columns.FLAG,
}


def results(**chosen: object):
    judged = Transfer.objects.filter(**chosen).annotate(ok=Q(state="done"))
    return judged.annotate(streams=F("profile__streams"))


@pytest.fixture
def tested(small_world):
    with world.transfers() as some:
        for number in range(20):
            ends = [(small_world.ral, small_world.desy), (small_world.glasgow, small_world.ral)]
            some.add(*ends[number % 2], number or None, made=world.profile(streams=number + 1))


def test_columns_hold_what_rows_hold(tested):
    of_all = results()
    rows = pg_columns.columns(of_all, FIELDS)
    started = pg_columns.unix_ms(rows["started_at"]).tolist()
    ids = [bytes(one) for one in rows["id"]]
    others = (rows[name].tolist() for name in ("source_id", "seconds", "streams", "ok"))
    of = attrgetter("source_id", "seconds", "streams", "ok")
    in_rows = {(one.id.bytes, unix_ms(one.started_at), *of(one)) for one in of_all}
    assert set(zip(ids, started, *others, strict=True)) == in_rows
    assert len(rows) == len(in_rows) == of_all.count() > 1
    assert len(set(rows["source_id"])) > 1


@pytest.mark.parametrize("chosen", [{"pk__in": []}, {"seconds": -1}])
def test_of_no_rows_there_are_empty_columns(tested, chosen):
    rows = pg_columns.columns(results(**chosen), FIELDS)
    assert (len(rows), rows["seconds"].dtype) == (0, np.dtype(">f8"))


def test_a_value_that_is_missing_is_an_error_and_no_row_less(tested):
    assert results(first_byte_seconds=None).exists()
    fields = {"source_id": pg_columns.INTEGER, "first_byte_seconds": pg_columns.FLOAT}
    with pytest.raises(ValueError, match="NULL"):
        pg_columns.columns(Transfer.objects.all(), fields)
