//! How do people read it?

use apus::snapshot::{Buckets, families};
use apus_lab::result::{Table, short};

use super::change::{Change, PARTS};
use super::select::about;

/// All that has happened in a process.
pub(super) fn of(change: &Change) -> String {
    let Change { now, seconds, .. } = change;
    let mut text = format!(
        "process {}, {}, apus {}, in {} s\n",
        now.pid,
        about(now),
        now.version,
        short(*seconds)
    );
    for table in [cores(change), received(change), durations(change)].into_iter().flatten() {
        text += &format!("\n{table}\n");
    }
    text += &format!("\n{}\n", counters(change));
    text += &format!("\n{}", canaries(change));
    text
}

fn table(title: &str, header: &[&str], lines: Vec<Vec<String>>) -> Option<Table> {
    let header = header.iter().map(|&name| name.to_owned()).collect();
    (!lines.is_empty()).then(|| Table { title: title.to_owned(), header, lines })
}

/// What the cores were used for.
fn cores(change: &Change) -> Option<Table> {
    let line = |name: &str, cores: f64, what: &str| {
        let share = if change.cores > 0.0 { 100.0 * cores / change.cores } else { 0.0 };
        vec![format!("{name}: {what}"), short(cores), format!("{share:.0} %")]
    };
    let mut lines: Vec<_> =
        PARTS.iter().map(|(name, counter, what)| line(name, change.part(counter), what)).collect();
    lines.push(line("rest", change.rest(), "the application, and calls on their way"));
    lines.push(line("process", change.cores, "all of it"));
    table("cores used", &["part", "cores", "share"], lines)
}

/// How messages were received.
fn received(change: &Change) -> Option<Table> {
    if change.change.counter("messages") == 0 {
        return None;
    }
    let line = |what: &str, name: &str| {
        let share = 100.0 * change.per_message(name);
        vec![what.to_owned(), short(change.rate(name)), format!("{share:.1} %")]
    };
    let lines = vec![
        line("messages that the application got", "messages"),
        line("were there already", "wait_none"),
        line("came while their receiver polled", "wait_polled"),
        line("came while it slept", "wait_slept"),
        line("were handed from thread to thread", "handoffs"),
        line("threads and tasks that were roused", "wakeups"),
        line("waits for the core lock", "lock_misses"),
    ];
    table("how messages were received", &["", "per second", "per message"], lines)
}

/// Sizes and durations.
fn durations(change: &Change) -> Option<Table> {
    let line = |(name, seen): (&str, &Buckets)| {
        let (name, scale) = match name.strip_suffix("_nanos") {
            Some(name) => (format!("{name}, µs"), 1e3),
            None => (name.replace("_bytes", ", bytes"), 1.0),
        };
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| short(value / scale));
        let quantile = |share| shown(seen.quantile(share).map(|value| value as f64));
        let rate = short(seen.count() as f64 / change.seconds);
        vec![name, rate, shown(seen.mean()), quantile(0.5), quantile(0.99), quantile(0.999)]
    };
    let header = ["sizes and durations", "per second", "mean", "p50", "p99", "p99.9"];
    table("", &header, change.histograms().map(line).collect()).map(|table| Table {
        title: format!("{} messages wait for grants on average", short(change.grantable())),
        ..table
    })
}

/// Counters that have changed, group by group.
fn counters(change: &Change) -> String {
    let place = |name: &str| {
        let family = name.split_once('.').map_or(name, |(family, _)| family);
        let all = families();
        all.iter().position(|known| known.name == family).unwrap_or(all.len())
    };
    let mut changed: Vec<_> =
        change.changed().map(|(name, change)| (place(name), name, change)).collect();
    changed.sort_unstable();
    let line = |(_, name, number): (usize, &str, u64)| {
        let rate = short(number as f64 / change.seconds);
        let total = change.total.counter(name);
        vec![name.to_owned(), number.to_string(), rate, total.to_string()]
    };
    let lines = changed.into_iter().map(line).collect();
    let header = ["counter", "change", "per second", "total"];
    match table("counters that have changed", &header, lines) {
        Some(table) => table.to_string(),
        None => "no counter has changed".to_owned(),
    }
}

/// What should be zero, and is not.
fn canaries(change: &Change) -> String {
    let line = |(canary, new, all): (&apus::snapshot::Canary, u64, u64)| {
        format!("  {}: {all}, {new} of them now: {}\n", canary.name, canary.meaning)
    };
    let lines: String = change.canaries().map(line).collect();
    if lines.is_empty() {
        "all canaries are silent: nothing that should be zero has been counted\n".to_owned()
    } else {
        format!("canaries, which should be zero:\n{lines}")
    }
}
