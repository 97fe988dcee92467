//! The result: a row for each attack beside that of no attack, ratios, sentences.

use std::collections::BTreeMap;

use serde_json::json;

use super::attack::Attack;
use super::attacker::Attacked;
use super::options::Options;
use super::sides::{Calls, Served};
use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_report::result::{Figure, Outcome, Ratio, Row, short};
use apus_report::stats::{Percentiles, Spread};

/// What became of honest calls in one run.
#[derive(Debug)]
pub(super) struct Found {
    /// Number of the run, from 0.
    pub(super) run: usize,
    /// Calls per second that were offered.
    pub(super) rate: f64,
    pub(super) calls: Calls,
    /// Of nothing if there was no attack.
    pub(super) attacked: Attacked,
    pub(super) served: Served,
}

impl Found {
    /// Returns the share of the calls that were answered.
    fn answered(&self) -> f64 {
        self.calls.answered as f64 / self.calls.due.max(1) as f64
    }

    /// Returns the microseconds that this percentile took; `None` if nothing was answered, which is not fast.
    fn latency_us(&self, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
        let latency = &self.calls.latency;
        (latency.samples > 0).then(|| percentile(latency) as f64 / 1e3)
    }

    /// Returns thousands of packets that the attacker sent in a second.
    fn attack_kpps(&self) -> f64 {
        self.attacked.packets as f64 * 1e6 / self.attacked.nanos.max(1) as f64
    }

    /// Returns the nanoseconds that the server spent for each packet that it read, honest ones too.
    fn nanos_per_packet(&self) -> Option<f64> {
        let packets = self.count("driver_packets_received");
        (packets > 0).then(|| self.served.cpu as f64 / packets as f64)
    }

    fn count(&self, counter: &str) -> u64 {
        self.served.counters.get(counter).copied().unwrap_or_default()
    }
}

/// Returns the name of a row.
pub(super) fn name(attack: Option<Attack>) -> &'static str {
    attack.map_or("none", Attack::name)
}

/// Puts the result together: `found` has the runs of each of the `rows`.
pub(super) fn outcome(options: &Options, rows: &[Option<Attack>], found: &[Vec<Found>]) -> Outcome {
    let mut outcome = Outcome::new("hostile", config(options));
    for (attack, runs) in rows.iter().zip(found).filter(|(_, runs)| !runs.is_empty()) {
        let name = name(*attack);
        outcome.rows.push(row(name, runs));
        let why = runs.iter().find_map(|run| run.calls.why.as_deref());
        outcome.notes.extend(why.map(|why| format!("{name}: a call failed: {why}")));
    }
    outcome.ratios = ratios(rows, found);
    outcome
}

fn row(name: &str, runs: &[Found]) -> Row {
    let spread = |value: &dyn Fn(&Found) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| Figure::Spread(Spread::over(&values)))
    };
    let dropped = |run: &Found| run.count("dropped") + seal_drops(run);
    Row::new(name)
        .with_spread("offered_krps", runs, |run| run.rate / 1e3)
        .with_spread("answered_share", runs, Found::answered)
        .with_sum("failed", runs, |run| run.calls.failed)
        .with_known("p50_us", spread(&|run| run.latency_us(|latency| latency.p50)))
        .with_known("p99_us", spread(&|run| run.latency_us(|latency| latency.p99)))
        .with_spread("attack_kpps", runs, Found::attack_kpps)
        .with_known("ns_per_packet", spread(&Found::nanos_per_packet))
        .with_sum("dropped", runs, dropped)
        .with_sum("overflowed", runs, |run| run.count("driver_datagrams_overflowed"))
        .with("counters", Figure::Detail(json!(sums(runs))))
}

/// Returns the packets that were dropped before the protocol saw them, for want of the right key.
fn seal_drops(run: &Found) -> u64 {
    let names = ["forgeries", "without_key", "clear_packets", "replays", "hellos_dropped"];
    names.iter().map(|name| run.count(&format!("driver_seal_{name}"))).sum()
}

