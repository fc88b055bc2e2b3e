"""Secrets are found in whatever way a foreign text writes them, and other texts stay."""

from base64 import b64encode, urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonar.movers.messages import one_line
from sonar.redaction.disguises import View, letters_of, without

TOKEN = "kQ7vT2mZx9LpR4wBn8Hs3Yd6Fj1GcVa5Ue0"
WRITTEN = {
    "plain": TOKEN,
    "other case": TOKEN.swapcase(),
    "escaped": "".join(f"%{ord(one):02x}" for one in TOKEN),
    "escaped twice": "".join(f"%25{ord(one):02x}" for one in TOKEN),
    "JSON": "".join(f"\\u{ord(one):04x}" for one in TOKEN),
    "HTML": "".join(f"&#x{ord(one):x};" for one in TOKEN),
    "base64": b64encode(TOKEN.encode()).decode(),
    "base64 of a sentence": urlsafe_b64encode(f"it was {TOKEN}".encode()).decode(),
    "hex": TOKEN.encode().hex(),
    "lines": "\r\n ".join(TOKEN[at : at + 7] for at in range(0, len(TOKEN), 7)),
    "spaced": " ".join(TOKEN),
    "divided by what has no width": "\u200b".join(TOKEN),
    "backwards": TOKEN[::-1],
    "full width": "".join(chr(ord(one) + 0xFEE0) for one in TOKEN),
    "half of it": TOKEN[:20],
    "its end": TOKEN[-17:],
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_token_is_hidden_however_a_server_writes_it(how: str):
    line = one_line(f"403 for {WRITTEN[how]}: no", TOKEN)
    assert line.startswith("403 for *")
    assert line.endswith(": no")
    kept = letters_of(View(line.removeprefix("403 for ").removesuffix(": no")).text)
    assert len(kept) < 8


@given(st.text(), st.text(min_size=16, max_size=60), st.text())
def test_no_secret_is_left_whatever_stands_around_it(before: str, secret: str, after: str):
    if len(letters_of(secret)) >= 16:
        assert secret not in without(f"{before} {secret} {after}", [secret])


def test_what_is_hidden_stands_in_the_text_as_it_came_and_others_stay():
    text = f"\uff26\u00fcr {TOKEN.lower()}: \ufb01n%20"
    assert without(text, [TOKEN]) == "\uff26\u00fcr ***: \ufb01n%20"
    for text in ("403 Forbidden", "a/b%20c &amp; \ufb01le \\u0041 " * 20, ""):
        assert without(text, [TOKEN]) == text
