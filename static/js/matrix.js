// Draws the matrix, says what each cell holds, and fetches it anew every minute.
"use strict";

const REFRESH_MS = 60000;
// Room for one label: rows lie flat, columns stand at 40 degrees.
const LABEL_PIXELS = { yaxis: 15, xaxis: 23 };
const PLOTLY = {
  responsive: true,
  displaylogo: false,
  // Nothing here talks to another host.
  showSendToCloud: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
};
const DASH = "–";
const picture = document.getElementById("picture");
let shown = readPayload(document);
let etag = null;

document.documentElement.classList.add("scripted");
const selects = document.getElementById("selects");
selects.addEventListener("change", () => selects.requestSubmit());

if (shown) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  setInterval(refresh, REFRESH_MS);
}

function readPayload(page) {
  const element = page.getElementById("picture-data");
  return element && JSON.parse(element.textContent);
}

// Drawing.

async function draw() {
  const figure = withColours(shown.figure);
  figure.data.find((trace) => trace.name === "cells").hovertext = hoverTexts(shown.cells);
  const touched = matchMedia("(pointer: coarse)").matches;
  if (touched) figure.layout.dragmode = false;
  enlarge(figure);
  keepZoom(figure.layout);
  const first = !picture.data;
  await Plotly.react(picture, figure.data, figure.layout, { ...PLOTLY, displayModeBar: touched ? false : "hover" });
  if (first) {
    picture.on("plotly_relayout", thinLabels);
    picture.on("plotly_afterplot", thinLabels);
  }
  thinLabels();
}

// New data for the same rows and columns are drawn in the part that the reader looks at.
function keepZoom(layout) {
  if (!picture.layout || picture.layout.meta !== layout.meta) return;
  for (const name of ["xaxis", "yaxis"]) layout[name].range = [...picture.layout[name].range];
}

// Numbers grow with their cells: five digits fit. On a wall the text of the page is larger,
// and that of the picture with it.
function enlarge(figure) {
  const factor = parseFloat(getComputedStyle(document.body).fontSize) / 14;
  const cellPixels = (picture.clientWidth - 300 * factor) / (shown.cells.destinations.length + 1);
  figure.layout.font.size *= factor;
  for (const trace of figure.data) {
    if (trace.textfont) trace.textfont.size = Math.min(15 * factor, Math.max(10, cellPixels / 4.3));
  }
}

// Colours and the font are names of CSS variables in the figure.
function withColours(value) {
  if (typeof value === "string" && value.startsWith("var(")) return cssVariable(value.slice(4, -1));
  if (Array.isArray(value)) return value.map(withColours);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withColours(part)]));
}

function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Shows every label where there is room, else every second, third and so on.
function thinLabels() {
  const changes = {};
  for (const name of ["xaxis", "yaxis"]) {
    const all = shown.figure.layout[name];
    const axis = picture._fullLayout[name];
    const cellPixels = axis._length / Math.abs(axis.range[1] - axis.range[0]);
    const step = Math.max(1, Math.ceil(LABEL_PIXELS[name] / cellPixels));
    const kept = all.tickvals.filter((place) => place % step === 0);
    if (picture.layout[name].tickvals.length === kept.length) continue;
    changes[`${name}.tickvals`] = kept;
    changes[`${name}.ticktext`] = kept.map((place) => all.ticktext[place]);
  }
  if (Object.keys(changes).length) Plotly.relayout(picture, changes);
}

// What a cell says under the pointer.

function unpack(array) {
  const types = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u4: Uint32Array };
  const bytes = Uint8Array.from(atob(array.bdata), (letter) => letter.charCodeAt(0));
  return new types[array.dtype](bytes.buffer);
}

function hoverTexts(cells) {
  const arrays = {};
  for (const name of ["value", "mean", "std", "ok", "failed", "last", "state"]) arrays[name] = unpack(cells[name]);
  const columns = cells.destinations.length;
  return cells.sources.map((source, row) =>
    cells.destinations.map((destination, column) => {
      const at = row * columns + column;
      const cell = Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, array[at]]));
      return [`from <b>${plain(source)}</b>`, `to <b>${plain(destination)}</b>`, ...linesOf(cell, cells)].join("<br>");
    }),
  );
}

// Plotly reads some HTML: names must not become any.
function plain(name) {
  return name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function linesOf(cell, cells) {
  const lines = [];
  if (cell.ok) lines.push(`mean ${threeDigits(cell.mean)} ± ${threeDigits(cell.std)} MB/s`);
  if (!["mean", "std", "count", "last"].includes(cells.stat) && !Number.isNaN(cell.value)) {
    lines.push(`${cells.stat} ${threeDigits(cell.value)} ${cells.unit}`);
  }
  if (cell.ok || cell.failed) {
    lines.push(`${cell.ok} ok, ${cell.failed} failed`);
    lines.push(`last ${age(cells.moment - cell.last)} ${cells.past ? "before the end" : "ago"}, ${utc(cell.last)}`);
  }
  return [...lines, cells.states[cell.state]];
}

function threeDigits(value) {
  if (Number.isNaN(value)) return DASH;
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replaceAll(",", "\u2009");
}

function age(seconds) {
  for (const [unit, factor, least] of [["d", 86400, 2], ["h", 3600, 1], ["min", 60, 1]]) {
    if (seconds >= factor * least) return `${Math.floor(seconds / factor)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

function utc(unix) {
  return `${new Date(unix * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

// Refreshing: the same page again, of which the parts that show data are put in.

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch(location.href, { cache: "no-cache", headers: etag ? { "If-None-Match": etag } : {} });
    if (response.status === 304) return;
    if (!response.ok) throw new Error(`status ${response.status}`);
    etag = response.headers.get("ETag");
    show(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch (error) {
    document.getElementById("updated").classList.add("late");
    document.getElementById("updated").title = `The last refresh did not work: ${error.message}. Trying again every minute.`;
  }
}

function show(page) {
  const fresh = readPayload(page);
  if (!fresh) return location.reload();
  for (const id of ["notice", "legend", "table"]) {
    const [old, renewed] = [document.getElementById(id), page.getElementById(id)];
    if (old && renewed) old.replaceWith(renewed);
  }
  shown = fresh;
  return draw();
}
