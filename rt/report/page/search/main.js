// main.js: puts the page of a search together: head, list of sections, sections.

import {data, onChoice} from "./data.js";
import {h} from "../dom.js";
import {drawSection, sections} from "../sections.js";
import {searchHead} from "./space.js";

const visible = sections.filter((one) => one.shows());
document.title = `${data.search.path ?? data.store}: kbgen search`;
document.getElementById("head").replaceChildren(...searchHead());
document.getElementById("contents").replaceChildren(h("ul", {}, visible.map((one) => h("li", {}, h("a", {href: `#${one.id}`}, one.title)))));
document.getElementById("sections").replaceChildren(...visible.map((one) => drawSection(one)));
onChoice((what) => what === "point" && document.activeElement?.classList.contains("link") && document.getElementById("point").scrollIntoView());
