"""A target in words: the links that it matches, and what it requires."""

from sonar.models import Target
from sonar.models.member_filters import ENDS
from sonar.notation import endpoint_filters
from sonar.notation.units import exact_rate, format_estimate, format_share


def links_words(row: Target) -> str:
    """Describe its links: `links from endpoints of cloud UK that the mesh uk tests`."""
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


def target_sentence(row: Target) -> str:
    """Write the rate, and the limits from which a link is slow, failing or silent."""
    rate = f"at least {exact_rate(row.floor)}" if row.floor else "the baseline of each link"
    return (
        f"{rate}: slow below {format_share(row.below)}, near target up to "
        f"{format_share(row.above)}; failing after {row.failures} failures, silent after "
        f"{format_estimate(row.silent_after)} intervals without a result"
    )
