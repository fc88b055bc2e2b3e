// The card beside a cell: both directions of its link side by side, and what is fetched for it.

import { minute, utc } from "../time.js";
import { factsAt, stopAsking } from "./facts.js";
import { ends, isStrips, ownAt, ownSends, reverseOf, urlOf } from "./links.js";
import { DASH, age, ageOf, cellOf, counted, inUnit, rate, times, timesWithin } from "./numbers.js";
import { markHot, pixelsOf } from "./places.js";
import { isNarrow, view } from "./view.js";

const GAP = 14;
const LONG = 14;
const LEVELS = { slower: "slower than usual", faster: "faster than usual", silent: "not tested" };
const LATER = "Release to load the numbers.";
// What the card says now: it is written anew only where that changes, not with every move.
let said = null;

export function showCard(place, point) {
  view.hovered = { place, point };
  const card = document.getElementById("card");
  const [isGlimpse, isPinned] = [view.glimpse !== null, view.pinned !== null];
  const key = JSON.stringify([place, view.payload.version, view.cells?.version, view.trouble, isGlimpse, isPinned]);
  if (card.hidden || said !== key) card.replaceChildren(...contents(place));
  said = key;
  card.classList.toggle("pinned", view.pinned !== null);
  card.hidden = false;
  const cell = isCell(place) ? pixelsOf(place) : null;
  putBeside(card, cell, point ?? { x: cell.left + cell.width, y: cell.top + cell.height });
}

function isCell({ row, column }) {
  return row !== undefined && column !== undefined;
}

function contents(place) {
  if (!isCell(place)) {
    stopAsking();
    return aboutAverage(place);
  }
  const { from, to } = ends(place);
  const head = made("p", "from ", made("b", from), " to ", made("b", to));
  if (!view.cells) return [head, made("p", view.glimpse ? LATER : (view.trouble ?? "Loading the numbers …"))];
  const words = view.cells.states[cellOf(place).state];
  // What is failing now says so with more, below.
  const why = words.includes(":") && !words.startsWith("failing") ? [words] : [];
  const lines = [...why, ...conditionOf(place)].map((line) => made("p", line));
  return [head, ...lines, bothWays(place), ...facts(place), ...(view.pinned ? [...links(place), closing()] : [])];
}

// What its links are part of, or what may be wrong with them without being confirmed.
function conditionOf(place) {
  const text = view.cells.conditions[cellOf(place).condition];
  return text ? [text] : [];
}

// Of a link that is tested there is more than the matrix has.
function facts(place) {
  const address = view.payload.open.kind === "link" ? urlOf(place) : null;
  if (!address) {
    stopAsking();
    return [];
  }
  const { pathname, search } = new URL(address, location.href);
  return [factsAt(`${pathname}card/${search}`, putAgain)];
}

function aboutAverage({ row, column }) {
  const side = row === undefined ? view.columns : view.rows;
  const at = row ?? column;
  const head = at === undefined ? ["all cells"] : [`${directionOf({ row, column })} `, made("b", side.names[at])];
  if (view.glimpse) return [made("p", ...head), made("p", LATER)];
  const average = at === undefined ? view.payload.average : side.average[at];
  const mean = average === null ? "none measured" : inUnit(average);
  return [made("p", ...head), made("p", `mean of measured cells: ${mean}`)];
}

// Of a row or column as a whole; partners are at both ends.
function directionOf({ row, column }) {
  const { transposed } = view.payload;
  if (!isStrips()) return (row === undefined) === transposed ? "from" : "to";
  const at = ownAt({ row, column });
  return at === undefined ? "from and to" : ownSends(at) ? "from" : "to";
}

function bothWays(place) {
  const back = reverseOf(place);
  const there = figures(cellOf(place));
  const other = back && figures(cellOf(back));
  const head = made("thead", made("tr", made("td"), th("col", "this direction"), th("col", "reverse direction")));
  const rows = Object.keys(there).map((name) => [name, there[name], other ? other[name] : DASH]);
  if (!other) rows[0][2] = "not in this view";
  const lines = rows.map(([name, one, two]) => made("tr", rowHead(name), made("td", one), made("td", two)));
  return made("table", head, made("tbody", ...lines));
}

