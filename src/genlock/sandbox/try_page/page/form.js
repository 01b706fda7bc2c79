// A form made from the JSON Schema of a model's input.

import { Problem } from "./api.js";
import { button, node } from "./dom.js";
import { explain, explainInput, language, text } from "./texts.js";

/** Optional fields that are shown at once; the others are below "More options". */
const SHOWN_OPTIONAL = 3;
const LONG_TEXT = 200;
const ACCEPT = { image: "image/*", video: "video/*", audio: "audio/*,video/ogg" };
let numbers = 0;

export class InputForm {
    /** `upload` sends a file and returns the service's answer; `onChange` is called after every change. */
    constructor(schema, { upload, onChange }) {
        this.upload = upload;
        this.onChange = onChange;
        const required = new Set(schema.required || []);
        this.fields = Object.entries(schema.properties).map(([name, one]) => this.field(name, one, required.has(name)));
        const first = this.fields.filter((one) => one.required);
        const rest = this.fields.filter((one) => !one.required);
        const hidden = rest.slice(SHOWN_OPTIONAL);
        this.element = node(
            "div",
            { class: "fields" },
            [...first, ...rest.slice(0, SHOWN_OPTIONAL)].map((one) => one.element),
            hidden.length
                ? node("details", {}, node("summary", {}, text("more")), node("div", { class: "fields" }, hidden.map((one) => one.element)))
                : null,
        );
    }

    /** The input of the order. Fields that were left alone are not part of it: the service knows its defaults. */
    value() {
        return Object.fromEntries(this.fields.map((one) => [one.name, one.read()]).filter(([, value]) => value !== undefined));
    }

    get isComplete() {
        return this.fields.every((one) => !one.required || one.read() !== undefined) && !this.isBusy;
    }

    get isBusy() {
        return this.fields.some((one) => one.isBusy?.());
    }

    /** Show which fields a problem is about; returns whether there is one. */
    showErrors(problem) {
        const errors = problem?.body?.errors || [];
        for (const one of this.fields) {
            const error = errors.find(({ pointer }) => pointer === `/input/${one.name}` || pointer.startsWith(`/input/${one.name}/`));
            one.setError(error ? explainInput(error) : "");
        }
        return errors.length > 0;
    }

    /** Take over what was filled into a form of the same model, such as one in another language. */
    copy(other) {
        for (const one of this.fields) {
            const known = other.fields.find(({ name }) => name === one.name);
            if (known.take) one.take(known.chosen);
            else if (one.control.type === "checkbox") one.control.checked = known.control.checked;
            else one.control.value = known.control.value;
        }
    }

    field(name, schema, required) {
        const id = `field-${(numbers += 1)}`;
        const made = this.control(id, schema, required);
        const label = schema["x-descriptions"]?.[language] || schema.description || name;
        const error = node("p", { class: "error", id: `${id}-error`, hidden: true });
        const hint = [made.hint, limits(schema)].filter(Boolean).join(", ");
        const head = node("label", { for: id }, label, required ? node("span", { class: "mark" }, ` ${text("required")}`) : null);
        const isCheck = made.control.type === "checkbox";
        const element = node("div", { class: isCheck ? "field check" : "field" }, ...(isCheck ? [made.control, head] : [head, made.control]), made.more, hint ? node("p", { class: "hint" }, hint) : null, error);
        const setError = (message) => {
            error.textContent = message;
            error.hidden = !message;
            made.control.toggleAttribute("aria-invalid", Boolean(message));
            if (message) made.control.setAttribute("aria-describedby", error.id);
        };
        return { name, required, element, setError, ...made, read: () => made.read(setError) };
    }

    control(id, schema, required) {
        if (schema.enum) return this.choice(id, schema, required);
        if (schema["x-file"]) return this.files(id, schema, schema["x-file"], 1);
        if (schema.items?.["x-file"]) return this.files(id, schema, schema.items["x-file"], schema.maxItems || 10);
        if (schema.type === "array") return schema.items.type === "object" ? this.objects(id, schema) : this.lines(id);
        if (schema.type === "boolean") return this.check(id, schema);
        if (schema.type === "integer" || schema.type === "number") return this.number(id, schema);
        return this.words(id, schema);
    }

    changed = () => this.onChange();

