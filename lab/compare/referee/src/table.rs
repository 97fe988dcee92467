//! Rows, ratios and tables.

use apus_report::findings::{Findings, Part, Section};
use apus_report::result::{Figure, Outcome, Ratio, Row, Table, short};
use apus_report::stats::Spread;
use compare_kit::{Wait, Work};
use serde_json::{Value, json};

use crate::agent;
use crate::course::{Entry, Found};
use crate::memory::{self, Growth};
use crate::options::Options;
use crate::programs::Program;

const TITLE: &str = "And compared with what users would pick instead?";

const LEAD: &str = "Client and server are processes with a core each, over the loopback interface, each peer as its own documentation recommends it \
                    for latency. rtt: one call at a time, whose processes sleep in the kernel or, with spin, poll; rate: 64 calls outstanding; \
                    throughput: requests of 500 kB with short replies, 4 of them outstanding; memory: anonymous memory of the server for each \
                    client, after one call of each; tails: slowdown of requests and their echoes under load between hosts on shaped links.";

/// A figure of one run, if the work has it.
type Of = fn(&Entry<'_>, &Found) -> Option<f64>;

/// The figures of a row, and their names in tables.
pub(crate) const FIGURES: [(&str, &str, Of); 5] = [
    ("p50_us", "p50, µs", |entry, found| entry.is_short().then(|| quantile(found, 0.5))),
    ("p99_us", "p99, µs", |entry, found| entry.is_short().then(|| quantile(found, 0.99))),
    ("krps", "thousand calls a second", |entry, found| {
        matches!(entry.course.work, Work::Rate { .. }).then(|| krps(found))
    }),
    ("gbps", "Gbit/s", |entry, found| {
        let bits = entry.course.work.size() as f64 * 8.0;
        (!entry.is_short()).then(|| krps(found) * bits / 1e6)
    }),
    ("cpu_us_per_call", "processor time of both sides for a call, µs", |entry, found| {
        // A polling process always uses the whole core, regardless of the cost of a call.
        (entry.course.wait == Wait::Block).then(|| cpu_us(found))
    }),
];

fn quantile(found: &Found, share: f64) -> f64 {
    found.measured.latencies.quantile(share) as f64 / 1e3
}

fn krps(found: &Found) -> f64 {
    found.measured.calls as f64 * 1e6 / found.measured.nanos as f64
}

fn cpu_us(found: &Found) -> f64 {
    let of_client = found.measured.cpu as f64 / found.measured.calls as f64;
    let of_server = found.server_cpu as f64 / found.measured.all_calls as f64;
    (of_client + of_server) / 1e3
}

/// Puts the result together.
pub(crate) fn found(
    options: &Options,
    programs: &[Program],
    entries: &[Entry<'_>],
    growths: &[Growth<'_>],
) -> Findings {
    let mut outcome = Outcome::new("compare", options.config());
    let about = programs.iter().map(|program| (program.about.name.clone(), json!(words(program))));
    outcome.config.insert("settings".to_owned(), Value::Object(about.collect()));
    outcome.rows = entries.iter().filter(|entry| !entry.found.is_empty()).map(row).collect();
    outcome.rows.extend(memory::rows(growths));
    outcome.ratios = ratios(entries);
    outcome.ratios.extend(memory::ratios(growths));
    Findings::new(outcome, TITLE, LEAD).with_columns(&[]).with(
        Section::new("")
            .with_all(tables(programs, entries))
            .with_all(memory_table(programs, growths)),
    )
}

/// Appends the settings and ratios.
pub(crate) fn closed(findings: Findings, programs: &[Program]) -> Findings {
    let pairs = programs.iter().map(|program| (program.about.name.clone(), words(program)));
    let ratios = (!findings.outcome.ratios.is_empty()).then_some(Part::Ratios);
    findings
        .with(Section::new("What the peers are").with(Part::Pairs(pairs.collect())).on_page())
        .with(Section::new("Ratios inside each run").with_all(ratios))
}

/// Returns how a peer is set up.
fn words(program: &Program) -> String {
    let about = &program.about;
    let version = program.version.as_ref().map(|version| format!(" {version}: "));
    let version = version.unwrap_or_default();
    let many = agent::own(&about.name)
        .map(|own| format!(". Where there are many clients, and under load: {}", own.settings()));
    let many = many.unwrap_or_default();
    format!("{version}{}. Advice on latency: {}{many}", about.settings, about.advice)
        .trim()
        .to_owned()
}

fn row(entry: &Entry<'_>) -> Row {
    let row =
        Row::new(&entry.program.about.name).with("work", Figure::Detail(json!(entry.course.name)));
    FIGURES.iter().fold(row, |row, (name, _, figure)| {
        row.with_known(name, spread(entry, *figure).map(Figure::Spread))
    })
}

/// Returns a figure over the runs.
fn spread(entry: &Entry<'_>, figure: Of) -> Option<Spread> {
    let values: Option<Vec<f64>> = entry.found.iter().map(|found| figure(entry, found)).collect();
    values.filter(|values| !values.is_empty()).map(|values| Spread::over(&values))
}

/// Returns the table of memory: a line for each peer, a column for each number of clients.
fn memory_table(programs: &[Program], growths: &[Growth<'_>]) -> Option<Table> {
    let mut works: Vec<&str> = memory::cells(growths).map(|(_, work, _)| work).collect();
    works.dedup();
    let line = |program: &Program| {
        let name = &program.about.name[..];
        let cell = |work: &&str| {
            let mut cells = memory::cells(growths);
            let found = cells.find(|(peer, of, _)| peer == &name && of == work);
            found.map(|(_, _, kb)| short(kb)).unwrap_or_default()
        };
        let cells: Vec<String> = works.iter().map(cell).collect();
        let has_any = cells.iter().any(|cell| !cell.is_empty());
        has_any.then(|| [name.to_owned()].into_iter().chain(cells).collect())
    };
    let lines: Vec<Vec<String>> = programs.iter().filter_map(line).collect();
    let header: Vec<String> = [""].iter().chain(&works).map(|it| (*it).to_owned()).collect();
    (!lines.is_empty()).then(|| Table::new(memory::TITLE, header, lines))
}

/// Returns a table for each figure: a line for each peer, a column for each work that has it.
fn tables(programs: &[Program], entries: &[Entry<'_>]) -> Vec<Table> {
    let table = |(_, title, figure): &(&str, &str, Of)| {
        let mut works: Vec<&str> = Vec::new();
        for entry in entries.iter().filter(|entry| spread(entry, *figure).is_some()) {
            if !works.contains(&entry.course.name) {
                works.push(entry.course.name);
            }
        }
        let cell = |peer: &str, work: &str| {
            let is_it = |it: &&Entry<'_>| it.program.about.name == peer && it.course.name == work;
            let found = entries.iter().find(is_it).and_then(|entry| spread(entry, *figure));
            found.map(|spread| short(spread.median)).unwrap_or_default()
        };
        let line = |program: &Program| {
            let peer = &program.about.name;
            let cells = works.iter().map(|work| cell(peer, work));
            [peer.clone()].into_iter().chain(cells).collect()
        };
        let lines: Vec<Vec<String>> = programs.iter().map(line).collect();
        let has_any = |line: &Vec<String>| line[1..].iter().any(|cell| !cell.is_empty());
        let lines: Vec<Vec<String>> = lines.into_iter().filter(has_any).collect();
        let header: Vec<String> = [""].iter().chain(&works).map(|it| (*it).to_owned()).collect();
        (!lines.is_empty()).then(|| Table::new(*title, header, lines))
    };
    FIGURES.iter().filter_map(table).collect()
}

/// Ratios of apus to each peer of the same class in the same work.
fn ratios(entries: &[Entry<'_>]) -> Vec<(String, Ratio)> {
    let mut ratios = Vec::new();
    for entry in entries {
        let is_apus = |it: &&Entry<'_>| {
            it.program.is_beside(entry.program) && it.course.name == entry.course.name
        };
        let Some(apus) = entries.iter().find(is_apus) else { continue };
        let (name, _, figure) = match entry.course.work {
            Work::RoundTrips { .. } => FIGURES[0],
            Work::Rate { .. } => FIGURES[2],
            Work::Throughput { .. } => FIGURES[3],
            Work::Load { .. } => continue,
        };
        let of = |entry: &Entry<'_>| -> Vec<(usize, f64)> {
            let runs = entry.found.iter();
            runs.filter_map(|found| Some((found.run, figure(entry, found)?))).collect()
        };
        let name = name.strip_suffix("_us").unwrap_or(name);
        let [ours, theirs] = [apus, entry].map(|entry| &entry.program.about.name);
        let title = format!("{name} {ours}/{theirs} {}", entry.course.name);
        ratios.extend(Ratio::paired(&of(apus), &of(entry)).map(|ratio| (title, ratio)));
    }
    ratios
}
