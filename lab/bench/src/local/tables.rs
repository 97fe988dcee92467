//! Tables of the local experiment: figures by size, by workers and by clients.

use super::series::{Line, Measurements, Values, spread};
use apus_report::result::Table;
use apus_report::result::table::spread_in_words;

/// Returns one table for each figure with several values.
pub(super) fn tables(measured: &Measurements<'_>) -> Vec<Table> {
    let sizes = &measured.options.sizes;
    let (workers, clients) = measured.counts;
    let mut tables = Vec::new();
    if sizes.len() > 1 {
        for (figure, title) in [
            ("p50_us", "round trip: p50, µs, by size"),
            ("p99_us", "round trip: p99, µs, by size"),
            ("krps", "many under way: thousand messages a second, by size"),
            ("gbps", "many under way: Gbit/s, by size"),
        ] {
            let values = |index, line: &Line| measured.at_size(index, line, figure);
            tables.extend(table_of(title, "bytes", sizes, measured, values));
        }
    }
    for (figure, title) in [
        ("kops", "workers, each in one task: thousand writes and reads of a byte a second, in sum"),
        ("krps", "workers, each two tasks: thousand round trips of a byte a second, in sum"),
    ] {
        let values = |index, line: &Line| measured.of_workers(index, line, figure);
        tables.extend(table_of(title, "workers", workers, measured, values));
    }
    for (figure, title) in [
        ("krps", "clients of one server: thousand messages a second, in sum"),
        ("p99_us", "clients of one server: p99 of the one that waits longest, µs"),
        ("least_by_most", "clients of one server: messages of the slowest by those of the fastest"),
    ] {
        let values = |index, line: &Line| measured.of_clients(index, line, figure);
        tables.extend(table_of(title, "clients", clients, measured, values));
    }
    tables
}

/// Returns a table with a line for each of `keys` and a column for each contender with values;
/// `None` without values.
fn table_of(
    title: &str,
    key: &str,
    keys: &[usize],
    measured: &Measurements<'_>,
    values: impl Fn(usize, &Line) -> Option<Values>,
) -> Option<Table> {
    let has_value = |column: &&Line| (0..keys.len()).any(|at| values(at, column).is_some());
    let columns: Vec<&Line> = measured.lines.iter().filter(has_value).collect();
    let cell = |at, column: &&Line| {
        values(at, column).map_or_else(String::new, |runs| spread_in_words(&spread(&runs)))
    };
    let line = |(at, key): (usize, &usize)| {
        let cells = columns.iter().map(|column| cell(at, column));
        [key.to_string()].into_iter().chain(cells).collect()
    };
    let has_line = |at: &usize| columns.iter().any(|column| values(*at, column).is_some());
    let lines = keys.iter().enumerate().filter(|(at, _)| has_line(at)).map(line);
    let names = columns.iter().map(|column| column.name.to_owned());
    let header = [key.to_owned()].into_iter().chain(names);
    let table = Table::new(title, header, lines.collect());
    (!table.lines.is_empty()).then_some(table)
}
