// Builds elements. Text is always text: nothing here, and nothing else on the page, turns a string into markup.

const SVG = "http://www.w3.org/2000/svg";

// h("a", {class: "x", href: "#/", on: {click: f}}, "text", element, null, [more])
export function h(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

export function svg(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false && each !== "")
    .map((each) => (each instanceof Node ? each : document.createTextNode(String(each))));
}

export function replace(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

// A link to elsewhere, only for addresses of the web: a tenant's cluster may report any text.
export function external(address, text) {
  return /^https?:\/\//i.test(address)
    ? h("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, text || address)
    : h("span", {}, address);
}

let numbers = 0;
export function newId(prefix) {
  numbers += 1;
  return `${prefix}-${numbers}`;
}

// Tells users of screen readers what changed.
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
