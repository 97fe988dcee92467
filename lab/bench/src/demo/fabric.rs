//! Path `fabric`: hosts on shaped links, with fixed settings of the cluster benchmark.

use std::path::Path;

use apus_workload::Rate;

use super::options::DemoOptions;
use super::{LOAD, LONGEST};
use crate::cluster::{self, Link, Venue};
use crate::slowdown::OURS;
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::{Figure, Row, short};
use apus_testbed::error::Error;
use apus_testbed::fabric::{Fabric, Spec};

/// Number of hosts. Chosen by us: the minimum for frequent collisions of several senders at one
/// receiver.
const HOSTS: usize = 4;

/// Rate of each link in Mbit/s. Chosen by us: four hosts at this rate use a quarter of a machine
/// with two cores, so that the links are the bottleneck even if another program occupies one of the
/// cores.
const LINK_MBPS: u64 = 40;

/// The transports.
const TRANSPORTS: [&str; 3] = [OURS, "tcp", "tcp-per-request"];

/// Columns on a terminal.
const COLUMNS: &[&str] = &["short_p50", "short_p99", "short_p99_us", "all_p99", "errors"];

/// Builds the network, measures, removes the network, and reports both steps through `say`.
pub(super) fn run(
    options: &DemoOptions,
    program: &Path,
    say: &dyn Fn(&str),
) -> Result<Findings, Error> {
    let settings = settings(options);
    // Checks that it can be built before the first output and measurement.
    drop(Fabric::up(&spec(&settings))?);
    let built = format!(
        "{HOSTS} hosts and a switch ({} network namespaces) with {HOSTS} links of {LINK_MBPS} Mbit/s, {:.0} % busy",
        HOSTS + 1,
        100.0 * LOAD
    );
    say(&format!("Built on this machine: {built}; built anew for each measurement."));
    let found = cluster::run(&settings, &Venue::Fabric { program: program.to_owned() });
    // Dropping a fabric removes it, also after an error; all of them have been dropped by now.
    say("Taken down again: all of these namespaces, their links, and the processes in them.");
    Ok(arranged(found?))
}

fn link() -> Rate {
    Rate::from_mbps(LINK_MBPS).expect("a positive constant")
}

fn spec(settings: &cluster::ClusterOptions) -> Spec {
    Spec { link: link(), ..settings.fabric.clone() }
}

fn settings(options: &DemoOptions) -> cluster::ClusterOptions {
    let defaults = cluster::ClusterOptions::default();
    let mix = |name: &str| name.parse().expect("a constant name of a transport");
    cluster::ClusterOptions {
        truncate: LONGEST,
        load: LOAD,
        link: Link::Rate(link()),
        transports: TRANSPORTS.iter().map(|name| mix(name)).collect(),
        sealed: options.sealed,
        repetition: options.repetition(&defaults.repetition),
        fabric: Spec { nodes: HOSTS, ..defaults.fabric.clone() },
        ..defaults
    }
}

/// Arranges the findings of a cluster for first-time readers: slowdown by size, with an
/// explanation, on the terminal; everything else on the page.
fn arranged(mut findings: Findings) -> Findings {
    "demo".clone_into(&mut findings.outcome.experiment);
    // Few runs prove little, and confidence intervals do not help first-time readers.
    findings.outcome.comparisons.clear();
    let meaning = meaning(&findings.outcome.rows);
    let mut first = true;
    for section in &mut findings.sections {
        let is_table = section.parts.iter().any(|part| matches!(part, Part::Table(_)));
        section.page_only = !(is_table && first);
        first &= !is_table;
    }
    let place = 1.min(findings.sections.len());
    let meaning = Section::new("What this means").with(Part::Text(meaning));
    findings.sections.insert(place, meaning);
    findings.with_columns(COLUMNS)
}

/// Returns the result in words.
fn meaning(rows: &[Row]) -> String {
    let p99 = |row: &Row| match row.get("short_p99_us") {
        Some(Figure::Spread(spread)) => Some(spread.median),
        _ => None,
    };
    let times = rows
        .iter()
        .filter_map(|row| Some(format!("{} ms over {}", short(p99(row)? / 1e3), row.name)));
    let times: Vec<String> = times.collect();
    format!(
        "The shorter half of the messages shares the links with long ones. Of those short requests, one in a hundred \
         takes longer, reply included, than {}.",
        times.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_in_range() {
        let settings = settings(&DemoOptions::default());
        settings.check().unwrap();
        spec(&settings).check().unwrap();
        assert_eq!(settings.repetition.runs, DemoOptions::default().runs);
    }

    #[test]
    fn the_meaning_is_in_milliseconds() {
        let row = |name: &str, micros: f64| {
            Row::new(name).with("short_p99_us", Figure::over(&[micros], |value| *value))
        };
        let words = meaning(&[row("apus", 900.0), row("tcp", 130_000.0)]);
        assert!(words.ends_with("than 0.900 ms over apus, 130 ms over tcp."), "{words}");
    }
}
