//! The report of the hostile lab, declared: figures, ratios and sentences.

use std::collections::BTreeMap;

use serde_json::json;

use super::attack::{Attack, Case, SHORT};
use super::attacker::Attacked;
use super::options::HostileOptions;
use super::sides::{Calls, Served};
use apus_report::declaration::{Declaration, Quotient, RowFigure};
use apus_report::findings::Findings;
use apus_report::result::{Figure, Ratio, short};
use apus_report::runs::{Measure, Runs};
use apus_report::stats::Percentiles;

const TITLE: &str = "The effect of an attacker on a server";

const LEAD: &str = "An honest client calls a server at random instants, while an attacker sends as many packets as it can.";

/// The honest calls of one run.
#[derive(Debug)]
pub(super) struct AttackRun {
    /// Offered calls per second.
    pub(super) rate: f64,
    pub(super) calls: Calls,
    /// Zero without an attack.
    pub(super) attacked: Attacked,
    pub(super) served: Served,
}

/// The figures of a row.
const FIGURES: &[RowFigure<Runs<AttackRun>>] = &[
    RowFigure::hidden("offered_krps", |runs| runs.figure(|run| Some(run.rate / 1e3))),
    RowFigure::shown("answered_share", |runs| runs.figure(|run| Some(run.answered()))),
    RowFigure::shown("failed", |runs| Some(runs.sum(|run| run.calls.failed))),
    RowFigure::shown("p50_us", |runs| known(runs, P50_US)),
    RowFigure::shown("p99_us", |runs| known(runs, P99_US)),
    RowFigure::shown("attack_kpps", |runs| runs.figure(|run| Some(run.attack_kpps()))),
    RowFigure::hidden("attack_mbps", |runs| runs.figure(|run| Some(run.attack_mbps()))),
    RowFigure::shown("ns_per_packet", |runs| known(runs, NS_PER_PACKET)),
    RowFigure::shown("dropped", |runs| {
        Some(runs.sum(|run| run.count("dropped") + run.seal_drops()))
    }),
    RowFigure::shown("overflowed", |runs| {
        Some(runs.sum(|run| run.count("driver_datagrams_overflowed")))
    }),
    RowFigure::hidden("counters", |runs| Some(Figure::Detail(json!(counters(runs))))),
];

const P50_US: Measure<AttackRun> = |run| run.latency_us(|latency| latency.p50);
const P99_US: Measure<AttackRun> = |run| run.latency_us(|latency| latency.p99);
const NS_PER_PACKET: Measure<AttackRun> = AttackRun::nanos_per_packet;

fn known(runs: &Runs<AttackRun>, measure: Measure<AttackRun>) -> Option<Figure> {
    runs.known_spread(measure).map(Figure::Spread)
}

impl AttackRun {
    /// Returns the share of the calls that were answered.
    fn answered(&self) -> f64 {
        self.calls.answered as f64 / self.calls.due.max(1) as f64
    }

    /// Returns a percentile in microseconds; `None` if no call was answered.
    fn latency_us(&self, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
        let latency = &self.calls.latency;
        (latency.samples > 0).then(|| percentile(latency) as f64 / 1e3)
    }

    /// Returns the attacker's thousands of packets per second.
    fn attack_kpps(&self) -> f64 {
        self.attacked.packets as f64 * 1e6 / self.attacked.nanos.max(1) as f64
    }

    /// Returns the attacker's rate on a link, in Mbit/s.
    fn attack_mbps(&self) -> f64 {
        self.attacked.bytes as f64 * 8e3 / self.attacked.nanos.max(1) as f64
    }

    /// Returns the server's nanoseconds of processor time per packet that it read, including honest
    /// ones.
    fn nanos_per_packet(&self) -> Option<f64> {
        let packets = self.count("driver_packets_received");
        (packets > 0).then(|| self.served.cpu as f64 / packets as f64)
    }

    /// Returns the packets that were dropped before the protocol for lack of the right key.
    fn seal_drops(&self) -> u64 {
        let names = ["forgeries", "without_key", "clear_packets", "replays", "hellos_dropped"];
        names.iter().map(|name| self.count(&format!("driver_seal_{name}"))).sum()
    }

