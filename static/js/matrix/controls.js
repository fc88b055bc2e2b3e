// Controls of the page that need a script: zoom, the values offered to a filter, the clock of a wall.

import { clock } from "../time.js";
import { zoom } from "./keys.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(Number(button.dataset.zoom));
});

// The values that are offered follow what is filtered by.
document.addEventListener("change", (event) => {
  const { lists } = event.target.dataset;
  if (lists) document.getElementById("filter-value").setAttribute("list", `${lists}-${event.target.value}`);
});

tick();
setInterval(tick, 1000);

// The clock of a wall tells whether the page itself still runs.
function tick() {
  const wall = document.getElementById("clock");
  if (wall) wall.textContent = clock();
}
