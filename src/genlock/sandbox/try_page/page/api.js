// A client of the HTTP API in a browser. Nothing here knows the page: take it as an example for your own.

export class Problem extends Error {
    /** What the service answered instead of a result: a problem document (RFC 9457). */
    constructor(status, body, retryAfter) {
        super(body.detail || `HTTP ${status}`);
        this.status = status;
        this.code = body.code || "";
        this.body = body;
        this.retryAfter = retryAfter;
    }

    /** Whether the same request may succeed later. Every other problem means: nothing was ordered. */
    get isTemporary() {
        return this.status === 429 || this.status >= 500;
    }
}

export class Api {
    constructor(key) {
        this.key = key;
    }

    async request(method, path, { body, headers = {}, signal } = {}) {
        const isFile = body instanceof Blob;
        const answer = await fetch(path, {
            method,
            signal,
            headers: {
                Authorization: `Bearer ${this.key}`,
                ...(body === undefined || isFile ? {} : { "Content-Type": "application/json" }),
                ...headers,
            },
            body: body === undefined || isFile ? body : JSON.stringify(body),
        });
        if (answer.ok) return answer;
        const problem = await answer.json().catch(() => ({}));
        throw new Problem(answer.status, problem, Number(answer.headers.get("Retry-After")) || 0);
    }

    async json(method, path, options) {
        return (await this.request(method, path, options)).json();
    }

    models = () => this.json("GET", "/v1/models");
    balance = () => this.json("GET", "/v1/balance");
    quote = (model, input, signal) => this.json("POST", "/v1/quote", { body: { model, input }, signal });
    upload = (file) => this.json("POST", "/v1/files", { body: file });
    cancel = (job) => this.json("POST", `/v1/jobs/${job}/cancel`);
    jobs = (cursor, limit = 10) =>
        this.json("GET", `/v1/jobs?limit=${limit}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);

    /** Place an order. Repeating it with the same key returns the same job, and charges nothing again. */
    order = ({ key, ...body }) => this.json("POST", "/v1/jobs", { body, headers: { "Idempotency-Key": key } });

    /** Call `onJob` with every change of the account's jobs, until the connection ends. */
    async watch({ onOpen, onJob, signal }) {
        const answer = await this.request("GET", "/v1/events", { signal });
        onOpen();
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ""; ; ) {
            const { done, value } = await reader.read();
            if (done) return;
            const events = (text + value).split("\n\n");
            text = events.pop();
            for (const event of events) {
                const data = event.split("\n").find((line) => line.startsWith("data: "));
                if (event.startsWith("event: job") && data) onJob(JSON.parse(data.slice(6)));
            }
        }
    }
}

/** Orders that were sent and not answered. They outlive a reload: a lost answer never leads to a second order. */
export class Outbox {
    constructor(storage, name) {
        this.storage = storage;
        this.name = name;
    }

    all() {
        try {
            return JSON.parse(this.storage.getItem(this.name)) || [];
        } catch {
            return [];
        }
    }

    add(order) {
        this.storage.setItem(this.name, JSON.stringify([...this.all(), order]));
    }

    remove(key) {
        this.storage.setItem(this.name, JSON.stringify(this.all().filter((order) => order.key !== key)));
    }

    /** Send an order until there is an answer: a job, or a Problem that says that nothing was ordered. */
    async send(api, order, { onRetry = () => {}, sleep = wait } = {}) {
        for (let attempt = 0; ; attempt += 1) {
            try {
                const job = await api.order(order);
                this.remove(order.key);
                return job;
            } catch (error) {
                if (error instanceof Problem && !error.isTemporary) {
                    this.remove(order.key);
                    throw error;
                }
                onRetry(error);
                await sleep(Math.max(error.retryAfter || 0, Math.min(30, 2 ** attempt)));
            }
        }
    }
}

export const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

export function newKey() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
