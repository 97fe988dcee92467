//! Situation: a page with charts and a table in a browser, and a reader that uses its controls.

mod browser;

use apus_report::chart::{Axis, Bar, Bars, Chart, Group, Line, Plot, Point, Stroke, short_number};
use apus_report::page;
use apus_report::result::Table;
use serde_json::json;

/// Returns a plot of two contenders at three sizes, with a median and a tail; the second is ten
/// times slower.
fn lines() -> Plot {
    let line = |name: &'static str, colour, stroke, factor: f64| {
        let point = |at: u32| {
            let y = factor * f64::from(at);
            let (at, says) = (format!("up to {at} kB"), format!("{y}"));
            let x = y / factor;
            Point { x, y, range: Some((y / 2.0, y * 2.0)), at: at.into(), says: says.into() }
        };
        Line { name: name.into(), colour, stroke, points: [1, 2, 4].map(point).to_vec() }
    };
    let lines = vec![
        line("ours", 0, Stroke::Faint, 1.0),
        line("ours", 0, Stroke::Plain, 2.0),
        line("theirs <&>", 1, Stroke::Plain, 20.0),
    ];
    let values = [0.5, 1.0, 160.0];
    let x = Axis::linear("size", [4.0].into_iter(), short_number);
    let y = Axis::logarithmic("slowdown", values.into_iter(), short_number);
    let chart = Chart { description: "lines", x, y, lines };
    Plot::of_lines("lines", "Lines", "A caption.", &chart)
}

fn bars(stacked: bool) -> Plot {
    let bar = |(colour, value): (usize, f64)| Bar {
        name: format!("P{colour}"),
        colour,
        stroke: Stroke::Plain,
        value,
        range: (!stacked).then_some((value - 1.0, value + 2.0)),
        says: format!("{value} KB"),
    };
    let group = |label: &str, values: [f64; 3]| Group {
        label: label.to_owned(),
        bars: values.into_iter().enumerate().map(bar).collect(),
    };
    let groups = vec![group("apus", [1.0, 2.0, 3.0]), group("tcp", [10.0, 20.0, 30.0])];
    let y = Axis::linear("KB", [60.0].into_iter(), short_number);
    let bars = Bars { description: "bars", label: "transport", y, groups, stacked };
    Plot::of_bars(if stacked { "stack" } else { "bars" }, "Bars", "A caption.", &bars)
}

fn table() -> Table {
    let line = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
    Table {
        title: "a table".to_owned(),
        header: line(["name", "value"]),
        lines: vec![line(["b", "10.5 (9 – 11)"]), line(["c", "9"]), line(["a", "–"])],
    }
}

fn page() -> String {
    page::of_plots("A title", &[lines(), bars(false), bars(true)], &[table()])
}

/// Script functions of the tests.
const TOOLS: &str = r#"
    const [lines, bars, stack] = document.querySelectorAll("figure.plot");
    const entry = (figure, name) =>
      [...figure.querySelectorAll(".legend button")].find((each) => each.textContent.trim() === name);
    const tip = document.querySelector(".tip");
    const text = () => tip.hidden ? null : [...tip.children].map((each) => each.textContent);
    const bold = () => tip.querySelector("div.here").textContent;
    const mark = (figure, name, at) =>
      [...figure.querySelectorAll(`g[data-name="${name}"] [data-at="${at}"]`)].at(-1);
    const point = (element) => {
      const { left, top, width, height } = element.getBoundingClientRect();
      const [clientX, clientY] = [left + width / 2 + 1, top + height / 2 + 1];
      const svg = element.closest("svg");
      svg.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
    };
    const press = (element, key) =>
      element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const shown = (element) => getComputedStyle(element).display !== "none";
"#;

fn ask(asked: &str) -> Option<serde_json::Value> {
    browser::open(&page(), (3, 1), &format!("{TOOLS}{asked}"))
}

#[test]
fn a_pointer_shows_the_values_of_all_lines_there() {
    let Some(answer) = ask(r#"
        point(mark(lines, "ours", "up to 2 kB"));
        const [there, one] = [text(), bold()];
        const marked = lines.querySelectorAll("circle.here").length;
        lines.querySelector("svg.chart").dispatchEvent(new PointerEvent("pointerleave"));
        return [there, one, marked, text(), lines.querySelectorAll(".here, .cross").length];
    "#) else {
        return;
    };
    let there = ["up to 2 kB", "ours: 2", "ours: 4", "theirs <&>: 40"];
    assert_eq!(answer, json!([there, "ours: 4", 3, null, 0]));
}

#[test]
fn a_pointer_next_to_a_bar_shows_its_values() {
    let Some(answer) = ask(r#"
        point(mark(bars, "P1", "tcp"));
        const beside = [text(), bold()];
        point(mark(stack, "P1", "apus"));
        return [beside, bold()];
    "#) else {
        return;
    };
    let there = ["tcp", "P0: 10 KB", "P1: 20 KB", "P2: 30 KB"];
    assert_eq!(answer, json!([[there, "P1: 20 KB"], "P1: 2 KB"]));
}

