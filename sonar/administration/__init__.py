"""The Django admin: what its lists, forms and front page show. sonar/admin.py registers it."""
