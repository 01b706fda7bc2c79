// Theme, page language and sound: stored in localStorage and shared by all tabs.
import { menu } from "./layers.js";
import { button, find, node } from "./dom.js";
import { sound } from "./notices.js";
import { NAMES, language, getText, setLanguage } from "./texts.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const THEMES = ["system", "light", "dark"];
let redraw = () => {};

const theme = () => localStorage.getItem("theme") ?? "system";
const chosenLanguage = () => localStorage.getItem("language") ?? (navigator.language.startsWith("ru") ? "ru" : "en");

/** `changed` redraws the whole page after the language changed. */
export function startAppearance(changed) {
    redraw = changed;
    paint();
    setLanguage(chosenLanguage());
    system.addEventListener("change", paint);
    addEventListener("storage", (event) => {
        if (event.key === "theme") paint();
        if (event.key === "language") changeLanguage(chosenLanguage());
    });
}

function paint() {
    const dark = theme() === "dark" || (theme() === "system" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    find('meta[name="theme-color"]').content = dark ? "#17212b" : "#ffffff";
}

function changeLanguage(code) {
    setLanguage(code);
    redraw();
}

export function openSettings(at) {
    const setTheme = (value) => {
        localStorage.setItem("theme", value);
        paint();
    };
    const setSpoken = (value) => {
        localStorage.setItem("language", value);
        changeLanguage(value);
        openSettings(find('[data-key="settings"]'));
    };
    const setSound = (value) => (sound.on = value === "on");
    menu(
        at,
        [
            setting(
                "theme",
                THEMES.map((value) => [value, getText(`theme_${value}`)]),
                theme(),
                setTheme,
            ),
            setting("language", Object.entries(NAMES), language(), setSpoken),
            setting(
                "sound",
                ["off", "on"].map((value) => [value, getText(value)]),
                sound.on ? "on" : "off",
                setSound,
            ),
        ],
        { label: getText("settings"), role: "dialog" },
    );
}

function setting(name, options, now, choose) {
    const buttons = options.map(([value, text]) => {
        const pick = () => {
            for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.value === value));
            choose(value);
        };
        return button("", pick, { data: { value, setting: name }, "aria-pressed": String(value === now) }, text);
    });
    return node(
        "div",
        { class: "setting", role: "group", "aria-label": getText(name) },
        getText(name),
        node("div", { class: "pick" }, buttons),
    );
}
