"""*Add a site*: site, endpoint, credential, check, mesh and cost, each a step that is kept at once.

What is registered already is a draft (`Endpoint.is_draft`) until the endpoint is enabled.
"""
