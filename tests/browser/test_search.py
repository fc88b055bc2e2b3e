"""The boxes to search in, in a browser."""

from sonar.models import Site
from tests.matrix import world

CAM, LANCS = "UKI-SOUTHGRID-CAM-HEP", "UKI-NORTHGRID-LANCS-HEP"


def test_enter_opens_what_is_meant(visit, real_commits):
    """An exact name, and two names that mean a single link, in the box of all pages and here."""
    for name in ("RAL-LCG2", "RAL-LCG2-TAPE", LANCS, CAM):
        world.endpoint(f"{name}_DATADISK", Site.objects.create(name=name))
    for text, address in (
        ("RAL-LCG2", "/sites/RAL-LCG2/"),
        ("lancs cam", f"/links/{LANCS}_DATADISK/{CAM}_DATADISK/"),
    ):
        for box in ("#jump", "#q"):
            page = visit.open("/search/")
            page.locator(box).fill(text)
            page.locator(box).press("Enter")
            page.wait_for_url(f"{visit.base}{address}")
