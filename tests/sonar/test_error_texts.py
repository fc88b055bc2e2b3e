"""Errors of results are for all readers: of the whole registry, as it is now."""

from __future__ import annotations

import pytest
from django.db import connection

from sonar import error_texts
from sonar.models import Endpoint, Site

pytestmark = pytest.mark.django_db


def endpoint(name: str, base_url: str) -> Endpoint:
    site, _ = Site.objects.get_or_create(name="Somewhere")
    return Endpoint.objects.create(name=name, site=site, base_url=base_url)


def test_hosts_of_the_whole_registry_are_hidden_not_only_those_of_the_ends():
    glasgow = endpoint("GLASGOW_DATADISK", "davs://glasgow.example:1094/data")
    ral = endpoint("RAL_DATADISK", "davs://webdav.ral.example:1094/disk")
    endpoint("DESY_DATADISK", "https://door.desy.example/pnfs")
    error = "HEAD glasgow.example:1094/data/x: 307 to https://door.desy.example/pnfs/x"
    shown = "HEAD GLASGOW_DATADISK/x: 307 to DESY_DATADISK/x"
    assert error_texts.for_all(error, (glasgow, ral)) == shown


def test_of_two_endpoints_on_a_server_that_of_the_test_is_meant():
    disk = endpoint("RAL_DATADISK", "davs://webdav.ral.example:1094/disk")
    scratch = endpoint("RAL_SCRATCHDISK", "davs://webdav.ral.example:1094/scratch")
    error = "told of webdav.ral.example:1094: Could not connect"
    assert error_texts.for_all(error, [disk]) == "told of RAL_DATADISK: Could not connect"
    assert error_texts.for_all(error, [scratch]) == "told of RAL_SCRATCHDISK: Could not connect"
    assert error_texts.for_all(error) == "told of [server]: Could not connect"


def test_a_change_of_the_registry_counts_at_once():
    error = "told of old.example and new.example"
    one = endpoint("RAL_DATADISK", "https://old.example/disk")
    assert error_texts.for_all(error) == "told of RAL_DATADISK and new.example"
    Endpoint.objects.filter(id=one.id).update(base_url="https://new.example/disk")
    assert error_texts.for_all(error) == "told of old.example and RAL_DATADISK"


def test_a_retired_endpoint_is_hidden_as_well():
    endpoint("RAL_DATADISK", "https://old.example/disk")
    Endpoint.objects.update(retired_at="2026-11-20T12:00:00Z")
    assert error_texts.for_all("no route to old.example") == "no route to RAL_DATADISK"


def test_the_registry_is_read_once_and_no_error_costs_nothing(django_assert_num_queries):
    endpoint("RAL_DATADISK", "https://old.example/disk")
    error_texts.for_all("no route to old.example")
    with django_assert_num_queries(1):
        error_texts.for_all("no route to old.example")
    with django_assert_num_queries(0):
        assert error_texts.for_all("") == ""
    assert connection.queries is not None
