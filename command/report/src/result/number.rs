//! Digits of figures, for people and for machines.

/// Returns a value with three significant digits; whole numbers keep all digits.
#[must_use]
pub fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(3 - digits).unwrap_or(0).min(3);
    format!("{value:.decimals$}")
}

/// Returns a value with five significant digits: more than the precision of any measurement here,
/// and still readable.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    const DIGITS: i32 = 5;
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let decimals = DIGITS - 1 - value.abs().log10().floor() as i32;
    if decimals <= 0 {
        return value.round();
    }
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_three_digits() {
        let shown = [0.0, 0.01234, 1.0, 5.912, 59.12, 591.2, 59123.4].map(short);
        assert_eq!(shown, ["0.000", "0.012", "1.00", "5.91", "59.1", "591", "59123"]);
    }

    #[test]
    fn machines_read_five_digits() {
        assert_eq!(rounded(5.912_345_678), 5.9123);
        assert_eq!(rounded(0.001_234_567), 0.001_234_6);
        assert_eq!(rounded(1_234_567.8), 1_234_568.0, "whole numbers keep all digits");
        assert_eq!(rounded(-1.999_999), -2.0);
        assert_eq!(rounded(0.0), 0.0);
    }
}
