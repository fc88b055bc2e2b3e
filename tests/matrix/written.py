"""The HTML of a page as a browser reads it: how its template is wrapped says nothing."""

import re

from django.http import HttpResponse

BLOCKS = (
    "body|button|caption|datalist|dd|details|dialog|div|dl|dt|fieldset|form|h1|h2|h3|header|html|legend"
    "|li|main|nav|noscript|ol|option|p|section|select|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
EDGE = re.compile(rf" ?(</?(?:{BLOCKS})\b[^>]*>) ?")
KEPT = re.compile(r"(<pre\b.*?</pre>)", re.DOTALL)


def written(response: HttpResponse) -> str:
    """Return what was answered without the white space that nobody sees."""
    parts = KEPT.split(response.content.decode())
    return "".join(part if KEPT.match(part) else in_one_line(part) for part in parts)


def in_one_line(text: str) -> str:
    text = re.sub(r"[ \t\r\n\f]+", " ", text)
    return re.sub(r" (?=/?>)", "", EDGE.sub(r"\1", text))
