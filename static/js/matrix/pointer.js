// The pointer and the finger: pointing shows the card, a click opens, a tap does both in two steps.

import { hideCard, showCard } from "./card.js";
import { follow } from "./links.js";
import { markHot, placeAt } from "./places.js";
import { view } from "./view.js";

// Where a button went down.
let pressed = null;

addEventListener("pointerup", released);
addEventListener("scroll", hideCard, { passive: true });
document.addEventListener("pointerdown", (event) => {
  if (event.pointerType === "touch" && view.box && !view.box.contains(event.target)) touched(null);
});

export function listenToPointer(box) {
  box.addEventListener("pointermove", pointed);
  box.addEventListener("pointerleave", () => pressed || hideCard());
  box.addEventListener("pointerdown", ({ target, clientX, clientY, button }) => {
    pressed = target.closest("#card") ? null : { x: clientX, y: clientY, button };
  });
  // The middle button opens a tab instead of scrolling.
  box.addEventListener("mousedown", (event) => event.button === 1 && event.preventDefault());
}

function pointed(event) {
  if (event.pointerType === "touch" || view.pinned || pressed || event.target.closest("#card")) return;
  const place = placeAt(event);
  view.box.style.cursor = place ? "" : "default";
  if (!place) return hideCard();
  markHot(place);
  showCard(place, { x: event.clientX, y: event.clientY });
}

function released(event) {
  const start = pressed;
  pressed = null;
  if (!start || !view.box.isConnected) return;
  if (Math.hypot(event.clientX - start.x, event.clientY - start.y) > 5) return hideCard();
  const place = placeAt(event);
  if (event.pointerType === "touch") return touched(place, event);
  if (place) follow(place, start.button === 1 || event.ctrlKey || event.metaKey);
}

// A finger cannot hover: a tap shows the card, which has the link in it.
function touched(place, event) {
  view.pinned = null;
  hideCard();
  if (!place || place.row === undefined || place.column === undefined) return;
  view.pinned = place;
  markHot(place);
  showCard(place, { x: event.clientX, y: event.clientY });
}
