"""A mesh tests what its mover fits: of every endpoint those, of named ones all of them."""

import pytest
from django.core.exceptions import ValidationError

from sonar import scheduler
from sonar.models import Endpoint, Mesh, Schedule
from sonar.registry import compatibility
from sonar.registry.compatibility import mesh_problem
from tests.sonar.world import NOW, endpoint, mesh, three_endpoints

pytestmark = pytest.mark.django_db


def scheduled(of: Mesh) -> set[str]:
    ends = Schedule.objects.filter(mesh=of).values_list("source__name", "destination__name")
    return {name for both in ends for name in both}


def test_a_mesh_of_every_endpoint_tests_those_that_its_mover_fits():
    glasgow, lancs, ral = three_endpoints()
    web = [endpoint(name, base_url=f"{name}://x/data") for name in ("https", "davs", "http", "dav")]
    endpoint("root", base_url="root://x/data")
    fake, http = mesh("fake"), mesh("http", mover="http-tpc")
    scheduler.follow_registry(NOW)
    assert scheduled(fake) == {glasgow.name, lancs.name, ral.name}
    assert scheduled(http) == {one.name for one in web}
    Endpoint.objects.filter(pk=ral.pk).update(base_url="root://ral/data")
    scheduler.follow_registry(NOW)
    assert scheduled(fake) == {glasgow.name, lancs.name}
    Mesh.objects.update(mover="xrootd")
    scheduler.follow_registry(NOW)
    assert scheduled(fake) == scheduled(http) == {"root_DATADISK", ral.name}


def test_a_mesh_of_every_endpoint_follows_its_mode_where_that_decides():
    glasgow = endpoint("GLASGOW", base_url="ftp://glasgow/data")
    cern, ral = (endpoint(name, base_url=f"https://{name}/data") for name in ("CERN", "RAL"))
    every = mesh(mover="gfal2")
    scheduler.follow_registry(NOW)
    assert scheduled(every) == {cern.name, ral.name}
    Mesh.objects.update(mode="push")
    scheduler.follow_registry(NOW)
    assert scheduled(every) == {glasgow.name, cern.name, ral.name}


def test_one_end_that_is_named_is_judged_and_the_other_must_fit_somebody():
    assert mesh_problem("m", "fake", "pull", [[], []]) == ""  # before there are endpoints
    glasgow, _, _ = three_endpoints()
    web = endpoint("CERN", base_url="https://cern/data")
    assert mesh_problem("m", "fake", "pull", [[glasgow], []]) == ""
    assert mesh_problem("m", "http-tpc", "pull", [[web], []]) == ""
    assert "(https)" in mesh_problem("m", "fake", "pull", [[glasgow], [web]])
    web.retired_at = NOW
    web.save()
    assert mesh_problem("m", "fake", "pull", [[glasgow], [web]]) == ""
    assert mesh_problem("m", "http-tpc", "pull", [[], []]) == (
        "The mesh m would test nothing. The transfer tool http-tpc supports the URL schemes dav, "
        "davs, http, https, but the endpoints in use have fake."
    )


def test_a_mesh_is_judged_by_the_mode_where_a_protocol_has_only_one():
    plain = endpoint("GLASGOW", base_url="ftp://glasgow/data")
    web = endpoint("CERN", base_url="https://cern/data")
    assert mesh_problem("m", "gfal2", "push", [[plain], [web]]) == ""
    assert mesh_problem("m", "gfal2", "pull", [[plain], [web]]) == (
        "The mesh m cannot be saved. The transfer tool gfal2 supports the URL schemes dav, davs, "
        "http, https, "
        "root, xroot in pull mode, not those of GLASGOW_DATADISK (ftp)."
    )


def test_of_many_meshes_that_do_not_fit_a_few_are_named():
    glasgow, _, _ = three_endpoints()
    for number in range(7):
        mesh(f"m{number}").sources.add(glasgow)
    glasgow.base_url = "root://glasgow/data"
    assert compatibility.is_moved(glasgow)
    assert "m0 (fake), m1 (fake), m2 (fake), m3 (fake), m4 (fake) and 2 more." in (
        compatibility.endpoint_problem(glasgow)
    )


def test_what_a_mover_does_not_obey_is_refused_by_its_field():
    wishes = Mesh(name="m", mover="http-tpc", tcp_buffer_bytes=65536)
    with pytest.raises(ValidationError) as caught:
        wishes.full_clean()
    assert caught.value.message_dict == {
        "tcp_buffer_bytes": [
            "The transfer tool http-tpc cannot set TCP buffers: “tcp_buffer_bytes” must be left "
            "empty."
        ]
    }
    wishes.mover = "fake"
    wishes.full_clean()
    wishes.save()
    wishes.mover = "http-tpc"  # a new one is judged by all that it does not obey
    with pytest.raises(ValidationError, match="cannot set TCP buffers"):
        wishes.full_clean()


def test_a_mesh_that_was_kept_before_its_mover_was_described_can_be_edited_all_the_same():
    kept = mesh(mover="http-tpc", tcp_buffer_bytes=65536)
    kept.priority = 9
    kept.full_clean()
    kept.tcp_buffer_bytes = 131072
    with pytest.raises(ValidationError, match="cannot set TCP buffers"):
        kept.full_clean()
    kept.tcp_buffer_bytes = None
    kept.full_clean()
