"""The fleet page in a real browser, against a real service: what users do on it, and attacks that have no effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openfleet.clusters.extensions.sandbox import browser as browsers
from ansible_collections.openfleet.clusters.extensions.sandbox.access import Access, until
from ansible_collections.openfleet.clusters.extensions.sandbox.processes import free_port
from ansible_collections.openfleet.clusters.extensions.sandbox.pytest_plugin import fresh_namespace
from ansible_collections.openfleet.clusters.plugins.module_utils.common.types import Object
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.kinds import API_VERSION, HUB
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads import Workload, to_json
from ansible_collections.openfleet.clusters.plugins.module_utils.fleet.workloads_request import WorkloadsAnswer

from ..support.fleet import TEMPLATE, Fleet
from ..support.fleet_api import TENANT_ROLE, Facade, Site, Tenant
from ..support.fleet_page import User, expect, single_hub_page, tenant_token, user_of
from ..support.oidc_issuer import MISSING, OidcIssuer

ORDERS = "cloudkit.openshift.io/v1alpha1"
EVIL = "<img src=x onerror=window.pwned=1><script>window.pwned=1</script>"
# Each with its heading, and the role and the name of something that it shows once it has loaded what it shows.
ROUTES = {
    "#/": ("Overview", "region", "Needs attention"),
    "#/clusters": ("Clusters", "columnheader", "Name"),
    "#/templates": ("Templates", "link", "Order "),
    "#/order": ("Order a cluster", "button", "Add node set"),
    "#/quota": ("Quota", "meter", "Clusters"),
}


@pytest.fixture
def user(browser: Any, facade: Facade, tenant: Tenant) -> Iterator[User]:
    with user_of(browser, facade.address) as made:
        made.log_in(tenant.client.token)
        yield made


def offer(fleet: Fleet, **template: Any) -> None:
    """What the hub of the tenant offers."""
    item = fleet.home.get(API_VERSION, HUB, fleet.hubs[0])
    described = {"name": TEMPLATE, "title": "Small", "nodes": {"fc430": 2}, "classes": ["fc430"]} | template
    fleet.home.patch(item, {"status": {"templates": [described]}}, subresource="status")


def until_offered(tenant: Tenant, title: str = "Small") -> None:
    """Wait until the service has what the hub offers, and not only what it offered before."""

    def titles() -> list[str]:
        return [each.get("title") for each in tenant.client.get("/templates").json()["items"]]

    until(lambda: title in titles(), "the service has the template")


def open_route(user: User, route: str) -> None:
    """Go to one of the ROUTES, and wait until it shows what it loads."""
    heading, role, name = ROUTES[route]
    user.go(route)
    user.heading(heading)
    expect(user.page.get_by_role(role, name=name).first).to_be_visible()


def open_cluster(user: User, cluster: Object) -> None:
    """Go to a cluster, and wait until it has been asked for its workloads and its Events."""
    user.go(f"#/cluster/{cluster['metadata']['uid']}")
    user.heading(cluster["metadata"]["name"])
    expect(user.page.get_by_role("group", name="Events", exact=True)).to_be_visible()
    expect(user.page.get_by_text("Loading from the hub")).to_have_count(0)


def report(fleet: Fleet, name: str, nodes: int, state: str, **status: Any) -> None:
    """The report of the hub arrives at home."""
    fleet.report(name, nodes, state=state, **status)
    fleet.reconcile()


def test_tenant_orders_a_cluster_watches_it_scales_it_sees_it_break_and_deletes_it(user: User, fleet: Fleet, tenant: Tenant) -> None:
    schema = {"type": "object", "properties": {"channel": {"enum": ["stable", "fast"]}, "key": {"type": "string"}}, "required": ["key"]}
    offer(fleet, parameters=schema)
    page = user.page
    until_offered(tenant)
    page.evaluate("window.marker = 1")
    page.get_by_role("link", name="Templates", exact=True).first.click()
    page.get_by_role("link", name="Order Small").click()
    page.get_by_label("Name", exact=True).fill("demo")
    page.get_by_label("key (required)").fill("ssh")
    page.get_by_label("channel").select_option(label="fast")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("The quota has capacity for the cluster.")).to_be_visible()
    page.get_by_role("button", name="Order", exact=True).click()
    user.heading("demo")
    assert fleet.cluster("demo")["spec"]["templateParameters"] == {"channel": "fast", "key": "ssh"}

    fleet.reconcile()
    expect(user.state).to_have_text("Progressing")
    report(fleet, "demo", 2, "Ready", version="4.17.9", apiURL="https://api.demo.example.com")
    expect(user.state).to_have_text("Ready")
    expect(page.get_by_text("4.17.9")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("demo is Ready")

    page.get_by_role("button", name="Scale").click()
    page.get_by_label("Nodes of workers").fill("3")
    page.get_by_role("dialog").get_by_role("button", name="Scale").click()
    until(lambda: fleet.cluster("demo")["spec"]["nodeSets"]["workers"]["size"] == 3, "the cluster is scaled")
    fleet.reconcile()
    expect(page.get_by_text("2 of 3")).to_be_visible()

    failure = {"reason": "TaskFailed", "message": "No hosts.", "task": "claim hosts", "attempts": 2, "nextAttempt": "2099-01-01T00:00:00Z"}
    report(fleet, "demo", 2, "Failed", failure=failure)
    expect(user.state).to_have_text("Failed")
    for text in ("claim hosts", "No hosts.", "Next attempt"):
        expect(page.get_by_label("Failure").get_by_text(text)).to_be_visible()
    user.go("#/")
    expect(page.get_by_role("row").filter(has_text="demo").get_by_text("No hosts.")).to_be_visible()

    user.go("#/clusters")
    page.get_by_role("link", name="demo", exact=True).click()
    page.get_by_role("button", name="Delete").click()
    confirm = page.get_by_role("dialog").get_by_role("button", name="Delete")
    expect(confirm).to_be_disabled()
    page.get_by_label("Type demo to confirm").fill("demo")
    confirm.click()
    expect(user.state).to_have_text("Deleting")
    fleet.home.patch(fleet.cluster("demo"), {"metadata": {"finalizers": None}}, checked=False)
    user.heading("demo is deleted")
    assert page.evaluate("window.marker") == 1, "the page was loaded again"


def test_cluster_stays_on_the_page_while_the_service_cannot_say_whether_it_exists(user: User, fleet: Fleet, tenant: Tenant) -> None:
    cluster = fleet.add_cluster("demo", nodes=2)
    identity = cluster["metadata"]["uid"]
    until(lambda: tenant.client.get(f"/clusters/{identity}").status == 200, "the service has the cluster")
    page, gaps, refused = user.page, list[str](), list[str]()

    def close_gap(route: Any) -> None:
        """The stream ends with a gap each time. The first two of them cannot be closed."""
        gaps.append(route.request.url)
        route.fulfill(status=200, content_type="text/event-stream", body="event: reset\ndata: {}\n\n")

    def refuse(route: Any) -> None:
        if gaps and len(refused) < 2:
            refused.append(route.request.url)
            route.fulfill(status=503, content_type="application/problem+json", body="{}")
        else:
            route.continue_()

    page.route(re.compile("/v1/events[?]"), close_gap)
    page.route(re.compile(f"/v1/clusters/{identity}$"), refuse)
    page.evaluate(
        """new MutationObserver(() => { window.ended ||= document.body.innerText.includes("is deleted"); })
             .observe(document.body, {childList: true, subtree: true})"""
    )
    open_cluster(user, cluster)
    with page.expect_response(lambda answer: len(refused) == 2 and answer.ok and answer.url.endswith(f"/v1/clusters/{identity}")):
        pass
    user.heading("demo")
    assert not page.evaluate("window.ended")


def test_pauses_grow_while_an_event_cannot_be_shown(user: User) -> None:
    page = user.page
    user.go("#/cluster/%")
    user.heading("This page cannot be shown")  # which follows nothing itself
    page.route(
        re.compile("/v1/events[?]"),
        lambda route: route.fulfill(status=200, content_type="text/event-stream", body="event: reset\ndata: {}\n\n"),
    )
    pauses = page.evaluate(
        """async () => {
             const { follow } = await import(new URL("live.js", document.querySelector("script[type=module]").src));
             const pauses = [], stop = new AbortController(), later = window.setTimeout;
             Math.random = () => 1;
             window.setTimeout = (work, pause) => { pauses.push(pause); return later(work, 0); };
             let failures = 0;
             await follow("/events?x=1", "", stop.signal, () => { if (++failures === 4) stop.abort(); throw new Error("no"); });
             return pauses;
           }"""
    )
    assert pauses == [1000, 2000, 4000]


def test_address_that_encodes_nothing_names_no_cluster(user: User) -> None:
    user.go("#/cluster/%")
    user.heading("This page cannot be shown")


def test_list_is_filtered_ordered_and_paged_by_the_server_and_kept_in_the_address(user: User, fleet: Fleet, tenant: Tenant) -> None:
    for number in range(52):
        fleet.add_cluster(f"web-{number:02}", nodes=number % 3)
    until(lambda: tenant.client.get("/clusters?limit=1").json()["total"] == 52, "the service has the clusters")
    page, rows = user.page, user.page.locator("tbody tr")
    user.go("#/clusters")
    expect(page.get_by_text("50 of 52 clusters")).to_be_visible()
    page.get_by_role("link", name="Next page").click()
    expect(rows).to_have_count(2)
    page.get_by_label("Name contains").fill("1")
    expect(rows).to_have_count(15)
    assert "q=1" in page.url
    assert "cursor" not in page.url
    page.get_by_role("button", name="Name").click()
    expect(page.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "descending")
    expect(rows.first).to_contain_text("web-51")
    page.get_by_label("Expression").fill("nodes == 2 &&")
    expect(page.get_by_role("alert")).to_contain_text("unexpected")
    page.get_by_label("Expression").fill("nodes == 2")
    expect(rows).to_have_count(4)
    page.reload()
    expect(rows).to_have_count(4)
    expect(page.get_by_label("Name contains")).to_have_value("1")
    fleet.add_cluster("web-61-new", nodes=2)
    expect(rows).to_have_count(5)


def test_tenant_sees_nothing_of_another_one(browser: Any, user: User, facade: Facade, fleet: Fleet, tenant: Tenant, other: Tenant) -> None:
    made = fleet.add_cluster("secret-plan")
    until(lambda: tenant.client.get("/clusters").json()["items"], "the service has the cluster")
    user.go("#/clusters")
    expect(user.page.get_by_role("link", name="secret-plan")).to_be_visible()
    with user_of(browser, facade.address) as stranger:
        stranger.log_in(other.client.token)
        expect(stranger.page.get_by_text("No clusters yet")).to_be_visible()
        stranger.go(f"#/cluster/{made['metadata']['uid']}")
        expect(stranger.page.get_by_role("alert")).to_contain_text("Not found")
        for route, (heading, _role, _name) in ROUTES.items():
            stranger.go(route)
            stranger.heading(heading)
            assert "secret-plan" not in stranger.page.content()
            assert tenant.name not in stranger.page.content()


def test_scripts_in_fields_of_tenants_clusters_and_hubs_do_nothing(user: User, site: Site, fleet: Fleet, tenant: Tenant) -> None:
    schema = {"type": "object", "properties": {EVIL: {"type": "string", "description": EVIL, "default": EVIL}, "b": {"enum": [EVIL]}}}
    offer(fleet, title=EVIL, description=EVIL, parameters=schema)
    cluster = fleet.add_cluster("evil", nodes=1, templateParameters={EVIL: {EVIL: [EVIL]}})
    fleet.reconcile()
    moment = "2026-01-01T00:00:00Z"
    condition = {"type": "GitOpsSynced", "status": "False", "reason": "Evil", "message": EVIL, "lastTransitionTime": moment}
    profiles = [{"name": EVIL[:63], "chart": EVIL[:63], "version": EVIL[:63], "layer": 1, "dependsOn": [EVIL[:63]]}]
    failure = {"reason": EVIL, "message": EVIL, "task": EVIL}
    addresses = {"apiURL": "javascript:window.pwned=1", "consoleURL": "javascript:window.pwned=1//https://"}
    report(fleet, "evil", 1, "Failed", version=EVIL, failure=failure, conditions=[condition], profiles=profiles, **addresses)
    fleet.home.create(event_about(cluster))
    until_offered(tenant, EVIL)
    site.let_ask(fleet.hubs[0])
    page, asked = user.page, []
    page.on("dialog", lambda dialog: asked.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/x") else None)

    def examine_page() -> None:
        assert page.evaluate("window.pwned") is None
        assert page.locator("img:not([src='page/icon.svg']), main script, a[href^='javascript']").count() == 0

    for route in ROUTES:
        open_route(user, route)
        if route != "#/quota":
            expect(page.get_by_role("main")).to_contain_text(EVIL)
        examine_page()
    site.answer_one(fleet.hubs[0], WorkloadsAnswer(to_json([Workload(EVIL, EVIL, EVIL, "Failed", EVIL, EVIL)])))
    open_cluster(user, cluster)
    for name, times in (("Workloads", 5), ("Events", 2), ("Failure", 3), ("Parameters", 1), ("GitOps", 1)):
        region = page.get_by_role("region", name=name, exact=True)
        expect(region.get_by_text(EVIL)).to_have_count(times)
        expect(region.get_by_text(EVIL).first).to_be_visible()
    examine_page()
    for route, heading, shown in (
        (f"#/clusters?q={EVIL}", "Clusters", page.get_by_text("No cluster matches")),
        (f"#/clusters?filter={EVIL}", "Clusters", page.get_by_role("alert")),
        (f"#/cluster/{EVIL}", "This page cannot be shown", page.get_by_role("alert")),
        (f"#/{EVIL}", "Not found", page.get_by_text("There is no such page.")),
    ):
        open_route(user, "#/quota")
        user.go(route)
        user.heading(heading)
        expect(shown).to_be_visible()
        examine_page()
    assert asked == []
    assert user.complaints == []
    # The browser itself refuses to parse a string as markup, also in a script of the page.
    assert page.evaluate("() => { try { document.body.innerHTML = 'x'; } catch (error) { return error.name; } }") == "TypeError"
    until(lambda: page.wait_for_timeout(50) or user.complaints, "the browser reports it")
    user.complaints.clear()


def event_about(cluster: Object) -> Object:
    metadata = cluster["metadata"]
    about = {
        "apiVersion": API_VERSION,
        "kind": "FleetCluster",
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
    }
    own = {"name": "evil", "namespace": metadata["namespace"]}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": own, "involvedObject": about, "type": "Warning"}
    return event | {"reason": EVIL[:100], "message": EVIL, "source": {"component": "test"}}


def test_axe_finds_nothing_serious_in_dark_and_light(browser: Any, site: Site, facade: Facade, fleet: Fleet, tenant: Tenant) -> None:
    offer(
        fleet, parameters={"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "boolean"}}}
    )
    cluster = fleet.add_cluster("demo", nodes=2)
    fleet.reconcile()
    profiles = [{"name": "crds", "layer": 0, "dependsOn": []}, {"name": "mesh", "version": "1.2.3", "layer": 1, "dependsOn": ["crds"]}]
    report(fleet, "demo", 2, "Degraded", version="4.17.9", failure={"reason": "Late", "message": "Late."}, profiles=profiles)
    until(lambda: tenant.client.get("/summary").json()["failing"] == 1, "the service has the report")
    axe = browsers.module("axe_playwright_python.sync_playwright").Axe()
    with site.operator(tenant.name) as operator:
        for scheme in ("dark", "light"):
            with user_of(browser, facade.address, color_scheme=scheme) as user:
                user.page.goto(f"{facade.address}/")
                user.heading("Log in to openfleet")
                examine(axe, user, f"login, {scheme}")
                user.log_in(tenant.client.token)
                for route in ROUTES:
                    open_route(user, route)
                    examine(axe, user, f"{route}, {scheme}")
                open_cluster(user, cluster)
                examine(axe, user, f"cluster, {scheme}")
                user.page.get_by_role("button", name="Delete").click()
                examine(axe, user, f"dialog, {scheme}")
        with user_of(browser, facade.address) as user:
            user.log_in(operator)
            user.go("#/hubs")
            user.heading("Hubs")
            expect(user.page.get_by_role("meter", name="Clusters").first).to_be_visible()
            examine(axe, user, "hubs")


def examine(axe: Any, user: User, where: str) -> None:
    found = axe.run(user.page).response["violations"]
    serious = [(each["id"], [node["target"] for node in each["nodes"]]) for each in found if each["impact"] in ("serious", "critical")]
    assert serious == [], where


def test_cluster_shows_its_profiles_by_layer_and_why_it_is_on_its_hub(user: User, site: Site, fleet: Fleet) -> None:
    cluster = fleet.add_cluster("demo", nodes=2)
    fleet.reconcile()
    profiles = [{"name": "crds", "layer": 0, "dependsOn": []}, {"name": "mesh", "version": "1.2.3", "layer": 1, "dependsOn": ["crds"]}]
    installed = {"type": "GitOpsInstalled", "status": "True", "reason": "ControllersAvailable", "message": ""}
    conditions = [installed | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]
    report(fleet, "demo", 2, "Degraded", apiURL="https://api.demo.example.com", profiles=profiles, conditions=conditions)
    site.let_ask(fleet.hubs[0])
    # A release of the tenant's own, with the name of a profile.
    releases = [
        Workload("HelmRelease", namespace, "mesh", health) for namespace, health in (("flux-system", "Failed"), ("shop", "Healthy"))
    ]
    site.answer_one(fleet.hubs[0], WorkloadsAnswer(to_json(releases)))
    open_cluster(user, cluster)
    graph = user.page.get_by_role("img", name="crds in layer 0; mesh in layer 1, after crds")
    expect(graph).to_be_visible()
    expect(graph).to_contain_text("1.2.3 · Failed")
    expect(user.page.get_by_role("region", name="Scheduling").get_by_role("paragraph")).to_contain_text(fleet.hubs[0])


def test_operator_cordons_a_hub_and_uncordons_it(browser: Any, site: Site, facade: Facade, fleet: Fleet, tenant: Tenant) -> None:
    hub = fleet.hubs[0]
    with site.operator(tenant.name) as operator, user_of(browser, facade.address) as user:
        user.log_in(operator)
        user.go("#/hubs")
        user.heading("Hubs")
        card = user.page.get_by_role("listitem").filter(has=user.page.get_by_role("heading", name=hub, exact=True))
        expect(card.get_by_role("meter", name="Clusters")).to_have_attribute("aria-valuetext", "0 of 10")
        card.get_by_role("button", name="Cordon", exact=True).click()
        expect(card.get_by_text("Cordoned", exact=True)).to_be_visible()
        assert fleet.home.get(API_VERSION, HUB, hub)["spec"]["schedulable"] is False
        card.get_by_role("button", name="Uncordon").click()
        expect(card.get_by_text("Cordoned", exact=True)).to_have_count(0)
        assert fleet.home.get(API_VERSION, HUB, hub)["spec"]["schedulable"] is True


def test_cluster_is_ordered_with_the_keyboard_alone(browser: Any, facade: Facade, fleet: Fleet, tenant: Tenant) -> None:
    offer(fleet)
    until_offered(tenant)
    with user_of(browser, facade.address) as user:
        page, keyboard = user.page, user.page.keyboard

        def tab_to(name: str) -> None:
            """Press Tab until the element of this name has the focus."""
            for _press in range(60):
                keyboard.press("Tab")
                if page.evaluate("document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent").strip() == name:
                    return
            raise AssertionError(f"{name} is not reached")

        page.goto(f"{facade.address}/")
        user.heading("Log in to openfleet")
        keyboard.insert_text(tenant.client.token)  # its field has the focus
        keyboard.press("Enter")
        user.heading("Overview")
        tab_to("Templates")
        keyboard.press("Enter")
        user.heading("Templates")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        tab_to("Order Small")
        keyboard.press("Enter")
        user.heading("Order a cluster")
        tab_to("Name")
        keyboard.type("keys")
        keyboard.press("Enter")
        user.heading("keys")
        tab_to("Delete")
        keyboard.press("Enter")
        keyboard.type("keys")
        keyboard.press("Escape")
        expect(page.get_by_role("button", name="Delete")).to_be_focused()
    assert fleet.cluster("keys")["spec"]["nodeSets"]["workers"] == {"class": "fc430", "size": 2}


# The OIDC server is a package of npm, which a machine may lack; the table at the end of a run names this test then.
@pytest.mark.skipif(bool(MISSING), reason=f"{MISSING}: install Node.js with npm")
def test_login_at_an_issuer_by_the_code_flow_with_pkce(browser: Any, site: Site, tenant: Tenant, tmp_path: Path) -> None:
    issuer, port = OidcIssuer(tmp_path), free_port()
    address = f"http://127.0.0.1:{port}"
    try:
        issuer.start("page", f"{address}/")
        trusted = {"url": issuer.url, "audiences": ["fleet-api"], "username_prefix": "oidc:"}
        login = {"issuer": issuer.url, "client_id": "page", "resource": "urn:fleet"}
        replica = site.start(port=port, issuers=[trusted], login=login)
        site.bind(tenant.name, TENANT_ROLE, kind="User", name="oidc:carol")
        with user_of(browser, replica.address) as user:
            page = user.page
            page.goto(f"{address}/#/clusters?state=Ready")
            page.get_by_role("button", name="Log in", exact=True).click()
            page.locator("input[name=login]").fill("carol")
            page.locator("input[name=password]").fill("any")
            page.locator("button[type=submit]").click()
            page.get_by_role("button", name="Continue").click()
            user.heading("Clusters")
            assert page.url == f"{address}/#/clusters?state=Ready"
            expect(page.locator(".user")).to_have_text("carol")
            page.reload()
            user.heading("Clusters")
            assert page.evaluate("Object.keys(localStorage)") == []
            page.get_by_role("button", name="Log out").click()
            user.heading("Log in to openfleet")
            # A code that this tab has not asked for is not used.
            page.goto(f"{address}/?code=stolen&state=other")
            expect(page.get_by_role("alert")).to_contain_text("was not begun in this tab")
    finally:
        issuer.stop()


def test_orders_of_a_single_hub_with_a_token_of_the_hub(browser: Any, hub: Access, tmp_path: Path) -> None:
    with (
        single_hub_page(hub, tmp_path) as service,
        fresh_namespace(hub) as namespace,
        user_of(browser, service.facade.address) as user,
    ):
        page = user.page
        user.log_in(tenant_token(hub, namespace, service.facade))
        assert page.get_by_role("link", name="Quota").count() == 0
        user.go(f"#/order?template={TEMPLATE}")
        page.get_by_label("Name", exact=True).fill("demo")
        page.get_by_role("button", name="Order", exact=True).click()
        user.heading("demo")
        expect(user.state).to_have_text("Progressing")
        order = hub.kube.get(ORDERS, "ClusterOrder", "demo", namespace)
        assert order["spec"]["templateID"] == TEMPLATE
        status = {"phase": "Ready", "observedGeneration": order["metadata"]["generation"], "version": {"running": "4.17.9"}}
        hub.kube.patch(order, {"status": status}, subresource="status")
        expect(user.state).to_have_text("Ready")
        expect(page.get_by_text("4.17.9")).to_be_visible()
        page.get_by_role("button", name="Scale").click()
        page.get_by_label("Nodes of fc430").fill("4")
        page.get_by_role("dialog").get_by_role("button", name="Scale").click()
        until(
            lambda: hub.kube.get(ORDERS, "ClusterOrder", "demo", namespace)["spec"]["nodeRequests"][0]["numberOfNodes"] == 4, "it is scaled"
        )
        page.get_by_role("button", name="Delete").click()
        page.get_by_label("Type demo to confirm").fill("demo")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        user.heading("demo is deleted")
        assert not service.recorder.refused
