// Draws the pictures of a page with Plotly, in the colours of the page.
//
//   <div class="picture" id="rates" data-figure="rates-data" hx-morph-skip-children ...></div>
//   <script id="rates-data" type="application/json">{"data": [...], "layout": {...}}</script>

import { isPaper, setPaper, withColours } from "./colours.js";
import { enlarge, jsonOf, payloadOf } from "./figures.js";

// The library comes after the first look at the page, which would have to wait while it is compiled.
const library = painted().then(load);
// If it does not come, who draws with it says so.
library.catch(() => {});

const PLOTLY = {
  displaylogo: false,
  // Nothing here talks to another host.
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};
// What each box shows: the JSON that it was drawn from and the element that Plotly has in it.
const drawn = new WeakMap();
// What more there is to do for some boxes than to draw them, by their id.
const extensions = {};

document.addEventListener("DOMContentLoaded", drawPictures);
document.addEventListener("htmx:after:swap", drawPictures);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawPictures);
addEventListener("beforeprint", () => printed(true));
addEventListener("afterprint", () => printed(false));

// Resolves when what stands on the page has been painted; nobody paints a page in the background.
function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    if (document.hidden) resolve();
  });
}

async function load() {
  const { href } = document.querySelector("link[rel=preload][data-library]");
  const script = Object.assign(document.createElement("script"), { src: href });
  await new Promise((resolve, reject) => {
    script.onload = resolve;
    script.onerror = () => reject(new Error("the library that draws the chart did not load"));
    document.head.append(script);
  });
  // It hangs on the window; nothing else reads it there.
  const { Plotly } = window;
  return Plotly;
}

// More for the picture of one box: `prepare(figure, plot, payload)` before it is drawn,
// `after(plot, payload)`, and `config` for Plotly; `instead(box, payload)` says that nothing is left to draw.
export function extend(id, extension) {
  extensions[id] = extension;
}

function pictures() {
  return document.querySelectorAll(".picture[data-figure]");
}

function drawPictures() {
  for (const box of pictures()) {
    drawIfNew(box);
    opened.observe(box);
  }
}

// Something else stands in the place of a picture: the next page draws it again, be it the same.
export function outdate(box) {
  drawn.delete(box);
}

export function redrawPictures() {
  for (const box of pictures()) {
    drawn.delete(box);
    drawIfNew(box);
  }
}

// In a part of the page that is not seen, a picture is drawn once the part is opened.
function drawIfNew(box) {
  if (box.checkVisibility() && drawn.get(box)?.json !== jsonOf(box)) draw(box);
}

const opened = new ResizeObserver((changes) => changes.forEach(({ target }) => drawIfNew(target)));

// The box itself belongs to the server's HTML and may be morphed; Plotly has a child of it.
async function draw(box) {
  const json = jsonOf(box);
  if (!json) return;
  const plot = box.querySelector(":scope > .plot") ?? furnished(box);
  const payload = payloadOf(box, json);
  if (extensions[box.id]?.instead?.(box, payload)) return;
  drawn.set(box, { json, plot, payload });
  const figure = prepared(box);
  const touched = matchMedia("(pointer: coarse)").matches;
  if (touched) figure.layout.dragmode ??= false;
  const displayModeBar = touched ? false : "hover";
  const config = { ...PLOTLY, displayModeBar, ...payload.config, ...extensions[box.id]?.config };
  try {
    await inTurn(plot, async () => (await library).react(plot, figure.data, figure.layout, config));
  } catch (error) {
    return say(plot, error);
  }
  extensions[box.id]?.after?.(plot, payload);
}

function say(plot, { message }) {
  const words = `The chart could not be drawn: ${message}. Reload the page; the numbers are in the table.`;
  const notice = Object.assign(document.createElement("p"), { className: "notice", textContent: words });
  notice.setAttribute("role", "alert");
  plot.replaceChildren(notice);
}

// Changes of one plot that overlap leave it in pieces: each waits for the one before it.
const turns = new WeakMap();

export function inTurn(plot, change) {
  const turn = (turns.get(plot) ?? Promise.resolve()).then(change);
  turns.set(plot, turn.catch(() => {}));
  return turn;
}

// What changes may depend on what was changed before: it is asked for when its turn has come.
export function relayout(plot, changesOf) {
  return inTurn(plot, async () => (await library).relayout(plot, changesOf()));
}

function furnished(box) {
  const plot = box.appendChild(Object.assign(document.createElement("div"), { className: "plot" }));
  sizes.observe(plot);
  return plot;
}

// Not only the window changes the room of a picture: what opens above it does, too.
const sizes = new ResizeObserver((changes) => {
  for (const { target } of changes) {
    inTurn(target, async () => hasOtherRoom(target) && (await library).Plots.resize(target));
  }
});

function hasOtherRoom(plot) {
  const { width, height } = plot._fullLayout ?? {};
  const isOther = width && plot.clientWidth && (width !== plot.clientWidth || height !== plot.clientHeight);
  return isOther && !isPaper();
}

// Returns a copy of the figure of a box, ready for Plotly.
export function prepared(box) {
  const { payload, plot } = drawn.get(box);
  const figure = withColours(payload.figure ?? payload);
  figure.layout.uirevision ??= location.pathname;
  enlarge(figure.layout);
  extensions[box.id]?.prepare?.(figure, plot, payload);
  return figure;
}

function printed(isPrinted) {
  setPaper(isPrinted);
  redrawPictures();
  for (const box of pictures()) {
    const plot = drawn.get(box)?.plot;
    if (plot) relayout(plot, () => (isPrinted ? printedSize(plot) : { width: null, height: null, autosize: true }));
  }
}

// The width of an A4 page between its margins, and the height that the style sheet allows.
function printedSize({ clientWidth, clientHeight }) {
  return { width: Math.min(700, clientWidth), height: Math.min(600, clientHeight) };
}

// For a PNG: the size of the picture of a box on the screen, and a figure as an image.

export function sizeOnScreen(box) {
  const { clientWidth: width, clientHeight: height } = drawn.get(box).plot;
  return { width, height };
}

export async function asImage(figure, options) {
  return (await library).toImage(figure, { format: "png", ...options });
}
