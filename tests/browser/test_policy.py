"""The Content-Security-Policy of the pages, tried in a browser."""

TRY_ALL = """async () => {
    window.ran = [];
    const add = (markup) => document.body.append(
        document.createRange().createContextualFragment(markup));
    add("<script>ran.push('inline script')</script>");
    add("<img src='/nothing.png' onerror=\\"ran.push('handler')\\">");
    add("<a id=leads href=\\"javascript:ran.push('address')\\">x</a>");
    document.getElementById("leads").click();
    add("<script src='https://elsewhere.invalid/x.js'></script>");
    await fetch("https://elsewhere.invalid/").catch(() => {});
}"""
REFUSALS = (
    "Executing inline script violates the following Content Security Policy",
    "Executing inline event handler violates the following Content Security Policy",
    "Running the JavaScript URL violates the following Content Security Policy",
    "Loading the script 'https://elsewhere.invalid/x.js' violates the following Content Security P",
    "Connecting to 'https://elsewhere.invalid/' violates the following Content Security Policy",
    "Fetch API cannot load https://elsewhere.invalid/",
)


def test_what_somebody_might_smuggle_into_a_page_does_not_run(visit, scene):
    page = visit.go("/")
    page.evaluate(TRY_ALL)
    visit.expect_refusal(404)  # the handler of the picture is tried once the server has none
    for refusal in REFUSALS:
        visit.expect_error(refusal)
    assert page.evaluate("ran") == []
    visit.hosts.discard("elsewhere.invalid")  # Playwright tells of what the browser refused, too
