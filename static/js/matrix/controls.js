// Controls of the page that need a script: zoom.

import { zoom } from "./keys.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(Number(button.dataset.zoom));
});
