// Describes an event of the journal: name, fields, outcome, and the job it belongs to.
import { kindOf, nameOf, userOf, state } from "./state.js";
import { getText } from "./texts.js";

const SWALLOWED = new Set(["RESULT_DUPLICATE", "JOB_REPLAYED", "DELIVER_LOCK_SKIP", "LEASE_LOST", "CALLBACK_REFUSED"]);
const BAD = /FAIL|ERROR|REFUSED|CONTRADICTION|UNREADABLE|EXPIRED|ATTENTION|DEAD|UNKNOWN|LOSS/u;
const GOOD = /_OK$|MARK_DELIVERED|LOCK_WIN|NOTICE_SENT|JOB_CREATED|MATCHED|LOCK_ACTIVE/u;
const CODES = {
    "Bad Request": 400,
    Unauthorized: 401,
    Forbidden: 403,
    Conflict: 409,
    "Too Many Requests": 429,
    "Internal Server Error": 500,
};
/** Fields that are not shown; the process is added if there are several. */
const ALWAYS = new Set(["at", "instance", "job", "process"]);

/** Correlation ids by job id, and job ids by the message that shows them. */
const correlations = new Map();
const shownOn = new Map();
const processes = new Set();
let redescribe = () => {};

/** The listener is called when earlier lines can be described better. */
export const onRedescribe = (listener) => (redescribe = listener);

export function described(event) {
    const description = { call: describeCall, update: describeUpdate, log: describeLog }[event.kind](event);
    return { kind: event.kind, at: event.at, look: "", ...description };
}

function describeCall({ call }) {
    const fields = call.arguments ?? {};
    const words = String(fields.text ?? fields.caption ?? fields.action ?? "")
        .replace(/<[^>]*>/gu, "")
        .slice(0, 90);
    const { end, reason } = outcome(call);
    const facts = [call.chat && chatName(call.chat), reason || words].filter(Boolean).join(" · ");
    return { name: call.method, facts, end, job: jobOf(call), details: call };
}

/** The job in the buttons of a call, or the job whose message it edits. */
function jobOf(call) {
    const job = jobIn(call.arguments);
    const message = call.arguments?.message_id ?? call.answer?.message_id;
    const place = `${call.chat}/${message}`;
    if (job && message) shownOn.set(place, job);
    const known = job ?? shownOn.get(place) ?? null;
    return correlations.get(known) ?? known;
}

function outcome(call) {
    const ms = call.seconds < 0.001 ? "<1 ms" : `${Math.round(call.seconds * 1000)} ms`;
    const end = (look, words) => ({ look, text: words ? `${words} · ${ms}` : ms });
    if (call.executed && !call.answered) return { end: end("warn", getText("lost_after")) };
    if (!call.answered) return { end: end("bad", getText("lost_before")) };
    if (call.error) return refused(call.error, end);
    const damaged = call.faults.some((fault) => !fault.startsWith("delay"));
    return { end: damaged ? end("warn", getText("damaged")) : end("good") };
}

function refused(error, end) {
    const [, kind, reason] = /^(?:([^:]+): )?(.*)$/su.exec(error);
    return { end: end(/not modified/u.test(error) ? "" : "bad", CODES[kind] ?? kind ?? error), reason };
}

function describeUpdate({ update }) {
    const kind = Object.keys(update).find((name) => name !== "update_id");
    const what = update[kind];
    const status = what.new_chat_member?.status ?? (what.chat ? kindOf(what) : "");
    const text = what.data ?? what.text ?? what.caption ?? what.invoice_payload ?? status;
    const facts = [nameOf(what.from ?? what.user), text].filter(Boolean).join(" · ");
    return { name: kind, facts, job: `u${update.update_id}`, details: update };
}

function describeLog({ at, line }) {
    if (line === null || typeof line !== "object") return { name: String(line), facts: "", details: line };
    const { event, correlation_id: correlationId, ...facts } = line;
    const job = correlationId || (facts.job === undefined ? null : String(facts.job));
    remember(facts, job);
    const name = String(event || facts.text || facts.message || "event");
    const several = processes.size > 1 && facts.process;
    const shownFields = Object.entries(facts).filter(([key, value]) => !ALWAYS.has(key) && value !== null && value !== "");
    const words = shownFields.map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`);
    const when = typeof facts.at === "number" ? facts.at : at;
    return {
        name,
        job,
        at: when,
        ...classify(name),
        facts: [several, ...words].filter(Boolean).join(" "),
        details: line,
    };
}

function remember(facts, job) {
    const number = facts.job === undefined ? null : String(facts.job);
    const fresh = number && job && correlations.get(number) !== job;
    const another = facts.process && !processes.has(facts.process);
    if (fresh) correlations.set(number, job);
    if (another) processes.add(facts.process);
    if (fresh || (another && processes.size === 2)) redescribe();
}

/** Classify an event by its name. */
function classify(name) {
    if (SWALLOWED.has(name)) return { look: "swallowed", end: { look: "warn", text: getText("swallowed") } };
    if (BAD.test(name)) return { end: { look: "bad", text: "!" } };
    return { end: GOOD.test(name) ? { look: "good", text: "✓" } : null };
}

function jobIn(value) {
    return /(?:again|repeat|change|cancel):([\w-]+)/u.exec(JSON.stringify(value ?? ""))?.[1] ?? null;
}

const chatName = (chat) =>
    chat > 0 ? nameOf(userOf(chat)) || String(chat) : (state.chats.get(chat)?.title ?? String(chat));
