//! Table cells: durations, shares and counts as text.

use crate::report::Distribution;

/// Formats microseconds with up to three significant decimals: `0.12`, `3.46`, `118.3`, `52031`.
pub(super) fn format_micros(nanos: f64) -> String {
    let micros = nanos / 1e3;
    let decimals = match micros.abs() {
        value if value >= 1_000.0 => 0,
        value if value >= 100.0 => 1,
        _ => 2,
    };
    let text = format!("{micros:.decimals$}");
    // Avoids -0.00.
    if text.trim_start_matches(['-', '0', '.']).is_empty() { "0.00".to_owned() } else { text }
}

/// Formats whole nanoseconds as microseconds.
pub(super) fn format_nanos(nanos: i64) -> String {
    format_micros(nanos as f64)
}

/// Formats nanoseconds as microseconds; `-` if they are unknown.
pub(super) fn format_optional(nanos: Option<i64>) -> String {
    nanos.map_or_else(|| "-".to_owned(), format_nanos)
}

/// Formats a share as a percentage: `12.5 %`.
pub(super) fn format_percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a count with its noun: `1 RPC`, `7 RPCs`.
pub(super) fn format_count(count: usize, what: &str) -> String {
    let several = if count == 1 { "" } else { "s" };
    format!("{count} {what}{several}")
}

/// Formats a difference in percent: `+0.52 %`.
pub(super) fn difference(percent: f64) -> String {
    // Avoids -0.00.
    let rounded = (percent * 100.0).round() / 100.0 + 0.0;
    format!("{rounded:+.2} %")
}

/// Formats percentiles of a distribution; `-` if it is empty.
pub(super) fn percentiles<'a>(
    times: &'a Distribution,
    all: &'a [f64],
) -> impl Iterator<Item = String> + 'a {
    let none = times.count() == 0;
    all.iter().map(
        move |percent| {
            if none { "-".to_owned() } else { format_nanos(times.percentile(*percent)) }
        },
    )
}

/// Returns the column headers of percentiles.
pub(super) fn percentile_headers(all: &[f64]) -> impl Iterator<Item = String> + '_ {
    all.iter().map(|percent| match percent {
        0.0 => "min us".to_owned(),
        100.0 => "max us".to_owned(),
        percent => format!("p{percent} us"),
    })
}

/// Converts texts to the cells of a line.
pub(super) fn line<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_three_significant_digits() {
        let view =
            [0.0, -1.0, 123.4, 3_456.0, 118_345.0, 52_031_000.0, -2_500.0].map(format_micros);
        assert_eq!(view, ["0.00", "0.00", "0.12", "3.46", "118.3", "52031", "-2.50"]);
        assert_eq!([format_count(1, "RPC"), format_count(0, "RPC")], ["1 RPC", "0 RPCs"]);
        assert_eq!([difference(-0.001), difference(-0.52)], ["+0.00 %", "-0.52 %"]);
        assert_eq!(
            (format_optional(None), format_percent(0.125)),
            ("-".to_owned(), "12.5 %".to_owned())
        );
    }
}
