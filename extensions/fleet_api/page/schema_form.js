// A form made from a JSON Schema (draft 2020-12): fields by type, and the value that they hold. The server validates;
// this helps.

import { h } from "./dom.js";
import { field, select } from "./parts.js";

const DEEPEST = 4;

// Returns {element, value(), report(path, text)}. A field that is left empty is not part of the value, and an optional
// group may be empty.
export function schemaForm(schema, depth = 0, isOptional = false) {
  const required = new Set(isOptional ? [] : schema.required || []);
  const entries = Object.entries(schema.properties || {});
  entries.sort(([left], [right]) => required.has(right) - required.has(left));
  const parts = new Map(entries.map(([name, each]) => [name, part(name, resolved(each), required.has(name), depth)]));
  return {
    element: h("div", { class: "stack" }, [...parts.values()].map((each) => each.element)),
    value() {
      const found = {};
      for (const [name, each] of parts) {
        const value = each.value();
        if (value !== undefined) found[name] = value;
      }
      return found;
    },
    report(path, text) {
      const [name, ...rest] = path;
      if (!parts.has(name)) return false;
      return parts.get(name).report(rest, text);
    },
  };
}

// Of several forms that a value may have, the first plain one.
function resolved(schema) {
  const forms = schema.anyOf || schema.oneOf;
  return forms ? { ...schema, ...(forms.find((each) => each.type && each.type !== "null") || {}) } : schema;
}

function part(name, schema, required, depth) {
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type;
  const hint = [schema.description, "default" in schema ? `Default: ${text(schema.default)}` : ""].filter(Boolean).join(" ");
  if (schema.enum) return choice(name, schema, required, hint);
  if (type === "boolean") return choice(name, { enum: [true, false] }, required, hint);
  if (type === "object" && schema.properties && depth < DEEPEST) return group(name, schema, required, hint, depth);
  if (type === "array" && (!schema.items || ["string", "integer", "number"].includes(schema.items.type))) return lines(name, schema, required, hint);
  if (type === "object" || type === "array") return json(name, required, hint);
  return plain(name, schema, type, required, hint);
}

function plain(name, schema, type, required, hint) {
  const isNumber = type === "integer" || type === "number";
  const isSecret = schema.writeOnly || schema.format === "password";
  const input = h("input", {
    type: isNumber ? "number" : isSecret ? "password" : "text", step: type === "number" ? "any" : null, min: schema.minimum, max: schema.maximum,
    minlength: schema.minLength, maxlength: schema.maxLength, pattern: schema.pattern && anchored(schema.pattern), required, name, autocomplete: "off",
  });
  return made(field(mark(name, required), input, hint), () => (input.value === "" ? undefined : isNumber ? Number(input.value) : input.value));
}

function choice(name, schema, required, hint) {
  const options = schema.enum.map((each) => [JSON.stringify(each), text(each)]);
  const input = select([["", required ? "Choose" : "Not set"], ...options], "", { name, required });
  return made(field(mark(name, required), input, hint), () => (input.value === "" ? undefined : JSON.parse(input.value)));
}

function lines(name, schema, required, hint) {
  const isNumber = schema.items && schema.items.type !== "string";
  const input = h("textarea", { rows: 3, name, required });
  const value = () => {
    const found = input.value.split("\n").map((each) => each.trim()).filter(Boolean);
    return found.length ? found.map((each) => (isNumber ? Number(each) : each)) : undefined;
  };
  return made(field(mark(name, required), input, [hint, "One value a line."].filter(Boolean).join(" ")), value);
}

function json(name, required, hint) {
  const input = h("textarea", { rows: 4, name, required, class: "mono", spellcheck: "false" });
  const box = field(mark(name, required), input, [hint, "As JSON."].filter(Boolean).join(" "));
  return made(box, () => {
    if (!input.value.trim()) return undefined;
    try {
      return JSON.parse(input.value);
    } catch {
      box.report("This is not JSON.");
      throw new SyntaxError(`${name} is not JSON.`);
    }
  });
}

function group(name, schema, required, hint, depth) {
  const only = Object.keys(schema.properties);
  if (only.length === 1 && schema.properties[only[0]].properties) return wrapped(name, only[0], schema, required, hint, depth);
  const inner = schemaForm(schema, depth + 1, !required);
  const element = h("fieldset", {}, h("legend", {}, mark(name, required)), hint ? h("p", { class: "hint" }, hint) : null, inner.element);
  return {
    element,
    value() {
      const found = inner.value();
      return Object.keys(found).length ? found : undefined;
    },
    report: (path, message) => inner.report(path, message),
  };
}

// A group around a single group, such as a reference to a Secret, is shown as one.
function wrapped(name, key, schema, required, hint, depth) {
  const inner = group(`${name}: ${key}`, schema.properties[key], required, hint, depth + 1);
  return {
    element: inner.element,
    value() {
      const found = inner.value();
      return found === undefined ? undefined : { [key]: found };
    },
    report: (path, message) => inner.report(path.slice(1), message),
  };
}

function made(box, value) {
  return { element: box, value() { box.report(""); return value(); }, report(_path, message) { box.report(message); return true; } };
}

const mark = (name, required) => (required ? `${name} (required)` : name);
const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// The browser anchors patterns; JSON Schema does not. One that the browser cannot read is left to the server.
function anchored(pattern) {
  try {
    new RegExp(pattern, "v");
  } catch {
    return null;
  }
  const start = pattern.startsWith("^") ? pattern.slice(1) : `.*${pattern}`;
  return start.endsWith("$") ? start.slice(0, -1) : `${start}.*`;
}
