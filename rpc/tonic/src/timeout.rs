//! The header `grpc-timeout`.

use std::time::Duration;

/// Name of the header.
pub(crate) const GRPC_TIMEOUT: &str = "grpc-timeout";

/// Parses a timeout: up to eight digits and a unit.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// Formats a timeout in the finest unit with room for it, rounded down.
pub(crate) fn format(timeout: Duration) -> String {
    const LARGEST: u128 = 99_999_999;
    let units = [(timeout.as_nanos(), 'n'), (timeout.as_micros(), 'u'), (timeout.as_millis(), 'm')];
    for (number, unit) in units {
        if number <= LARGEST {
            return format!("{number}{unit}");
        }
    }
    match timeout.as_secs() {
        seconds if u128::from(seconds) <= LARGEST => format!("{seconds}S"),
        seconds => format!("{}H", (seconds / 3_600).min(LARGEST as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_protocol_has_them() {
        assert_eq!(parse("1H"), Some(Duration::from_secs(3_600)));
        assert_eq!(parse("2M"), Some(Duration::from_secs(120)));
        assert_eq!(parse("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse("100m"), Some(Duration::from_millis(100)));
        assert_eq!(parse("7u"), Some(Duration::from_micros(7)));
        assert_eq!(parse("0n"), Some(Duration::ZERO));
        for wrong in ["", "1", "S", "1s", "123456789S", "-1S", "1.5S", "1 S", "1\u{e9}"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_never_longer() {
        for nanos in [0, 1, 99_999_999, 123_456_789, 123_456_789_012, u64::MAX] {
            let timeout = Duration::from_nanos(nanos);
            let read = parse(&format(timeout)).unwrap();
            assert!(read <= timeout && timeout - read <= timeout / 1_000, "{timeout:?} {read:?}");
        }
    }
}
