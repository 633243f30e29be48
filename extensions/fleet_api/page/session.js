// Who uses the page, and with which token: by the code flow with PKCE, or a token that the user enters.
//
// The token is in sessionStorage. A reload keeps it, another tab and another site never see it, and it is gone with the
// tab. In memory alone each reload would ask again; scripts of others, which could read either, do not run here. It has
// no refresh token.

import { get, useToken } from "./api.js";

const TOKEN = "openfleet.token";
const PENDING = "openfleet.login";
export const session = { config: { login: null, fleet: true }, user: "", tenants: [], operator: false, active: false };

export async function begin(whenRefused) {
  session.config = await (await fetch("config.json")).json();
  const returned = new URLSearchParams(location.search);
  if (returned.has("code") || returned.has("error")) await finishLogin(returned);
  const token = sessionStorage.getItem(TOKEN);
  if (token) await useSession(token, whenRefused);
}

export async function useSession(token, whenRefused) {
  useToken(token, (problem) => {
    if (!session.active) return;
    end();
    whenRefused(problem);
  });
  const found = await get("/session");
  sessionStorage.setItem(TOKEN, token);
  Object.assign(session, found, { active: true });
}

export function end() {
  sessionStorage.removeItem(TOKEN);
  useToken("", () => {});
  Object.assign(session, { user: "", tenants: [], operator: false, active: false });
}

// Code flow with PKCE

export async function login() {
  const { issuer, client_id: client, scope, resource } = session.config.login;
  const endpoints = await discover(issuer);
  const pending = { verifier: random(), state: random(), nonce: random(), returnTo: location.hash };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const query = new URLSearchParams({
    response_type: "code", client_id: client, redirect_uri: redirectAddress(), scope, state: pending.state, nonce: pending.nonce,
    code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256", ...(resource ? { resource } : {}),
  });
  location.assign(`${endpoints.authorization_endpoint}?${query}`);
}

async function finishLogin(returned) {
  const pending = JSON.parse(sessionStorage.getItem(PENDING) || "null");
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", `${location.pathname}${(pending && pending.returnTo) || "#/"}`);
  const { issuer, client_id: client, resource, bearer: kind } = session.config.login || {};
  if (!pending || returned.get("state") !== pending.state) throw new Error("The login was not begun in this tab: log in again.");
  if (returned.has("iss") && returned.get("iss") !== issuer) throw new Error("The answer is of another issuer: log in again.");
  if (returned.has("error")) throw new Error(`The issuer refused the login: ${returned.get("error_description") || returned.get("error")}`);
  const endpoints = await discover(issuer);
  const answer = await fetch(endpoints.token_endpoint, {
    method: "POST", credentials: "omit",
    body: new URLSearchParams({
      grant_type: "authorization_code", code: returned.get("code"), redirect_uri: redirectAddress(), client_id: client,
      code_verifier: pending.verifier, ...(resource ? { resource } : {}),
    }),
  });
  const body = await answer.json();
  if (!answer.ok || !body[kind]) throw new Error(`The issuer gave no token: ${body.error_description || body.error || answer.status}`);
  if (kind === "id_token" && claims(body.id_token).nonce !== pending.nonce) throw new Error("The token is of another login: log in again.");
  sessionStorage.setItem(TOKEN, body[kind]);
}

async function discover(issuer) {
  const answer = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, { credentials: "omit" });
  const found = await answer.json();
  if (found.issuer !== issuer) throw new Error("The address of the login is that of another issuer.");
  return found;
}

function redirectAddress() {
  return `${location.origin}${location.pathname}`;
}

function claims(token) {
  const part = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
  return JSON.parse(atob(part));
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
