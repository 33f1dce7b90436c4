// What pages do beyond links: keys, copying, tags, progress, and what is said when the server is gone.
const base = document.body.dataset.base;
const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

export async function send(path, method, body, kind = "application/json") {
  const headers = { "X-Precedents": "1" };
  if (body !== undefined) headers["Content-Type"] = kind;
  let answer;
  try {
    answer = await fetch(`${base}api/v1/${path}`, { method, headers, body });
  } catch {
    gone(true);
    throw new Error("The explorer does not answer.");
  }
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text ? JSON.parse(text) : null;
}

function gone(is) {
  one("#gone").hidden = !is;
}

// Progress of the explorer's own work, and of each answer that the page waits for.
function seconds(left) {
  if (left === null || left < 1) return "";
  return left < 90 ? `, ${Math.round(left)} s left` : `, ${Math.round(left / 60)} min left`;
}

// Short answers, again and again: a browser has six connections for all pages, which streams of seven would take.
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
export async function follow(number, told, over) {
  const address = `${base}api/v1/jobs/${number}`;
  const left = new AbortController();
  addEventListener("pagehide", () => {
    left.abort();
    fetch(`${address}/left`, { method: "POST", headers: { "X-Precedents": "1" }, keepalive: true }).catch(() => {});
  }, { signal: left.signal });
  for (;;) {
    let job = null;
    try {
      const answer = await fetch(address, { signal: left.signal });
      if (answer.ok) job = await answer.json();
      else if (answer.status === 404) job = { job: number, title: "", state: "done", done: 0, total: 0, left: null, said: "" }; // long ago
    } catch {
      if (left.signal.aborted) return;
    }
    gone(job === null);
    if (job === null) await pause(3000);
    else if (["waiting", "running"].includes(job.state)) {
      told(job);
      await pause(document.hidden ? 1000 : 300);
    } else {
      left.abort();
      over(job);
      return;
    }
  }
}

function progress(job) {
  const line = one("#progress");
  line.hidden = false;
  const count = job.total > 1 ? `: ${job.done.toLocaleString("en")} of ${job.total.toLocaleString("en")}` : "";
  line.textContent = `${job.title}${count}${seconds(job.left)}`;
}

const waits = () => all("[data-waiting]").some((each) => !each.closest("[data-awaits]"));
if (document.body.dataset.job) {
  let last = 0;
  follow(document.body.dataset.job, (job) => {
    progress(job);
    const now = Date.now();
    last ||= now;
    if (waits() && now - last > 4000 && !busy()) location.reload();
  }, (job) => {
    one("#progress").hidden = job.state === "done";
    if (job.state !== "done") one("#progress").textContent = `${job.title}: ${job.said || job.state}`;
    else if (waits() && !busy()) location.reload();
  });
} else if (waits()) {
  setInterval(() => busy() || location.reload(), 4000); // it ended between this page and its work
}
for (const place of all("[data-awaits]")) {
  follow(place.dataset.awaits, document.body.dataset.job ? () => {} : progress, (job) => {
    if (job.state === "done") location.reload();
    else {
      one("#progress").hidden = true;
      place.textContent = job.said || "It was cancelled.";
      place.hidden = false;
    }
  });
}
for (const button of all("[data-cancel]")) {
  button.hidden = false;
  button.addEventListener("click", () => send(`jobs/${button.dataset.cancel}`, "DELETE").catch((error) => alerted(error.message)));
}
function busy() {
  return document.activeElement?.matches("input, textarea, select") || one("dialog[open]");
}

// Copying.
for (const button of all("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = one("code", button.parentElement).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(one("code", button.parentElement));
      button.textContent = "Selected: press Ctrl+C";
    }
  });
}

// Tags.
const named = (text) => {
  const [set, place] = text.split("-");
  return { set, place: Number(place) };
};
async function tagged(change) {
  try {
    await change();
    location.reload();
  } catch (error) {
    alerted(error.message);
  }
}
function alerted(text) {
  const line = one("#gone");
  if (line.hidden) {
    line.textContent = text;
    line.hidden = false;
  }
}
for (const form of all("[data-tag]")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    const label = given.label ? Number(given.label) : null;
    const tag = { ...named(form.dataset.tag), tag: given.tag, note: given.note, label };
    tagged(() => send("tags", "POST", JSON.stringify(tag)));
  });
}
for (const button of all("[data-untag]")) {
  button.hidden = false;
  const tag = { ...named(button.dataset.untag), tag: button.dataset.name };
  button.addEventListener("click", () => tagged(() => send("tags", "DELETE", JSON.stringify(tag))));
}
for (const button of all("[data-undo]")) {
  button.hidden = false;
  button.addEventListener("click", () => tagged(() => send("tags/latest", "DELETE")));
}

