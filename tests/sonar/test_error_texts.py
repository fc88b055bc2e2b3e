"""Errors of results are for all readers: they tell endpoints by name, and no inner address."""

from __future__ import annotations

import pytest

from sonar import error_texts
from sonar.models import Endpoint

GLASGOW = Endpoint(name="GLASGOW_DATADISK", base_url="davs://Glasgow.example:1094/data/grid/")
RAL = Endpoint(name="RAL_DATADISK", base_url="https://ral.example/disk")
SCRATCH = Endpoint(name="RAL_SCRATCHDISK", base_url="https://ral.example/scratch")
NODE_A = Endpoint(name="NODE_A", base_url="http://127.0.0.1:8001")
NODE_B = Endpoint(name="NODE_B", base_url="http://127.0.0.1:8002")


@pytest.mark.parametrize(
    ("ends", "error", "shown"),
    [
        (
            (GLASGOW, RAL),
            "HEAD glasgow.example:1094/data/grid/sonar/source/20: 403 Forbidden",
            "HEAD GLASGOW_DATADISK/sonar/source/20: 403 Forbidden",
        ),
        (
            (GLASGOW, RAL),
            "ral.example:443/disk/sonar/incoming/7: no answer within 30 s",
            "RAL_DATADISK/sonar/incoming/7: no answer within 30 s",
        ),
        (
            (GLASGOW, RAL),
            "https://ral.example/disk/sonar/incoming/7 is not below its base",
            "RAL_DATADISK/sonar/incoming/7 is not below its base",
        ),
        ((GLASGOW, RAL), "cannot resolve glasgow.example.", "cannot resolve GLASGOW_DATADISK."),
        ((GLASGOW, RAL), "glasgow.example:2811 refused", "GLASGOW_DATADISK refused"),
        (
            (GLASGOW, RAL),
            "eglasgow.example.org, ral.example2",
            "eglasgow.example.org, ral.example2",
        ),
        ((RAL, SCRATCH), "ral.example:443/scratch/sonar: 507", "RAL_SCRATCHDISK/sonar: 507"),
        ((SCRATCH, RAL), "ral.example:443/disk/sonar: 507", "RAL_DATADISK/sonar: 507"),
        ((RAL, SCRATCH), "no route to ral.example:8443", "no route to [server]"),
        ((NODE_A, NODE_B), "127.0.0.1:8002/sonar: 404", "NODE_B/sonar: 404"),
        (
            (GLASGOW, RAL),
            "10.1.2.3:20001, [fd00::7]:1 and 192.168.0.9 failed",
            "[internal address]:20001, [internal address]:1 and [internal address] failed",
        ),
        ((GLASGOW, RAL), "130.209.1.1 and 999.1.1.1 failed", "130.209.1.1 and 999.1.1.1 failed"),
        ((GLASGOW, RAL), "version 5.5.3.1 of XRootD", "version 5.5.3.1 of XRootD"),
        ((GLASGOW, RAL), "", ""),
    ],
)
def test_an_error_tells_endpoints_by_name_and_no_inner_address(ends, error, shown):
    assert error_texts.for_all(error, ends) == shown
