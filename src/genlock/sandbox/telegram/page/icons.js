// Inline SVG icons, so that the page loads nothing from outside.

import { button } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";

const PATHS = {
    attach: "M20 11.5l-8.3 8.3a5.2 5.2 0 0 1-7.4-7.4l8.8-8.8a3.5 3.5 0 0 1 5 5L9.4 17.3a1.7 1.7 0 0 1-2.5-2.5l7.6-7.6",
    back: "M15 5l-7 7 7 7",
    bell: "M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 2h-15zM10 21h4",
    bot: "M5 11a3 3 0 0 1 3-3h8a3 3 0 0 1 3 3v5a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3zM12 8V4.5M9.5 12.5v1.5M14.5 12.5v1.5M3 13v2M21 13v2",
    block: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM5.7 5.7l12.6 12.6",
    broom: "M19 4l-7 8M9 11l5 4.5c-1 3.5-4 5-9 4.5 1-1 1.5-2 1.5-3-1 .5-2 .5-3 0 2.5-1 4-3.5 5.5-6z",
    call: "M7 17L17 7M9 7h8v8",
    check: "M4 12.5l5 5L20 7",
    checks: "M2 12.5l4.5 4.5L15 7.5M11.5 16l1 1L21.5 7.5",
    close: "M6 6l12 12M18 6L6 18",
    copy: "M9 9h10v11H9zM5 15V4h10",
    chart: "M4 20V4M4 20h16M8 16v-5M12 16V8M16 16v-7",
    down: "M6 9.5l6 6 6-6",
    download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
    eraser: "M8 20h12M4.5 14.5L14 5l5.5 5.5L11 19H8z",
    event: "M13 3L5 13.5h6L11 21l8-10.5h-6z",
    forward: "M14 6l6 6-6 6M19.5 12H10c-4 0-6 2.5-6 6",
    gear: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v2.5M12 18.5V21M3 12h2.5M18.5 12H21M5.6 5.6l1.8 1.8M16.6 16.6l1.8 1.8M5.6 18.4l1.8-1.8M16.6 7.4l1.8-1.8",
    group: "M9 11.5a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4zM3 19c0-3 2.7-5 6-5s6 2 6 5M15.5 11.5a2.7 2.7 0 1 0 0-5.4M17 14.3c2.4.4 4 2.2 4 4.7",
    keyboard: "M3 7.5h18v10H3zM7 11v.01M11 11v.01M15 11v.01M8 14.5h8",
    left: "M15 5l-7 7 7 7",
    lines: "M4 7h16M4 12h16M4 17h10",
    link: "M8 16L16.5 7.5M9.5 7h7.5v7.5",
    mic: "M12 4a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V7a3 3 0 0 1 3-3zM6 11.5a6 6 0 0 0 12 0M12 17.5V21M9 21h6",
    moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
    panel: "M4 5h16v14H4zM14.5 5v14M17 9h.5M17 12h.5",
    pencil: "M5 19l.8-4L16.5 4.3a1.9 1.9 0 0 1 2.7 0l.5.5a1.9 1.9 0 0 1 0 2.7L9 18.2 5 19zM14.5 6.5l3 3",
    plus: "M12 5v14M5 12h14",
    reply: "M10 6l-6 6 6 6M4.5 12H14c4 0 6 2.5 6 6",
    right: "M9 5l7 7-7 7",
    send: "M4 12l16-7.5L15.5 20l-3.8-6.2zM20 4.5l-8.3 9.3",
    smile: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8.5 10v.5M15.5 10v.5M8 14.5c2 2.6 6 2.6 8 0",
    sound: "M4 9.5v5h3.5L12 19V5L7.5 9.5zM16 9a4 4 0 0 1 0 6M18.5 6.5a7.5 7.5 0 0 1 0 11",
    trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
    update: "M17 7L7 17M7 9v8h8",
};

const SOLID = {
    dots: "M12 3.7a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6zM12 10.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6zM12 16.7a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
    playing: "M8.5 5.5v13l11-6.5z",
    pause: "M7 5.5h3.5v13H7zM13.5 5.5H17v13h-3.5z",
    stopped: "M7 5.5h3.5v13H7zM13.5 5.5H17v13h-3.5z",
    plane: "M3.4 20.6l18-8.6-18-8.6v6.7l11.5 1.9-11.5 1.9z",
};

export function icon(name, extra = "") {
    const drawing = document.createElementNS(SPACE, "svg");
    drawing.setAttribute("viewBox", "0 0 24 24");
    drawing.setAttribute("aria-hidden", "true");
    drawing.setAttribute("class", `icon ${name in SOLID ? "solid" : ""} ${extra}`);
    drawing.append(shape("path", { d: PATHS[name] ?? SOLID[name] }));
    return drawing;
}

/** A round icon button with a label for screen readers. */
export const roundButton = (picture, label, run, extra = "", properties = {}) =>
    button(`round ${extra}`, run, { "aria-label": label, title: label, ...properties }, icon(picture));

/** The coin of Telegram Stars. */
export function star(extra = "star") {
    const drawing = document.createElementNS(SPACE, "svg");
    drawing.setAttribute("viewBox", "0 0 24 24");
    drawing.setAttribute("aria-hidden", "true");
    drawing.setAttribute("class", extra);
    const outline = "M12 2.2l2.9 6.2 6.7.8-5 4.6 1.4 6.7L12 17.1l-6 3.4 1.4-6.7-5-4.6 6.7-.8z";
    drawing.append(
        shape("path", {
            d: outline,
            fill: "#f6b01e",
            stroke: "#e08d0c",
            "stroke-width": "1",
            "stroke-linejoin": "round",
        }),
        shape("path", { d: "M12 4.6l1.9 4.6 3.1.4-4.3 1.7-4.9 4z", fill: "#ffe08a", opacity: ".85" }),
    );
    return drawing;
}

function shape(tag, attributes) {
    const made = document.createElementNS(SPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
}
