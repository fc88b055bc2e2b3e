// On a narrow screen the answer and the lists of what is wrong stand above the picture. A refresh would
// move it under the reader's eyes when a link begins to fail or is well again: what stands there keeps
// its height until the reader asks for something, and a list that is new comes below the picture.

import { isRefresh } from "../page.js";

const NARROW = matchMedia("(max-width: 600px)");
const ANSWER = "#answer";
const LISTS = "#rail > section";

document.addEventListener("htmx:before:swap", (event) => {
  const { ctx, tasks } = event.detail;
  if (!isRefresh(ctx)) return;
  for (const { fragment } of tasks) {
    keepRoom(fragment);
    if (!NARROW.matches) continue;
    for (const answer of fragment.querySelectorAll(ANSWER)) keepHeight(answer, document.querySelector(ANSWER));
    for (const list of fragment.querySelectorAll(LISTS)) keepPlace(list);
  }
});

// Notices that go leave their room, as the first results of an empty Sonar make them do; nobody
// reads a wall so closely.
function keepRoom(fragment) {
  const [next, shown] = [fragment, document].map((part) => part.querySelector("#live > #picture"));
  if (!next || !shown || fragment.querySelector("#live > .notice")) return;
  if (document.body.classList.contains("wall")) return;
  const room = shown.getBoundingClientRect().top - shown.parentElement.getBoundingClientRect().top;
  next.style.marginTop = `${room}px`;
}

function keepPlace(list) {
  const shown = document.querySelector(`${LISTS}[aria-labelledby=${list.getAttribute("aria-labelledby")}]`);
  list.classList.toggle("late", !shown || shown.classList.contains("late"));
  if (shown) keepHeight(list.querySelector("ol"), shown.querySelector("ol"));
}

function keepHeight(next, shown) {
  next.style.height = `${shown.getBoundingClientRect().height}px`;
}
