//! Activity of a process as tables.

use apus::snapshot::{ApplicationFamily, Buckets, EndpointSnapshot, FamilyKind, families};
use apus_report::result::{Table, short};

use crate::activity::{Activity, PARTS};
use crate::processes::label;
use crate::senders::{COLUMNS, cells, title};

/// Returns all tables of a process.
pub(super) fn text(activity: &Activity) -> String {
    let Activity { now, seconds, .. } = activity;
    let mut text = format!(
        "process {}, {}, apus {}, over {} s\n",
        now.pid,
        label(now),
        now.version,
        short(*seconds)
    );
    let tables = [
        cores(activity),
        received(activity),
        shards(activity),
        senders(activity),
        durations(activity),
    ];
    for table in tables.into_iter().flatten() {
        text += &format!("\n{table}\n");
    }
    text += &format!("\n{}\n", counters(activity));
    if let Some(table) = gauges(activity) {
        text += &format!("\n{table}\n");
    }
    text += &format!("\n{}", canaries(activity));
    text
}

/// Returns a table; `None` without lines.
fn table(title: &str, header: &[&str], lines: Vec<Vec<String>>) -> Option<Table> {
    let header = header.iter().map(|&name| name.to_owned()).collect();
    (!lines.is_empty()).then(|| Table { title: title.to_owned(), header, lines })
}

/// Returns the cores used by each part of the work.
fn cores(activity: &Activity) -> Option<Table> {
    let line = |name: &str, cores: f64, what: &str| {
        let share = if activity.cores > 0.0 { 100.0 * cores / activity.cores } else { 0.0 };
        vec![format!("{name}: {what}"), short(cores), format!("{share:.0} %")]
    };
    let mut lines: Vec<_> = PARTS
        .iter()
        .map(|(name, counter, what)| line(name, activity.part(counter), what))
        .collect();
    lines.push(line(
        "rest",
        activity.rest(),
        "the application, and calls on their way into the engine",
    ));
    lines.push(line("process", activity.cores, "total"));
    table("cores used", &["part", "cores", "share"], lines)
}

/// Returns how messages were received.
fn received(activity: &Activity) -> Option<Table> {
    if activity.change.counter("messages") == 0 {
        return None;
    }
    let line = |what: &str, name: &str| {
        let share = 100.0 * activity.per_message(name);
        vec![what.to_owned(), short(activity.rate(name)), format!("{share:.1} %")]
    };
    let lines = vec![
        line("messages delivered to the application", "messages"),
        line("were already available", "wait_none"),
        line("arrived while their receiver polled", "wait_polled"),
        line("arrived while their receiver slept", "wait_slept"),
        line("were handed off to another thread", "handoffs"),
        line("threads and tasks woken", "wakeups"),
        line("waits for the core lock", "lock_misses"),
    ];
    table("how messages were received", &["", "per second", "per message"], lines)
}

/// Returns the activity of each shard of sharded endpoints.
fn shards(activity: &Activity) -> Option<Table> {
    let line = |shard: &EndpointSnapshot| {
        let rate = |name: &str| short(shard.counter(name) as f64 / activity.seconds);
        let number = shard.shard.unwrap_or_default();
        let waiting = shard.gauge("requests_waiting") + shard.gauge("ends_waiting");
        vec![
            format!("{} shard {number}", shard.address),
            rate("packets_arrived"),
            rate("messages"),
            rate("steals"),
            rate("lock_misses"),
            waiting.to_string(),
        ]
    };
    let header = ["per second", "packets", "messages", "of them stolen", "lock misses", "waiting"];
    table("shards", &header, activity.shards.iter().map(line).collect())
}

/// Returns the peers with arriving messages.
fn senders(activity: &Activity) -> Option<Table> {
    let senders = activity.senders.as_ref()?;
    let header: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
    let lines = senders.rows.iter().map(cells).collect();
    table(&title(senders, senders.rows.len()), &header, lines)
}

/// Returns the histograms of sizes and durations.
fn durations(activity: &Activity) -> Option<Table> {
    let line = |(name, values): (&str, &Buckets)| {
        let (name, scale) = match name.strip_suffix("_nanos") {
            Some(name) => (format!("{name}, µs"), 1e3),
            None => (name.replace("_bytes", ", bytes"), 1.0),
        };
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| short(value / scale));
        let quantile = |share| shown(values.quantile(share).map(|value| value as f64));
        let rate = short(values.count() as f64 / activity.seconds);
        vec![name, rate, shown(values.mean()), quantile(0.5), quantile(0.99), quantile(0.999)]
    };
    let header = ["sizes and durations", "per second", "mean", "p50", "p99", "p99.9"];
    table("", &header, activity.histograms().map(line).collect()).map(|table| Table {
        title: format!("{} messages waited for grants on average", short(activity.grantable())),
        ..table
    })
}

/// Returns the changed counters, in the order of their groups.
fn counters(activity: &Activity) -> String {
    let place = |name: &str| {
        let family = name.split_once('.').map_or(name, |(family, _)| family);
        let all = families();
        all.iter().position(|known| known.name == family).unwrap_or(all.len())
    };
    let mut changed: Vec<_> =
        activity.changed().map(|(name, change)| (place(name), name, change)).collect();
    changed.sort_unstable();
    let line = |(_, name, number): (usize, &str, u64)| {
        let rate = short(number as f64 / activity.seconds);
        let total = activity.total.counter(name);
        let name = name.replace(char::is_control, "?");
        vec![name, number.to_string(), rate, total.to_string()]
    };
    let lines = changed.into_iter().map(line).collect();
    let header = ["counter", "change", "per second", "total"];
    match table("counters that have changed", &header, lines) {
        Some(table) => table.to_string(),
        None => "no counter has changed".to_owned(),
    }
}

/// Returns the gauges published by the application.
fn gauges(activity: &Activity) -> Option<Table> {
    let published = activity.now.application.iter();
    let gauges = published.filter(|family| family.kind == FamilyKind::Gauge);
    // Root may inspect processes of other users: control characters in their names must not reach
    // the terminal.
    let line =
        |(name, value): (String, u64)| vec![name.replace(char::is_control, "?"), value.to_string()];
    let lines = gauges.flat_map(ApplicationFamily::named).map(line).collect();
    table("current values of the application", &["gauge", "value"], lines)
}

/// Returns the nonzero canaries.
fn canaries(activity: &Activity) -> String {
    let line = |(canary, new, all): (&apus::snapshot::Canary, u64, u64)| {
        format!("  {}: {all}, {new} of them in this interval: {}\n", canary.name, canary.meaning)
    };
    let lines: String = activity.canaries().map(line).collect();
    if lines.is_empty() {
        "all canaries are zero\n".to_owned()
    } else {
        format!("canaries that are not zero, but should be:\n{lines}")
    }
}
