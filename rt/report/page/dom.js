// dom.js: elements of the page. Texts are set as text: nothing from a result is ever read as HTML.

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else element.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : document.createTextNode(String(child)));
    return element;
}

export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const s = (name, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

// A table. Columns are {title, number, of: (row) => text}; `number` aligns it right.
export function table(columns, rows, attributes = {}) {
    const cell = (kind, column, text) => h(kind, {class: column.number ? "number" : null, scope: kind === "th" ? "col" : null}, text);
    return h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": attributes.label ?? "Table"},
             h("table", {},
               h("thead", {}, h("tr", {}, columns.map((column) => cell("th", column, column.title)))),
               h("tbody", {}, rows.map((row) => h("tr", {class: row.class ?? null}, columns.map((column) => cell("td", column, column.of(row))))))));
}

// The table behind a picture: made when it is opened, as it may be long.
export function tableBehind(title, columns, rows) {
    const details = h("details", {class: "behind"}, h("summary", {}, title));
    details.addEventListener("toggle", () => {
        if (details.open && details.childElementCount === 1) details.append(table(columns, rows(), {label: title}));
    });
    return details;
}

export function select(label, options, chosen, change) {
    const list = h("select", {onchange: () => change(list.value)},
                   options.map((option) => h("option", {value: option.value, selected: option.value === chosen}, option.title)));
    return h("label", {class: "field"}, h("span", {}, label), list);
}

// A bar that is filled to a share of it.
export const gauge = (share) => s("svg", {class: "gauge", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"},
    s("rect", {class: "track", width: 100, height: 10}), s("rect", {class: "filled", width: (100 * Math.max(0, Math.min(1, share))).toFixed(2), height: 10}));

// How wide a chart is drawn: its texts keep their size on a narrow screen.
export const chartWidth = () => Math.max(340, Math.min(960, document.body.clientWidth - 24));

export const swatch = (name) => h("span", {class: `swatch c-${name}`, "aria-hidden": "true"});

// Calls `act` in the frame after each change of an element's size. In the frame itself it could change sizes again, of which
// browsers complain.
export const onResize = (element, act) => new ResizeObserver(() => requestAnimationFrame(act)).observe(element);

// Calls `draw` now and whenever colours change: another scheme, or paper.
const painters = new Set();
export function paint(draw) {
    painters.add(draw);
    draw();
}
export const forgetPainters = () => painters.clear();
export function repaint() {
    for (const draw of painters) draw();
}
// On paper the page has other sizes and the light colours. It has them before it is laid out for paper: what changes later
// is not laid out well.
for (const [event, paper] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(event, () => {
        document.documentElement.classList.toggle("paper", paper);
        repaint();
    });
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaint);

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