/// Returns what the servers counted in all runs.
fn sums(runs: &[Found]) -> BTreeMap<&str, u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in runs.iter().flat_map(|run| &run.served.counters) {
        *sums.entry(name).or_default() += count;
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

/// The tail under each attack beside that without one; and forged packets beside malformed ones, which cost their delivery.
fn ratios(rows: &[Option<Attack>], found: &[Vec<Found>]) -> Vec<(String, Ratio)> {
    let of = |attack: Option<Attack>, value: fn(&Found) -> Option<f64>| -> Vec<(usize, f64)> {
        let runs = rows.iter().position(|row| *row == attack).map_or(&[][..], |row| &found[row]);
        runs.iter().filter_map(|run| Some((run.run, value(run)?))).collect()
    };
    let p99 = |run: &Found| run.latency_us(|latency| latency.p99);
    let (forged, malformed) = (Some(Attack::Forged), Some(Attack::Malformed));
    let mut ratios = Vec::new();
    let mut compare = |what: &str, one, other, value| {
        let ratio = Ratio::paired(&of(one, value), &of(other, value));
        let title = format!("{what} {}/{}", name(one), name(other));
        ratios.extend(ratio.map(|ratio| (title, ratio)));
    };
    for attack in rows.iter().filter(|row| row.is_some()) {
        compare("p99", *attack, None, p99);
    }
    compare("p99", forged, malformed, p99);
    compare("ns_per_packet", forged, malformed, Found::nanos_per_packet);
    ratios
}

/// Returns the findings of an outcome, with a sentence for each attack.
pub(super) fn findings(
    outcome: Outcome,
    rows: &[Option<Attack>],
    found: &[Vec<Found>],
) -> Findings {
    let sentences = rows.iter().zip(found).filter_map(|(attack, runs)| sentence((*attack)?, runs));
    let sentences: Vec<String> = sentences.collect();
    let lead = "An honest client calls a server at random instants, and an attacker sends it as many packets as it can.";
    Findings::new(outcome, "What does an attacker do to a server?", lead)
        .with_columns(&[
            "answered_share",
            "failed",
            "p50_us",
            "p99_us",
            "attack_kpps",
            "ns_per_packet",
            "dropped",
            "overflowed",
        ])
        .with_all(Vec::new(), sentences, [])
}

fn sentence(attack: Attack, runs: &[Found]) -> Option<String> {
    if runs.is_empty() {
        return None;
    }
    let median =
        |value: fn(&Found) -> f64| Spread::over(&runs.iter().map(value).collect::<Vec<_>>()).median;
    let (share, kpps) = (100.0 * median(Found::answered), median(Found::attack_kpps));
    let (name, share, kpps) = (attack.name(), short(share), short(kpps));
    Some(format!(
        "{name}: {share} % of the honest calls were answered under {kpps} thousand packets a second."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ROWS: [Option<Attack>; 3] = [None, Some(Attack::Malformed), Some(Attack::Forged)];

    /// A run with this 99th percentile in microseconds, and nanoseconds for each packet.
    fn found(run: usize, p99_us: u64, nanos: u64) -> Found {
        let (answered, p99) = (if p99_us > 0 { 990 } else { 0 }, p99_us * 1_000);
        let latency = Percentiles { p50: p99 / 2, p99, p999: p99, samples: answered };
        let counters =
            [("driver_packets_received", 10_000), ("dropped", 8_000), ("driver_seal_forgeries", 5)];
        Found {
            run,
            rate: 1_000.0,
            calls: Calls { due: 1_000, answered, failed: 3, latency, why: None },
            attacked: Attacked { packets: 400_000, nanos: 1_000_000_000 },
            served: Served {
                cpu: nanos * 10_000,
                counters: counters.map(|(name, count)| (name.to_owned(), count)).into(),
            },
        }
    }

    fn figure(outcome: &Outcome, row: &str, name: &str) -> Value {
        let rows = json!(outcome.rows);
        let row = rows.as_array().unwrap().iter().find(|it| it["name"] == row).unwrap();
        row[name].clone()
    }

    #[test]
    fn an_attack_is_compared_with_none_of_the_same_run() {
        let runs = [
            vec![found(0, 100, 900), found(1, 200, 900)],
            vec![found(0, 200, 500), found(1, 400, 500)],
            vec![found(0, 250, 600), found(1, 500, 600)],
        ];
        let outcome = outcome(&Options::default(), &ROWS, &runs);
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
    fn nothing_answered_has_no_latency_and_what_was_lost_no_row() {
        let runs = [vec![found(0, 100, 900)], Vec::new(), vec![found(0, 0, 600)]];
        let outcome = outcome(&Options::default(), &ROWS, &runs);
        assert_eq!(figure(&outcome, "forged", "p99_us"), Value::Null);
        assert_eq!(figure(&outcome, "forged", "answered_share"), 0.0);
        assert!(outcome.rows.iter().all(|row| row.name != "malformed"));
        assert!(outcome.ratios.is_empty());
        assert_eq!(sentence(Attack::Malformed, &[]), None);
    }
}
