// The first look at a matrix: its cells, means and labels on a plain canvas, in the place where
// Plotly, which takes its time to come, will put them. It goes when Plotly has drawn.

import { cssVariable, rgbOf, withColours } from "../colours.js";
import { enlarge, payloadOf } from "../figures.js";
import { fit, spanOf } from "./layout.js";
import { written } from "./ticks.js";

const ARRAYS = { u1: Uint8Array, f4: Float32Array };
const STEPS = 1000;

const first = document.getElementById("picture");
if (first) show(first);

function show(box) {
  const canvas = newCanvas();
  draw(box, canvas);
  box.append(canvas);
  requestAnimationFrame(notePaint);
  // Other scripts may give the picture another size meanwhile.
  const sizes = new ResizeObserver(() => {
    if (!canvas.isConnected) sizes.disconnect();
    else if (isOther(box, canvas)) draw(box, canvas);
  });
  sizes.observe(box);
}

function newCanvas() {
  const canvas = Object.assign(document.createElement("canvas"), { className: "first-look" });
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

function isOther({ clientWidth, clientHeight }, { width, height }) {
  return width !== Math.floor(clientWidth * devicePixelRatio) || height !== Math.floor(clientHeight * devicePixelRatio);
}

// Paints over what stands in the box, whose cells are to come: as at first, in a tenth of the time. With `codes` the
// cells, means and frames are theirs, for which those of the page have place and colours.
export function paintOver(place, codes) {
  const before = place.querySelector(".first-look");
  const canvas = before ?? newCanvas();
  draw(place, canvas, cssVariable("--surface"), codes);
  // Marks and the card stay on top.
  if (!before) place.querySelector(".plot").after(canvas);
}

function draw(box, canvas, ground = null, codes = null) {
  const payload = payloadOf(box);
  const layout = withColours(payload.figure.layout);
  enlarge(layout);
  const room = { width: box.clientWidth, height: box.clientHeight };
  fit(layout, payload, room);
  Object.assign(canvas, { width: room.width * devicePixelRatio, height: room.height * devicePixelRatio });
  const ink = canvas.getContext("2d");
  ink.scale(devicePixelRatio, devicePixelRatio);
  if (ground) {
    ink.fillStyle = ground;
    ink.fillRect(0, 0, room.width, room.height);
  }
  const { data } = payload.figure;
  const traces = data.filter(({ z, text }) => z && !text);
  const image = codes && imageOfCodes(codes, traces.find(({ name }) => name === "cells"));
  for (const trace of traces) {
    if (image) drawCells(ink, image, placeIn(image, trace), trace, layout, room);
    else drawCells(ink, imageOf(trace, layout.coloraxis), [0, 0], trace, layout, room);
  }
  const frames = codes?.frames ?? data.filter(({ meta }) => meta?.outline === "frame");
  for (const trace of frames) drawFrames(ink, trace, layout, room);
  drawLabels(ink, layout, room);
}

// A message that is posted in a frame comes after it is painted.
function notePaint() {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => performance.mark("cells-painted");
  port2.postMessage(null);
}

// The cells of a trace begin in their image at x and y.
function drawCells(ink, image, [x, y], trace, layout, room) {
  const names = { x: axisName(trace.xaxis ?? "x"), y: axisName(trace.yaxis ?? "y") };
  const [across, down] = ["x", "y"].map((letter) => spanOf(layout, names[letter], room));
  const [left, wide] = seen(layout[names.x]);
  const [top, high] = seen(layout[names.y]);
  ink.imageSmoothingEnabled = false;
  ink.drawImage(image, x + left, y + top, wide, high, across.start, down.start, across.length, down.length);
  if (trace.xgap) drawGaps(ink, across, down, wide, high, layout.paper_bgcolor);
}

function axisName(short) {
  return short.replace(/^[xy]/, "$&axis");
}

// The first line of an axis that is seen, and how many are.
function seen({ range }) {
  return [Math.min(...range) + 0.5, Math.abs(range[1] - range[0])];
}

function drawGaps(ink, across, down, columns, rows, colour) {
  ink.fillStyle = colour;
  for (let at = 1; at < columns; at++) {
    ink.fillRect(Math.round(across.start + (at * across.length) / columns), down.start, 1, down.length);
  }
  for (let at = 1; at < rows; at++) {
    ink.fillRect(across.start, Math.round(down.start + (at * down.length) / rows), across.length, 1);
  }
}

// What fails, and what is significant, is framed at once, as far as there is room for frames.
function drawFrames(ink, { x, y, line }, layout, room) {
  const [across, down] = ["xaxis", "yaxis"].map((name) => spanOf(layout, name, room));
  const [[left, wide], [top, high]] = [seen(layout.xaxis), seen(layout.yaxis)];
  const [width, height] = [across.length / wide, down.length / high];
  ink.save();
  ink.beginPath();
  ink.rect(across.start, down.start, across.length, down.length);
  ink.clip();
  ink.strokeStyle = withColours(line.color);
  ink.lineWidth = Math.min(2, height / 4);
  x.forEach((column, at) => {
    const [start, begin] = [across.start + (column - left) * width, down.start + (y[at] - top) * height];
    ink.strokeRect(start + 1, begin + 1, width - 2, height - 2);
  });
  ink.restore();
}

// One image has all codes: the means of rows are its last column, those of columns its last row.
function imageOfCodes({ code, rows, columns }, { zmin, zmax, colorscale }) {
  const colours = coloursOf(withColours(colorscale), zmax - zmin);
  return imageWith(columns, rows, (pixels) => code.forEach((each, at) => (pixels[at] = colours[each])));
}

function placeIn({ width, height }, { xaxis, yaxis }) {
  return [xaxis ? width - 1 : 0, yaxis ? height - 1 : 0];
}

function imageOf(trace, coloraxis) {
  const [rows, columns] = trace.z.shape.split(", ").map(Number);
  const values = unpacked(trace.z);
  const { colorscale, cmin, cmax } = trace.coloraxis ? coloraxis : trace;
  const [low, high] = trace.coloraxis ? [cmin, cmax] : [trace.zmin, trace.zmax];
  const steps = trace.coloraxis ? STEPS : high - low;
  const colours = coloursOf(withColours(colorscale), steps);
  return imageWith(columns, rows, (pixels) => {
    for (let at = 0; at < values.length; at++) {
      const share = Math.min(1, Math.max(0, (values[at] - low) / (high - low)));
      pixels[at] = values[at] === values[at] ? colours[Math.round(share * steps)] : 0;
    }
  });
}

function imageWith(width, height, fill) {
  const image = new ImageData(width, height);
  fill(new Uint32Array(image.data.buffer));
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function unpacked({ dtype, bdata }) {
  const text = atob(bdata);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new ARRAYS[dtype](bytes.buffer);
}

// The colours of the whole steps of a scale, as pixels of an image: alpha, blue, green, red.
function coloursOf(colorscale, steps) {
  const stops = colorscale.map(([share, colour]) => [share * steps, rgbOf(colour)]);
  const colours = new Uint32Array(steps + 1);
  let next = 1;
  for (let step = 0; step <= steps; step++) {
    while (next < stops.length - 1 && stops[next][0] < step - 1e-6) next++;
    const [[start, from], [end, to]] = [stops[next - 1], stops[next]];
    const share = Math.min(1, Math.max(0, (step - start) / (end - start)));
    const [red, green, blue] = from.map((part, at) => Math.round(part + (to[at] - part) * share));
    colours[step] = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }
  return colours;
}

function drawLabels(ink, layout, room) {
  ink.fillStyle = cssVariable("--ink");
  ink.textBaseline = "middle";
  for (const [letter, name] of [["x", "xaxis"], ["x", "xaxis2"], ["y", "yaxis"], ["y", "yaxis2"]]) {
    const { start, length } = spanOf(layout, name, room);
    const { tickvals, ticktext, ticklabelstandoff, tickangle } = layout[name];
    const [first, count] = seen(layout[name]);
    ink.textAlign = letter === "y" ? "right" : tickangle ? "left" : "center";
    const up = letter === "x" && !tickangle ? layout.font.size / 2 : 0;
    tickvals.forEach((place, at) => {
      const middle = start + ((place - first + 0.5) * length) / count;
      if (middle < start || middle > start + length) return;
      const { text, isGroup } = written(ticktext[at]);
      ink.font = `${isGroup ? 700 : 400} ${layout.font.size}px ${layout.font.family}`;
      ink.save();
      if (letter === "x") ink.translate(middle, layout.margin.t - ticklabelstandoff - 1 - up);
      else ink.translate(layout.margin.l - ticklabelstandoff - 1, middle);
      ink.rotate((tickangle * Math.PI) / 180);
      ink.fillText(text, 0, 0);
      ink.restore();
    });
  }
}
