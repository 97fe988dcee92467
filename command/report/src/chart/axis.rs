//! Axes: positions of values, and ticks.

/// Values with a line and a label. At least two, ascending.
pub type Ticks = Vec<(f64, String)>;

/// An axis from the first to the last tick.
#[derive(Clone, Debug)]
pub struct Axis<'a> {
    /// Meaning and unit.
    pub label: &'a str,
    /// Spacing of values.
    pub scale: Scale,
    /// Values with labels; the first and the last are the ends of the axis.
    pub ticks: Ticks,
    /// The scale that a reader can switch to, with its ticks; for vertical axes.
    pub other: Option<(Scale, Ticks)>,
}

/// The spacing of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal distances.
    Linear,
    /// Equal factors have equal distances.
    Logarithmic,
    /// Shares from 0 to below 1: 0.9, 0.99 and 0.999 have equal distances.
    Nines,
}

impl<'a> Axis<'a> {
    /// Returns an axis with one scale.
    #[must_use]
    pub const fn new(label: &'a str, scale: Scale, ticks: Ticks) -> Self {
        Self { label, scale, ticks, other: None }
    }

    /// Returns the axis with another scale that a reader can switch to.
    #[must_use]
    pub fn or(self, scale: Scale, ticks: Ticks) -> Self {
        Self { other: Some((scale, ticks)), ..self }
    }

    /// Returns a logarithmic axis that covers all `values`; a reader can switch it to a linear
    /// scale.
    #[must_use]
    pub fn logarithmic(
        label: &'a str,
        values: impl Iterator<Item = f64> + Clone,
        words: fn(f64) -> String,
    ) -> Self {
        let greatest = values.clone().filter(|value| value.is_finite()).fold(0.0, f64::max);
        Self::new(label, Scale::Logarithmic, decades(values, words))
            .or(Scale::Linear, steps(greatest, words))
    }

    /// Returns a linear axis from 0 that covers all `values`.
    #[must_use]
    pub fn linear(
        label: &'a str,
        values: impl Iterator<Item = f64>,
        words: fn(f64) -> String,
    ) -> Self {
        let greatest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        Self::new(label, Scale::Linear, steps(greatest, words))
    }

    /// Returns the scales with their ticks: the visible one, and the one to switch to.
    pub(super) fn scales(&self) -> impl Iterator<Item = (Scale, &Ticks)> {
        let other = self.other.iter().map(|(scale, ticks)| (*scale, ticks));
        [(self.scale, &self.ticks)].into_iter().chain(other)
    }

    /// Returns the position of a value between the first tick (0) and the last (1); values beyond
    /// are clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        place(self.scale, &self.ticks, value)
    }
}

/// Returns the position of a value between the first tick (0) and the last (1); values beyond are
/// clamped.
pub(super) fn place(scale: Scale, ticks: &Ticks, value: f64) -> f64 {
    let at = |value| scale.stretch(value);
    let (first, last) = (at(ticks[0].0), at(ticks[ticks.len() - 1].0));
    ((at(value) - first) / (last - first)).clamp(0.0, 1.0)
}

impl Scale {
    /// Returns the name for readers and the script.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logarithmic => "logarithmic",
            Self::Nines => "nines",
        }
    }

    /// Returns the value on a linear axis: its differences are proportional to distances.
    fn stretch(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Logarithmic => value.max(f64::MIN_POSITIVE).ln(),
            Self::Nines => -(1.0 - value).max(f64::EPSILON).ln(),
        }
    }
}

