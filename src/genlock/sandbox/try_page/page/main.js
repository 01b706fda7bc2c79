// The page: choose a model, fill in its form, order, watch, see the result.

import { Api, newKey, Outbox, Problem, wait } from "./api.js";
import { button, find, node } from "./dom.js";
import { InputForm } from "./form.js";
import { FINAL, jobCard, pendingCard } from "./orders.js";
import { category, credits, explain, fromCredits, language, sentence, setLanguage, text } from "./texts.js";

const MODELS_SHOWN = 30;
const QUOTE_AFTER_SECONDS = 0.35;
const RECONNECT_SECONDS = 2;
const ONE_COLUMN = "(max-width: 899px)";

const outbox = new Outbox(localStorage, "genlock-try-outbox");
const state = {
    api: null, models: [], titles: new Map(), model: null, form: null, quote: null, quoting: null, jobs: new Map(),
    /** Orders that are being sent, by their keys: what is shown of each. */
    pending: new Map(), cursor: null, balance: null,
};

// Models

function showModels() {
    const wanted = find("#search").value.trim().toLowerCase();
    const kind = find("#category").value;
    const fits = (one) =>
        (!kind || one.category === kind) && `${one.title} ${one.vendor} ${one.id}`.toLowerCase().includes(wanted);
    const found = state.models.filter(fits);
    const rows = found.slice(0, MODELS_SHOWN).map((one) => node("li", {}, modelButton(one)));
    const rest = found.length - rows.length;
    find("#models").replaceChildren(...rows);
    find("#models-note").textContent = found.length ? (rest > 0 ? text("more_models", { n: rest }) : "") : text("no_models");
}

function modelButton(one) {
    const facts = [category(one.category), fromCredits(one.price_from), text("seconds", { n: Math.round(one.expected_seconds) })];
    return button("model", () => choose(one), node("strong", {}, one.title), node("span", { class: "quiet" }, facts.join(" · ")));
}

function choose(model, filled = null) {
    state.model = model;
    state.quote = null;
    find("#picker").hidden = true;
    find("#chosen").hidden = false;
    find("#chosen-title").textContent = model.title;
    const form = new InputForm(model.input_schema, { upload: state.api.upload, onChange: askPrice });
    if (filled) form.copy(filled);
    state.form = form;
    find("#form-slot").replaceChildren(state.form.element);
    askPrice();
}

function changeModel() {
    find("#picker").hidden = false;
    find("#chosen").hidden = true;
    find("#search").focus();
}

// Price

async function askPrice() {
    state.quoting?.abort();
    const asked = (state.quoting = new AbortController());
    state.quote = null;
    state.form.showErrors(null);
    if (!state.form.isComplete) return showPrice(state.form.isBusy ? text("uploading") : text("fill"));
    showPrice(text("price_wait"));
    await wait(QUOTE_AFTER_SECONDS);
    if (asked.signal.aborted) return;
    try {
        const quote = await state.api.quote(state.model.id, state.form.value(), asked.signal);
        if (asked.signal.aborted) return;
        const amounts = { price: credits(quote.price), available: credits(quote.available) };
        state.quote = quote;
        showPrice(quote.sufficient ? text("price", { n: amounts.price }) : text("short", amounts), !quote.sufficient);
    } catch (error) {
        if (asked.signal.aborted) return;
        const isRefusal = error instanceof Problem;
        showPrice(isRefusal ? sentence(explain(error)) : text("offline"), true);
        if (!isRefusal || error.isTemporary) {
            await wait(Math.max(RECONNECT_SECONDS, error.retryAfter || 0));
            if (!asked.signal.aborted) askPrice();
            return;
        }
        state.form.showErrors(error);
    }
}

function showPrice(words, isBad = false) {
    find("#price").textContent = words;
    find("#price").classList.toggle("error", isBad);
    const order = find("#order");
    order.disabled = !state.quote;
    order.textContent = state.quote ? text("order", { n: credits(state.quote.price) }) : text("order_plain");
}

// Orders

function placeOrder(event) {
    event.preventDefault();
    if (!state.quote) return;
    const key = newKey();
    const order = { key, model: state.model.id, input: state.form.value(), max_price: state.quote.price, metadata: { key } };
    outbox.add(order); // before it is sent: whatever happens now, it is sent under this key only
    state.quote = null;
    showPrice(text("sending"));
    if (matchMedia(ONE_COLUMN).matches) find("#orders-title").scrollIntoView({ behavior: "smooth" });
    sendOrder(order).finally(askPrice);
}

async function sendOrder(order) {
    state.pending.set(order.key, { order, state: "sending" });
    showOrders();
    try {
        const onRetry = () => {
            state.pending.get(order.key).state = "resending";
            showOrders();
        };
        const job = await outbox.send(state.api, order, { onRetry });
        state.pending.delete(order.key);
        takeJob(job);
    } catch (problem) {
        state.pending.get(order.key).problem = problem;
        showOrders();
    }
    readBalance();
}

