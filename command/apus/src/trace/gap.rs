//! The length of gaps, as an argument in microseconds.

/// Parses a time from 0 to an hour, in microseconds.
///
/// # Errors
///
/// The text is not such a time.
pub(super) fn parse_micros(text: &str) -> Result<f64, String> {
    let micros = text.parse().ok().filter(|micros: &f64| (0.0..=3.6e9).contains(micros));
    micros.ok_or_else(|| "a gap is 0 to 3600000000 microseconds; try 50".to_owned())
}

/// Converts microseconds to nanoseconds.
pub(super) fn nanos(micros: f64) -> i64 {
    (micros * 1e3).round() as i64
}
