"""Which groups give which role: the rules of the file that SONAR_LOGIN_ROLES names.

Whoever logs in at the provider brings the names of groups; a person with a certificate brings its
subject. docs/login.md shows a file. Nothing here knows Django: the settings read it as they start.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml


class Role(StrEnum):
    """Roles, the lowest first."""

    READER = "reader"
    SITE_ADMIN = "site-admin"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"


ANYBODY = "*"
SITE = "{site}"
# As the registry names sites: so it ends at what separates the parts of paths and URNs.
SITE_NAME = r"([A-Za-z0-9][A-Za-z0-9._-]*)"
KEYS = {"group", "certificate", "role", "sites"}
EXAMPLE = "- {group: /grid/shifters, role: operator}"


class RuleError(ValueError):
    """Rules that cannot be read; the sentence says which, and what is allowed."""


@dataclass(frozen=True)
class Grant:
    """A role, and for site admins the names of sites."""

    role: Role
    sites: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RoleRule:
    """A rule. ``kind`` is `group` or `certificate`; `{site}` in its pattern names a site."""

    kind: str
    pattern: str
    role: Role
    sites: frozenset[str] = frozenset()

    def grant(self, name: str) -> Grant | None:
        """Return what a group, or the subject of a certificate, gives; None for another one."""
        if SITE not in self.pattern:
            return Grant(self.role, self.sites) if self.pattern in (ANYBODY, name) else None
        before, _, after = self.pattern.partition(SITE)
        match = re.fullmatch(re.escape(before) + SITE_NAME + re.escape(after), name)
        return Grant(self.role, frozenset({match[1]})) if match else None


@dataclass(frozen=True)
class RoleRules:
    rules: tuple[RoleRule, ...] = ()

    def grant(self, groups: Collection[str], certificate: str = "") -> Grant | None:
        """Return the highest role that these give, and as a site admin all their sites.

        None if no rule is about any of them: such a person may not log in.
        """
        # Whoever is in no group is anybody, too.
        named = {"certificate": [certificate]} if certificate else {"group": groups or [""]}
        grants = [
            grant
            for rule in self.rules
            for name in named.get(rule.kind, [])
            if (grant := rule.grant(name))
        ]
        if not grants:
            return None
        role = max((grant.role for grant in grants), key=list(Role).index)
        sites = frozenset[str]().union(*(grant.sites for grant in grants))
        return Grant(role, sites if role is Role.SITE_ADMIN else frozenset())

    def makes_administrators(self, kinds: Collection[str]) -> bool:
        """Say whether anybody can become an administrator by one of these kinds of rules."""
        return any(rule.kind in kinds and rule.role is Role.ADMINISTRATOR for rule in self.rules)

    @property
    def sites(self) -> frozenset[str]:
        """The sites that are named, apart from those that the names of groups have in them."""
        return frozenset[str]().union(*(rule.sites for rule in self.rules))


def read(path: Path) -> RoleRules:
    """Read the rules in a file; raise RuleError with a sentence if that cannot be."""
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RuleError(f"the file cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RuleError("the file is not YAML") from error
    if not isinstance(rows, list) or not rows:
        raise RuleError(f"the file must be a list of rules such as “{EXAMPLE}”")
    return RoleRules(tuple(parse(row, f"rule {place}") for place, row in enumerate(rows, 1)))


def parse(row: object, where: str) -> RoleRule:
    """Return one rule; raise RuleError with a sentence that says where."""
    if not isinstance(row, dict) or set(row) - KEYS:
        raise RuleError(f"{where} may contain only the keys {', '.join(sorted(KEYS))}")
    kinds = [kind for kind in ("group", "certificate") if kind in row]
    if len(kinds) != 1 or not isinstance(row[kinds[0]], str) or not row[kinds[0]].strip():
        raise RuleError(f"{where} needs either the name of a group or the subject of a certificate")
    if row.get("role") not in list(Role):
        raise RuleError(f"{where} needs a role, one of {', '.join(Role)}")
    pattern, role, sites = row[kinds[0]], Role(row["role"]), row.get("sites", [])
    if not isinstance(sites, list) or not all(isinstance(site, str) for site in sites):
        raise RuleError(f"{where}: “sites” must be a list of site names")
    if pattern.count(SITE) > 1 or (SITE in pattern and kinds == ["certificate"]):
        raise RuleError(f"{where}: {SITE} may appear only once, and only in the name of a group")
    named_sites = bool(sites) + (SITE in pattern)
    if named_sites and role is not Role.SITE_ADMIN:
        raise RuleError(
            f"{where}: only a rule for the role site-admin may contain “sites”, or {SITE} in the "
            "name of the group"
        )
    if named_sites != 1 and role is Role.SITE_ADMIN:
        raise RuleError(
            f"{where}: a rule for the role site-admin needs either “sites” or {SITE} in the name "
            "of the group, not both"
        )
    return RoleRule(kinds[0], pattern, role, frozenset(sites))
