// What the card fetches of one link: its week, all size classes, its last error. The server is asked
// once the pointer has rested on a cell, and no more when it has gone on.

import { view } from "./view.js";

const REST_MS = 150;
const MOST_KEPT = 200;
// Facts by address and version of the data; the oldest go first.
const kept = new Map();
let asking = { key: null };
// The height of the facts that came last: the next ones find room for as much.
let height = 0;

// Returns the room for the facts behind an address, filled now if they are here already; `come` is
// called once they are, later.
export function factsAt(address, come) {
  const box = Object.assign(document.createElement("div"), { className: "card-facts" });
  const key = `${view.payload.version} ${address}`;
  if (height) box.style.minHeight = `${height}px`;
  if (kept.has(key)) fill(box, kept.get(key));
  else ask(key, address, come);
  return box;
}

export function stopAsking() {
  clearTimeout(asking.timer);
  asking.request?.abort();
  asking = { key: null };
}

function ask(key, address, come) {
  if (asking.key === key) return;
  stopAsking();
  const request = new AbortController();
  asking = { key, request, timer: setTimeout(() => load(key, address, request.signal, come), REST_MS) };
}

async function load(key, address, signal, come) {
  let html;
  try {
    const response = await fetch(address, { signal });
    // A login instead of an answer.
    if (response.redirected) throw new Error("you may have to log in again");
    if (!response.ok) throw new Error(`the server answered with status ${response.status}`);
    html = await response.text();
    keep(key, html);
  } catch (error) {
    if (signal.aborted) return;
    html = `<p>Details of this link did not load: ${error.message}.</p>`;
  }
  if (asking.key !== key) return;
  asking = { key: null };
  const box = document.querySelector("#card .card-facts");
  if (box) fill(box, html);
  come();
}

function keep(key, html) {
  kept.set(key, html);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
}

function fill(box, html) {
  box.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  // Of few tests there is no line, and no room for it.
  if (!box.querySelector("svg")) box.style.minHeight = "0";
  if (box.querySelector("table")) height = Math.max(height, box.offsetHeight);
}