/** Store the state of a job, unless it is outdated: the answer to an order may come after the event of its end. */
function keepJob(job) {
    const known = state.jobs.get(job.id);
    const isOld = known && FINAL.includes(known.status) && !FINAL.includes(job.status);
    if (!isOld) state.jobs.set(job.id, job);
}

function takeJob(job) {
    keepJob(job);
    showOrders();
    if (FINAL.includes(job.status)) readBalance();
}

async function cancel(job) {
    try {
        takeJob(await state.api.cancel(job.id));
        return null;
    } catch (error) {
        return error;
    }
}

/** Show every order, newest first. A card that has not changed stays as it is, so that a video goes on playing. */
function showOrders() {
    const list = find("#orders");
    const known = new Set([...state.jobs.values()].map((job) => job.metadata.key)); // also when the answer was lost
    const cards = [...state.pending.values()].filter((one) => !known.has(one.order.key)).map(pendingOf);
    const jobs = [...state.jobs.values()].sort((one, other) => Date.parse(other.created_at) - Date.parse(one.created_at));
    for (const job of jobs) {
        const version = JSON.stringify([job.status, job.charged, job.late, job.results.length, language]);
        const shown = document.getElementById(job.id);
        if (shown?.dataset.version === version) cards.push(shown);
        else {
            const card = jobCard(job, { titles: state.titles, cancel });
            card.dataset.version = version;
            cards.push(card);
        }
    }
    if (cards.length !== list.children.length || cards.some((card, index) => list.children[index] !== card)) list.replaceChildren(...cards);
    find("#none").hidden = cards.length > 0;
    find("#older").hidden = !state.cursor;
}

const pendingOf = (one) =>
    pendingCard(one.order, {
        ...one,
        titles: state.titles,
        dismiss: () => {
            state.pending.delete(one.order.key);
            showOrders();
        },
    });

async function readJobs(cursor) {
    const page = await state.api.jobs(cursor);
    if (cursor || !state.jobs.size) state.cursor = page.next_cursor;
    page.data.forEach(keepJob);
    showOrders();
}

async function readBalance() {
    try {
        state.balance = await state.api.balance();
    } catch {
        return; // the next change asks again
    }
    showBalance();
}

function showBalance() {
    if (!state.balance) return;
    const { available, held } = state.balance;
    const words = [`${text("balance")}: ${credits(available)}`, held ? text("held", { n: credits(held) }) : ""];
    find("#balance").textContent = words.filter(Boolean).join(" · ");
}

/** Follow all jobs. After a lost connection the list is read again: a job may have ended meanwhile. */
async function follow() {
    for (;;) {
        try {
            await state.api.watch({ onOpen: () => readJobs(null).catch(() => {}), onJob: takeJob });
        } catch {
            find("#connection").hidden = false;
        }
        await wait(RECONNECT_SECONDS);
        find("#connection").hidden = true;
    }
}

// The page itself

function translate() {
    setLanguage(language);
    document.title = `genlock · ${text("title")}`;
    for (const one of document.querySelectorAll("[data-text]")) one.textContent = text(one.dataset.text);
    find("#search").placeholder = text("search");
    const names = [...new Set(state.models.map((one) => one.category))];
    const chosen = find("#category").value;
    find("#category").replaceChildren(
        node("option", { value: "" }, text("all")),
        ...names.map((name) => node("option", { value: name, selected: name === chosen }, category(name))),
    );
    for (const one of document.querySelectorAll("[data-language]")) one.setAttribute("aria-pressed", one.dataset.language === language);
}

function switchLanguage(event) {
    setLanguage(event.currentTarget.dataset.language);
    translate();
    showModels();
    showBalance();
    if (state.model && !find("#chosen").hidden) choose(state.model, state.form);
    showOrders();
}

async function start() {
    translate();
    for (const one of document.querySelectorAll("[data-language]")) one.addEventListener("click", switchLanguage);
    find("#search").addEventListener("input", showModels);
    find("#category").addEventListener("change", showModels);
    find("#change").addEventListener("click", changeModel);
    find("#form").addEventListener("submit", placeOrder);
    find("#older").addEventListener("click", () => readJobs(state.cursor));
    const access = await fetch("/try/key");
    if (!access.ok) return showFatal();
    state.api = new Api((await access.json()).key);
    state.models = (await state.api.models()).data;
    state.titles = new Map(state.models.map((one) => [one.id, one.title]));
    translate();
    showModels();
    showPrice(text("choose_first"));
    for (const order of outbox.all()) sendOrder(order);
    readBalance();
    readJobs(null).catch(() => {}); // it is read again when the connection stands
    follow();
}

function showFatal() {
    find("#connection").hidden = false;
    find("#connection").textContent = text("no_key");
}

start().catch(() => {
    find("#connection").hidden = false;
    setTimeout(() => location.reload(), RECONNECT_SECONDS * 1000);
});
