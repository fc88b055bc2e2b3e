// Times as pages write them: UTC, to the second.

export function utc(moment = new Date()) {
  return `${moment.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function clock() {
  return utc().slice(11);
}

export function day() {
  return utc().slice(0, 10);
}