#[test]
fn a_legend_hides_and_shows() {
    let Some(answer) = ask(r#"
        const groups = () => [...lines.querySelectorAll("g[data-name]")].map(shown);
        const before = groups();
        const ours = entry(lines, "ours");
        ours.click();
        const hidden = [groups(), ours.getAttribute("aria-pressed")];
        point(mark(lines, "theirs <&>", "up to 2 kB"));
        const there = text();
        ours.click();
        return [before, hidden, there, groups(), ours.getAttribute("aria-pressed")];
    "#) else {
        return;
    };
    let all = [true, true, true];
    let there = ["up to 2 kB", "theirs <&>: 40"];
    assert_eq!(answer, json!([all, [[false, false, true], "false"], there, all, "true"]));
}

#[test]
fn a_stacked_bar_sinks_when_a_bar_below_is_hidden() {
    let Some(answer) = ask(r#"
        const ends = (name) => {
          const bar = mark(stack, name, "tcp");
          const [y, height] = [Number(bar.getAttribute("y")), Number(bar.getAttribute("height"))];
          return [y + height, height].map(Math.round);
        };
        const [first, second] = [ends("P0"), ends("P1")];
        entry(stack, "P0").click();
        const after = ends("P1");
        entry(stack, "P0").click();
        const back = ends("P1");
        return [after[0] === first[0], after[1] === second[1], second[0] < first[0],
                back[0] === second[0]];
    "#) else {
        return;
    };
    assert_eq!(answer, json!([true, true, true, true]));
}

#[test]
fn an_axis_changes_its_scale_and_back() {
    let Some(answer) = ask(r#"
        const places = () => ["up to 1 kB", "up to 2 kB", "up to 4 kB"].map((at) =>
          Math.round(10 * Number(mark(lines, "theirs <&>", at).getAttribute("cy"))) / 10);
        const path = () => lines.querySelector(".whisker").getAttribute("d");
        const button = lines.querySelector(".switch");
        const [label, before, whisker] = [button.textContent, places(), path()];
        button.click();
        const after = places();
        const line = lines.querySelectorAll("polyline[points]")[4].getAttribute("points").split(" ");
        const moved = path() !== whisker;
        const other = button.textContent;
        button.click();
        return {
          label, other, moved,
          logarithmic: Math.abs((before[0] - before[1]) - (before[1] - before[2])) < 0.3,
          linear: Math.abs(2 * (after[0] - after[1]) - (after[1] - after[2])) < 0.3,
          line: line.map((point) => Math.round(10 * point.split(",")[1]) / 10).join() === after.join(),
          back: places().join() === before.join(),
          without: bars.querySelector(".switch"),
        };
    "#) else {
        return;
    };
    let expected = json!({
        "label": "linear axis", "other": "logarithmic axis", "moved": true,
        "logarithmic": true, "linear": true, "line": true, "back": true, "without": null,
    });
    assert_eq!(answer, expected);
}

#[test]
fn a_chart_can_be_read_with_keys_alone() {
    let Some(answer) = ask(r#"
        const chart = lines.querySelector("svg.chart");
        const seen = [chart.tabIndex];
        for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown",
                           "ArrowLeft", "Home"]) {
          press(chart, key);
          seen.push(`${text()[0]}, ${bold()}`);
        }
        press(chart, "Escape");
        seen.push(text());
        return seen;
    "#) else {
        return;
    };
    let expected = json!([
        0,
        "up to 2 kB, ours: 2",
        "up to 4 kB, ours: 4",
        "up to 4 kB, ours: 4",
        "up to 4 kB, ours: 8",
        "up to 4 kB, theirs <&>: 80",
        "up to 2 kB, theirs <&>: 40",
        "up to 1 kB, theirs <&>: 20",
        null,
    ]);
    assert_eq!(answer, expected);
}

#[test]
fn a_table_is_sorted_by_a_column() {
    let Some(answer) = ask(r#"
        const names = () =>
          [...document.querySelectorAll("tbody tr")].map((row) => row.cells[0].textContent).join("");
        const [name, value] = document.querySelectorAll("th button");
        const seen = [names()];
        for (const button of [value, value, value, name]) {
          button.click();
          seen.push([names(), button.parentNode.getAttribute("aria-sort")]);
        }
        return seen;
    "#) else {
        return;
    };
    // Text is sorted after numbers.
    let sorted = ["cba", "ascending"];
    let expected =
        json!(["bca", sorted, ["abc", "descending"], ["bca", null], ["abc", "ascending"]]);
    assert_eq!(answer, expected);
}

/// Without this, the other tests would also pass if errors were never detected.
#[test]
fn a_browser_detects_errors() {
    let Some(browser) = browser::Browser::here() else { return };
    let broken = page().replace("<h1>", "<img src=\"https://192.0.2.1/picture.png\" alt=\"\"><h1>");
    let seen = browser.open(&broken, "");
    assert!(seen.console[0].contains("Content Security Policy"), "{:?}", seen.console);
    let wrong = page().replace("new Chart(figure)", "new Chart(nowhere)");
    let seen = browser.open(&wrong, "");
    assert!(seen.console[0].contains("nowhere is not defined"), "{:?}", seen.console);
    assert_eq!((seen.charts, seen.tables), (0, 0));
}

#[test]
fn a_page_has_the_same_content_without_its_script() {
    let content = browser::content(&page());
    for said in ["A caption.", "theirs &lt;&amp;&gt;", "up to 2 kB: 40", "P1, tcp: 20 KB"] {
        assert!(content.contains(said), "{said} in {content}");
    }
    for away in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "<link"] {
        assert!(!content.contains(away) && !page().contains(away), "{away}");
    }
}
