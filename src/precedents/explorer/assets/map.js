// The map: points in WebGL2, or some of them on a plain canvas; lasso, zoom, lines to precedents, a list.
import { send } from "./explorer.js";

const base = document.body.dataset.base;
const page = document.querySelector("#map");
const canvas = document.querySelector("#points");
const tip = document.querySelector(".tip");
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
const SAMPLE = 20000; // points that a plain canvas draws
const LISTED = 200; // chosen points that are listed
const MOST = 1000; // chosen points that can be tagged at once
const COLOURS = ["#3b6ea5", "#c0392b", "#2a7f62", "#a15c00", "#7a4fa3", "#0f8a9d", "#b0417f", "#6b7a1e", "#8c564b", "#5b656f"];
const LIGHTER = ["#86b5e6", "#f08a7e", "#57bd99", "#dfa14a", "#c3a1e6", "#6cd0de", "#ee9bc9", "#bccb62", "#d0a095", "#a2acb6"];

const VERTEX = `#version 300 es
in vec2 place; in vec3 colour; in float size; uniform vec2 scale; uniform vec2 offset; uniform float ratio; out vec3 hue;
void main() { gl_Position = vec4(place * scale + offset, 0.0, 1.0); gl_PointSize = size * ratio; hue = colour; }`;
const FRAGMENT = `#version 300 es
precision mediump float; in vec3 hue; uniform float round; out vec4 drawn;
void main() { if (round > 0.5 && length(gl_PointCoord - 0.5) > 0.5) discard; drawn = vec4(hue, 1.0); }`;

const parsed = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
const palette = (dark ? LIGHTER : COLOURS).map(parsed);
const ink = dark ? [0.9, 0.92, 0.93] : [0.12, 0.14, 0.16];

class Points {
  constructor(content, n) {
    this.n = n;
    this.places = new Float32Array(content, 0, 2 * n);
    this.labels = new Uint16Array(content, 8 * n, n);
    this.predictions = new Uint16Array(content, 10 * n, n);
    this.losses = new Float32Array(content, 12 * n, n);
    this.doubts = new Float32Array(content, 16 * n, n);
    this.colours = new Float32Array(3 * n);
    this.sizes = new Float32Array(n);
    this.chosen = new Uint8Array(n);
  }

  box() {
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < this.n; i++) {
      const x = this.places[2 * i], y = this.places[2 * i + 1];
      left = Math.min(left, x); right = Math.max(right, x);
      low = Math.min(low, y); high = Math.max(high, y);
    }
    return { left, right, low, high };
  }

  coloured(by) {
    const values = by === "loss" ? this.losses : this.doubts;
    const graded = by === "loss" || by === "doubt";
    const sorted = graded ? values.filter((value) => value === value).sort() : null;
    const top = sorted?.length ? sorted[Math.floor(0.99 * (sorted.length - 1))] || 1 : 1;
    const cold = palette[0], hot = palette[1];
    const few = this.n < 3000 ? 6 : this.n < 30000 ? 4 : this.n < 300000 ? 2.5 : 1.5;
    for (let i = 0; i < this.n; i++) {
      let colour;
      if (graded) {
        const share = values[i] === values[i] ? Math.min(1, Math.max(0, values[i] / top)) : 0;
        colour = cold.map((part, at) => part + (hot[at] - part) * share);
      } else colour = palette[(by === "label" ? this.labels : this.predictions)[i] % palette.length];
      if (this.chosen[i]) colour = ink;
      this.colours.set(colour, 3 * i);
      this.sizes[i] = this.chosen[i] ? few + 3 : few;
    }
    return !graded || sorted.length > 0;
  }
}

class View {
  constructor(box) {
    this.whole = box;
    this.reset();
  }

  reset() {
    const { left, right, low, high } = this.whole;
    this.x = (left + right) / 2;
    this.y = (low + high) / 2;
    this.span = 1.08 * Math.max(right - left, high - low, 1e-6);
  }

