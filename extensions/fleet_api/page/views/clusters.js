// The list of clusters. The server filters, orders and pages; the address has all of it, so that it can be kept and
// sent.

import { get } from "../api.js";
import { announce, h, replace } from "../dom.js";
import { number, shortTemplate } from "../format.js";
import { follow, throttled } from "../live.js";
import { STATES, badge, empty, field, loading, problemBox, select, since, stateOf } from "../parts.js";
import { address, rewrite } from "../router.js";
import { session } from "../session.js";

const FIELDS = "name,tenant,created,deletionRequested,spec.template,spec.nodeSets,status.state,status.hub,status.version,status.nodes,status.conditions";
const SIZE = 50;
const TYPING = 250;
const REFRESH = 1000;
const REFRESH_LARGE = 5000;
const LARGE = 1000;
const FILTERS = ["q", "state", "version", "hub", "tenant", "template", "filter"];
const COLUMNS = [
  ["name", "Name"], ["tenant", "Tenant"], ["state", "State"], ["nodes", "Nodes"], ["version", "Version"], ["hub", "Hub"],
  ["template", "Template"], ["", "GitOps"], ["created", "Age"],
];

export const title = () => "Clusters";

export async function show(main, found, signal) {
  const view = new List(found.query, signal);
  replace(main, h("div", { class: "head" }, h("h1", {}, "Clusters"), h("a", { class: "button primary", href: "#/templates" }, "Order a cluster")),
    view.filters(), view.problem, view.status, view.table, view.pager);
  await view.load();
  view.loadChoices();
}

class List {
  constructor(query, signal) {
    this.query = query;
    this.view = signal;
    this.scope = session.operator ? "/admin" : "";
    this.hidden = [session.config.fleet ? "" : "hub", session.operator || session.tenants.length > 1 ? "" : "tenant"];
    this.columns = COLUMNS.filter(([key]) => !key || !this.hidden.includes(key));
    this.rows = new Map();
    this.body = h("tbody");
    this.heads = h("tr");
    this.problem = h("div");
    this.status = h("p", { class: "quiet list-status", role: "status" });
    this.pager = h("nav", { class: "pager", "aria-label": "Pages of the list" });
    const made = h("table", { class: "clusters" }, h("caption", { class: "hidden" }, "Clusters"), h("thead", {}, this.heads), this.body);
    this.table = h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Clusters" }, made);
    this.following = null;
    this.latest = 0;
  }

  value(name) {
    return this.query.get(name) || "";
  }

  // Filters

  filters() {
    const search = h("input", { type: "search", value: this.value("q"), name: "q", autocomplete: "off" });
    search.addEventListener("input", this.typed("q", search));
    const state = select([["", "All"], ...STATES], this.value("state"), { name: "state" });
    this.choices = Object.fromEntries(["version", "hub", "tenant", "template"].map((name) => [
      name, select([["", "All"]], this.value(name), { name }),
    ]));
    for (const [name, input] of [["state", state], ...Object.entries(this.choices)]) {
      input.addEventListener("change", () => this.change({ [name]: input.value }));
    }
    const expression = h("input", { value: this.value("filter"), name: "filter", autocomplete: "off", spellcheck: "false",
      placeholder: 'nodes >= 3 && labels["team"] == "web"' });
    expression.addEventListener("input", this.typed("filter", expression));
    return h("form", { class: "filters", role: "search", "aria-label": "Filter clusters", on: { submit: (event) => event.preventDefault() } },
      field("Name contains", search), field("State", state), field("Version", this.choices.version),
      this.hidden.includes("hub") ? null : field("Hub", this.choices.hub),
      this.hidden.includes("tenant") ? null : field("Tenant", this.choices.tenant), field("Template", this.choices.template),
      field("Expression", expression));
  }

