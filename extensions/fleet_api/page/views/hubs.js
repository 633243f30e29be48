// The hubs of the fleet with their capacity, for operators.

import { get, request } from "../api.js";
import { announce, h, replace } from "../dom.js";
import { badge, bar, dialog, empty, facts, since } from "../parts.js";
import { address } from "../router.js";

const REFRESH = 5000;

export const title = () => "Hubs";

export async function show(main, _route, signal) {
  const list = h("ul", { class: "cards" });
  const load = async () => {
    const { items } = await get("/admin/hubs?limit=500", signal);
    if (list.contains(document.activeElement)) return;
    replace(list, items.map((each) => card(each, load)));
    if (!items.length) replace(list, h("li", {}, empty("No hubs", "A hub joins the fleet when its agent reports.")));
  };
  await load();
  replace(main, h("h1", {}, "Hubs"), list);
  const timer = setInterval(() => load().catch(() => {}), REFRESH);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function card(hub, load) {
  const { capacity = {}, schedulable = true } = hub.spec;
  const ready = (hub.conditions || []).find((each) => each.type === "Ready");
  const act = async (verb) => {
    await request("POST", `/admin/hubs/${encodeURIComponent(hub.id)}/${verb}`);
    document.activeElement.blur();
    announce(`${hub.name}: ${verb} done`);
    await load();
  };
  const drain = () => dialog(`Drain ${hub.name}`, h("p", {}, "No further cluster is bound to the hub. Its clusters stay until they are deleted."),
    "Drain", () => act("drain"), "danger");
  return h("li", { class: "panel card" },
    h("div", { class: "card-head" }, h("h2", {}, hub.name), badge(hub.ready ? "Ready" : "Not ready", hub.ready ? "good" : "bad"),
      schedulable ? null : badge("Cordoned", "warn")),
    hub.ready || !ready ? null : h("p", { class: "message" }, ready.message),
    bar("Clusters", hub.clusters, capacity.clusters || 0),
    Object.entries(capacity.nodes || {}).map(([name, most]) => bar(`Nodes ${name}`, most - ((hub.free.nodes || {})[name] ?? most), most)),
    facts([["Region", hub.spec.region], ["Heartbeat", hub.heartbeat ? since(hub.heartbeat) : null], ["Templates", (hub.templates || []).length || "0"]]),
    h("div", { class: "buttons" }, h("a", { class: "button", href: address("/clusters", { hub: hub.name }) }, "Clusters", h("span", { class: "hidden" }, ` of ${hub.name}`)),
      schedulable ? h("button", { on: { click: () => act("cordon") } }, "Cordon") : h("button", { on: { click: () => act("uncordon") } }, "Uncordon"),
      schedulable ? h("button", { on: { click: drain } }, "Drain") : null));
}
