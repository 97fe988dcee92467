//! Series: the figures of contenders over sizes, numbers of workers and clients, and runs.

use super::entrant::{Entrant, KINDS, UNIX};
use super::options::LocalOptions;
use apus_measure::plan::Side;
use apus_report::stats::Spread;
use apus_testbed::error::Error;

/// The observations of both sides of some pairs.
pub(super) struct Observed {
    pub(super) clients: Vec<Side>,
    pub(super) servers: Vec<Side>,
}

/// The results of one run: by size or number first, then by contender; `None` if a contender sat
/// out, or was lost.
pub(super) struct Run {
    /// Number of the run, from 0.
    pub(super) number: usize,
    pub(super) sizes: Vec<Vec<Option<Figures>>>,
    pub(super) workers: Vec<Vec<Option<Figures>>>,
    pub(super) clients: Vec<Vec<Option<Figures>>>,
}

/// The figures of one contender in one phase of one run, by name.
pub(super) struct Figures(Vec<(&'static str, f64)>);

impl Figures {
    /// Figures at one size: from the client with one request at a time, the client with many, and
    /// the server of large messages.
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

    /// Figures from tasks with both ends of a connection, and from clients of ping-pongs.
    pub(super) fn of_workers(alone: &[Side], clients: &[Side]) -> Self {
        Self(vec![("kops", total(alone)), ("krps", total(clients))])
    }

    /// Figures from clients of the same server.
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

    /// Returns the figures if each of them is a number.
    ///
    /// # Errors
    ///
    /// A side completed no message in the counting window.
    pub(super) fn checked(self, entrant: Entrant) -> Result<Self, Error> {
        if self.0.iter().all(|(_, value)| value.is_finite()) {
            return Ok(self);
        }
        let said = "completed nothing in the time that counts; try more --seconds".to_owned();
        Err(Error::Agent { agent: entrant.name().to_owned(), said })
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

/// A row, or a column of a table: indices of contenders; the better one counts, figure by figure.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) of: Vec<usize>,
}

/// Returns one line for each contender, and one for the better kind of unix socket.
pub(super) fn lines(entrants: &[Entrant]) -> Vec<Line> {
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

/// One value per run, with the number of the run.
pub(super) type Values = Vec<(usize, f64)>;

/// Returns the spread over the runs.
pub(super) fn spread(values: &[(usize, f64)]) -> Spread {
    Spread::over(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

/// All measurements, as rows, ratios and tables read them.
pub(super) struct Measurements<'a> {
    pub(super) options: &'a LocalOptions,
    pub(super) lines: Vec<Line>,
    /// Numbers of workers and of clients.
    pub(super) counts: (&'a [usize], &'a [usize]),
    pub(super) runs: &'a [Run],
}

impl Measurements<'_> {
    /// Returns a figure of a line at the size with that index: one value for each run that has the
    /// figure, with the run's number. `None` if no run has it.
    pub(super) fn at_size(&self, size: usize, line: &Line, name: &str) -> Option<Values> {
        self.series(line, name, |run| &run.sizes[size])
    }

    /// Returns a figure of a line with the number of workers at that index.
    pub(super) fn of_workers(&self, count: usize, line: &Line, name: &str) -> Option<Values> {
        self.series(line, name, |run| &run.workers[count])
    }

    /// Returns a figure of a line with the number of clients at that index.
    pub(super) fn of_clients(&self, count: usize, line: &Line, name: &str) -> Option<Values> {
        self.series(line, name, |run| &run.clients[count])
    }

    fn series(
        &self,
        line: &Line,
        name: &str,
        of: impl Fn(&Run) -> &Vec<Option<Figures>>,
    ) -> Option<Values> {
        let better = if is_time(name) { f64::min } else { f64::max };
        let value = |run: &Run| {
            let each = line.of.iter().filter_map(|index| of(run)[*index].as_ref()?.get(name));
            Some((run.number, each.reduce(better)?))
        };
        let values: Values = self.runs.iter().filter_map(value).collect();
        (!values.is_empty()).then_some(values)
    }

    /// Returns the figure that rows and ratios show, of that name.
    pub(super) fn main(&self, line: &Line, name: &str) -> Option<Values> {
        match name {
            "gbps" => self.at_size(self.largest()?, line, name),
            "kops" => self.of_workers(self.counts.0.len().checked_sub(1)?, line, name),
            name => self.at_size(0, line, name),
        }
    }

    /// Returns the index of the largest size, if it is large.
    fn largest(&self) -> Option<usize> {
        let sizes = self.options.sizes.iter().enumerate();
        let large = sizes.filter(|(_, size)| LocalOptions::is_large(**size));
        large.max_by_key(|(_, size)| **size).map(|(index, _)| index)
    }
}

/// Returns whether less is better.
pub(super) fn is_time(figure: &str) -> bool {
    figure.ends_with("_us")
}
