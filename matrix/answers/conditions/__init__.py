"""Conditions as all pages, calls and messages read and describe them."""
