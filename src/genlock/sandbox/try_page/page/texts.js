// Every text of the page, in English and Russian.

const TEXTS = {
    title: ["Try the API", "Попробуйте API"],
    about: [
        "This page uses nothing but the HTTP API, with a key of its own. Nothing here costs real money.",
        "Эта страница пользуется только HTTP API со своим ключом. Настоящих денег здесь нет.",
    ],
    reference: ["API reference", "Справочник API"],
    balance: ["Balance", "Баланс"],
    held: ["reserved: {n}", "зарезервировано: {n}"],
    model: ["Model", "Модель"],
    search: ["Search models", "Найти модель"],
    category: ["Category", "Категория"],
    all: ["All categories", "Все категории"],
    no_models: ["No models match. Try another word.", "Ничего не нашлось. Попробуйте другое слово."],
    more_models: ["{n} more: type to find them", "Ещё {n}: уточните поиск"],
    change: ["Change", "Другая модель"],
    from: ["from {n}", "от {n}"],
    seconds: ["about {n}\u00a0s", "примерно {n}\u00a0сек"],
    input: ["Your order", "Ваш заказ"],
    choose_first: ["Choose a model first.", "Сначала выберите модель."],
    more: ["More options", "Ещё настройки"],
    required: ["required", "обязательно"],
    not_set: ["not set", "не задано"],
    lines: ["One per line", "По одному в строке"],
    json: ["A JSON list, such as {example}", "Список JSON, например {example}"],
    wrong_json: ["This isn't a JSON list.", "Это не список JSON."],
    up_to: ["up to {n}", "не больше {n}"],
    uploading: ["Uploading…", "Загружаю…"],
    upload_failed: [
        "The file wasn't uploaded: {why} Choose it again, or another one.",
        "Файл не загружен: {why} Выберите его ещё раз или возьмите другой.",
    ],
    remove: ["Remove {name}", "Убрать {name}"],
    price: ["Price: {n}", "Цена: {n}"],
    price_wait: ["Calculating the price…", "Считаю цену…"],
    fill: ["Fill in the required fields to see the price.", "Заполните обязательные поля, и появится цена."],
    short: [
        "Not enough credits: it costs {price}, you have {available}.",
        "Не хватает кредитов: нужно {price}, на балансе {available}.",
    ],
    offline: ["No connection. Trying again…", "Нет связи. Пробую ещё раз…"],
    order: ["Order for {n}", "Заказать за {n}"],
    order_plain: ["Order", "Заказать"],
    orders: ["Your orders", "Ваши заказы"],
    none: ["Nothing here yet. Your first order will appear here.", "Здесь пока пусто. Первый заказ появится здесь."],
    older: ["Older orders", "Более ранние"],
    cancel: ["Cancel", "Отменить"],
    cancel_failed: ["It wasn't cancelled: {why}", "Отменить не получилось: {why}"],
    sending: ["Sending the order…", "Отправляю заказ…"],
    resending: [
        "No answer yet. Sending it again with the same key: it can't be ordered or charged twice.",
        "Ответа пока нет. Отправляю ещё раз с тем же ключом: второй раз ничего не закажется и не спишется.",
    ],
    refused: ["Not ordered: {why}", "Заказ не принят: {why}"],
    nothing_charged: ["Nothing was charged.", "Ничего не списано."],
    queued: ["In the queue", "В очереди"],
    running: ["In progress", "Выполняется"],
    succeeded: ["Done", "Готово"],
    failed: ["Failed", "Не выполнен"],
    canceled: ["Cancelled", "Отменён"],
    expired: ["Took too long", "Модель не уложилась в срок"],
    money_held: ["{n} reserved; charged only when the result is here.", "Зарезервировано {n}; спишется, только когда придёт результат."],
    money_charged: ["{n} charged.", "Списано {n}."],
    money_free: ["Nothing was charged.", "Ничего не списано."],
    money_released: ["Nothing was charged. Back on your balance: {n}.", "Ничего не списано. Вернулось на баланс: {n}."],
    late: ["It came late, so it's free of charge.", "Результат пришёл позже срока, поэтому бесплатно."],
    gone: ["The result was deleted.", "Результат удалён."],
    open: ["Open", "Открыть"],
    progress: ["Progress", "Ход работы"],
    result: ["Result {n}", "Результат {n}"],
    no_key: ["The sandbox has no API key for this page. Restart it.", "У песочницы нет ключа API для этой страницы. Перезапустите её."],
    again: ["Try again", "Попробовать ещё раз"],
};

