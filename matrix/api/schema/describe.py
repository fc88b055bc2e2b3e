"""`@described` says of a method of a view what it takes and answers; the schema is made of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter

from matrix.api.schema.schemas import Shape

Method = TypeVar("Method", bound=Callable[..., Any])

# Any call may refuse a parameter or a token, be too long to be read, or be asked for too much.
ALWAYS = (400, 401, 403, 414, 429, 431, 503)
WITH_BODY = (411, 413, 415)


@dataclass(frozen=True)
class Described:
    """Describes a method (`get`, `post`, `patch`, `delete`, ...) of a view for the schema.

        @described("One mesh", answer=MeshAnswer, errors=(404,), tag="registry")
        def get(self, request: Request, name: str) -> Response:
            '''Text of the method, if any, is the description of the call.'''

    ``answer``: a pydantic model (of matrix.api.schema.schemas.Answer), `Listed("sites", Row)` for
    a page of a list of one, a JSON schema as a dict, or None for no content.
    ``parameters``: query parameters, see matrix.api.schema.parameters; `format` comes by itself
    with ``formats`` (of a method that reads), and what is in the path too.
    ``body``: likewise a model (of schemas.Body) or a dict.
    ``status``: of success. ``errors``: further statuses; 400, 401, 403, 414, 429, 431, 503, and
    411, 413 and 415 of a body, are there by themselves. ``scope``: read for `get`, else operate,
    unless given.
    ``examples``: of the answer by format, and of the `body`; else those of matrix/api/examples.json
    by the name of the operation.
    """

    summary: str
    _: KW_ONLY
    answer: Shape | None
    tag: str
    parameters: Sequence[OpenApiParameter] = ()
    body: Shape | None = None
    status: int = 200
    errors: Iterable[int] = ()
    formats: Sequence[str] = ("json",)
    examples: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""

    def __call__(self, method: Method) -> Method:
        errors = sorted({*ALWAYS, *(WITH_BODY if self.body else ()), *self.errors})
        scope = self.scope or ("read" if method.__name__ == "get" else "operate")
        setattr(method, DESCRIBED, replace(self, errors=tuple(errors), scope=scope))
        return method


described = Described
DESCRIBED = "described"


def of(method: Callable[..., Any] | None) -> Described | None:
    """Return what is said of a method of a view; None if nothing is."""
    description: Described | None = getattr(method, DESCRIBED, None)
    return description
