// One cluster: state, conditions over time, nodes, scheduling, failure, GitOps, workloads, events; scale, kubeconfig,
// delete.

import { get, request } from "../api.js";
import { announce, external, h, replace } from "../dom.js";
import { moment, shortTemplate } from "../format.js";
import { follow, throttled } from "../live.js";
import { badge, bar, dialog, empty, facts, field, panel, problemBox, select, since, stateOf, table } from "../parts.js";
import { profileGraph } from "../profile_graph.js";
import { session } from "../session.js";

const GITOPS = /^(GitOps|Profiles)/;
const FALSE_IS_GOOD = ["Expiring", "Deleting", "Upgrading"];
const FLUX_NAMESPACE = "flux-system";
const DETAILS_PAUSE = 5000;

export const title = () => "Cluster";

export async function show(main, { parts }, signal) {
  const id = parts[1] || "";
  const view = new Detail(main, id, signal);
  const scope = session.operator ? "/admin" : "";
  const filter = new URLSearchParams({ filter: `id == ${JSON.stringify(id)}` });
  // The version to follow from is read first: what changes after it comes as an event.
  const { resourceVersion } = await get(`${scope}/clusters?limit=1&fields=name&${filter}`, signal);
  view.draw(await get(`/clusters/${encodeURIComponent(id)}`, signal));
  document.title = `${view.item.name} · openfleet`;
  view.loadDetails();
  const again = throttled(() => view.loadDetails(), DETAILS_PAUSE, signal);
  follow(`${scope}/events?${filter}`, resourceVersion, signal, async (event) => {
    if (event.name !== "reset" && event.data.id !== id) return;
    if (event.name === "deleted") view.deleted();
    else if (event.name === "reset") await view.reload();
    else view.draw(event.data);
    again();
  });
}

class Detail {
  constructor(main, id, signal) {
    this.main = main;
    this.id = id;
    this.signal = signal;
    this.head = h("div");
    this.body = h("div", { class: "detail" });
    this.details = { workloads: null, events: null };
    replace(main, this.head, this.body);
  }

  draw(item) {
    const before = this.item;
    this.item = item;
    const status = item.status || {};
    if (before && stateOf(before) !== stateOf(item)) announce(`${item.name} is ${stateOf(item)}`);
    this.drawHead(status);
    this.drawBody();
  }

  // The buttons stay the same elements, so that a change does not take the focus away.
  drawHead(status) {
    const { item } = this;
    this.state = this.state || h("span");
    this.actions = this.actions || this.buttons();
    replace(this.state, badge(stateOf(item)));
    const isDeleting = Boolean(item.deletionRequested);
    this.actions.scale.disabled = isDeleting;
    this.actions.remove.disabled = isDeleting;
    this.actions.access.disabled = isDeleting || !status.apiURL;
    this.actions.retry.hidden = !(session.config.fleet && session.operator && stateOf(item) === "Failed");
    this.facts = this.facts || h("div");
    replace(this.facts, facts([
      ["Tenant", item.tenant], ["Template", h("span", { title: item.spec.template }, shortTemplate(item.spec.template))], ["Version", status.version],
      ["Hub", status.hub], ["Nodes", status.nodes], ["Age", since(item.created)], ["Created by", item.createdBy],
      ["Expires", item.spec.expiresAt && h("time", { datetime: item.spec.expiresAt }, moment(item.spec.expiresAt))],
      ["API", status.apiURL && h("span", { class: "mono" }, status.apiURL)], ["Console", status.consoleURL && external(status.consoleURL)],
    ]));
    if (this.head.firstChild) return;
    const { scale, access, retry, remove } = this.actions;
    replace(this.head, h("p", { class: "crumbs" }, h("a", { href: "#/clusters" }, "Clusters")),
      h("div", { class: "head" }, h("h1", {}, item.name, " "), this.state, h("div", { class: "buttons end" }, scale, access, retry, remove)), this.facts);
  }

  buttons() {
    const button = (text, click, tone) => h("button", { class: tone, on: { click } }, text);
    return {
      scale: button("Scale", () => this.scale()), access: button("Kubeconfig", () => this.kubeconfig()),
      retry: button("Retry now", () => this.retry()), remove: button("Delete", () => this.remove(), "danger"),
    };
  }

