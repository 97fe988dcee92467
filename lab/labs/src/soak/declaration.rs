//! The report of the soak, declared: a row for each transport, tables of faults and processes,
//! broken promises.

use std::io;

use serde_json::{Value, json};

use super::audit::{Audit, Recovery};
use super::campaign::{CampaignRecord, FaultRecord, RECOVERY_LIMIT};
use super::crew::Watched;
use super::ledger::Ledger;
use super::options::SoakOptions;
use super::transport::Transport;
use super::trend::{ProcessSample, Trend};
use apus_report::declaration::{Declaration, RowFigure};
use apus_report::findings::{Findings, Section};
use apus_report::result::{Figure, Table, rounded, short};
use apus_report::stats::Spread;
use apus_testbed::error::{Doing, Error};

/// Time from the end of a fault, or from when plain UDP passes, until the next answer, beyond which
/// a recovery is slow.
const SLOW_RECOVERY_MS: f64 = 1_000.0;

/// The watched figures of a process: the name in JSON, and the unit.
const MEASURES: [(&str, &str); 3] = [
    ("anonymous_kb", "kB of memory"),
    ("allocated_kb", "allocated kB"),
    ("descriptors", "descriptors"),
];

/// A trend for each of the [`MEASURES`]; `None` if there are too few values.
type Trends = [Option<Trend>; MEASURES.len()];

/// A campaign, its audit, and its recoveries and trends.
struct AuditedCampaign<'a> {
    record: &'a CampaignRecord,
    audit: Audit,
    /// Each fault and its recovery.
    recoveries: Vec<(&'a FaultRecord, Recovery)>,
    /// The watched processes, and their [`MEASURES`].
    trends: Vec<(&'a Watched, Trends)>,
}

/// Returns the figures of a row.
fn figures<'a>() -> [RowFigure<AuditedCampaign<'a>>; 16] {
    const fn count(count: u64) -> Option<Figure> {
        Some(Figure::Count(count))
    }
    [
        RowFigure::shown("calls", |it| count(it.audit.ended + it.never_ended())),
        RowFigure::shown("answered", |it| count(it.audit.answered)),
        RowFigure::shown("failed", |it| count(it.audit.failed.values().sum())),
        RowFigure::shown("wrong_bytes", |it| count(it.audit.wrong_bytes)),
        RowFigure::shown("never_ended", |it| count(it.never_ended())),
        RowFigure::shown("executed_twice", |it| count(it.audit.executed_twice)),
        RowFigure::hidden("executed_in_two_lives", |it| count(it.audit.executed_in_two_lives)),
        RowFigure::shown("untrue", |it| count(it.audit.untrue)),
        RowFigure::shown("faults", |it| count(it.recoveries.len() as u64)),
        RowFigure::shown("recovery_ms", |it| {
            let times: Vec<f64> = it.recovery_ms().map(rounded).collect();
            (!times.is_empty()).then(|| Figure::Spread(Spread::over(&times)))
        }),
        RowFigure::hidden("slow_recoveries", |it| {
            count(it.recovery_ms().filter(|time| *time > SLOW_RECOVERY_MS).count() as u64)
        }),
        RowFigure::hidden("traces_written", |it| {
            count(it.record.reports.iter().map(|report| report.traces).sum())
        }),
        RowFigure::hidden("seconds", |it| Some(Figure::Detail(json!(rounded(it.record.seconds))))),
        RowFigure::hidden("failed_by_kind", |it| Some(Figure::Detail(json!(it.audit.failed)))),
        RowFigure::hidden("incidents", |it| Some(Figure::Detail(it.incidents()))),
        RowFigure::hidden("processes", |it| Some(Figure::Detail(it.processes()))),
    ]
}

const TITLE: &str = "The promises of apus while everything fails";

const LEAD: &str = "Clients and servers as processes, while they are killed, paused and restarted, and their links, \
                    addresses and disks fail.";

/// Columns of the table of faults.
const FAULTS: [&str; 5] =
    ["fault", "times", "plain UDP ms, longest", "recovery ms, median", "longest"];