    choice(id, schema, required) {
        const isOpen = schema.default === undefined;
        const control = node("select", { id, on: { change: this.changed } }, isOpen ? node("option", { value: "" }, required ? "" : text("not_set")) : null);
        schema.enum.forEach((value, index) => control.append(node("option", { value: index, selected: value === schema.default }, String(value))));
        return { control, read: () => (control.value === "" ? undefined : schema.enum[Number(control.value)]) };
    }

    check(id, schema) {
        const control = node("input", { id, type: "checkbox", checked: Boolean(schema.default), on: { change: this.changed } });
        return { control, read: () => (control.checked === Boolean(schema.default) ? undefined : control.checked) };
    }

    number(id, schema) {
        const step = schema.multipleOf || (schema.type === "integer" ? 1 : "any");
        const { minimum: min, maximum: max } = schema;
        const control = node("input", { id, type: "number", min, max, step, placeholder: schema.default, on: { input: this.changed } });
        return { control, read: () => (control.value === "" ? undefined : Number(control.value)) };
    }

    words(id, schema) {
        const isLong = (schema.maxLength ?? LONG_TEXT + 1) > LONG_TEXT;
        const properties = { id, maxlength: schema.maxLength, on: { input: this.changed }, placeholder: schema.default };
        const control = isLong ? node("textarea", { rows: 3, ...properties }) : node("input", { type: "text", ...properties });
        return { control, read: () => control.value.trim() || undefined };
    }

    lines(id) {
        const control = node("textarea", { id, rows: 3, on: { input: this.changed } });
        const split = () => control.value.split("\n").map((line) => line.trim()).filter(Boolean);
        return { control, hint: text("lines"), read: () => (control.value.trim() ? split() : undefined) };
    }

    objects(id, schema) {
        const control = node("textarea", { id, rows: 4, class: "mono", on: { input: this.changed } });
        const example = JSON.stringify([Object.fromEntries((schema.items.required || ["name"]).map((member) => [member, "…"]))]);
        const read = (setError) => {
            if (!control.value.trim()) return undefined;
            try {
                const value = JSON.parse(control.value);
                if (!Array.isArray(value)) throw new Error();
                setError("");
                return value;
            } catch {
                setError(text("wrong_json"));
                return undefined;
            }
        };
        return { control, hint: text("json", { example }), read };
    }

    /** A file is sent as soon as it is chosen; the input of the order has the id that the service gave it. */
    files(id, schema, kind, most) {
        const chosen = [];
        const list = node("ul", { class: "files" });
        const show = () => list.replaceChildren(...chosen.map((one) => this.fileRow(one, () => (chosen.splice(chosen.indexOf(one), 1), show(), this.changed()))));
        const take = async (file) => {
            const one = { name: file.name, id: null, error: "" };
            chosen.push(one);
            if (chosen.length > most) chosen.shift();
            show();
            try {
                one.id = (await this.upload(file)).id;
            } catch (error) {
                one.error = text("upload_failed", { why: error instanceof Problem ? explain(error) : text("offline") });
            }
            show();
            this.changed();
        };
        const control = node("input", { id, type: "file", accept: ACCEPT[kind], multiple: most > 1 });
        control.addEventListener("change", () => {
            for (const file of [...control.files].slice(0, most)) take(file);
            control.value = "";
        });
        const ids = () => chosen.filter((one) => one.id).map((one) => one.id);
        const isMany = schema.type === "array";
        const read = () => (ids().length ? (isMany ? ids() : ids()[0]) : undefined);
        const takeOver = (others) => (chosen.push(...others), show());
        return { control, more: list, chosen, take: takeOver, read, isBusy: () => chosen.some((one) => !one.id && !one.error), hint: most > 1 ? text("up_to", { n: most }) : "" };
    }

    fileRow(one, remove) {
        const state = one.error ? node("span", { class: "error" }, one.error) : one.id ? null : node("span", { class: "quiet" }, text("uploading"));
        const cross = button("plain", remove, "✕");
        cross.setAttribute("aria-label", text("remove", { name: one.name }));
        return node("li", {}, node("bdi", {}, one.name), state, cross);
    }
}

function limits(schema) {
    const file = schema.items?.["x-file"] ? schema.items : schema;
    if (file["x-max-megabytes"]) return `${text("up_to", { n: file["x-max-megabytes"] })} MB`;
    if (schema.minimum !== undefined && schema.maximum !== undefined) return `${schema.minimum}–${schema.maximum}`;
    return "";
}
