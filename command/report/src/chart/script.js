/* Interaction with the charts and tables of a page.
 *
 *   chart    point at it, or focus it and press the arrow keys: shows the values of every line there
 *   legend   press an entry: hides or shows its lines; hover over it: fades the others
 *   axis     press the button next to the legend: switches the scale
 *   table    press a heading: sorts by that column, ascending, descending, then in the original order
 *
 * A page is complete without this script: charts are drawn, and titles name their values. The script
 * reads its data from the drawing, and loads, stores and sends nothing.
 */
(() => {
  "use strict";

  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const svg = (like, tag, attributes) => {
    const element = document.createElementNS(like.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  const number = (element, name) => Number(element.getAttribute(name));

  /* ---- Values: one box for the page, next to the pointer. ---- */

  const box = make("div", { className: "tip", hidden: true });
  box.setAttribute("role", "status");
  document.body.append(box);

  /* Shows lines of [class of the swatch, text, whether it is nearest] under a heading. */
  const show = (heading, lines, place) => {
    box.replaceChildren(make("b", { textContent: heading }));
    for (const [look, text, here] of lines) {
      const swatch = make("i", { className: look });
      box.append(make("div", { className: here ? "here" : "" }, swatch, text));
    }
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const margin = 14;
    let left = place.x + margin;
    if (left + width > innerWidth - 4) left = Math.max(4, place.x - margin - width);
    let top = place.y - height - margin;
    if (top < 4) top = Math.min(place.y + margin, innerHeight - height - 4);
    box.style.left = `${left}px`;
    box.style.top = `${top}px`;
  };

  /* ---- Scales: distances on an axis are proportional to differences of these. ---- */

  const stretch = {
    linear: (value) => value,
    logarithmic: (value) => Math.log(Math.max(value, Number.MIN_VALUE)),
    nines: (share) => -Math.log(Math.max(1 - share, Number.EPSILON)),
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.picture = figure.querySelector("svg.chart");
      this.kind = this.picture.dataset.kind;
      this.scales = all("g.scale", this.picture);
      this.parts = all("g[data-name]", this.picture);
      this.marks = all("[data-says]", this.picture);
      this.off = new Set();
      this.current = null;
      for (const title of all("title", this.picture)) title.remove();
      this.legend();
      this.axis();
      this.pointer();
      this.keys();
    }

    /* -- Elements -- */

    name(mark) {
      return mark.parentNode.dataset.name;
    }

    visible() {
      return this.marks.filter((mark) => !this.off.has(this.name(mark)));
    }

    place(mark) {
      if (mark.localName === "circle") return { x: number(mark, "cx"), y: number(mark, "cy") };
      return { x: number(mark, "x") + number(mark, "width") / 2, y: number(mark, "y") };
    }

    /* -- Legend -- */

    legend() {
      for (const entry of all(".legend [data-name]", this.figure)) {
        const name = entry.dataset.name;
        const button = make("button", { type: "button", title: "show or hide" });
        button.dataset.name = name;
        button.setAttribute("aria-pressed", "true");
        button.append(...entry.childNodes);
        entry.replaceWith(button);
        button.addEventListener("click", () => this.toggle(name, button));
        for (const event of ["pointerenter", "focus"])
          button.addEventListener(event, () => this.emphasise(name));
        for (const event of ["pointerleave", "blur"])
          button.addEventListener(event, () => this.emphasise(null));
      }
    }

    toggle(name, button) {
      if (!this.off.delete(name)) this.off.add(name);
      button.setAttribute("aria-pressed", String(!this.off.has(name)));
      for (const part of this.parts) part.classList.toggle("off", this.off.has(part.dataset.name));
      if (this.kind === "stack") this.draw();
      this.emphasise(this.off.has(name) ? null : name);
      this.leave();
    }

    emphasise(name) {
      const others = name !== null && !this.off.has(name);
      for (const part of this.parts)
        part.classList.toggle("dim", others && part.dataset.name !== name);
    }

    /* -- Vertical axis -- */

    axis() {
      if (this.scales.length < 2) return;
      const button = make("button", { type: "button", className: "switch", title: "the other scale" });
      const label = () => {
        const other = this.scales.find((scale) => scale.classList.contains("off"));
        button.textContent = `${other.dataset.scale} axis`;
      };
      button.addEventListener("click", () => {
        for (const scale of this.scales) scale.classList.toggle("off");
        label();
        this.leave();
        this.draw();
      });
      label();
      this.figure.querySelector(".legend").append(button);
    }

    /* Position of a value on the visible scale. */
    height(value) {
      const { scale, first, last } = this.scales.find(
        (each) => !each.classList.contains("off"),
      ).dataset;
      const at = stretch[scale];
      const share = (at(value) - at(Number(first))) / (at(Number(last)) - at(Number(first)));
      const { top, bottom } = this.picture.dataset;
      return Number(bottom) - Math.min(Math.max(share, 0), 1) * (bottom - top);
    }

    /* Moves all elements to their positions. */
    draw() {
      const below = new Map();
      for (const part of this.parts) {
        for (const mark of all("[data-y]", part)) {
          if (mark.localName === "circle") mark.setAttribute("cy", this.height(number(mark, "data-y")));
          else this.drawBar(mark, below);
        }
        for (const whisker of all(".whisker", part)) this.drawWhisker(whisker);
        const line = part.querySelector("polyline");
        if (line) {
          const points = all("circle", part).map((point) => this.place(point));
          line.setAttribute("points", points.map(({ x, y }) => `${x},${y}`).join(" "));
        }
        const label = part.querySelector("text.value");
        if (label) label.setAttribute("y", this.top(part) - 4);
      }
    }

    drawBar(bar, below) {
      const { at, y } = bar.dataset;
      const stack = this.kind === "stack";
      const base = stack ? (below.get(at) ?? 0) : 0;
      const low = stack ? this.height(base) : Number(this.picture.dataset.bottom);
      const high = Math.max(low - this.height(base + Number(y)), 0.5);
      bar.setAttribute("y", low - high);
      bar.setAttribute("height", high);
      if (!this.off.has(this.name(bar))) below.set(at, base + Number(y));
    }

    drawWhisker(whisker) {
      const { x, low, high } = whisker.dataset;
      const [from, to] = [this.height(Number(low)), this.height(Number(high))];
      const left = Number(x) - 4;
      whisker.setAttribute("d", `M${left} ${to}h8M${x} ${to}V${from}M${left} ${from}h8`);
    }

    /* The upper end of a bar with its whisker. */
    top(part) {
      const bar = number(part.querySelector("rect"), "y");
      const whisker = part.querySelector(".whisker");
      return whisker ? Math.min(bar, this.height(Number(whisker.dataset.high))) : bar;
    }

    /* -- Pointing -- */

    pointer() {
      const point = (event) => {
        const matrix = this.picture.getScreenCTM().inverse();
        const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
        const mark = this.nearest(at);
        if (mark) this.enter(mark, { x: event.clientX, y: event.clientY });
      };
      this.picture.addEventListener("pointermove", point);
      this.picture.addEventListener("pointerdown", point);
      this.picture.addEventListener("pointerleave", () => this.leave());
    }

    nearest({ x, y }) {
      /* A pointer next to a bar selects it; between two lines it selects the nearer. */
      const weight = { lines: 1, bars: 0.05, stack: 1 }[this.kind];
      let [best, least] = [null, Infinity];
      for (const mark of this.visible()) {
        const at = this.place(mark);
        let away = Math.abs(at.y - y);
        if (this.kind === "stack") {
          const inside = y - at.y;
          away = Math.max(0, -inside, inside - number(mark, "height")) / 10;
        }
        const distance = Math.hypot(at.x - x, weight * away);
        if (distance < least) [best, least] = [mark, distance];
      }
      return best;
    }

    enter(mark, place) {
      if (this.current !== mark) {
        this.clear();
        this.current = mark;
        const { x } = this.place(mark);
        if (this.kind === "lines") {
          const { top, bottom } = this.picture.dataset;
          this.cross = svg(this.picture, "line", { class: "cross", x1: x, x2: x, y1: top, y2: bottom });
          this.parts[0].before(this.cross);
        }
      }
      const beside = this.visible().filter((each) => each.dataset.at === mark.dataset.at);
      const lines = beside.map((each) => {
        each.classList.add("here");
        const text = `${this.name(each)}: ${each.dataset.says}`;
        return [each.getAttribute("class"), text, each === mark];
      });
      show(mark.dataset.at, lines, place);
    }

    clear() {
      this.current = null;
      this.cross?.remove();
      for (const mark of all(".here", this.picture)) mark.classList.remove("here");
    }

    leave() {
      this.clear();
      box.hidden = true;
    }

    /* -- Keys -- */

    keys() {
      this.picture.setAttribute("tabindex", "0");
      this.picture.addEventListener("focus", () => {
        if (this.picture.matches(":focus-visible")) this.go(this.visible()[0]);
      });
      this.picture.addEventListener("blur", () => this.leave());
      this.picture.addEventListener("keydown", (event) => {
        if (event.key === "Escape") return this.leave();
        const next = this.step(event.key);
        if (next === undefined) return undefined;
        event.preventDefault();
        return this.go(next);
      });
    }

    go(mark) {
      if (!mark) return;
      const { x, y } = this.place(mark);
      const at = new DOMPoint(x, y).matrixTransform(this.picture.getScreenCTM());
      this.enter(mark, at);
    }

    /* The mark that a key selects; undefined if there is none. */
    step(key) {
      const marks = this.visible();
      const here = this.current ?? marks[0];
      if (!here) return undefined;
      const along = (by, same) => {
        const row = marks.filter(same);
        return row[Math.min(Math.max(row.indexOf(here) + by, 0), row.length - 1)];
      };
      const line = (mark) =>
        this.kind === "lines" ? mark.parentNode === here.parentNode : this.name(mark) === this.name(here);
      const column = (mark) => mark.dataset.at === here.dataset.at;
      switch (key) {
        case "ArrowRight": return along(1, line);
        case "ArrowLeft": return along(-1, line);
        case "ArrowDown": return along(1, column);
        case "ArrowUp": return along(-1, column);
        case "Home": return along(-Infinity, line);
        case "End": return along(Infinity, line);
        default: return undefined;
      }
    }
  }

  /* ---- Tables ---- */

  /* The sort key of a cell: its first number, or its text. */
  const key = (cell) => {
    const text = cell.textContent.trim();
    const found = /^[-+]?\d[\d.]*/.exec(text);
    return found ? Number(found[0]) : text;
  };

  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === typeof b) return a.localeCompare(b);
    return typeof a === "number" ? -1 : 1;
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const before = [...body.rows];
    const headings = all("th", table.tHead);
    headings.forEach((heading, column) => {
      const button = make("button", { type: "button" }, ...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const order = next[heading.getAttribute("aria-sort") ?? "none"];
        for (const each of headings) each.removeAttribute("aria-sort");
        const rows = [...before];
        if (order !== "none") {
          heading.setAttribute("aria-sort", order);
          const sign = order === "ascending" ? 1 : -1;
          rows.sort((a, b) => sign * compare(key(a.cells[column]), key(b.cells[column])));
        }
        body.append(...rows);
      });
    });
  };

  const figures = all("figure.plot");
  for (const figure of figures) new Chart(figure);
  const tables = all("table").filter((table) => table.tHead);
  for (const table of tables) sortable(table);

  /* Shows the test of a page that the script has finished. */
  document.documentElement.dataset.charts = figures.length;
  document.documentElement.dataset.tables = tables.length;
})();
