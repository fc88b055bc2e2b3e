"""What tests cost before anybody is tested: a mesh as it would be, or with one endpoint more.

The planner's rules as arithmetic: `grid` reads the registry, `rates` says how often a link is
tested and how long tests wait where there is no room, `budgets` what limits on bytes let through,
`demand` what each endpoint is asked for,
`estimate` what comes of it (`figures`), and `words` says it. docs/registry.md has what is taken
into account.
"""
