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
    seconds: ["about {n} s", "около {n} с"],
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
        "The file wasn't uploaded: {why} Choose it again.",
        "Файл не загружен: {why} Выберите его ещё раз.",
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
    money_released: ["Nothing was charged: {n} are back on your balance.", "Ничего не списано: {n} вернулись на баланс."],
    late: ["It came late, so it's free of charge.", "Результат пришёл позже срока, поэтому бесплатно."],
    gone: ["The result was deleted.", "Результат удалён."],
    open: ["Open", "Открыть"],
    progress: ["Progress", "Ход работы"],
    result: ["Result {n}", "Результат {n}"],
    no_key: ["The sandbox has no API key for this page. Restart it.", "У песочницы нет ключа API для этой страницы. Перезапустите её."],
    again: ["Try again", "Попробовать ещё раз"],
};

const CATEGORIES = {
    "text-to-image": ["Text to image", "Нарисовать"],
    "image-to-image": ["Edit an image", "Правка фото"],
    "text-to-video": ["Text to video", "Снять видео"],
    "image-to-video": ["Image to video", "Оживить фото"],
    "video-to-video": ["Edit a video", "Правка видео"],
    avatar: ["Talking avatars", "Аватары"],
    upscale: ["Upscale", "Увеличить"],
    "background-removal": ["Remove background", "Убрать фон"],
    music: ["Music", "Музыка"],
    "text-to-speech": ["Text to speech", "Озвучить текст"],
    "sound-effects": ["Sound effects", "Создать звук"],
    "speech-to-text": ["Speech to text", "Речь в текст"],
    "audio-tools": ["Clean up audio", "Убрать шум"],
    "image-analysis": ["Describe an image", "Анализ картинки"],
};

// What the codes of problems mean for the one who orders; other codes are shown with the service's own words.
const PROBLEMS = {
    no_credits: ["not enough credits. It costs {price}, you have {available}.", "не хватает кредитов. Нужно {price}, на балансе {available}."],
    spend_limit: ["today's limit of the key is used up. It costs {price}, {available} are left today.", "дневной лимит ключа исчерпан. Нужно {price}, сегодня осталось {available}."],
    dearer: ["the price has changed. It's {price} now.", "цена изменилась. Теперь {price}."],
    model_unavailable: ["this model isn't on offer any more. Choose another one.", "эта модель больше не доступна. Выберите другую."],
    already_ended: ["the order has already ended.", "заказ уже завершён."],
    too_many_running: ["too many orders are in progress. Wait until one is done.", "слишком много заказов в работе. Дождитесь одного из них."],
    too_many_cancels: ["too many orders were cancelled today, so this one goes on.", "сегодня отменено слишком много заказов, поэтому этот продолжится."],
    unauthorized: ["the API key is unknown or was revoked.", "ключ API неизвестен или отозван."],
    forbidden: ["the API key may not do this.", "ключу API это не разрешено."],
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

/** An amount with its unit in the right form. */
export function credits(amount) {
    const number = new Intl.NumberFormat(language, { maximumFractionDigits: 3 }).format(amount);
    const forms = {
        en: { one: "credit", other: "credits" },
        ru: { one: "кредит", few: "кредита", many: "кредитов", other: "кредита" },
    }[language];
    return `${number} ${forms[new Intl.PluralRules(language).select(amount)]}`;
}

/** Why something was refused, in words for the one who ordered. */
export function explain(problem) {
    const known = PROBLEMS[problem.code];
    const body = problem.body || {};
    const amounts = Object.fromEntries(["price", "available"].map((name) => [name, credits(body[name] ?? 0)]));
    return known ? fill(pick(known), amounts) : problem.message;
}
