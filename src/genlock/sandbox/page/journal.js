// The journal: what the bot calls, what it is told, and the events of its jobs, as they happen.
import { icon, roundButton } from "./icons.js";
import { button, find, hue, node } from "./nodes.js";
import { kindOf, nameOf, on, personOf, world } from "./world.js";
import { say } from "./words.js";

const SHOWN = 400;
const NEAR = 60;
const KINDS = ["call", "update", "log"];
const PICTURES = { call: "call", update: "update", log: "event" };
const SWALLOWED = new Set(["RESULT_DUPLICATE", "JOB_REPLAYED", "DELIVER_LOCK_SKIP", "LEASE_LOST", "CALLBACK_REFUSED"]);
const BAD = /FAIL|ERROR|REFUSED|CONTRADICTION|UNREADABLE|EXPIRED|ATTENTION|DEAD|UNKNOWN|LOSS/u;
const GOOD = /_OK$|MARK_DELIVERED|LOCK_WIN|NOTICE_SENT|JOB_CREATED|MATCHED|LOCK_ACTIVE/u;

const sieve = { kinds: new Set(KINDS), text: "", job: null, paused: false, from: 0 };
const jobs = new Map();
let held = 0;
let list = null;

export function drawJournal(body) {
    list = node("div", { class: "journal", role: "log", "aria-label": say("tab_journal"), tabindex: "0" });
    const waiting = button("paused", () => pause(false), { hidden: true });
    body.replaceChildren(searching(), choosing(), waiting, list);
    held = 0;
    fill();
}

function fill() {
    const rows = world.journal
        .filter((event) => event.number > sieve.from)
        .map(described)
        .filter(fits)
        .slice(-SHOWN);
    list.replaceChildren(...rows.map(rowOf));
    if (!rows.length) list.append(node("div", { class: "hint" }, say("journal_empty")));
    list.scrollTop = list.scrollHeight;
}

on("journal", (event) => {
    const one = described(event);
    if (!list?.isConnected || !fits(one)) return;
    if (sieve.paused) {
        held += 1;
        tellPaused();
        return;
    }
    const pinned = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR;
    find(".hint", list)?.remove();
    const row = rowOf(one);
    row.classList.add("fresh");
    list.append(row);
    while (list.childElementCount > SHOWN) list.firstElementChild.remove();
    if (pinned) list.scrollTop = list.scrollHeight;
});

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

/** What is shown of an event: a name, facts, an end, and the job it belongs to. */
function described(event) {
    const told = { call: callWords, update: updateWords, log: logWords }[event.kind](event);
    return { kind: event.kind, at: event.at, look: "", ...told };
}

function callWords({ call }) {
    const said = call.arguments ?? {};
    const text = said.text ?? said.caption ?? said.action ?? said.callback_query_id ?? "";
    const facts = [
        call.chat && chatName(call.chat),
        String(text)
            .replace(/<[^>]*>/gu, "")
            .slice(0, 90),
    ]
        .filter(Boolean)
        .join(" · ");
    return { name: call.method, facts, end: outcome(call), job: jobIn(said), details: call };
}

function outcome(call) {
    const ms = call.seconds < 0.001 ? "<1 ms" : `${Math.round(call.seconds * 1000)} ms`;
    if (call.executed && !call.answered) return { look: "warn", text: `${say("lost_after")} · ${ms}` };
    if (!call.answered) return { look: "bad", text: `${say("lost_before")} · ${ms}` };
    if (call.error)
        return { look: /not modified/u.test(call.error) ? "" : "bad", text: `${call.error.slice(0, 34)} · ${ms}` };
    const spoilt = call.faults.some((fault) => !fault.startsWith("delay"));
    return spoilt ? { look: "warn", text: `${say("spoilt")} · ${ms}` } : { look: "good", text: ms };
}

function updateWords({ update }) {
    const kind = Object.keys(update).find((name) => name !== "update_id");
    const what = update[kind];
    const text =
        what.data ??
        what.text ??
        what.caption ??
        what.invoice_payload ??
        what.new_chat_member?.status ??
        (what.chat ? kindOf(what) : "");
    return {
        name: kind,
        facts: [nameOf(what.from), text].filter(Boolean).join(" · "),
        job: jobIn(what.data),
        details: update,
    };
}

function logWords({ line }) {
    if (line === null || typeof line !== "object") return { name: String(line), facts: "", details: line };
    const { event, correlation, ...facts } = line;
    const job = correlation || (facts.job === undefined ? null : String(facts.job));
    if (facts.job !== undefined && job) jobs.set(String(facts.job), job);
    const name = String(event ?? facts.message ?? "event");
    const told = Object.entries(facts).filter(([key, value]) => value !== null && value !== "" && key !== "job");
    const words = told.map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`);
    return { name, job, ...verdict(name), facts: words.join(" "), details: line };
}

/** How the name of an event is to be taken. */
function verdict(name) {
    if (SWALLOWED.has(name)) return { look: "swallowed", end: { look: "warn", text: say("swallowed") } };
    if (BAD.test(name)) return { end: { look: "bad", text: "!" } };
    return { end: GOOD.test(name) ? { look: "good", text: "✓" } : null };
}

/** The job whose buttons a call carries. */
function jobIn(said) {
    const found = /(?:again|repeat|change|cancel):([\w-]+)/u.exec(JSON.stringify(said ?? ""));
    return found ? (jobs.get(found[1]) ?? found[1]) : null;
}

const chatName = (chat) =>
    chat > 0 ? nameOf(personOf(chat)) || String(chat) : (world.chats.get(chat)?.title ?? String(chat));
const short = (job) => (job.length > 10 ? job.slice(0, 8) : job);

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
    const end = node("span", {}, tag, one.end && node("span", { class: `end ${one.end.look}` }, one.end.text));
    const name = node("span", { class: "name" }, icon(PICTURES[one.kind]), one.name);
    const facts = node("span", { class: "facts" }, one.facts);
    const unfold = () => toggleDetails(made, one.details);
    const head = button("", unfold, { "aria-expanded": "false" }, node("time", {}, stamp), name, end, facts);
    const marks = one.job ? { data: { job: one.job }, style: { "--hue": hue(one.job) } } : {};
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
