"""What an expectation says, in words: of which links, and what of them."""

from sonar.models import Expectation
from sonar.models.member_filters import ENDS
from sonar.notation import endpoint_filters
from sonar.notation.units import exact_rate, format_estimate, format_share


def links_words(row: Expectation) -> str:
    """Say of which links: `links from endpoints of cloud UK that the mesh uk tests`."""
    ends = [
        f"{before} endpoints {endpoint_filters.words(chosen)}"
        for before, end in zip(("from", "to"), ENDS, strict=True)
        if (chosen := row.filter_of(end))
    ]
    site = [f"from or to {row.site}"] if row.site else []
    mesh = [f"that the mesh {row.mesh} tests"] if row.mesh else []
    chosen_by = [*site, *ends, *mesh]
    links = " ".join(["links", *chosen_by]) if chosen_by else "all links"
    return f"{links}, {row.size_class} files" if row.size_class else links


def expects_words(row: Expectation) -> str:
    """Say in a sentence what is expected, and when links are called slow, failing and silent."""
    rate = f"at least {exact_rate(row.floor)}" if row.floor else "the usual rate of each link"
    return (
        f"{rate}: slow below {format_share(row.below)}, in the matrix near it up to "
        f"{format_share(row.above)}; failing after {row.failures} failures, silent after "
        f"{format_estimate(row.silent_after)} intervals"
    )
