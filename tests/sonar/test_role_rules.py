"""Which groups give which role, and what is said of a file that cannot be read."""

from pathlib import Path

import pytest

from sonar.people.role_rules import Grant, Role, RoleRules, RuleError, read

FILE = """
- {group: /grid/admins, role: administrator}
- {group: /grid/ops, role: operator}
- {group: "/grid/sites/{site}/admins", role: site-admin}
- {group: "urn:x:group:{site}:role=admin#iam.example.org", role: site-admin}
- {group: gridpp, role: site-admin, sites: [RAL, Glasgow]}
- {group: /grid, role: reader}
- {certificate: "/DC=org/CN=Anna", role: operator}
"""


@pytest.fixture
def rules(tmp_path: Path) -> RoleRules:
    return written(tmp_path, FILE)


def written(folder: Path, text: str) -> RoleRules:
    path = folder / "roles.yaml"
    path.write_text(text)
    return read(path)


@pytest.mark.parametrize(
    ("groups", "grant"),
    [
        ([], None),
        (["/else", "/grid/ops/more", "/GRID", "grid", ""], None),
        (["/grid"], Grant(Role.READER)),
        (["/grid", "/grid/ops"], Grant(Role.OPERATOR)),
        (["/grid/admins", "/grid/ops"], Grant(Role.ADMINISTRATOR)),
        (["/grid/sites/RAL/admins"], Grant(Role.SITE_ADMIN, frozenset({"RAL"}))),
        (
            ["gridpp", "/grid", "urn:x:group:DESY:role=admin#iam.example.org"],
            Grant(Role.SITE_ADMIN, frozenset({"DESY", "Glasgow", "RAL"})),
        ),
        (["/grid/sites/RAL/x/admins", "/grid/sites//admins", "/grid/sites/RAL/admins/x"], None),
        (["/grid/sites/{site}/admins", "/DC=org/CN=Anna", "*"], None),
        (["gridpp", "/grid/ops"], Grant(Role.OPERATOR)),
    ],
)
def test_the_highest_role_of_all_groups(
    rules: RoleRules, groups: list[str], grant: Grant | None
) -> None:
    assert rules.grant(groups) == grant


def test_a_certificate_is_judged_by_its_own_rules(rules: RoleRules) -> None:
    assert rules.grant([], "/DC=org/CN=Anna") == Grant(Role.OPERATOR)
    assert rules.grant([], "/DC=org/CN=Anna/CN=proxy") is None
    assert rules.grant([], "/grid") is None


def test_anybody_is_a_star(tmp_path: Path) -> None:
    rules = written(tmp_path, '- {group: "*", role: reader}\n- {group: ops, role: operator}')
    assert rules.grant([]) == rules.grant(["x"]) == Grant(Role.READER)
    assert rules.grant(["ops"]) == Grant(Role.OPERATOR)
    assert rules.grant([], "CN=Anna") is None


def test_who_makes_administrators_and_which_sites_are_named(rules: RoleRules) -> None:
    assert rules.makes_administrators({"group"})
    assert not rules.makes_administrators({"certificate"})
    assert rules.sites == {"RAL", "Glasgow"}


BAD = {
    "- [": "the file is not YAML",
    "": "must be a list of rules",
    "group: x": "must be a list of rules",
    "[]": "must be a list of rules",
    "- x": "rule 1 may contain only the keys certificate, group, role, sites",
    "- {group: x, role: reader}\n- {grp: x, role: reader}": "rule 2 may contain only",
    "- {role: reader}": "rule 1 needs either the name of a group or the subject of a certificate",
    "- {group: x, certificate: y, role: reader}": "rule 1 needs either the name of a group",
    "- {group: '', role: reader}": "rule 1 needs either the name of a group",
    "- {group: 7, role: reader}": "rule 1 needs either the name of a group",
    "- {group: x}": "rule 1 needs a role, one of reader, site-admin, operator, administrator",
    "- {group: x, role: root}": "rule 1 needs a role",
    "- {group: x, role: [reader]}": "rule 1 needs a role",
    "- {group: x, role: reader, sites: RAL}": "rule 1: “sites” must be a list",
    "- {group: x, role: reader, sites: [RAL]}": "rule 1: only a rule for the role site-admin",
    "- {group: x, role: site-admin}": "rule 1: a rule for the role site-admin needs either",
    "- {group: 'x{site}', role: operator}": "“sites”, or {site} in the name of the group",
    "- {group: 'x{site}', role: site-admin, sites: [RAL]}": "in the name of the group, not both",
    "- {group: '{site}{site}', role: site-admin}": "{site} may appear only once",
    "- {certificate: '{site}', role: site-admin}": "and only in the name of a group",
}


def test_what_cannot_be_read_says_where_and_what_is_allowed(tmp_path: Path) -> None:
    for text, said in BAD.items():
        with pytest.raises(RuleError) as caught:
            written(tmp_path, text)
        assert said in str(caught.value)
    with pytest.raises(RuleError, match=r"cannot be read \(No such file or directory\)"):
        read(tmp_path / "none.yaml")