const CATEGORIES = {
    "text-to-image": ["Draw a picture", "Нарисовать"],
    "image-to-image": ["Edit a photo", "Изменить фото"],
    "text-to-video": ["Make a video", "Снять видео"],
    "image-to-video": ["Animate a photo", "Оживить фото"],
    "video-to-video": ["Edit a video", "Изменить видео"],
    avatar: ["Talking photo", "Говорящее фото"],
    upscale: ["Upscale", "Улучшить"],
    "background-removal": ["Remove background", "Убрать фон"],
    music: ["Music", "Музыка"],
    "text-to-speech": ["Read text aloud", "Озвучить текст"],
    "sound-effects": ["Sound effects", "Создать звук"],
    "speech-to-text": ["Transcribe speech", "Речь в текст"],
    "audio-tools": ["Remove noise", "Убрать шум"],
    "image-analysis": ["Describe a picture", "Описать фото"],
    text: ["Write text", "Написать текст"],
};

// What the codes of problems mean for the one who orders; other codes are shown with the service's own words.
const PROBLEMS = {
    no_credits: ["not enough credits. It costs {price}, you have {available}.", "не хватает кредитов. Нужно {price}, на балансе {available}."],
    spend_limit: ["the key has reached its limit for today. It costs {price}; left today: {available}.", "дневного лимита ключа не хватает. Нужно {price}, сегодня осталось {available}."],
    dearer: ["the price has changed: it's {price} now. Order again if that's fine.", "цена изменилась: теперь {price}. Если подходит, закажите ещё раз."],
    model_unavailable: ["this model is no longer available. Choose another one.", "эта модель больше недоступна. Выберите другую."],
    already_ended: ["the order has already ended.", "заказ уже завершён."],
    too_many_running: ["too many orders are in progress. Wait until one is done.", "слишком много заказов в работе. Дождитесь, пока выполнится хотя бы один."],
    too_many_cancels: ["too many orders were cancelled today, so this one goes on.", "сегодня отменено слишком много заказов, поэтому этот продолжится."],
    too_many_orders: ["too many orders in a short time. Wait a moment and order again.", "слишком много заказов подряд. Подождите немного и закажите ещё раз."],
    too_many_requests: ["too many requests in a short time. Wait a moment.", "слишком много запросов подряд. Подождите немного."],
    too_many_files: ["too many files in a short time. Wait a moment.", "слишком много файлов подряд. Подождите немного."],
    too_large: ["it's larger than 20\u00a0MB.", "он больше 20\u00a0МБ."],
    not_media: ["it isn't a picture, a video or a sound that we know.", "это не картинка, не видео и не звук известного формата."],
    unavailable: ["the service can't answer right now. Try again in a moment.", "сервис сейчас не отвечает. Попробуйте чуть позже."],
    unauthorized: ["the API key is unknown or was revoked.", "ключ API неизвестен или отозван."],
    forbidden: ["the API key may not do this.", "ключу API это не разрешено."],
};

