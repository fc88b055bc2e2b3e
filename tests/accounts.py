"""Accounts with each role, for tests."""

from django.contrib.auth.models import User
from django.test import Client

from sonar.models import Site
from sonar.people import roles
from sonar.people.roles import Role


def account(role: Role = Role.READER, *sites: Site, name: str = "") -> User:
    """Make an account that has this role."""
    user = User.objects.create_user(name or f"the-{role}")
    roles.give(user, role, sites)
    return user


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
