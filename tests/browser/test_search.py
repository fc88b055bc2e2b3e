"""The boxes to search in, in a browser."""

from __future__ import annotations

import pytest

from sonar.models import Site
from tests.browser.conftest import Visit
from tests.matrix import world


@pytest.mark.parametrize("box", ["#jump", "#q"])
@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("RAL-LCG2", "/sites/RAL-LCG2/"),
        ("lancs cam", "/links/UKI-NORTHGRID-LANCS-HEP_DATADISK/UKI-SOUTHGRID-CAM-HEP_DATADISK/"),
    ],
)
def test_enter_opens_what_is_meant(
    visit: Visit, real_commits: None, box: str, text: str, address: str
) -> None:
    """An exact name, and two names that mean a single link, in the box of all pages and here."""
    for name in ("RAL-LCG2", "RAL-LCG2-TAPE", "UKI-NORTHGRID-LANCS-HEP", "UKI-SOUTHGRID-CAM-HEP"):
        world.endpoint(f"{name}_DATADISK", Site.objects.create(name=name))
    page = visit.open("/search/")
    page.locator(box).fill(text)
    page.locator(box).press("Enter")
    page.wait_for_url(f"{visit.base}{address}")
