// Lists the operations of the OpenAPI document and sends them. Everything is shown as text, never as markup.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function example(document_, schema, depth = 0) {
  if (!schema || depth > 6) return null;
  if (schema.$ref) return example(document_, document_.components.schemas[schema.$ref.split("/").pop()], depth + 1);
  const chosen = schema.anyOf || schema.oneOf;
  if (chosen) return example(document_, chosen.find((each) => each.type !== "null"), depth + 1);
  if ("default" in schema) return schema.default;
  if (schema.type === "object") {
    const required = schema.required || Object.keys(schema.properties || {}).slice(0, 1);
    return Object.fromEntries(required.map((name) => [name, example(document_, schema.properties[name], depth + 1)]));
  }
  return { string: "", integer: schema.minimum || 0, number: 0, boolean: false, array: [] }[schema.type] ?? null;
}

function operationForm(document_, path, method, operation) {
  const form = element("form", { className: "operation" });
  const inputs = [];
  for (const parameter of operation.parameters || []) {
    const id = `${operation.operationId}-${parameter.in}-${parameter.name}`;
    const input = element("input", { id, required: parameter.required === true, title: parameter.description || "" });
    inputs.push([parameter, input]);
    form.append(element("label", { htmlFor: id, textContent: `${parameter.name} (${parameter.in})` }), input);
  }
  const content = operation.requestBody && operation.requestBody.content;
  const mediaType = content && Object.keys(content)[0];
  let body = null;
  if (mediaType) {
    const id = `${operation.operationId}-body`;
    body = element("textarea", { id, rows: 8, value: JSON.stringify(example(document_, content[mediaType].schema), null, 2) });
    form.append(element("label", { htmlFor: id, textContent: "body" }), body);
  }
  const output = element("pre", { hidden: true, tabIndex: 0 });
  form.append(element("button", { textContent: "Send" }));
  let running = null;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) running.abort();
    running = new AbortController();
    output.hidden = false;
    output.textContent = "";
    try {
      await send(path, method, inputs, mediaType, body, output, running.signal);
    } catch (error) {
      if (error.name !== "AbortError") output.textContent += String(error);
    }
  });
  return [form, output];
}

async function send(path, method, inputs, mediaType, body, output, signal) {
  const query = new URLSearchParams();
  const headers = {};
  let address = path;
  for (const [parameter, input] of inputs) {
    if (!input.value) continue;
    if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === "query") query.append(parameter.name, input.value);
    else headers[parameter.name] = input.value;
  }
  const token = document.getElementById("token").value.trim();
  if (token) headers.Authorization = `Bearer ${token}`;
  if (mediaType) headers["Content-Type"] = mediaType;
  const text = query.toString();
  const answer = await fetch(text ? `${address}?${text}` : address, {
    method: method.toUpperCase(), headers, body: body ? body.value : undefined, signal,
  });
  output.textContent = `${answer.status} ${answer.statusText}  ${answer.headers.get("X-Operation-Id")}\n\n`;
  if ((answer.headers.get("Content-Type") || "").startsWith("text/event-stream")) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) output.textContent += part.value;
    return;
  }
  const received = await answer.text();
  try {
    output.textContent += JSON.stringify(JSON.parse(received), null, 2);
  } catch {
    output.textContent += received;
  }
}

async function show() {
  const list = document.getElementById("operations");
  const document_ = await (await fetch("openapi.json")).json();
  list.textContent = "";
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const method of METHODS.filter((name) => name in methods)) {
      const operation = methods[method];
      const summary = element("summary", {}, element("b", { textContent: method.toUpperCase() }), path);
      const about = element("p", { textContent: operation.description || "" });
      list.append(element("details", {}, summary, about, ...operationForm(document_, path, method, operation)));
    }
  }
}

document.getElementById("login").addEventListener("submit", (event) => event.preventDefault());
show();
