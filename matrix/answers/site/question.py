"""What is asked of one site, and which sites are listed, in what order."""

from collections.abc import Sequence

from django.http import Http404, QueryDict

from matrix.answers.site.overview import KEYS
from matrix.query.comparison import OF_A_LINK
from matrix.query.filters import LINK_FILTERS, PROFILE_FILTERS, either
from matrix.query.forms import BadQueryError, check_names
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Site

PARAMETERS = ("size", "window", "from", "to", *PROFILE_FILTERS)
OWN = ("search", "ordering")
DEFAULT_ORDERING = "name"
LONGEST_SEARCH = 200


def question(params: QueryDict, also: Sequence[str] = ()) -> MatrixQuery:
    """Read the parameters of a report on one site; they cannot choose among its links."""
    check_names(params, (*PARAMETERS, *also))
    return MatrixQuery.from_params(params, also=also)


def compared_question(params: QueryDict, also: Sequence[str] = ()) -> MatrixQuery:
    """Read the parameters of a report on one site that may compare it with something."""
    check_names(params, (*PARAMETERS, *OF_A_LINK, *also))
    return MatrixQuery.from_params(params, also=also)


def registered(name: str) -> Site:
    """Return the site; raise Http404 with a sentence if there is none."""
    site = Site.objects.filter(name=name).first()
    if site is None:
        raise Http404(f"No site “{name}” is registered.")
    return site


def sites_question(
    params: QueryDict, also: Sequence[str] = (), ordering: str = DEFAULT_ORDERING
) -> tuple[MatrixQuery, str, str]:
    """Return the question, what to search for, and by what to sort: by ``ordering`` if not said."""
    check_names(params, (*PARAMETERS, *LINK_FILTERS, *OWN, *also))
    query = MatrixQuery.from_params(params, also=(*OWN, *also))
    search, order = (params.get(name, "").strip() for name in OWN)
    sentences: dict[str, list[str]] = {}
    if len(search) > LONGEST_SEARCH or "\0" in search:
        sentences["search"] = [f"search must be at most {LONGEST_SEARCH} printable characters."]
    if order and order.removeprefix("-") not in KEYS:
        allowed = either(list(KEYS))
        sentences["ordering"] = [
            f"ordering “{order}” is not known: use {allowed}, after - for descending."
        ]
    if sentences:
        raise BadQueryError(sentences)
    return query, search, order or ordering
