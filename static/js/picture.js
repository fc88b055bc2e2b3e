// Draws the pictures of a page with Plotly, in the colours of the page, and saves them as PNG.
//
//   <div class="picture" id="rates" data-figure="rates-data" hx-morph-skip-children ...></div>
//   <script id="rates-data" type="application/json">{"data": [...], "layout": {...}}</script>
//
// Colours in a figure may be names: "var(--ink)" is the variable of static/css/sonar.css, and
// "veil(#rrggbb)" that colour faded into the page's surface.
"use strict";

const PLOTLY = {
  displaylogo: false,
  // Nothing here talks to another host.
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};
// The size of text that figures are made for; where the page's is larger, theirs is too.
const FIGURE_TEXT = 14;
// What each box shows: the JSON that it was drawn from and the element that Plotly has in it.
const drawn = new WeakMap();
// A picture may have more to do than to be drawn: `prepare(figure, plot)` before, `after(plot)`.
const special = {};

document.addEventListener("DOMContentLoaded", drawPictures);
document.addEventListener("htmx:after:swap", drawPictures);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawPictures);
addEventListener("beforeprint", () => printed(true));
addEventListener("afterprint", () => printed(false));

function drawPictures() {
  for (const box of document.querySelectorAll(".picture[data-figure]")) drawIfNew(box);
}

function redrawPictures() {
  for (const box of document.querySelectorAll(".picture[data-figure]")) draw(box);
}

function drawIfNew(box) {
  if (drawn.get(box)?.json !== jsonOf(box)) draw(box);
}

function jsonOf(box) {
  return document.getElementById(box.dataset.figure)?.textContent;
}

// The box itself belongs to the server's HTML and may be morphed; Plotly has a child of it.
async function draw(box) {
  const json = jsonOf(box);
  if (!json) return;
  const plot = box.querySelector(":scope > .plot") ?? furnished(box);
  const payload = JSON.parse(json);
  drawn.set(box, { json, plot, payload });
  const figure = prepared(box);
  const touched = matchMedia("(pointer: coarse)").matches;
  if (touched) figure.layout.dragmode ??= false;
  const config = { ...PLOTLY, displayModeBar: touched ? false : "hover", ...payload.config, ...special[box.id]?.config };
  await inTurn(plot, () => Plotly.react(plot, figure.data, figure.layout, config));
  special[box.id]?.after?.(plot, payload);
}

// Changes of one plot that overlap leave it in pieces: each waits for the one before it.
const turns = new WeakMap();

function inTurn(plot, change) {
  const turn = (turns.get(plot) ?? Promise.resolve()).then(change);
  turns.set(plot, turn.catch(() => {}));
  return turn;
}

// What changes may depend on what was changed before: it is asked for when its turn has come.
function relayout(plot, changesOf) {
  return inTurn(plot, () => Plotly.relayout(plot, changesOf()));
}

function furnished(box) {
  const plot = box.appendChild(Object.assign(document.createElement("div"), { className: "plot" }));
  sizes.observe(plot);
  return plot;
}

// Not only the window changes the room of a picture: what opens above it does, too.
const sizes = new ResizeObserver((changes) => {
  for (const { target } of changes) inTurn(target, () => hasOtherRoom(target) && Plotly.Plots.resize(target));
});

function hasOtherRoom(plot) {
  const { width, height } = plot._fullLayout ?? {};
  const isOther = width && plot.clientWidth && (width !== plot.clientWidth || height !== plot.clientHeight);
  return isOther && !document.documentElement.classList.contains("paper");
}

// Returns a copy of the figure of a box, ready for Plotly.
function prepared(box) {
  const { payload, plot } = drawn.get(box);
  const figure = withColours(payload.figure ?? payload);
  figure.layout.uirevision ??= location.pathname;
  enlarge(figure, parseFloat(getComputedStyle(document.body).fontSize) / FIGURE_TEXT);
  special[box.id]?.prepare?.(figure, plot, payload);
  return figure;
}

