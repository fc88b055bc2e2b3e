// The numbers of the cells: one file of typed arrays, row by row as drawn, and how they are written.

import { view } from "./view.js";

export const DASH = "–";

export function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const kinds = { u1: Uint8Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };
  const count = header.rows * header.columns;
  const arrays = header.arrays.map(({ name, kind, offset }) => [name, new kinds[kind](buffer, offset, count)]);
  return { ...header, ...Object.fromEntries(arrays) };
}

export function cellOf({ row, column }) {
  const at = row * view.cells.columns + column;
  return Object.fromEntries(view.cells.arrays.map(({ name }) => [name, view.cells[name][at]]));
}

export function rate(mean, std) {
  if (Number.isNaN(mean)) return DASH;
  const { rate_unit: unit } = view.payload;
  return `${threeDigits(mean)}${Number.isNaN(std) ? "" : ` ± ${threeDigits(std)}`} ${unit}`;
}

export function inUnit(value) {
  const { written, unit } = view.payload;
  if (value === null || Number.isNaN(value)) return DASH;
  const text = { age, count: counted, digits: threeDigits, factor: times }[written](value);
  return `${text} ${unit}`.trim();
}

function threeDigits(value) {
  if (Number.isNaN(value)) return DASH;
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return grouped(rounded, Math.min(decimals, 20));
}

// A factor as everywhere: two digits, and as many decimals around 1 as below it.
export function times(ratio) {
  if (ratio >= 99.5) return `${grouped(Math.round(ratio), 0)}×`;
  return `${ratio >= 0.995 && ratio < 1.995 ? ratio.toFixed(2) : ratio.toPrecision(2)}×`;
}

// A factor and its interval with the same decimals, as `factor_and_interval` of sonar/units.py.
export function timesWithin(ratio, low, high) {
  const ofLow = low >= 0.995 && low < 1.995 ? 2 : 1 - magnitude(low);
  const decimals = Math.max(0, Math.min(ofLow, 2 - magnitude(high)));
  const [value, from, to] = [ratio, low, high].map((each) => grouped(each, decimals));
  return `${value}× (${from}–${to})`;
}

function magnitude(value) {
  return Number(value.toExponential(1).split("e")[1]);
}

export function counted(value) {
  return Number.isInteger(value) ? grouped(value, 0) : threeDigits(value);
}

function grouped(value, decimals) {
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en", digits).replaceAll(",", "\u202f");
}

export function age(seconds) {
  for (const [unit, factor, least] of [["d", 86400, 2], ["h", 3600, 1], ["min", 60, 1]]) {
    if (seconds >= factor * least) return `${Math.floor(seconds / factor)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

export function ageOf(last) {
  return `${age(view.cells.moment - last)} ${view.cells.past ? "before the end" : "ago"}`;
}
