// Order a cluster: name, tenant, nodes, the parameters of the template; a check against quota and hubs before it is
// sent.

import { get, request } from "../api.js";
import { announce, h, replace } from "../dom.js";
import { shortTemplate } from "../format.js";
import { badge, field, noTemplates, panel, problemBox, select } from "../parts.js";
import { go } from "../router.js";
import { schemaForm } from "../schema_form.js";
import { session } from "../session.js";

const NAME = "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?";

export const title = () => "Order a cluster";

export async function show(main, { query }, signal) {
  const { items } = await get("/templates", signal);
  const template = items.find((each) => each.name === query.get("template")) || items[0];
  if (!template) {
    replace(main, h("h1", {}, "Order a cluster"), noTemplates());
    return;
  }
  const form = new OrderForm(template, signal);
  const choice = select(items.map((each) => [each.name, each.title || shortTemplate(each.name)]), template.name, { name: "template" });
  choice.addEventListener("change", () => go(`#/order?${new URLSearchParams({ template: choice.value })}`));
  replace(main, h("h1", {}, "Order a cluster"), h("div", { class: "order" }, form.element(field("Template", choice, template.description)),
    session.config.fleet ? form.side : null));
}

class OrderForm {
  constructor(template, signal) {
    this.template = template;
    this.signal = signal;
    this.key = crypto.randomUUID();
    this.problem = h("div");
    this.side = h("aside", { class: "side", "aria-label": "Check" });
    this.name = h("input", { name: "name", required: true, maxlength: 63, pattern: NAME, autocomplete: "off", spellcheck: "false" });
    this.tenant = select(template.tenants, template.tenants[0], { name: "tenant" });
    this.expires = h("input", { type: "datetime-local", name: "expires" });
    this.parameters = schemaForm(template.parameters || {});
    this.sets = [];
    this.setList = h("div", { class: "stack" });
    const first = Object.entries(template.nodes || {});
    for (const [resource, size] of first.length ? first : [[(template.classes || [])[0] || "", 1]]) this.addSet(first.length > 1 ? resource : "workers", resource, size);
    this.fields = { name: field("Name", this.name, "Lower case letters, digits and dashes."), tenant: field("Tenant", this.tenant) };
    replace(this.side, panel("Check", h("p", { class: "quiet" }, "Check whether quota and a hub have capacity before you order.")));
  }

  addSet(name, resource, size) {
    const set = {
      name: h("input", { value: name, required: true, pattern: NAME, maxlength: 63 }),
      class: this.template.classes && this.template.classes.length ? select(this.template.classes, resource, {})
        : h("input", { value: resource, required: true, maxlength: 63 }),
      size: h("input", { type: "number", min: 0, max: 10000, value: size, required: true }),
    };
    const remove = h("button", { type: "button", on: { click: () => {
      this.sets = this.sets.filter((each) => each !== set);
      row.remove();
      this.adder.focus();
    } } }, "Remove");
    const row = h("div", { class: "set" }, field("Node set", set.name), field("Class", set.class), field("Nodes", set.size), remove);
    this.sets.push(set);
    this.setList.append(row);
  }

  element(choice) {
    this.adder = h("button", { type: "button", on: { click: () => {
      this.addSet(`set-${this.sets.length + 1}`, (this.template.classes || [])[0] || "", 1);
      this.setList.lastElementChild.querySelector("input").focus();
    } } }, "Add node set");
    const hasParameters = Object.keys((this.template.parameters || {}).properties || {}).length;
    return h("form", { class: "stack", novalidate: false, on: { submit: (event) => { event.preventDefault(); this.submit(); } } },
      this.problem,
      panel("Cluster", h("div", { class: "stack" }, choice, this.fields.name, this.template.tenants.length > 1 ? this.fields.tenant : null,
        session.config.fleet ? field("Delete at", this.expires, "Optional. The quota of the tenant may set an earlier time.") : null)),
      panel("Nodes", this.setList, h("p", {}, this.adder)),
      hasParameters ? panel("Parameters", this.parameters.element) : null,
      h("div", { class: "buttons" }, h("button", { class: "primary" }, "Order"),
        session.config.fleet ? h("button", { type: "button", on: { click: (event) => this.check(event.target.form) } }, "Check") : null));
  }

  body() {
    const nodeSets = Object.fromEntries(this.sets.map((each) => [each.name.value, { class: each.class.value, size: Number(each.size.value) }]));
    const parameters = this.parameters.value();
    return {
      name: this.name.value, tenant: this.tenant.value,
      spec: {
        template: this.template.name,
        ...(Object.keys(nodeSets).length ? { nodeSets } : {}),
        ...(Object.keys(parameters).length ? { templateParameters: parameters } : {}),
        ...(this.expires.value ? { expiresAt: new Date(this.expires.value).toISOString().replace(/\.\d+Z$/, "Z") } : {}),
      },
    };
  }

  async attempt(work) {
    replace(this.problem);
    for (const each of Object.values(this.fields)) each.report("");
    try {
      await work(this.body());
    } catch (error) {
      if (this.signal.aborted) return;
      for (const { field: path, message } of error.errors || []) this.report(path.split("."), message);
      replace(this.problem, problemBox(error));
      this.problem.firstElementChild.tabIndex = -1;
      this.problem.firstElementChild.focus();
    }
  }

  report(path, message) {
    if (path[0] in this.fields) this.fields[path[0]].report(message);
    if (path[0] === "spec" && path[1] === "templateParameters") this.parameters.report(path.slice(2), message);
  }

  submit() {
    return this.attempt(async (body) => {
      const made = await request("POST", "/clusters", { body, headers: { "Idempotency-Key": this.key }, signal: this.signal });
      announce(`${made.name} is ordered`);
      go(`#/cluster/${made.id}`);
    });
  }

  check(form) {
    if (!form.reportValidity()) return null;
    return this.attempt(async (body) => {
      const plan = await request("POST", "/plan", { body, signal: this.signal });
      const part = (name, { fits, message }) => h("div", {}, h("h3", {}, name, " ", badge(fits ? "Fits" : "Does not fit", fits ? "good" : "bad")), h("p", {}, message));
      replace(this.side, panel("Check", part("Quota", plan.quota), part("Hub", plan.scheduling)));
      announce(plan.fits ? "The cluster fits" : "The cluster does not fit");
    });
  }
}
