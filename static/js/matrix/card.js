// The card beside a cell: both directions, side by side.
"use strict";

const STATISTICS = { p05: "5th percentile", p95: "95th percentile", min: "lowest", max: "highest", throughput: "throughput", success: "success" };

function showCard(place, point) {
  hovered = { place, point };
  const card = document.getElementById("card");
  card.replaceChildren(...contents(place));
  card.classList.toggle("pinned", pinned !== null);
  card.hidden = false;
  const cell = place.row === undefined || place.column === undefined ? null : pixelsOf(place);
  putBeside(card, cell, point ?? { x: cell.left + cell.width, y: cell.top + cell.height });
}

function contents(place) {
  if (place.row === undefined || place.column === undefined) return aboutAverage(place);
  const { from, to } = ends(place);
  const lines = [made("p", "from ", made("b", from)), made("p", "to ", made("b", to))];
  if (!cells) return [...lines, made("p", matrix.trouble ?? "loading the numbers …")];
  const cell = cellOf(place);
  const words = cells.states[cell.state];
  lines.push(...(words.includes(":") ? [made("p", words)] : []), bothWays(place, cell));
  if (pinned) lines.push(...links(place));
  return lines;
}

function aboutAverage({ row, column }) {
  const side = row === undefined ? matrix.columns : matrix.rows;
  const at = row ?? column;
  const isSource = (row === undefined) === matrix.pages.matrix.payload.transposed;
  const heads = at === undefined ? [made("p", "all cells")] : [made("p", isSource ? "from " : "to ", made("b", side.names[at]))];
  const average = at === undefined ? matrix.pages.matrix.payload.average : side.average[at];
  return [...heads, made("p", `mean of measured cells: ${average === null ? "none is measured" : inUnit(average)}`)];
}

function bothWays(place, cell) {
  const back = reverseOf(place);
  const { from, to } = ends(place);
  const there = figures(cell);
  const other = back && figures(cellOf(back));
  const head = made("thead", made("tr", made("td"), th("col", arrow(from, to)), th("col", arrow(to, from))));
  const rows = Object.keys(there).map((name) => [name, there[name], other ? (other[name] ?? DASH) : DASH]);
  if (!other) rows[0][2] = "not in this view";
  return made("table", head, made("tbody", ...rows.map(([name, one, two]) => made("tr", th("row", name), made("td", one), made("td", two)))));
}

// Both names stand above: where they are long, an arrow to one of them says enough.
function arrow(from, to) {
  return from.length + to.length > 36 || isNarrow.matches ? `→ ${to}` : `${from} → ${to}`;
}

function figures(cell) {
  const hasResult = !Number.isNaN(cell.last);
  const { stat } = matrix.pages.matrix.payload;
  return {
    state: cells.states[cell.state].split(":")[0],
    "mean ± std": rate(cell.mean, cell.std),
    median: rate(cell.median, NaN),
    ...(stat in STATISTICS ? { [STATISTICS[stat]]: inUnit(cell.value) } : {}),
    tests: `${counted(cell.ok)} ok, ${counted(cell.failed)} failed`,
    last: hasResult ? ageOf(cell.last) : DASH,
    "": hasResult ? utc(cell.last) : "",
  };
}

function links(place) {
  const back = reverseOf(place);
  return [place, back].filter(Boolean).flatMap((one) => {
    const url = urlOf(one);
    const { from, to } = ends(one);
    const what = matrix.pages.matrix.payload.open.kind === "link" ? "Open the link" : "Look into";
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
  const beside = cell && cell.width < screenWide / 3 ? { left: cell.left, right: cell.left + cell.width } : { left: point.x, right: point.x };
  const below = cell && cell.height < screenHigh / 3 ? { top: cell.top, bottom: cell.top + cell.height } : { top: point.y, bottom: point.y };
  const isBesideFree = beside.right + 14 + wide <= screenWide || beside.left - 14 - wide >= 0;
  let x = beside.right + 14 + wide <= screenWide ? beside.right + 14 : beside.left - 14 - wide;
  let y = point.y + 14;
  if (!isBesideFree) {
    x = point.x - wide / 2;
    y = below.bottom + 14 + high <= screenHigh ? below.bottom + 14 : below.top - 14 - high;
  }
  x = Math.max(4, Math.min(x, screenWide - wide - 4));
  y = Math.max(4, Math.min(y, screenHigh - high - 4));
  card.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

function hideCard() {
  if (pinned || !matrix) return;
  hovered = null;
  const card = document.getElementById("card");
  if (card) card.hidden = true;
  if (card && !cursor) markHot(null);
}
