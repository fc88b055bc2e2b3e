// A wall: shows its views in turn, says how old they are, and obeys a few keys. Its time is the
// server's, as screens on walls have clocks that nobody sets.

import { refresh } from "./page.js";
import { clock } from "./time.js";

// Without an answer for so long, what is shown is called old, however it looks.
const OLD_MS = 120000;
// From then on it is asked for, and after a failure again and again.
const FRESH_MS = 65000;
const RETRY_MS = 10000;
// A clock may be wrong by this much: answers take their time.
const SKEW_MS = 3000;

const { code, made } = live().dataset;
let skew = 0;
let answered = 1000 * Number(made);
// Since the page began, in ms, which no clock changes: when it last asked, and last turned.
let asked = -Infinity;
let turned = performance.now();
let at = currentView();
let isPaused = false;

const KEYS = {
  " ": () => pause(!isPaused),
  ArrowRight: () => show(at + 1),
  ArrowLeft: () => show(at - 1),
  Escape: () => location.assign(document.getElementById("leave").href),
};

document.addEventListener("htmx:before:request", () => (asked = performance.now()));
document.addEventListener("htmx:after:swap", heard);
document.addEventListener("keydown", keyed);
document.addEventListener("click", (event) => event.target.id === "pause" && pause(!isPaused));
tick();
setInterval(tick, 1000);

function live() {
  return document.getElementById("live");
}

function views() {
  return [...document.querySelectorAll("#turns [data-view]")];
}

function currentView() {
  return Math.max(0, views().findIndex((view) => view.ariaCurrent));
}

function now() {
  return Date.now() + skew;
}

function tick() {
  const age = now() - answered;
  document.getElementById("clock").textContent = clock(new Date(now()));
  document.getElementById("age").textContent = `updated ${words(age)} ago`;
  const newest = document.getElementById("newest");
  if (newest) newest.textContent = `${words(now() - 1000 * Number(newest.dataset.at))} ago`;
  sayOld(age > OLD_MS);
  const isQuiet = performance.now() - asked > RETRY_MS;
  if (isTurnDue()) show(at + 1);
  else if (age > FRESH_MS && isQuiet) refresh();
}

function isTurnDue() {
  return !isPaused && views().length > 1 && performance.now() - turned >= 1000 * Number(live().dataset.every);
}

// The view that is shown stays until the answer to another one has come.
function show(place) {
  const all = views();
  if (!all.length) return;
  at = (place + all.length) % all.length;
  turned = performance.now();
  live().setAttribute("hx-get", all[at].getAttribute("href"));
  refresh();
}

function pause(isOn) {
  isPaused = isOn;
  turned = performance.now();
  const button = document.getElementById("pause");
  if (!button) return;
  button.ariaPressed = String(isOn);
  button.textContent = isOn ? "paused: resume" : "pause";
}

function keyed(event) {
  if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
  // Space presses the button that has the focus.
  if (event.key === " " && event.target.closest("a, button")) return;
  event.preventDefault();
  KEYS[event.key]();
}

// An answer with what is shown: its time is right, whatever the clock here says.
function heard({ detail: { ctx } }) {
  if (ctx.response.status >= 400) return;
  const served = Date.parse(ctx.response.headers.get("Date"));
  if (Math.abs(served - now()) > SKEW_MS) skew = served - Date.now();
  answered = now();
  // Another version of Sonar has come: its page needs its own scripts.
  if (live().dataset.code !== code) location.reload();
  tick();
}

function sayOld(isOld) {
  document.body.classList.toggle("old", isOld);
  const trouble = document.getElementById("trouble");
  if (!isOld || !trouble.hidden) return;
  trouble.textContent =
    `Not updated since ${clock(new Date(answered))}. The page shows earlier results; trying again.`;
  trouble.hidden = false;
}

function words(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}
