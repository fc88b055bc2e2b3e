// The boxes that choose links, and the menus that they are in. A box offers the values of all its
// attributes as one types, a group for each; what is chosen goes into the address at once.

// So many of each attribute are offered: typing on finds the others.
const MOST = 8;
const sent = new Set();

document.addEventListener("focusin", ({ target }) => isBox(target) && offer(target));
document.addEventListener("input", ({ target }) => isBox(target) && offer(target));
document.addEventListener("focusout", ({ target }) => isBox(target) && close(target));
// Before the page closes the menu: Escape closes the list first.
document.addEventListener("keydown", (event) => isBox(event.target) && walk(event), true);
// The box keeps the focus while the pointer chooses.
document.addEventListener("pointerdown", (event) => event.target.closest(".offers") && event.preventDefault());
document.addEventListener("mousedown", (event) => event.target.closest(".offers") && event.preventDefault());
document.addEventListener("click", ({ target }) => {
  const option = target.closest(".offers [role=option]");
  if (option) choose(boxOf(option.closest(".offers")), option);
});
document.addEventListener("submit", (event) => {
  const box = event.target.querySelector?.("[data-offers]");
  // What is not chosen from the list is no value of anything.
  if (!box || sent.has(box)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
document.addEventListener("htmx:after:swap", () => {
  for (const box of sent) box.form?.reset();
  sent.clear();
  // The answer to something else took the list away from who is typing.
  const { activeElement: active } = document;
  if (active && isBox(active) && active.checkVisibility()) offer(active);
});
document.addEventListener("toggle", ({ target }) => {
  if (!target.matches?.(".sheet:popover-open")) return;
  target.querySelector(":scope > form:only-child > [data-offers]")?.focus();
  // What a menu fetches, it fetches when it is opened.
  target.querySelector("[hx-trigger=opened]")?.dispatchEvent(new Event("opened"));
}, true);

function isBox(target) {
  return target.matches?.("[data-offers]");
}

function listOf(box) {
  return box.form.querySelector(".offers");
}

function boxOf(list) {
  return list.closest("form").querySelector("[data-offers]");
}

function offer(box) {
  const list = listOf(box);
  const text = box.value.trim().replace(/^!/, "").toLowerCase();
  const groups = box.dataset.offers.split(" ").map((name) => groupOf(name, text)).filter(Boolean);
  groups.sort((one, other) => one.childElementCount - other.childElementCount);
  list.replaceChildren(...(groups.length ? groups : [nothing(box.value)]));
  list.querySelectorAll("[role=option]").forEach((option, at) => (option.id = `${list.id}-${at}`));
  list.hidden = false;
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list",
    "aria-controls": list.id, "aria-expanded": "true" })) box.setAttribute(name, value);
  box.removeAttribute("aria-activedescendant");
}

// The values of an attribute that have the text in them, those that begin with it first.
function groupOf(name, text) {
  const known = document.getElementById(`known-${name}`);
  if (!known) return null;
  const title = known.dataset.title;
  const values = [...known.options].map((option) => option.value);
  const begins = values.filter((value) => value.toLowerCase().startsWith(text));
  const matching = values.filter((value) => (
    value.toLowerCase().includes(text) || `${title} ${value}`.toLowerCase().startsWith(text)
  ));
  const all = [...new Set([...begins, ...matching])];
  if (!all.length) return null;
  const head = element("span", { "aria-hidden": "true" }, title);
  const group = element("div", { role: "group", "aria-label": title }, head);
  group.append(...all.slice(0, MOST).map((value) => element(
    "div", { role: "option", "aria-selected": "false", "data-name": name, "data-value": value }, value,
  )));
  const others = all.length - MOST;
  if (others > 0) group.append(element("small", { "aria-hidden": "true" }, `${others} more: keep typing`));
  return group;
}

function nothing(text) {
  const attributes = { role: "option", "aria-disabled": "true", "aria-selected": "false" };
  return element("div", attributes, `No match for “${text}”`);
}

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function close(box) {
  const list = listOf(box);
  list.hidden = true;
  list.replaceChildren();
  box.setAttribute("aria-expanded", "false");
  box.removeAttribute("aria-activedescendant");
}

function walk(event) {
  const box = event.target;
  const options = [...listOf(box).querySelectorAll("[role=option]:not([aria-disabled])")];
  const at = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
  const steps = { ArrowDown: (at + 1) % options.length, ArrowUp: (at < 1 ? options.length : at) - 1 };
  if (event.key === "Escape" && !listOf(box).hidden) {
    event.preventDefault();
    close(box);
  } else if (event.key in steps) {
    event.preventDefault();
    if (options.length) mark(box, options, steps[event.key]);
    else offer(box);
  } else if (event.key === "Enter") {
    event.preventDefault();
    // Enter takes the first of what was typed.
    const option = options[at] ?? (box.value.trim() ? options[0] : null);
    if (option) choose(box, option);
  }
}

function mark(box, options, at) {
  options.forEach((option, number) => option.setAttribute("aria-selected", String(number === at)));
  options[at].scrollIntoView({ block: "nearest" });
  box.setAttribute("aria-activedescendant", options[at].id);
}

function choose(box, option) {
  if (option.ariaDisabled === "true") return;
  const { form } = box;
  const { filter_on: attribute, filter_not: not } = form.elements;
  attribute.value = option.dataset.name;
  not.checked ||= box.value.trim().startsWith("!");
  box.value = option.dataset.value;
  close(box);
  sent.add(box);
  form.requestSubmit();
}
