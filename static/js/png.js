// Saves a picture as PNG, with what the page says around it, for a report.

import { cssVariable, faded, onPaper } from "./colours.js";
import { payloadOf } from "./figures.js";
import { asImage, prepared, sizeOnScreen } from "./picture.js";
import { day, utc } from "./time.js";

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
    button.textContent = `The PNG was not saved: ${error.message}`;
  }
  button.disabled = false;
});

async function savePng(box) {
  const canvas = await paperOf(box);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("the chart is too large for this browser");
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: fileName() });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function fileName() {
  const page = decodeURIComponent(location.pathname).split("/").filter(Boolean).join("-") || "matrix";
  return `sonar-${page.replace(/[^\w.-]/g, "_")}-${day()}.png`;
}

async function paperOf(box) {
  const { width, height } = sizeOnScreen(box);
  const { figure, colours } = onPaper(() => ({ figure: prepared(box), colours: paperColours() }));
  const url = await asImage(figure, { width, height, scale: SCALE });
  const image = new Image();
  image.src = url;
  await image.decode();
  return written(image, { width, height }, colours, { head: titleOf(box), period: payloadOf(box).period ?? "" });
}

function paperColours() {
  const states = ["failed", "failed-few", "untested", "untested-mark", "down", "down-mark", "not-applicable"];
  const marks = ["failing", "slower-mark", "faster-mark"];
  const names = ["surface", "ink", "line", "ratio-2", "ratio-3", "ratio-6", ...states, ...marks];
  return Object.fromEntries(names.map((name) => [name, cssVariable(`--${name}`)]));
}

const LINE = 20;
const HEAD = { size: 17, weight: 700 };
const SMALL = { size: 13, weight: 400 };

// Above the picture stands the heading with its window, which need not end now when this is read;
// below it what its cells mean and when it was made.
function written(image, { width, height }, colours, { head, period }) {
  const canvas = document.createElement("canvas");
  const ink = canvas.getContext("2d");
  const room = width - 2 * MARGIN;
  const texts = [[HEAD, head], [SMALL, period], [SMALL, textOf(".simulated")]];
  const above = texts.flatMap(([font, text]) => wrapped(ink, font, text, room));
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

// A picture may say itself what it shows; what was asked is the title where a heading says the answer.
function titleOf(box) {
  return box.dataset.pngTitle ?? (textOf("[data-title]") || textOf("h1"));
}

function madeBy() {
  return `Made by Sonar on ${location.host} at ${utc()}`;
}

function textOf(selector) {
  return document.querySelector(`#page ${selector}`)?.textContent.replace(/\s+/g, " ").trim() ?? "";
}

// A line is a list of pieces, each a text in a font, with the swatch of a state before it or not.
function writeLine(ink, pieces, colours, y) {
  let x = MARGIN;
  for (const { text, font, state, mark, stops } of pieces) {
    if (state) drawSwatch(ink, { state, mark, stops }, colours, x, y);
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
  return [...document.querySelectorAll("#page .legend li")].map((item) => {
    const swatch = item.querySelector(".swatch");
    return {
      text: item.textContent.replace(/\s+/g, " ").trim(),
      font: SMALL,
      state: [...swatch.classList].find((name) => name !== "swatch"),
      mark: markOf(swatch),
      stops: onPaper(() => getComputedStyle(swatch).getPropertyValue("--ramp")),
    };
  });
}

// The style sheet says which mark a state has: its content is a text in quotes, or none.
function markOf(swatch) {
  return getComputedStyle(swatch, "::after").content.match(/^"(.+)"$/)?.[1];
}

function drawSwatch(ink, { state, mark, stops }, colours, x, y) {
  const isOnRamp = ON_RAMP.includes(state);
  const ground = colours[GROUNDS[state] ?? state.replace("_", "-")];
  ink.fillStyle = isOnRamp ? ramp(ink, x, stops, state === "stale") : ground;
  ink.fillRect(x, y + 1, 20, 13);
  ink.lineWidth = state in FRAMES ? 2 : 1;
  ink.strokeStyle = colours[FRAMES[state] ?? "line"];
  ink.strokeRect(x + 0.5, y + 1.5, 19, 12);
  ink.lineWidth = 1;
  if (state === "stale") drawPath(ink, colours.ink, `M${x + 6} ${y + 2.5}h8l-8 10h8z`);
  if (state in CORNERS) drawPath(ink, colours[CORNERS[state].colour], CORNERS[state].path(x, y));
  if (!mark) return;
  useFont(ink, { size: 13, weight: 700 });
  ink.fillStyle = colours[state === "failed" ? "failing" : `${state}-mark`] ?? colours.ink;
  ink.fillText(mark, x + 6, y);
}

const ON_RAMP = ["measured", "stale", "slower", "faster", "partly"];
const GROUNDS = { failing: "failed", failed: "failed-few", below: "ratio-2", near: "ratio-3", above: "ratio-6" };
const FRAMES = { below: "ink" };
const CORNERS = {
  slower: { colour: "slower-mark", path: (x, y) => `M${x + 8} ${y + 1}h12v10z` },
  faster: { colour: "faster-mark", path: (x, y) => `M${x + 14} ${y + 1}l5 10h-10z` },
  near: { colour: "ink", path: (x, y) => `M${x + 8} ${y + 1}h12v10z` },
  partly: { colour: "failing", path: (x, y) => `M${x} ${y + 8}h7v6h-7z` },
};

function drawPath(ink, colour, path) {
  ink.fillStyle = colour;
  ink.fill(new Path2D(path));
}

function ramp(ink, x, stops, isFaded) {
  const colours = stops.split(",").map((colour) => colour.trim());
  const gradient = ink.createLinearGradient(x, 0, x + 20, 0);
  colours.forEach((colour, at) => {
    gradient.addColorStop(at / (colours.length - 1), isFaded ? onPaper(() => faded(colour)) : colour);
  });
  return gradient;
}
