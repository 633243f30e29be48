// Routes are in the fragment of the address: #/clusters?state=Ready. A change of the route ends the view before.

let current = null;

export function route() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

// An address that a person typed may have a percent sign that encodes nothing.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function address(path, query) {
  const kept = [...new URLSearchParams(query || {})].filter(([, value]) => value !== "");
  const text = new URLSearchParams(kept).toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

export function go(target) {
  location.hash = target.replace(/^#/, "");
}

// Changes the address without a new view: for filters while they are typed.
export function rewrite(target) {
  history.replaceState(history.state, "", target);
}

// A signal for one view, which aborts when the next one begins.
export function beginView() {
  if (current) current.abort();
  current = new AbortController();
  return current.signal;
}
