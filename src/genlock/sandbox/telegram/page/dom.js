// Helpers to build DOM nodes. Text is never parsed as HTML.

/** Create an element. Properties: class, data, style, on (listeners) and attributes; true and false switch an attribute. */
export function node(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) set(made, name, value);
    made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return made;
}

function set(made, name, value) {
    if (value === undefined || value === null || value === false) return;
    if (name === "class") made.className = value;
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) made.style.setProperty(key, one);
    else if (name === "on")
        for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else made.setAttribute(name, value === true ? "" : value);
}

/** A button that calls `run`. */
export const button = (look, run, properties, ...children) =>
    node("button", { type: "button", class: look, on: { click: run }, ...properties }, ...children);

export const find = (selector, within = document) => within.querySelector(selector);

/** A hue between 0 and 360 that depends only on the seed; similar seeds get different hues. */
export function hue(seed) {
    let sum = 7;
    for (const letter of String(seed)) sum = (sum * 31 + letter.codePointAt(0)) % 99991;
    return Math.round(sum * 137.508 + 60) % 360;
}

/** Copy text, also where the clipboard API is refused. */
export async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const area = node("textarea", { class: "sr" });
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
}

/** Initials of a name. */
export function initials(name) {
    const words = name.trim().split(/\s+/u).filter(Boolean);
    return (
        words
            .slice(0, 2)
            .map((word) => [...word][0].toUpperCase())
            .join("") || "?"
    );
}
