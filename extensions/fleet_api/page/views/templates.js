// The templates that the user's tenants can order.

import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { shortTemplate } from "../format.js";
import { facts, noTemplates } from "../parts.js";
import { address } from "../router.js";

export const title = () => "Templates";

export async function show(main, _route, signal) {
  const { items } = await get("/templates", signal);
  const cards = items.map((each) => h("li", { class: "panel card" },
    h("h2", {}, each.title || shortTemplate(each.name)),
    h("p", { class: "mono quiet small" }, each.name),
    h("p", {}, each.description || "This template has no description."),
    facts([
      ["Nodes", each.nodes && Object.entries(each.nodes).map(([name, count]) => `${count} ${name}`).join(", ")],
      ["Classes", each.classes && each.classes.join(", ")],
      ["Parameters", Object.keys((each.parameters || {}).properties || {}).join(", ")],
    ]),
    h("p", {}, h("a", { class: "button primary", href: address("/order", { template: each.name }) }, "Order",
      h("span", { class: "hidden" }, ` ${each.title || each.name}`)))));
  replace(main, h("h1", {}, "Templates"),
    items.length ? h("ul", { class: "cards" }, cards) : noTemplates());
}
