// What is told beside the chat: notifications with their sound, and short remarks.
import { icon } from "./icons.js";
import { find, hue, initials, node } from "./nodes.js";
import { looking, show, view } from "./view.js";
import { botName, on, personOf, world } from "./world.js";
import { say } from "./words.js";

const STAYS = 5000;
const STAYS_HERE = 2800;
const shown = new Map();

/** A short remark at the bottom. */
export function toast(text, { bad = false, seconds = 2.6 } = {}) {
    const made = node("div", { class: `toast ${bad ? "bad" : ""}` }, text);
    find("#notices").append(made);
    setTimeout(() => {
        made.classList.add("leaving");
        setTimeout(() => made.remove(), 260);
    }, seconds * 1000);
}

/** Something that was tried and failed. */
export const failed = (error) => toast(say("failed", { why: error.message }), { bad: true, seconds: 5 });

/** What makes a sound in Telegram. One at a time per chat, the newest. */
on("notification", ({ person, chat, text, message }) => {
    const here = looking(person, chat);
    const place = `${person}/${chat}`;
    shown.get(place)?.remove();
    const made = banner(person, chat, text, message);
    made.classList.toggle("here", here);
    shown.set(place, made);
    find("#notices").prepend(made);
    const others = document.querySelectorAll("#notices .notice");
    if (others.length > 3) others[others.length - 1].remove();
    setTimeout(() => leave(made), here ? STAYS_HERE : STAYS);
    if (sound.on) ping();
});

function banner(person, chat, text, message) {
    const group = world.chats.get(chat);
    const title = chat > 0 ? botName(person) : (group?.title ?? "");
    const several = world.people.size > 1 && person !== view.person;
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
        several ? `${title} → ${personOf(person)?.first_name}` : title,
        icon("bell"),
    );
    const said = node("span", { class: "said" }, textOf(text));
    const made = node(
        "button",
        { class: "notice", type: "button", data: { person, chat, message }, on: { click: open } },
        face,
        node("span", { class: "what" }, from, said),
    );
    return made;
}

const textOf = (text) =>
    /^[a-z]+$/u.test(text) && say(`kind_${text}`) !== `kind_${text}` ? say(`kind_${text}`) : text;

function leave(made) {
    made.classList.add("leaving");
    setTimeout(() => made.remove(), 230);
}

// the sound

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
