"""Values at the ends of their ranges, and names in every form of Unicode, by kind."""

import re
import unicodedata
from random import Random
from typing import Any, Literal, get_args

FIRST, LAST = "0001-01-01T00:00:00", "9999-12-31T23:59:59"
# Not times in UTC: they lie before year 1 and after year 9999.
BEYOND = (f"{FIRST}+14:00", *(f"{LAST}-{zone}" for zone in ("01:00", "14:00", "23:59")))
TIMES = (
    *BEYOND,
    f"{FIRST}Z",
    f"{FIRST}-14:00",
    "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00+14:00",
    "2026-02-30T00:00:00Z",
    "2026-11-20T12:00:60Z",
    "2026-11-20T12:00:00+24:00",
    f"{LAST}.999999Z",
    f"{LAST}+14:00",
    "+10000-01-01T00:00:00Z",
    "-9223372036854775808",
    "253402300800",
)
# ISO 8601 that addresses may have, but that is no `date-time` as a schema has it for bodies.
LOOSE_TIMES = ("0001-01-01", "9999-12-31", "2026-11-20T24:00:00Z", "2026-W47-5T12")
INTEGERS = (
    *(0, 1, -1),
    *(2**15 - 1, 2**15, -(2**15) - 1),
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32),
    *(2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64),
    *(10**30, -(10**30), 10**308, 10**400),
)
FLOATS = (-0.0, 0.1, 5e-324, 2.2e-308, 1e-9, 1e16, 1e30, 1.7976931348623157e308, -1e308)
NUMBERS = (*INTEGERS, *FLOATS)
# As a URL may have them; the last three are digits, but not ours.
WRITTEN = (
    *("NaN", "Infinity", "-inf", "1e999", "1e-999", "0x10"),
    *("1_000", "1,5", "+1", " 1", "00001"),
)
DIGITS = ("٣", "１２", "²")
DURATIONS = (
    *("0s", "1s", "-1s", "9999999s", "9999999d", "10000000d", "1000000000d", "1e9d", "1.5h"),
    *("٣h", "P1D", "1 000d", "0", "999999999", "86400000000000", "10000000000000000000000s"),
)
SIZES = (
    *("0", "0B", "-1kB", "1e308GB", "10000000000TB"),
    *("9223372036854775807", "9223372036854775808B"),
)
# Composed and not, of compatibility, of several letters, of several marks, and Hangul.
WORD = "\u00c5ngstr\u00f6m \u212b \ufb01 \u017f \u01c4 \u2460 \uac00 \u1e9b\u0323 \u0130 \u00df"
NORMAL_FORMS = tuple(unicodedata.normalize(form, WORD) for form in ("NFC", "NFD", "NFKC", "NFKD"))
TEXTS = (
    *NORMAL_FORMS,
    *("Zu\u0308rich", "Z\u00fcrich", "\u0130stanbul", "i\u0307stanbul", "STRASSE", "stra\u00dfe"),
    "e" + "\u0301" * 60,
    *("\u0301RAL", "RAL\u200b", "R\u200dA\u200cL", "\ufeffRAL", "R\u00adAL", "RAL\ufe0f"),
    *("\u202eLAR\u202c", "\u2066RAL", "\u05d3\u05d9\u05e1\u05e7", "\u0642\u0631\u0635"),
    *("\uff32\uff21\uff2c", "\U0001d4e1AL", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    *("\U0010ffff", "\uffff", "\uf8ff", "\ufdd0", "\U000e0041"),
    *("\x00", "RAL\x00", "\x1b[31m", "\x7f", "\x85", "\u2028", "a\r\nb", "\t"),
    *(" RAL", "RAL ", "\u00a0RAL", "\u3000", "ral", ".", "..", "a/b", "%2e%2e", "%", "+", "&", "#"),
    *("=1+1", "@RAL", "'", '"', "\\", "<b>", "{}", "[]", "null", "-", "--", "*", ",", ";", "~"),
    *("x" * 255, "x" * 256, "\u00e4" * 200, "\U0001f4be" * 64),
)
# JSON can carry them; an address cannot, but as bytes that are no UTF-8.
SURROGATES = ("\ud800", "\udfff", "RAL\udc00", "\ud83d", "\udcbe\ud83d")
# What schemathesis checks against the schema must be UTF-8: letters that nobody has stand for them.
STAND_IN = 0xE000
STAND_INS = tuple(
    "".join(
        chr(ord(one) - 0xD800 + STAND_IN) if "\ud800" <= one <= "\udfff" else one for one in text
    )
    for text in SURROGATES
)
NOT_UTF_8 = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"RAL\x80", b"\xf5\x80\x80\x80")

Kind = Literal["time", "number", "duration", "size", "text"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF: dict[Kind, tuple[str, ...]] = {
    "time": (*TIMES, *LOOSE_TIMES),
    "number": (*map(str, NUMBERS), *WRITTEN, *DIGITS),
    "duration": DURATIONS,
    "size": SIZES,
    "text": TEXTS,
}
# Which names of parameters and fields mean what; the others are texts, or what they were given.
NAMED: dict[Kind, str] = {
    "time": r"(from|to|before|after|cursor|\w+_at|time|since|until)",
    "duration": r"(.*age(\.(min|max))?|every|window|bucket|step|timeout.*)",
    "size": r"(.*bytes(\.(min|max))?|size.*)",
    "number": r"(.*(_s|\.min|\.max)|page|per_page|page_size|streams|days|tier|id|seconds|.*cap.*)",
}
# How often an end is one of another kind than the name says.
OTHER = 5


def kind_of(name: str) -> Kind:
    """Return what values of this name are."""
    return next((kind for kind, names in NAMED.items() if re.fullmatch(names, name)), "text")


def written(name: str, chance: Random) -> str:
    """Choose an end for a parameter, as it is written in an address."""
    kind = chance.choice(KINDS) if chance.randrange(OTHER) == 0 else kind_of(name)
    return chance.choice(OF[kind])


def in_json(name: str, given: object, chance: Random) -> Any:
    """Choose an end for a value of a body: a number for a number, or a text as it may be named."""
    if isinstance(given, bool) or given is None or chance.randrange(OTHER) == 0:
        return chance.choice((*NUMBERS, *STAND_INS, True, None, "", [], {}))
    if isinstance(given, int | float):
        return chance.choice(NUMBERS)
    ends = [one for one in OF[kind_of(name)] if one not in LOOSE_TIMES]
    return chance.choice((*ends, *STAND_INS))


def with_surrogates(text: str) -> str:
    """Put surrogates in place of what stands for them in a text of JSON, which is ASCII."""

    def surrogate(match: re.Match[str]) -> str:
        return f"\\u{int(match[1], 16) - STAND_IN + 0xD800:04x}"

    return re.sub(r"\\u(e[0-7][0-9a-f]{2})", surrogate, text)