  drawBody() {
    const { item } = this;
    const status = item.status || {};
    const conditions = status.conditions || [];
    const gitops = conditions.filter((each) => GITOPS.test(each.type));
    replace(this.body,
      status.failure ? failure(status.failure) : null,
      h("div", { class: "columns wide" },
        panel("Conditions", timeline(conditions.filter((each) => !gitops.includes(each)), stateOf(item))),
        h("div", { class: "stack" }, this.nodes(), this.scheduling(), gitops.length ? panel("GitOps", timeline(gitops, stateOf(item))) : null)),
      (status.profiles || []).length ? panel("Profiles by layer", this.profiles()) : null,
      panel("Workloads", this.workloads()),
      panel("Events", this.events()),
      Object.keys(item.spec.templateParameters || {}).length
        ? panel("Parameters", h("pre", { tabindex: 0 }, JSON.stringify(item.spec.templateParameters, null, 2))) : null,
      Object.keys(item.labels || {}).length
        ? panel("Labels", h("ul", { class: "labels" }, Object.entries(item.labels).map(([name, value]) => h("li", { class: "mono" }, `${name}=${value}`)))) : null);
  }

  nodes() {
    const reported = (this.item.status || {}).nodeSets || {};
    const wanted = this.item.spec.nodeSets || {};
    const names = [...new Set([...Object.keys(wanted), ...Object.keys(reported)])].sort();
    const rows = names.map((name) => {
      const set = wanted[name] || { class: reported[name].class, size: 0 };
      const label = name === set.class ? name : `${name} (${set.class})`;
      return bar(`${label}${wanted[name] ? "" : ", being removed"}`, (reported[name] || {}).ready || 0, set.size, true);
    });
    return panel("Nodes ready", rows.length ? rows : empty("No nodes", ""));
  }

  scheduling() {
    const { scheduling, hub } = this.item.status || {};
    return scheduling || hub ? panel("Scheduling", h("p", {}, (scheduling || {}).message || `Bound to ${hub}.`)) : null;
  }

  // Flux in the cluster has the releases of profiles in a namespace of its own. A tenant may have others of the same
  // names elsewhere.
  profiles() {
    const { profiles, conditions } = this.item.status;
    const isInside = (conditions || []).some((each) => each.type === "GitOpsInstalled");
    const found = ((this.details.workloads || {}).items || []).filter((each) => each.kind === "HelmRelease" && (!isInside || each.namespace === FLUX_NAMESPACE));
    const releases = new Map(found.map((each) => [each.name, each]));
    return profileGraph(profiles.map((each) => ({ ...each, state: (releases.get(each.name) || {}).health, message: (releases.get(each.name) || {}).message })));
  }

  // What the hub and the API are asked for when the section is opened

  async loadDetails() {
    const ask = async (name) => {
      try {
        this.details[name] = await get(`/clusters/${encodeURIComponent(this.item.id)}/${name}`, this.signal);
      } catch (error) {
        if (this.signal.aborted) return;
        this.details[name] = { problem: error };
      }
      if (!this.signal.aborted) this.drawBody();
    };
    await Promise.all([ask("events"), this.item.status.apiURL && !this.item.deletionRequested ? ask("workloads") : null]);
  }

  workloads() {
    const found = this.details.workloads;
    if (!found) return h("p", { class: "quiet" }, this.item.status.apiURL ? "Loading from the hub" : "The cluster has no API server yet.");
    if (found.problem) return found.problem.status === 409 || found.problem.status === 504 ? h("p", { class: "quiet" }, found.problem.message) : problemBox(found.problem);
    const rows = found.items.map((each) => h("tr", {}, h("td", {}, each.kind), h("td", {}, each.namespace), h("th", { scope: "row" }, each.name),
      h("td", {}, badge(each.health)), h("td", { class: "num" }, each.ready), h("td", { class: "message" }, each.message)));
    return [table("Workloads on the cluster", ["Kind", "Namespace", "Name", "Health", { text: "Ready", class: "num" }, "Message"], rows, "The cluster has no workloads."),
      found.truncated ? h("p", { class: "quiet small" }, "There are more: use the kubeconfig to see them.") : null];
  }

  events() {
    const found = this.details.events;
    if (!found) return h("p", { class: "quiet" }, "Loading");
    if (found.problem) return problemBox(found.problem);
    const rows = found.items.map((each) => h("tr", {}, h("td", {}, since(each.last)), h("td", {}, badge(each.type)), h("td", {}, each.reason),
      h("td", { class: "message" }, each.message), h("td", { class: "num" }, each.count)));
    return table("Events", ["Last", "Type", "Reason", "Message", { text: "Count", class: "num" }], rows, "There are no recent events.");
  }

  async reload() {
    try {
      this.draw(await get(`/clusters/${encodeURIComponent(this.id)}`, this.signal));
    } catch (error) {
      if (error.status !== 404) throw error;
      this.deleted();
    }
  }

