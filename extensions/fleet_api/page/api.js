// Requests to the API and its event streams, with the token of the session. Errors are problems as RFC 9457 has them.

const API = "api/fleet/v1";
let token = "";
let refused = () => {};

export function useToken(value, whenRefused) {
  token = value;
  refused = whenRefused;
}

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The service answered with status ${status}.`);
    this.status = status;
    this.code = body.code || "";
    this.title = body.title || "The request failed";
    this.action = body.action || "";
    this.errors = body.errors || [];
    this.operationId = body.operation_id || "";
  }
}

async function send(method, path, { body, headers, signal } = {}) {
  const sent = { ...headers };
  if (token) sent.Authorization = `Bearer ${token}`;
  if (body !== undefined) sent["Content-Type"] = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  let answer;
  try {
    answer = await fetch(`${API}${path}`, {
      method, headers: sent, signal, body: body === undefined ? undefined : JSON.stringify(body), credentials: "omit",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "The service does not answer", action: "Check the network; the page tries again." });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  if (answer.status === 401) refused(problem);
  throw problem;
}

export async function request(method, path, options) {
  const answer = await send(method, path, options);
  return answer.json();
}

export const get = (path, signal) => request("GET", path, { signal });

// The events of a stream: {id, name, data}. It ends when the server ends it.
export async function* stream(path, lastEventId, signal) {
  const headers = { Accept: "text/event-stream", ...(lastEventId ? { "Last-Event-ID": lastEventId } : {}) };
  const answer = await send("GET", path, { headers, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const blocks = (rest + part.value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(block) {
  const found = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return found.event && found.data ? { id: found.id, name: found.event, data: JSON.parse(found.data) } : null;
}
