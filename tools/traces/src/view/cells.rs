//! How are durations and shares written in a table?

use crate::report::Distribution;

/// Microseconds with as many digits as one can use: `0.12`, `3.46`, `118.3`, `52031`.
pub(super) fn micros(nanos: f64) -> String {
    let micros = nanos / 1e3;
    let decimals = match micros.abs() {
        value if value >= 1_000.0 => 0,
        value if value >= 100.0 => 1,
        _ => 2,
    };
    let text = format!("{micros:.decimals$}");
    // Nothing is not less than nothing.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { "0.00".to_owned() } else { text }
}

/// The same of whole nanoseconds.
pub(super) fn whole(nanos: i64) -> String {
    micros(nanos as f64)
}

/// The same of what may be unknown.
pub(super) fn known(nanos: Option<i64>) -> String {
    nanos.map_or_else(|| "-".to_owned(), whole)
}

/// `12.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `1 RPC`, `7 RPCs`.
pub(super) fn counted(count: usize, what: &str) -> String {
    let several = if count == 1 { "" } else { "s" };
    format!("{count} {what}{several}")
}

/// By how many percent something differs: `+0.52 %`.
pub(super) fn difference(percent: f64) -> String {
    // Not -0.00.
    let rounded = (percent * 100.0).round() / 100.0 + 0.0;
    format!("{rounded:+.2} %")
}

/// Those percentiles of a distribution.
pub(super) fn percentiles<'a>(
    times: &'a Distribution,
    all: &'a [f64],
) -> impl Iterator<Item = String> + 'a {
    let none = times.count() == 0;
    all.iter().map(
        move |percent| {
            if none { "-".to_owned() } else { whole(times.percentile(*percent)) }
        },
    )
}

/// Their heads.
pub(super) fn heads(all: &[f64]) -> impl Iterator<Item = String> + '_ {
    all.iter().map(|percent| match percent {
        0.0 => "min us".to_owned(),
        100.0 => "max us".to_owned(),
        percent => format!("p{percent} us"),
    })
}

/// Texts as the cells of a line.
pub(super) fn line<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_that_one_can_use() {
        let shown = [0.0, -1.0, 123.4, 3_456.0, 118_345.0, 52_031_000.0, -2_500.0].map(micros);
        assert_eq!(shown, ["0.00", "0.00", "0.12", "3.46", "118.3", "52031", "-2.50"]);
        assert_eq!([counted(1, "RPC"), counted(0, "RPC")], ["1 RPC", "0 RPCs"]);
        assert_eq!([difference(-0.001), difference(-0.52)], ["+0.00 %", "-0.52 %"]);
        assert_eq!((known(None), percent(0.125)), ("-".to_owned(), "12.5 %".to_owned()));
    }
}
