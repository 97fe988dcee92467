//! The result of the local experiment: rows and ratios over all runs.

use serde_json::{Map, Value, json};

use super::entrant::{Entrant, KINDS, UNIX};
use super::options::LocalOptions;
use super::series::{Line, Measurements, Run, Values, is_time, lines, spread};
use super::tables::tables;
use apus_measure::exchange::Calls;
use apus_report::findings::Findings;
use apus_report::result::{Figure, Outcome, Ratio, Row, rounded};
use apus_report::stats::Spread;

/// Figures of a row that all runs have a value for.
const FIGURES: [&str; 5] = ["p50_us", "p99_us", "krps", "gbps", "kops"];

/// Compared figures, with their names in ratios.
const COMPARED: [(&str, &str); 4] =
    [("p50", "p50_us"), ("krps", "krps"), ("gbps", "gbps"), ("kops", "kops")];

/// Puts the result together.
pub(super) fn findings(
    options: &LocalOptions,
    entrants: &[Entrant],
    counts: (&[usize], &[usize]),
    runs: &[Run],
    notes: Vec<String>,
) -> Findings {
    let measured = &Measurements { options, lines: lines(entrants), counts, runs };
    let mut outcome = Outcome::new("local", options.config());
    outcome.config.insert("settings".to_owned(), settings(entrants));
    outcome.notes = notes;
    outcome.rows = measured.lines.iter().filter_map(|line| row(measured, line)).collect();
    outcome.notes.extend(which_kind(measured));
    outcome.ratios = ratios(measured);
    let lead = "Processes of one host exchange messages through the endpoints' shared memory, through unix sockets and over \
                loopback. p50 and p99 are of one request at a time, krps of many; gbps is of large messages.";
    Findings::new(outcome, "What do messages between processes of one host cost?", lead).with_all(
        Vec::new(),
        Vec::new(),
        tables(measured),
    )
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

/// Returns the note that names the kind of unix socket behind each figure of the common row.
fn which_kind(measured: &Measurements<'_>) -> Option<String> {
    let unix = measured.lines.iter().find(|line| line.of.len() > 1)?;
    let kinds =
        measured.lines.iter().filter(|line| line.of.len() == 1 && unix.of.contains(&line.of[0]));
    let best = |figure: &str| {
        let median = |line: &Line| Some(spread(&measured.main(line, figure)?).median);
        let sign = if is_time(figure) { -1.0 } else { 1.0 };
        let each = kinds.clone().filter_map(|kind| Some((sign * median(kind)?, kind.name)));
        let (_, name) = each.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        Some(format!("{figure} of {name}"))
    };
    let found: Vec<String> = FIGURES.iter().filter_map(|figure| best(figure)).collect();
    Some(format!("{UNIX} is the faster kind in each run, mostly: {}", found.join(", ")))
}

/// Returns the row of a line; `None` if all its measurements were lost.
fn row(measured: &Measurements<'_>, line: &Line) -> Option<Row> {
    let mut row = Row::new(line.name);
    for figure in FIGURES {
        let Some(values) = measured.main(line, figure) else { continue };
        row = row.with(figure, Figure::Spread(spread(&values)));
    }
    let by_size =
        details("size", &measured.options.sizes, &["p50_us", "p99_us", "krps", "gbps"], {
            |index, figure| measured.at_size(index, line, figure)
        });
    let workers = details("n", measured.counts.0, &["kops", "krps"], |index, figure| {
        measured.of_workers(index, line, figure)
    });
    let clients = details("n", measured.counts.1, &["krps", "p99_us", "least_by_most"], {
        |index, figure| measured.of_clients(index, line, figure)
    });
    let named = [("by_size", by_size), ("workers", workers), ("clients", clients)];
    let named = named.into_iter().filter(|(_, list)| !list.is_empty());
    let row = named.fold(row, |row, (name, list)| row.with(name, Figure::Detail(json!(list))));
    (!row.figures.is_empty()).then_some(row)
}

/// Returns one object for each size, or number: its figures, each with minimum and maximum.
fn details(
    key: &str,
    keys: &[usize],
    figures: &[&str],
    values: impl Fn(usize, &str) -> Option<Values>,
) -> Vec<Value> {
    let object = |(index, value): (usize, &usize)| {
        let mut object = Map::from_iter([(key.to_owned(), json!(value))]);
        for figure in figures {
            let Some(values) = values(index, figure) else { continue };
            let Spread { median, min, max } = spread(&values);
            object.insert((*figure).to_owned(), json!(rounded(median)));
            object.insert(format!("{figure}_min"), json!(rounded(min)));
            object.insert(format!("{figure}_max"), json!(rounded(max)));
        }
        (object.len() > 1).then_some(Value::Object(object))
    };
    keys.iter().enumerate().filter_map(object).collect()
}

/// Returns the ratios of apus to each other contender.
fn ratios(measured: &Measurements<'_>) -> Vec<(String, Ratio)> {
    let ours = Entrant::Local.name();
    let Some(apus) = measured.lines.iter().find(|line| line.name == ours) else {
        return Vec::new();
    };
    let mut ratios = Vec::new();
    for (short, figure) in COMPARED {
        for other in measured.lines.iter().filter(|line| line.name != ours) {
            let both = measured.main(apus, figure).zip(measured.main(other, figure));
            let ratio = both.and_then(|(ours, theirs)| Ratio::paired(&ours, &theirs));
            let name = format!("{short} {ours}/{}", other.name);
            ratios.extend(ratio.map(|ratio| (name, ratio)));
        }
    }
    ratios
}
