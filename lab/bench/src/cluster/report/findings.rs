//! The findings of a cluster.

use super::analysis::Analysis;
use super::input::Settings;
use super::{csv, kill, plots, tables};
use crate::slowdown::{self, Percentile};
use apus_report::chart::short_number;
use apus_report::findings::{Findings, Part, Section};

impl Analysis {
    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let Self { outcome, settings, curves, .. } = self;
        let ratios = (!outcome.ratios.is_empty()).then_some(Part::Ratios);
        let priorities = tables::priorities(self).map_or_else(
            || Part::Text("The switch is not ours, and was not observed.".to_owned()),
            Part::Table,
        );
        let title = "What do short messages suffer when the network is busy?";
        let findings = Findings::new(outcome.clone(), title, self.lead())
            .with_columns(&[
                "short_p50",
                "short_p99",
                "short_p99_us",
                "all_p99",
                "achieved_load",
                "errors",
            ])
            .with(Section::new("").with(slowdown::by_size(curves)).with(slowdown::cdf(curves)))
            .with(Section::new("").with_all(plots::ratios(self)).with_all(ratios))
            .with(
                Section::new("")
                    .with(slowdown::far_tail(curves))
                    .with(slowdown::table(curves, &Percentile::ALL))
                    .with_all(plots::beside(self)),
            )
            .with(Section::new("").with_all(kill::table(&self.transports).map(Part::Table)))
            .with(
                Section::new("In the switch")
                    .on_page()
                    .with_all(plots::switch(self))
                    .with(priorities),
            )
            .with(
                Section::new("What it costs")
                    .with_all(plots::machine(self))
                    .with(tables::machinery(self)),
            )
            .with(Section::new("").on_page().with(tables::runs(self)))
            .with(
                Section::new("What was measured")
                    .on_page()
                    .with(Part::Text(load(settings)))
                    .with(Part::Text(definition(settings))),
            )
            .with(best_possible(settings))
            .with(Section::contenders(outcome))
            .with(once_more(&settings.command));
        Findings {
            cards: slowdown::cards(curves),
            csv_files: csv::files(
                &[],
                &[csv::Group { first: Vec::new(), transports: &self.transports }],
            ),
            ..findings
        }
    }

    fn lead(&self) -> String {
        let Settings { workload, load, nodes, link, runs, .. } = &self.settings;
        let (load, link) = (short_number(100.0 * load), short_number(*link as f64 / 1e6));
        format!(
            "{workload} at {load} % load: {nodes} nodes, links of {link} Mbit/s. 99th percentile of the slowdown of short \
             messages, median of {runs} runs:"
        )
    }
}

/// Returns a description of the load.
fn load(settings: &Settings) -> String {
    format!(
        "Every node is client and server. Requests are due at random instants (Poisson), each to any of the other nodes, \
         whether or not earlier ones are done; {} of a node are outstanding at most, and the latency of a request that \
         waits for that includes the wait. Each is echoed. Every transport carries the same messages; they take turns, \
         another one begins each round, and every run starts with fresh hosts, processes and connections.",
        settings.client_max
    )
}

/// Returns the definition of slowdown, in words.
pub(super) fn definition(settings: &Settings) -> String {
    format!(
        "Slowdown is the time from the instant a request is due to its complete reply, divided by the best time of a \
         message of that size: {}. Short messages are the smaller half, up to {} bytes.",
        settings.base, settings.short_bytes
    )
}

fn best_possible(settings: &Settings) -> Section {
    let bound = (!settings.bound.is_empty()).then(|| Part::Listing(settings.bound.clone()));
    Section::new("The best that these links allow").with_all(bound)
}

/// Returns the command that repeats the measurement.
pub(super) fn once_more(command: &str) -> Section {
    Section::new("Once more").on_page().with(Part::Listing(vec![command.to_owned()]))
}
