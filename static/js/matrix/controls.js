// Controls of the page that need a script: zoom, the list of keys, and what is not wanted any more.

import { zoom } from "./keys.js";

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(Number(button.dataset.zoom));
  const dismissed = event.target.closest("[data-dismiss]");
  if (dismissed) {
    document.cookie = `${dismissed.dataset.dismiss}=1; path=${location.pathname}; max-age=31536000; samesite=lax`;
    dismissed.parentElement.remove();
  }
  const opener = event.target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
});
