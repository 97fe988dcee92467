//! Tails under load: the cluster benchmark of apus, with the peers' programs as nodes.

use apus_bench::cluster::{self, ExternalTransport, Link, Mix, Venue};
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::{Figure, Row, Table};
use apus_testbed::error::Error;
use apus_testbed::fabric::Spec;
use serde_json::{Map, Value, json};

use crate::agent;
use crate::options::Options;
use crate::programs::Program;

/// A load whose tails are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Name in results.
    pub(crate) name: &'static str,
    /// The workload of its messages.
    pub(crate) workload: &'static str,
}

/// All of them.
pub(crate) const LOADS: [Load; 2] =
    [Load { name: "tails-w3", workload: "w3" }, Load { name: "tails-w4", workload: "w4" }];

/// Figures copied from a row of the cluster benchmark.
const FIGURES: [&str; 14] = [
    "short_p50",
    "short_p99",
    "short_p50_us",
    "short_p99_us",
    "all_p50",
    "all_p99",
    "mean_by_bytes",
    "offered_load",
    "achieved_load",
    "cpu_s_per_gb",
    "late_p99_us",
    "idle",
    "messages",
    "errors",
];

/// Columns of the table, and their titles.
const COLUMNS: [(&str, &str); 7] = [
    ("short_p50", "short, p50"),
    ("short_p99", "short, p99"),
    ("all_p50", "all, p50"),
    ("all_p99", "all, p99"),
    ("short_p99_us", "short, p99, µs"),
    ("achieved_load", "load carried"),
    ("errors", "failures"),
];

/// Settings copied from the cluster benchmark.
const SETTINGS: [&str; 12] = [
    "workload",
    "short_bytes",
    "nodes",
    "link_mbps",
    "load",
    "rate_per_node",
    "seconds",
    "runs",
    "seed",
    "client_max",
    "buffer",
    "base",
];

impl Load {
    /// Adds the rows, the table and the plots to the findings, or a note if this system cannot
    /// create a network between hosts.
    pub(crate) fn add(
        self,
        options: &Options,
        programs: &[Program],
        to: &mut Findings,
    ) -> Result<(), Error> {
        let found = match cluster::analysis(&self.options(options, programs)?, &Venue::fabric()?) {
            Ok(found) => found,
            Err(error @ Error::Option { .. }) => return Err(error),
            Err(error) => {
                let note = format!("skipped: {}: {error}", self.name);
                eprintln!("{note}");
                to.outcome.notes.push(note);
                return Ok(());
            }
        };
        let Findings { outcome, sections, .. } = found.findings();
        let table = self.table(options, &outcome.rows);
        to.outcome.rows.extend(outcome.rows.iter().map(|row| self.row(row)));
        for (ours, theirs) in pairs(programs) {
            let ratios = found.ratios(&ours.about.name, &theirs.about.name).into_iter();
            let ratios = ratios.map(|(name, ratio)| (format!("{name} {}", self.name), ratio));
            to.outcome.ratios.extend(ratios);
        }
        let notes = outcome.notes.into_iter().map(|note| format!("{}: {note}", self.name));
        to.outcome.notes.extend(notes);
        let settings: Map<String, Value> =
            outcome.config.into_iter().filter(|(name, _)| SETTINGS.contains(&&name[..])).collect();
        to.outcome.config.insert(self.name.to_owned(), Value::Object(settings));
        to.sections.push(Section::new("").with(table));
        let has_plot =
            |section: &Section| section.parts.iter().any(|it| matches!(it, Part::Plot(_)));
        for section in sections.into_iter().filter(has_plot) {
            let heading = format!("{} {}", self.name, section.heading).trim().to_owned();
            to.sections.push(Section { heading, ..section }.on_page());
        }
        Ok(())
    }

    /// Returns the options of the cluster benchmark.
    fn options(self, options: &Options, programs: &[Program]) -> Result<cluster::Options, Error> {
        let mut cluster = cluster::Options::default();
        cluster.workload = self.workload.to_owned();
        cluster.load = options.load;
        cluster.link = Link::Rate(options.link);
        cluster.fabric = Spec { nodes: options.nodes, ..cluster.fabric };
        cluster.repetition.runs = options.runs;
        cluster.repetition.seconds = options.tail_seconds;
        let longest = cluster.truncate as usize;
        let takes_part = |program: &&Program| {
            let about = &program.about;
            about.is_node && about.longest.is_none_or(|bytes| bytes >= longest)
        };
        let programs: Vec<&Program> = programs.iter().filter(takes_part).collect();
        cluster.transports = programs.iter().map(|it| Mix::alone(&it.about.name)).collect();
        let others = programs.iter().filter(|it| agent::own(&it.about.name).is_none());
        let external = |program: &&Program| {
            let (name, settings) = (program.about.name.clone(), program.about.settings.clone());
            ExternalTransport { name, program: program.path.clone(), settings }
        };
        cluster.external = others.map(external).collect();
        cluster.check().map(|()| cluster)
    }

    /// Returns a row with the name of this load.
    fn row(self, of: &Row) -> Row {
        let mut row = Row { figures: Vec::new(), ..of.clone() };
        row = row.with("work", Figure::Detail(json!(self.name)));
        let kept =
            of.figures.iter().filter(|(name, _)| FIGURES.contains(&&name[..]) || name == "phases");
        row.figures.extend(kept.cloned());
        row
    }

    /// Returns the table.
    fn table(self, options: &Options, rows: &[Row]) -> Table {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        let mut table = apus_report::result::table::rows(rows, &names);
        table.title = format!(
            "{}: slowdown of {} at {} % load between {} hosts, links of {}",
            self.name,
            self.workload.to_uppercase(),
            options.load * 100.0,
            options.nodes,
            apus_workload::units::format_rate(options.link)
        );
        for (title, (_, words)) in table.header[1..].iter_mut().zip(COLUMNS) {
            words.clone_into(title);
        }
        table
    }
}

/// Returns pairs of an apus program and a peer compared with it.
fn pairs(programs: &[Program]) -> impl Iterator<Item = (&Program, &Program)> {
    programs.iter().filter_map(|theirs| {
        let ours = programs.iter().find(|ours| ours.is_beside(theirs))?;
        Some((ours, theirs))
    })
}
