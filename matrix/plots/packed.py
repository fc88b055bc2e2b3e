"""Arrays as Plotly and the page's script read them out of JSON."""

from __future__ import annotations

import base64
from typing import Any

from numpy.typing import NDArray


def packed(array: NDArray[Any], kind: str) -> dict[str, str]:
    """Write an array in base64, a tenth of the cost of a list of lists; NaN stays NaN."""
    body = base64.b64encode(array.astype(f"<{kind}").tobytes()).decode()
    return {"dtype": kind, "bdata": body, "shape": ", ".join(map(str, array.shape))}
