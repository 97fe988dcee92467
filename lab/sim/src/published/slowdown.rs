//! Slowdown of messages in the paper.
//!
//! Figures 12 (p99) and 13 (median) of SIGCOMM 2018, from their raw data (docs/reference/papers.md,
//! *Slowdown by message size*). Measured with 144 hosts, 9 racks, 4 spines, links of 10 and 40
//! Gbit/s: [`crate::topology`] with the preset of the paper.
//!
//! Differences to the results of this simulator:
//!
//! - A point is the slowdown of the *one* size that ends a percentile of the messages; a bin of
//!   this simulator has all sizes since the previous percentile.
//! - In the paper's simulator the best time of two hosts in one rack lacks the switch's 0.25 µs, so
//!   that a tenth of its short messages seem up to 15 % slower than they would here.
//! - SRPT-Oracle does not pad to minimum frames, but its best time does: short messages have less
//!   than 1.
//! - Sizes above 1,000 and slowdowns above 10 are rounded to three or two digits, as in the source.

use std::sync::LazyLock;

use apus_workload::csv_table;
use serde::Deserialize;

use super::scheme::{Scheme, same_workload};

/// A message size, and the share of the messages that are not longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizePercentile {
    /// Messages that are not longer, in per cent of all.
    pub percent: u32,
    /// The size, in bytes.
    pub bytes: u32,
}

/// Slowdown of the messages of one size; a point of a curve in the paper's figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowdownPoint {
    /// Messages that are not longer, in per cent of all: the figures' x axis.
    pub percent: u32,
    /// The size, in bytes.
    pub bytes: u32,
    /// Median slowdown (figure 13).
    pub median: f64,
    /// 99th percentile (figure 12).
    pub p99: f64,
}

/// Summary of a row, computed from all sizes of the raw data, while a row has points for only a few
/// sizes: a slower size between two points shows in the summary only. Homa's W4 has 2.29 here and
/// at most 2.04 in its points, because messages below 315 bytes are the slowest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Greatest p99 of a size among the smallest 50 % of the messages.
    pub small_half_p99_max: f64,
    /// Mean of the p99 of these sizes, weighted by messages.
    pub small_half_p99_mean: f64,
    /// Mean slowdown, weighted by messages.
    pub mean_by_messages: f64,
    /// Mean slowdown, weighted by bytes.
    ///
    /// SRPT-Oracle's 1.11 for W2 contradicts the points of its row: half of the bytes are in
    /// messages of 931 bytes and more, whose medians rise from 1.26 to 4.61, so that the mean
    /// cannot be below 1.2. Do not compare with it.
    pub mean_by_bytes: f64,
}

/// Measurements of the paper for a transport.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The transport.
    pub scheme: Scheme,
    /// Summary over all sizes.
    pub summary: Summary,
    points: Vec<SlowdownPoint>,
}

impl Row {
    /// Returns its points, smallest messages first.
    pub fn points(&self) -> impl ExactSizeIterator<Item = SlowdownPoint> + '_ {
        self.points.iter().copied()
    }

    /// Returns the point of the size that ends a percentile: 10, 20, ... 90, 95, 99 or 100.
    #[must_use]
    pub fn closing(&self, percent: u32) -> Option<SlowdownPoint> {
        self.points().find(|point| point.percent == percent)
    }

    /// Returns the point of the longest messages.
    ///
    /// # Panics
    ///
    /// Never.
    #[must_use]
    pub fn longest(&self) -> SlowdownPoint {
        self.points().last().expect("twelve points")
    }
}

/// Measurements of the paper with a workload at a load: one plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the workload, like `w4`.
    pub workload: String,
    /// Share of time that the hosts' links are busy, headers and grants included.
    pub load: f64,
    /// Sizes of the points.
    pub sizes: Vec<SizePercentile>,
    /// The transports, in the order of [`Scheme::ALL`]; NDP is missing.
    pub rows: Vec<Row>,
}

/// A row of `slowdown.csv`.
#[derive(Deserialize)]
struct PointRecord {
    workload: String,
    load: f64,
    scheme: Scheme,
    percent: u32,
    bytes: u32,
    median: f64,
    p99: f64,
}

/// A row of `slowdown_summary.csv`.
#[derive(Deserialize)]
struct SummaryRecord {
    workload: String,
    load: f64,
    scheme: Scheme,
    small_half_p99_max: f64,
    small_half_p99_mean: f64,
    mean_by_messages: f64,
    mean_by_bytes: f64,
}

static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let points: Vec<PointRecord> = csv_table::rows(include_str!("slowdown.csv"));
    let mut figures: Vec<Figure> = Vec::new();
    for record in csv_table::rows::<SummaryRecord>(include_str!("slowdown_summary.csv")) {
        let row = row(&record, &points);
        match figures.last_mut() {
            Some(figure) if figure.workload == record.workload && figure.load == record.load => {
                figure.rows.push(row);
            }
            _ => {
                let size = |point: SlowdownPoint| SizePercentile {
                    percent: point.percent,
                    bytes: point.bytes,
                };
                let sizes = row.points().map(size).collect();
                let SummaryRecord { workload, load, .. } = record;
                figures.push(Figure { workload, load, sizes, rows: vec![row] });
            }
        }
    }
    figures
});

/// Joins a summary with its points.
fn row(summary: &SummaryRecord, points: &[PointRecord]) -> Row {
    let of_row = points.iter().filter(|point| {
        point.workload == summary.workload
            && point.load == summary.load
            && point.scheme == summary.scheme
    });
    let point = |record: &PointRecord| SlowdownPoint {
        percent: record.percent,
        bytes: record.bytes,
        median: record.median,
        p99: record.p99,
    };
    Row {
        scheme: summary.scheme,
        summary: Summary {
            small_half_p99_max: summary.small_half_p99_max,
            small_half_p99_mean: summary.small_half_p99_mean,
            mean_by_messages: summary.mean_by_messages,
            mean_by_bytes: summary.mean_by_bytes,
        },
        points: of_row.map(point).collect(),
    }
}

/// Returns all figures with reliable digits.
#[must_use]
pub fn figures() -> &'static [Figure] {
    &FIGURES
}

/// Returns the figure for a workload at a load, 0.8 for 80 %.
#[must_use]
pub fn figure(workload: &str, load: f64) -> Option<&'static Figure> {
    let same = |figure: &&Figure| {
        same_workload(&figure.workload, workload) && (figure.load - load).abs() < 1e-6
    };
    figures().iter().find(same)
}

/// Returns the row of a transport for a workload at a load, 0.8 for 80 %.
#[must_use]
pub fn slowdown(workload: &str, load: f64, scheme: Scheme) -> Option<&'static Row> {
    figure(workload, load)?.rows.iter().find(|row| row.scheme == scheme)
}
