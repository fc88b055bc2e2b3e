// What the boxes of a page show, read out of their JSON once: several modules draw from the same.

// The size of text that figures are made for; where the page's is larger, theirs is too.
const FIGURE_TEXT = 14;
const read = new WeakMap();

export function jsonOf(box) {
  return document.getElementById(box.dataset.figure)?.textContent;
}

export function payloadOf(box, json = jsonOf(box)) {
  if (read.get(box)?.json !== json) read.set(box, { json, payload: JSON.parse(json) });
  return read.get(box).payload;
}

export function enlarge(layout) {
  const factor = parseFloat(getComputedStyle(document.body).fontSize) / FIGURE_TEXT;
  layout.font = { ...layout.font, size: (layout.font?.size ?? 12) * factor };
}
