// Connection to the simulator: an event stream for its state, and HTTP calls for actions.
import { apply, load, state } from "./state.js";
import { getText } from "./texts.js";

const RETRY = 1000;
let missed = [];
let loading = false;
let online = () => {};

/** Load the state, then follow the events. `onStatus` is called with whether there is a connection. */
export async function connect(onStatus) {
    online = onStatus;
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
    const stream = new EventSource(`/sim/events?after=${state.last}`);
    const onEvent = (message) => {
        const event = JSON.parse(message.data);
        if (event.number === undefined) onHello(event);
        else if (loading) missed.push(event);
        else apply(event);
    };
    const onHello = (event) => {
        online(true);
        if (event.world !== state.id) reconnect(stream);
    };
    for (const kind of KINDS) stream.addEventListener(kind, onEvent);
    stream.addEventListener("reset", () => reconnect(stream));
    stream.addEventListener("error", () => {
        online(false);
        if (stream.readyState === EventSource.CLOSED) setTimeout(listen, RETRY);
    });
}

/** Events were missed: load the state again. */
async function reconnect(stream) {
    stream.close();
    await reload();
    listen();
}

/** Make one call. Throws an Error with the simulator's message, or that there is no connection. */
export async function call(method, path, body) {
    const form = body instanceof FormData;
    const response = await fetch(path, {
        method,
        headers: body && !form ? { "Content-Type": "application/json" } : {},
        body: body && !form ? JSON.stringify(body) : body,
    }).catch(() => {
        throw new Error(getText("no_connection"));
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error ?? `${response.status}`);
    return answer;
}
