"""Who people are: passwords, an OpenID Connect provider, certificates: docs/login.md."""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from sonar.notation.addresses import is_web_service
from sonar.people.role_rules import RoleRules
from sonar.people.role_rules import read as read_rules
from sonar.settings.environment import envbool, envlist, envnetworks, envsecret, envtext

LONGEST_ISSUER = 200  # characters of a column of allauth's
# How people of each kind of rule log in.
LOG_IN_WAYS = {"certificate": "with a certificate", "group": "through the identity provider"}


def envissuer(name: str) -> str:
    """Read the address of an OpenID Connect issuer, without a slash at its end; or nothing."""
    text = envtext(name).rstrip("/")
    if text and not is_web_service(text):
        raise ImproperlyConfigured(
            f"{name}={text!r} is not the URL of an issuer. Use a URL such as "
            "https://iam.example.org; http is allowed only for this machine."
        )
    if len(text) > LONGEST_ISSUER:
        raise ImproperlyConfigured(f"{name} must have {LONGEST_ISSUER} characters or fewer.")
    return text


def envrules(name: str) -> RoleRules:
    """Read the file with the rules that give roles to groups; none if no file is named."""
    text = envtext(name)
    try:
        return read_rules(Path(text)) if text else RoleRules()
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}={text!r}: {error}.") from error


def provider_problem(
    oidc: dict[str, str], missing: list[str], scopes: list[str], audience: str
) -> str | None:
    """Say which settings of a provider do not fit each other; None if all do."""
    # With an issuer and an audience alone, scripts read and people log in by passwords.
    if missing and missing != list(oidc) and not (audience and missing == list(oidc)[1:]):
        return f"Log-in through an OpenID Connect provider also requires {' and '.join(missing)}."
    if audience and "SONAR_OIDC_ISSUER" in missing:
        return "SONAR_OIDC_AUDIENCE requires SONAR_OIDC_ISSUER."
    if audience and audience == oidc["SONAR_OIDC_CLIENT_ID"]:
        return (
            "SONAR_OIDC_AUDIENCE must differ from SONAR_OIDC_CLIENT_ID, the audience of ID tokens."
        )
    if "openid" not in scopes:
        return "SONAR_OIDC_SCOPES must include openid."
    return None


def login_problem(
    *,
    oidc: dict[str, str],
    scopes: list[str],
    audience: str,
    certificates: bool,
    rules: RoleRules,
    passwords: bool,
) -> str | None:
    """Say which settings of the log-in do not fit each other; None if all do."""
    missing = [name for name, value in oidc.items() if not value]
    if sentence := provider_problem(oidc, missing, scopes, audience):
        return sentence
    kinds = {"group"} if not missing else set()
    kinds |= {"certificate"} if certificates else set()
    if kinds and not any(rule.kind in kinds for rule in rules.rules):
        means = " or ".join(LOG_IN_WAYS[kind] for kind in sorted(kinds))
        word = " or ".join(f"a {kind}" for kind in sorted(kinds))
        return (
            f"No user can log in {means}: SONAR_LOGIN_ROLES must name a file with a rule for "
            f"{word}."
        )
    if not passwords and not rules.makes_administrators(kinds):
        return (
            "With SONAR_PASSWORDS=false, no administrator can log in. First add a rule to "
            "SONAR_LOGIN_ROLES that gives a group or certificate the role of administrator."
        )
    return None


# The first one lets nobody guess for ever; accounts and rights are Django's.
AUTHENTICATION_BACKENDS = [
    "matrix.http.throttling.LimitedPasswords",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
# Who logs in elsewhere: docs/login.md. All of it is off while nothing is set.
SONAR_OIDC_ISSUER = envissuer("SONAR_OIDC_ISSUER")
SONAR_OIDC_CLIENT_ID = envtext("SONAR_OIDC_CLIENT_ID")
SONAR_OIDC_CLIENT_SECRET = envsecret("SONAR_OIDC_CLIENT_SECRET")
# What the page calls the provider, and what it is asked for.
SONAR_OIDC_NAME = envtext("SONAR_OIDC_NAME")
SONAR_OIDC_SCOPES = envlist("SONAR_OIDC_SCOPES", "openid,profile")
# Claims that may hold groups: the first one that is there counts.
SONAR_OIDC_GROUPS = envlist(
    "SONAR_OIDC_GROUPS", "wlcg.groups,groups,eduperson_entitlement,entitlements"
)
# Scripts may read with tokens of the issuer that are for this audience.
SONAR_OIDC_AUDIENCE = envtext("SONAR_OIDC_AUDIENCE")
# Front servers whose word is taken for the certificate that a browser has shown them.
SONAR_X509_PROXIES = envnetworks("SONAR_X509_PROXIES")
SONAR_LOGIN_ROLES = envrules("SONAR_LOGIN_ROLES")
# Whether names and passwords of Sonar's own are accepted.
SONAR_PASSWORDS = envbool("SONAR_PASSWORDS", default=True)
if sentence := login_problem(
    oidc={
        "SONAR_OIDC_ISSUER": SONAR_OIDC_ISSUER,
        "SONAR_OIDC_CLIENT_ID": SONAR_OIDC_CLIENT_ID,
        "SONAR_OIDC_CLIENT_SECRET": SONAR_OIDC_CLIENT_SECRET,
    },
    scopes=SONAR_OIDC_SCOPES,
    audience=SONAR_OIDC_AUDIENCE,
    certificates=bool(SONAR_X509_PROXIES),
    rules=SONAR_LOGIN_ROLES,
    passwords=SONAR_PASSWORDS,
):
    raise ImproperlyConfigured(sentence)
# Of allauth nothing but its provider is used: no e-mail, no sign-up, no page and no token kept.
SOCIALACCOUNT_ADAPTER = "matrix.pages.log_in.LogInAdapter"
SOCIALACCOUNT_ONLY = True
SOCIALACCOUNT_EMAIL_VERIFICATION = ACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "matrix"
