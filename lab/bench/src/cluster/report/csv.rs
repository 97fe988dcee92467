//! Runs as comma-separated values, for spreadsheets.
//!
//! Four files have one line for each run, each size in a run, each fraction of the short messages
//! in a run, and each priority in a run. The values are not aggregated, so that readers can choose
//! how.

use super::input::{Run, Transport};
use crate::slowdown::CDF;

/// Transports measured with the same settings.
pub(super) struct Group<'a> {
    /// The first fields of each line.
    pub(super) first: Vec<&'a str>,
    pub(super) transports: &'a [Transport],
}

/// Name and content of each file; `header` names the first fields of each line.
pub(super) fn files(header: &[&str], groups: &[Group<'_>]) -> Vec<(String, String)> {
    let files = [
        ("runs.csv", runs(header, groups)),
        ("sizes.csv", sizes(header, groups)),
        ("short_cdf.csv", cdf(header, groups)),
        ("switch.csv", switch(header, groups)),
    ];
    files.map(|(name, content)| (name.to_owned(), content)).to_vec()
}

fn runs(first: &[&str], groups: &[Group<'_>]) -> String {
    let header = [
        "transport",
        "run",
        "short_p50",
        "short_p99",
        "short_p999",
        "short_p50_us",
        "short_p99_us",
        "short_p999_us",
        "all_p50",
        "all_p99",
        "all_p999",
        "mean_by_bytes",
        "offered_load",
        "achieved_load",
        "throughput_bps",
        "cpu_s_per_gb",
        "late_p99_us",
        "idle",
        "messages",
        "errors",
    ];
    let line = |name: &str, run: &Run| {
        let Run { summary, idle, .. } = run;
        let tails = [summary.short, summary.short_us, summary.all];
        let tails = tails.into_iter().flat_map(|tail| [tail.p50, tail.p99, tail.p999]);
        let figures = [
            summary.mean_by_bytes,
            run.offered_load,
            run.achieved_load,
            run.throughput,
            run.cpu_per_gb,
            run.late_p99_us,
        ];
        let figures = tails.chain(figures).map(|value| value.to_string());
        let idle = idle.map_or_else(String::new, |idle| idle.to_string());
        let counts = [summary.messages, run.errors].map(|count| count.to_string());
        let line = begin(name, run).into_iter().chain(figures).chain([idle]).chain(counts);
        vec![line.collect()]
    };
    written(first, &header, groups, line)
}

fn sizes(first: &[&str], groups: &[Group<'_>]) -> String {
    let header = ["transport", "run", "upto", "count", "p50", "p99", "p999"];
    written(first, &header, groups, |name, run| {
        let groups = run.summary.groups.iter().map(|group| {
            let counts = [u64::from(group.upto), group.count].map(|count| count.to_string());
            let tail = [group.tail.p50, group.tail.p99, group.tail.p999];
            let tail = tail.map(|value| value.to_string());
            begin(name, run).into_iter().chain(counts).chain(tail).collect()
        });
        groups.collect()
    })
}

fn cdf(first: &[&str], groups: &[Group<'_>]) -> String {
    let header = ["transport", "run", "fraction", "us"];
    written(first, &header, groups, |name, run| {
        let points = CDF.iter().zip(&run.summary.short_cdf_us).map(|(fraction, us)| {
            let point = [fraction, us].map(ToString::to_string);
            begin(name, run).into_iter().chain(point).collect()
        });
        points.collect()
    })
}

fn switch(first: &[&str], groups: &[Group<'_>]) -> String {
    let header =
        ["transport", "run", "priority", "packets", "bytes", "drops", "queue_mean", "queue_max"];
    written(first, &header, groups, |name, run| {
        let levels = run.switch.iter().flat_map(|switch| switch.levels.iter().enumerate());
        let lines = levels.map(|(priority, level)| {
            let figures = [
                priority.to_string(),
                level.packets.to_string(),
                level.bytes.to_string(),
                level.drops.to_string(),
                level.queue_mean.to_string(),
                level.queue_max.to_string(),
            ];
            begin(name, run).into_iter().chain(figures).collect()
        });
        lines.collect()
    })
}

/// Returns the first fields of a line: transport and run.
fn begin(name: &str, run: &Run) -> [String; 2] {
    [name.to_owned(), (run.number + 1).to_string()]
}

/// Returns a header, and the lines of every run of every transport. `first` are the first fields of
/// the header.
fn written(
    first: &[&str],
    header: &[&str],
    groups: &[Group<'_>],
    lines: impl Fn(&str, &Run) -> Vec<Vec<String>>,
) -> String {
    let mut to = ::csv::Writer::from_writer(Vec::new());
    to.write_record(first.iter().chain(header)).expect("writing to memory");
    for group in groups {
        for transport in group.transports {
            let name = transport.row();
            for line in transport.runs.iter().flat_map(|run| lines(&name, run)) {
                let line = group.first.iter().copied().chain(line.iter().map(String::as_str));
                to.write_record(line).expect("as many fields as the header, in memory");
            }
        }
    }
    let bytes = to.into_inner().expect("writing to memory");
    String::from_utf8(bytes).expect("of texts")
}