// The same instance lights up wherever it is.
function light(event, on) {
  const place = event.target.closest?.("[data-instance]");
  if (!place) return;
  const same = all(`[data-instance="${CSS.escape(place.dataset.instance)}"]`);
  for (const each of same) each.classList.toggle("lit", on && same.length > 1);
}
for (const [name, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
  document.addEventListener(name, (event) => light(event, on));
}

// Keys.
function moved(step) {
  const rows = all("[data-row]").filter((row) => row.offsetParent !== null);
  const here = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[here < 0 ? (step > 0 ? 0 : rows.length - 1) : here + step];
  if (!next) return;
  one("a", next).focus();
  next.scrollIntoView({ block: "nearest" });
}
function metric(number) {
  const place = all("[data-metric]")[number - 1];
  if (!place) return;
  if (place.matches("a")) place.click();
  else {
    if (place.matches("details")) place.open = true;
    place.scrollIntoView({ block: "start" });
    one("a, summary", place)?.focus();
  }
}
function tag() {
  const row = document.activeElement?.closest("[data-instance]");
  const form = one("[data-tag]");
  if (form && !row) one("select", form).focus();
  else if (row) tagged(() => send("tags", "POST", JSON.stringify({ ...named(row.dataset.instance), tag: "look again", note: "", label: null })));
}
const KEYS = {
  j: () => moved(1),
  k: () => moved(-1),
  x: tag,
  "/": () => one("#search")?.focus(),
  "?": () => one("#help").showModal(),
  Backspace: () => history.back(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (one("dialog[open]")) return;
  const act = KEYS[event.key] ?? (/^[1-9]$/.test(event.key) ? () => metric(Number(event.key)) : null);
  if (!act) return;
  event.preventDefault();
  act();
});

// Work of a page that is started by a button, as an audit.
for (const button of all("[data-start]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      const job = await send(button.dataset.start, "POST", button.dataset.body ?? "{}");
      button.disabled = true;
      follow(job.job, progress, (done) => {
        if (done.state === "done") location.reload();
        else one("#progress").textContent = done.said || done.state;
      });
    } catch (error) {
      alerted(error.message);
    }
  });
}

// A case of one's own.
for (const form of all("[data-try]")) {
  form.hidden = false;
  const problem = one(".problem", form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      const job = await asked(form);
      follow(job.job, progress, (done) => {
        if (done.state !== "done") problem.textContent = done.said || "It was cancelled.";
        else location.href = `?id=${job.try}${form.dataset.case ? `&case=${form.dataset.case}` : form.dataset.with ? `&with=${form.dataset.with}` : ""}`;
      });
    } catch (error) {
      problem.textContent = error.message;
    }
  });
}
async function asked(form) {
  const file = one("input[type=file]", form);
  if (file) {
    const [sent] = file.files;
    if (sent) return send("try", "POST", sent, sent.type || "application/octet-stream");
    const sheet = one("canvas", form);
    if (!sheet.dataset.drawn) throw new Error("Draw something, or choose a file.");
    return send("try", "POST", await new Promise((done) => sheet.toBlob(done, "image/png")), "image/png");
  }
  const text = one("textarea", form);
  if (text) return send("try", "POST", JSON.stringify({ text: text.value }));
  const row = Object.fromEntries(all("[data-column]", form).map((field) => [field.dataset.column, field.value]));
  return send("try", "POST", JSON.stringify({ row }));
}

// A sheet that has as many pixels as a picture of the training set: white, or a picture that is there already.
for (const place of all("[data-paint]")) {
  const sheet = one("canvas", place), ink = sheet.getContext("2d");
  const begin = () => {
    delete sheet.dataset.drawn;
    ink.fillStyle = "#fff";
    ink.fillRect(0, 0, sheet.width, sheet.height);
    if (!place.dataset.paint) return;
    const picture = new Image();
    picture.addEventListener("load", () => {
      ink.drawImage(picture, 0, 0, sheet.width, sheet.height);
      sheet.dataset.begun = "1";
    });
    picture.src = base + place.dataset.paint;
  };
  let last = null;
  const at = (event) => {
    const box = sheet.getBoundingClientRect();
    return [((event.clientX - box.left) / box.width) * sheet.width, ((event.clientY - box.top) / box.height) * sheet.height];
  };
  const stroke = (event) => {
    const here = at(event);
    ink.strokeStyle = one("[data-brush]", place).value;
    ink.lineWidth = Math.max(1, Number(one("[data-width]", place).value) * Math.min(sheet.width, sheet.height));
    ink.lineCap = "round";
    ink.beginPath();
    ink.moveTo(...last);
    ink.lineTo(here[0] + 0.01, here[1]);
    ink.stroke();
    last = here;
    sheet.dataset.drawn = "1";
  };
  sheet.addEventListener("pointerdown", (event) => {
    sheet.setPointerCapture(event.pointerId);
    last = at(event);
    stroke(event);
  });
  sheet.addEventListener("pointermove", (event) => { if (last) stroke(event); });
  sheet.addEventListener("pointerup", () => { last = null; });
  one("[data-afresh]", place).addEventListener("click", begin);
  begin();
}