function enlarge(figure, factor) {
  figure.layout.font = { ...figure.layout.font, size: (figure.layout.font?.size ?? 12) * factor };
}

// Colours.

function withColours(value) {
  if (typeof value === "string") return colourOf(value);
  if (Array.isArray(value)) return value.map(withColours);
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withColours(part)]));
}

function colourOf(text) {
  if (/^var\(--[\w-]+\)$/.test(text)) return cssVariable(text.slice(4, -1));
  if (/^veil\(#[0-9a-f]{6}\)$/i.test(text)) return faded(text.slice(5, -1));
  return text;
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function faded(colour) {
  const share = Number(cssVariable("--veil-share"));
  const [from, to] = [colour, cssVariable("--surface")].map(channels);
  return `rgb(${from.map((part, at) => Math.round(part * (1 - share) + to[at] * share)).join(",")})`;
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// Paper is white: what is printed or goes into a report has the light colours.

function printed(isPrinted) {
  document.documentElement.classList.toggle("paper", isPrinted);
  redrawPictures();
  for (const box of document.querySelectorAll(".picture[data-figure]")) {
    const plot = drawn.get(box)?.plot;
    if (plot) relayout(plot, () => (isPrinted ? printedSize(plot) : { width: null, height: null, autosize: true }));
  }
}

// The width of an A4 page between its margins, and the height that the style sheet allows.
function printedSize({ clientWidth, clientHeight }) {
  return { width: Math.min(700, clientWidth), height: Math.min(600, clientHeight) };
}

function onPaper(make) {
  document.documentElement.classList.add("paper");
  try {
    return make();
  } finally {
    document.documentElement.classList.remove("paper");
  }
}

// PNG: the picture with what the page says around it, for a report.

const SCALE = 2;
const MARGIN = 16;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-png]");
  if (!button) return;
  const label = button.textContent;
  button.disabled = true;
  button.textContent = "Making the PNG …";
  try {
    await savePng(document.getElementById(button.dataset.png));
    button.textContent = label;
  } catch (error) {
    button.textContent = `No PNG: ${error.message}`;
  }
  button.disabled = false;
});

async function savePng(box) {
  const canvas = await paperOf(box);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("the picture is too large for this browser");
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: fileName() });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName() {
  const page = decodeURIComponent(location.pathname).split("/").filter(Boolean).join("-") || "matrix";
  return `sonar-${page.replace(/[^\w.-]/g, "_")}-${new Date().toISOString().slice(0, 10)}.png`;
}

async function paperOf(box) {
  const { clientWidth: width, clientHeight: height } = drawn.get(box).plot;
  const { figure, colours } = onPaper(() => ({ figure: prepared(box), colours: paperColours() }));
  const url = await Plotly.toImage(figure, { format: "png", width, height, scale: SCALE });
  const image = new Image();
  image.src = url;
  await image.decode();
  return written(image, width, height, colours);
}

function paperColours() {
  const names = ["surface", "ink", "muted", "line", "failed", "failed-mark", "untested", "untested-mark", "down", "down-mark", "not-applicable"];
  return Object.fromEntries(names.map((name) => [name, cssVariable(`--${name}`)]));
}

const LINE = 20;
const HEAD = { size: 17, weight: 700 };
const SMALL = { size: 13, weight: 400 };

