//! The result of the local experiment: rows and ratios over all runs.

use serde_json::{Map, Value, json};

use super::entrant::{Entrant, KINDS, UNIX};
use super::options::Options;
use super::tables::tables;
use apus_contenders::apus::Calls;
use apus_contenders::contender::Side;
use apus_report::findings::Findings;
use apus_report::result::{Figure, Outcome, Ratio, Row, rounded};
use apus_report::stats::Spread;
use apus_testbed::error::Error;

/// What both sides of some pairs saw.
pub(super) struct Taken {
    pub(super) clients: Vec<Side>,
    pub(super) servers: Vec<Side>,
}

/// What one run has found: by size or number first, then by contender; `None` if one sat out.
pub(super) struct Run {
    pub(super) sizes: Vec<Vec<Option<Figures>>>,
    pub(super) workers: Vec<Vec<Option<Figures>>>,
    pub(super) clients: Vec<Vec<Option<Figures>>>,
}

/// What was measured of one contender in one phase of one run, by name.
pub(super) struct Figures(Vec<(&'static str, f64)>);

impl Figures {
    /// At one size: from the side that asked one by one, the one that asked many at a time, and what the server of
    /// large messages received.
    pub(super) fn at_size(one: &Side, many: &Side, large: Option<&Side>) -> Self {
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let mut figures = vec![
            ("p50_us", micros(one.latency.p50)),
            ("p99_us", micros(one.latency.p99)),
            ("krps", thousands(many)),
        ];
        let gbps = |server: &Side| server.bytes as f64 * 8.0 / server.elapsed as f64;
        figures.extend(large.map(|server| ("gbps", gbps(server))));
        Self(figures)
    }

    /// From tasks with both ends of a connection, and clients of ping-pongs.
    pub(super) fn of_workers(alone: &[Side], clients: &[Side]) -> Self {
        Self(vec![("kops", total(alone)), ("krps", total(clients))])
    }

    /// From clients of the same server.
    pub(super) fn of_clients(clients: &[Side]) -> Self {
        let worst = clients.iter().map(|client| client.latency.p99).max().unwrap_or_default();
        let rates: Vec<f64> = clients.iter().map(thousands).collect();
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        Self(vec![
            ("krps", total(clients)),
            ("p99_us", worst as f64 / 1e3),
            ("least_by_most", least / most),
        ])
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(figure, _)| *figure == name).map(|(_, value)| *value)
    }
}

/// Returns the thousands of messages a second.
fn thousands(side: &Side) -> f64 {
    side.messages as f64 / side.elapsed as f64 * 1e6
}

fn total(sides: &[Side]) -> f64 {
    sides.iter().map(thousands).sum()
}

/// A row, or a column of a table: contenders by their indices, of which the better one counts, figure by figure.
pub(super) struct Line {
    pub(super) name: &'static str,
    of: Vec<usize>,
}

/// Returns one line for each contender, and one for the better kind of unix socket.
fn lines(entrants: &[Entrant]) -> Vec<Line> {
    let each = entrants.iter().enumerate();
    let mut lines: Vec<Line> = each
        .clone()
        .map(|(index, entrant)| Line { name: entrant.name(), of: vec![index] })
        .collect();
    let kinds = each.filter(|(_, entrant)| KINDS.contains(entrant)).map(|(index, _)| index);
    let kinds: Vec<usize> = kinds.collect();
    if let Some(&first) = kinds.first() {
        lines.insert(first, Line { name: UNIX, of: kinds });
    }
    lines
}

/// All measurements, as rows, ratios and tables read them.
pub(super) struct Seen<'a> {
    pub(super) options: &'a Options,
    pub(super) lines: Vec<Line>,
    /// Numbers of workers and of clients.
    pub(super) counts: (&'a [usize], &'a [usize]),
    runs: &'a [Run],
}

