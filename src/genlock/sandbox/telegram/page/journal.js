// The journal: what the bot calls, what it is told, and the events of its jobs, as they happen.
import { planner } from "./frames.js";
import { icon, roundButton } from "./icons.js";
import { button, find, hue, node } from "./nodes.js";
import { described, onLearnt } from "./notes.js";
import { on, world } from "./world.js";
import { say } from "./words.js";

const SHOWN = 400;
const NEAR = 60;
const KINDS = ["call", "update", "log"];
const PICTURES = { call: "call", update: "update", log: "event" };

const sieve = { kinds: new Set(KINDS), text: "", job: null, paused: false, from: 0 };
let held = 0;
let list = null;
let stuck = true;
let top = 0;

export function drawJournal(body) {
    list = node("div", { class: "journal", role: "log", "aria-label": say("tab_journal"), tabindex: "0" });
    const waiting = button("paused", () => pause(false), { hidden: true });
    body.replaceChildren(searching(), choosing(), waiting, list);
    list.addEventListener("scroll", scrolled, { passive: true });
    new ResizeObserver(stick).observe(list);
    [held, stuck, top] = [0, true, 0];
    fill();
}

function fill() {
    const offset = list.scrollTop;
    const rows = world.journal
        .filter((event) => event.number > sieve.from)
        .map(described)
        .filter(fits)
        .sort((one, other) => one.at - other.at)
        .slice(-SHOWN);
    list.replaceChildren(...rows.map(rowOf));
    if (!rows.length) list.append(node("div", { class: "hint" }, say("journal_empty")));
    list.scrollTop = offset;
    stick();
}

/** Only who scrolls up leaves the newest line: what changes around the list also tells of scrolling, and late. */
function scrolled() {
    const near = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR;
    if (near) stuck = true;
    else if (list.scrollTop < top - 1) stuck = false;
    top = list.scrollTop;
}

/** Stay at the newest line, whatever changes around it, until somebody scrolls away. */
function stick() {
    if (stuck) list.scrollTop = list.scrollHeight;
}

const planFill = planner(() => list?.isConnected && !sieve.paused && fill());
onLearnt(planFill);

on("journal", (event) => {
    const one = described(event);
    if (!list?.isConnected || !fits(one)) return;
    if (sieve.paused) {
        held += 1;
        tellPaused();
        return;
    }
    find(".hint", list)?.remove();
    const row = rowOf(one);
    row.classList.add("fresh");
    later(one.at).before(row);
    while (list.childElementCount > SHOWN) list.firstElementChild.remove();
    stick();
});

/** The place for something of that time: lines of other processes come a little late. */
function later(at) {
    let place = null;
    for (let row = list.lastElementChild; row && Number(row.dataset.at) > at; row = row.previousElementSibling)
        place = row;
    return place ?? { before: (row) => list.append(row) };
}

// the sieve

function searching() {
    const field = node("input", {
        type: "search",
        placeholder: say("filter"),
        "aria-label": say("filter"),
        value: sieve.text,
    });
    field.addEventListener("input", () => {
        sieve.text = field.value;
        fill();
    });
    const pressed = { "aria-pressed": String(sieve.paused) };
    const stop = roundButton(
        sieve.paused ? "playing" : "pause",
        say("hold"),
        () => pause(!sieve.paused),
        "pause",
        pressed,
    );
    const wipe = () => {
        sieve.from = world.last;
        fill();
    };
    const clear = roundButton("eraser", say("wipe"), wipe);
    return node("div", { class: "sieve" }, field, stop, clear);
}

function choosing() {
    const toggle = (kind) => {
        if (!sieve.kinds.delete(kind)) sieve.kinds.add(kind);
        rechoose();
    };
    const marks = (kind) => ({ data: { kind }, "aria-pressed": String(sieve.kinds.has(kind)) });
    const kinds = KINDS.map((kind) => button("", () => toggle(kind), marks(kind), say(`kinds_${kind}`)));
    const look = { style: { "--hue": hue(sieve.job) }, "aria-label": say("all_jobs"), title: say("all_jobs") };
    const job = sieve.job && button("job", () => onlyJob(null), look, short(sieve.job), " ×");
    return node("div", { class: "kinds" }, kinds, job);
}

function rechoose() {
    find("#panel .kinds").replaceWith(choosing());
    fill();
}

function onlyJob(job) {
    sieve.job = job;
    rechoose();
}

function pause(yes) {
    sieve.paused = yes;
    held = 0;
    const stop = find("#panel .sieve .pause");
    stop.setAttribute("aria-pressed", String(yes));
    stop.replaceChildren(icon(yes ? "playing" : "pause"));
    tellPaused();
    if (!yes) fill();
}

function tellPaused() {
    const waiting = find("#panel .paused");
    waiting.hidden = !sieve.paused;
    waiting.textContent = say("held", { n: held });
}

function fits(one) {
    if (!sieve.kinds.has(one.kind) || (sieve.job && one.job !== sieve.job)) return false;
    const text = sieve.text.trim().toLowerCase();
    return !text || `${one.name} ${one.facts} ${one.end?.text ?? ""} ${one.job ?? ""}`.toLowerCase().includes(text);
}

// one line

const short = (job) => (job.length > 10 ? `…${job.slice(-8)}` : job);

function rowOf(one) {
    const time = new Date(one.at * 1000);
    const stamp = [time.getHours(), time.getMinutes(), time.getSeconds()]
        .map((part) => String(part).padStart(2, "0"))
        .join(":");
    const choose = (event) => {
        event.stopPropagation();
        onlyJob(one.job);
    };
    const tag = one.job && node("span", { class: "jobtag", title: one.job, on: { click: choose } }, short(one.job));
    const end = node(
        "span",
        { class: "marks" },
        tag,
        one.end && node("span", { class: `end ${one.end.look}` }, one.end.text),
    );
    const name = node("span", { class: "name" }, icon(PICTURES[one.kind]), one.name);
    const facts = node("span", { class: "facts" }, one.facts);
    const unfold = () => toggleDetails(made, one.details);
    const head = button("", unfold, { "aria-expanded": "false" }, node("time", {}, stamp), name, end, facts);
    const marks = one.job
        ? { data: { at: one.at, job: one.job }, style: { "--hue": hue(one.job) } }
        : { data: { at: one.at } };
    const made = node("div", { class: `note ${one.kind === "log" ? "event" : one.kind} ${one.look}`, ...marks }, head);
    return made;
}

function toggleDetails(note, details) {
    const open = find(".details", note);
    note.firstChild.setAttribute("aria-expanded", String(!open));
    if (open) return open.remove();
    note.append(node("div", { class: "details" }, node("pre", {}, JSON.stringify(details, null, 2))));
    return note.scrollIntoView({ block: "nearest" });
}