  deleted() {
    announce(`${this.item.name} is deleted`);
    replace(this.main, h("p", { class: "crumbs" }, h("a", { href: "#/clusters" }, "Clusters")), h("h1", { tabindex: -1 }, `${this.item.name} is deleted`),
      empty("This cluster no longer exists", "Its record remains in the API.", h("a", { class: "button", href: "#/clusters" }, "Clusters")));
    this.main.querySelector("h1").focus();
  }

  // Actions

  scale() {
    const sets = Object.entries(this.item.spec.nodeSets || {}).sort(([left], [right]) => left.localeCompare(right));
    const inputs = sets.map(([name, set]) => [name, h("input", { type: "number", min: 0, max: 10000, value: set.size, required: true, name })]);
    const content = sets.length ? h("div", { class: "stack" }, inputs.map(([name, input]) => field(`Nodes of ${name}`, input, `Class ${this.item.spec.nodeSets[name].class}`)))
      : empty("No node sets", "");
    dialog(`Scale ${this.item.name}`, content, "Scale", async () => {
      const nodeSets = Object.fromEntries(inputs.map(([name, input]) => [name, { size: Number(input.value) }]));
      this.draw(await request("PATCH", this.path(), { body: { spec: { nodeSets } } }));
    });
  }

  remove() {
    const typed = h("input", { autocomplete: "off", spellcheck: "false", required: true });
    const { done } = dialog(`Delete ${this.item.name}`, h("div", { class: "stack" }, h("p", {}, "The cluster and everything on it is deleted. This cannot be undone."),
      field(`Type ${this.item.name} to confirm`, typed)), "Delete", async () => {
      this.draw(await request("DELETE", this.path()));
    }, "danger");
    done.disabled = true;
    typed.addEventListener("input", () => { done.disabled = typed.value !== this.item.name; });
  }

  kubeconfig() {
    const length = select([["600", "10 minutes"], ["3600", "1 hour"], ["28800", "8 hours"], ["86400", "1 day"]], "3600", { name: "length" });
    const content = h("div", { class: "stack" }, field("Valid for", length), h("p", { class: "quiet" }, "It gives all permissions in the cluster."));
    const { done } = dialog(`Kubeconfig of ${this.item.name}`, content, "Create", async () => {
      const answer = await request("POST", `${this.path()}/kubeconfig`, { body: { expirationSeconds: Number(length.value) } });
      const address = URL.createObjectURL(new Blob([answer.kubeconfig], { type: "application/yaml" }));
      this.signal.addEventListener("abort", () => URL.revokeObjectURL(address));
      const link = h("a", { class: "button primary", href: address, download: `${this.item.name}.kubeconfig` }, "Download");
      replace(content, h("p", {}, answer.expiresAt ? `Valid until ${moment(answer.expiresAt)}.` : "Kubeconfig issued."), h("p", {}, link));
      done.hidden = true;
      link.focus();
      return false;
    });
  }

  async retry() {
    try {
      this.draw(await request("POST", `/admin${this.path()}/retry`));
      announce("The cluster is tried again");
    } catch (error) {
      this.body.prepend(problemBox(error));
    }
  }

  path() {
    return `/clusters/${encodeURIComponent(this.item.id)}`;
  }
}

function failure(found) {
  return h("section", { class: "problem", "aria-label": "Failure" }, h("strong", {}, found.reason), h("p", {}, found.message),
    facts([["Task", found.task], ["Attempts", found.attempts && String(found.attempts)],
      ["Next attempt", found.nextAttempt && h("time", { datetime: found.nextAttempt }, moment(found.nextAttempt))]]));
}

// Conditions in the order in which they last changed; those that have just changed come first.
function timeline(conditions, state) {
  if (!conditions.length) return empty("No conditions yet", "");
  const sorted = [...conditions].sort((left, right) => right.lastTransitionTime.localeCompare(left.lastTransitionTime));
  const isWarning = !["Pending", "Progressing", "Deleting"].includes(state);
  return h("ol", { class: "timeline" }, sorted.map((each) => h("li", { class: tone(each, isWarning) },
    h("div", { class: "moment" }, h("span", { class: "type" }, each.type), badge(each.status, tone(each, isWarning)), h("span", { class: "quiet" }, since(each.lastTransitionTime), " ago")),
    each.message || each.reason ? h("p", {}, h("span", { class: "reason" }, each.reason), each.message ? `: ${each.message}` : "") : null)));
}

// What is not reached yet is no warning while the cluster is created.
function tone({ type, status }, isWarning) {
  if (FALSE_IS_GOOD.includes(type)) return status === "True" ? "busy" : "wait";
  return status === "True" ? "good" : status === "False" && isWarning ? "warn" : "wait";
}
