//! The result of a soak: a row for each transport, tables of faults and processes, and the promises that were broken.

use std::io;

use serde_json::{Value, json};

use super::audit::{Audit, Recovery};
use super::campaign::{Incident, RECOVERY_LIMIT, Record, Watched};
use super::ledger::Ledger;
use super::options::Options;
use super::transport::Transport;
use super::trend::{Sample, Trend};
use apus_report::experiment::config;
use apus_report::findings::{Findings, Section};
use apus_report::result::{Figure, Outcome, Row, Table, rounded, short};
use apus_report::stats::Spread;
use apus_testbed::error::{Doing, Error};

/// Wanted time from the end of a fault, and from when plain UDP passes, until the next answer.
const WANTED_MS: f64 = 1_000.0;

/// What is watched of a process: the name in JSON, and the unit.
const MEASURES: [(&str, &str); 3] = [
    ("anonymous_kb", "kB of memory"),
    ("allocated_kb", "kB that it has allocated"),
    ("descriptors", "descriptors"),
];

/// A trend for each of the [`MEASURES`]; `None` if there are too few values.
type Trends = [Option<Trend>; MEASURES.len()];

/// What was found about one transport.
struct Found<'a> {
    record: &'a Record,
    audit: Audit,
    /// Each fault and its recovery.
    recoveries: Vec<(&'a Incident, Recovery)>,
    /// The watched processes, and their [`MEASURES`].
    trends: Vec<(&'a Watched, Trends)>,
}

/// Returns the findings.
pub(super) fn findings(
    options: &Options,
    records: &[Record],
    left_out: Vec<String>,
    interrupted: bool,
) -> Result<Findings, Error> {
    let found: Vec<Found<'_>> = records.iter().map(Found::of).collect::<Result<_, _>>()?;
    let mut outcome = Outcome::new("soak", config(options));
    outcome.rows = found.iter().map(Found::row).collect();
    let broken: Vec<String> = found.iter().flat_map(Found::broken).collect();
    let mut sentences = vec![match broken.len() {
        0 => "No promise was broken.".to_owned(),
        number => format!("{number} promises were broken:"),
    }];
    sentences.extend(broken.iter().cloned());
    outcome.members.insert("broken".to_owned(), json!(broken));
    outcome.members.insert("left_out".to_owned(), json!(left_out));
    outcome.notes.extend(left_out.into_iter().map(|each| format!("left out: {each}")));
    outcome.notes.extend(found.iter().flat_map(Found::notes));
    if interrupted {
        outcome.notes.push("interrupted: this is what ran until then".to_owned());
    }
    let lead = "Clients and servers as processes, while they are killed, paused and restarted, and their links, addresses and disks fail.";
    let faults = found.iter().flat_map(Found::fault_lines).collect();
    let header = ["fault", "times", "plain UDP ms, longest", "recovery ms, median", "longest"];
    let title =
        "From the end of a fault until plain UDP passes, and from then on until the next answer";
    let faults = Table::new(title, header, faults);
    let grown = found.iter().flat_map(Found::process_lines).collect();
    let header = [
        "process",
        "anon. kB",
        "kB/min",
        "noise",
        "allocated kB",
        "kB/min",
        "noise",
        "descriptors",
        "per min",
        "noise",
    ];
    let grown =
        Table::new("Memory and descriptors of processes that are never killed", header, grown);
    Ok(Findings::new(outcome, "Does every promise hold while everything fails?", lead)
        .with_columns(&[
            "calls",
            "answered",
            "failed",
            "wrong_bytes",
            "never_ended",
            "executed_twice",
            "untrue",
            "faults",
            "recovery_ms",
        ])
        .with(Section::new("Faults").with(faults))
        .with(Section::new("Growth").with(grown))
        .with_all(Vec::new(), sentences, []))
}

impl<'a> Found<'a> {
    fn of(record: &'a Record) -> Result<Self, Error> {
        let doing = || "read the ledger".to_owned();
        let audit = Audit::of(record).doing(doing)?;
        let recovery = |incident: &'a Incident| {
            Ok((incident, Recovery::of(&record.ledger, incident).doing(doing)?))
        };
        let recoveries = record.incidents.iter().map(recovery).collect::<Result<_, Error>>()?;
        let trends = |watched| Ok((watched, trends(&record.ledger, watched).doing(doing)?));
        let trends = record.watched.iter().map(trends).collect::<Result<_, Error>>()?;
        Ok(Self { record, audit, recoveries, trends })
    }

    fn name(&self) -> &'static str {
        self.record.transport.name()
    }

    fn never_ended(&self) -> u64 {
        self.record.reports.iter().map(|report| report.never_ended).sum()
    }

    fn row(&self) -> Row {
        let audit = &self.audit;
        let milliseconds: Vec<f64> =
            self.recoveries.iter().filter_map(|(_, recovery)| recovery.ms).map(rounded).collect();
        let recovery =
            (!milliseconds.is_empty()).then(|| Figure::Spread(Spread::over(&milliseconds)));
        let traces: u64 = self.record.reports.iter().map(|report| report.traces).sum();
        let slow = milliseconds.iter().filter(|time| **time > WANTED_MS).count() as u64;
        Row::new(self.name())
            .with("calls", Figure::Count(audit.ended + self.never_ended()))
            .with("answered", Figure::Count(audit.answered))
            .with("failed", Figure::Count(audit.failed.values().sum()))
            .with("wrong_bytes", Figure::Count(audit.wrong_bytes))
            .with("never_ended", Figure::Count(self.never_ended()))
            .with("executed_twice", Figure::Count(audit.executed_twice))
            .with("executed_in_two_lives", Figure::Count(audit.executed_in_two_lives))
            .with("untrue", Figure::Count(audit.untrue))
            .with("faults", Figure::Count(self.recoveries.len() as u64))
            .with_known("recovery_ms", recovery)
            .with("slow_recoveries", Figure::Count(slow))
            .with("traces_written", Figure::Count(traces))
            .with("seconds", Figure::Detail(json!(rounded(self.record.seconds))))
            .with("failed_by_kind", Figure::Detail(json!(audit.failed)))
            .with("incidents", Figure::Detail(self.incidents()))
            .with("processes", Figure::Detail(self.processes()))
    }

    fn incidents(&self) -> Value {
        let incident = |(incident, recovery): &(&Incident, Recovery)| {
            json!({
                "fault": incident.fault.name(),
                "victim": incident.victim,
                "began_s": rounded(incident.began),
                "network_ms": rounded(recovery.network_ms),
                "recovery_ms": recovery.ms.map(rounded),
            })
        };
        self.recoveries.iter().map(incident).collect()
    }

    fn processes(&self) -> Value {
        let process = |(watched, trends): &(&Watched, Trends)| {
            let mut process = json!({ "name": watched.name });
            for ((name, _), trend) in MEASURES.iter().zip(trends) {
                if let Some(trend) = trend {
                    process[*name] = json!(trend);
                }
            }
            process
        };
        self.trends.iter().map(process).collect()
    }

    /// Returns the promises that were broken, in words.
    fn broken(&self) -> Vec<String> {
        let (name, audit) = (self.name(), &self.audit);
        let counts = [
            (audit.wrong_bytes, "messages with wrong bytes"),
            (self.never_ended(), "calls that never ended"),
            (audit.executed_twice, "calls executed twice in one life of a server"),
            (audit.untrue, "statements about execution that are not true"),
        ];
        let counted = counts.into_iter().filter(|(count, _)| *count > 0);
        let mut broken: Vec<String> =
            counted.map(|(count, what)| format!("{name}: {count} {what}")).collect();
        broken.extend(audit.examples.iter().map(|example| format!("{name}: {example}")));
        broken.extend(self.record.unended.iter().map(|why| format!("{name}: {why}")));
        let limit = RECOVERY_LIMIT.as_millis() as f64;
        for (Incident { fault, victim, began, .. }, recovery) in &self.recoveries {
            if recovery.ms.is_none_or(|time| time > limit) {
                let fault = fault.name();
                broken.push(format!("{name}: no answer after {fault} of {victim} at {began:.1} s"));
            }
        }
        let through: u64 = self.record.reports.iter().map(|report| report.through_memory).sum();
        if self.record.transport == Transport::Memory && through == 0 {
            broken.push(format!("{name}: no call went through shared memory"));
        }
        broken
    }

    /// Returns what is worth a remark and breaks no promise.
    fn notes(&self) -> Vec<String> {
        let name = self.name();
        let mut notes = Vec::new();
        for (Incident { fault, victim, began, .. }, recovery) in &self.recoveries {
            if let Some(time) = recovery.ms.filter(|time| *time > WANTED_MS) {
                let (fault, time) = (fault.name(), short(time));
                notes.push(format!(
                    "{name}: {time} ms until the next answer after {fault} of {victim} at {began:.1} s; wanted is a second"
                ));
            }
        }
        for (watched, trends) in &self.trends {
            for (trend, (_, what)) in trends.iter().zip(MEASURES) {
                if let Some(trend) = trend.filter(|trend| trend.grows) {
                    let (growth, noise) = (short(trend.per_minute), short(trend.noise));
                    let process = watched.name;
                    notes.push(format!(
                        "{name}: the {process} grows by {growth} {what} in a minute; {noise} is noise"
                    ));
                }
            }
        }
        let problem = self.record.reports.iter().find_map(|report| report.trace_problem.as_ref());
        notes.extend(problem.map(|why| format!("{name}: the last time trace: {why}")));
        notes
    }

    fn fault_lines(&self) -> Vec<Vec<String>> {
        let mut names: Vec<&str> = Vec::new();
        for (incident, _) in &self.recoveries {
            if !names.contains(&incident.fault.name()) {
                names.push(incident.fault.name());
            }
        }
        let line = |fault: &&str| {
            let of_fault = self.recoveries.iter().filter(|(it, _)| it.fault.name() == *fault);
            let times: Vec<f64> =
                of_fault.clone().filter_map(|(_, recovery)| recovery.ms).collect();
            let spread = (!times.is_empty()).then(|| Spread::over(&times));
            let cell = |of: fn(&Spread) -> f64| {
                spread.as_ref().map_or_else(|| "–".to_owned(), |spread| short(of(spread)))
            };
            let network = of_fault.clone().map(|(_, recovery)| recovery.network_ms);
            vec![
                format!("{}: {fault}", self.name()),
                of_fault.count().to_string(),
                short(network.fold(0.0, f64::max)),
                cell(|spread| spread.median),
                cell(|spread| spread.max),
            ]
        };
        names.iter().map(line).collect()
    }

    fn process_lines(&self) -> Vec<Vec<String>> {
        let line = |(watched, trends): &(&Watched, Trends)| {
            let cells = |trend: &Option<Trend>| match trend {
                Some(trend) => [trend.last, trend.per_minute, trend.noise].map(short),
                None => ["–"; 3].map(str::to_owned),
            };
            let mut line = vec![format!("{}: {}", self.name(), watched.name)];
            line.extend(trends.iter().flat_map(cells));
            line
        };
        self.trends.iter().map(line).collect()
    }
}

/// Returns the trends of a process.
fn trends(ledger: &Ledger, watched: &Watched) -> io::Result<Trends> {
    let over = |value: fn(&Sample) -> f64| {
        let values: Vec<_> =
            watched.samples.iter().map(|sample| (sample.seconds, value(sample))).collect();
        Trend::fit(&values)
    };
    let allocated = Trend::fit(&ledger.heap(watched.life)?);
    Ok([over(|sample| sample.anonymous_kb), allocated, over(|sample| sample.descriptors)])
}
