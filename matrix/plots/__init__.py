"""Plotly figures as plain dicts; colours that depend on the theme are names of CSS variables."""