function figures(cell) {
  const hasResult = !Number.isNaN(cell.last);
  return {
    state: standing(cell),
    ...(view.payload.compared ? bothSides(cell) : rates(cell)),
    failed: hasResult ? `${counted(cell.failed)} of ${counted(cell.ok + cell.failed)} tests` : DASH,
    "last result": hasResult ? ageOf(cell.last) : DASH,
    "result time": hasResult ? utc(new Date(1000 * cell.last)) : DASH,
  };
}

// The sides of a comparison have names as long as what was asked.
function rowHead(name) {
  return Object.assign(th("row", name), { className: name.length > LONG ? "long" : "" });
}

function rates(cell) {
  const { said: asked, card_extras: extras } = view.payload;
  return {
    "now / baseline": againstUsual(cell),
    "mean ± std": cell.ok ? `${rate(cell.mean, cell.std)} (${counted(cell.ok)})` : DASH,
    ...Object.fromEntries(Object.entries(extras).map(([words, name]) => [words, rate(cell[name], NaN)])),
    ...(asked ? { [asked]: cell.against === undefined ? inUnit(cell.value) : againstTarget(cell) } : {}),
  };
}

// Of a comparison: the rates of both sides, and what can be said of their ratio.
function bothSides(cell) {
  const { here, there } = view.payload.compared;
  return {
    [here]: ofSide(cell.here, cell.here_ok),
    [there]: ofSide(cell.there, cell.there_ok),
    ratio: ratioOf(cell),
    change: changeOf(cell),
  };
}

function ofSide(value, count) {
  return Number.isNaN(value) ? DASH : `${rate(value, NaN)} (${counted(count)})`;
}

function ratioOf({ value, low, high }) {
  return Number.isNaN(low) ? inUnit(value) : timesWithin(value, low, high);
}

