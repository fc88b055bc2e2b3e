"""Values and tables as the bytes of JSON and CSV; what they are sent with is in `rendering`."""

import orjson
import pandas as pd


def dumps(answer: object) -> bytes:
    """Write JSON; NaN in an array is null."""
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def csv_of(table: pd.DataFrame, *, header: bool = True) -> bytes:
    """Write a table, its times to the second."""
    text = table.to_csv(
        index=False, header=header, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ"
    )
    return str(text).encode()