impl Seen<'_> {
    /// Returns a figure of a line at the size with that index, one value per run; `None` if no contender of the line took
    /// part.
    pub(super) fn at_size(&self, size: usize, line: &Line, name: &str) -> Option<Vec<f64>> {
        self.series(line, name, |run| &run.sizes[size])
    }

    /// Returns a figure of a line with the number of workers at that index.
    pub(super) fn of_workers(&self, count: usize, line: &Line, name: &str) -> Option<Vec<f64>> {
        self.series(line, name, |run| &run.workers[count])
    }

    /// Returns a figure of a line with the number of clients at that index.
    pub(super) fn of_clients(&self, count: usize, line: &Line, name: &str) -> Option<Vec<f64>> {
        self.series(line, name, |run| &run.clients[count])
    }

    fn series(
        &self,
        line: &Line,
        name: &str,
        of: impl Fn(&Run) -> &Vec<Option<Figures>>,
    ) -> Option<Vec<f64>> {
        let better = if is_time(name) { f64::min } else { f64::max };
        let value = |run: &Run| {
            let each = line.of.iter().filter_map(|index| of(run)[*index].as_ref()?.get(name));
            each.reduce(better)
        };
        self.runs.iter().map(value).collect()
    }

    /// Returns the figure that rows and ratios show, of that name.
    fn main(&self, line: &Line, name: &str) -> Option<Vec<f64>> {
        match name {
            "gbps" => self.at_size(self.largest()?, line, name),
            "kops" => self.of_workers(self.counts.0.len().checked_sub(1)?, line, name),
            name => self.at_size(0, line, name),
        }
    }

    /// Returns the index of the largest size, if it is large.
    fn largest(&self) -> Option<usize> {
        let sizes = self.options.sizes.iter().enumerate();
        let large = sizes.filter(|(_, size)| Options::is_large(**size));
        large.max_by_key(|(_, size)| **size).map(|(index, _)| index)
    }
}

/// Returns whether less is better.
fn is_time(figure: &str) -> bool {
    figure.ends_with("_us")
}

/// Figures of a row that all runs have a value for.
const FIGURES: [&str; 5] = ["p50_us", "p99_us", "krps", "gbps", "kops"];

/// Figures that are compared, by their names in ratios.
const COMPARED: [(&str, &str); 4] =
    [("p50", "p50_us"), ("krps", "krps"), ("gbps", "gbps"), ("kops", "kops")];

/// Puts the result together.
pub(super) fn findings(
    options: &Options,
    entrants: &[Entrant],
    counts: (&[usize], &[usize]),
    runs: &[Run],
    notes: Vec<String>,
) -> Result<Findings, Error> {
    let seen = &Seen { options, lines: lines(entrants), counts, runs };
    let mut outcome = Outcome::new("local", options.config());
    outcome.config.insert("settings".to_owned(), settings(entrants));
    outcome.notes = notes;
    for line in &seen.lines {
        outcome.rows.push(row(seen, line)?);
    }
    outcome.notes.extend(which_kind(seen));
    outcome.ratios = ratios(seen);
    let lead = "Processes of one host exchange messages through the endpoints' shared memory, through unix sockets and over \
                loopback. p50 and p99 are of one request at a time, krps of many; gbps is of large messages.";
    Ok(Findings::new(outcome, "What do messages between processes of one host cost?", lead)
        .with_all(Vec::new(), Vec::new(), tables(seen)))
}

/// Returns how each contender is set up.
fn settings(entrants: &[Entrant]) -> Value {
    let of = |entrant: &Entrant| entrant.contender(Calls::OneByOne).settings();
    let pairs = entrants.iter().map(|entrant| (entrant.name().to_owned(), json!(of(entrant))));
    let mut settings: Map<_, _> = pairs.collect();
    if KINDS.iter().any(|kind| entrants.contains(kind)) {
        let words = KINDS.map(Entrant::name).join(" and ");
        let words = format!("the faster one of {words}, figure by figure in each run");
        settings.insert(UNIX.to_owned(), json!(words));
    }
    Value::Object(settings)
}

