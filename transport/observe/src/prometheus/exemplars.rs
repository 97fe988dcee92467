//! Exemplars in OpenMetrics text: RPCs of the time trace, behind the buckets that count them.
//!
//! `prometheus-client` 0.25 and 0.26 write the exemplars of their own histograms, and have no
//! constructor for an `Exemplar` that a collector could pass. So they are inserted into the
//! finished text: the lines of buckets appear in the order of their encoding.

use crate::snapshot::{Buckets, Exemplar};
use apus_proto::COARSE_BOUNDS;

/// The exemplars of OpenTelemetry's families, one place for each bucket that the text has.
#[derive(Debug, Default)]
pub(super) struct BucketExemplars {
    /// Names of the families, with the unit.
    families: Vec<String>,
    /// In the order of the buckets' lines.
    by_line: Vec<Option<Exemplar>>,
}

impl BucketExemplars {
    /// Adds a family, whose histograms follow.
    pub(super) fn add_family(&mut self, name: String) {
        self.families.push(name);
    }

    /// Adds a histogram, which is encoded with the coarse buckets.
    pub(super) fn add_histogram(&mut self, found: &Buckets) {
        let first = self.by_line.len();
        self.by_line.resize(first + COARSE_BOUNDS.len() + 1, None);
        for exemplar in &found.exemplars {
            let bucket = COARSE_BOUNDS.iter().position(|bound| exemplar.nanos <= *bound);
            self.by_line[first + bucket.unwrap_or(COARSE_BOUNDS.len())] = Some(*exemplar);
        }
    }

    /// Inserts the exemplars into the text.
    pub(super) fn insert_into(self, text: String) -> String {
        if self.by_line.iter().all(Option::is_none) {
            return text;
        }
        let buckets = text.lines().filter(|line| self.is_bucket(line)).count();
        debug_assert_eq!(buckets, self.by_line.len(), "a line for each bucket");
        if buckets != self.by_line.len() {
            // Counters without exemplars are better than exemplars of other buckets.
            return text;
        }
        let mut exemplars = self.by_line.iter();
        let mut all = String::with_capacity(text.len() + 128 * buckets);
        for line in text.lines() {
            all += line;
            if self.is_bucket(line)
                && let Some(Some(exemplar)) = exemplars.next()
            {
                all += &written(exemplar);
            }
            all.push('\n');
        }
        all
    }

    /// Returns whether a line belongs to a bucket of one of the families.
    fn is_bucket(&self, line: &str) -> bool {
        let name = line.split_once("_bucket{").map(|(name, _)| name);
        name.is_some_and(|name| self.families.iter().any(|family| family == name))
    }
}

/// The exemplar as it follows the value of a bucket. Its labels have up to 90 characters;
/// OpenMetrics allows 128.
fn written(exemplar: &Exemplar) -> String {
    let Exemplar { rpc, peer, nanos, unix_millis } = exemplar;
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let time = unix_millis.map(|millis| format!(" {}.{:03}", millis / 1_000, millis % 1_000));
    let time = time.unwrap_or_default();
    format!(" # {{rpc=\"{rpc}\",peer=\"{peer}\"}} {seconds}.{rest:09}{time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exemplar(rpc: u64, nanos: u64) -> Exemplar {
        let peer = "127.0.0.1:4000".parse().unwrap();
        Exemplar { rpc, peer, nanos, unix_millis: Some(1_700_000_000_042) }
    }

    fn of(exemplars: Vec<Exemplar>) -> BucketExemplars {
        let mut all = BucketExemplars::default();
        all.add_family("a".to_owned());
        all.add_histogram(&Buckets { exemplars, ..Buckets::default() });
        all
    }

    /// The text of a histogram: a line for each bucket, between lines of others.
    fn text() -> String {
        let bounds = COARSE_BOUNDS.map(|bound| bound.to_string()).to_vec();
        let bounds = bounds.into_iter().chain(["+Inf".to_owned()]);
        let lines: String = bounds.map(|bound| format!("a_bucket{{le=\"{bound}\"}} 2\n")).collect();
        format!("# HELP a_bucket{{ b\nb_bucket{{le=\"1\"}} 1\n{lines}# EOF\n")
    }

    #[test]
    fn an_exemplar_is_behind_the_bucket_that_counts_it() {
        let exemplars = vec![exemplar(2, 5_000_000), exemplar(4, 11_000_000_000)];
        let found = of(exemplars).insert_into(text());
        let changed: Vec<&str> = found.lines().filter(|line| line.contains(" # {")).collect();
        let peer = "peer=\"127.0.0.1:4000\"";
        assert_eq!(
            changed,
            [
                format!(
                    "a_bucket{{le=\"5000000\"}} 2 # {{rpc=\"2\",{peer}}} 0.005000000 1700000000.042"
                ),
                format!(
                    "a_bucket{{le=\"+Inf\"}} 2 # {{rpc=\"4\",{peer}}} 11.000000000 1700000000.042"
                ),
            ]
        );
        let without: String = found
            .lines()
            .map(|line| line.split(" # {").next().unwrap().to_owned() + "\n")
            .collect();
        assert_eq!(without, text(), "all else is the same");
    }

    #[test]
    fn without_exemplars_the_text_is_the_same() {
        assert_eq!(of(Vec::new()).insert_into(text()), text());
    }

    #[test]
    fn labels_are_short_enough_for_openmetrics() {
        let peer =
            "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%4294967295]:65535".parse().unwrap();
        let longest = Exemplar { rpc: u64::MAX, peer, nanos: u64::MAX, unix_millis: None };
        let text = written(&longest);
        let (labels, _) = text.split_once("} ").unwrap();
        assert!(labels.len() < 128, "{labels}");
        assert!(text.ends_with(" 18446744073.709551615"), "{text}");
    }
}
