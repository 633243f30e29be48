// The start of the page: the session, the navigation, and the view of each route.

import { announce, h, replace } from "./dom.js";
import { onLiveState } from "./live.js";
import { problemBox } from "./parts.js";
import { beginView, route } from "./router.js";
import { begin, end, session } from "./session.js";
import * as loginView from "./views/login.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const tools = document.getElementById("tools");

// Views are loaded when they are needed. Each has `title(parts)` and `show(main, route, signal)`.
const VIEWS = {
  "": () => import("./views/overview.js"),
  clusters: () => import("./views/clusters.js"),
  cluster: () => import("./views/cluster.js"),
  templates: () => import("./views/templates.js"),
  order: () => import("./views/order.js"),
  hubs: () => import("./views/hubs.js"),
  quota: () => import("./views/quota.js"),
};

let shown = null;
const live = h("span", { class: "live" });
onLiveState((state) => {
  live.className = `live ${state === "live" ? "on" : state}`;
  live.textContent = { live: "Live", waiting: "Reconnecting", off: "" }[state];
});

async function show() {
  const found = route();
  const signal = beginView();
  const name = found.parts[0] || "";
  const isFirst = shown === null;
  shown = name;
  showFrame(name);
  let view = null;
  try {
    view = session.active ? await (VIEWS[name] || missing)() : loginView;
    if (signal.aborted) return;
    const title = view.title(found.parts);
    document.title = `${title} · openfleet`;
    await view.show(main, found, signal, start);
    if (signal.aborted) return;
    if (!isFirst) focusHeading();
    announce(title);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    replace(main, h("h1", { tabindex: -1 }, "This page cannot be shown"), problemBox(error),
      h("p", {}, h("button", { on: { click: show } }, "Try again")));
    focusHeading();
  }
}

// After a change of the route the keyboard goes on at the heading of the new view.
function focusHeading() {
  const heading = main.querySelector("h1");
  if (!heading || main.contains(document.activeElement) && document.activeElement.matches("input")) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

async function missing() {
  return {
    title: () => "Not found",
    show: (container) => replace(container, h("h1", {}, "Not found"), h("p", {}, "There is no such page. ", h("a", { href: "#/" }, "Overview"))),
  };
}

function showFrame(name) {
  if (!session.active) {
    replace(nav);
    replace(tools, themeButton());
    return;
  }
  const pages = [["", "Overview"], ["clusters", "Clusters"], ["templates", "Templates"]];
  if (session.config.fleet && session.operator) pages.push(["hubs", "Hubs"]);
  if (session.config.fleet) pages.push(["quota", "Quota"]);
  const of = { cluster: "clusters", order: "templates" }[name] || name;
  replace(nav, pages.map(([path, text]) => h("a", { href: `#/${path}`, "aria-current": path === of ? "page" : null }, text)));
  replace(tools, live, h("span", { class: "user", title: session.user }, session.user.split(":").pop()), themeButton(),
    h("button", { class: "plain", on: { click: () => { end(); show(); } } }, "Log out"));
}

function themeButton() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const button = h("button", { class: "plain" });
  const name = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `${button.textContent} theme`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("openfleet.theme", root.dataset.theme);
    name();
  });
  name();
  return button;
}

async function start(problem) {
  await show();
  if (problem) main.append(problemBox(problem));
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", show);
begin(start).then(() => start(), (problem) => { end(); return start(problem); });