/// Returns which kind of unix socket the figures of their common row come from.
fn which_kind(seen: &Seen<'_>) -> Option<String> {
    let unix = seen.lines.iter().find(|line| line.of.len() > 1)?;
    let kinds =
        seen.lines.iter().filter(|line| line.of.len() == 1 && unix.of.contains(&line.of[0]));
    let best = |figure: &str| {
        let median = |line: &Line| Some(Spread::over(&seen.main(line, figure)?).median);
        let sign = if is_time(figure) { -1.0 } else { 1.0 };
        let each = kinds.clone().filter_map(|kind| Some((sign * median(kind)?, kind.name)));
        let (_, name) = each.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(format!("{figure} of {name}"))
    };
    let found: Vec<String> = FIGURES.iter().filter_map(|figure| best(figure)).collect();
    Some(format!("{UNIX} is the faster kind in each run, mostly: {}", found.join(", ")))
}

fn row(seen: &Seen<'_>, line: &Line) -> Result<Row, Error> {
    let name = line.name;
    let mut row = Row::new(name);
    for figure in FIGURES {
        let Some(values) = seen.main(line, figure) else { continue };
        if values.iter().any(|value| !value.is_finite()) {
            let problem = format!("{name} completed nothing in the time that counts; try 1");
            return Err(Error::Option { option: "seconds", problem });
        }
        row = row.with(figure, Figure::Spread(Spread::over(&values)));
    }
    let by_size = details("size", &seen.options.sizes, &["p50_us", "p99_us", "krps", "gbps"], {
        |index, figure| seen.at_size(index, line, figure)
    });
    let workers = details("n", seen.counts.0, &["kops", "krps"], |index, figure| {
        seen.of_workers(index, line, figure)
    });
    let clients = details("n", seen.counts.1, &["krps", "p99_us", "least_by_most"], {
        |index, figure| seen.of_clients(index, line, figure)
    });
    let named = [("by_size", by_size), ("workers", workers), ("clients", clients)];
    let named = named.into_iter().filter(|(_, list)| !list.is_empty());
    Ok(named.fold(row, |row, (name, list)| row.with(name, Figure::Detail(json!(list)))))
}

/// Returns one object for each size, or number: its figures, each with the least and the greatest value.
fn details(
    key: &str,
    keys: &[usize],
    figures: &[&str],
    values: impl Fn(usize, &str) -> Option<Vec<f64>>,
) -> Vec<Value> {
    let object = |(index, value): (usize, &usize)| {
        let mut object = Map::from_iter([(key.to_owned(), json!(value))]);
        for figure in figures {
            let Some(values) = values(index, figure) else { continue };
            let Spread { median, min, max } = Spread::over(&values);
            object.insert((*figure).to_owned(), json!(rounded(median)));
            object.insert(format!("{figure}_min"), json!(rounded(min)));
            object.insert(format!("{figure}_max"), json!(rounded(max)));
        }
        (object.len() > 1).then_some(Value::Object(object))
    };
    keys.iter().enumerate().filter_map(object).collect()
}

/// Returns what apus is to each other one.
fn ratios(seen: &Seen<'_>) -> Vec<(String, Ratio)> {
    let ours = Entrant::Local.name();
    let Some(apus) = seen.lines.iter().find(|line| line.name == ours) else {
        return Vec::new();
    };
    let mut ratios = Vec::new();
    for (short, figure) in COMPARED {
        for other in seen.lines.iter().filter(|line| line.name != ours) {
            let both = seen.main(apus, figure).zip(seen.main(other, figure));
            let ratio = both.and_then(|(ours, theirs)| Ratio::over(&ours, &theirs));
            let name = format!("{short} {ours}/{}", other.name);
            ratios.extend(ratio.map(|ratio| (name, ratio)));
        }
    }
    ratios
}
