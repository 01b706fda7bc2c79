// The panel beside the chat: journal and fault switches.
import { drawFaults } from "./faults.js";
import { drawKie, kieState, watchKie } from "./kie.js";
import { drawJournal } from "./journal.js";
import { drawProviders, watchProviders } from "./providers.js";
import { clearFault, kie } from "./actions.js";
import { icon, roundButton } from "./icons.js";
import { button, find, node } from "./dom.js";
import { failed } from "./notices.js";
import { on, state } from "./state.js";
import { getText } from "./texts.js";
import "./panel_texts.js";

const TABS = { journal: drawJournal, faults: drawFaults, kie: drawKie, providers: drawProviders };
const listeners = [];
let tab = "journal";

export const onPanel = (listener) => listeners.push(listener);
export const panelOpen = () => find("#app").dataset.panel === "open";

export function startPanel() {
    setOpen(localStorage.getItem("panel") === "open" && innerWidth > 1080);
    addEventListener("keydown", (event) => {
        if (
            event.key === "Escape" &&
            panelOpen() &&
            innerWidth <= 1080 &&
            !document.querySelector("dialog[open], .menu")
        )
            setOpen(false);
    });
}

export function togglePanel() {
    setOpen(!panelOpen());
    localStorage.setItem("panel", panelOpen() ? "open" : "closed");
    if (panelOpen()) find("#panel .tabs [aria-selected=true]").focus({ preventScroll: true });
}

function setOpen(open) {
    find("#app").dataset.panel = open ? "open" : "closed";
    find("#panel").hidden = !open;
    redrawPanel();
    watchKie(open);
    watchProviders(open);
    for (const listener of listeners) listener();
}

export function redrawPanel() {
    if (!panelOpen()) return;
    const panel = find("#panel");
    panel.setAttribute("aria-label", getText("panel"));
    const shut = roundButton("close", getText("panel_close"), togglePanel);
    const body = node("section", { class: "tab", role: "tabpanel" });
    panel.replaceChildren(
        node("header", {}, node("h2", {}, getText("panel")), shut),
        tabs(),
        node("div", { class: "chips" }),
        body,
    );
    TABS[tab](body);
    drawChips();
}

function tabs() {
    const names = ["journal", "faults", ...(state.kie ? ["kie"] : []), ...(state.providers ? ["providers"] : [])];
    if (!names.includes(tab)) tab = "journal";
    const each = names.map((name) => {
        const choose = () => {
            tab = name;
            redrawPanel();
            find(`#panel [data-tab="${name}"]`).focus();
        };
        const marks = { role: "tab", data: { tab: name }, "aria-selected": String(name === tab) };
        return button("", choose, marks, getText(`tab_${name}`), node("span", { class: "badge" }));
    });
    const bar = node("div", { class: "tabs", role: "tablist" }, each);
    bar.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) each[(names.indexOf(tab) + step + names.length) % names.length].click();
    });
    return bar;
}

/** Show all active faults above every tab. */
export function drawChips() {
    const chips = find("#panel .chips");
    if (!chips) return;
    const kieFaults = kieState.faults;
    const telegram = state.faults.map((one) => chip(chipText(one), () => clearFault(one.id)));
    const always = kieFaults.on.map((name) =>
        chip(`Kie: ${getText(`kie_${name}`)}`, () => kie({ off: [name] }).then(kieState.take)),
    );
    const coming = kieFaults.coming
        .flat()
        .map((name) => node("span", { class: "chip" }, `Kie: ${getText(`kie_${name}`)} · ${getText("next_order")}\u00a0`));
    chips.replaceChildren(...telegram, ...always, ...coming);
    const counts = { faults: state.faults.length, kie: kieFaults.on.length + coming.length };
    for (const [name, count] of Object.entries(counts)) {
        const badge = find(`#panel [data-tab="${name}"] .badge`);
        if (badge) badge.textContent = count || "";
    }
}

function chip(text, off) {
    const away = button(
        "",
        () => off().catch(failed),
        { "aria-label": `${getText("switch_off")}: ${text}` },
        icon("close"),
    );
    return node("span", { class: "chip" }, text, away);
}

function chipText({ fault, method, times }) {
    return [getText(`fault_${fault}`), method, times === null ? null : times === 1 ? getText("once") : `${times}×`]
        .filter(Boolean)
        .join(" · ");
}

kieState.changed = drawChips;
on("faults", drawChips);
on("reset", () => {
    redrawPanel();
    watchKie(panelOpen());
    watchProviders(panelOpen());
});