  typed(name, input) {
    let timer = null;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(() => { if (!this.view.aborted) this.change({ [name]: input.value }); }, TYPING);
    };
  }

  async loadChoices() {
    const summary = await get(`${this.scope}/summary`, this.view).catch(() => null);
    if (!summary) return;
    for (const [name, input] of Object.entries(this.choices)) {
      const present = [...input.options].map((each) => each.value);
      const added = summary[`${name}s`].map((each) => each.value).filter((each) => !present.includes(each));
      input.append(...added.map((each) => h("option", { value: each }, name === "template" ? shortTemplate(each) : each)));
    }
  }

  change(changes) {
    for (const [name, value] of Object.entries(changes)) this.query.set(name, value);
    this.query.delete("cursor");
    rewrite(address("/clusters", this.query));
    this.load();
  }

  expression() {
    const parts = [];
    if (this.value("q")) parts.push(`name.contains(${quoted(this.value("q"))})`);
    for (const name of ["state", "version", "hub", "tenant", "template"]) {
      if (this.value(name)) parts.push(`${name} == ${quoted(this.value(name))}`);
    }
    if (this.value("filter").trim()) parts.push(`(${this.value("filter")})`);
    return parts.join(" && ");
  }

  // One page

  async load(quietly = false) {
    const turn = ++this.latest;
    const query = new URLSearchParams({ limit: SIZE, fields: FIELDS });
    const filter = this.expression();
    if (filter) query.set("filter", filter);
    if (this.value("sort")) query.set("order_by", `${this.value("sort")}, name`.replace(/^(name( desc)?), name$/, "$1"));
    if (this.value("cursor")) query.set("cursor", this.value("cursor"));
    if (!quietly && !this.rows.size) replace(this.status, loading());
    let page;
    try {
      page = await get(`${this.scope}/clusters?${query}`, this.view);
    } catch (error) {
      if (this.view.aborted || turn !== this.latest) return;
      if (error.code === "invalid-cursor") return this.change({});
      if (!quietly) replace(this.problem, problemBox(error));
      return;
    }
    if (turn !== this.latest || this.view.aborted) return;
    replace(this.problem);
    this.page = page;
    this.draw(page);
    if (!quietly) {
      announce(`${page.total} clusters`);
      this.follow(filter, page);
    }
  }

  draw(page) {
    const focused = document.activeElement && document.activeElement.closest("tr[data-id]");
    const id = focused && this.body.contains(focused) ? focused.dataset.id : "";
    this.rows = new Map(page.items.map((each) => [each.id, this.row(each)]));
    replace(this.heads, this.columns.map(([key, text]) => this.headCell(key, text)));
    replace(this.body, this.rows.size ? [...this.rows.values()] : h("tr", {}, h("td", { colspan: this.columns.length, class: "empty" }, this.nothing())));
    if (id && this.rows.has(id)) this.rows.get(id).querySelector("a").focus();
    const count = page.total === page.items.length ? `${number(page.total)} clusters` : `${number(page.items.length)} of ${number(page.total)} clusters`;
    replace(this.status, h("span", {}, count), this.isFiltered() ? h("a", { href: "#/clusters" }, "Clear filters") : null);
    const next = page.nextCursor ? { ...Object.fromEntries(this.query), cursor: page.nextCursor } : null;
    const first = Object.fromEntries([...this.query].filter(([name]) => name !== "cursor"));
    replace(this.pager,
      this.value("cursor") ? h("a", { class: "button", href: address("/clusters", first) }, "First page") : null,
      this.value("cursor") ? h("button", { on: { click: () => history.back() } }, "Previous") : null,
      next ? h("a", { class: "button", href: address("/clusters", next), rel: "next" }, "Next page") : null);
  }

  isFiltered() {
    return FILTERS.some((name) => this.value(name));
  }

  nothing() {
    return this.isFiltered() ? empty("No cluster matches", "Change the filter, or clear it.")
      : empty("No clusters yet", "A cluster is ordered from a template.", h("a", { class: "button", href: "#/templates" }, "Templates"));
  }

  headCell(key, text) {
    const [field_, direction] = (this.value("sort") || "name").split(" ");
    const order = field_ === key ? (direction === "desc" ? "descending" : "ascending") : null;
    if (!key) return h("th", { scope: "col" }, text);
    const next = order === "ascending" ? `${key} desc` : key;
    const button = h("button", { class: "sort", on: { click: () => {
      this.change({ sort: next });
      this.sorted = key;
    } } }, text, h("span", { "aria-hidden": "true" }, order === "ascending" ? " ↑" : order === "descending" ? " ↓" : ""));
    if (this.sorted === key) queueMicrotask(() => button.focus());
    if (this.sorted === key) this.sorted = null;
    return h("th", { scope: "col", "aria-sort": order, class: key === "nodes" ? "num" : null }, button);
  }

  row(item) {
    const status = item.status || {};
    const wanted = Object.values((item.spec || {}).nodeSets || {}).reduce((sum, each) => sum + each.size, 0);
    const cells = {
      name: () => h("th", { scope: "row" }, h("a", { href: `#/cluster/${item.id}` }, item.name)),
      tenant: () => h("td", {}, item.tenant),
      state: () => h("td", {}, badge(stateOf(item)), waiting(status)),
      nodes: () => h("td", { class: "num" }, status.nodes || `0/${wanted}`),
      version: () => h("td", {}, status.version || dash()),
      hub: () => h("td", {}, status.hub || dash()),
      template: () => h("td", { title: item.spec.template }, shortTemplate(item.spec.template)),
      "": () => h("td", {}, gitops(status)),
      created: () => h("td", {}, since(item.created)),
    };
    return h("tr", { "data-id": item.id }, this.columns.map(([key]) => cells[key]()));
  }

  // Changes

  follow(filter, page) {
    if (this.following) this.following.abort();
    this.following = new AbortController();
    const signal = AbortSignal.any([this.view, this.following.signal]);
    const again = throttled(() => this.load(true), page.total > LARGE ? REFRESH_LARGE : REFRESH, signal);
    const path = `${this.scope}/events${filter ? `?${new URLSearchParams({ filter })}` : ""}`;
    follow(path, page.resourceVersion, signal, (event) => {
      const row = event.name === "modified" && this.rows.get(event.data.id);
      if (row) {
        const hadFocus = row.contains(document.activeElement);
        const fresh = this.row(event.data);
        row.replaceWith(fresh);
        this.rows.set(event.data.id, fresh);
        if (hadFocus) fresh.querySelector("a").focus();
      }
      again();
    });
  }
}

function waiting(status) {
  const refused = (status.conditions || []).find((each) => each.status === "False" && ["QuotaReserved", "Scheduled", "HubReporting"].includes(each.type));
  return refused ? h("span", { class: "quiet small", title: refused.message }, ` ${refused.reason}`) : null;
}

function gitops(status) {
  const found = (status.conditions || []).filter((each) => /^(GitOps|Profiles)/.test(each.type));
  if (!found.length) return dash();
  const failed = found.find((each) => each.status !== "True");
  return failed ? h("span", { title: failed.message }, badge(failed.type, failed.status === "False" ? "warn" : "wait")) : badge("In sync", "good");
}

function dash() {
  return h("span", { class: "quiet" }, "–");
}

function quoted(text) {
  return `"${text.replace(/[\\"]/g, "\\$&").replace(/[\n\r\t]/g, " ")}"`;
}
