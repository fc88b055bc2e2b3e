"""OpenAPI 3.1 of the API, from the code: what each call takes, and what it answers."""
