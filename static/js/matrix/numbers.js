// The numbers of the cells: one file of typed arrays, row by row as drawn, and how they are written.
"use strict";

const DASH = "–";

async function loadCells(payload) {
  try {
    const response = await fetch(payload.cells_url, { cache: "no-cache" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const fresh = unpacked(await response.arrayBuffer());
    if (payload.version !== matrix.pages.matrix.payload.version || payload.cells_url !== matrix.pages.matrix.payload.cells_url) return;
    // New results may have come since the page was made. Its rows and columns must be the same.
    if (fresh.arrangement !== payload.arrangement) setTimeout(refresh, 5000);
    else cells = fresh;
    performance.mark("cells-loaded");
  } catch (error) {
    matrix.trouble = `The numbers of the cells did not load: ${error.message}. They are in the table and the CSV.`;
  }
  if (cursor) tell(cursor);
  // A card that was waiting for them says them now.
  if (hovered) showCard(hovered.place, hovered.point);
}

function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const kinds = { u1: Uint8Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
  const count = header.rows * header.columns;
  const arrays = header.arrays.map(({ name, kind, offset }) => [name, new kinds[kind](buffer, offset, count)]);
  return { ...header, ...Object.fromEntries(arrays) };
}

function cellOf({ row, column }) {
  const at = row * cells.columns + column;
  const names = ["state", "value", "mean", "std", "median", "ok", "failed", "last"];
  return Object.fromEntries(names.map((name) => [name, cells[name][at]]));
}

function rate(mean, std) {
  if (Number.isNaN(mean)) return DASH;
  return Number.isNaN(std) ? `${threeDigits(mean)} MB/s` : `${threeDigits(mean)} ± ${threeDigits(std)} MB/s`;
}

function inUnit(value) {
  const { stat, unit } = matrix.pages.matrix.payload;
  if (value === null || Number.isNaN(value)) return DASH;
  if (stat === "last") return age(value);
  return `${stat === "count" ? counted(value) : threeDigits(value)} ${unit}`.trim();
}

function threeDigits(value) {
  if (Number.isNaN(value)) return DASH;
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return grouped(rounded, Math.min(decimals, 20));
}

function counted(value) {
  return Number.isInteger(value) ? grouped(value, 0) : threeDigits(value);
}

function grouped(value, decimals) {
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replaceAll(",", "\u2009");
}

function age(seconds) {
  for (const [unit, factor, least] of [["d", 86400, 2], ["h", 3600, 1], ["min", 60, 1]]) {
    if (seconds >= factor * least) return `${Math.floor(seconds / factor)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

function ageOf(last) {
  return `${age(cells.moment - last)} ${cells.past ? "before the end" : "ago"}`;
}

function utc(unix) {
  return `${new Date(unix * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
