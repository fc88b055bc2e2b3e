"""The lab as tests use it."""

import faulthandler
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from pytest_django import DjangoDbBlocker

from tests.lab.enclosure import RefusedError, network_apart
from tests.lab.link import Lab
from tests.lab.measuring import run_all
from tests.lab.scenarios import SCENARIOS, Scenario
from tests.needs import lacks, needs
from tests.scenes import standing

PROGRAMS = ("xrootd", "openssl", "gcc", "ip", "mkfs.ext4", "unshare", "nsenter", "setpriv")


def build(*scenarios: Scenario) -> Lab:
    """Build a lab; where this machine does not allow that, say why and skip, or fail in CI."""
    needs(*PROGRAMS)
    try:
        return Lab(scenarios)
    except RefusedError as error:
        lacks(f"needs a machine that lets root have {error}")


@pytest.fixture(scope="session", autouse=True)
def network() -> Iterator[None]:
    """Devices that come and go on the machine's own network would disturb browsers beside it."""
    with network_apart():
        yield


@pytest.fixture
def lab_of() -> Iterator[Callable[..., Lab]]:
    """Return what builds a lab of some scenarios, for one test."""
    labs: list[Lab] = []

    def make(*scenarios: Scenario) -> Lab:
        labs.append(build(*scenarios))
        return labs[-1]

    yield make
    for lab in labs:
        lab.close()


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """Return all seven links, as they stand."""
    whole = build(*SCENARIOS)
    yield whole
    whole.close()


@pytest.fixture(scope="session")
def measured(lab: Lab, django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Lab]:
    """Return the lab once Sonar's tests have run on every link and their transfers are stored.

    That takes the slowest link five minutes, and a busy machine longer than a test may go on: each
    transfer has its own limits.
    """
    faulthandler.cancel_dump_traceback_later()
    with standing(django_db_blocker, partial(run_all, lab), now=None):
        yield lab
