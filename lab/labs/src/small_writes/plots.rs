//! Charts of times and packets.

use super::cut::CapturedEvent;
use super::measurements::{Measured, PER_THOUSAND};
use super::variant::Carrier;
use apus_report::chart::{
    Arrow, Axis, Bar, Bars, Group, Plot, Sequence, Sequences, Stroke, short_number,
};
use apus_report::result::table::spread_in_words;
use apus_report::stats::Spread;

/// Returns all plots.
pub(super) fn plots(measured: &[Measured]) -> Vec<Plot> {
    let mut plots = vec![times(measured)];
    plots.extend(DRAWINGS.iter().filter_map(|drawing| drawing.plot(measured)));
    plots
}

/// Returns the plot of milliseconds per thousand exchanges.
fn times(measured: &[Measured]) -> Plot {
    let spread = |each: &Measured| each.runs.spread(PER_THOUSAND).expect("at least one run");
    let group = |each: &Measured| {
        let spread = spread(each);
        let (name, colour) = match each.variant.carrier {
            Carrier::Apus => ("apus", 0),
            Carrier::Tcp => ("tcp", 1),
        };
        let range = (each.runs.len() > 1).then_some((spread.min, spread.max));
        let says = format!("{} ms", spread_in_words(&spread));
        let bar = Bar { range, ..Bar::value(name, colour, spread.median, says) };
        // The colour shows the transport; labels have little room.
        let label = each.variant.name.trim_start_matches(&format!("{name} ")).replace('+', " +");
        Group { label, bars: vec![bar] }
    };
    let values = measured.iter().flat_map(|each| {
        let Spread { median, min, max } = spread(each);
        // The axis starts below the least value, which would have no bar otherwise.
        [0.5 * min, median, max]
    });
    let values: Vec<f64> = values.collect();
    let y = Axis::logarithmic(
        "milliseconds per thousand exchanges",
        values.iter().copied(),
        short_number,
    );
    let title = "A thousand exchanges of 64 bytes";
    let caption = "Bars are medians over the runs, whiskers span the runs. If a thousand exchanges take too long, fewer were \
                   timed and scaled to a thousand.";
    let groups = measured.iter().map(group).collect();
    let bars = Bars { description: title, label: "variant", y, groups, stacked: false };
    Plot::of_bars("small-writes", title, caption, &bars)
}

/// Variants whose exchanges are drawn side by side.
struct Drawing {
    name: &'static str,
    title: &'static str,
    variants: &'static [&'static str],
}

const DRAWINGS: [Drawing; 4] = [
    Drawing {
        name: "failure",
        title: "An exchange, packet by packet: whole, in two pieces, and read in two pieces",
        variants: &["tcp whole", "tcp split", "tcp both split"],
    },
    Drawing {
        name: "cures",
        title: "Two pieces that do not wait: sent at once, or in one segment",
        variants: &["tcp split+nodelay", "tcp split+more", "tcp gather"],
    },
    Drawing {
        name: "more-cures",
        title: "The socket corked, quick acknowledgements, and a whole command read in pieces",
        variants: &["tcp split+cork", "tcp split+quickack", "tcp receive split"],
    },
    Drawing {
        name: "apus",
        title: "An exchange over apus: whole, as two slices, and also read in pieces",
        variants: &["apus whole", "apus split", "apus both split"],
    },
];

impl Drawing {
    /// Returns the drawing; `None` if no packet of these variants was captured.
    fn plot(&self, measured: &[Measured]) -> Option<Plot> {
        let Self { name, title, variants } = self;
        let find = |name: &&str| measured.iter().find(|each| each.variant.name == *name);
        let seen = |each: &Measured| {
            let anatomy = each.anatomy.as_ref().ok()?;
            let arrows = anatomy.typical.iter().map(arrow).collect();
            Some(Sequence { title: each.variant.name.to_owned(), arrows })
        };
        let exchanges: Vec<Sequence> = variants.iter().filter_map(find).filter_map(seen).collect();
        if exchanges.is_empty() {
            return None;
        }
        let caption = "Each arrow is a captured packet, with its time since the start of the exchange; each variant is shown \
                       by an exchange of median duration. Distances show the order of packets, not their times.";
        let sides = ["client", "server"];
        let drawing = Sequences { description: title, sides, exchanges };
        let name = format!("small-writes-{name}");
        Some(Plot::of_sequences(&name, title, caption, &drawing))
    }
}

fn arrow(event: &CapturedEvent) -> Arrow {
    let (name, colour, stroke) = match (event.bytes, event.from_client) {
        (0, _) => ("without payload", 1, Stroke::Faint),
        (_, true) => ("command", 0, Stroke::Plain),
        (_, false) => ("reply", 2, Stroke::Plain),
    };
    let (forth, label) = (event.from_client, event.says.clone());
    Arrow { at: event.at as f64 / 1e3, forth, label, name, colour, stroke }
}

#[cfg(test)]
mod tests {
    use super::super::declaration::sample_findings::all;
    use super::*;
    use crate::small_writes::variant::Variant;

    #[test]
    fn every_variant_has_a_bar_and_most_have_a_drawing() {
        let plots = plots(&all());
        let names: Vec<&str> = plots.iter().map(|plot| &plot.name[..]).collect();
        let expected = ["", "-failure", "-cures", "-more-cures", "-apus"]
            .map(|it| format!("small-writes{it}"));
        assert_eq!(names, expected);
        assert_eq!(plots[0].svg.matches("<rect ").count(), Variant::ALL.len());
        let failure = &plots[1].svg;
        assert!(failure.contains("⋮ 44 ms ⋮") && failure.contains(">60 bytes</text>"), "{failure}");
        let drawn = DRAWINGS.iter().flat_map(|drawing| drawing.variants);
        assert!(drawn.clone().all(|name| Variant::named(name).is_some()), "names of variants");
        assert_eq!(drawn.count(), 12);
    }

    #[test]
    fn packets_that_were_not_captured_are_not_drawn() {
        let mut measured = all();
        measured.iter_mut().for_each(|each| each.anatomy = Err(String::new()));
        assert_eq!(plots(&measured).len(), 1);
    }
}
