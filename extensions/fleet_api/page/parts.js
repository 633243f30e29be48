// Parts that several views share: states, times, bars, problems, dialogs.

import { h, newId, replace } from "./dom.js";
import { Problem } from "./api.js";
import { age, moment, number } from "./format.js";
import { session } from "./session.js";

export const STATES = ["Pending", "Progressing", "Ready", "Degraded", "Failed", "Deleting"];
const TONES = {
  Ready: "good", True: "good", Healthy: "good", Progressing: "busy", Pending: "wait", Degraded: "warn", Failed: "bad", False: "bad",
  Deleting: "deleting", Unknown: "wait", Warning: "warn", Normal: "good",
};

export function badge(text, tone) {
  return h("span", { class: `badge ${tone || TONES[text] || "wait"}` }, text);
}

// The state of a cluster. One whose deletion was requested is being deleted, whatever its hub has reported last.
export function stateOf(cluster) {
  return cluster.deletionRequested ? "Deleting" : (cluster.status || {}).state || "Pending";
}

export function since(time) {
  return time ? h("time", { datetime: time, title: moment(time) }, age(time)) : h("span", { class: "quiet" }, "not known");
}

// A labelled bar: how much of what is there is used; `goal`: how much of what is wanted is there.
export function bar(label, used, most, goal = false) {
  const share = most > 0 ? Math.min(1, used / most) : used > 0 || goal ? 1 : 0;
  const grade = goal ? (share >= 1 ? " reached" : "") : share >= 1 ? " full" : share >= 0.8 ? " high" : "";
  const fill = h("span", { class: `fill${grade}` });
  fill.style.inlineSize = `${Math.round(share * 100)}%`;
  return h("div", { class: "capacity" },
    h("div", { class: "capacity-text" }, h("span", {}, label), h("span", { class: "num" }, `${number(used)} of ${number(most)}`)),
    h("div", { class: "track", role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": most, "aria-valuenow": used,
      "aria-valuetext": `${used} of ${most}` }, fill));
}

export function panel(title, ...children) {
  const id = newId("panel");
  return h("section", { class: "panel", "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

export function table(caption, heads, rows, empty) {
  const head = h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col", class: each.class }, each.text || each))));
  const body = h("tbody", {}, rows.length ? rows : h("tr", {}, h("td", { colspan: heads.length, class: "empty" }, empty)));
  const made = h("table", {}, h("caption", { class: "hidden" }, caption), head, body);
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption }, made);
}

export function facts(entries) {
  return h("dl", { class: "facts" }, entries.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function empty(title, text, action) {
  return h("div", { class: "nothing" }, h("p", { class: "nothing-title" }, title), text ? h("p", {}, text) : null, action);
}

export function noTemplates() {
  return empty("No templates", session.tenants.length ? "No hub offers a template to your tenants now." : "You have no tenant that can order a cluster.");
}

export function problemBox(error) {
  const known = error instanceof Problem;
  return h("div", { class: "problem", role: "alert" },
    h("strong", {}, known ? error.title : "Unexpected error"),
    h("p", {}, error.message),
    known && error.action ? h("p", { class: "quiet" }, error.action) : null,
    known && error.operationId ? h("p", { class: "quiet small" }, `Operation ${error.operationId}`) : null);
}

export function loading(text = "Loading") {
  return h("p", { class: "quiet", "aria-busy": "true" }, text);
}

// A modal dialog around a form. `submit` returns when it is done, or throws a problem, which is shown in the dialog.
export function dialog(title, content, action, submit, tone = "primary") {
  const id = newId("dialog");
  const problem = h("div");
  const done = h("button", { class: tone, type: "submit" }, action);
  const cancel = h("button", { type: "button", on: { click: () => box.close() } }, "Cancel");
  const form = h("form", { method: "dialog", on: {
    submit: async (event) => {
      event.preventDefault();
      done.disabled = true;
      replace(problem);
      try {
        if (await submit() !== false) box.close();
      } catch (error) {
        replace(problem, problemBox(error));
      } finally {
        done.disabled = false;
      }
    },
  } }, h("h2", { id }, title), content, problem, h("div", { class: "buttons end" }, cancel, done));
  const box = h("dialog", { "aria-labelledby": id, on: { close: () => box.remove() } }, form);
  document.body.append(box);
  box.showModal();
  return { box, done };
}

export function field(label, input, hint) {
  const id = input.id || newId("field");
  input.id = id;
  const description = hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  if (description) input.setAttribute("aria-describedby", `${id}-hint`);
  const box = h("div", { class: "field" }, h("label", { for: id }, label), input, description, h("span", { class: "wrong", id: `${id}-wrong` }));
  box.report = (text) => {
    box.lastElementChild.textContent = text;
    input.toggleAttribute("aria-invalid", Boolean(text));
    if (text) {
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", [description ? `${id}-hint` : "", `${id}-wrong`].join(" ").trim());
    }
  };
  return box;
}

export function select(options, value, properties) {
  const made = h("select", properties, options.map((each) => {
    const [text, label] = Array.isArray(each) ? each : [each, each];
    return h("option", { value: text }, label);
  }));
  if (value && !options.some((each) => (Array.isArray(each) ? each[0] : each) === value)) made.append(h("option", { value }, value));
  made.value = value || "";
  return made;
}
