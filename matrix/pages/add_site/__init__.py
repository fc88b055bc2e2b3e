"""*Add site*: site, endpoint, credential, check, mesh and cost, each a step that is kept at once.

Registered sites and endpoints are drafts (`Endpoint.is_draft`) until the endpoint is enabled.
"""
