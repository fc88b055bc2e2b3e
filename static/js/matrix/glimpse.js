// The picture of a window that is only dragged over: the server sends a byte for the colour of each cell, and no page.
// Where that does not do, as for other rows or columns, the whole page comes, and is painted likewise.

import { payloadOf } from "../figures.js";
import { passing } from "../page.js";
import { outdate, redrawPictures } from "../picture.js";
import { showCard } from "./card.js";
import { paintOver } from "./first.js";
import { unpacked } from "./numbers.js";
import { isZoomed } from "./places.js";
import { view } from "./view.js";

// Of so many cells a picture by Plotly takes longer than the pointer for an hour of the strip.
const MANY_CELLS = 100_000;
// The title of the page that stands below.
let title = "";

Object.assign(passing, { paint: paintPassing, leave });

export function isPaintable(box, { rows, columns }) {
  const isLarge = rows.names.length * columns.names.length > MANY_CELLS;
  return isLarge && view.plot && view.box === box && !isZoomed();
}

// Paints in the place of a picture what its page has, or codes for other colours of the same cells.
export function paint(box, payload, codes) {
  paintOver(box, codes);
  outdate(box);
  Object.assign(view, { cells: null, glimpse: { payload, codes } });
  if (view.hovered) showCard(view.hovered.place, view.hovered.point);
  performance.mark("picture-drawn");
}

async function paintPassing(url) {
  const box = document.getElementById("picture");
  const payload = box && payloadOf(box);
  if (!payload?.codes_url || !isPaintable(box, payload)) return false;
  // What is wrong with the answer is said of that of the page, which is asked for then.
  const response = await fetch(payload.codes_url + new URL(url, location.href).search, ASKED).catch(() => null);
  if (!response?.ok) return false;
  const codes = unpacked(await response.arrayBuffer());
  if (codes.arrangement !== payload.arrangement) return false;
  paint(box, payload, codes);
  sayPassing(codes.title);
  return true;
}

const ASKED = { cache: "no-cache" };

// What the page says of its own window is hidden; what it shows is said to be of the other one.
function sayPassing(words) {
  const [page, heading] = [pageNow(), headingNow()];
  if (!page.matches(".passing")) title = heading.textContent;
  page.classList.add("passing");
  heading.textContent = words;
}

function pageNow() {
  return document.getElementById("page");
}

function headingNow() {
  return document.querySelector("#answer [data-title]");
}

// A page that came has no such class.
function leave() {
  if (!pageNow().matches(".passing")) return;
  pageNow().classList.remove("passing");
  headingNow().textContent = title;
  redrawPictures();
}