// What the codes of wrong inputs mean, and which limit they break. In English the service's own words say it already.
const INPUT_ERRORS = {
    missing: "Это поле нужно заполнить.",
    type: "Здесь нужно значение другого типа.",
    choice: "Выберите одно из предложенных значений.",
    address: "Нужен файл или ссылка на него, которая начинается с https://",
    combination: "С остальными настройками это не сочетается. Измените одну из них.",
    price: "Для такого сочетания настроек нет цены. Измените одну из них.",
    step: "Число должно идти с шагом {step}.",
    task: "Нужен номер вашего заказа, который уже выполнен.",
    file_unknown: "Этого файла больше нет. Выберите его ещё раз.",
    file_expired: "Этого файла больше нет. Выберите его ещё раз.",
    file_kind: "Здесь нужен файл другого типа.",
    file_length: "Длительность — {given}\u00a0сек, а здесь можно не больше {max}\u00a0сек.",
    length: {
        between: "Нужно от {min} до {max} символов, а сейчас {given}.",
        least: "Слишком коротко: нужно не меньше {min} символов.",
        most: "Слишком длинно: можно не больше {max} символов, а сейчас {given}.",
    },
    range: { between: "Нужно число от {min} до {max}.", least: "Нужно число не меньше {min}.", most: "Нужно число не больше {max}." },
    count: {
        between: "Нужно от {min} до {max}, а сейчас {given}.",
        least: "Нужно не меньше {min}, а сейчас {given}.",
        most: "Можно не больше {max}, а сейчас {given}.",
    },
};

const LANGUAGES = ["en", "ru"];
const KEPT = "genlock-try-language";

export let language = LANGUAGES.find((one) => one === localStorage.getItem(KEPT))
    || (navigator.language.toLowerCase().startsWith("ru") ? "ru" : "en");

export function setLanguage(chosen) {
    language = chosen;
    localStorage.setItem(KEPT, chosen);
    document.documentElement.lang = chosen;
}

const pick = (pair) => pair[LANGUAGES.indexOf(language)];
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

export const text = (name, values = {}) => fill(pick(TEXTS[name]), values);
export const category = (name) => (CATEGORIES[name] ? pick(CATEGORIES[name]) : name);

const CREDITS = {
    en: { one: "credit", other: "credits" },
    ru: { one: "кредит", few: "кредита", many: "кредитов", other: "кредита" },
};
const CREDITS_AFTER_FROM = {
    en: CREDITS.en,
    ru: { one: "кредита", few: "кредитов", many: "кредитов", other: "кредита" },
};

/** A lowest price: Russian has the genitive after "от". */
export const fromCredits = (amount) => text("from", { n: credits(amount, CREDITS_AFTER_FROM) });

/** An amount with its unit in the right form. */
export function credits(amount, words = CREDITS) {
    const number = new Intl.NumberFormat(language, { maximumFractionDigits: 3 }).format(amount);
    const forms = words[language];
    return `${number}\u00a0${forms[new Intl.PluralRules(language).select(amount)]}`;
}

export const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** Why one input was refused. */
export function explainInput(error) {
    const words = language === "en" ? undefined : inputWords(error);
    const numbers = new Intl.NumberFormat(language, { maximumFractionDigits: 3 });
    const given = Object.entries(error).filter(([, value]) => typeof value === "number");
    return words ? fill(words, Object.fromEntries(given.map(([name, value]) => [name, numbers.format(value)]))) : error.detail;
}

function inputWords({ code, min, max }) {
    const words = INPUT_ERRORS[code];
    if (!words || typeof words === "string") return words;
    if (min === undefined && max === undefined) return INPUT_ERRORS.combination; // the limit depends on other inputs
    if (max === undefined) return words.least;
    return min === undefined || (min === 0 && code !== "range") ? words.most : words.between;
}

/** Why something was refused, in words for the one who ordered. */
export function explain(problem) {
    const known = PROBLEMS[problem.code];
    const body = problem.body || {};
    const amounts = Object.fromEntries(["price", "available"].map((name) => [name, credits(body[name] ?? 0)]));
    if (known) return fill(pick(known), amounts);
    const [wrong] = body.errors || [];
    if (wrong?.code && language !== "en") return explainInput(wrong);
    return /[.!?]$/.test(problem.message) ? problem.message : `${problem.message}.`;
}
