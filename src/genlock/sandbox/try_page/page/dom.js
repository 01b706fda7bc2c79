// Helpers to build DOM nodes. Text is never parsed as HTML.

/** Create an element. `on` has listeners, `class` the classes; true and false switch an attribute. */
export function node(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (value === undefined || value === null || value === false) continue;
        if (name === "on") for (const [event, run] of Object.entries(value)) made.addEventListener(event, run);
        else if (name === "class") made.className = value;
        else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return made;
}

export const find = (selector) => document.querySelector(selector);

export const button = (look, run, ...children) =>
    node("button", { type: "button", class: look, on: { click: run } }, ...children);