/// Columns of the table of processes.
const GROWTH: [&str; 10] = [
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

/// Returns the result, for people and machines.
pub(super) fn findings(
    options: &SoakOptions,
    records: &[CampaignRecord],
    left_out: &[String],
    interrupted: bool,
) -> Result<Findings, Error> {
    let campaigns: Vec<AuditedCampaign<'_>> =
        records.iter().map(AuditedCampaign::of).collect::<Result<_, _>>()?;
    let broken: Vec<String> = campaigns.iter().flat_map(AuditedCampaign::broken).collect();
    let summary = match broken.len() {
        0 => "No promise was broken.".to_owned(),
        number => format!("{number} promises were broken:"),
    };
    let missing = left_out.iter().map(|each| format!("left out: {each}"));
    let interrupted =
        interrupted.then(|| "interrupted: the result covers the time until then".to_owned());
    let remarks = campaigns.iter().flat_map(AuditedCampaign::notes);
    let faults = Table::new(
        "Time from the end of a fault until plain UDP passes, and from then on until the next answer",
        FAULTS,
        campaigns.iter().flat_map(AuditedCampaign::fault_lines).collect(),
    );
    let growth = Table::new(
        "Memory and descriptors of processes that are never killed",
        GROWTH,
        campaigns.iter().flat_map(AuditedCampaign::process_lines).collect(),
    );
    let mut findings = Declaration {
        notes: missing.chain(remarks).chain(interrupted).collect(),
        opening: vec![Section::new("Faults").with(faults), Section::new("Growth").with(growth)],
        sentences: [summary].into_iter().chain(broken.iter().cloned()).collect(),
        ..Declaration::new("soak", TITLE, LEAD, &figures())
    }
    .findings(options, campaigns.iter().map(|it| (it.name().to_owned(), it)));
    findings.outcome.members.insert("broken".to_owned(), json!(broken));
    findings.outcome.members.insert("left_out".to_owned(), json!(left_out));
    Ok(findings)
}

impl<'a> AuditedCampaign<'a> {
    fn of(record: &'a CampaignRecord) -> Result<Self, Error> {
        let doing = || "read the ledger".to_owned();
        let audit = Audit::of(record).doing(doing)?;
        let recovery =
            |fault: &'a FaultRecord| Ok((fault, Recovery::of(&record.ledger, fault).doing(doing)?));
        let recoveries = record.faults.iter().map(recovery).collect::<Result<_, Error>>()?;
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

    fn recovery_ms(&self) -> impl Iterator<Item = f64> {
        self.recoveries.iter().filter_map(|(_, recovery)| recovery.ms)
    }

    fn incidents(&self) -> Value {
        let incident = |(incident, recovery): &(&FaultRecord, Recovery)| {
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

    /// Returns the broken promises, in words.
    fn broken(&self) -> Vec<String> {
        let (name, audit) = (self.name(), &self.audit);
        let counts = [
            (audit.wrong_bytes, "messages with wrong bytes"),
            (self.never_ended(), "calls that never ended"),
            (audit.executed_twice, "calls executed twice in one life of a server"),
            (audit.untrue, "false statements about execution"),
        ];
        let counted = counts.into_iter().filter(|(count, _)| *count > 0);
        let mut broken: Vec<String> =
            counted.map(|(count, what)| format!("{name}: {count} {what}")).collect();
        broken.extend(audit.examples.iter().map(|example| format!("{name}: {example}")));
        broken.extend(self.record.unended.iter().map(|why| format!("{name}: {why}")));
        let limit = RECOVERY_LIMIT.as_millis() as f64;
        for (FaultRecord { fault, victim, began, .. }, recovery) in &self.recoveries {
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

    /// Returns remarks that are no broken promises.
    fn notes(&self) -> Vec<String> {
        let name = self.name();
        let mut notes = Vec::new();
        for (FaultRecord { fault, victim, began, .. }, recovery) in &self.recoveries {
            if let Some(time) = recovery.ms.filter(|time| *time > SLOW_RECOVERY_MS) {
                let (fault, time) = (fault.name(), short(time));
                notes.push(format!(
                    "{name}: {time} ms until the next answer after {fault} of {victim} at {began:.1} s; the target is a second"
                ));
            }
        }
        for (watched, trends) in &self.trends {
            for (trend, (_, what)) in trends.iter().zip(MEASURES) {
                if let Some(trend) = trend.filter(|trend| trend.grows) {
                    let (growth, noise) = (short(trend.per_minute), short(trend.noise));
                    let process = watched.name;
                    notes.push(format!(
                        "{name}: the {process} grows by {growth} {what} per minute; {noise} is noise"
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
    let over = |value: fn(&ProcessSample) -> f64| {
        let values: Vec<_> =
            watched.samples.iter().map(|sample| (sample.seconds, value(sample))).collect();
        Trend::fit(&values)
    };
    let allocated = Trend::fit(&ledger.heap(watched.life)?);
    Ok([over(|sample| sample.anonymous_kb), allocated, over(|sample| sample.descriptors)])
}
