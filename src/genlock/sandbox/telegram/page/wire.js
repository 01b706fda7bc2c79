// Talking to the simulator: what happens there as a stream of events, and the hands as calls.
import { apply, load, world } from "./world.js";

const RETRY = 1000;
let missed = [];
let loading = false;
let online = () => {};

/** Load everything, then follow the events for ever; `told` hears whether there is a connection. */
export async function connect(told) {
    online = told;
    await reload();
    listen();
}

async function reload() {
    loading = true;
    for (;;) {
        try {
            load(await call("GET", "/sim/page"));
            break;
        } catch {
            online(false);
            await new Promise((resolve) => setTimeout(resolve, RETRY));
        }
    }
    loading = false;
    const waiting = missed;
    missed = [];
    waiting.forEach(apply);
}

const KINDS = [
    "message",
    "edit",
    "delete",
    "hide",
    "notification",
    "action",
    "draft",
    "reaction",
    "answer",
    "payment",
    "stars",
    "person",
    "block",
    "chat",
    "profile",
    "update",
    "call",
    "fault",
    "log",
];

function listen() {
    const stream = new EventSource(`/sim/events?after=${world.last}`);
    const heard = (message) => {
        const event = JSON.parse(message.data);
        if (event.number === undefined) greeted(event);
        else if (loading) missed.push(event);
        else apply(event);
    };
    const greeted = (event) => {
        online(true);
        if (event.world !== world.id) again(stream);
    };
    for (const kind of KINDS) stream.addEventListener(kind, heard);
    stream.addEventListener("reset", () => again(stream));
    stream.addEventListener("error", () => {
        online(false);
        if (stream.readyState === EventSource.CLOSED) setTimeout(listen, RETRY);
    });
}

/** Events were missed: begin anew. */
async function again(stream) {
    stream.close();
    await reload();
    listen();
}

/** One call. Raises an Error with the simulator's words. */
export async function call(method, path, body) {
    const form = body instanceof FormData;
    const response = await fetch(path, {
        method,
        headers: body && !form ? { "Content-Type": "application/json" } : {},
        body: body && !form ? JSON.stringify(body) : body,
    });
    const said = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(said.error ?? `${response.status}`);
    return said;
}
