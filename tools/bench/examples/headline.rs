//! The headline picture: apus beside other transports in three experiments.
//!
//! Draws what three experiments found out, as they printed it; nothing is measured here. This is how
//! `docs/headline.svg` came about:
//!
//! ```text
//! cargo build --release
//! target/release/apus bench rtt --runs 5 --seconds 1 --json > /tmp/rtt.json
//! target/release/apus bench throughput --runs 5 --seconds 1 --json > /tmp/throughput.json
//! target/release/apus bench rate --runs 5 --seconds 1 --json > /tmp/rate.json
//! cargo run --example headline -- /tmp/rtt.json /tmp/throughput.json /tmp/rate.json > docs/headline.svg
//! ```

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::{env, fs};

use minijinja::value::{Serde, Value as Template};
use minijinja::{AutoEscape, Environment};
use serde::Serialize;
use serde_json::Value;

/// What the template shows.
#[derive(Serialize)]
struct Picture {
    panels: Vec<Panel>,
    /// Rows of the panel that has the most.
    most_rows: usize,
    /// Where and how it was measured, and what a reader has to know before believing it.
    captions: Vec<String>,
}

/// One experiment.
#[derive(Serialize)]
struct Panel {
    title: String,
    unit: String,
    bars: Vec<Bar>,
}

/// One contender. Lengths are parts of the panel's longest, whiskers included.
#[derive(Serialize)]
struct Bar {
    name: String,
    ours: bool,
    median: f64,
    min: f64,
    max: f64,
    label: String,
}

fn main() -> ExitCode {
    let files: Vec<String> = env::args().skip(1).collect();
    match read(&files).and_then(|results| draw(&results)) {
        Ok(svg) => match stdout().write_all(svg.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("write the picture: {error}");
                ExitCode::FAILURE
            }
        },
        Err(problem) => {
            eprintln!("{problem}\nTry: headline rtt.json throughput.json rate.json > headline.svg");
            ExitCode::from(2)
        }
    }
}

fn read(files: &[String]) -> Result<Vec<Value>, String> {
    if files.len() != 3 {
        return Err(format!("{} files were given instead of three", files.len()));
    }
    let result = |file: &String| {
        let text = fs::read_to_string(file).map_err(|error| format!("read {file}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{file} is no result: {error}"))
    };
    files.iter().map(result).collect()
}

fn draw(results: &[Value]) -> Result<String, String> {
    let panels = vec![
        panel(results, "rtt", "p50_us", 1, |size, _| {
            (format!("Round trip of {size}"), "µs · lower is better".to_owned())
        })?,
        panel(results, "throughput", "gbps", 1, |size, _| {
            (format!("Throughput, {size} messages"), "Gbit/s · higher is better".to_owned())
        })?,
        panel(results, "rate", "krps", 0, |size, outstanding| {
            let unit = format!("thousands · {outstanding} outstanding · higher is better");
            (format!("Exchanges of {size} per second"), unit)
        })?,
    ];
    let most_rows = panels.iter().map(|panel| panel.bars.len()).max().unwrap_or(0);
    let picture = Picture { panels, most_rows, captions: captions(results)? };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("headline", include_str!("headline.svg.j2")).expect("a constant");
    let template = environment.get_template("headline").expect("added above");
    let svg = template.render(Template::from(Serde(picture))).expect("every name is a field");
    Ok(svg + "\n")
}

/// `words` makes title and unit of the size and the number outstanding.
fn panel(
    results: &[Value],
    experiment: &str,
    figure: &str,
    decimals: usize,
    words: impl Fn(String, u64) -> (String, String),
) -> Result<Panel, String> {
    let result = results.iter().find(|result| result["experiment"] == experiment);
    let result = result.ok_or_else(|| format!("none of the files is of `bench {experiment}`"))?;
    let lacks = |what: &str| format!("the result of `bench {experiment}` lacks {what}");
    let rows = result["rows"].as_array().ok_or_else(|| lacks("rows"))?;
    let value = |row: &Value, name: &str| row[name].as_f64().ok_or_else(|| lacks(name));
    let [least, greatest] = ["min", "max"].map(|end| format!("{figure}_{end}"));
    let mut longest = f64::MIN_POSITIVE;
    for row in rows {
        longest = longest.max(value(row, &greatest)?);
    }
    let bar = |row: &Value| {
        let name = row["name"].as_str().ok_or_else(|| lacks("a row's name"))?;
        let median = value(row, figure)?;
        Ok(Bar {
            name: name.to_owned(),
            ours: name == "apus",
            median: median / longest,
            min: value(row, &least)? / longest,
            max: value(row, &greatest)? / longest,
            label: format!("{median:.decimals$}"),
        })
    };
    let config = |name: &str| result["config"][name].as_u64().ok_or_else(|| lacks(name));
    let size = match config("size")? {
        size if size >= 1000 && size.is_multiple_of(1000) => format!("{} kB", size / 1000),
        size => format!("{size} B"),
    };
    let (title, unit) = words(size, config("outstanding")?);
    Ok(Panel { title, unit, bars: rows.iter().map(bar).collect::<Result<_, String>>()? })
}

/// What all three have in common, then the notes of each.
fn captions(results: &[Value]) -> Result<Vec<String>, String> {
    let common = |path: &str| {
        let mut values = results.iter().map(|result| result.pointer(path));
        let first = values.next().flatten().ok_or_else(|| format!("a result lacks {path}"))?;
        if !values.all(|value| value == Some(first)) {
            return Err(format!("the results differ in {path}, so they are of no one picture"));
        }
        Ok(first.as_str().map_or_else(|| first.to_string(), str::to_owned))
    };
    let mut captions = vec![format!(
        "apus {} ({}), two processes on one host with {} cpus, Linux {} {}. \
         Medians of {} runs of {} s each; whiskers: least and greatest run.",
        common("/version")?,
        common("/commit")?,
        common("/machine/cpus")?,
        common("/machine/kernel")?,
        common("/machine/arch")?,
        common("/config/runs")?,
        common("/config/seconds")?.trim_end_matches(".0"),
    )];
    for result in results {
        let notes = result["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let experiment = result["experiment"].as_str().unwrap_or_default();
        captions.extend(notes.map(|note| format!("{experiment}: {note}.")));
    }
    Ok(captions)
}
