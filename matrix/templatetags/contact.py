"""Whom to tell, where a page says to ask an administrator."""

from django import template
from django.conf import settings
from django.utils.html import format_html

register = template.Library()


@register.simple_tag
def contact() -> str:
    """Link to the administrators of this Sonar; empty where none are named (SONAR_CONTACT)."""
    url = settings.SONAR_CONTACT
    return format_html('<a href="{}">{}</a>', url, url.removeprefix("mailto:")) if url else ""
