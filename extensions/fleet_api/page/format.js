// Times and amounts for people.

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function duration(seconds) {
  const rest = Math.max(0, Math.round(seconds));
  const index = UNITS.findIndex(([, size]) => rest >= size);
  if (index < 0) return "0 s";
  const [unit, size] = UNITS[index];
  const whole = Math.floor(rest / size);
  const next = UNITS[index + 1];
  const more = next && whole < 10 && unit !== "min" ? Math.floor((rest % size) / next[1]) : 0;
  return `${whole} ${unit}${more ? ` ${more} ${next[0]}` : ""}`;
}

export function age(time) {
  return duration((Date.now() - Date.parse(time)) / 1000);
}

export function moment(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export const number = (value) => Number(value || 0).toLocaleString();

export const shortTemplate = (name) => String(name || "").split(".").pop();
