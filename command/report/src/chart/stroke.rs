//! Strokes: styles of lines and bars.

/// The style of a line or a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Solid, for the subject.
    Plain,
    /// Thin and dashed, for a comparison.
    Faint,
    /// Thinner and dotted, without points.
    Dotted,
}

impl Stroke {
    /// Returns the class, with a leading space.
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Faint => " faint",
            Self::Dotted => " dotted",
        }
    }
}

/// Returns the classes of an element with this colour and stroke.
#[must_use]
pub fn class(colour: usize, stroke: Stroke) -> String {
    format!("c{colour}{}", stroke.class())
}

/// Returns class and name of these elements, in their order. A name that occurs several times (a
/// median and its 99th percentile, bars of several groups) has its plain stroke in the legend.
pub(super) fn legend<'a>(
    drawn: impl Iterator<Item = (usize, Stroke, &'a str)>,
) -> Vec<(String, String)> {
    let mut entries: Vec<(usize, Stroke, &str)> = Vec::new();
    for each in drawn {
        match entries.iter_mut().find(|entry| entry.2 == each.2) {
            Some(entry) if each.1 == Stroke::Plain => *entry = each,
            Some(_) => {}
            None => entries.push(each),
        }
    }
    let entry =
        |(colour, stroke, name): (usize, Stroke, &str)| (class(colour, stroke), name.to_owned());
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_legend_once_with_its_plain_stroke() {
        let drawn =
            [(0, Stroke::Faint, "apus"), (1, Stroke::Dotted, "tcp"), (0, Stroke::Plain, "apus")];
        let entry = |class: &str, name: &str| (class.to_owned(), name.to_owned());
        let expected = [entry("c0", "apus"), entry("c1 dotted", "tcp")];
        assert_eq!(legend(drawn.into_iter()), expected);
    }
}