// Above the picture stands the heading, below it what its cells mean and when it was made.
function written(image, width, height, colours) {
  const canvas = document.createElement("canvas");
  const ink = canvas.getContext("2d");
  const room = width - 2 * MARGIN;
  const above = [...wrapped(ink, HEAD, textOf("h1"), room), ...wrapped(ink, SMALL, textOf(".simulated"), room)];
  const below = [...rowsOf(ink, keyOf(), room), ...wrapped(ink, SMALL, madeBy(), room)];
  const top = MARGIN + above.length * LINE;
  canvas.width = width * SCALE;
  canvas.height = (top + height + MARGIN + below.length * LINE) * SCALE;
  ink.scale(SCALE, SCALE);
  ink.fillStyle = colours.surface;
  ink.fillRect(0, 0, canvas.width, canvas.height);
  ink.textBaseline = "top";
  ink.drawImage(image, 0, top, width, height);
  above.forEach((line, at) => writeLine(ink, line, colours, MARGIN / 2 + at * LINE));
  below.forEach((line, at) => writeLine(ink, line, colours, top + height + MARGIN / 2 + at * LINE));
  return canvas;
}

function madeBy() {
  return `Made by Sonar on ${location.host} at ${new Date().toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function textOf(selector) {
  return document.querySelector(`#page ${selector}`)?.textContent.replace(/\s+/g, " ").trim() ?? "";
}

// A line is a list of pieces, each a text in a font, with the swatch of a state before it or not.
function writeLine(ink, pieces, colours, y) {
  let x = MARGIN;
  for (const { text, font, state } of pieces) {
    if (state) drawSwatch(ink, state, colours, x, y);
    useFont(ink, font);
    ink.fillStyle = colours.ink;
    ink.fillText(text, x + (state ? SWATCH : 0), y);
    x += widthOf(ink, { text, font, state });
  }
}

function useFont(ink, font) {
  ink.font = `${font.weight} ${font.size}px ${cssVariable("--font")}`;
}

const SWATCH = 26;
const BETWEEN = 18;

function widthOf(ink, { text, font, state }) {
  useFont(ink, font);
  return ink.measureText(text).width + (state ? SWATCH + BETWEEN : 0);
}

function wrapped(ink, font, text, room) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && widthOf(ink, { text: longer, font }) > room) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.filter(Boolean).map((line) => [{ text: line, font }]);
}

function rowsOf(ink, pieces, room) {
  const rows = [];
  let left = 0;
  for (const piece of pieces) {
    const needed = widthOf(ink, piece);
    if (needed > left) {
      rows.push([]);
      left = room;
    }
    rows.at(-1).push(piece);
    left -= needed;
  }
  return rows;
}

// The legend of states stands on the page already.
function keyOf() {
  return [...document.querySelectorAll("#page .legend li")].map((item) => ({
    text: item.textContent.replace(/\s+/g, " ").trim(),
    font: SMALL,
    state: [...(item.querySelector(".swatch")?.classList ?? [])].find((name) => name !== "swatch"),
  }));
}

const MARKS = { failed: "×", untested: "•", down: "–" };

function drawSwatch(ink, state, colours, x, y) {
  ink.fillStyle = state === "measured" || state === "stale" ? ramp(ink, x, state === "stale") : colours[state.replace("_", "-")];
  ink.fillRect(x, y + 1, 20, 13);
  ink.strokeStyle = colours.line;
  ink.strokeRect(x + 0.5, y + 1.5, 19, 12);
  if (state === "stale") drawHourglass(ink, colours.ink, x + 10, y + 7.5);
  if (!MARKS[state]) return;
  useFont(ink, { size: 13, weight: 700 });
  ink.fillStyle = colours[`${state}-mark`] ?? colours.ink;
  ink.fillText(MARKS[state], x + 6, y);
}

function drawHourglass(ink, colour, x, y) {
  ink.fillStyle = colour;
  ink.fill(new Path2D(`M${x - 4} ${y - 5}h8l-8 10h8z`));
}

function ramp(ink, x, isFaded) {
  const legend = document.querySelector("#page .legend");
  const stops = getComputedStyle(legend).getPropertyValue("--ramp").split(",").map((colour) => colour.trim());
  const gradient = ink.createLinearGradient(x, 0, x + 20, 0);
  stops.forEach((colour, at) => gradient.addColorStop(at / (stops.length - 1), isFaded ? onPaper(() => faded(colour)) : colour));
  return gradient;
}
