// The parts of a page as tabs: one is seen at a time. Without a script they stand below each other,
// and the links to them are a table of contents.
//
//   <div class="tabbed">
//     <nav class="tabs" aria-label="Parts of this page"><a href="#notes">Notes</a> ...</nav>
//     <section class="panel" id="notes" data-chosen>...</section> ...
//   </div>
//
// The server marks the first with data-chosen. The reader's choice is kept over refreshes (the
// attribute is in the morphIgnore of base.html) and in the hash of the address, which may also
// name something inside of a part.

document.addEventListener("click", clicked);
addEventListener("hashchange", goToHash);
// A module runs once the page has been read, and nothing is shown before it has run (blocking="render").
goToHash();
document.addEventListener("htmx:after:swap", () => {
  markAll();
  if (!location.hash) keepInAddress();
});
// On paper all parts stand below each other; pictures are measured as they are seen, so they come first.
addEventListener("beforeprint", () => showAll(true), { capture: true });
addEventListener("afterprint", () => showAll(false));

function clicked(event) {
  const link = event.target.closest(".tabs a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(document.getElementById(link.hash.slice(1)));
  keepInAddress();
}

// The first part needs no hash: it is what the bare address shows.
function keepInAddress() {
  const panels = [...document.querySelectorAll(".tabbed > .panel")];
  const at = panels.findIndex(isChosen);
  const hash = at > 0 ? `#${panels[at].id}` : "";
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

function showAll(isWhole) {
  for (const tabbed of document.querySelectorAll(".tabbed")) tabbed.classList.toggle("whole", isWhole);
}

// Opens the part that the address names, or that has what it names.
function goToHash() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const panel = target?.closest(".tabbed > .panel");
  if (panel) {
    choose(panel);
    target.scrollIntoView({ behavior: "instant" });
  } else {
    markAll();
  }
}

function choose(panel) {
  for (const other of panelsOf(panel.parentElement)) other.toggleAttribute("data-chosen", other === panel);
  mark(panel.parentElement);
}

function markAll() {
  for (const tabbed of document.querySelectorAll(".tabbed")) mark(tabbed);
}

// Says which part is seen; where it is gone with a refresh, the first one is.
function mark(tabbed) {
  const panels = panelsOf(tabbed);
  if (!panels.some(isChosen)) panels[0]?.setAttribute("data-chosen", "");
  const chosen = panels.find(isChosen);
  for (const link of tabbed.querySelectorAll(":scope > .tabs a")) {
    if (link.hash === `#${chosen?.id}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function panelsOf(tabbed) {
  return [...tabbed.querySelectorAll(":scope > .panel")];
}

function isChosen(panel) {
  return panel.hasAttribute("data-chosen");
}
