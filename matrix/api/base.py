"""What all calls of the API have in common: their bodies, their rights, who may keep an answer."""

from collections.abc import Callable, Mapping
from typing import IO, Any

import orjson
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.decorators import method_decorator
from django.views.decorators.http import conditional_page
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from matrix.http.exceptions import LengthRequired, TooLarge, refuse_hidden_filters
from matrix.http.negotiation import ErrorsInJson
from matrix.http.permissions import MayOperate
from matrix.store.data_version import DataVersion, of_one_server, snapshot
from sonar.database import actor


def body_of(request: Request) -> Any:  # noqa: ANN401 - what the parser of a call takes
    """Return what a call sends: for who may write, as it is not read before that is known."""
    # Django would take a body in chunks for an empty one.
    if "Transfer-Encoding" in request.headers and "Content-Length" not in request.headers:
        raise LengthRequired()
    return request.data


class JsonBody(BaseParser):
    """Reads JSON; orjson takes no NaN and no text that is not UTF-8."""

    media_type = "application/json"
    most_bytes = 100_000
    kind: type = dict
    wrong_kind = "The body is not a JSON object: send an object with field names as keys."

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - the framework's signature knows mappings only
        body = stream.read(self.most_bytes + 1)
        if len(body) > self.most_bytes:
            raise TooLarge(
                f"The body is larger than {self.most_bytes:,} bytes, which is the limit."
            )
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error}.") from error
        if not isinstance(value, self.kind):
            raise ParseError(self.wrong_kind)
        return value


class JsonList(JsonBody):
    most_bytes = 8_000_000
    kind = list
    wrong_kind = "The body is not a JSON list: send a list of results."


# An answer without an ETag gets one made of its bytes: that spares sending them, not making
# them. Who knows a version gives it before, and is spared both.
@method_decorator(conditional_page, name="dispatch")
class ApiView(APIView):
    """A call: errors in JSON, bodies in JSON, reading for readers and writing by `needs`."""

    content_negotiation_class = ErrorsInJson
    parser_classes = [JsonBody]
    permission_classes = [MayOperate]
    needs: Mapping[str, str] = {}
    """The permissions that methods which write need, for some site at least (MayOperate)."""

    def __init_subclass__(cls, *, one_snapshot: bool = True, of_primary: bool = False) -> None:
        """Let GET read as of one moment: what changes meanwhile would not fit together.

        Who sends the request is known by then. Without ``one_snapshot`` are calls that need no
        database, and those that unless_known() answers: a 304 is a single statement. No replica
        answers what is ``of_primary``.
        """
        super().__init_subclass__()
        if "get" in vars(cls) and one_snapshot:
            cls.get = snapshot(of_primary=of_primary)(vars(cls)["get"])  # type: ignore[attr-defined]
        elif "get" in vars(cls) and not of_primary:
            cls.get = of_one_server()(vars(cls)["get"])  # type: ignore[attr-defined]

    def initial(
        self,
        request: Request,
        *args: Any,  # noqa: ANN401 - of the route
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Refuse who may not, and filters on what they may not see."""
        super().initial(request, *args, **kwargs)
        refuse_hidden_filters(request)
        if request.method not in SAFE_METHODS:
            actor.enter("API", request.user.get_username(), getattr(request.auth, "name", ""))

    def finalize_response(
        self,
        request: Request,
        response: Response,
        *args: Any,  # noqa: ANN401 - of the route
        **kwargs: Any,  # noqa: ANN401
    ) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        patch_vary_headers(answer, ("Accept", "Authorization", "Cookie"))
        # Nobody may keep what was written or refused, others with a look each time. What an
        # account reads may be more than what everybody does.
        keeping = "private, no-cache" if request.user.is_authenticated else "no-cache"
        if request.method not in SAFE_METHODS or answer.status_code >= 400:
            keeping = "no-store"
        answer["Cache-Control"] = keeping
        return answer


def unless_known(
    request: Request, version: DataVersion, make: Callable[[], HttpResponseBase]
) -> HttpResponseBase:
    """Answer with what ``make`` returns, as of one moment; to who has this version, with a 304.

    The version is read before: what is made may be newer, never older.
    """
    response: HttpResponseBase | None = get_conditional_response(request, etag=version.etag)
    if response is None:
        with snapshot():
            response = make()
    response["ETag"] = version.etag
    return response
