// Login: at the issuer of the site, or with a token.

import { h, replace } from "../dom.js";
import { field, problemBox } from "../parts.js";
import { end, login, session, useSession } from "../session.js";

export const title = () => "Log in";

export function show(main, _route, _signal, start) {
  const problem = h("div");
  const attempt = async (work) => {
    replace(problem);
    try {
      await work();
    } catch (error) {
      end();
      replace(problem, problemBox(error));
    }
  };
  const token = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false", name: "token" });
  const form = h("form", { class: "stack", on: {
    submit: (event) => {
      event.preventDefault();
      attempt(async () => {
        await useSession(token.value.trim(), start);
        await start();
      });
    },
  } },
  field("Token", token, "A token of this cluster, such as kubectl create token prints. It stays in this tab."),
  h("div", {}, h("button", { class: session.config.login ? "" : "primary" }, "Log in with the token")));
  const single = h("div", {}, h("button", { class: "primary wide", on: { click: () => attempt(login) } }, "Log in"));
  const content = session.config.login
    ? [single, h("details", {}, h("summary", {}, "Use a token instead"), form)]
    : [form];
  replace(main, h("div", { class: "login" }, h("h1", {}, "Log in to openfleet"), ...content, problem,
    h("p", { class: "quiet small" }, h("a", { href: "explorer.html" }, "Operations of the API"))));
  if (!session.config.login) token.focus();
}
