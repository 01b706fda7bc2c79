// Menus and dialogs.
import { icon } from "./icons.js";
import { node } from "./dom.js";
import { getText } from "./texts.js";

let open = null;

/** Open a menu. Items: {icon, text, run, danger, tick}, a node, or null for a separator. */
export function menu(at, items, { sheet = true, label = getText("more"), role = "menu" } = {}) {
    close();
    const before = document.activeElement;
    const made = node("div", { class: `menu ${sheet ? "sheet" : ""}`, role, "aria-label": label });
    for (const item of items) made.append(lineOf(item));
    document.body.append(made);
    place(made, at);
    const outside = (event) => {
        if (!made.contains(event.target)) close();
    };
    open = {
        made,
        end() {
            document.removeEventListener("pointerdown", outside, true);
            made.remove();
            if (before?.isConnected) before.focus({ preventScroll: true });
        },
    };
    made.addEventListener("keydown", walk);
    document.addEventListener("pointerdown", outside, true);
    (made.querySelector("button") ?? made).focus({ preventScroll: true });
    return made;
}

export function close() {
    const gone = open;
    open = null;
    gone?.end();
}

function lineOf(item) {
    if (item === null) return node("hr");
    if (item instanceof Node) return item;
    const run = () => {
        close();
        item.run();
    };
    const picture = item.icon ? icon(item.icon) : null;
    const tick = item.tick ? icon("check", "tick") : null;
    return node(
        "button",
        { type: "button", role: "menuitem", class: item.danger ? "danger" : "", on: { click: run } },
        picture,
        item.text,
        tick,
    );
}

function walk(event) {
    const buttons = [...event.currentTarget.querySelectorAll("button")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
        event.preventDefault();
        close();
    } else if (step) {
        event.preventDefault();
        const now = buttons.indexOf(document.activeElement);
        buttons[(now + step + buttons.length) % buttons.length]?.focus();
    }
}

/** Place the menu at a point or below an element, inside the window. */
function place(made, at) {
    const box = at instanceof Element ? at.getBoundingClientRect() : null;
    const [x, y] = box ? [box.right - made.offsetWidth, box.bottom + 4] : at;
    const fitting = (value, size, whole) => Math.max(8, Math.min(value, whole - size - 8));
    made.style.left = `${fitting(box && box.left < innerWidth / 3 ? box.left : x, made.offsetWidth, innerWidth)}px`;
    const above = box && y + made.offsetHeight > innerHeight - 8 ? box.top - made.offsetHeight - 4 : y;
    made.style.top = `${fitting(above, made.offsetHeight, innerHeight)}px`;
}

/** Open a modal dialog with this content; it is removed when it closes. */
export function dialog(content, { extra = "", label } = {}) {
    const made = node("dialog", { class: `card ${extra}`, "aria-label": label }, content);
    document.body.append(made);
    made.addEventListener("close", () => made.remove());
    made.addEventListener("click", (event) => event.target === made && made.close());
    made.showModal();
    return made;
}

/** Ask a question. Choices: {text, value, look}; resolves with the chosen value, or null. */
export function ask({ title, text, choices, cancel = getText("cancel") }) {
    return new Promise((resolve) => {
        let answer = null;
        const button = ({ text: words, value, look = "" }) =>
            node(
                "button",
                {
                    type: "button",
                    class: `wide ${look}`,
                    on: {
                        click: () => {
                            answer = value;
                            made.close();
                        },
                    },
                },
                words,
            );
        const buttons = [...choices.map(button), cancel ? button({ text: cancel, value: null, look: "plain" }) : null];
        const made = dialog(
            [
                title ? node("h3", {}, title) : null,
                text ? node("p", {}, text) : null,
                node("div", { class: "choices" }, buttons),
            ].filter(Boolean),
            { label: title ?? text },
        );
        made.addEventListener("close", () => resolve(answer));
        if (!cancel) made.querySelector("button").focus();
    });
}

/** An alert with an OK button. */
export const alert = (text, title) => ask({ title, text, choices: [{ text: getText("ok"), value: true }], cancel: null });