function changeOf({ p, change }) {
  if (Number.isNaN(p)) return "too few results to compare";
  const chance = p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(p < 0.0995 ? 3 : 2)}`;
  return `${change ? `significantly ${view.cells.changes[change]}` : "not significant"}, ${chance}`;
}

// The state, or what is said on top of it, and since when.
export function standing(cell) {
  if (view.payload.open.kind !== "link") return countsOf(cell);
  const level = view.cells.levels[cell.level];
  const state = asUsual(view.cells.states[cell.state].split(":")[0], level);
  const isShifted = level === "silent" || (state === "measured" && level in LEVELS);
  if (state !== "failing" && !isShifted) return cell.partly ? `${state}, partly failing` : state;
  const since = `since ${minute(new Date(1000 * cell.since))} (${age(view.cells.moment - cell.since)})`;
  if (state !== "failing") return `${LEVELS[level]} ${since}`;
  return `failing ${since}${cell.streak ? `, ${counted(cell.streak)} failed in a row` : ""}`;
}

function asUsual(state, level) {
  return state === "measured" && level === "usual" ? "as usual" : state;
}

// Of a cell that pools several: how many of its links are how.
function countsOf(cell) {
  const counts = {
    failing: cell.failing_links,
    "not tested": cell.silent_links,
    slower: cell.slower_links,
    faster: cell.faster_links,
  };
  const parts = Object.entries(counts).filter(([, count]) => count);
  const state = view.cells.states[cell.state].split(":")[0];
  if (!parts.length) return state;
  const [[first, number], ...others] = parts;
  const links = `${counted(number)} of ${counted(cell.tested_links)} links ${first}`;
  return [links, ...others.map(([words, count]) => `${counted(count)} ${words}`)].join(", ");
}

// What came through before all failed is no rate of now.
function againstUsual({ now, usual, state }) {
  const isFailed = view.cells.states[state].startsWith("failed");
  if (isFailed || Number.isNaN(now) || Number.isNaN(usual)) return DASH;
  return `${times(now / usual)} the baseline of ${rate(usual, NaN)}`;
}

// Compare a cell with its target; count the links below and near if it pools several.
function againstTarget({ value, target, against, below_links: below, near_links: near }) {
  if (Number.isNaN(value)) return DASH;
  const counts = Object.entries({ below, near }).filter(([, count]) => count);
  const links = counts.map(([words, count]) => `${counted(count)} ${words}`).join(", ");
  const how = below === undefined ? view.cells.against_words[against] : links || "all on target";
  return `${times(value)} the target of ${rate(target, NaN)}: ${how}`;
}

function links(place) {
  const isLink = view.payload.open.kind === "link";
  const verb = isLink ? "Open" : "Show the links of";
  const ways = [[place, isLink ? "this link" : "this cell"], [reverseOf(place), "the reverse direction"]];
  return ways.flatMap(([each, words]) => {
    const url = each && urlOf(each);
    return url ? [made("p", Object.assign(made("a", `${verb} ${words}`), { href: url }))] : [];
  });
}

// A finger has no Escape, and the card may be all around what it could tap.
function closing() {
  const looks = { type: "button", className: "btn btn-sm btn-outline-secondary" };
  const button = Object.assign(made("button", "Close"), looks);
  button.addEventListener("click", () => {
    view.pinned = null;
    if (view.cursor) view.box.focus();
    hideCard();
  });
  return button;
}

function made(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

function th(scope, text) {
  return Object.assign(made("th", text), { scope });
}

// What has come may need other room.
function putAgain() {
  if (view.hovered) showCard(view.hovered.place, view.hovered.point);
}

// Beside the cell, on the side where there is room; never off the screen.
function putBeside(card, cell, point) {
  const [screenWide, screenHigh] = [document.documentElement.clientWidth, innerHeight];
  if (isNarrow.matches) return putAcross(card, cell ?? { top: point.y, height: 0 }, screenHigh);
  card.style.maxHeight = "";
  const { offsetWidth: wide, offsetHeight: high } = card;
  const isThin = cell && cell.width < screenWide / 3;
  const [left, right] = isThin ? [cell.left, cell.left + cell.width] : [point.x, point.x];
  const isLow = cell && cell.height < screenHigh / 3;
  const [top, bottom] = isLow ? [cell.top, cell.top + cell.height] : [point.y, point.y];
  // The lists at the right stay in sight: they name what the reader looks for.
  const rail = document.getElementById("rail")?.getBoundingClientRect();
  let edge = rail && rail.left > point.x ? rail.left : screenWide;
  const fitsBefore = (end) => right + GAP + wide <= end || left - GAP - wide >= 0;
  const fitsAboveOrBelow = bottom + GAP + high <= screenHigh || top - GAP - high >= 0;
  if (!fitsBefore(edge) && !fitsAboveOrBelow) edge = screenWide;
  const isBesideFree = fitsBefore(edge);
  let x = right + GAP + wide <= edge ? right + GAP : left - GAP - wide;
  let y = point.y + GAP;
  if (!isBesideFree) {
    x = point.x - wide / 2;
    y = bottom + GAP + high <= screenHigh ? bottom + GAP : top - GAP - high;
  }
  x = Math.max(4, Math.min(x, edge - wide - 4));
  y = Math.max(4, Math.min(y, screenHigh - high - 4));
  card.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

// On a telephone across the screen, above or below the cell, and no higher than the room there.
function putAcross(card, { top, height }, screenHigh) {
  const isAbove = top > screenHigh - top - height;
  const room = isAbove ? top : screenHigh - top - height;
  card.style.maxHeight = `${Math.floor(room - 4)}px`;
  card.style.transform = `translate(0, ${isAbove ? 0 : screenHigh - card.offsetHeight}px)`;
}

export function hideCard() {
  if (view.pinned || !view.plot) return;
  view.hovered = null;
  stopAsking();
  const card = document.getElementById("card");
  if (card) card.hidden = true;
  if (card && !view.cursor) markHot(null);
}
