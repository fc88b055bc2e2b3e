// The palette that a reader chose last is the one of matrices whose address names none. The server
// reads it: nothing is drawn twice.

const YEAR_SECONDS = 365 * 86400;

document.addEventListener("click", ({ target }) => {
  const link = target.closest?.(".palettes a");
  const name = link && new URL(link.href).searchParams.get("palette");
  if (name) remember(name);
});
document.addEventListener("change", ({ target }) => target.name === "palette" && remember(target.value));

function remember(name) {
  const kept = `path=${location.pathname}; max-age=${YEAR_SECONDS}; samesite=lax`;
  document.cookie = `sonar_palette=${encodeURIComponent(name)}; ${kept}`;
}