    fn count(&self, counter: &str) -> u64 {
        self.served.counters.get(counter).copied().unwrap_or_default()
    }
}

/// Returns the result of the `runs` of each row; a row without runs is left out.
pub(super) fn findings(
    options: &HostileOptions,
    rows: &[Case],
    runs: &[Runs<AttackRun>],
    notes: Vec<String>,
) -> Findings {
    let measured = || rows.iter().zip(runs).filter(|(_, runs)| !runs.is_empty());
    let failure = |(case, runs): (&Case, &Runs<AttackRun>)| {
        let why = runs.results().find_map(|run| run.calls.why.as_deref())?;
        Some(format!("{}: a call failed: {why}", case.name()))
    };
    let quotients = quotients(rows, runs);
    let slower = |case: &Case| {
        let name = tail(*case);
        let tail = quotients.iter().find(|each| each.name == name)?;
        Some(Ratio::paired(&tail.dividend, &tail.divisor)?.median)
    };
    Declaration {
        notes: measured().filter_map(failure).chain(notes).collect(),
        sentences: measured()
            .filter_map(|(case, runs)| sentence(*case, runs, slower(case)))
            .collect(),
        quotients: quotients.clone(),
        ..Declaration::new("hostile", TITLE, LEAD, FIGURES)
    }
    .findings(options, measured().map(|(case, runs)| (case.name(), runs)))
}

