//! Parsers for rates, times and byte counts with units: `10gbit`, `250ns`, `150kB`.

use crate::time::{MICROSECOND, MILLISECOND, Nanos, Rate, SECOND};

/// Longest accepted time: no fixed delay of a fabric exceeds a second.
const LONGEST: Nanos = SECOND;

/// Parses a rate: `10gbit`, `200mbit`; without a unit, Mbit/s.
///
/// # Errors
///
/// The text is not a rate from 1 Mbit/s to 8 Tbit/s.
pub fn rate(text: &str) -> Result<Rate, String> {
    let units = [("gbit", 1_000.0), ("mbit", 1.0), ("", 1.0)];
    let mbps = quantity(text, &units).filter(|mbps| (1.0..=8e6).contains(mbps));
    let rate = mbps.and_then(|mbps| Rate::from_mbps(mbps.round() as u64));
    rate.ok_or_else(|| "a link carries 1mbit to 8000gbit; try 10gbit".to_owned())
}

/// Formats a rate as [`rate`] parses it.
#[must_use]
pub fn format_rate(rate: Rate) -> String {
    let mbps = rate.mbps();
    if mbps.is_multiple_of(1_000) { format!("{}gbit", mbps / 1_000) } else { format!("{mbps}mbit") }
}

/// Parses a time: `250ns`, `1.5us`, `2ms`; without a unit, nanoseconds.
///
/// # Errors
///
/// The text is not a time from 0 to 1 second.
pub fn time(text: &str) -> Result<Nanos, String> {
    let units = [
        ("ns", 1.0),
        ("us", MICROSECOND as f64),
        ("ms", MILLISECOND as f64),
        ("s", SECOND as f64),
        ("", 1.0),
    ];
    let nanos = quantity(text, &units).filter(|nanos| (0.0..=LONGEST as f64).contains(nanos));
    nanos
        .map(|nanos| nanos.round() as Nanos)
        .ok_or_else(|| "a delay is 0 to 1s; try 250ns".to_owned())
}

/// Parses a number of bytes: `150000`, `150kB`, `12MB`; k is 1000.
///
/// # Errors
///
/// The text is not a number of bytes from 0 to 10^15.
pub fn bytes(text: &str) -> Result<u64, String> {
    let units = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("B", 1.0), ("", 1.0)];
    let bytes = quantity(text, &units).filter(|bytes| (0.0..=1e15).contains(bytes));
    bytes
        .map(|bytes| bytes.round() as u64)
        .ok_or_else(|| "write bytes, like 150000 or 150kB".to_owned())
}

/// Parses a number that is followed by one of these units, in upper or lower case.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (_, factor) = units.iter().find(|(each, _)| each.eq_ignore_ascii_case(unit))?;
    let number: f64 = digits.parse().ok()?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        assert_eq!(rate("10gbit").map(Rate::mbps), Ok(10_000));
        assert_eq!(rate("2.5Gbit").map(Rate::mbps), Ok(2_500));
        assert_eq!(rate("200").map(Rate::mbps), Ok(200));
        assert_eq!((time("250ns"), time("1.5us"), time("7")), (Ok(250), Ok(1_500), Ok(7)));
        assert_eq!(
            (bytes("150kB"), bytes("9"), bytes("1.5MB")),
            (Ok(150_000), Ok(9), Ok(1_500_000))
        );
        for wrong in ["", "0", "-1gbit", "fast", "NaN", "infgbit", "1e99gbit", "10 gbit"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(time("2s").is_err() && time("-1ns").is_err() && bytes("1e16").is_err());
    }

    #[test]
    fn a_formatted_rate_parses_to_itself() {
        for text in ["10gbit", "2500mbit"] {
            assert_eq!(rate(text).map(format_rate).as_deref(), Ok(text));
        }
    }
}
