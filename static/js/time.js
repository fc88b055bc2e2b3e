// Times as pages write them, in UTC.

// 20 Nov 14:00:05 UTC, as `format_moment` of sonar/windows.py; of another year with the year.
export function utc(moment = new Date()) {
  return `${dateName(moment)} ${clock(moment)}`;
}

// 20 Nov 14:00 UTC.
export function minute(moment) {
  return `${dateName(moment)} ${hourOf(moment)} UTC`;
}

export function clock(moment = new Date()) {
  return `${moment.toISOString().slice(11, 19)} UTC`;
}

// For names of files: 2026-11-20.
export function day() {
  return new Date().toISOString().slice(0, 10);
}

function dateName(moment) {
  const year = moment.getUTCFullYear() === new Date().getUTCFullYear() ? "" : ` ${moment.getUTCFullYear()}`;
  return `${moment.getUTCDate()} ${MONTHS[moment.getUTCMonth()]}${year}`;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_MS = 86400e3;

// Fri 20, or Fri 20 Nov.
export function dayName(time, withMonth = true) {
  const moment = new Date(time);
  const name = `${DAYS[moment.getUTCDay()]} ${moment.getUTCDate()}`;
  return withMonth ? `${name} ${MONTHS[moment.getUTCMonth()]}` : name;
}

// Fri 20 Nov 14:00 to 15:00 UTC.
export function windowName(from, to) {
  const end = dayName(from) === dayName(to) ? hourOf(to) : `${dayName(to)} ${hourOf(to)}`;
  return `${dayName(from)} ${hourOf(from)} to ${end} UTC`;
}

// Fri 20 Nov 14:00.
export function momentName(time) {
  return `${dayName(time)} ${hourOf(time)}`;
}

// Of an hour its window, of a day its name.
export function bucketName(from, width) {
  return width === DAY_MS ? `${dayName(from)} (UTC)` : windowName(from, from + width);
}

function hourOf(time) {
  return new Date(time).toISOString().slice(11, 16);
}
