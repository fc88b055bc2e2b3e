"""*Add a site*: site, endpoint, credential, check, mesh and cost, each a step that is kept at once.

The draft is what is registered already: an endpoint that is not enabled, which nobody tests.
"""
