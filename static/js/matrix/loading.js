// The numbers of the cells are fetched once the picture is drawn.

import { refresh } from "../page.js";
import { showCard } from "./card.js";
import { tell } from "./keys.js";
import { unpacked } from "./numbers.js";
import { view } from "./view.js";

export async function loadCells(payload) {
  try {
    const response = await fetch(payload.cells_url, { cache: "no-cache" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const fresh = unpacked(await response.arrayBuffer());
    const { version, cells_url } = view.payload;
    if (payload.version !== version || payload.cells_url !== cells_url) return;
    // New results may have come since the page was made. Its rows and columns must be the same.
    if (fresh.arrangement !== payload.arrangement) setTimeout(refresh, 5000);
    else view.cells = fresh;
    performance.mark("cells-loaded");
  } catch (error) {
    view.trouble =
      `The numbers in the cells did not load: ${error.message}. They are in the table and the CSV.`;
  }
  if (view.cursor) tell(view.cursor);
  // A card that was waiting for them says them now.
  if (view.hovered) showCard(view.hovered.place, view.hovered.point);
}
