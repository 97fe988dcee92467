//! What do all runs say together?

use serde_json::{Map, Value, json};

use super::entrant::Entrant;
use super::findings::Findings;
use super::options::Options;
use crate::apus::Calls;
use crate::contender::Side;
use crate::error::Error;
use crate::result::{Figure, Outcome, Ratio, Row, rounded};
use crate::stats::Spread;

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

/// Thousands of messages a second.
fn thousands(side: &Side) -> f64 {
    side.messages as f64 / side.elapsed as f64 * 1e6
}

fn total(sides: &[Side]) -> f64 {
    sides.iter().map(thousands).sum()
}

/// What was measured, as one looks at it for a row, a ratio, a table.
pub(super) struct Seen<'a> {
    pub(super) options: &'a Options,
    pub(super) entrants: &'a [Entrant],
    /// Numbers of workers and of clients.
    pub(super) counts: (&'a [usize], &'a [usize]),
    runs: &'a [Run],
}

impl Seen<'_> {
    /// A figure of a contender at the size of that index, a value per run; `None` if it sat out.
    pub(super) fn at_size(&self, size: usize, entrant: usize, name: &str) -> Option<Vec<f64>> {
        self.series(name, |run| run.sizes[size][entrant].as_ref())
    }

    /// The same with the number of workers of that index.
    pub(super) fn of_workers(&self, count: usize, entrant: usize, name: &str) -> Option<Vec<f64>> {
        self.series(name, |run| run.workers[count][entrant].as_ref())
    }

    /// The same with the number of clients of that index.
    pub(super) fn of_clients(&self, count: usize, entrant: usize, name: &str) -> Option<Vec<f64>> {
        self.series(name, |run| run.clients[count][entrant].as_ref())
    }

    fn series(&self, name: &str, of: impl Fn(&Run) -> Option<&Figures>) -> Option<Vec<f64>> {
        self.runs.iter().map(|run| of(run)?.get(name)).collect()
    }

    /// The figure that rows and ratios show, of that name.
    fn main(&self, entrant: usize, name: &str) -> Option<Vec<f64>> {
        match name {
            "gbps" => self.at_size(self.largest()?, entrant, name),
            "kops" => self.of_workers(self.counts.0.len().checked_sub(1)?, entrant, name),
            name => self.at_size(0, entrant, name),
        }
    }

    /// The index of the largest size, if it is large.
    fn largest(&self) -> Option<usize> {
        let sizes = self.options.sizes.iter().enumerate();
        let large = sizes.filter(|(_, size)| Options::is_large(**size));
        large.max_by_key(|(_, size)| **size).map(|(index, _)| index)
    }
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
    let seen = &Seen { options, entrants, counts, runs };
    let mut outcome = Outcome::new("local", options.config());
    outcome.config.insert("settings".to_owned(), settings(entrants));
    outcome.notes = notes;
    for (index, entrant) in entrants.iter().enumerate() {
        outcome.rows.push(row(seen, index, entrant.name())?);
    }
    outcome.ratios = ratios(seen);
    Ok(Findings { tables: super::findings::tables(seen), outcome })
}

/// How each contender is set up.
fn settings(entrants: &[Entrant]) -> Value {
    let pairs = entrants.iter().map(|entrant| {
        let settings = entrant.contender(Calls::OneByOne).settings();
        (entrant.name().to_owned(), json!(settings))
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn row(seen: &Seen<'_>, entrant: usize, name: &str) -> Result<Row, Error> {
    let mut row = Row::new(name);
    for figure in FIGURES {
        let Some(values) = seen.main(entrant, figure) else { continue };
        if values.iter().any(|value| !value.is_finite()) {
            let problem = format!("{name} completed nothing in the time that counts; try 1");
            return Err(Error::Option { option: "seconds", problem });
        }
        row = row.with(figure, Figure::Spread(Spread::over(&values)));
    }
    let by_size = details("size", &seen.options.sizes, &["p50_us", "p99_us", "krps", "gbps"], {
        |index, figure| seen.at_size(index, entrant, figure)
    });
    let workers = details("n", seen.counts.0, &["kops", "krps"], |index, figure| {
        seen.of_workers(index, entrant, figure)
    });
    let clients = details("n", seen.counts.1, &["krps", "p99_us", "least_by_most"], {
        |index, figure| seen.of_clients(index, entrant, figure)
    });
    let named = [("by_size", by_size), ("workers", workers), ("clients", clients)];
    let named = named.into_iter().filter(|(_, list)| !list.is_empty());
    Ok(named.fold(row, |row, (name, list)| row.with(name, Figure::Detail(json!(list)))))
}

/// One object for each size, or number: its figures, each with the least and the greatest value.
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

/// What the first contender, apus, is to each other one.
fn ratios(seen: &Seen<'_>) -> Vec<(String, Ratio)> {
    let Some(apus) = seen.entrants.iter().position(|entrant| *entrant == Entrant::Local) else {
        return Vec::new();
    };
    let mut ratios = Vec::new();
    for (short, figure) in COMPARED {
        for (index, entrant) in seen.entrants.iter().enumerate().filter(|(index, _)| *index != apus)
        {
            let both = seen.main(apus, figure).zip(seen.main(index, figure));
            let ratio = both.and_then(|(ours, theirs)| Ratio::over(&ours, &theirs));
            let name = format!("{short} {}/{}", Entrant::Local.name(), entrant.name());
            ratios.extend(ratio.map(|ratio| (name, ratio)));
        }
    }
    ratios
}
