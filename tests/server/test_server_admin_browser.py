"""Admin, account, codes and the provider in a real browser, also without JavaScript; axe finds nothing serious."""

from __future__ import annotations

import pytest
from oidc_provider import provided
from server_world import listening, prepare, running
from system_parts import needs_chromium
from test_server_oidc import written

pytestmark = [needs_chromium, pytest.mark.long]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A server with a provider, where it is, and the provider."""
    folder = tmp_path_factory.mktemp("admin")
    prepare(folder)
    with (
        provided() as provider,
        running(folder, oidc=written(folder, provider.issuer)) as world,
        listening(world) as address,
    ):
        yield world, address, provider


@pytest.fixture
def opened(chromium):
    """Pages, and what their consoles said."""
    made, said = [], []

    def open_page(width=1200, scheme="light", **more):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        made.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        return page

    yield open_page
    for context in made:
        context.close()
    assert said == []


def another_site(address):
    """The same server by a name that is another site than the provider's number: browsers then hold cookies back."""
    return address.replace("127.0.0.1", "localhost")


def enter(page, world, address, name):
    page.goto(f"{address}/login#{world.server.accounts.invite(name, by='test')}")
    page.get_by_role("button", name="Sign in with it").click()
    page.wait_for_url("**/account")


def test_the_provider_lets_a_person_in_with_cookies_that_are_for_this_site_only(places, opened):
    """The way back is a page that goes on by itself: browsers may hold strict cookies back in redirects."""
    _, address, provider = places
    address = another_site(address)
    provider.person = {"sub": "b-1", "preferred_username": "bea", "groups": ["askers"]}
    page = opened()
    page.goto(f"{address}/login")
    page.get_by_role("link", name="Sign in with <Example>").click()
    page.wait_for_url("**/account")
    assert "Welcome, bea" in page.inner_text("h1")
    cookies = {one["name"]: one for one in page.context.cookies()}
    assert cookies["discreet_visit"]["sameSite"] == "Strict"
    assert "discreet_oidc" not in cookies


def test_an_account_is_tied_from_its_page(places, opened):
    world, address, provider = places
    address = another_site(address)
    provider.person = {"sub": "b-2", "preferred_username": "x", "groups": []}
    page = opened()
    enter(page, world, address, "reader")
    page.get_by_role("button", name="from now on").click()
    page.wait_for_url("**/account")
    page.get_by_text("You sign in by the provider").wait_for()
    world.server.accounts.unlink("reader", by="test")


@pytest.mark.parametrize(("width", "scheme", "script"), [(1200, "light", True), (360, "dark", False)])
def test_admin_pages_are_usable_by_everybody(places, opened, width, scheme, script):
    world, address, _ = places
    # axe runs in the page, so that it needs JavaScript: without it, the pages are looked at and used only.
    page = opened(width, scheme, java_script_enabled=script)
    invitation = world.server.accounts.invite("owner", by="test")
    page.goto(f"{address}/login")
    page.fill("#invitation", invitation)
    page.get_by_role("button", name="Sign in with it").click()
    page.wait_for_url("**/account")
    for path in ("/admin", "/admin/people", "/admin/tokens", "/admin/log", "/account", "/device"):
        page.goto(address + path)
        if script:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            check_with_axe(page, path)
    page.goto(f"{address}/admin/people")
    page.fill("#new-name", f"mia{width}")
    page.locator("#new-dataset-1").check()
    page.get_by_role("button", name="Add, and show the invitation").click()
    assert page.locator(".said pre").inner_text().startswith(f"{page.url.partition('/admin')[0]}/login#dsc_")
    begun = world.client().post("/v1/device", json={"label": "notebook"}).json()
    page.goto(f"{address}/device?code={begun['user_code']}")
    page.get_by_role("button", name="Go on").click()
    if script:
        check_with_axe(page, "/device, a code")
    page.get_by_role("button", name="Allow it for eight hours").click()
    page.get_by_text("Allowed.").wait_for()
    made = world.client().post("/v1/device/token", json={"device_code": begun["device_code"]}).json()
    assert world.server.accounts.bearer(made["token"]).name == "owner"


def check_with_axe(page, path):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == [], path
