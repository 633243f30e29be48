// Limits and use of the tenants.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { bar, empty, facts, since } from "../parts.js";
import { session } from "../session.js";

export const title = () => "Quota";

export async function show(main, _route, signal) {
  const { items } = await get(session.operator ? "/admin/quotas" : "/quotas", signal);
  replace(main, h("h1", {}, "Quota"),
    items.length ? h("ul", { class: "cards" }, items.map(card)) : empty("No quota", "No tenant of yours has limits or clusters."));
}

function card(quota) {
  const names = [...new Set([...Object.keys(quota.hard), ...Object.keys(quota.used)])].sort();
  const bars = names.map((name) => (name in quota.hard ? bar(label(name), quota.used[name] || 0, quota.hard[name])
    : facts([[label(name), `${quota.used[name]}, no limit`]])));
  return h("li", { class: "panel card" }, h("h2", {}, quota.tenant),
    quota.denied ? h("div", { class: "problem" }, h("strong", {}, "No further clusters"), h("p", {}, quota.denied.reason),
      quota.denied.deleteAfter ? h("p", {}, "Clusters are deleted after ", since(quota.denied.deleteAfter)) : null) : null,
    quota.limited ? bars : empty("No limits are set", "Without limits no cluster is accepted. Ask the operator of the fleet."),
    facts([["Longest lifetime", quota.maxLifetime]]));
}

const label = (name) => name.replace(/^nodes\./, "Nodes of class ").replace(/^clusters\./, "Clusters of ").replace(/^(nodes|clusters)$/, (text) => text[0].toUpperCase() + text.slice(1));