/// Returns ticks of a logarithmic axis that covers all `values`: powers of ten, with 2 and 5
/// between them if there would be few.
#[must_use]
pub fn decades(values: impl Iterator<Item = f64>, label: fn(f64) -> String) -> Ticks {
    let (mut least, mut greatest) = (f64::INFINITY, 0f64);
    for value in values.filter(|value| value.is_finite() && *value > 0.0) {
        least = least.min(value);
        greatest = greatest.max(value);
    }
    if greatest == 0.0 {
        (least, greatest) = (1.0, 10.0);
    }
    let few = greatest / least < 100.0;
    let steps: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = (least.log10().floor() as i32)..=(greatest.log10().ceil() as i32);
    let ticks: Vec<f64> =
        powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power))).collect();
    // From the last tick at or below the least value to the first tick at or above the greatest.
    let first = ticks.iter().rposition(|&tick| tick <= least).unwrap_or(0);
    let last = ticks.iter().position(|&tick| tick >= greatest).unwrap_or(ticks.len() - 1);
    let last = last.max(first + 1).min(ticks.len() - 1);
    ticks[first.min(last - 1)..=last].iter().map(|&tick| (tick, label(tick))).collect()
}

/// Returns ticks of a linear axis from 0 to at least `greatest`, at round values.
#[must_use]
pub fn steps(greatest: f64, label: fn(f64) -> String) -> Ticks {
    let greatest = if greatest.is_finite() && greatest > 0.0 { greatest } else { 1.0 };
    // Four to eight steps of 1, 2 or 5 times a power of ten.
    let power = 10f64.powf((greatest / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0].map(|each| each * power);
    let step = step.into_iter().find(|step| greatest / step <= 8.0).unwrap_or(10.0 * power);
    let count = (greatest / step - 1e-9).ceil() as u32;
    (0..=count).map(|index| (f64::from(index) * step, label(f64::from(index) * step))).collect()
}

/// Returns `500 B`, `20 kB`, `1 MB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "MB"),
        value if value >= 1e3 => (value / 1e3, "kB"),
        value => (value, "B"),
    };
    format!("{} {unit}", short_number(value))
}

/// Returns microseconds as `5 us`, `20 ms`.
#[must_use]
pub fn micros(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "s"),
        value if value >= 1e3 => (value / 1e3, "ms"),
        value => (value, "us"),
    };
    format!("{} {unit}", short_number(value))
}

/// Returns a value without trailing zeros: `0.5`, `20`, `99.9`.
#[must_use]
pub fn short_number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64]) -> Vec<f64> {
        decades(values.iter().copied(), |value| value.to_string())
            .into_iter()
            .map(|(value, _)| value)
            .collect()
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-9)
    }

    #[test]
    fn ticks_enclose_the_values() {
        assert!(close(&ticks(&[66.0, 1e6]), &[10.0, 100.0, 1e3, 1e4, 1e5, 1e6]));
        assert!(close(&ticks(&[1.3, 14.0]), &[1.0, 2.0, 5.0, 10.0, 20.0]));
        assert!(close(&ticks(&[0.3, 0.4]), &[0.2, 0.5]));
        assert!(close(&ticks(&[100.0]), &[100.0, 200.0]), "one value");
        assert!(ticks(&[]).len() >= 2 && ticks(&[f64::NAN, 0.0]).len() >= 2, "no value");
    }

    #[test]
    fn equal_factors_and_equal_nines_have_equal_distances() {
        let five = steps(146.1, short_number);
        assert_eq!(five.iter().map(|tick| tick.0).collect::<Vec<_>>().last(), Some(&160.0));
        assert_eq!(steps(0.0, short_number).len(), 6, "nothing to show");
        let axis = |scale, ticks: &[f64]| {
            Axis::new("", scale, ticks.iter().map(|&tick| (tick, String::new())).collect())
        };
        let log = axis(Scale::Logarithmic, &[1.0, 10.0, 100.0]);
        assert!((log.place(10.0) - 0.5).abs() < 1e-9);
        assert_eq!((log.place(0.0), log.place(1e9)), (0.0, 1.0), "beyond the ends");
        let nines = axis(Scale::Nines, &[0.0, 0.9, 0.99]);
        assert!((nines.place(0.9) - 0.5).abs() < 1e-9);
        assert_eq!((nines.place(0.0), nines.place(1.0)), (0.0, 1.0));
    }
}