/// Returns the sums of the servers' counters over the runs.
fn counters(runs: &Runs<AttackRun>) -> BTreeMap<&str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in runs.results().flat_map(|run| &run.served.counters) {
        *sums.entry(name).or_default() += count;
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

/// Returns the name of the quotient of a case's tail and the tail of the same calls without the
/// attack.
fn tail(case: Case) -> String {
    format!("p99 {}/{}", case.name(), case.alone().name())
}

/// Returns the quotients: the tail under each attack by the tail without, and forged packets by
/// malformed ones, whose only cost is their delivery.
fn quotients(rows: &[Case], runs: &[Runs<AttackRun>]) -> Vec<Quotient> {
    let of = |case: Case, measure| {
        let row = rows.iter().position(|row| *row == case);
        row.map_or_else(Vec::new, |row| runs[row].by_run(measure))
    };
    let quotient = |(what, one, other, measure): (&str, Case, Case, Measure<AttackRun>)| Quotient {
        name: format!("{what} {}/{}", one.name(), other.name()),
        dividend: of(one, measure),
        divisor: of(other, measure),
    };
    let short = |attack| Case { attack: Some(attack), size: SHORT };
    let (forged, malformed) = (short(Attack::Forged), short(Attack::Malformed));
    let attacks = rows.iter().filter(|row| row.attack.is_some());
    attacks
        .map(|case| ("p99", *case, case.alone(), P99_US))
        .chain([("p99", forged, malformed, P99_US)])
        .chain([("ns_per_packet", forged, malformed, NS_PER_PACKET)])
        .map(quotient)
        .collect()
}

/// What an attack that needs few packets may cost at most: honest calls that are not answered, and
/// the tail compared with the one without the attack.
const LEAST_ANSWERED: f64 = 0.95;
const SLOWEST: f64 = 3.0;

/// Returns the sentence about an attack; `slower` is the tail compared with the one without.
fn sentence(case: Case, runs: &Runs<AttackRun>, slower: Option<f64>) -> Option<String> {
    let (attack, name) = (case.attack?, case.name());
    let answered = runs.median(|run| Some(run.answered()))?;
    let share = short(100.0 * answered);
    if attack.is_flood() {
        let kpps = short(runs.median(|run| Some(run.attack_kpps()))?);
        return Some(format!(
            "{name}: {share} % of the honest calls were answered under {kpps} thousand packets per second."
        ));
    }
    let mbps = short(runs.median(|run| Some(run.attack_mbps()))?);
    let tail = slower.map_or_else(String::new, |slower| {
        format!(", their p99 was {} times that without the attack", short(slower))
    });
    let is_met = answered >= LEAST_ANSWERED && slower.is_some_and(|slower| slower <= SLOWEST);
    let bar = if is_met { "is met" } else { "is missed" };
    Some(format!(
        "{name}: {share} % of the honest calls were answered under {mbps} Mbit/s{tail}; the bar ({} % and {} times) {bar}.",
        short(100.0 * LEAST_ANSWERED),
        short(SLOWEST),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_report::result::Outcome;
    use serde_json::Value;

    const ROWS: [Case; 3] = [
        Case { attack: None, size: SHORT },
        Case { attack: Some(Attack::Malformed), size: SHORT },
        Case { attack: Some(Attack::Forged), size: SHORT },
    ];

    /// Returns a run with this 99th percentile in microseconds, and these nanoseconds per packet.
    fn run(p99_us: u64, nanos: u64) -> AttackRun {
        let (answered, p99) = (if p99_us > 0 { 990 } else { 0 }, p99_us * 1_000);
        let latency = Percentiles { p50: p99 / 2, p99, p999: p99, samples: answered };
        let counters =
            [("driver_packets_received", 10_000), ("dropped", 8_000), ("driver_seal_forgeries", 5)];
        AttackRun {
            rate: 1_000.0,
            calls: Calls { due: 1_000, answered, failed: 3, latency, why: None },
            attacked: Attacked { packets: 400_000, bytes: 50_000_000, nanos: 1_000_000_000 },
            served: Served {
                cpu: nanos * 10_000,
                counters: counters.map(|(name, count)| (name.to_owned(), count)).into(),
            },
        }
    }

    fn outcome(runs: [Vec<AttackRun>; 3]) -> Outcome {
        let runs = runs.map(|runs| (1..).zip(runs).collect());
        findings(&HostileOptions::default(), &ROWS, &runs, Vec::new()).outcome
    }

    fn figure(outcome: &Outcome, row: &str, name: &str) -> Value {
        let rows = json!(outcome.rows);
        let row = rows.as_array().unwrap().iter().find(|it| it["name"] == row).unwrap();
        row[name].clone()
    }

    #[test]
    fn an_attack_is_compared_with_the_baseline_of_the_same_run() {
        let outcome = outcome([
            vec![run(100, 900), run(200, 900)],
            vec![run(200, 500), run(400, 500)],
            vec![run(250, 600), run(500, 600)],
        ]);
        let forged = |name| figure(&outcome, "forged", name);
        assert_eq!([forged("p99_us"), forged("p50_us")], [375.0, 187.5]);
        assert_eq!([forged("answered_share"), forged("attack_kpps")], [0.99, 400.0]);
        assert_eq!([forged("failed"), forged("dropped")], [6, 16_010]);
        let ratio = |name: &str| {
            outcome.ratios.iter().find(|(each, _)| each == name).map(|(_, ratio)| ratio.median)
        };
        assert_eq!(ratio("p99 forged/none"), Some(2.5));
        assert_eq!(ratio("p99 malformed/none"), Some(2.0));
        assert_eq!(ratio("p99 forged/malformed"), Some(1.25));
        assert_eq!(ratio("ns_per_packet forged/malformed"), Some(1.2));
    }

    #[test]
    fn an_attack_with_few_packets_is_held_against_the_bar() {
        let case = Case { attack: Some(Attack::Grants), size: 1_000_000 };
        let runs: Runs<AttackRun> = (1..).zip([run(100, 900)]).collect();
        let said = |slower| sentence(case, &runs, slower).unwrap();
        assert!(
            said(Some(2.5)).ends_with("(95.0 % and 3.00 times) is met."),
            "{}",
            said(Some(2.5))
        );
        assert!(said(Some(2.5)).starts_with("grants 1 MB: 99.0 % "), "{}", said(Some(2.5)));
        assert!(said(Some(3.5)).ends_with("is missed.") && said(None).ends_with("is missed."));
    }

    #[test]
    fn unanswered_calls_have_no_latency_and_a_lost_attack_no_row() {
        let outcome = outcome([vec![run(100, 900)], Vec::new(), vec![run(0, 600)]]);
        assert_eq!(figure(&outcome, "forged", "p99_us"), Value::Null);
        assert_eq!(figure(&outcome, "forged", "answered_share"), 0.0);
        assert!(outcome.rows.iter().all(|row| row.name != "malformed"));
        assert!(outcome.ratios.is_empty());
        assert_eq!(sentence(ROWS[1], &Runs::default(), None), None);
    }
}
