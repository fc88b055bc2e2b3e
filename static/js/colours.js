// Colours of the style sheet for what is drawn by a script. Names stand for them in figures:
// "var(--ink)" is the variable of static/css/sonar.css, and "veil(...)" around one, or around
// #rrggbb, that colour faded into the page's surface.

export function withColours(value) {
  if (typeof value === "string") return colourOf(value);
  if (Array.isArray(value)) return value.map(withColours);
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withColours(part)]));
}

function colourOf(text) {
  if (/^var\(--[\w-]+\)$/.test(text)) return cssVariable(text.slice(4, -1));
  if (/^veil\(.+\)$/.test(text)) return faded(colourOf(text.slice(5, -1)));
  return text;
}

export function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function faded(colour) {
  const share = Number(cssVariable("--veil-share"));
  const [from, to] = [colour, cssVariable("--surface")].map(channels);
  return `rgb(${from.map((part, at) => Math.round(part * (1 - share) + to[at] * share)).join(",")})`;
}

// The channels of #rrggbb, or of rgb(...) as `faded` writes it.
export function rgbOf(colour) {
  return colour.startsWith("#") ? channels(colour) : colour.match(/\d+/g).map(Number);
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// Paper is white: what is printed or goes into a report has the light colours.

export function setPaper(isOn) {
  document.documentElement.classList.toggle("paper", isOn);
}

export function isPaper() {
  return document.documentElement.classList.contains("paper");
}

export function onPaper(make) {
  setPaper(true);
  try {
    return make();
  } finally {
    setPaper(false);
  }
}
