// The overview: counts by state, version, hub, tenant and template, and what fails since when.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { number, shortTemplate } from "../format.js";
import { follow, throttled } from "../live.js";
import { STATES, badge, empty, panel, since, table } from "../parts.js";
import { address } from "../router.js";
import { session } from "../session.js";

const REFRESH = 2000;
const SHOWN = 8;

export const title = () => "Overview";

export async function show(main, _route, signal) {
  const scope = session.operator ? "/admin" : "";
  const content = h("div");
  const load = async () => replace(content, ...parts(await get(`${scope}/summary`, signal)));
  const version = await get(`${scope}/clusters?limit=1&fields=name`, signal);
  await load();
  const order = h("a", { class: "button primary", href: "#/templates" }, "Order a cluster");
  replace(main, h("div", { class: "head" }, h("h1", {}, "Overview"), order), content);
  const refresh = throttled(() => load().catch(() => {}), REFRESH, signal);
  follow(`${scope}/events`, version.resourceVersion, signal, refresh);
}

function parts(summary) {
  if (!summary.clusters) {
    return [empty("No clusters yet", "A cluster is ordered from a template.", h("a", { class: "button", href: "#/templates" }, "Templates"))];
  }
  const counts = new Map(summary.states.map((each) => [each.value, each.clusters]));
  const tiles = STATES.map((state) => h("li", {}, h("a", { class: "tile", href: address("/clusters", { state }) },
    h("span", { class: "tile-number num" }, number(counts.get(state))), badge(state))));
  const all = h("li", {}, h("a", { class: "tile", href: "#/clusters" }, h("span", { class: "tile-number num" }, number(summary.clusters)),
    h("span", { class: "quiet small" }, `clusters, ${number(summary.nodes)} nodes`)));
  return [
    h("ul", { class: "tiles", "aria-label": "Clusters by state" }, all, tiles),
    attention(summary),
    h("div", { class: "columns" },
      breakdown("By version", "version", summary.versions, summary.clusters),
      session.config.fleet ? breakdown("By hub", "hub", summary.hubs, summary.clusters) : null,
      summary.tenants.length > 1 ? breakdown("By tenant", "tenant", summary.tenants, summary.clusters) : null,
      breakdown("By template", "template", summary.templates, summary.clusters, shortTemplate)),
  ];
}

function attention(summary) {
  const rows = summary.attention.map((each) => h("tr", {},
    h("td", {}, h("a", { href: `#/cluster/${each.id}` }, each.name)),
    session.tenants.length > 1 || session.operator ? h("td", {}, each.tenant) : null,
    h("td", {}, badge(each.state)),
    h("td", {}, since(each.since)),
    h("td", { class: "message" }, each.reason ? h("b", {}, `${each.reason} `) : null, each.message)));
  const heads = ["Cluster", ...(session.tenants.length > 1 || session.operator ? ["Tenant"] : []), "State", "Since", "Why"];
  const more = summary.failing > summary.attention.length
    ? h("p", { class: "quiet" }, `${number(summary.failing)} clusters need attention; these ${summary.attention.length} for the longest time.`) : null;
  return panel("Needs attention", summary.failing ? table("Clusters that need attention", heads, rows) : empty("Nothing fails", ""), more);
}

function breakdown(name, key, values, total, shorten = (text) => text) {
  const shown = values.slice(0, SHOWN);
  const rows = shown.map((each) => {
    const fill = h("span", { class: "fill" });
    fill.style.inlineSize = `${Math.max(1, Math.round((each.clusters / total) * 100))}%`;
    return h("li", {}, h("a", { href: address("/clusters", { [key]: each.value }), title: each.value }, shorten(each.value)),
      h("span", { class: "num" }, number(each.clusters)), h("span", { class: "track", "aria-hidden": "true" }, fill));
  });
  const rest = values.length - shown.length;
  return panel(name, values.length ? h("ul", { class: "bars" }, rows) : empty("None yet", ""),
    rest > 0 ? h("p", { class: "quiet small" }, `and ${number(rest)} more`) : null);
}