  get aspect() { return canvas.clientWidth / canvas.clientHeight; }

  scale() {
    const wide = this.aspect >= 1;
    return wide ? [2 / (this.span * this.aspect), 2 / this.span] : [2 / this.span, (2 * this.aspect) / this.span];
  }

  screen(x, y) {
    const [sx, sy] = this.scale();
    return [((x - this.x) * sx + 1) * canvas.clientWidth / 2, (1 - (y - this.y) * sy) * canvas.clientHeight / 2];
  }

  place(left, top) {
    const [sx, sy] = this.scale();
    return [(2 * left / canvas.clientWidth - 1) / sx + this.x, (1 - 2 * top / canvas.clientHeight) / sy + this.y];
  }

  zoom(factor, left, top) {
    const before = this.place(left, top);
    this.span *= factor;
    const after = this.place(left, top);
    this.x += before[0] - after[0];
    this.y += before[1] - after[1];
  }
}

class Web {
  constructor(gl, points) {
    this.gl = gl;
    this.points = points;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    this.program = program;
    this.at = (name) => gl.getUniformLocation(program, name);
    this.buffers = { place: gl.createBuffer(), colour: gl.createBuffer(), size: gl.createBuffer(), lines: gl.createBuffer() };
    this.filled("place", points.places);
  }

  filled(name, values) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, values, this.gl.DYNAMIC_DRAW);
  }

  recoloured() {
    this.filled("colour", this.points.colours);
    this.filled("size", this.points.sizes);
  }

  attribute(name, buffer, size) {
    const { gl } = this;
    const place = gl.getAttribLocation(this.program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer]);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, gl.FLOAT, false, 0, 0);
  }

  draw(view, lines) {
    const { gl } = this;
    const ratio = devicePixelRatio || 1;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const [sx, sy] = view.scale();
    gl.uniform2f(this.at("scale"), sx, sy);
    gl.uniform2f(this.at("offset"), -view.x * sx, -view.y * sy);
    gl.uniform1f(this.at("ratio"), ratio);
    gl.uniform1f(this.at("round"), 1);
    this.attribute("place", "place", 2);
    this.attribute("colour", "colour", 3);
    this.attribute("size", "size", 1);
    gl.drawArrays(gl.POINTS, 0, this.points.n);
    if (lines.length) {
      gl.uniform1f(this.at("round"), 0);
      this.filled("lines", new Float32Array(lines));
      this.attribute("place", "lines", 2);
      for (const [name, value] of [["colour", ink], ["size", [1]]]) {
        const place = gl.getAttribLocation(this.program, name);
        gl.disableVertexAttribArray(place);
        gl[`vertexAttrib${value.length}f`](place, ...value);
      }
      gl.drawArrays(gl.LINES, 0, lines.length / 2);
    }
  }
}

class Plain {
  constructor(points) {
    this.points = points;
    this.context = canvas.getContext("2d");
    this.step = Math.ceil(points.n / SAMPLE);
  }

  recoloured() {}

  draw(view, lines) {
    const { context, points } = this;
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < points.n; i += this.step) {
      const [left, top] = view.screen(points.places[2 * i], points.places[2 * i + 1]);
      const [r, g, b] = points.colours.subarray(3 * i, 3 * i + 3);
      context.fillStyle = `rgb(${255 * r} ${255 * g} ${255 * b})`;
      const size = points.sizes[i];
      context.fillRect(left - size / 2, top - size / 2, size, size);
    }
    context.strokeStyle = `rgb(${ink.map((part) => 255 * part).join(" ")})`;
    for (let i = 0; i < lines.length; i += 4) {
      context.beginPath();
      context.moveTo(...view.screen(lines[i], lines[i + 1]));
      context.lineTo(...view.screen(lines[i + 2], lines[i + 3]));
      context.stroke();
    }
  }
}

