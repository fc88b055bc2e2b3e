"""What is asked of one site."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import Http404, QueryDict

from matrix.query.comparison import OF_A_LINK
from matrix.query.filters import PROFILE_FILTERS
from matrix.query.forms import check_names
from matrix.query.matrix_query import MatrixQuery
from sonar.models import Site

PARAMETERS = ("size", "window", "from", "to", *PROFILE_FILTERS)


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
