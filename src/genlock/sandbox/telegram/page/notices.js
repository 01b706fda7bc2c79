// Push notifications with sound, and toasts.
import { icon } from "./icons.js";
import { find, hue, initials, node } from "./dom.js";
import { looking, show, view } from "./view.js";
import { botName, on, userOf, state } from "./state.js";
import { getText } from "./texts.js";

const STAYS = 5000;
const shown = new Map();

/** Show a toast. */
export function toast(text, { bad = false, seconds = 2.6 } = {}) {
    const made = node("div", { class: `toast ${bad ? "bad" : ""}` }, text);
    find("#notices").append(made);
    setTimeout(() => {
        made.classList.add("leaving");
        setTimeout(() => made.remove(), 260);
    }, seconds * 1000);
}

/** Show that an action failed. */
export const failed = (error) => toast(getText("failed", { why: error.message }), { bad: true, seconds: 5 });

/** Show the newest notification of each chat, except of the one that is being read. */
on("notification", ({ person, chat, text, message }) => {
    if (looking(person, chat)) return;
    const place = `${person}/${chat}`;
    shown.get(place)?.remove();
    const made = banner(person, chat, text, message);
    shown.set(place, made);
    find("#notices").prepend(made);
    const others = document.querySelectorAll("#notices .notice");
    if (others.length > 3) others[others.length - 1].remove();
    setTimeout(() => leave(made), STAYS);
    if (sound.on) ping();
});

function banner(person, chat, text, message) {
    const group = state.chats.get(chat);
    const title = chat > 0 ? botName(person) : (group?.title ?? "");
    const several = state.people.size > 1 && person !== view.person;
    const open = () => {
        made.remove();
        show(person, chat);
    };
    const face = node(
        "span",
        { class: chat > 0 ? "avatar bot" : "avatar", style: { "--hue": hue(chat) }, "aria-hidden": "true" },
        chat > 0 ? icon("bot") : initials(title),
    );
    const from = node(
        "span",
        { class: "from" },
        several ? `${title} → ${userOf(person)?.first_name}` : title,
        icon("bell"),
    );
    const answer = node("span", { class: "said" }, textOf(text));
    const made = node(
        "button",
        { class: "notice", type: "button", data: { person, chat, message }, on: { click: open } },
        face,
        node("span", { class: "what" }, from, answer),
    );
    return made;
}

const textOf = (text) =>
    /^[a-z]+$/u.test(text) && getText(`kind_${text}`) !== `kind_${text}` ? getText(`kind_${text}`) : text;

function leave(made) {
    made.classList.add("leaving");
    setTimeout(() => made.remove(), 230);
}

// sound

export const sound = {
    get on() {
        return localStorage.getItem("sound") === "on";
    },
    set on(value) {
        localStorage.setItem("sound", value ? "on" : "off");
        if (value) ping();
    },
};

let audio = null;

function ping() {
    audio ??= new AudioContext();
    const now = audio.currentTime;
    for (const [pitch, start] of [
        [880, 0],
        [1318, 0.09],
    ]) {
        const tone = new OscillatorNode(audio, { frequency: pitch });
        const volume = new GainNode(audio, { gain: 0 });
        volume.gain.setValueAtTime(0, now + start);
        volume.gain.linearRampToValueAtTime(0.12, now + start + 0.015);
        volume.gain.exponentialRampToValueAtTime(0.0001, now + start + 0.35);
        tone.connect(volume).connect(audio.destination);
        tone.start(now + start);
        tone.stop(now + start + 0.4);
    }
}