function within(x, y, outline) {
  let inside = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [xi, yi] = outline[i], [xj, yj] = outline[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

async function main() {
  const answer = await fetch(base + page.dataset.columns);
  if (!answer.ok) return;
  const points = new Points(await answer.arrayBuffer(), Number(page.dataset.count));
  const view = new View(points.box());
  const wanted = !new URLSearchParams(location.search).has("plain");
  const gl = wanted && canvas.getContext("webgl2", { antialias: true });
  const drawing = gl ? new Web(gl, points) : new Plain(points);
  const note = document.querySelector("#drawing");
  if (!gl) note.textContent = `This browser has no WebGL: ${Math.ceil(points.n / drawing.step).toLocaleString("en")} of the points are drawn.`;
  const colour = document.querySelector("#colour");
  let outline = [], lines = joined(points);

  function draw() {
    const loop = outline.flatMap((place, i) => [...place, ...outline[(i + 1) % outline.length]]);
    drawing.draw(view, outline.length > 1 ? loop : lines);
    page.dataset.drawn = String(Number(page.dataset.drawn ?? 0) + 1);
  }
  function recoloured() {
    const known = points.coloured(colour.value);
    drawing.recoloured();
    legend(points, colour.value, known);
    draw();
  }
  function sized() {
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    draw();
  }
  function choose(test) {
    for (let i = 0; i < points.n; i++) points.chosen[i] = test(points.places[2 * i], points.places[2 * i + 1], i) ? 1 : 0;
    lines = [];
    listed(points);
    recoloured();
  }
  colour.addEventListener("change", recoloured);
  addEventListener("resize", sized);
  document.querySelector("#whole").addEventListener("click", () => { view.reset(); draw(); });
  document.querySelector("#view").addEventListener("click", () => {
    const [left, high] = view.place(0, 0), [right, low] = view.place(canvas.clientWidth, canvas.clientHeight);
    choose((x, y) => x >= left && x <= right && y >= low && y <= high);
  });
  const lasso = document.querySelector("#lasso");
  lasso.addEventListener("click", () => lasso.setAttribute("aria-pressed", String(lasso.getAttribute("aria-pressed") !== "true")));
  moving(view, points, draw, {
    begin: () => lasso.getAttribute("aria-pressed") === "true" && ((outline = []), true),
    add: (place) => { outline.push(place); draw(); },
    end: () => { const drawn = outline; outline = []; choose((x, y) => within(x, y, drawn)); },
  });
  const lined = (page.dataset.lines || "").split(",").filter(Boolean).map(Number);
  for (const i of lined) points.chosen[i] = 1;
  if (page.dataset.train) points.chosen[Number(page.dataset.train)] = 1;
  listed(points, lined, (page.dataset.scores || "").split(","));
  points.coloured(colour.value);
  drawing.recoloured();
  legend(points, colour.value, true);
  sized();
}

function joined(points) {
  // From the middle of a case's precedents, where the case is shown, to each of them.
  const places = (page.dataset.lines || "").split(",").filter(Boolean).map(Number);
  const middle = [0, 1].map((axis) => places.reduce((sum, i) => sum + points.places[2 * i + axis], 0) / places.length);
  return places.flatMap((i) => [...middle, points.places[2 * i], points.places[2 * i + 1]]);
}

function moving(view, points, draw, drawn) {
  let from = null, drawing = false;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    from = at(event);
    drawing = drawn.begin();
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = at(event);
    if (!from) return hovered(view, points, here);
    if (drawing) return drawn.add(view.place(...here));
    const [before, after] = [view.place(...from), view.place(...here)];
    view.x += before[0] - after[0];
    view.y += before[1] - after[1];
    from = here;
    draw();
  });
  canvas.addEventListener("pointerup", () => {
    if (drawing) drawn.end();
    from = null;
    drawing = false;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("dblclick", (event) => {
    const found = nearest(view, points, at(event));
    if (found >= 0) location.href = `${base}train/${found}`;
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, ...at(event));
    draw();
  }, { passive: false });
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener("keydown", (event) => {
    const step = KEYS[event.key];
    if (step) {
      view.x += 0.1 * view.span * step[0];
      view.y += 0.1 * view.span * step[1];
    } else if (event.key === "+" || event.key === "-") {
      view.zoom(event.key === "+" ? 0.8 : 1.25, canvas.clientWidth / 2, canvas.clientHeight / 2);
    } else return;
    event.preventDefault();
    draw();
  });
}

function nearest(view, points, [left, top]) {
  const [x, y] = view.place(left, top);
  const reach = 12 * (view.span / Math.min(canvas.clientWidth, canvas.clientHeight));
  let best = -1, distance = reach * reach;
  for (let i = 0; i < points.n; i++) {
    const dx = points.places[2 * i] - x, dy = points.places[2 * i + 1] - y;
    const here = dx * dx + dy * dy;
    if (here < distance) [best, distance] = [i, here];
  }
  return best;
}

function hovered(view, points, here) {
  const found = nearest(view, points, here);
  tip.hidden = found < 0;
  if (found < 0) return;
  const classes = JSON.parse(page.dataset.classes);
  tip.textContent = `#${found} ${classes[points.labels[found]]}, predicted ${classes[points.predictions[found]]}, loss ${points.losses[found].toPrecision(2)}`;
  // Style sheets of our own are the only ones allowed; attributes set by a script of ours are, too.
  tip.style.left = `${Math.min(here[0] + 12, canvas.clientWidth - 180)}px`;
  tip.style.top = `${here[1] + 12}px`;
}

function listed(points, first = [], scores = []) {
  // Those that are first in their own order, with their scores; the others by place.
  const classes = JSON.parse(page.dataset.classes);
  const list = document.querySelector("#chosen");
  const places = [...first];
  for (let i = 0; i < points.n; i++) if (points.chosen[i] && !first.includes(i)) places.push(i);
  for (const note of document.querySelectorAll("#ranked")) note.hidden = !first.length;
  document.querySelector("#count").textContent = places.length ? places.length.toLocaleString("en") : "";
  document.querySelector("#hint").hidden = places.length > 0;
  const form = document.querySelector("#tag-all");
  form.hidden = !places.length || places.length > MOST;
  form.onsubmit = (event) => {
    event.preventDefault();
    const tag = new FormData(form).get("tag");
    send("tags/many", "POST", JSON.stringify({ set: "train", places, tag })).then(() => { location.href = `${base}tags`; });
  };
  list.replaceChildren(...places.slice(0, LISTED).map((i, rank) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = `${base}train/${i}`;
    link.textContent = `#${i}`;
    item.dataset.row = "";
    item.append(link, ` ${classes[points.labels[i]]}`);
    if (rank < first.length) item.append(` ${scores[rank]}`);
    if (points.labels[i] !== points.predictions[i]) item.append(`, predicted ${classes[points.predictions[i]]}`);
    return item;
  }));
}

function legend(points, by, known) {
  const classes = JSON.parse(page.dataset.classes);
  const place = document.querySelector(".legend");
  const swatch = ([r, g, b]) => {
    const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawn.setAttribute("viewBox", "0 0 2 2");
    drawn.setAttribute("aria-hidden", "true");
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [name, value] of [["cx", 1], ["cy", 1], ["r", 1], ["fill", `rgb(${255 * r} ${255 * g} ${255 * b})`]]) dot.setAttribute(name, value);
    drawn.append(dot);
    return drawn;
  };
  const entries = by === "loss" || by === "doubt"
    ? known ? [[palette[0], `low ${by}`], [palette[1], `high ${by}`]] : [[palette[0], "not known yet: open Suspects first"]]
    : classes.map((name, i) => [palette[i % palette.length], name]);
  place.replaceChildren(...entries.map(([colour, text]) => {
    const item = document.createElement("li");
    item.append(swatch(colour), ` ${text}`);
    return item;
  }));
}

if (page) main();
