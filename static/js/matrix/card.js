// The card beside a cell: both directions, side by side.

import { utc } from "../time.js";
import { ends, reverseOf, urlOf } from "./links.js";
import { DASH, ageOf, cellOf, counted, inUnit, rate } from "./numbers.js";
import { markHot, pixelsOf } from "./places.js";
import { isNarrow, view } from "./view.js";

export function showCard(place, point) {
  view.hovered = { place, point };
  const card = document.getElementById("card");
  card.replaceChildren(...contents(place));
  card.classList.toggle("pinned", view.pinned !== null);
  card.hidden = false;
  const cell = place.row === undefined || place.column === undefined ? null : pixelsOf(place);
  putBeside(card, cell, point ?? { x: cell.left + cell.width, y: cell.top + cell.height });
}

function contents(place) {
  if (place.row === undefined || place.column === undefined) return aboutAverage(place);
  const { from, to } = ends(place);
  const lines = [made("p", "from ", made("b", from)), made("p", "to ", made("b", to))];
  if (!view.cells) return [...lines, made("p", view.trouble ?? "loading the numbers …")];
  const cell = cellOf(place);
  const words = view.cells.states[cell.state];
  lines.push(...(words.includes(":") ? [made("p", words)] : []), bothWays(place, cell));
  if (view.pinned) lines.push(...links(place));
  return lines;
}

function aboutAverage({ row, column }) {
  const side = row === undefined ? view.columns : view.rows;
  const at = row ?? column;
  const isSource = (row === undefined) === view.payload.transposed;
  const head = at === undefined ? ["all cells"] : [isSource ? "from " : "to ", made("b", side.names[at])];
  const average = at === undefined ? view.payload.average : side.average[at];
  const mean = average === null ? "none is measured" : inUnit(average);
  return [made("p", ...head), made("p", `mean of measured cells: ${mean}`)];
}

function bothWays(place, cell) {
  const back = reverseOf(place);
  const { from, to } = ends(place);
  const there = figures(cell);
  const other = back && figures(cellOf(back));
  const head = made("thead", made("tr", made("td"), th("col", arrow(from, to)), th("col", arrow(to, from))));
  const rows = Object.keys(there).map((name) => [name, there[name], other ? (other[name] ?? DASH) : DASH]);
  if (!other) rows[0][2] = "not in this view";
  const lines = rows.map(([name, one, two]) => made("tr", th("row", name), made("td", one), made("td", two)));
  return made("table", head, made("tbody", ...lines));
}

// Both names stand above: where they are long, an arrow to one of them says enough.
function arrow(from, to) {
  return from.length + to.length > 36 || isNarrow.matches ? `→ ${to}` : `${from} → ${to}`;
}

function figures(cell) {
  const hasResult = !Number.isNaN(cell.last);
  const { said, card_extras: extras } = view.payload;
  return {
    state: view.cells.states[cell.state].split(":")[0],
    "mean ± std": rate(cell.mean, cell.std),
    ...Object.fromEntries(Object.entries(extras).map(([words, name]) => [words, rate(cell[name], NaN)])),
    ...(said ? { [said]: inUnit(cell.value) } : {}),
    tests: `${counted(cell.ok)} ok, ${counted(cell.failed)} failed`,
    last: hasResult ? ageOf(cell.last) : DASH,
    "": hasResult ? utc(new Date(1000 * cell.last)) : "",
  };
}

function links(place) {
  const back = reverseOf(place);
  return [place, back].filter(Boolean).flatMap((one) => {
    const url = urlOf(one);
    const { from, to } = ends(one);
    const what = view.payload.open.kind === "link" ? "Open the link" : "Look into";
    return url ? [made("p", Object.assign(made("a", `${what} ${from} → ${to}`), { href: url }))] : [];
  });
}

function made(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

function th(scope, text) {
  return Object.assign(made("th", text), { scope });
}

// Beside the cell, on the side where there is room; never off the screen.
function putBeside(card, cell, point) {
  const { offsetWidth: wide, offsetHeight: high } = card;
  const [screenWide, screenHigh] = [document.documentElement.clientWidth, innerHeight];
  if (isNarrow.matches) {
    card.style.transform = `translate(0, ${point.y > screenHigh / 2 ? 0 : screenHigh - high}px)`;
    return;
  }
  const isThin = cell && cell.width < screenWide / 3;
  const [left, right] = isThin ? [cell.left, cell.left + cell.width] : [point.x, point.x];
  const isLow = cell && cell.height < screenHigh / 3;
  const [top, bottom] = isLow ? [cell.top, cell.top + cell.height] : [point.y, point.y];
  const isBesideFree = right + 14 + wide <= screenWide || left - 14 - wide >= 0;
  let x = right + 14 + wide <= screenWide ? right + 14 : left - 14 - wide;
  let y = point.y + 14;
  if (!isBesideFree) {
    x = point.x - wide / 2;
    y = bottom + 14 + high <= screenHigh ? bottom + 14 : top - 14 - high;
  }
  x = Math.max(4, Math.min(x, screenWide - wide - 4));
  y = Math.max(4, Math.min(y, screenHigh - high - 4));
  card.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

export function hideCard() {
  if (view.pinned || !view.plot) return;
  view.hovered = null;
  const card = document.getElementById("card");
  if (card) card.hidden = true;
  if (card && !view.cursor) markHot(null);
}
